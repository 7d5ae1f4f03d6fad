"""Load, kills and full disks: only the statements concerned fail, clearly; nothing is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import ENDLESS, address, answer, begin, cpu_seconds, outcome, resident_mib, workers
from tests.live.gateway import Server, clean_environment, start_server

pytestmark = pytest.mark.heavy


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, with little memory."""
    server = start_server(tmp_path, "--memory-limit", "512MiB", "--slots", "2")
    yield server
    spill = tmp_path / "state" / "spill"
    assert server.stop() == 0
    assert list(spill.iterdir()) == []


def status(client: Client, operation: Any) -> Any:
    return client.call("GetOperationStatus", ttypes.TGetOperationStatusReq(operationHandle=operation))


HOGS = {
    "value": "SELECT repeat('x', 1000000000) AS s",
    "value per row": "SELECT max(length(repeat(cast(id AS STRING), 200000000))) FROM range(100)",
    "collect": "SELECT size(collect_list(id)) FROM range(300000000)",
    "window": "SELECT max(s) FROM (SELECT sum(id) OVER (ORDER BY id DESC) s FROM range(200000000))",
    "doubling joins": "WITH c0 AS (SELECT 1 AS a),"
    + ",".join(f"c{i} AS (SELECT x.a FROM c{i - 1} x JOIN c{i - 1} y ON x.a = y.a)" for i in range(1, 31))
    + " SELECT count(*) FROM c30",
}


@pytest.mark.parametrize("name", HOGS)
def test_memory_hogs_are_stopped_and_others_go_on(own: Server, name: str) -> None:
    with Client(own.url).open() as hog, Client(own.url).open() as other, ThreadPoolExecutor() as threads:
        running = threads.submit(outcome, hog, HOGS[name], timeout_seconds=60)
        answers = 0
        while not running.done():
            assert answer(other, "SELECT 1 AS x") == [{"x": 1}]
            answers += 1
            time.sleep(0.1)
        error = running.result()
        assert isinstance(error, RemoteError)
        assert error.sqlstate in ("53200", "57KD0", "54001"), error
        assert answers
        assert answer(hog, "SELECT 2 AS x") == [{"x": 2}]


def test_sorts_groups_and_joins_larger_than_memory_spill(own: Server) -> None:
    with Client(own.url).open() as client:
        rows = answer(client, "SELECT id FROM range(100000000) ORDER BY id % 1000003, id", row_limit=3)
        assert [row["id"] for row in rows] == [0, 1000003, 2000006]
        groups = "SELECT count(*) AS n FROM (SELECT id, count(*) FROM range(60000000) GROUP BY id)"
        assert answer(client, groups) == [{"n": 60_000_000}]
        side = "(SELECT cast(id AS STRING) AS k FROM range(10000000))"
        assert answer(client, f"SELECT count(*) AS n FROM {side} a JOIN {side} b ON a.k = b.k") == [{"n": 10_000_000}]


def test_what_cannot_be_planned_in_time_is_refused(own: Server) -> None:
    doubled = "SELECT 1 AS c0, " + ", ".join(f"c{i} + c{i} AS c{i + 1}" for i in range(40))
    with Client(own.url).open() as client:
        error = outcome(client, doubled)
        assert isinstance(error, RemoteError)
        # Time or memory, whichever is over first.
        assert "STATEMENT_TOO_COMPLEX" in str(error) or error.sqlstate == "53200"


@pytest.mark.parametrize("how", ["cancel", "close", "close session"])
def test_a_cancelled_statement_uses_no_cpu(own: Server, how: str) -> None:
    with Client(own.url).open() as client:
        operation = begin(client, ENDLESS)
        time.sleep(2)
        busy = workers(own)
        if how == "cancel":
            client.call("CancelOperation", ttypes.TCancelOperationReq(operationHandle=operation))
        elif how == "close":
            client.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=operation))
        else:
            client.call("CloseSession", ttypes.TCloseSessionReq(sessionHandle=client._session))
            client._session = None
        time.sleep(2)
        before = {pid: cpu_seconds(pid) for pid in busy}
        time.sleep(1)
        used = [(cpu_seconds(pid) or 0) - old for pid, old in before.items() if old is not None and cpu_seconds(pid)]
        assert all(seconds < 0.2 for seconds in used)
        if how == "cancel":
            ended = status(client, operation)
            assert (ended.operationState, ended.sqlState) == (ttypes.TOperationState.CANCELED_STATE, "HY008")


PHASES: dict[str, tuple[str, float, bool]] = {
    "before rows": ("SELECT count(*) AS n FROM range(400000000) WHERE id % 3 = 1", 1.0, True),
    "between rows": ("SELECT id, repeat('x', 500) AS s FROM range(4000000)", 0.7, False),
    "in a write": ("INSERT INTO target SELECT id FROM range(60000000)", 1.0, False),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_worker_killed_in_each_phase(own: Server, phase: str) -> None:
    text, delay, unseen = PHASES[phase]
    with Client(own.url).open() as client, ThreadPoolExecutor() as threads:
        answer(client, "CREATE TABLE target AS SELECT 1L AS id")
        running = threads.submit(outcome, client, text, max_rows=1000, max_bytes=100_000)
        time.sleep(delay)
        for pid in workers(own):
            os.kill(pid, signal.SIGKILL)
        result = running.result(120)
        if unseen:
            assert isinstance(result, list)
        else:
            assert isinstance(result, RemoteError)
            assert "WORKER_LOST" in str(result)
            assert result.sqlstate == "08006"
        assert answer(client, "SELECT count(*) AS n FROM target") == [{"n": 1}]


def test_a_statement_that_always_loses_its_worker(own: Server) -> None:
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.3):
            for pid in workers(own):
                if (cpu_seconds(pid) or 0) > 4:  # more than a start takes: it works
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    with Client(own.url).open() as client:
        killer.start()
        error = outcome(client, "SELECT count(*) FROM range(4000000000) WHERE id % 3 = 1", timeout_seconds=100)
        over.set()
        killer.join()
        assert isinstance(error, RemoteError)
        assert "WORKER_LOST" in str(error)
        assert "twice" in str(error)
        assert answer(client, "SELECT 1 AS x") == [{"x": 1}]


