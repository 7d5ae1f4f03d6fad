"""Our answers to recorded requests against the recorded answers of a real server: the same fields, the same values.

Each recorded request goes to the handler over a service that is scripted with the recorded rows. The two answers are
compared field by field; what differs is listed below, each with its reason, and every entry must still be needed.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lz4.frame
import pyarrow as pa
import pytest

from gateway.errors import UserError
from gateway.protocol import codec
from gateway.protocol.handler import ThriftHandler
from gateway.protocol.reader import Budget
from gateway.service.api import Principal
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    DataType,
    StructField,
    array,
    decimal,
    map_of,
    struct,
)
from gateway.thrift_gen.TCLIService import ttypes
from tests.unit.protocol.fake import FakeService, Script
from tests.unit.protocol.recordings import Exchange, read_recordings

USER = "recorded"
UNKNOWN_HANDLE = "no"  # a closed operation: theirs is an error, ours a success

DIFFERENCES: dict[str, str] = {
    # ours only
    "operationStatus.hasResultSet": "Hive clients read it; the recorded server leaves it out of direct results",
    "operationStatus.operationStarted": "a fact that we have and that beeline shows",
    "resultSetMetadata.lz4Compressed": "set always: the Python client takes null for compressed (metadata calls)",
    "resultSetMetadata.cacheLookupResult": "one code for all results; theirs is left out of metadata calls",
    "resultSetMetadata.isStagingOperation": "one code for all results; theirs is left out of metadata calls",
    # theirs only
    "resultSetMetadata.uncompressedBytes": "read by no client; would need a pass over a result that is not fetched yet",
    "resultSetMetadata.compressedBytes": "read by no client; would need a pass over a result that is not fetched yet",
    # values
    "serverProtocolVersion=": "theirs stops at V8, ours answers V9 to those who ask for it",
    "sessionHandle.serverProtocolVersion=": "follows the negotiated version",
    "initialNamespace.catalogName=": "JDBC asks for `SPARK`, the default: theirs echoes it, ours names the catalog",
    "resultSetMetadata.arrowSchema=": "same fields, compared apart; JSON of nullability and key order may differ",
    "resultSet.results.columns[].stringVal.nulls=": "theirs cuts a bitmap without nulls to one byte",
    "resultSet.results.arrowBatches[]#=": "theirs sends one batch per task of the cluster",
    "resultSet.results.arrowBatches[].rowCount=": "theirs sends one batch per task of the cluster",
    "resultSet.results.arrowBatches[].batch=": "same rows, compared apart; compression differs",
    "status.statusCode=": "CloseOperation on a closed handle: theirs refuses, ours succeeds, as clients need",
    "status.infoMessages": "of that refusal",
    "status.sqlState": "of that refusal",
    "status.errorCode": "of that refusal",
    "status.errorMessage": "of that refusal",
    "status.displayMessage": "of that refusal",
}

BY_JSON: dict[str, DataType] = {
    t.json(): t
    for t in (
        VOID,
        BOOLEAN,
        TINYINT,
        SMALLINT,
        INT,
        BIGINT,
        FLOAT,
        DOUBLE,
        STRING,
        BINARY,
        DATE,
        TIMESTAMP,
        TIMESTAMP_NTZ,
    )
}
BY_ID = {3: INT, 4: BIGINT, 6: DOUBLE, 7: STRING, 8: TIMESTAMP, 9: BINARY, 16: VOID}


def recorded_type(name: Any) -> DataType:
    """Our type for Spark's JSON of a type; VARIANT travels as text."""
    if isinstance(name, dict):
        if name["type"] == "array":
            return array(recorded_type(name["elementType"]), name["containsNull"])
        if name["type"] == "map":
            key, value = recorded_type(name["keyType"]), recorded_type(name["valueType"])
            return map_of(key, value, name["valueContainsNull"])
        return struct(*(StructField(f["name"], recorded_type(f["type"]), f["nullable"]) for f in name["fields"]))
    if name.startswith("decimal("):
        precision, scale = name[8:-1].split(",")
        return decimal(int(precision), int(scale))
    return STRING if name == "variant" else BY_JSON[name]


