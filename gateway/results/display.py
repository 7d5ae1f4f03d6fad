"""Values as text: result columns that travel as strings, nested ones included, and Spark's cast to STRING.

Two styles share one recursion. Every child array is formatted once as a whole, then joined by list offsets.

`wire_text`: what Databricks puts into string columns of a page. Nested values are compact: ``[1,null]``,
``{"k":1}``; strings quoted with JSON escapes, ``null`` for nulls, doubles as Java writes them (``1.0E20``, ``NaN``), decimals
plain, binary as a quoted base64 string. Dates, timestamps and intervals stay unquoted inside, and map keys are quoted only if
they are strings (``{1:"one"}``), as in recorded answers of Databricks servers and Spark's `HiveResult`. Map entries are
sorted by the text of their keys. Intervals: ``1-2``, ``1 02:03:04.500000000``.

`cast_to_string`: ``[1, null]``, ``{a -> 1}``, ``{1, null}``, nothing quoted or sorted; intervals as literals.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.errors import UnsupportedError
from gateway.floats import float_texts
from gateway.results.arrow_types import list_parts, plain
from gateway.results.numerals import decimal_text
from gateway.results.temporal import date_text, interval_display, interval_literal, timestamp_text
from gateway.sqltypes import (
    ArrayType,
    DataType,
    DecimalType,
    IntervalType,
    MapType,
    StructType,
    is_string,
    travels_as_text,
)


@dataclass(frozen=True, slots=True)
class _Style:
    comma: str
    arrow: str
    json: bool  # strings and field names quoted, map entries sorted, binary as base64, intervals in their short form


_WIRE = _Style(",", ":", True)
_CAST = _Style(", ", " -> ", False)


def wire_text(values: pa.Array, data_type: DataType, time_zone: str) -> pa.StringArray:
    """Text of a result column, one string per value; nulls stay null. `time_zone` is the session's."""
    return _text(plain(values, data_type, "value"), data_type, time_zone, _WIRE)


def cast_to_string(values: pa.Array, data_type: DataType, time_zone: str) -> pa.StringArray:
    """Spark's ``CAST(values AS STRING)``; nulls stay null.

    Raises:
        UnsupportedError: a BINARY value that is not UTF-8.
    """
    return _text(plain(values, data_type, "value"), data_type, time_zone, _CAST)


def _text(values: pa.Array, data_type: DataType, zone: str, style: _Style) -> pa.StringArray:
    if data_type.name == "VOID":
        return pa.nulls(len(values), pa.string())
    if isinstance(data_type, ArrayType):
        text = _list_text(values, data_type, zone, style)
    elif isinstance(data_type, MapType):
        text = _map_text(values, data_type, zone, style)
    elif isinstance(data_type, StructType):
        text = _struct_text(values, data_type, zone, style)
    else:
        return _scalar_text(values, data_type, zone, style)
    return _with_nulls_of(values, text)


def _scalar_text(values: pa.Array, data_type: DataType, zone: str, style: _Style) -> pa.StringArray:
    name = data_type.name
    if travels_as_text(data_type):
        return values
    if name in ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT"):
        return values.cast(pa.string())
    if name in ("FLOAT", "DOUBLE"):
        return float_texts(values)
    if isinstance(data_type, DecimalType):
        return decimal_text(values)
    if name == "BINARY":
        return _base64(values) if style.json else _utf8(values)
    if isinstance(data_type, IntervalType):
        text = (interval_display if style.json else interval_literal)(_integers(values), data_type)
    elif name == "DATE":
        text = date_text(_integers(values.view(pa.int32())))
    elif name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        text = timestamp_text(_integers(values.view(pa.int64())), zone if name == "TIMESTAMP" else None)
    else:  # pragma: no cover - a row was added to the type table and forgotten here
        raise UnsupportedError("UNSUPPORTED_RESULT_TYPE", f"{data_type.sql} has no text form.")
    return _with_nulls_of(values, text)


def _inner_text(values: pa.Array, data_type: DataType, zone: str, style: _Style) -> pa.StringArray:
    """Text of a value inside another: never null, quoted where the style quotes."""
    text = _text(values, data_type, zone, style)
    if style.json and is_string(data_type):
        text = quoted(text)
    return text.fill_null("null") if text.null_count else text


def _with_nulls_of(values: pa.Array, text: pa.StringArray) -> pa.StringArray:
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string())) if values.null_count else text


def _integers(values: pa.Array) -> npt.NDArray[np.int64]:
    filled = values.fill_null(0) if values.null_count else values
    return filled.to_numpy().astype(np.int64, copy=False)  # type: ignore[no-any-return]


