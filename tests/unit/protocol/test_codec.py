"""The codec: round trips, budgets, damage, and agreement with the Thrift library."""

import random
import struct
import time
import tracemalloc
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from gateway.protocol import codec
from gateway.protocol.codec import BadCallError, Fault
from gateway.protocol.reader import Budget, MalformedError, RawValues, Reader
from gateway.protocol.spec import FIXED, LIST, MAP, SET, STRING, STRUCT, Plan, plan_of
from gateway.protocol.writer import Encoded, Spliced
from gateway.thrift_gen.TCLIService import ttypes
from tests.unit.protocol.recordings import read_recordings
from tests.unit.protocol.replies import encode_reply

BUDGET = Budget()
CLASSES = [value for value in vars(ttypes).values() if isinstance(value, type) and hasattr(value, "thrift_spec")]
STRUCTS = [cls for cls in CLASSES if cls.thrift_spec]

_SCALARS: dict[int, st.SearchStrategy[Any]] = {
    2: st.booleans(),
    3: st.integers(-(2**7), 2**7 - 1),
    6: st.integers(-(2**15), 2**15 - 1),
    8: st.integers(-(2**31), 2**31 - 1),
    10: st.integers(-(2**63), 2**63 - 1),
    4: st.floats(allow_nan=False),
}


def values(ttype: int, arg: Any, depth: int) -> st.SearchStrategy[Any]:
    """Values of a Thrift type."""
    if ttype == STRING:
        return st.text(st.characters(codec="utf-8"), max_size=20) if arg else st.binary(max_size=20)
    if ttype == STRUCT:
        return structs(arg, depth + 1)
    if ttype in (LIST, SET):
        return st.lists(values(arg[0], arg[1], depth + 1), max_size=3 if depth < 3 else 0)
    if ttype == MAP:
        return st.dictionaries(values(arg[0], arg[1], depth), values(arg[2], arg[3], depth + 1), max_size=3)
    return _SCALARS[ttype]


@st.composite
def structs(draw: st.DrawFn, plan: Plan, depth: int = 0) -> Any:
    """Instances with some of their fields set."""
    instance = plan.cls(*plan.nones)
    for field in plan.fields.values():
        if (depth < 4 or field.ttype in FIXED) and draw(st.booleans()):
            setattr(instance, field.name, draw(values(field.ttype, field.arg, depth)))
    return instance


def decode_struct(cls: type[Any], data: bytes) -> Any:
    """One struct without message header."""
    return Reader(data, BUDGET).struct(plan_of(cls))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_struct_round_trip(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(STRUCTS))
    value = data.draw(structs(plan_of(cls)))
    encoded = codec.encode_struct(value)
    assert decode_struct(cls, encoded) == value
    assert codec.encode_struct(decode_struct(cls, encoded)) == encoded


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_bytes_are_those_of_the_thrift_library(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(STRUCTS))
    value = data.draw(structs(plan_of(cls)))
    theirs = TMemoryBuffer()
    value.write(TBinaryProtocol(theirs))
    encoded = codec.encode_struct(value)
    assert encoded == theirs.getvalue()
    back = cls(*plan_of(cls).nones)
    back.read(TBinaryProtocol(TMemoryBuffer(encoded)))
    assert back == value


def test_every_class_has_a_plan() -> None:
    assert len(STRUCTS) >= 90
    for cls in STRUCTS:
        assert len(plan_of(cls).fields) == len([e for e in cls.thrift_spec if e])


def test_recordings_round_trip_byte_for_byte(shared: Path) -> None:
    exchanges = read_recordings(shared)
    assert len(exchanges) >= 300
    unknown = 0
    for exchange in exchanges:
        call = codec.decode_call(exchange.request, BUDGET, keep_unknown=True)
        assert call.method == exchange.method
        assert codec.encode_call(call.method, call.seqid, call.value, call.extras) == exchange.request
        reply = codec.decode_reply(exchange.response, keep_unknown=True)
        assert encode_reply(reply.method, reply.seqid, reply.value, reply.extras) == exchange.response
        unknown += sum(map(len, (reply.extras or {}).values()))
    assert unknown > 0, "the recordings hold internal fields of the server, which are kept"


def test_recordings_decode_the_same_without_the_unknown_fields(shared: Path) -> None:
    for exchange in read_recordings(shared):
        assert (
            codec.decode_reply(exchange.response).value
            == codec.decode_reply(exchange.response, keep_unknown=True).value
        )


def message(method: bytes, fields: bytes, *, word: int = 0x80010001, seqid: int = 7) -> bytes:
    """A call whose request struct has the given bytes as fields."""
    return struct.pack(">Ii", word, len(method)) + method + struct.pack(">i", seqid) + b"\x0c\0\1" + fields + b"\0\0"