def arrow_rows(direct: Any) -> pa.Table:
    """The rows of an Arrow answer."""
    metadata = direct.resultSetMetadata
    schema = pa.ipc.read_schema(pa.py_buffer(metadata.arrowSchema))
    batches = [
        pa.ipc.read_record_batch(
            pa.py_buffer(lz4.frame.decompress(b.batch) if metadata.lz4Compressed else b.batch), schema
        )
        for b in direct.resultSet.results.arrowBatches
    ]
    return pa.Table.from_batches(batches, schema)


def column_values(column: Any) -> list[object]:
    """Values of a TColumn, None where its bitmap says so."""
    one = next(v for v in (getattr(column, name) for name in column.__slots__) if v is not None)
    bits = one.nulls
    return [None if i // 8 < len(bits) and bits[i // 8] >> (i % 8) & 1 else value for i, value in enumerate(one.values)]


def instant(text: Any) -> datetime | None:
    """A timestamp of a columnar page; the recorded sessions are in UTC."""
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


def script_of(direct: Any) -> Script:
    """A script whose rows are the recorded ones."""
    metadata = direct.resultSetMetadata
    described = metadata.schema.columns
    if metadata.arrowSchema is not None:
        table = arrow_rows(direct)
        if not table.schema.names:
            return Script(is_query=False)
        types = [recorded_type(json.loads(f.metadata[b"Spark:DataType:JsonType"])) for f in table.schema]
        rows = [tuple(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]
    else:
        types = [BY_ID[c.typeDesc.types[0].primitiveEntry.type] for c in described]
        columns = [column_values(c) for c in direct.resultSet.results.columns]
        columns = [list(map(instant, c)) if t == TIMESTAMP else c for c, t in zip(columns, types, strict=True)]
        rows = list(zip(*columns, strict=True))
    fields = [StructField(c.columnName, t, True, c.comment or None) for c, t in zip(described, types, strict=True)]
    return Script(struct(*fields), rows, modified_rows=direct.operationStatus.numModifiedRows)


def shape(value: Any, path: str = "") -> dict[str, object]:
    """Paths of the fields that are set, with their values; elements of lists share a path."""
    if hasattr(value, "thrift_spec"):
        found: dict[str, object] = {}
        for name in value.__slots__:
            inner = getattr(value, name)
            if inner is not None:
                found.update(shape(inner, f"{path}.{name}" if path else name))
        return found or {path: "empty"}
    if isinstance(value, list) and value and hasattr(value[0], "thrift_spec"):
        found = {f"{path}[]#": len(value)}
        for element in value:
            for inner_path, inner in shape(element, f"{path}[]").items():
                found.setdefault(inner_path, []).append(inner)  # type: ignore[attr-defined]
        return found
    return {path: value}


# Identifiers are ours to choose.
_IDENTIFIERS = ("guid", "secret")


def differences(ours: Any, theirs: Any) -> set[str]:
    """Paths that one side has alone, and ``path=`` where values differ; the prefix `directResults` is dropped."""
    left, right = shape(ours), shape(theirs)
    found = set(left) ^ set(right)
    found |= {f"{p}=" for p in set(left) & set(right) if left[p] != right[p] and not p.endswith(_IDENTIFIERS)}
    return {p.removeprefix("directResults.") for p in found}


class Replay:
    """A handler over a scripted service, and the handles that its sessions have."""

    def __init__(self) -> None:
        self.service = FakeService()
        self.handler = ThriftHandler(self.service)

    def answer(self, exchange: Exchange) -> Any:
        """Our answer to a recorded request whose session is open, in place of the recorded one."""
        request = codec.decode_call(exchange.request, Budget())
        if getattr(request.value, "sessionHandle", None) is not None:
            request.value.sessionHandle = self.session()
        body = codec.encode_call(request.method, request.seqid, request.value)
        reply = codec.decode_reply(self.handler.handle(body, USER, "test"))
        assert (reply.method, reply.seqid) == (request.method, request.seqid)
        return reply.value

    def session(self) -> Any:
        request = ttypes.TOpenSessionReq(client_protocol=None, client_protocol_i64=0xA508)
        body = self.handler.handle(codec.encode_call("OpenSession", 0, request), USER, "test")
        return codec.decode_reply(body).value.sessionHandle


def test_answers_have_the_recorded_shape(shared: Path) -> None:
    replay = Replay()
    used: set[str] = set()
    compared = 0
    for exchange in read_recordings(shared):
        recorded = codec.decode_reply(exchange.response).value
        request = codec.decode_call(exchange.request, Budget()).value
        direct = getattr(recorded, "directResults", None)
        if exchange.method == "ExecuteStatement":
            if direct is None:
                continue  # the failed statement: see the next test
            replay.service.scripts[request.statement] = script_of(direct)
        elif direct is not None:
            replay.service.scripts[exchange.method.removeprefix("Get").lower()] = script_of(direct)
        ours = replay.answer(exchange)
        found = differences(ours, recorded)
        unlisted = found - set(DIFFERENCES)
        assert not unlisted, f"{exchange.suite}: {exchange.method} {request}: {sorted(unlisted)}"
        used |= found
        compared += 1
        if direct is not None and direct.resultSetMetadata.arrowSchema is not None:
            same_arrow(ours.directResults, direct)
    assert compared > 300
    assert used == set(DIFFERENCES), "listed, but no longer seen"
    assert not replay.service.operations, "direct results close their operations"


def same_arrow(ours: Any, theirs: Any) -> None:
    """The same names, types, SQL names and rows."""
    left, right = arrow_rows(ours), arrow_rows(theirs)
    assert left.schema.names == right.schema.names
    for a, b in zip(left.schema, right.schema, strict=True):
        if b.metadata[b"Spark:DataType:SqlName"] != b"VARIANT":
            assert dict(a.metadata) == dict(b.metadata)
        assert a.type == b.type, a.name
    assert left.to_pylist() == right.to_pylist()


def test_failed_statement_differs_in_form_only(shared: Path) -> None:
    """Theirs: TStatus ERROR without handle. Ours: an operation in ERROR_STATE (see the handler's docstring)."""
    failures = [
        e
        for e in read_recordings(shared)
        if e.method == "ExecuteStatement" and codec.decode_reply(e.response).value.directResults is None
    ]
    assert failures
    replay = Replay()
    for exchange in failures:
        recorded = codec.decode_reply(exchange.response).value
        statement = codec.decode_call(exchange.request, Budget()).value.statement
        error = UserError("PARSE_SYNTAX_ERROR", "Syntax error at or near 'INSER'.")
        replay.service.scripts[statement] = Script(error=error)
        ours = replay.answer(exchange)
        status = ours.directResults.operationStatus
        assert recorded.status.statusCode == ttypes.TStatusCode.ERROR_STATUS
        assert ours.status.statusCode == ttypes.TStatusCode.SUCCESS_STATUS
        assert status.operationState == ttypes.TOperationState.ERROR_STATE
        assert status.sqlState == recorded.status.sqlState == "42601"
        assert recorded.status.displayMessage.lstrip().startswith("[PARSE_SYNTAX_ERROR] ")
        assert status.displayMessage == status.errorMessage == error.text()


def test_shapes_tell_differences_apart() -> None:
    ours = ttypes.TCloseSessionResp(status=ttypes.TStatus(statusCode=0))
    theirs = ttypes.TCloseSessionResp(status=ttypes.TStatus(statusCode=3, sqlState="08003"))
    assert differences(ours, theirs) == {"status.statusCode=", "status.sqlState"}
    assert not differences(ours, ours)


def test_recorded_sessions_are_those_of_one_user(shared: Path) -> None:
    replay = Replay()
    opened = [e for e in read_recordings(shared) if e.method == "OpenSession"]
    for exchange in opened:
        replay.answer(exchange)
    assert len(replay.service.opened) == len(opened) >= 30
    assert {request.principal for request in replay.service.opened} == {Principal(USER)}
    assert {request.catalog for request in replay.service.opened} <= {None, "main", "hive_metastore", "samples"}


@pytest.mark.parametrize("name", sorted(BY_JSON))
def test_recorded_types_are_known(name: str) -> None:
    assert recorded_type(name).json() == name
