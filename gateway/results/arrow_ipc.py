"""Record batches -> Arrow IPC messages for clients: what the schema says, and batches that match it.

A page is one encapsulated schema message (TGetResultSetMetadataResp.arrowSchema) and record-batch messages without schema, each
in an LZ4 frame of its own if the client can read that. Clients join them into a stream; no end-of-stream mark is sent. What a
link leads to is a stream already.
Only the schema message carries names, zones and metadata, so most columns are delivered with their buffers untouched.

Flags (TSparkArrowTypes) decide about columns: a decimal, timestamp, nested or interval column whose flag is off is sent as
utf8, with its SQL type in the metadata. Values inside native nested columns are native too, except intervals and VOID, which
follow their flags everywhere: nobody could read the integers behind an interval, and some drivers fail on Arrow's null type.
Names of list children (``element``) and the rest follow recorded answers of Databricks servers.
"""

from __future__ import annotations

import base64
import json
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from gateway.errors import ServerError
from gateway.results.arrow_types import list_parts, null_mask, plain, struct_of
from gateway.results.display import cast_to_string, wire_text
from gateway.results.lz4_frames import Framing, framed, framed_together
from gateway.results.spool import Rows
from gateway.results.zones import arrow_zone
from gateway.sqltypes import (
    STRING,
    ArrayType,
    CharType,
    DataType,
    DecimalType,
    IntervalType,
    MapType,
    StructField,
    StructType,
    array,
    is_nested,
    map_of,
    struct,
)

SQL_NAME = b"Spark:DataType:SqlName"
JSON_TYPE = b"Spark:DataType:JsonType"
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


@dataclass(frozen=True, slots=True)
class ArrowOptions:
    """Which kinds of columns the client takes in Arrow's own type (TSparkArrowTypes); the others come as utf8."""

    decimal_as_arrow: bool = False
    timestamp_as_arrow: bool = False
    complex_as_arrow: bool = False
    interval_as_arrow: bool = False
    null_as_arrow: bool = False


@dataclass(frozen=True, slots=True)
class ArrowBatch:
    """One TSparkArrowBatch: `data` is one record-batch message (or an LZ4 frame of it) with `rows` rows."""

    data: bytes | memoryview
    rows: int


def delivered_schema(schema: StructType, options: ArrowOptions, time_zone: str) -> pa.Schema:
    """The Arrow schema that a client is told: all fields nullable, SQL and JSON type names as field metadata."""
    return pa.schema(
        [
            pa.field(field.name, _column_type(field.type, options, time_zone), metadata=_metadata(field.type))
            for field in schema.fields
        ]
    )


def schema_message(schema: StructType, options: ArrowOptions, time_zone: str) -> bytes:
    """`delivered_schema` as an encapsulated IPC message."""
    return delivered_schema(schema, options, time_zone).serialize().to_pybytes()  # type: ignore[no-any-return]


def encode(
    parts: Sequence[Rows], schema: StructType, options: ArrowOptions, time_zone: str, framing: Framing
) -> list[ArrowBatch]:
    """One message per part that has rows, to be read after `schema_message` of the same arguments.

    Raises:
        UnsupportedError: UNSUPPORTED_RESULT_TYPE.
        UserError: NUMERIC_VALUE_OUT_OF_RANGE, DATETIME_OVERFLOW.
    """
    return [
        ArrowBatch(framed(memoryview(message), framing), part.count)
        for part, message in _messages(parts, schema, options, time_zone)
    ]


def stream(
    parts: Sequence[Rows], schema: StructType, options: ArrowOptions, time_zone: str, framing: Framing
) -> list[bytes | memoryview]:
    """The same rows as a complete stream, its schema first and its end marked; in one frame if in any. Raises as `encode`."""
    messages = (memoryview(message) for _, message in _messages(parts, schema, options, time_zone))
    return framed_together([schema_message(schema, options, time_zone), *messages, _END_OF_STREAM], framing)


def _messages(
    parts: Sequence[Rows], schema: StructType, options: ArrowOptions, time_zone: str
) -> Iterator[tuple[Rows, pa.Buffer | bytes]]:
    return ((part, _message(part, schema, options, time_zone)) for part in parts if part.count)


def _message(part: Rows, schema: StructType, options: ArrowOptions, time_zone: str) -> pa.Buffer | bytes:
    batch = part.batch
    if batch.num_columns != len(schema.fields):
        raise ServerError(
            "INTERNAL_ERROR", f"A batch has {batch.num_columns} columns, its schema {len(schema.fields)}."
        )
    stored = [batch.column(i) for i in range(batch.num_columns)]
    columns = [
        _column(plain(values, field.type, field.name), field.type, options, time_zone)
        for values, field in zip(stored, schema.fields, strict=True)
    ]
    if part.message is not None and all(map(operator.is_, columns, stored)):
        return part.message  # it holds no names, zones or metadata, so it is what a client reads
    if columns:
        batch = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
    return batch.serialize()


