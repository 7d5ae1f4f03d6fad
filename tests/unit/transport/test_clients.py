"""Our client and the Databricks connector over real HTTP and scripted statements."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from gateway.transport.server import HttpServer
from tests.unit.protocol.fake import FakeService
from tests.unit.transport.raw import PATH, ROWS


@pytest.fixture
def client(server: HttpServer) -> Iterator[Client]:
    with Client(server.url).open({"a": "b"}, schema="sales") as client:
        yield client


def test_client_reads_arrow(client: Client) -> None:
    for lz4 in (False, True):
        result = client.execute("NUMBERS", lz4=lz4, max_rows=700)
        assert result.columns == ["n", "d", "s"]
        table = result.table()
        assert [tuple(row.values()) for row in table.to_pylist()] == ROWS
    assert client.protocol == 0xA509


def test_client_reads_columns(client: Client) -> None:
    pages = list(client.execute("NUMBERS", arrow=False, max_rows=2_000).pages())
    assert [p.startRowOffset for p in pages] == [0, 2_000, 4_000]
    values = b"".join(bytes(p.columns[0].i64Val.values.data) for p in pages)
    assert values == struct.pack(">5000q", *range(5_000))
    assert sum(p.columns[2].stringVal.values.count for p in pages) == 5_000


@pytest.mark.parametrize("direct", [False, True])
def test_client_waits_and_shows_progress(client: Client, direct: bool) -> None:
    seen: list[Any] = []
    result = client.execute("SLOW", direct=direct, progress=seen.append)
    assert result.table().num_rows == 3
    assert seen
    assert all(s.operationState == ttypes.TOperationState.RUNNING_STATE for s in seen)


@pytest.mark.parametrize("direct", [False, True])
def test_client_raises_errors_and_leaves_nothing(client: Client, service: FakeService, direct: bool) -> None:
    before = len(service.operations)
    with pytest.raises(RemoteError, match=r"^\[DIVIDE_BY_ZERO\]") as caught:
        client.execute("FAIL", direct=direct)
    assert caught.value.sqlstate == "22012"
    assert len(service.operations) == before


def test_client_reopens_a_closed_connection(client: Client) -> None:
    assert client.execute("SELECT 1").table().num_rows == 1
    connection = client._connection
    assert connection._socket is not None
    connection._socket.shutdown(socket.SHUT_RDWR)
    assert client.execute("DDL").columns == ["Result"]


def test_client_sends_nothing_twice() -> None:
    """A server that takes a request and dies: the statement may have run."""
    received = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                received.append(peer.recv(65536))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(ConnectionResetError):
            Client(f"http://127.0.0.1:{listener.getsockname()[1]}").open()
        thread.join(10)
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert len(received) == 1


def test_client_does_not_take_other_urls() -> None:
    for url in ("httpx://x", "localhost:8080", "ftp://x"):
        with pytest.raises(ValueError, match="http"):
            Client(url)


@pytest.fixture
def connection(server: HttpServer) -> Iterator[Any]:
    sql = pytest.importorskip("databricks.sql")
    connection = sql.connect(
        server_hostname="localhost",
        http_path=PATH,
        _connection_uri=server.url + PATH,
        access_token="x",
        enable_telemetry=False,
        use_cloud_fetch=False,
    )
    yield connection
    connection.close()


def test_connector_reads_rows_and_description(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("NUMBERS")
        assert [d[:2] for d in cursor.description] == [("n", "bigint"), ("d", "decimal"), ("s", "string")]
        assert cursor.description[1][4:6] == (10, 2)
        assert [tuple(row) for row in cursor.fetchall()] == ROWS


def test_connector_pages(connection: Any) -> None:
    with connection.cursor(arraysize=999) as cursor:
        cursor.execute("NUMBERS")
        rows: list[tuple[object, ...]] = []
        while page := cursor.fetchmany(1_000):
            rows += [tuple(row) for row in page]
        assert rows == ROWS


def test_connector_ddl_and_slow_statements(connection: Any) -> None:
    with connection.cursor() as cursor:
        assert cursor.execute("DDL").fetchall() == []
        assert [d[:2] for d in cursor.description] == [("Result", "string")]
        assert len(cursor.execute("SLOW").fetchall()) == 3
        cursor.execute_async("SLOW")
        cursor.get_async_execution_result()
        assert len(cursor.fetchall()) == 3


def test_connector_sees_a_server_operation_error(connection: Any) -> None:
    from databricks.sql.exc import ServerOperationError

    with connection.cursor() as cursor, pytest.raises(ServerOperationError, match="DIVIDE_BY_ZERO"):
        cursor.execute("FAIL")


def test_connector_without_arrow(server: HttpServer, service: FakeService) -> None:
    """The columnar path of the same client, asked for by a session of an older protocol."""
    with Client(server.url).open(protocol=5) as client:
        result = client.execute("NUMBERS", arrow=True, max_rows=10_000)
        assert result.metadata.resultFormat == ttypes.TSparkRowSetType.COLUMN_BASED_SET
        assert result.metadata.arrowSchema is None
        (page,) = result.pages()
        assert page.columns[1].stringVal.values.count == 5_000
