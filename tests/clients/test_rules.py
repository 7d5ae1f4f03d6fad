"""What single clients rely on and no other test asks for, by their own requests: Go, C#, JDBC, Node, Hive's and Python's."""

from __future__ import annotations

import http.client
import struct
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import lz4.frame
import pyarrow as pa
import pytest

from gateway.protocol import codec
from gateway.protocol.client import Client, RemoteError
from gateway.protocol.versions import HIVE_V6, HIVE_V10
from gateway.thrift_gen.TCLIService import ttypes
from tests.clients.test_server import ENDLESS
from tests.live.gateway import HTTP_PATH, Connect, Server

ARROW, COLUMNS = ttypes.TSparkRowSetType.ARROW_BASED_SET, ttypes.TSparkRowSetType.COLUMN_BASED_SET
STATES = ttypes.TOperationState
SUCCESS = ttypes.TStatusCode.SUCCESS_STATUS


@pytest.fixture
def raw(server: Server) -> Iterator[Client]:
    """A session of the raw client."""
    with Client(server.thrift_url).open() as client:
        yield client


def run(client: Client, statement: str, rows: int = 100_000, **fields: Any) -> Any:
    """TExecuteStatementResp with direct results of that many rows (0: without)."""
    limits = ttypes.TSparkGetDirectResults(maxRows=rows, maxBytes=1 << 26) if rows else None
    fields = {"runAsync": True, **fields}
    request = ttypes.TExecuteStatementReq(
        sessionHandle=client.session, statement=statement, getDirectResults=limits, **fields
    )
    return client.call("ExecuteStatement", request)


def native(**switched: bool) -> Any:
    """The Arrow types that Databricks' drivers ask for by default, but for those named."""
    usual = {
        "timestampAsArrow": True,
        "decimalAsArrow": True,
        "complexTypesAsArrow": True,
        "intervalTypesAsArrow": False,
    }
    return ttypes.TSparkArrowTypes(**{**usual, **switched})


def fetch(client: Client, handle: Any, **fields: Any) -> Any:
    request = ttypes.TFetchResultsReq(operationHandle=handle, maxRows=100, includeResultSetMetadata=True, **fields)
    return client.call("FetchResults", request)


def ended(client: Client, handle: Any) -> Any:
    """The status of an operation once it has ended."""
    while True:
        status = client.call("GetOperationStatus", ttypes.TGetOperationStatusReq(operationHandle=handle))
        if status.operationState not in (STATES.INITIALIZED_STATE, STATES.PENDING_STATE, STATES.RUNNING_STATE):
            return status