def _list_text(values: pa.ListArray, data_type: ArrayType, zone: str, style: _Style) -> pa.StringArray:
    offsets, start, stop = list_parts(values)
    inner = _inner_text(values.values.slice(start, stop - start), data_type.element, zone, style)
    return _joined("[", offsets, inner, style.comma, "]")


def _map_text(values: pa.MapArray, data_type: MapType, zone: str, style: _Style) -> pa.StringArray:
    offsets, start, stop = list_parts(values)
    keys, items = values.keys.slice(start, stop - start), values.items.slice(start, stop - start)
    key_text = _text(keys, data_type.key, zone, style)
    order = _key_order(key_text, offsets) if style.json else None
    if style.json and is_string(data_type.key):
        key_text = quoted(key_text)
    entries = pc.binary_join_element_wise(key_text, _inner_text(items, data_type.value, zone, style), style.arrow)
    return _joined("{", offsets, entries if order is None else entries.take(order), style.comma, "}")


def _struct_text(values: pa.StructArray, data_type: StructType, zone: str, style: _Style) -> pa.StringArray:
    if not data_type.fields:
        return pa.repeat(pa.scalar("{}"), len(values))
    pieces: list[pa.StringArray | str] = []
    for i, field in enumerate(data_type.fields):
        label = f"{json.dumps(field.name, ensure_ascii=False)}:" if style.json else ""
        pieces.append(("{" if i == 0 else style.comma) + label)
        pieces.append(_inner_text(values.field(i), field.type, zone, style))
    return pc.binary_join_element_wise(*pieces, "}", "")


def _joined(left: str, offsets: npt.NDArray[np.int32], inner: pa.StringArray, comma: str, right: str) -> pa.StringArray:
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner)
    return pc.binary_join_element_wise(left, pc.binary_join(lists, comma), right, "")


def _key_order(keys: pa.StringArray, offsets: npt.NDArray[np.int32]) -> pa.Array | None:
    """Positions of all entries so that every map's come in the order of its key texts; None if they do already.

    Few distinct keys is the usual case: they are ranked once and the entries sorted by (row, rank) as integers.
    """
    coded = keys.dictionary_encode()
    distinct = len(coded.dictionary)
    rank = np.empty(distinct, dtype=np.int64)
    rank[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(distinct)
    row = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
    position = row * max(distinct, 1) + rank[coded.indices.to_numpy()]
    if (position[1:] >= position[:-1]).all():
        return None
    return pa.array(np.argsort(position, kind="stable"))


_ESCAPES = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_ESCAPED = np.array([c < 32 or c in (34, 92) for c in range(256)])


def quoted(text: pa.StringArray) -> pa.StringArray:
    """JSON strings of `text`: the escapes that JSON demands and no others; nulls stay null."""
    data = _data(text)
    present = np.unique(data[_ESCAPED[data]]).tolist()
    for code in sorted(present, key=lambda c: c != 92):  # the backslash first: the others bring their own
        text = pc.replace_substring(text, chr(code), _ESCAPES.get(code, f"\\u{code:04x}"))
    return pc.binary_join_element_wise('"', text, '"', "")


def _data(values: pa.Array) -> npt.NDArray[np.uint8]:
    """The bytes of all values of a string or binary array (those under nulls too)."""
    _, offsets, data = values.buffers()
    if data is None or not len(values):
        return np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[[values.offset, values.offset + len(values)]]
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[1]]


def _utf8(values: pa.BinaryArray) -> pa.StringArray:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", "A cast of BINARY to STRING of bytes that are not UTF-8 is not supported."
        ) from None


def _base64(values: pa.BinaryArray) -> pa.StringArray:
    """Quoted base64. Rows are padded to whole groups of three bytes, so that one call encodes all of them."""
    filled = values.fill_null(b"")
    lengths = pc.binary_length(filled).to_numpy()
    missing = -lengths % 3
    padding = pa.array([b"", b"\0", b"\0\0"], pa.binary()).take(pa.array(missing))
    encoded = np.frombuffer(
        base64.b64encode(_data(pc.binary_join_element_wise(filled, padding, b"")).tobytes()), np.uint8
    ).copy()
    ends = np.cumsum((lengths + missing) // 3 * 4)
    encoded[ends[missing >= 1] - 1] = ord("=")
    encoded[ends[missing == 2] - 2] = ord("=")
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    text = pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(encoded))
    return _with_nulls_of(values, pc.binary_join_element_wise('"', text, '"', ""))
