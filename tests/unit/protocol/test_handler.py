"""The rules that clients impose on answers, one test each, over the scripted service."""

from __future__ import annotations

import struct as binary
import uuid
from typing import Any

import pyarrow as pa
import pytest

from gateway.errors import ProtocolError
from gateway.protocol import codec
from gateway.protocol.handler import VERBS, HandlerOptions
from gateway.service.api import Orientation, Principal
from gateway.thrift_gen.TCLIService import ttypes
from tests.unit.protocol.calls import ROWS, SCRIPTS, STATE, STATUS, Wire, arrow_table, ints
from tests.unit.protocol.fake import FakeService


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
