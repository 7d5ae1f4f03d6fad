"""/metrics of a live server: what each series counts, and that each declared metric is written."""

from __future__ import annotations

import os
import signal
import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from prometheus_client.parser import text_string_to_metric_families as families

from gateway.auth.authenticators import token_line
from gateway.observability import METRICS, Metric
from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import ENDLESS, begin, workers
from tests.live.gateway import Server, start_server
from tests.live.processes import eventually

TOKEN = "a-token-of-these-tests"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@dataclass(frozen=True, slots=True)
class Seen:
    """A server and its metrics: while a statement waited for another, and once all of `events` had happened."""

    server: Server
    queued: Samples
    after: Samples


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """A server with a token, one slot, a queue of one and little memory, to which something of every kind has happened."""
    folder = tmp_path_factory.mktemp("metrics")
    tokens = folder / "tokens"
    tokens.write_text(token_line("alice", TOKEN) + "\n")
    flags = ["--slots", "1", "--queue-limit", "1", "--memory-limit", "64MiB", "--tcp-port", "0"]
    server = start_server(folder, *flags, "--auth", "token", "--token-file", str(tokens))
    try:
        with Client(server.url, token=TOKEN).open() as client:
            queued = events(server, client)
            yield Seen(server, queued, samples(server))
    finally:
        assert server.stop() == 0


def events(server: Server, client: Client) -> Samples:
    """Rows, a table read twice, a sort that spills, failures, HTTP to TCP, a full queue, a cancel, killed processes."""

    def is_found_again() -> bool:
        client.execute("SELECT count(*) FROM samples.tpch.region").table()
        return total(samples(server), "cache_hits_total") > 0

    eventually(is_found_again, 20)  # nothing is kept of a table that has been made a moment ago
    list(client.execute("SELECT id FROM range(5)", arrow=False, direct=False).pages())
    call = ttypes.TGetSchemasReq(sessionHandle=client._session)
    client.call("CloseOperation", ttypes.TCloseOperationReq(client.call("GetSchemas", call).operationHandle))
    for batch in client.execute("SELECT id FROM range(10000000) ORDER BY id % 1000003, id").batches():
        assert batch.num_rows
    with pytest.raises(RemoteError, match="UNRESOLVED_COLUMN"):
        client.execute("SELECT nonsense")
    unknown = ttypes.TOperationHandle(ttypes.THandleIdentifier(os.urandom(16), os.urandom(16)), 0, True)
    with pytest.raises(RemoteError, match="INVALID_OPERATION_HANDLE"):
        client.call("GetOperationStatus", ttypes.TGetOperationStatusReq(unknown))
    with pytest.raises(RemoteError, match="401"):
        Client(server.url, token="wrong").open()
    with socket.create_connection(server.tcp_address, 20) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"Thrift over TCP" in stranger.recv(4096)
    running, waiting = begin(client, ENDLESS), begin(client, ENDLESS)
    eventually(lambda: is_full(samples(server)), 60)
    with pytest.raises(RemoteError, match="RESOURCE_EXHAUSTED"):
        client.execute("SELECT 2")
    eventually(lambda: is_full(samples(server)), 60)
    queued = samples(server)
    client.call("CancelOperation", ttypes.TCancelOperationReq(running))
    eventually(lambda: value(samples(server), "cancel_seconds_count") > 0, 60)
    for operation in (running, waiting):
        client.call("CloseOperation", ttypes.TCloseOperationReq(operation))
    for pid in workers(server):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: value(samples(server), "engine_restarts_total") > 0, 60)
    client.execute("SELECT 3").table()
    return queued


def is_full(found: Samples) -> bool:
    """One statement runs and one waits; not all gauges are set at the same moment."""
    states = [value(found, "operations", state=state) for state in ("RUNNING", "PENDING")]
    return [*states, value(found, "queue_depth")] == [1, 1, 1]


def samples(server: Server) -> Samples:
    """Every sample of /metrics by name and labels."""
    with urllib.request.urlopen(server.url + "/metrics", timeout=20) as page:
        text = page.read().decode()
    return {(s.name, frozenset(s.labels.items())): s.value for f in families(text) for s in f.samples}


def value(found: Samples, name: str, **labels: str) -> float:
    """One sample; 0 if it is not there yet."""
    return found.get((name, frozenset(labels.items())), 0.0)


def total(found: Samples, name: str) -> float:
    """The sum of a metric over its labels."""
    return sum(v for (n, _), v in found.items() if n == name)


#: Counts what happens only once a file has failed for very long: tests/unit/history has it happen.
SELDOM = {"history_lost_total"}


