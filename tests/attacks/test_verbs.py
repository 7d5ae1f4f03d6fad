"""Numbers, handles and owners that no client of good will sends, in all calls that take them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from gateway.protocol import codec
from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import ENDLESS, answer, outcome
from tests.live.gateway import Server

NUMBERS_16 = (0, 1, -1, 2, 2**15 - 1, -(2**15))
NUMBERS_32 = (0, 1, -1, 2, 100_001, 2**31 - 1, -(2**31))
NUMBERS_64 = (*NUMBERS_32, 2**31, 2**32 + 1, 2**53, 2**63 - 1, -(2**63))
ROWS = 1000


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.thrift_url, user="alice").open() as one:
        yield one


def begun(client: Client, text: str = f"SELECT id FROM range({ROWS})", **fields: Any) -> Any:
    """The answer to a statement."""
    return client.call("ExecuteStatement", ttypes.TExecuteStatementReq(client._session, text, **fields))


def ids(row_set: Any) -> list[int]:
    (column,) = row_set.columns
    return codec_values(column.i64Val.values)


def codec_values(values: Any) -> list[int]:
    data = bytes(values.data)
    return [int.from_bytes(data[i : i + 8], "big", signed=True) for i in range(0, len(data), 8)]


def refused_or(call: Callable[[], Any]) -> Any:
    """The answer; None for an error, which is one of ours and says what is wrong."""
    began = time.monotonic()
    try:
        return call()
    except (RemoteError, codec.ApplicationError) as error:
        assert not any(word in str(error) for word in ("INTERNAL", "Traceback")), error
        assert len(str(error)) < 5000
        return None
    finally:
        assert time.monotonic() - began < 30


@pytest.mark.parametrize("orientation", [*range(-1, 8), 2**31 - 1, -(2**31)])
def test_fetches_give_rows_of_the_result_in_order(client: Client, orientation: int) -> None:
    for field in ("maxRows", "maxBytes", "startRowOffset", "fetchType"):
        for number in NUMBERS_16 if field == "fetchType" else NUMBERS_64:
            operation = begun(client).operationHandle
            request = {"orientation": orientation, "maxRows": 10, field: number}
            fetch = ttypes.TFetchResultsReq(operation, **request)
            page = refused_or(partial(client.call, "FetchResults", fetch))
            if page is not None and field != "fetchType":
                got = ids(page.results)
                assert got == list(range(got[0], got[0] + len(got))) if got else True
                assert all(0 <= n < ROWS for n in got)
            client.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=operation))


@pytest.mark.parametrize("number", NUMBERS_64)
def test_limits_of_statements(client: Client, number: int) -> None:
    for make in (
        lambda: {"queryTimeout": number},
        lambda: {"resultRowLimit": number},
        lambda: {"getDirectResults": ttypes.TSparkGetDirectResults(maxRows=number)},
        lambda: {"getDirectResults": ttypes.TSparkGetDirectResults(maxRows=10, maxBytes=number)},
        lambda: {"maxBytesPerFile": number},
        lambda: {"parameters": [ttypes.TSparkParameter(ordinal=min(2**31 - 1, max(-(2**31), number)), name=None)]},
    ):
        found = refused_or(partial(begun, client, **make()))
        direct = found and found.directResults
        if direct and direct.resultSet:
            got = ids(direct.resultSet.results)
            limited = "resultRowLimit" in make() and number > 0
            assert got == list(range(len(got)))
            assert limited or len(got) in (10, ROWS) or 0 < number < ROWS


@pytest.mark.parametrize("number", NUMBERS_64)
def test_other_numbers(client: Client, server: Server, number: int) -> None:
    small = min(2**31 - 1, max(-(2**31), number))
    refused_or(partial(client.call, "GetInfo", ttypes.TGetInfoReq(client._session, small)))
    for versions in ({"client_protocol": small}, {"client_protocol_i64": number}):
        other = Client(server.thrift_url, user="alice")
        opened = refused_or(partial(other.call, "OpenSession", ttypes.TOpenSessionReq(**versions)))
        if opened is not None:
            other._session = opened.sessionHandle
        other.close()
    assert answer(client, "SELECT 1 AS x") == [{"x": 1}]


def test_a_page_is_no_larger_than_pages_are(client: Client) -> None:
    limits = ttypes.TSparkGetDirectResults(maxRows=2**63 - 1, maxBytes=2**63 - 1)
    request = ttypes.TExecuteStatementReq(
        client._session, "SELECT id, repeat('x', 2000) AS x FROM range(20000)", getDirectResults=limits
    )
    _, body = client._connection.post(codec.encode_call("ExecuteStatement", 0, request))
    assert len(body) < 12 << 20


def requests(session: Any, operation: Any) -> Iterator[tuple[str, Any]]:
    """A call of every method that takes a handle."""
    for method in codec.METHODS:
        cls = getattr(ttypes, f"T{method}Req")
        names = {entry[2] for entry in cls.thrift_spec if entry is not None}
        handles = {k: v for k, v in {"sessionHandle": session, "operationHandle": operation}.items() if k in names}
        rest: dict[str, Any] = {"statement": "SELECT 1"} if method == "ExecuteStatement" else {}
        if "infoType" in names:
            rest = {"infoType": 17}
        if handles:
            yield method, cls(**handles, **rest)


def refuses(client: Client, method: str, request: Any) -> None:
    """A call with a handle that is not this caller's tells nothing of it."""
    if method == "GetQueryId":  # its answer has no place for an error
        assert client.call(method, request).queryId == ""
        return
    with pytest.raises((RemoteError, codec.ApplicationError), match=r"INVALID_|not supported"):
        client.call(method, request)


