"""The rules that clients impose on answers, one test each, over the scripted service."""

import random
import struct as binary
import uuid
from pathlib import Path
from typing import Any

import lz4.frame
import pyarrow as pa
import pytest

from gateway.errors import ProtocolError, UserError
from gateway.protocol import codec
from gateway.protocol.handler import VERBS, HandlerOptions, ThriftHandler
from gateway.protocol.reader import Budget
from gateway.service.api import Orientation, Principal, State
from gateway.sqltypes import INT, STRING, StructField, struct
from gateway.thrift_gen.TCLIService import ttypes
from tests.unit.protocol.fake import FakeService, Script
from tests.unit.protocol.recordings import read_recordings

ROWS = [(i, None if i % 3 == 0 else f"v{i}") for i in range(10)]
SCHEMA = struct(StructField("n", INT), StructField("s", STRING))
SCRIPTS = {
    "SELECT": Script(SCHEMA, ROWS),
    "EMPTY": Script(SCHEMA),
    "DDL": Script(is_query=False),
    "INSERT": Script(struct(StructField("num_affected_rows", INT)), [(3,)], modified_rows=3),
    "FAIL": Script(error=UserError("DIVIDE_BY_ZERO", "Division by zero.")),
    "SLOW": Script(SCHEMA, ROWS, polls=3),
    "SLOW FAIL": Script(error=UserError("DIVIDE_BY_ZERO", "Division by zero."), polls=2),
    "CANCELLED": Script(SCHEMA, ROWS, state=State.CANCELED),
    "BROKEN": Script(struct(StructField("n", INT)), [(1,)], is_query=False),
    "catalogs": Script(struct(StructField("TABLE_CAT", STRING, comment="Catalog name.")), [("main",)]),
    "schemas": Script(struct(StructField("TABLE_SCHEM", STRING)), [("default",)]),
    "tables": Script(struct(StructField("TABLE_CAT", STRING)), []),
    "columns": Script(struct(StructField("TABLE_CAT", STRING)), []),
}
STATUS = ttypes.TStatusCode
STATE = ttypes.TOperationState


class Wire:
    """Calls as a client makes them: bytes in, bytes out."""

    def __init__(
        self, service: FakeService | None = None, user: str = "ann", options: HandlerOptions | None = None
    ) -> None:
        self.service = service or FakeService(dict(SCRIPTS))
        options = options or HandlerOptions(direct_wait_seconds=4.0, poll_seconds=1.5)
        self.handler = ThriftHandler(self.service, options)
        self.user = user
        self.session: Any = None

    def call(self, method: str, request: Any, seqid: int = 0) -> Any:
        body = self.handler.handle(codec.encode_call(method, seqid, request), self.user, "test/1")
        reply = codec.decode_reply(body)
        assert (reply.method, reply.seqid) == (method, seqid)
        return reply.value

    def open(self, protocol: int = 0xA508, **fields: Any) -> Any:
        spark = protocol > 1000
        request = ttypes.TOpenSessionReq(
            client_protocol=None if spark else protocol, client_protocol_i64=protocol if spark else None, **fields
        )
        answer = self.call("OpenSession", request)
        self.session = answer.sessionHandle
        return answer

    def execute(self, statement: str, *, direct: bool = True, max_rows: int = 100, **fields: Any) -> Any:
        fields.setdefault("runAsync", True)
        limits = ttypes.TSparkGetDirectResults(maxRows=max_rows, maxBytes=1000) if direct else None
        return self.call(
            "ExecuteStatement",
            ttypes.TExecuteStatementReq(
                sessionHandle=self.session, statement=statement, getDirectResults=limits, **fields
            ),
        )

    def fetch(self, handle: Any, max_rows: int = 100, **fields: Any) -> Any:
        return self.call("FetchResults", ttypes.TFetchResultsReq(operationHandle=handle, maxRows=max_rows, **fields))


