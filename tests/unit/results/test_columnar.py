"""Columnar pages are byte for byte what Thrift's own writer makes of the rows."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from gateway import sqltypes as t
from gateway.errors import GatewayError, UserError
from gateway.floats import float_text
from gateway.results import columnar
from gateway.results.arrow_types import sql_type_of
from gateway.results.columnar import ColumnPayload, encode
from gateway.sqltypes import Slot
from tests.unit.results import typed_values as reference
from tests.unit.results.typed_values import KINDS, UNTIMED, array_of, columns

_WRITERS = {
    Slot.BOOL: TBinaryProtocol.writeBool,
    Slot.BYTE: TBinaryProtocol.writeByte,
    Slot.I16: TBinaryProtocol.writeI16,
    Slot.I32: TBinaryProtocol.writeI32,
    Slot.I64: TBinaryProtocol.writeI64,
    Slot.DOUBLE: TBinaryProtocol.writeDouble,
    Slot.STRING: TBinaryProtocol.writeString,
    Slot.BINARY: TBinaryProtocol.writeBinary,
}


def thrift_payload(values: list[Any], kind: t.DataType, zone: str) -> ColumnPayload:
    """The column as the Thrift library writes it, value by value."""
    slot = kind.row.slot
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    bits = 0
    for i, value in enumerate(values):
        bits |= (value is None) << i
        shown = value
        if slot is Slot.STRING:
            shown = reference.text(value, kind, zone, wire=True) or ""
        elif kind == t.FLOAT and value is not None:
            shown = float(float_text(value, 24))
        elif value is None:
            shown = {Slot.BOOL: False, Slot.DOUBLE: 0.0, Slot.BINARY: b""}.get(slot, 0)
        _WRITERS[slot](protocol, shown)
    return ColumnPayload(slot, len(values), (buffer.getvalue(),), bits.to_bytes((len(values) + 7) // 8, "little"))


def flat(payloads: list[ColumnPayload]) -> list[ColumnPayload]:
    """The same with the values of a column as one piece."""
    return [replace(p, parts=(b"".join(p.parts),)) for p in payloads]


def page(columns: Sequence[tuple[str, pa.Array]], time_zone: str = "UTC") -> dict[str, ColumnPayload]:
    """`columns` encoded as one page of one batch."""
    schema = t.struct(*(t.StructField(name, sql_type_of(values.type)) for name, values in columns))
    batch = pa.record_batch([values for _, values in columns], names=[name for name, _ in columns])
    return dict(zip([name for name, _ in columns], flat(encode([batch], schema, time_zone=time_zone)), strict=True))


def texts(payload: ColumnPayload) -> list[str | None]:
    """The strings of a STRING column, None where the null bit is set."""
    protocol = TBinaryProtocol(TMemoryBuffer(b"".join(payload.parts)))
    values = [protocol.readString() for _ in range(payload.count)]
    return [None if payload.nulls[i // 8] >> (i % 8) & 1 else value for i, value in enumerate(values)]


@UNTIMED
@given(columns(), st.sampled_from(["UTC", "America/Los_Angeles"]), st.integers(0, 12))
def test_columns_equal_what_thrift_writes(column: tuple[t.DataType, list[Any]], zone: str, cut: int) -> None:
    kind, values = column
    schema = t.struct(t.StructField("c", kind))
    whole = pa.record_batch([array_of(kind, values)], names=["c"])
    expected = thrift_payload(values, kind, zone)
    for batches in ([whole], [whole.slice(0, cut), whole.slice(cut)]):
        assert flat(encode(batches, schema, time_zone=zone)) == [expected]


@UNTIMED
@given(KINDS)
def test_empty_pages_have_every_column(kind: t.DataType) -> None:
    schema = t.struct(t.StructField("c", kind))
    empty = ColumnPayload(kind.row.slot, 0, (b"",), b"")
    assert flat(encode([], schema, time_zone="UTC")) == [empty]
    batch = pa.record_batch([array_of(kind, [])], names=["c"])
    assert flat(encode([batch], schema, time_zone="UTC")) == [empty]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 17])
def test_null_bitmap_has_no_bit_past_the_last_row(count: int) -> None:
    nulls = page([("c", pa.nulls(count, pa.int32()))])["c"].nulls
    assert len(nulls) == (count + 7) // 8
    assert int.from_bytes(nulls, "little") == 2**count - 1


def test_row_set_encodes_delta_type_compatibility_values() -> None:
    items = pa.struct([("day", pa.date32()), ("note", pa.string())])
    row = page(
        [
            ("c_decimal", pa.array([Decimal("123.40"), None], pa.decimal128(10, 2))),
            ("c_wide", pa.array([Decimal("-0.10"), None], pa.decimal256(38, 2))),
            ("c_binary", pa.array([b"\x00\xff", None])),
            ("c_list", pa.array([[1, None], None], pa.list_(pa.int32()))),
            ("c_map", pa.array([[("b", 2), ("a", None)], None], pa.map_(pa.string(), pa.int32()))),
            ("c_struct", pa.array([{"day": date(2024, 1, 2), "note": 'say "hi"'}, None], items)),
        ]
    )
    assert texts(row["c_decimal"]) == ["123.40", None]
    assert texts(row["c_wide"]) == ["-0.10", None]
    assert row["c_binary"] == ColumnPayload(Slot.BINARY, 2, (b"\0\0\0\2\0\xff\0\0\0\0",), b"\2")
    assert texts(row["c_list"]) == ["[1,null]", None]
    assert texts(row["c_map"]) == ['{"a":null,"b":2}', None]
    assert texts(row["c_struct"]) == ['{"day":2024-01-02,"note":"say \\"hi\\""}', None]


def test_row_set_encodes_typed_value_columns() -> None:
    """One column of every Arrow type that the type table of the specification lists."""
    rows: list[tuple[pa.Array, Slot, bytes]] = [
        (pa.array([True]), Slot.BOOL, b"\1"),
        (pa.array([-2], pa.int8()), Slot.BYTE, b"\xfe"),
        (pa.array([-2], pa.int16()), Slot.I16, b"\xff\xfe"),
        (pa.array([-2], pa.int32()), Slot.I32, struct.pack("!i", -2)),
        (pa.array([-2], pa.int64()), Slot.I64, struct.pack("!q", -2)),
        *((pa.array([200], kind()), Slot.I64, struct.pack("!q", 200)) for kind in (pa.uint8, pa.uint16, pa.uint32)),
        (pa.array([2**63 - 1], pa.uint64()), Slot.I64, struct.pack("!q", 2**63 - 1)),
        (pa.array([1.4142], pa.float32()), Slot.DOUBLE, struct.pack("!d", 1.4142)),
        (pa.array([1.4142]), Slot.DOUBLE, struct.pack("!d", 1.4142)),
        *((pa.array(["ü"], kind()), Slot.STRING, b"\0\0\0\2\xc3\xbc") for kind in (pa.string, pa.large_string)),
        (pa.array(["ü"], pa.string_view()), Slot.STRING, b"\0\0\0\2\xc3\xbc"),
        (pa.array(["ü"]).dictionary_encode(), Slot.STRING, b"\0\0\0\2\xc3\xbc"),
        *((pa.array([b"\xff"], kind), Slot.BINARY, b"\0\0\0\1\xff")
          for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))),
        (pa.array([date(2024, 1, 2)], pa.date32()), Slot.STRING, b"\0\0\0\x0a2024-01-02"),
        (pa.array([date(2024, 1, 2)], pa.date64()), Slot.STRING, b"\0\0\0\x0a2024-01-02"),
        *((pa.array([0], pa.timestamp(unit, "UTC")), Slot.STRING, b"\0\0\0\x131970-01-01 00:00:00")
          for unit in ("s", "ms", "us", "ns")),
        (pa.array([-1], pa.timestamp("ns")), Slot.STRING, b"\0\0\0\x1a1969-12-31 23:59:59.999999"),
        (pa.array([Decimal("1.50")], pa.decimal256(40, 2)), Slot.STRING, b"\0\0\0\x041.50"),
        *((pa.array([[1, 2]], kind), Slot.STRING, b"\0\0\0\5[1,2]")
          for kind in (pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_(pa.int8(), 2))),
        (pa.nulls(1), Slot.STRING, b"\0\0\0\0"),
    ]  # fmt: skip
    for values, slot, expected in rows:
        payload = page([("c", values)])["c"]
        assert (payload.slot, payload.parts[0]) == (slot, expected), values.type


def test_row_set_rejects_uint64_values_outside_signed_bigint_range() -> None:
    with pytest.raises(UserError, match="`big`") as error:
        page([("big", pa.array([2**63], pa.uint64()))])
    assert error.value.condition == "NUMERIC_VALUE_OUT_OF_RANGE"


def test_timestamps_are_shown_in_the_session_zone_unless_they_have_none() -> None:
    instants = pa.array([1_600_000_000_000_000], pa.int64())
    columns = [("ts", instants.view(pa.timestamp("us", "UTC"))), ("ntz", instants.view(pa.timestamp("us")))]
    row = page(columns, "America/New_York")
    assert texts(row["ts"]) == ["2020-09-13 08:26:40"]
    assert texts(row["ntz"]) == ["2020-09-13 12:26:40"]


def test_large_batches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [None if i % 7 == 0 else [i, -i] for i in range(1000)]
    expected = page([("c", pa.array(values))])
    for rows, size in ((13, 128 << 20), (131_072, 500)):
        monkeypatch.setattr(columnar, "_SLICE_ROWS", rows)
        monkeypatch.setattr(columnar, "_SLICE_BYTES", size)
        assert page([("c", pa.array(values))]) == expected


def test_a_batch_of_another_width_is_refused() -> None:
    with pytest.raises(GatewayError, match="2 columns, its schema 1"):
        encode([pa.record_batch([[1], [2]], names=["a", "b"])], t.struct(t.StructField("a", t.BIGINT)), time_zone="UTC")