def test_handles_are_good_for_their_owner_alone_and_until_they_are_closed(server: Server) -> None:
    with Client(server.thrift_url, user="alice").open() as alice, Client(server.thrift_url, user="bob").open() as bob:
        mine = Client(server.thrift_url, user="alice").open()
        operation = begun(mine, ENDLESS, runAsync=True).operationHandle
        for method, request in requests(mine._session, operation):
            if method == "CloseOperation":  # says yes, does nothing
                bob.call(method, request)
                continue
            refuses(bob, method, request)
        told = mine.call("GetOperationStatus", ttypes.TGetOperationStatusReq(operationHandle=operation))
        assert told.operationState in (ttypes.TOperationState.PENDING_STATE, ttypes.TOperationState.RUNNING_STATE)
        session = mine._session
        mine.close()
        for method, request in requests(session, operation):
            if method not in ("CloseOperation", "CancelOperation"):  # of what was closed a moment ago: without effect
                refuses(alice, method, request)
        assert answer(alice, "SELECT 1 AS x") == [{"x": 1}]


def test_guessed_handles(client: Client) -> None:
    operation = begun(client).operationHandle
    identifier = operation.operationId
    known = int.from_bytes(identifier.guid, "big")
    for turn in range(500):
        near = (known + turn + 1 if turn % 2 else known ^ 1 << turn % 128) % 2**128
        for guid, secret in ((near.to_bytes(16, "big"), identifier.secret), (identifier.guid, os.urandom(16))):
            wrong = ttypes.TOperationHandle(ttypes.THandleIdentifier(guid=guid, secret=secret), 0, True)
            with pytest.raises(RemoteError, match="INVALID_OPERATION_HANDLE"):
                client.call("GetOperationStatus", ttypes.TGetOperationStatusReq(operationHandle=wrong))


ODD_PARAMETERS = [
    ("STRING", "x" * 3_000_000), ("INT", " 1 "), ("INT", "+1"), ("INT", "0x10"), ("INT", "1_000"), ("INT", "٣"), ("INT", "1e3"),
    ("BIGINT", "9" * 4000), ("DOUBLE", "1e999999"), ("DOUBLE", "NaN"), ("FLOAT", "Infinity"), ("DECIMAL(38,38)", "1"),
    ("DECIMAL(0,0)", "1"), ("DECIMAL(99,1)", "1"), ("DECIMAL(5,-2)", "1"), ("DECIMAL", "1e400"), ("BOOLEAN", "TRUE "),
    ("DATE", "99999-99-99"), ("DATE", "-0001-01-01"), ("TIMESTAMP", "+294247-01-10"), ("TIMESTAMP", "x" * 100_000),
    ("INTERVAL DAY", "1"), ("INTERVAL YEAR TO MONTH", "9" * 500), ("BINARY", "zz"), ("ARRAY<INT>", "[1]"), ("ARRAY", None),
    ("MAP", None), ("STRUCT<a INT>", "{}"), ("VOID", "x"), ("NULL", "x"), ("", "x"), (None, "x"), ("INT" * 30_000, "1"),
    ("ARRAY<" * 2000 + "INT" + ">" * 2000, "1"), ("STRING", None), ("VARIANT", "1"), ("CHAR(0)", "x"), ("VARCHAR(1)", "xy"),
    ("INT\0", "1"), ("\x1b[31mINT", "1"), ("STRING", "\0\ud7ff\U0010ffff"), ("TIMESTAMP_NTZ", "2020-02-30 00:00:00"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ODD_PARAMETERS)))
def test_odd_parameters_are_values_or_errors(client: Client, number: int) -> None:
    kind, text = ODD_PARAMETERS[number]
    value = None if text is None else ttypes.TSparkParameterValue(stringValue=text)
    for name in (None, "p", "P" * 100_000, "a b", "1", ""):
        marker = "?" if not name else f":{name}" if name == "p" else ":p"
        parameter = ttypes.TSparkParameter(name=name, value=value, type=kind)
        limits = ttypes.TSparkGetDirectResults(maxRows=10)
        fields = {"parameters": [parameter], "getDirectResults": limits}
        found = refused_or(partial(begun, client, f"SELECT {marker} AS x", **fields))
        status = found and found.directResults.operationStatus
        if status and status.errorMessage:
            assert "INTERNAL" not in status.errorMessage and len(status.errorMessage) < 10_000, status.errorMessage


def test_a_parameter_has_one_value(client: Client) -> None:
    values = [ttypes.TSparkParameterValue(stringValue=text) for text in ("1", "2")]
    for other in ("p", "P"):
        both = [
            ttypes.TSparkParameter(name=name, type="INT", value=value)
            for name, value in zip(("p", other), values, strict=True)
        ]
        found = outcome(client, "SELECT :p AS x", parameters=both)
        assert isinstance(found, RemoteError) and found.sqlstate == "22023"
        assert answer(client, "SELECT :p AS x", parameters=[both[0], both[0]]) == [{"x": 1}]


def test_deep_and_wide_parameters(client: Client) -> None:
    def nested(depth: int) -> Any:
        inner = ttypes.TSparkParameterValueArg(type="INT", value="1")
        for _ in range(depth):
            inner = ttypes.TSparkParameterValueArg(type="ARRAY", arguments=[inner])
        return ttypes.TSparkParameter(name="p", type="ARRAY", arguments=[inner])

    wide = [ttypes.TSparkParameterValueArg(type="INT", value="1")] * 15_000
    for parameter in (*map(nested, (1, 20, 60)), ttypes.TSparkParameter(name="p", type="ARRAY", arguments=wide)):
        refused_or(partial(begun, client, "SELECT :p AS x", parameters=[parameter]))
    assert answer(client, "SELECT 1 AS x") == [{"x": 1}]