@pytest.fixture
def wire() -> Wire:
    wire = Wire()
    wire.open()
    return wire


def ints(column: Any) -> list[int]:
    return list(column.i32Val.values)


def arrow_table(direct_metadata: Any, results: Any) -> pa.Table:
    schema = pa.ipc.read_schema(pa.py_buffer(direct_metadata.arrowSchema))
    datas = [lz4.frame.decompress(b.batch) if direct_metadata.lz4Compressed else b.batch for b in results.arrowBatches]
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(d), schema) for d in datas], schema)


# ------------------------------------------------------------------------------------------------------------- sessions


def test_open_session(wire: Wire) -> None:
    answer = wire.open(
        0xA507,
        configuration={"TIMEZONE": "UTC", "use:database": "ignored"},
        initialNamespace=ttypes.TNamespace(catalogName="SPARK", schemaName="sales"),
        getInfos=[18],
    )
    assert answer.status.statusCode == STATUS.SUCCESS_STATUS
    assert answer.serverProtocolVersion == answer.sessionHandle.serverProtocolVersion == 0xA507
    assert answer.canUseMultipleCatalogs is True
    assert (answer.initialNamespace.catalogName, answer.initialNamespace.schemaName) == ("main", "sales")
    assert answer.configuration == {"TIMEZONE": "UTC"}
    assert [i.stringValue for i in answer.getInfos] == ["4.0.1"]
    assert len(answer.sessionHandle.sessionId.guid) == len(answer.sessionHandle.sessionId.secret) == 16
    opened = wire.service.opened[-1]
    assert (opened.principal, opened.catalog, opened.schema, opened.client) == (
        Principal("ann"),
        None,
        "sales",
        "test/1",
    )


def test_hive_client_gets_its_own_version(wire: Wire) -> None:
    answer = wire.open(5, configuration={"use:database": "sales"})
    assert answer.serverProtocolVersion == 5
    assert answer.sessionHandle.serverProtocolVersion is None
    assert wire.service.opened[-1].schema == "sales"


def test_refused_open_session_has_its_required_fields() -> None:
    answer = Wire().open(3)
    assert answer.status.statusCode == STATUS.ERROR_STATUS
    assert answer.status.sqlState == "08004"
    assert answer.serverProtocolVersion is not None
    assert answer.sessionHandle is None


def test_close_session(wire: Wire) -> None:
    request = ttypes.TCloseSessionReq(sessionHandle=wire.session)
    assert wire.call("CloseSession", request).status.statusCode == STATUS.SUCCESS_STATUS
    again = wire.call("CloseSession", request).status
    assert again.statusCode == STATUS.INVALID_HANDLE_STATUS
    assert "Invalid SessionHandle" in again.errorMessage


@pytest.mark.parametrize(("question", "text"), [(13, "Spark SQL"), (17, "Spark SQL"), (18, "4.0.1"), (29, "`")])
def test_get_info(wire: Wire, question: int, text: str) -> None:
    answer = wire.call("GetInfo", ttypes.TGetInfoReq(sessionHandle=wire.session, infoType=question))
    assert answer.infoValue.stringValue == text


def test_unknown_info_is_refused_with_its_required_fields(wire: Wire) -> None:
    answer = wire.call("GetInfo", ttypes.TGetInfoReq(sessionHandle=wire.session, infoType=9999))
    assert answer.status.sqlState == "0A000"
    assert "9999" in answer.status.errorMessage
    assert answer.infoValue is not None


@pytest.mark.parametrize("method", sorted(set(codec.METHODS) - set(VERBS)))
def test_other_methods_are_refused_by_name(wire: Wire, method: str) -> None:
    answer = wire.call(method, getattr(ttypes, f"T{method}Req")(sessionHandle=wire.session))
    assert answer.status.statusCode == STATUS.ERROR_STATUS
    assert answer.status.sqlState == "0A000"
    assert method in answer.status.errorMessage