def post(server: Server, path: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """A POST as drivers make it: status, headers in lower case, body."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    connection.request("POST", path, body, {"Content-Type": "application/x-thrift", **headers})
    got = connection.getresponse()
    answer = got.status, {k.lower(): v for k, v in got.getheaders()}, got.read()
    connection.close()
    return answer


def test_go_tells_the_form_of_rows_by_the_field_that_is_set(raw: Client) -> None:
    for arrow in (True, False):
        rows = run(raw, "SELECT 1 AS n", canReadArrowResult=arrow).directResults.resultSet.results
        assert (rows.arrowBatches is not None, rows.columns is not None) == (arrow, not arrow)
        assert rows.resultLinks is None


def test_go_decompresses_by_its_own_setting(raw: Client) -> None:
    """So nothing may be compressed for who has not asked, whatever was sent before in the same session."""
    for wanted in (True, False):
        direct = run(
            raw, "SELECT id FROM range(1000)", canReadArrowResult=True, canDecompressLZ4Result=wanted
        ).directResults
        assert direct.resultSetMetadata.lz4Compressed is wanted
        for batch in direct.resultSet.results.arrowBatches:
            plain = lz4.frame.decompress(batch.batch) if wanted else batch.batch
            schema = pa.ipc.read_schema(pa.py_buffer(direct.resultSetMetadata.arrowSchema))
            assert pa.ipc.read_record_batch(pa.py_buffer(plain), schema).num_rows == batch.rowCount


def test_go_and_node_get_types_field_by_field(raw: Client) -> None:
    statement = "SELECT 1.5BD AS d, TIMESTAMP'2024-01-02 03:04:05' AS t, array(1) AS a"
    usual = {"d": pa.decimal128(2, 1), "t": pa.timestamp("us", "Etc/UTC"), "a": pa.list_(pa.int32())}
    for off, column in (("decimalAsArrow", "d"), ("timestampAsArrow", "t"), ("complexTypesAsArrow", "a")):
        answer = run(raw, statement, canReadArrowResult=True, useArrowNativeTypes=native(**{off: False}))
        schema = pa.ipc.read_schema(pa.py_buffer(answer.directResults.resultSetMetadata.arrowSchema))
        for name, kind in usual.items():
            got = schema.field(name).type
            assert pa.types.is_string(got) if name == column else got == kind or pa.types.is_list(got), (off, name)


def test_go_counts_rows_page_by_page_and_stops_at_no_empty_one(raw: Client) -> None:
    handle = run(raw, "SELECT id FROM range(950)", rows=0, canReadArrowResult=True).operationHandle
    ended(raw, handle)
    seen = 0
    while True:
        page = fetch(raw, handle)
        count = sum(batch.rowCount for batch in page.results.arrowBatches)
        assert page.results.startRowOffset == seen
        seen += count
        if not page.hasMoreRows:
            break
        assert count > 0
    assert seen == 950


def test_jdbc_never_asks_for_metadata_alone(raw: Client) -> None:
    handle = run(raw, "SELECT 1 AS n, 'x' AS t", rows=0, canReadArrowResult=True).operationHandle
    ended(raw, handle)
    told = fetch(raw, handle).resultSetMetadata
    assert [column.columnName for column in told.schema.columns] == ["n", "t"]
    assert (told.resultFormat, told.lz4Compressed, told.isStagingOperation) == (ARROW, False, False)
    assert pa.ipc.read_schema(pa.py_buffer(told.arrowSchema)).names == ["n", "t"]


def test_csharp_finds_rows_of_ddl_and_names_of_types(raw: Client) -> None:
    """The kernel of Databricks' drivers reads the name of a column's type from its Arrow field."""
    direct = run(raw, "USE default", canReadArrowResult=True).directResults
    assert [column.columnName for column in direct.resultSetMetadata.schema.columns] == ["Result"]
    assert direct.resultSet.results.arrowBatches == [] and direct.closeOperation is not None
    answer = run(raw, "SELECT 1 AS i, 1.50BD AS d, NULL AS n, array(1) AS a", canReadArrowResult=True)
    schema = pa.ipc.read_schema(pa.py_buffer(answer.directResults.resultSetMetadata.arrowSchema))
    names = [field.metadata[b"Spark:DataType:SqlName"].decode() for field in schema]
    assert names == ["INT", "DECIMAL(3,2)", "VOID", "ARRAY<INT>"]
    assert schema.field("i").metadata[b"Spark:DataType:JsonType"] == b'"integer"'


def test_node_begins_with_fetch_first_and_reads_columns_until_an_empty_page(raw: Client) -> None:
    handle = run(raw, "SELECT id FROM range(3)", rows=0).operationHandle
    ended(raw, handle)
    first = fetch(raw, handle, orientation=ttypes.TFetchOrientation.FETCH_FIRST)
    again = fetch(raw, handle, orientation=ttypes.TFetchOrientation.FETCH_NEXT)
    assert codec_rows(first) == 3 and codec_rows(again) == 0
    assert len(again.results.columns) == len(first.results.columns) == 1
    assert again.resultSetMetadata.resultFormat == COLUMNS


def codec_rows(page: Any) -> int:
    return int(page.results.columns[0].i64Val.values.count)


def test_csharp_keeps_a_result_alive_by_asking_for_its_status(raw: Client) -> None:
    handle = run(raw, "SELECT id FROM range(500)", rows=0, canReadArrowResult=True, queryTimeout=10_800).operationHandle
    assert ended(raw, handle).operationState == STATES.FINISHED_STATE
    fetch(raw, handle)
    heartbeat = raw.call("GetOperationStatus", ttypes.TGetOperationStatusReq(operationHandle=handle))
    assert heartbeat.operationState == STATES.FINISHED_STATE and not heartbeat.displayMessage
    assert sum(batch.rowCount for batch in fetch(raw, handle).results.arrowBatches) == 100


def test_hive_jdbc_asks_for_the_status_before_each_fetch_and_for_logs_beside_it(server: Server) -> None:
    with Client(server.thrift_url).open(protocol=HIVE_V10) as client:
        handle = run(client, "SELECT id FROM range(250)", rows=0).operationHandle
        seen = 0
        while True:
            request = ttypes.TGetOperationStatusReq(operationHandle=handle, getProgressUpdate=True)
            state = client.call("GetOperationStatus", request).operationState
            assert state in (STATES.PENDING_STATE, STATES.RUNNING_STATE, STATES.FINISHED_STATE)
            logs = client.call("FetchResults", ttypes.TFetchResultsReq(operationHandle=handle, maxRows=9, fetchType=1))
            assert len(logs.results.columns) == 1
            page = client.call("FetchResults", ttypes.TFetchResultsReq(operationHandle=handle, maxRows=100))
            count = codec_rows(page)
            if count == 0:
                break
            seen += count
        assert seen == 250
        client.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=handle))


def test_impyla_and_hive_jdbc_poll_what_was_answered_at_once(raw: Client) -> None:
    for method, request in (
        (
            "ExecuteStatement",
            ttypes.TExecuteStatementReq(sessionHandle=raw.session, statement="SELECT 1", runAsync=False),
        ),
        ("GetSchemas", ttypes.TGetSchemasReq(sessionHandle=raw.session, schemaName=".*")),
        ("GetTables", ttypes.TGetTablesReq(sessionHandle=raw.session, schemaName="tpch", tableName=".*")),
    ):
        handle = raw.call(method, request).operationHandle
        assert ended(raw, handle).operationState == STATES.FINISHED_STATE
        assert codec_len(fetch(raw, handle)) > 0


def codec_len(page: Any) -> int:
    column = page.results.columns[0]
    return int((column.stringVal or column.i32Val).values.count)


@pytest.mark.parametrize("method", ["GetLog", "CloseImpalaOperation"])
def test_pyhive_and_impyla_fall_back_where_a_call_is_unknown(server: Server, method: str) -> None:
    """Only for a TApplicationException of the kind UNKNOWN_METHOD (1); its request holds a handle, which is no text."""
    handle = b"\x0c\x00\x01\x0c\x00\x01\x0b\x00\x01" + struct.pack(">i", 16) + bytes(range(240, 256)) + b"\x00\x00\x00"
    name = method.encode()
    body = b"\x80\x01\x00\x01" + struct.pack(">i", len(name)) + name + struct.pack(">i", 7)
    status, _, answer = post(server, HTTP_PATH, body + b"\x0c\x00\x01" + handle + b"\x00")
    assert status == 200
    with pytest.raises(codec.ApplicationError) as caught:
        codec.decode_reply(answer)
    assert caught.value.fault == 1


def test_cancelled_rows_are_an_error_for_the_python_connector(raw: Client) -> None:
    """It takes a cancelled statement for a finished one, and goes on to its rows."""
    handle = run(raw, ENDLESS, rows=0).operationHandle
    raw.call("CancelOperation", ttypes.TCancelOperationReq(operationHandle=handle))
    assert ended(raw, handle).operationState == STATES.CANCELED_STATE
    for call, request in (
        ("FetchResults", ttypes.TFetchResultsReq(operationHandle=handle, maxRows=1)),
        ("GetResultSetMetadata", ttypes.TGetResultSetMetadataReq(operationHandle=handle)),
    ):
        with pytest.raises(RemoteError):
            raw.call(call, request)


def test_the_python_connector_gets_a_handle_within_seconds(raw: Client) -> None:
    """It holds a lock while a call is under way: what waits longer can't be cancelled."""
    begun = time.monotonic()
    answer = run(raw, ENDLESS)
    assert answer.directResults.operationStatus.operationState in (STATES.PENDING_STATE, STATES.RUNNING_STATE)
    raw.call("CancelOperation", ttypes.TCancelOperationReq(operationHandle=answer.operationHandle))
    assert time.monotonic() - begun < 12


def test_closing_what_nobody_knows_is_no_error_for_the_python_connector(raw: Client) -> None:
    handle = run(raw, "SELECT 1", rows=0).operationHandle
    for _ in range(2):
        closed = raw.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=handle))
        assert closed.status.statusCode == SUCCESS