def refused(body: bytes, budget: Budget = BUDGET) -> BadCallError:
    with pytest.raises(BadCallError) as caught:
        codec.decode_call(body, budget)
    return caught.value


FLOOD = 5_000_000
FLOODS = {
    "list of empty structs in a known field": b"\x0f\x05\x08\x0c" + struct.pack(">i", FLOOD) + bytes(FLOOD),
    "list of empty structs in an unknown field": b"\x0f\x0f\x08\x0c" + struct.pack(">i", FLOOD) + bytes(FLOOD),
    "map of empty texts": b"\x0d\0\3\x0b\x0b" + struct.pack(">i", FLOOD // 8) + bytes(FLOOD),
    "unknown fields that are empty structs": b"\x0c\x0f\x08\x00" * (FLOOD // 4),
    "lists in lists": b"\x0f\x0f\x08\x0f" + struct.pack(">i", FLOOD // 5) + b"\x02\0\0\0\0" * (FLOOD // 5),
    "sets of maps": b"\x0e\x0f\x08\x0d" + struct.pack(">i", FLOOD // 6) + bytes(FLOOD),
    "known scalar fields again and again": b"\x02\0\4\1" * (FLOOD // 4),
}


@pytest.mark.parametrize("name", FLOODS)
def test_floods_are_refused_before_they_cost(name: str) -> None:
    body = message(b"ExecuteStatement", FLOODS[name])
    assert len(body) > 4_000_000
    start = time.process_time()
    error = refused(body)
    spent = time.process_time() - start
    assert error.fault is Fault.PROTOCOL_ERROR
    assert "too many elements" in error.text
    assert spent < 0.7  # CPU time, so a busy machine does not matter; without budgets it is 1.5 s and more


@pytest.mark.parametrize("size", [2**31 - 1, -1, -(2**31), 1_000_000])
@pytest.mark.parametrize(
    "head",
    [b"\x0b\0\2", b"\x0b\x0f\x08", b"\x0d\0\3\x0b\x0b", b"\x0f\x05\x08\x0c", b"\x0f\x0f\x08\x03", b"\x0e\x0f\x08\x0a"],
    ids=["text", "unknown text", "map", "list of structs", "unknown list of bytes", "unknown set of i64"],
)
def test_declared_sizes_allocate_nothing(head: bytes, size: int) -> None:
    body = message(b"ExecuteStatement", head + struct.pack(">i", size) + b"abcdefgh")
    tracemalloc.start()
    try:
        error = refused(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.fault is Fault.PROTOCOL_ERROR
    assert peak < 1_000_000


@pytest.mark.parametrize(
    "unit", [b"\x0c\x0f\x08", b"\x0c\0\1"], ids=["unknown structs in structs", "known struct, then wrong types"]
)
def test_depth_is_limited(unit: bytes) -> None:
    assert "nesting" in refused(message(b"ExecuteStatement", unit * 100_000)).text


def test_depth_of_lists_is_limited() -> None:
    body = message(b"ExecuteStatement", b"\x0f\x0f\x08" + b"\x0f\0\0\0\1" * 100_000)
    assert "nesting" in refused(body).text


def test_recursive_parameter_depth_is_limited() -> None:
    argument = ttypes.TSparkParameterValueArg(type="INT", value="1")
    for _ in range(80):
        argument = ttypes.TSparkParameterValueArg(type="ARRAY", arguments=[argument])
    request = ttypes.TExecuteStatementReq(parameters=[ttypes.TSparkParameter(type="ARRAY", arguments=[argument])])
    assert "nesting" in refused(codec.encode_call("ExecuteStatement", 0, request)).text


def test_large_honest_requests_pass() -> None:
    arguments = [ttypes.TSparkParameterValueArg(type="BIGINT", value=str(i)) for i in range(20_000)]
    request = ttypes.TExecuteStatementReq(
        statement="x" * 1_000_000, parameters=[ttypes.TSparkParameter(type="ARRAY", arguments=arguments)]
    )
    decoded = codec.decode_call(codec.encode_call("ExecuteStatement", 0, request), BUDGET).value
    assert len(decoded.parameters[0].arguments) == 20_000
    assert len(decoded.statement) == 1_000_000


def test_size_is_limited() -> None:
    body = message(b"ExecuteStatement", b"\x0b\0\2" + struct.pack(">i", 2000) + bytes(2000))
    assert "exceeds the limit" in refused(body, Budget(size=1000)).text


def test_unknown_method_is_skipped_as_bytes() -> None:
    # GetLog of impyla and PyHive: a handle whose GUID is no UTF-8 text.
    fields = b"\x0c\0\1\x0c\0\1\x0b\0\1" + struct.pack(">i", 16) + b"\xff\xfe" * 8 + b"\0\0"
    error = refused(message(b"GetLog", fields, seqid=42))
    assert error.fault is Fault.UNKNOWN_METHOD
    answer = error.answer()
    with pytest.raises(codec.ApplicationError, match="GetLog") as caught:
        codec.decode_reply(answer)
    assert caught.value.fault == Fault.UNKNOWN_METHOD
    protocol = TBinaryProtocol(TMemoryBuffer(answer), strictRead=True)
    assert protocol.readMessageBegin() == ("GetLog", 3, 42)


def test_unknown_binary_field_is_skipped() -> None:
    body = message(b"CloseSession", b"\x0b\x0d\x01" + struct.pack(">i", 4) + b"\xff\xfe\xfd\xfc")
    assert codec.decode_call(body, BUDGET).value == ttypes.TCloseSessionReq()


def test_known_field_with_another_type_counts_as_unknown() -> None:
    body = message(b"ExecuteStatement", b"\x08\0\2\0\0\0\1" + b"\x02\0\4\1")
    request = codec.decode_call(body, BUDGET).value
    assert request.statement is None
    assert request.runAsync is True


def test_absent_fields_are_none_not_defaults() -> None:
    request = codec.decode_call(message(b"OpenSession", b""), BUDGET).value
    assert request.client_protocol is None


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "ends too early"),
        (b"GET / HTTP/1.1\r\n", "header"),
        (b"\0\0\0\x0bOpenSession\1\0\0\0\0\0", "header"),  # the old, unversioned form
        (message(b"OpenSession", b"", word=0x80020001), "header"),
        (message(b"OpenSession", b"", word=0x80010002), "message type 2"),
        (message(b"OpenSession", b"", word=0x80010004), "message type 4"),
        (message(b"OpenSession", b"")[:-1], "too early"),
        (message(b"OpenSession", b"") + b"x", "after the end"),
        (struct.pack(">Ii", 0x80010001, 2**31 - 1), "method name"),
        (struct.pack(">Ii", 0x80010001, -5) + bytes(20), "method name"),
        (struct.pack(">Ii", 0x80010001, 11) + b"OpenSession" + bytes(4) + b"\0", "no argument"),
        (message(b"OpenSession", b"\x0b\0\2\0\0\0\2\xff\xfe"), "UTF-8"),
        (message(b"OpenSession", b"\x63\0\2"), "unknown type"),
        (message(b"ExecuteStatement", b"\x0f\x05\x08\x08\0\0\0\1\0\0\0\1"), "list of type 8"),
    ],
)
def test_damaged_calls_are_protocol_errors(body: bytes, text: str) -> None:
    error = refused(body)
    assert error.fault is Fault.PROTOCOL_ERROR
    assert text in error.text
    with pytest.raises(codec.ApplicationError):
        codec.decode_reply(error.answer())


def test_every_truncation_is_an_error(shared: Path) -> None:
    exchange = next(e for e in read_recordings(shared) if e.method == "ExecuteStatement")
    for size in range(len(exchange.request)):
        assert refused(exchange.request[:size]).fault is Fault.PROTOCOL_ERROR


def test_mutants_of_recordings_are_answered(shared: Path) -> None:
    """Each mutant either decodes or is refused with a `BadCallError`; nothing else escapes."""
    source = random.Random(20_26)
    bodies = sorted({e.request for e in read_recordings(shared)})
    refusals = 0
    for _ in range(6_000):
        body = bytearray(source.choice(bodies))
        for _ in range(source.choice((1, 1, 1, 2, 5))):
            kind = source.randrange(4)
            at = source.randrange(len(body))
            if kind == 0:
                body[at] = source.randrange(256)
            elif kind == 1:
                del body[at : at + source.randrange(1, 9)]
            elif kind == 2:
                body[at:at] = source.randbytes(source.randrange(1, 9))
            else:
                body[at : at + 4] = struct.pack(">i", source.choice((-1, 0, 2**31 - 1, 1000, -(2**31))))
            if not body:
                break
        try:
            codec.decode_call(bytes(body), BUDGET)
        except BadCallError as error:
            refusals += 1
            assert error.answer()
    assert refusals > 1_000


def test_random_bytes_are_refused() -> None:
    source = random.Random(7)
    for size in range(300):
        refused(source.randbytes(size))
        refused(message(b"ExecuteStatement", b"")[:30] + source.randbytes(size))


def test_spliced_column_equals_a_list() -> None:
    plain = ttypes.TRowSet(
        startRowOffset=0, rows=[], columns=[ttypes.TColumn(i64Val=ttypes.TI64Column(values=[1, -2, 3], nulls=b"\0"))]
    )
    spliced = ttypes.TRowSet(
        startRowOffset=0,
        rows=[],
        columns=[
            ttypes.TColumn(
                i64Val=ttypes.TI64Column(
                    values=Spliced(3, [struct.pack(">q", 1), memoryview(struct.pack(">qq", -2, 3))]), nulls=b"\0"
                )
            )
        ],
    )
    assert codec.encode_struct(spliced) == codec.encode_struct(plain)


def test_spliced_column_with_wrong_length_is_refused() -> None:
    column = ttypes.TI64Column(values=Spliced(3, [bytes(23)]), nulls=b"")
    with pytest.raises(ValueError, match="3 values of 8 bytes"):
        codec.encode_struct(column)


def test_encoded_struct_stands_for_the_struct() -> None:
    status = ttypes.TStatus(statusCode=3, errorMessage="no")
    plain = ttypes.TCloseSessionResp(status=status)
    assert codec.encode_struct(ttypes.TCloseSessionResp(status=Encoded(codec.encode_struct(status)))) == (
        codec.encode_struct(plain)
    )


def test_binary_takes_any_buffer() -> None:
    batch = ttypes.TSparkArrowBatch(batch=memoryview(b"abc"), rowCount=1)
    assert decode_struct(ttypes.TSparkArrowBatch, codec.encode_struct(batch)).batch == b"abc"


def test_client_leaves_columns_undecoded() -> None:
    page = ttypes.TFetchResultsResp(
        status=ttypes.TStatus(statusCode=0),
        results=ttypes.TRowSet(
            startRowOffset=0,
            rows=[],
            columns=[
                ttypes.TColumn(stringVal=ttypes.TStringColumn(values=["a", "ß"], nulls=b"\0")),
                ttypes.TColumn(doubleVal=ttypes.TDoubleColumn(values=[1.5], nulls=b"\0")),
            ],
        ),
    )
    body = encode_reply("FetchResults", 1, page)
    columns = codec.decode_reply(body, raw_columns=True).value.results.columns
    text, number = columns[0].stringVal.values, columns[1].doubleVal.values
    assert (text.count, bytes(text.data)) == (2, b"\0\0\0\1a\0\0\0\2\xc3\x9f")
    assert isinstance(number, RawValues)
    assert struct.unpack(">d", number.data) == (1.5,)
    assert codec.decode_reply(body).value == page


def test_damaged_answers_are_malformed() -> None:
    body = encode_reply("CloseSession", 0, ttypes.TCloseSessionResp(status=ttypes.TStatus(statusCode=0)))
    for size in range(len(body)):
        with pytest.raises(MalformedError):
            codec.decode_reply(body[:size])


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_rows_are_counted_from_the_first_column(rows: int) -> None:
    column = ttypes.TColumn(stringVal=ttypes.TStringColumn(values=["x"] * rows, nulls=b"\0" * ((rows + 7) // 8)))
    result = ttypes.TRowSet(startRowOffset=0, rows=[], columns=[column, column])
    status = ttypes.TStatus(statusCode=ttypes.TStatusCode.SUCCESS_STATUS)
    answer = ttypes.TFetchResultsResp(status=status, hasMoreRows=False, results=result)
    assert codec.column_rows(encode_reply("FetchResults", 0, answer)) == rows


@pytest.mark.parametrize("rows", [3, 200_000])
def test_parts_are_the_answer(rows: int) -> None:
    numbers = memoryview(array("q", range(rows)))
    column = ttypes.TColumn(i64Val=ttypes.TI64Column(values=Spliced(rows, [numbers]), nulls=b""))
    batch = ttypes.TSparkArrowBatch(batch=memoryview(numbers.tobytes()), rowCount=rows)
    none = ttypes.TColumn(i64Val=ttypes.TI64Column(values=Spliced(0, [numbers[:0]]), nulls=b""))
    answer = ttypes.TFetchResultsResp(
        status=ttypes.TStatus(statusCode=0),
        results=ttypes.TRowSet(startRowOffset=0, rows=[], columns=[column, none], arrowBatches=[batch]),
    )
    parts = codec.encode_reply_parts("FetchResults", 7, answer)
    assert isinstance(parts, bytes) == (rows == 3)
    assert b"".join([parts] if isinstance(parts, bytes) else parts) == encode_reply("FetchResults", 7, answer)