def test_sequence_id_is_echoed(wire: Wire) -> None:
    wire.call("GetInfo", ttypes.TGetInfoReq(sessionHandle=wire.session, infoType=18), seqid=-12345)


# ------------------------------------------------------------------------------------------------------- direct results


def test_direct_results_have_all_four_members(wire: Wire) -> None:
    answer = wire.execute("SELECT")
    direct = answer.directResults
    assert answer.operationHandle.hasResultSet is True
    assert direct.operationStatus.operationState == STATE.FINISHED_STATE
    assert direct.operationStatus.displayMessage is None
    assert [c.columnName for c in direct.resultSetMetadata.schema.columns] == ["n", "s"]
    assert direct.resultSetMetadata.resultFormat == ttypes.TSparkRowSetType.COLUMN_BASED_SET
    assert direct.resultSetMetadata.lz4Compressed is False
    assert direct.resultSet.hasMoreRows is False
    assert direct.resultSet.results.rows == []
    assert direct.closeOperation.status.statusCode == STATUS.SUCCESS_STATUS
    assert not wire.service.operations, "closed, as the answer says"
    assert wire.service.waits == [4.0]
    assert wire.service.fetched == [(Orientation.NEXT, 100, 1000, None)]


def test_rows_that_do_not_fit_stay_open(wire: Wire) -> None:
    answer = wire.execute("SELECT", max_rows=4)
    direct = answer.directResults
    assert direct.resultSet.hasMoreRows is True
    assert direct.closeOperation is None
    first = direct.resultSet.results
    second = wire.fetch(answer.operationHandle, 4).results
    third = wire.fetch(answer.operationHandle, 4)
    assert [first.startRowOffset, second.startRowOffset, third.results.startRowOffset] == [0, 4, 8]
    assert [ints(p.columns[0]) for p in (first, second, third.results)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert third.hasMoreRows is False


def test_statement_under_way_is_reported_as_such(wire: Wire) -> None:
    answer = wire.execute("SLOW")
    direct = answer.directResults
    assert direct.operationStatus.operationState == STATE.RUNNING_STATE
    assert (direct.resultSetMetadata, direct.resultSet, direct.closeOperation) == (None, None, None)
    states = []
    for _ in range(3):
        request = ttypes.TGetOperationStatusReq(operationHandle=answer.operationHandle)
        states.append(wire.call("GetOperationStatus", request).operationState)
    assert states == [STATE.RUNNING_STATE, STATE.RUNNING_STATE, STATE.FINISHED_STATE]
    assert wire.service.waits == [4.0, 1.5, 1.5, 1.5]


def test_ddl_shows_one_empty_column(wire: Wire) -> None:
    for arrow in (False, True):
        direct = wire.execute("DDL", canReadArrowResult=arrow).directResults
        columns = direct.resultSetMetadata.schema.columns
        assert [(c.columnName, c.typeDesc.types[0].primitiveEntry.type) for c in columns] == [("Result", 7)]
        if arrow:
            assert direct.resultSet.results.arrowBatches == []
            assert pa.ipc.read_schema(pa.py_buffer(direct.resultSetMetadata.arrowSchema)).names == []
        else:
            assert direct.resultSet.results.columns[0].stringVal.values == []


def test_dml_counts(wire: Wire) -> None:
    direct = wire.execute("INSERT").directResults
    assert direct.operationStatus.numModifiedRows == 3
    assert ints(direct.resultSet.results.columns[0]) == [3]
    assert wire.execute("SELECT").directResults.operationStatus.numModifiedRows is None


def test_row_delivered_by_ddl_is_an_error_not_lost(wire: Wire) -> None:
    status = wire.execute("BROKEN").directResults.operationStatus
    assert status.operationState == STATE.ERROR_STATE
    assert "INTERNAL_ERROR" in status.displayMessage


# ---------------------------------------------------------------------------------------------------------- row formats


@pytest.mark.parametrize("compress", [False, True])
def test_arrow_batches(wire: Wire, compress: bool) -> None:
    direct = wire.execute("SELECT", canReadArrowResult=True, canDecompressLZ4Result=compress).directResults
    metadata, results = direct.resultSetMetadata, direct.resultSet.results
    assert metadata.resultFormat == ttypes.TSparkRowSetType.ARROW_BASED_SET
    assert metadata.lz4Compressed is compress
    assert results.columns is None
    assert results.rows == []
    assert sum(b.rowCount for b in results.arrowBatches) == 10
    assert arrow_table(metadata, results).to_pydict() == {"n": [r[0] for r in ROWS], "s": [r[1] for r in ROWS]}


def test_empty_arrow_result(wire: Wire) -> None:
    direct = wire.execute("EMPTY", canReadArrowResult=True, canDecompressLZ4Result=True).directResults
    assert direct.resultSet.results.arrowBatches == []
    assert direct.resultSetMetadata.lz4Compressed is True
    assert arrow_table(direct.resultSetMetadata, direct.resultSet.results).column_names == ["n", "s"]


def test_empty_columnar_result(wire: Wire) -> None:
    results = wire.execute("EMPTY").directResults.resultSet.results
    assert results.arrowBatches is None
    assert results.columns[0].i32Val.values == []
    assert results.columns[1].stringVal.values == []
    assert isinstance(results.columns[1].stringVal.nulls, bytes)


@pytest.mark.parametrize("protocol", range(0xA501, 0xA50A))
def test_no_arrow_schema_before_v5(protocol: int) -> None:
    wire = Wire()
    wire.open(protocol)
    metadata = wire.execute("SELECT", canReadArrowResult=True).directResults.resultSetMetadata
    assert metadata.resultFormat == ttypes.TSparkRowSetType.ARROW_BASED_SET
    assert (metadata.arrowSchema is not None) == (protocol >= 0xA505)


@pytest.mark.parametrize("protocol", [5, 6, 9])
def test_hive_versions_get_columns(protocol: int) -> None:
    wire = Wire()
    wire.open(protocol)
    direct = wire.execute("SELECT", canReadArrowResult=True, canDecompressLZ4Result=True).directResults
    assert direct.resultSetMetadata.resultFormat == ttypes.TSparkRowSetType.COLUMN_BASED_SET
    assert direct.resultSetMetadata.lz4Compressed is False
    assert direct.resultSet.results.arrowBatches is None


def test_null_bitmap(wire: Wire) -> None:
    text = wire.execute("SELECT").directResults.resultSet.results.columns[1].stringVal
    assert text.values == ["" if s is None else s for _, s in ROWS]
    assert text.nulls == binary.pack("<H", sum(1 << i for i in (0, 3, 6, 9)))


@pytest.mark.parametrize("kind", ["Catalogs", "Schemas", "Tables", "Columns"])
def test_metadata_calls_are_columnar_with_direct_results(wire: Wire, kind: str) -> None:
    request = getattr(ttypes, f"TGet{kind}Req")(
        sessionHandle=wire.session, getDirectResults=ttypes.TSparkGetDirectResults(maxRows=100)
    )
    answer = wire.call(f"Get{kind}", request)
    assert answer.operationHandle.operationType == getattr(ttypes.TOperationType, f"GET_{kind.upper()}")
    direct = answer.directResults
    assert direct.resultSetMetadata.resultFormat == ttypes.TSparkRowSetType.COLUMN_BASED_SET
    assert direct.resultSet is not None
    assert direct.closeOperation is not None


def test_metadata_patterns_pass_verbatim(wire: Wire) -> None:
    direct = ttypes.TSparkGetDirectResults(maxRows=100)
    request = ttypes.TGetTablesReq(
        sessionHandle=wire.session,
        catalogName="Spark",
        schemaName="de_a%",
        tableName=r"a\_b",
        tableTypes=["TABLE", "VIEW"],
        getDirectResults=direct,
    )
    wire.call("GetTables", request)
    asked = wire.service.asked[-1]
    assert (asked.kind, asked.catalog, asked.schema, asked.table) == ("tables", "main", "de_a%", r"a\_b")
    assert asked.table_types == ("TABLE", "VIEW")
    wire.call("GetColumns", ttypes.TGetColumnsReq(sessionHandle=wire.session, columnName="", getDirectResults=direct))
    assert (wire.service.asked[-1].catalog, wire.service.asked[-1].column) == (None, "")


def test_the_status_of_a_statement_under_way_is_held_for_at_most_two_seconds() -> None:
    service = FakeService(dict(SCRIPTS))
    wire = Wire(service, options=HandlerOptions())
    wire.open()
    answer = wire.execute("SLOW", direct=False)
    service.waits.clear()
    request = ttypes.TGetOperationStatusReq(operationHandle=answer.operationHandle)
    assert wire.call("GetOperationStatus", request).operationState == STATE.RUNNING_STATE
    assert service.waits == [HandlerOptions().poll_seconds]
    assert 0 < HandlerOptions().poll_seconds <= 2


def test_the_status_is_held_for_as_long_as_the_options_say(wire: Wire) -> None:
    answer = wire.execute("SLOW", direct=False)
    wire.service.waits.clear()
    wire.call("GetOperationStatus", ttypes.TGetOperationStatusReq(operationHandle=answer.operationHandle))
    assert wire.service.waits == [1.5]


def test_metadata_call_without_direct_results_waits(wire: Wire) -> None:
    answer = wire.call("GetCatalogs", ttypes.TGetCatalogsReq(sessionHandle=wire.session))
    assert answer.directResults is None
    assert wire.fetch(answer.operationHandle).results.columns[0].stringVal.values == ["main"]


# --------------------------------------------------------------------------------------------------------------- errors


def test_failed_statement_with_direct_results(wire: Wire) -> None:
    answer = wire.execute("FAIL")
    assert answer.status.statusCode == STATUS.SUCCESS_STATUS
    status = answer.directResults.operationStatus
    assert status.status.statusCode == STATUS.SUCCESS_STATUS
    assert status.operationState == STATE.ERROR_STATE
    assert status.sqlState == "22012"
    assert status.errorMessage == status.displayMessage == "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"
    assert answer.directResults.closeOperation is not None
    assert not wire.service.operations


def test_failed_asynchronous_statement_tells_by_its_status(wire: Wire) -> None:
    answer = wire.execute("SLOW FAIL", direct=False)
    assert answer.status.statusCode == STATUS.SUCCESS_STATUS
    assert wire.service.waits == [0.0]
    request = ttypes.TGetOperationStatusReq(operationHandle=answer.operationHandle)
    wire.call("GetOperationStatus", request)
    status = wire.call("GetOperationStatus", request)
    assert (status.status.statusCode, status.operationState) == (STATUS.SUCCESS_STATUS, STATE.ERROR_STATE)
    assert status.sqlState == "22012"
    assert status.displayMessage
    fetched = wire.fetch(answer.operationHandle)
    assert fetched.status.statusCode == STATUS.ERROR_STATUS


def test_failed_synchronous_statement_tells_by_its_answer(wire: Wire) -> None:
    answer = wire.execute("SLOW FAIL", direct=False, runAsync=False)
    assert answer.status.statusCode == STATUS.ERROR_STATUS
    assert answer.status.sqlState == "22012"
    assert answer.operationHandle is None
    assert not wire.service.operations


def test_synchronous_statement_is_waited_for(wire: Wire) -> None:
    answer = wire.execute("SLOW", direct=False, runAsync=False)
    assert wire.service.waits == [4.0, 1.5, 1.5, 1.5]
    assert len(ints(wire.fetch(answer.operationHandle).results.columns[0])) == 10


def test_cancelled_statement_is_no_success(wire: Wire) -> None:
    answer = wire.execute("SLOW")
    request = ttypes.TCancelOperationReq(operationHandle=answer.operationHandle)
    assert wire.call("CancelOperation", request).status.statusCode == STATUS.SUCCESS_STATUS
    poll = ttypes.TGetOperationStatusReq(operationHandle=answer.operationHandle)
    assert wire.call("GetOperationStatus", poll).operationState == STATE.CANCELED_STATE
    metadata = ttypes.TGetResultSetMetadataReq(operationHandle=answer.operationHandle)
    assert wire.call("GetResultSetMetadata", metadata).status.statusCode == STATUS.ERROR_STATUS
    assert wire.fetch(answer.operationHandle).status.sqlState == "HY008"


def test_cancelled_within_direct_results_stays_open(wire: Wire) -> None:
    direct = wire.execute("CANCELLED").directResults
    assert direct.operationStatus.operationState == STATE.CANCELED_STATE
    assert direct.closeOperation is None
    assert len(wire.service.operations) == 1


def test_unexpected_fault_is_answered_and_not_shown(wire: Wire, capsys: pytest.CaptureFixture[str]) -> None:
    answer = wire.execute("no script: a KeyError of the service")
    assert answer.status.statusCode == STATUS.ERROR_STATUS
    assert answer.status.sqlState == "XX000"
    assert "KeyError" in answer.status.errorMessage
    assert "no script" not in answer.status.errorMessage
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"GET / HTTP/1.1",
        b"\x80\x01\x00\x01\x00\x00\x00\x03foo\0\0\0\x01\0",
        codec.encode_call("GetInfo", 1, ttypes.TGetInfoReq())[:-1],
    ],
)
def test_garbage_is_answered_by_an_exception(wire: Wire, body: bytes) -> None:
    with pytest.raises(codec.ApplicationError):
        codec.decode_reply(wire.handler.handle(body, "ann", ""))