def test_go_and_harlequin_know_lost_handles_by_their_words(server: Server) -> None:
    with Client(server.thrift_url).open() as client:
        operation = run(client, "SELECT 1", rows=0).operationHandle
        session = client.session
        client.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=operation))
        with pytest.raises(RemoteError, match="Invalid OperationHandle:"):
            fetch(client, operation)
    with Client(server.thrift_url) as other, pytest.raises(RemoteError, match="Invalid SessionHandle"):
        other.call("ExecuteStatement", ttypes.TExecuteStatementReq(sessionHandle=session, statement="SELECT 1"))


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("SELEC 1", "42601"),  # ADBC C# asks in another way after this one
        ("SELECT * FROM not_there", "42P01"),  # Metabase
        ("SELECT * FROM delta.`/etc/none`", "42501"),  # ADBC Go, Superset
        ("SELECT 1/0", "22012"),
    ],
)
def test_a_failure_of_sql_is_an_answer_with_both_texts(server: Server, raw: Client, statement: str, state: str) -> None:
    """C# and Go read displayMessage, Node the other; an HTTP status of 5xx would make all send the statement again."""
    body = codec.encode_call(
        "ExecuteStatement",
        0,
        ttypes.TExecuteStatementReq(
            sessionHandle=raw.session, statement=statement, getDirectResults=ttypes.TSparkGetDirectResults(maxRows=10)
        ),
    )
    status, _, answer = post(server, HTTP_PATH, body)
    reply = codec.decode_reply(answer).value
    told = reply.status if reply.status.statusCode != SUCCESS else reply.directResults.operationStatus
    assert status == 200
    assert told.sqlState == state and told.errorMessage and told.displayMessage.startswith("[")