def test_64_connections_and_200_sessions(own: Server) -> None:
    def work(number: int) -> str:
        with Client(own.url).open() as client:
            for turn in range(10):
                expected = [{"n": number * turn}]
                if answer(client, f"SELECT sum(id) * 0 + {number * turn} AS n FROM range(1000)") != expected:
                    return "wrong"
        return "right"

    idle = [Client(own.url).open() for _ in range(200)]
    try:
        with ThreadPoolExecutor(64) as threads:
            assert Counter(threads.map(work, range(64))) == {"right": 64}
        assert answer(idle[100], "SELECT 1 AS x") == [{"x": 1}]
    finally:
        for client in idle:
            client.close()
    assert resident_mib(own.process.pid) < 400


def test_slow_clients_hold_nobody_up(own: Server) -> None:
    peers = [socket.create_connection(address(own)) for _ in range(1000)]
    for peer in peers:
        peer.sendall(b"POST /sql/1.0/warehouses/x HTTP/1.1\r\nHost")
    with Client(own.url).open() as client:
        assert answer(client, "SELECT 1 AS x") == [{"x": 1}]
    for peer in peers:
        peer.close()


def test_sigterm_under_load(tmp_path: Path) -> None:
    server = start_server(tmp_path, "--memory-limit", "512MiB")
    results: list[Any] = []

    def work() -> None:
        try:
            with Client(server.url).open() as client:
                while True:
                    results.append(answer(client, "SELECT count(*) AS n FROM range(20000000) WHERE id % 3 = 1"))
        except (RemoteError, OSError) as error:
            results.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(60)
    assert server.process.wait(60) == 0
    rows = [r for r in results if isinstance(r, list)]
    assert rows
    assert all(r == [{"n": 6_666_667}] for r in rows)
    assert all(not isinstance(r, RemoteError) or "INTERNAL" not in str(r) for r in results)


def mounted(folder: Path, mebibytes: int) -> Callable[[], None]:
    """A small file system at `folder`; returns how to let go of it."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")

    def let_go() -> None:
        subprocess.run(["umount", "-l", str(folder)], check=True)

    return let_go


@pytest.mark.parametrize("full", ["spool", "spill", "warehouse"])
def test_a_full_disk_is_an_error_of_the_statement_alone(tmp_path: Path, full: str) -> None:
    folder = tmp_path / ("warehouse" if full == "warehouse" else f"state/{full}")
    let_go = mounted(folder, 8)
    try:
        server = start_server(tmp_path, "--memory-limit", "512MiB", "--slots", "2")
        try:
            with Client(server.url).open() as client, Client(server.url).open() as other:
                text = {
                    "spool": "SELECT id, repeat('x', 1000) AS s FROM range(1000000)",
                    "spill": "SELECT id FROM range(100000000) ORDER BY id * 7 % 1000003, id",
                    "warehouse": "CREATE TABLE big AS SELECT id * 7919 % 1000003 AS a, id FROM range(5000000)",
                }[full]
                error = outcome(client, text)
                assert isinstance(error, RemoteError), str(error)[:200]
                assert error.sqlstate in ("54000", "53100"), error
                assert "space" in str(error) or "full" in str(error)
                assert answer(other, "SELECT count(*) AS n FROM range(300000)") == [{"n": 300_000}]
                if full == "warehouse":
                    assert isinstance(outcome(other, "SELECT * FROM big"), RemoteError)
                    answer(other, "CREATE TABLE small AS SELECT 1 AS id")
                    assert answer(other, "SELECT * FROM small") == [{"id": 1}]
                elif full == "spool":
                    assert len(answer(other, "SELECT id, repeat('y', 100) AS s FROM range(20000)")) == 20_000
        finally:
            assert server.stop() == 0
    finally:
        let_go()


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--no-such-flag", "1"], "no-such-flag"),
        (["--port", "99999"], "port"),
        (["--memory-limit", "lots"], "memory-limit"),
        (["--state", "/proc/nowhere"], "state"),
        (["--warehouse", "/proc/nowhere"], "warehouse"),
        (["--host", "no.such.host.invalid", "--auth", "none"], "auth"),
        (["--ready-file", "/proc/nowhere/ready"], "ready-file"),
        (["--allow-path", "/no/such/folder"], "allow-path"),
        (["--config", "/no/such/file.toml"], "config"),
    ],
)
def test_a_wrong_setting_ends_with_2_and_its_name(tmp_path: Path, flags: list[str], named: str) -> None:
    command = [
        sys.executable,
        "-m",
        "gateway",
        "serve",
        "--warehouse",
        str(tmp_path / "w"),
        "--state",
        str(tmp_path / "s"),
    ]
    done = subprocess.run(
        [*command, "--port", "0", *flags],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=clean_environment(),
    )
    assert done.returncode == 2, done.stderr
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_ends_with_2(tmp_path: Path, server: Server) -> None:
    port = address(server)[1]
    command = [sys.executable, "-m", "gateway", "serve", "--warehouse", str(tmp_path), "--state", str(tmp_path / "s")]
    done = subprocess.run(
        [*command, "--port", str(port)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=clean_environment(),
    )
    assert done.returncode == 2
    assert "port" in done.stderr
