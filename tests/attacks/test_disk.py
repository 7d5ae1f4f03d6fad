"""Disk that runs out, for one caller or for all: a clear error, tables as they were, and others go on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import answer, until
from tests.attacks.test_rest import execute
from tests.live.disk import Disk
from tests.live.gateway import Server, start_server

LIMIT = 64 << 20
LARGE = "SELECT id, repeat('x', 1000) AS x FROM range({})"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    server = start_server(tmp_path, "--spool-limit", str(LIMIT), "--slots", "2")
    yield server
    assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


def spooled(server: Server) -> int:
    """Bytes of the files without a name that the server holds open."""
    total = 0
    for descriptor in os.listdir(f"/proc/{server.process.pid}/fd"):
        path = f"/proc/{server.process.pid}/fd/{descriptor}"
        if "(deleted)" in os.readlink(path) and "spool" in os.readlink(path):
            total += os.stat(path).st_size
    return total


def left_behind(client: Client, rows: int, wait: bool = True) -> Any:
    """The handle of a result that nobody closes."""
    request = ttypes.TExecuteStatementReq(client._session, LARGE.format(rows), runAsync=not wait)
    return client.call("ExecuteStatement", request).operationHandle


def state_of(client: Client, handle: Any) -> str:
    status = client.call("GetOperationStatus", ttypes.TGetOperationStatusReq(handle))
    return str(ttypes.TOperationState._VALUES_TO_NAMES[status.operationState])


def test_results_of_one_caller_take_half_of_the_disk(own: Server) -> None:
    with Client(own.thrift_url, user="mallory").open() as mallory, Client(own.thrift_url, user="ann").open() as ann:
        kept = left_behind(ann, 10_000)
        for _ in range(12):
            left_behind(mallory, 10_000)
            assert spooled(own) < LIMIT // 2 + (16 << 20) + (10 << 20)
        with pytest.raises(RemoteError) as refused:
            answer(mallory, LARGE.format(60_000))
        assert refused.value.sqlstate in ("53100", "54000")
        running = [left_behind(mallory, 25_000, wait=False) for _ in range(2)]
        states: set[str] = set()
        while not states or "RUNNING_STATE" in states or "PENDING_STATE" in states:
            try:
                states = {state_of(mallory, handle) for handle in running}
            except RemoteError:  # its result made room for the other's
                break
        assert len(answer(ann, LARGE.format(10_000))) == 10_000
        assert state_of(ann, kept) == "FINISHED_STATE"


def test_rows_behind_a_limit_of_bytes_take_no_disk(own: Server) -> None:
    """They were written all the same, counted for nobody, and the statement failed once they were too many."""
    told = execute(
        own, LARGE.format(1_000_000), byte_limit=1_000_000, disposition="EXTERNAL_LINKS", format="ARROW_STREAM"
    )
    assert told["status"] == {"state": "SUCCEEDED"}
    assert told["manifest"]["truncated"] and 500 < told["manifest"]["total_row_count"] <= 1000
    assert spooled(own) < 20 << 20
    whole = execute(own, LARGE.format(900), byte_limit=1_000_000)
    assert (whole["manifest"]["truncated"], whole["manifest"]["total_row_count"]) == (False, 900)


def test_results_of_one_caller_leave_half_of_a_disk_that_is_smaller_than_the_limit(
    tmp_path: Path, small_disk: Disk
) -> None:
    small_disk(tmp_path / "state", 64)
    server = start_server(tmp_path, "--slots", "2")
    try:
        with (
            Client(server.thrift_url, user="mallory").open() as mallory,
            Client(server.thrift_url, user="ann").open() as ann,
        ):
            for _ in range(8):
                left_behind(mallory, 10_000)
            assert len(answer(ann, LARGE.format(10_000))) == 10_000
    finally:
        assert server.stop() == 0


def test_a_state_folder_that_is_moved_away_while_it_serves(own: Server) -> None:
    """Results have their place again, and the history goes on."""
    state = own.log.parent / "state"
    with Client(own.thrift_url, user="ann").open() as ann:
        state.rename(state.with_name("gone"))
        assert len(answer(ann, LARGE.format(10_000))) == 10_000
        asked = "SELECT count(*) AS n FROM system.query.history WHERE statement_text LIKE '%repeat%'"
        until(lambda: answer(ann, asked) != [{"n": 0}], "the statement is in the history")