class Obliging(dict[str, Script]):
    """Scripts that have an answer to every statement."""

    def __missing__(self, statement: str) -> Script:
        return SCRIPTS["SELECT"]


def test_mutants_of_recordings_always_get_an_answer(shared: Path) -> None:
    """Whatever arrives, the handler answers with a Thrift message, and goes on serving."""
    source = random.Random(20_27)
    wire = Wire(FakeService(Obliging(SCRIPTS)))
    wire.open()
    requests = []
    for exchange in read_recordings(shared):
        call = codec.decode_call(exchange.request, Budget())
        if hasattr(call.value, "sessionHandle"):
            call.value.sessionHandle = wire.session
        requests.append(codec.encode_call(call.method, call.seqid, call.value))
    answers = exceptions = 0
    for _ in range(3_000):
        body = bytearray(source.choice(requests))
        for _ in range(source.choice((1, 1, 2, 4))):
            at = source.randrange(len(body))
            body[at : at + source.choice((0, 1, 1, 4))] = source.randbytes(source.choice((0, 1, 1, 4)))
        answer = wire.handler.handle(bytes(body), "ann", "fuzz")
        try:
            status = codec.decode_reply(answer).value.status
            assert status.sqlState != "XX000", status
            answers += 1
        except codec.ApplicationError:
            exceptions += 1
    assert answers > 200
    assert exceptions > 500
    wire.open()  # one of the mutants has closed the session
    assert wire.execute("SELECT").directResults.resultSet is not None