def _metadata(data_type: DataType) -> dict[bytes, bytes]:
    shown = without_lengths(data_type)
    text = json.dumps(shown.json(), separators=(",", ":"), ensure_ascii=False)
    return {SQL_NAME: shown.sql.encode(), JSON_TYPE: text.encode()}


def without_lengths(data_type: DataType) -> DataType:
    """CHAR and VARCHAR are STRING in results, as Databricks reports them."""
    if isinstance(data_type, CharType):
        return STRING
    if isinstance(data_type, ArrayType):
        return array(without_lengths(data_type.element), data_type.contains_null)
    if isinstance(data_type, MapType):
        key, value = without_lengths(data_type.key), without_lengths(data_type.value)
        return map_of(key, value, data_type.value_contains_null)
    if isinstance(data_type, StructType):
        return struct(*(StructField(f.name, without_lengths(f.type), f.nullable, f.comment) for f in data_type.fields))
    return data_type


def _as_text(data_type: DataType, options: ArrowOptions) -> bool:
    """Whether a column of this type is sent as utf8 although it is none."""
    if isinstance(data_type, DecimalType):
        return not options.decimal_as_arrow
    if data_type.name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return not options.timestamp_as_arrow
    if is_nested(data_type):
        return not options.complex_as_arrow
    return _never_native(data_type, options)


def _never_native(data_type: DataType, options: ArrowOptions) -> bool:
    if isinstance(data_type, IntervalType):
        return not options.interval_as_arrow
    return data_type.name == "VOID" and not options.null_as_arrow


def _column_type(data_type: DataType, options: ArrowOptions, time_zone: str) -> pa.DataType:
    return pa.string() if _as_text(data_type, options) else _native_type(data_type, options, time_zone)


def _native_type(data_type: DataType, options: ArrowOptions, time_zone: str) -> pa.DataType:
    if _never_native(data_type, options):
        return pa.string()
    if isinstance(data_type, IntervalType):
        return _month_interval() if data_type.is_year_month else pa.duration("us")
    if data_type.name == "TIMESTAMP":
        return pa.timestamp("us", arrow_zone(time_zone))
    if isinstance(data_type, ArrayType):
        return pa.list_(pa.field("element", _native_type(data_type.element, options, time_zone)))
    if isinstance(data_type, MapType):
        return pa.map_(
            pa.field("key", _native_type(data_type.key, options, time_zone), nullable=False),
            pa.field("value", _native_type(data_type.value, options, time_zone)),
        )
    if isinstance(data_type, StructType):
        return pa.struct([pa.field(f.name, _native_type(f.type, options, time_zone)) for f in data_type.fields])
    return data_type.arrow()


def _column(values: pa.Array, data_type: DataType, options: ArrowOptions, time_zone: str) -> pa.Array:
    if _as_text(data_type, options):
        return wire_text(values, data_type, time_zone)
    return _native(values, data_type, options, time_zone) if _changes_inside(data_type, options) else values


def _changes_inside(data_type: DataType, options: ArrowOptions) -> bool:
    return _never_native(data_type, options) or any(_changes_inside(c, options) for c in data_type.children())


def _native(values: pa.Array, data_type: DataType, options: ArrowOptions, time_zone: str) -> pa.Array:
    """`values` with intervals and VOID inside turned into text; the rest shares its buffers."""
    if isinstance(data_type, IntervalType) and _never_native(data_type, options):
        return cast_to_string(values, data_type, time_zone)  # a literal, as in Spark's to_json
    if _never_native(data_type, options):
        return wire_text(values, data_type, time_zone)
    if not _changes_inside(data_type, options):
        return values
    if isinstance(data_type, StructType):
        children = [_native(values.field(i), f.type, options, time_zone) for i, f in enumerate(data_type.fields)]
        return struct_of(children, [pa.field(str(i), c.type) for i, c in enumerate(children)], values)
    offsets, start, stop = list_parts(values)
    positions = pa.array(offsets, pa.int32())
    if isinstance(data_type, MapType):
        keys = _native(values.keys.slice(start, stop - start), data_type.key, options, time_zone)
        items = _native(values.items.slice(start, stop - start), data_type.value, options, time_zone)
        return pa.MapArray.from_arrays(positions, keys, items, mask=null_mask(values))
    assert isinstance(data_type, ArrayType)
    child = _native(values.values.slice(start, stop - start), data_type.element, options, time_zone)
    return pa.ListArray.from_arrays(positions, child, mask=null_mask(values))


# A schema message with one field of that type: pyarrow reads it but offers no constructor. Its layout is that of int32.
_MONTH_INTERVAL_SCHEMA = (
    "/////3AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAEAAAAUAAAAEAAUAAgABgAHAAwAAAAQABAAAAAAAAEL"
    "EAAAABgAAAAEAAAAAAAAAAAAAAAAAAAABAAEAAQAAAAAAAAA"
)


@lru_cache(maxsize=1)
def _month_interval() -> pa.DataType:
    return pa.ipc.read_schema(pa.BufferReader(base64.b64decode(_MONTH_INTERVAL_SCHEMA))).field(0).type