@pytest.mark.parametrize("metric", [m for m in METRICS if m.name not in SELDOM], ids=lambda m: m.name)
def test_every_declared_metric_is_written(seen: Seen, metric: Metric) -> None:
    name = f"{metric.name}_count" if metric.kind == "histogram" else metric.name
    labels = [labels for n, labels in seen.after if n == name]
    assert labels, "there is no such series"
    assert all({key for key, _ in one} == set(metric.labels) for one in labels)
    if metric.kind != "gauge":
        assert total(seen.after, name) > 0, "it never counted"


def test_rows_are_counted_once(seen: Seen) -> None:
    before = samples(seen.server)
    with Client(seen.server.url, token=TOKEN).open() as client:
        assert client.execute("SELECT id FROM range(10)").table().num_rows == 10
        assert len(list(client.execute("SELECT id FROM range(7)", arrow=False, max_rows=3).pages())) == 3
    after = samples(seen.server)
    assert value(after, "result_rows_total") - value(before, "result_rows_total") == 17
    for kind in ("arrow", "columnar"):
        assert value(after, "result_bytes_total", format=kind) > value(before, "result_bytes_total", format=kind)


def test_a_statement_is_timed_in_each_of_its_phases(seen: Seen) -> None:
    before = samples(seen.server)
    with Client(seen.server.url, token=TOKEN).open() as client:
        assert client.execute("SELECT count(*) FROM samples.tpch.nation").table().num_rows == 1
    after = samples(seen.server)

    def grown(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    for phase in ("queue", "parse", "plan", "execute"):
        assert grown("operation_seconds_count", phase=phase) == 1, phase
        assert 0 <= grown("operation_seconds_sum", phase=phase) < 60, phase
    assert grown("operation_seconds_count", phase="fetch") >= 1
    assert grown("queue_wait_seconds_count") == grown("first_row_seconds_count") == 1
    assert grown("rpc_seconds_count", rpc="ExecuteStatement") == 1
    assert grown("statements_total", statement_type="SELECT", engine="datafusion", state="FINISHED") == 1
    assert total(after, "catalog_seconds_count") > total(before, "catalog_seconds_count")


def test_a_table_that_is_open_already_is_a_cache_hit(seen: Seen) -> None:
    with Client(seen.server.url, token=TOKEN).open() as client:
        counts = [total(samples(seen.server), "cache_hits_total")]
        for text in ("SELECT 1", *["SELECT count(*) FROM samples.tpch.part"] * 8):
            client.execute(text).table()
            counts.append(total(samples(seen.server), "cache_hits_total"))
    assert counts[0] == counts[1]
    assert counts[-1] > counts[2]


def test_memory_and_what_does_not_fit_into_it(seen: Seen) -> None:
    assert value(seen.after, "memory_pool_bytes") == 64 * 2**20
    assert value(seen.after, "spill_bytes_total") > 2**20
    assert value(seen.after, "rss_bytes") > 2**20
    with Client(seen.server.url, token=TOKEN).open() as client:
        client.execute("SELECT count(*) FROM range(1000)").table()
    assert value(samples(seen.server), "spill_bytes_total") == value(seen.after, "spill_bytes_total")


def test_failures_are_counted_by_call_condition_and_kind(seen: Seen) -> None:
    labels = {"rpc": "GetOperationStatus", "error_class": "INVALID_OPERATION_HANDLE"}
    assert value(seen.after, "rpc_errors_total", **labels) == 1
    assert total(seen.after, "auth_failures_total") == 1
    ended = [dict(labels) for (name, labels), v in seen.after.items() if name == "statements_total" and v]
    assert {"ERROR", "CANCELED", "FINISHED"} <= {one["state"] for one in ended}
    answers = {dict(labels)["status"] for name, labels in seen.after if name == "http_requests_total"}
    assert {"200", "401"} <= answers


def test_a_queue_is_seen_while_it_lasts(seen: Seen) -> None:
    assert value(seen.queued, "queue_depth") == 1
    assert [value(seen.queued, "operations", state=s) for s in ("RUNNING", "PENDING")] == [1, 1]
    assert value(seen.queued, "queue_rejected_total") == value(seen.after, "queue_rejected_total") == 1
    assert value(seen.after, "queue_depth") == 0
    assert value(seen.after, "cancel_seconds_count") in (1, 2)  # the one that waited may have begun by then


def test_sessions_are_counted_as_they_come_and_go(seen: Seen) -> None:
    before = samples(seen.server)
    with Client(seen.server.url, token=TOKEN).open():
        now = samples(seen.server)
    after = samples(seen.server)
    opened = [value(s, "sessions_opened_total") - value(before, "sessions_opened_total") for s in (now, after)]
    assert opened == [1, 1]
    assert [value(s, "sessions_open") - value(before, "sessions_open") for s in (now, after)] == [1, 0]
    assert value(after, "engine_up", engine="datafusion") >= 1