def test_budget_is_configurable() -> None:
    handler = ThriftHandler(FakeService(), HandlerOptions(budget=Budget(size=10)))
    with pytest.raises(codec.ApplicationError, match="exceeds the limit"):
        codec.decode_reply(handler.handle(codec.encode_call("OpenSession", 0, ttypes.TOpenSessionReq()), "a", ""))


def test_wrong_handles_get_one_answer(wire: Wire) -> None:
    answer = wire.execute("SELECT", direct=False)
    own = answer.operationHandle
    other = Wire(wire.service, "bob")
    other.session = wire.session
    identifier = own.operationId
    wrong = [
        (other, own),
        (wire, ttypes.TOperationHandle(operationId=ttypes.THandleIdentifier(guid=identifier.guid, secret=b"x" * 16))),
        (wire, ttypes.TOperationHandle(operationId=ttypes.THandleIdentifier(guid=b"x" * 16, secret=identifier.secret))),
    ]
    texts = set()
    for caller, handle in wrong:
        status = caller.fetch(handle).status
        assert status.statusCode == STATUS.INVALID_HANDLE_STATUS
        texts.add(status.errorMessage)
    assert len(texts) == 1
    assert other.execute("SELECT").status.statusCode == STATUS.INVALID_HANDLE_STATUS
    assert len(wire.fetch(own).results.columns) == 2


