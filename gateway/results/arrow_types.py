"""Arrow arrays of many shapes -> the one plain shape that the encodings know, and Arrow types -> SQL types.

Engines hand over views, large and fixed-size variants, dictionaries, other time units. `plain` turns a column into the Arrow
type of its declared SQL type (`DataType.arrow()`), buffers untouched where they fit already. What has no honest form (interval,
duration, time, list views, unions …) is refused with UNSUPPORTED_RESULT_TYPE, naming column and type.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyarrow import types

from gateway.errors import UnsupportedError, UserError
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    array,
    decimal,
    map_of,
    struct,
)

_ATOMS: dict[pa.DataType, DataType] = {
    pa.null(): VOID,
    pa.bool_(): BOOLEAN,
    pa.int8(): TINYINT,
    pa.int16(): SMALLINT,
    pa.int32(): INT,
    pa.int64(): BIGINT,
    pa.uint8(): BIGINT,
    pa.uint16(): BIGINT,
    pa.uint32(): BIGINT,
    pa.uint64(): BIGINT,  # values above the signed range are refused by `plain`
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.date32(): DATE,
    pa.date64(): DATE,
    pa.binary(): BINARY,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
}


def _is_text(t: pa.DataType) -> bool:
    return bool(types.is_string(t) or types.is_large_string(t) or types.is_string_view(t))


def _is_bytes(t: pa.DataType) -> bool:
    variable = types.is_binary(t) or types.is_large_binary(t) or types.is_binary_view(t)
    return bool(variable or types.is_fixed_size_binary(t))


def _is_list(t: pa.DataType) -> bool:
    return bool(types.is_list(t) or types.is_large_list(t) or types.is_fixed_size_list(t))


_FAMILIES: dict[str, Callable[[pa.DataType], bool]] = {
    "BOOLEAN": types.is_boolean,
    "TINYINT": types.is_integer,
    "SMALLINT": types.is_integer,
    "INT": types.is_integer,
    "BIGINT": types.is_integer,
    "FLOAT": types.is_float32,
    "DOUBLE": lambda t: types.is_float32(t) or types.is_float64(t),
    "DECIMAL": lambda t: types.is_decimal128(t) or types.is_decimal256(t),
    "STRING": _is_text,
    "VARCHAR": _is_text,
    "CHAR": _is_text,
    "VARIANT": _is_text,
    "INTERVAL": _is_text,
    "BINARY": _is_bytes,
    "DATE": types.is_date,
    "TIMESTAMP": types.is_timestamp,
    "TIMESTAMP_NTZ": lambda t: types.is_timestamp(t) and t.tz is None,
    "INTERVAL YEAR TO MONTH": types.is_int32,
    "INTERVAL DAY TO SECOND": types.is_int64,
    "ARRAY": _is_list,
    "MAP": types.is_map,
    "STRUCT": types.is_struct,
}


def unsupported_result(
    arrow: pa.DataType, column: str | None = None, declared: DataType | None = None
) -> UnsupportedError:
    """The refusal of a result column."""
    where = "A result" if column is None else f"Result column `{column}`"
    what = "has no SQL type" if declared is None else f"cannot be delivered as {declared.sql}"
    return UnsupportedError("UNSUPPORTED_RESULT_TYPE", f"{where} of Arrow type {arrow} {what}.")


def sql_type_of(arrow: pa.DataType, column: str | None = None) -> DataType:
    """SQL type under which an Arrow column is shown to clients.

    Decimals wider than 38 digits are declared with 38; values that need more are refused when they are encoded.

    Raises:
        UnsupportedError: UNSUPPORTED_RESULT_TYPE, naming the type and `column`.
    """
    atom = _ATOMS.get(arrow)
    if atom is not None:
        return atom
    if types.is_dictionary(arrow):
        return sql_type_of(arrow.value_type, column)
    if types.is_fixed_size_binary(arrow):
        return BINARY
    if types.is_timestamp(arrow):
        return TIMESTAMP_NTZ if arrow.tz is None else TIMESTAMP
    if (types.is_decimal128(arrow) or types.is_decimal256(arrow)) and 0 <= arrow.scale <= MAX_PRECISION:
        return decimal(max(arrow.scale, min(arrow.precision, MAX_PRECISION)), arrow.scale)
    if types.is_map(arrow):
        return map_of(sql_type_of(arrow.key_type, column), sql_type_of(arrow.item_type, column))
    if _is_list(arrow):
        return array(sql_type_of(arrow.value_type, column))
    if types.is_struct(arrow):
        return struct(*(StructField(f.name, sql_type_of(f.type, column)) for f in arrow))
    raise unsupported_result(arrow, column)


def plain(values: pa.Array, declared: DataType, column: str) -> pa.Array:
    """`values` in the internal Arrow type of `declared`; buffers are shared where the layout fits already.

    A TIMESTAMP without zone is taken as UTC. Nanoseconds are floored to microseconds.

    Raises:
        UnsupportedError: UNSUPPORTED_RESULT_TYPE for an Arrow type that `declared` cannot hold.
        UserError: NUMERIC_VALUE_OUT_OF_RANGE or DATETIME_OVERFLOW for a value that does not fit.
    """
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    source = values.type
    want = declared.arrow()
    if source == want:
        return values
    if types.is_null(source):
        return pa.nulls(len(values), want)
    family = _FAMILIES.get(declared.name)
    if family is None or not family(source):
        raise unsupported_result(source, column, declared)
    if isinstance(declared, ArrayType):
        return _plain_list(values, declared, column)
    if isinstance(declared, MapType):
        return _plain_map(values, declared, column)
    if isinstance(declared, StructType):
        return _plain_struct(values, declared, column)
    if types.is_timestamp(want):
        return _micros(values, column).view(want)
    try:
        if isinstance(declared, DecimalType) and source.scale != declared.scale:
            raise unsupported_result(source, column, declared)
        return values.cast(want)
    except pa.ArrowInvalid as error:
        raise UserError(
            "NUMERIC_VALUE_OUT_OF_RANGE", f"A value of result column `{column}` does not fit {declared.sql}: {error}."
        ) from None


def list_parts(values: pa.Array) -> tuple[np.ndarray[tuple[int], np.dtype[np.int32]], int, int]:
    """Offsets (from 0) of a list or map array, and where its entries start and stop in its child."""
    offsets = values.offsets.to_numpy()
    return offsets - offsets[0], int(offsets[0]), int(offsets[-1])


def null_mask(values: pa.Array) -> pa.BooleanArray | None:
    """True for nulls; None if there are none."""
    return values.is_null() if values.null_count else None


def _plain_list(values: pa.Array, declared: ArrayType, column: str) -> pa.Array:
    if not types.is_list(values.type):
        values = values.cast(pa.list_(values.type.value_type))
    offsets, start, stop = list_parts(values)
    child = plain(values.values.slice(start, stop - start), declared.element, column)
    return pa.ListArray.from_arrays(pa.array(offsets), child, type=declared.arrow(), mask=null_mask(values))


def _plain_map(values: pa.MapArray, declared: MapType, column: str) -> pa.Array:
    offsets, start, stop = list_parts(values)
    keys = plain(values.keys.slice(start, stop - start), declared.key, column)
    items = plain(values.items.slice(start, stop - start), declared.value, column)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=declared.arrow(), mask=null_mask(values))


def _plain_struct(values: pa.StructArray, declared: StructType, column: str) -> pa.Array:
    if values.type.num_fields != len(declared.fields):
        raise unsupported_result(values.type, column, declared)
    children = [plain(values.field(i), f.type, column) for i, f in enumerate(declared.fields)]
    return struct_of(children, list(declared.arrow()), values)


def struct_of(children: list[pa.Array], fields: list[pa.Field], like: pa.StructArray) -> pa.StructArray:
    """A struct array with the length and the nulls of `like`, also when it has no fields at all."""
    if not children:
        return like
    return pa.StructArray.from_arrays(children, fields=fields, mask=null_mask(like))


def _micros(values: pa.TimestampArray, column: str) -> pa.Int64Array:
    unit = values.type.unit
    if unit == "us":
        return values.view(pa.int64())
    if unit == "ns":
        # Arrow's cast truncates towards zero; an instant before 1970 would move forward.
        micros = np.floor_divide(values.view(pa.int64()).fill_null(0).to_numpy(), 1000)
        return pa.array(micros, mask=np.asarray(values.is_null())) if values.null_count else pa.array(micros)
    try:
        return values.cast(pa.timestamp("us", values.type.tz)).view(pa.int64())
    except pa.ArrowInvalid as error:
        raise UserError("DATETIME_OVERFLOW", f"A value of result column `{column}` is out of range: {error}.") from None
