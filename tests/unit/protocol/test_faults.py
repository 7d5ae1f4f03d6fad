"""Calls that fail, that are cancelled or make no sense: each has its answer, and nothing is left behind."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gateway.protocol import codec
from gateway.protocol.handler import HandlerOptions, ThriftHandler
from gateway.protocol.reader import Budget
from gateway.thrift_gen.TCLIService import ttypes
from tests.unit.protocol.calls import SCRIPTS, STATE, STATUS, Wire, ints
from tests.unit.protocol.fake import FakeService, Script
from tests.unit.protocol.recordings import read_recordings


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