def test_request_without_handle_is_refused(wire: Wire) -> None:
    assert wire.fetch(None).status.statusCode == STATUS.INVALID_HANDLE_STATUS
    wire.session = None
    assert wire.execute("SELECT").status.statusCode == STATUS.INVALID_HANDLE_STATUS


def test_statement_is_required(wire: Wire) -> None:
    request = ttypes.TExecuteStatementReq(sessionHandle=wire.session)
    assert wire.call("ExecuteStatement", request).status.sqlState == "42617"


def test_sessionless_statement_is_refused(wire: Wire) -> None:
    answer = wire.execute("SELECT", statementConf=ttypes.TStatementConf(sessionless=True))
    assert answer.status.sqlState == "0A000"


# ------------------------------------------------------------------------------------------------------- requests, rows


def test_what_a_request_says_reaches_the_service(wire: Wire) -> None:
    wire.execute(
        "SELECT",
        confOverlay={"query_tags": "a:b"},
        queryTimeout=30,
        resultRowLimit=7,
        parameters=[ttypes.TSparkParameter(name="p", type="INT", value=ttypes.TSparkParameterValue(stringValue="1"))],
    )
    request = wire.service.executed[-1]
    assert request.conf_overlay == {"query_tags": "a:b"}
    assert (request.timeout_seconds, request.row_limit) == (30, 7)
    assert [(p.name, p.type, p.value) for p in request.parameters] == [("p", "INT", "1")]
    wire.execute("SELECT", resultRowLimit=0, queryTimeout=-1)
    assert (wire.service.executed[-1].row_limit, wire.service.executed[-1].timeout_seconds) == (None, 0)


