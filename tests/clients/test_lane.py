"""Short statements beside long ones: with every slot taken, what is short is answered, and what is not waits its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.client import Client
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import begin
from tests.live.gateway import Server, connections, start_server
from tests.live.processes import eventually

LONG = "SELECT sum(sqrt(a.id * b.id)) FROM range(1000000000) a, range(1000) b"


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway with one slot."""
    server = start_server(tmp_path_factory.mktemp("lane"), "--slots", "1")
    yield server
    server.stop()


@pytest.fixture
def connect(narrow: Server) -> Iterator[Callable[..., Any]]:
    yield from connections(narrow)


def test_short_statements_are_answered_while_all_slots_are_taken(connect: Callable[..., Any], tmp_path: Path) -> None:
    long = connect().cursor()
    long.execute_async(LONG)
    try:
        with connect().cursor() as cursor:
            for text, rows in (
                ("SELECT 1", [(1,)]),
                ("SELECT count(*) FROM samples.tpch.nation", [(25,)]),
                ("CREATE TABLE lane (id INT)", []),
                ("INSERT INTO lane VALUES (7)", [(1, 1)]),
                ("SELECT * FROM lane", [(7,)]),
            ):
                cursor.execute(text)
                assert [tuple(row) for row in cursor.fetchall()] == rows
        waits = connect().cursor()
        waits.execute_async("INSERT INTO lane SELECT id FROM range(3)")
        with connect().cursor() as cursor:
            cursor.execute("SELECT count(*) FROM lane")
            assert cursor.fetchall()[0][0] == 1
        assert waits.is_query_pending() and long.is_query_pending()
    finally:
        long.cancel()
    waits.get_async_execution_result()
    with connect().cursor() as cursor:
        cursor.execute("SELECT count(*) FROM lane")
        assert cursor.fetchall()[0][0] == 4


def test_who_waits_is_told_its_place_in_the_queue_as_progress(narrow: Server) -> None:
    def progress(client: Client, operation: Any) -> Any:
        request = ttypes.TGetOperationStatusReq(operation, getProgressUpdate=True)
        return client.call("GetOperationStatus", request).progressUpdateResponse

    with Client(narrow.url).open() as client:
        operations = [begin(client, LONG) for _ in range(3)]
        try:
            wanted = {"Waiting for a slot: 1 of 2 in the queue", "Waiting for a slot: 2 of 2 in the queue"}
            eventually(lambda: wanted <= {progress(client, each).footerSummary for each in operations}, 30)
        finally:
            for each in operations:
                client.call("CloseOperation", ttypes.TCloseOperationReq(each))