def test_sessions_take_what_programs_set_at_connect(server: Server) -> None:
    settings = {
        "spark.thriftserver.arrowBasedRowSet.timestampAsString": "false",
        "spark.sql.thriftserver.metadata.metricview.enabled": "true",
        "QUERY_TAGS": "team:sales\\,eu,adhoc",
        "use:database": "tpch",  # Hive JDBC
        "set:hiveconf:hive.server2.thrift.resultset.default.fetch.size": "1000",
        "TIMEZONE": "Europe/Amsterdam",
    }
    with Client(server.thrift_url).open(settings, catalog="samples", protocol=HIVE_V10) as client:
        assert client.protocol == HIVE_V10
        result = client.execute("SELECT current_schema(), current_timezone()", arrow=False)
        result.close()
    with Client(server.thrift_url).open(settings) as client:
        told = client.execute("SELECT current_timezone(), count(*) FROM samples.tpch.region").table()
        assert [column[0].as_py() for column in told.columns] == ["Europe/Amsterdam", 5]


def test_pyhive_wants_its_own_version_back_and_only_plain_success(server: Server) -> None:
    with Client(server.thrift_url) as client:
        opened = client.call("OpenSession", ttypes.TOpenSessionReq(client_protocol=HIVE_V6, configuration={}))
        assert (opened.serverProtocolVersion, opened.status.statusCode) == (HIVE_V6, SUCCESS)
        statement = ttypes.TExecuteStatementReq(sessionHandle=opened.sessionHandle, statement="SELECT 1")
        assert client.call("ExecuteStatement", statement).status.statusCode == SUCCESS
        client.call("CloseSession", ttypes.TCloseSessionReq(sessionHandle=opened.sessionHandle))


def test_a_schema_that_is_not_there_opens_a_session_of_the_python_connector(connect: Connect) -> None:
    with connect(catalog="main", schema="not_there").cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchall()[0][0] == "not_there"


@pytest.mark.parametrize(
    "path",
    [
        "/sql/1.0/warehouses/abc",
        "/sql/1.0/endpoints/abc",
        "/sql/protocolv1/o/0/c1",
        "//sql/1.0/warehouses/abc",  # Databricks JDBC 3.4
        "/sql/1.0/warehouses/abc?o=12",
        "/cliservice",
        "/cliservice/",  # PyHive
    ],
)
def test_paths_of_drivers(server: Server, path: str) -> None:
    body = codec.encode_call("OpenSession", 0, ttypes.TOpenSessionReq(client_protocol_i64=0xA508))
    headers = {"Authorization": "Basic bWU6eA==", "x-databricks-org-id": "12", "Cookie": "a=b"}
    status, told, answer = post(server, path, body, **headers)
    assert status == 200 and "set-cookie" not in told and "location" not in told
    opened = codec.decode_reply(answer).value
    assert opened.status.statusCode == SUCCESS
    closing = codec.encode_call("CloseSession", 0, ttypes.TCloseSessionReq(sessionHandle=opened.sessionHandle))
    assert post(server, path, closing, **headers)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/2.0/connector-service/feature-flags/PYTHON/4.9.0",
        "/api/2.0/connector-service/feature-flags/NODEJS/2.1.0",
        "/api/2.0/connector-service/feature-flags/GOLANG/1.14.0",
        "/api/2.0/connector-service/feature-flags/JDBC/3.4.5",
        "/telemetry-ext",
        "/telemetry-unauth",
        "/.well-known/databricks-config",
    ],
)
def test_what_drivers_ask_beside_statements_is_answered_fast(server: Server, path: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
    connection.request("GET", path)
    got = connection.getresponse()
    assert got.status in (200, 404, 405) and got.getheader("Content-Type", "").startswith("application/json")
    assert got.read().startswith(b"{")
    connection.close()