def test_metadata_comes_with_every_page(wire: Wire) -> None:
    handle = wire.execute("SELECT", max_rows=2).operationHandle
    for _ in range(6):
        page = wire.fetch(handle, 2)
        assert page.resultSetMetadata.resultFormat == ttypes.TSparkRowSetType.COLUMN_BASED_SET
        assert page.resultSetMetadata.lz4Compressed is False
    wire.open(7)  # Hive's clients know no such field
    hive = wire.execute("SELECT", direct=False).operationHandle
    assert wire.fetch(hive, 2).resultSetMetadata is None


def test_past_the_end_is_an_empty_page(wire: Wire) -> None:
    handle = wire.execute("SELECT", direct=False).operationHandle
    wire.fetch(handle)
    page = wire.fetch(handle)
    assert (page.status.statusCode, page.hasMoreRows, page.results.startRowOffset) == (STATUS.SUCCESS_STATUS, False, 10)
    assert ints(page.results.columns[0]) == []


def test_orientations(wire: Wire) -> None:
    handle = wire.execute("SELECT", direct=False).operationHandle
    first = ttypes.TFetchOrientation.FETCH_FIRST
    assert ints(wire.fetch(handle, 3).results.columns[0]) == [0, 1, 2]
    assert ints(wire.fetch(handle, 3, orientation=first).results.columns[0]) == [0, 1, 2]
    assert ints(wire.fetch(handle, 3, startRowOffset=8).results.columns[0]) == [8, 9]
    assert [(f[0], f[3]) for f in wire.service.fetched] == [
        (Orientation.NEXT, None),
        (Orientation.FIRST, None),
        (Orientation.NEXT, 8),
    ]
    assert "77" in wire.fetch(handle, 3, orientation=77).status.errorMessage


@pytest.mark.parametrize("asked", [None, 0, -1])
def test_page_without_row_count(wire: Wire, asked: int | None) -> None:
    handle = wire.execute("SELECT", direct=False).operationHandle
    assert len(ints(wire.fetch(handle, asked).results.columns[0])) == 10  # type: ignore[arg-type]


def test_log_is_a_column_of_lines(wire: Wire) -> None:
    handle = wire.execute("SELECT", direct=False).operationHandle
    page = wire.fetch(handle, fetchType=1)
    assert page.results.columns[0].stringVal.values == ["INFO  : first", "INFO  : second"]
    assert page.hasMoreRows is False
    assert len(ints(wire.fetch(handle).results.columns[0])) == 10, "the log moves no cursor"
    unknown = ttypes.TOperationHandle(operationId=ttypes.THandleIdentifier(guid=b"x" * 16, secret=b"x" * 16))
    assert wire.fetch(unknown, fetchType=1).status.statusCode == STATUS.INVALID_HANDLE_STATUS


def test_query_ids_and_client_info(wire: Wire) -> None:
    handle = wire.execute("SELECT", direct=False).operationHandle
    known = wire.call("GetQueryId", ttypes.TGetQueryIdReq(operationHandle=handle))
    assert known.queryId == str(uuid.UUID(bytes=handle.operationId.guid))
    unknown = ttypes.TOperationHandle(operationId=ttypes.THandleIdentifier(guid=b"x" * 16, secret=b"x" * 16))
    assert wire.call("GetQueryId", ttypes.TGetQueryIdReq(operationHandle=unknown)).queryId == ""
    told = ttypes.TSetClientInfoReq(sessionHandle=wire.session, configuration={"ApplicationName": "x" * 5000})
    assert wire.call("SetClientInfo", told).status.statusCode == STATUS.SUCCESS_STATUS
    told.sessionHandle = None
    assert wire.call("SetClientInfo", told).status.statusCode == STATUS.INVALID_HANDLE_STATUS


def test_result_metadata_call(wire: Wire) -> None:
    handle = wire.execute("SELECT", direct=False, canReadArrowResult=True).operationHandle
    answer = wire.call("GetResultSetMetadata", ttypes.TGetResultSetMetadataReq(operationHandle=handle))
    assert answer.status.statusCode == STATUS.SUCCESS_STATUS
    assert answer.resultFormat == ttypes.TSparkRowSetType.ARROW_BASED_SET
    assert answer.isStagingOperation is False


def test_close_operation_twice(wire: Wire) -> None:
    handle = wire.execute("SELECT", direct=False).operationHandle
    for _ in range(2):
        answer = wire.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=handle))
        assert answer.status.statusCode == STATUS.SUCCESS_STATUS
    assert not wire.service.operations


def test_error_of_the_service_keeps_its_class(wire: Wire) -> None:
    class Refusing(FakeService):
        def close_session(self, principal: Principal, session: Any) -> None:
            raise ProtocolError("INVALID_SESSION_HANDLE", "Invalid SessionHandle: gone.")

    refusing = Wire(Refusing(dict(SCRIPTS)))
    refusing.open()
    answer = refusing.call("CloseSession", ttypes.TCloseSessionReq(sessionHandle=refusing.session))
    assert (answer.status.statusCode, answer.status.sqlState) == (STATUS.INVALID_HANDLE_STATUS, "08003")
