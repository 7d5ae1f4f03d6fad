"""to_json and from_json: values of types as JSON, and JSON as values of a type."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any

import pyarrow as pa

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.distinct import per_distinct
from gateway.engine.functions.json import ESCAPES, SPACE, TYPED, parsed, quoted, utf8, written
from gateway.engine.functions.numbers import java_double, java_float
from gateway.engine.functions.patterns import offset_text
from gateway.engine.functions.variants import json_of, told
from gateway.instants import date_text, known_zone, local_of, parse_date
from gateway.sqltypes import (
    TINYINT,
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
    is_integral,
    struct,
)
from gateway.variant_building import MalformedError, Members, OddError, Real, check_end, of_document
from gateway.variants import wrapped


def _writer(t: DataType, zone_name: str) -> Callable[[Any], str]:
    """A function that writes one non-NULL Arrow value of type `t` as Spark's to_json does."""
    if t.name == "STRING" or t.name in ("CHAR", "VARCHAR"):
        return quoted
    if t.name == "BOOLEAN":
        return lambda v: "true" if v else "false"
    if is_integral(t):
        return str
    if isinstance(t, DecimalType):
        return str  # as BigDecimal's text: with an exponent where more than five zeros stand behind the point
    if t.name in ("DOUBLE", "FLOAT"):
        text = java_double if t.name == "DOUBLE" else java_float
        return lambda v: text(v) if math.isfinite(v) else quoted(text(v))
    if t.name == "BINARY":
        return lambda v: quoted(base64.b64encode(v).decode("ascii"))
    if t.name == "DATE":
        return lambda v: quoted(date_text(v))
    if t.name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return _stamp_writer(t.name == "TIMESTAMP", zone_name)
    if t.name == "VOID":
        return lambda v: "null"
    if t == VARIANT:
        return partial(json_of, zone=known_zone(zone_name))
    if isinstance(t, ArrayType):
        item = _writer(t.element, zone_name)
        return lambda v: f"[{','.join('null' if x is None else item(x) for x in v)}]"
    if isinstance(t, MapType):
        value = _writer(t.value, zone_name)
        return lambda v: "{" + ",".join(f"{quoted(k)}:{'null' if x is None else value(x)}" for k, x in v) + "}"
    if isinstance(t, StructType):
        fields = [(f'"{f.name.translate(ESCAPES)}":', _writer(f.type, zone_name)) for f in t.fields]
        return lambda v: "{" + ",".join(k + w(x) for (k, w), x in zip(fields, v, strict=True) if x is not None) + "}"
    raise TypeError(t.sql)


def _stamp_writer(zoned: bool, zone_name: str) -> Callable[[int], str]:
    zone = known_zone(zone_name)

    def text(micros: int) -> str:
        local = local_of(micros, zone) if zoned else micros
        days, rest = divmod(local // 1000, 86_400_000)
        seconds, millis = divmod(rest, 1000)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis:03d}"
        suffix = ""
        if zoned:
            suffix = offset_text((local - micros) // 1_000_000, "X", 5)
        return quoted(f"{date_text(days)}T{clock}{suffix}")

    return text


def _plain_values(array: pa.Array, t: DataType) -> list[Any]:
    """Python values that the writers take: dates and timestamps as integers, structs as tuples."""
    if t.name == "DATE":
        return list(array.cast(pa.int32()).to_pylist())
    if t.name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return list(array.cast(pa.int64()).to_pylist())
    if isinstance(t, StructType):
        columns = [_plain_values(c, f.type) for c, f in zip(array.flatten(), t.fields, strict=True)]
        valid = array.is_valid().to_pylist()
        rows = zip(*columns, strict=True) if columns else iter([()] * len(array))
        return [row if ok else None for ok, row in zip(valid, rows, strict=True)]
    if isinstance(t, ArrayType):
        values = _plain_values(array.flatten(), t.element)
        return _regrouped(array, values)
    if isinstance(t, MapType):
        keys, items = _plain_values(array.keys, t.key), _plain_values(array.items, t.value)
        offsets = array.offsets.to_pylist()
        base = offsets[0]
        pairs = list(zip(keys, items, strict=True))
        valid = array.is_valid().to_pylist()
        return [
            pairs[a - base : b - base] if ok else None
            for ok, a, b in zip(valid, offsets[:-1], offsets[1:], strict=True)
        ]
    return list(array.to_pylist())


def _regrouped(array: pa.ListArray, values: list[Any]) -> list[Any]:
    out: list[Any] = []
    at = 0
    for size in array.value_lengths().to_pylist():
        if size is None:
            out.append(None)
        else:
            out.append(values[at : at + size])
            at += size
    return out


@implementation("to_json")
def to_json(spec: UdfSpec) -> Kernel:
    """to_json of an ARRAY, MAP or STRUCT; params: the session's time zone."""
    (zone_name,) = spec.params
    write = _writer(spec.args[0], zone_name)

    def kernel(value: pa.Array) -> pa.Array:
        rows = _plain_values(value, spec.args[0])
        return pa.array([None if row is None else write(row) for row in rows], pa.string())

    return kernel


CORRUPT = "_corrupt_record"  # the field of from_json's schema that is given a document which does not fit


class _MisfitError(Exception):
    """A JSON value that does not fit its type: NULL in PERMISSIVE mode."""


def _inner_reader(t: DataType, misfits: list[str]) -> Callable[[Any], Any]:
    """The same from any tree within another: null is NULL, but as a VARIANT, where it is a value."""
    read = _reader(t, misfits)
    return read if t == VARIANT else lambda v: None if v is None else read(v)


def _reader(t: DataType, misfits: list[str]) -> Callable[[Any], Any]:
    """A function from a non-null JSON tree to a Python value for Arrow type `t`; raises _MisfitError.

    Fields of structs that do not fit are NULL, and told in `misfits`.
    """
    if t.name == "STRING":
        return _read_string
    if t.name == "BOOLEAN":
        return lambda v: v if isinstance(v, bool) else _bad()
    if is_integral(t):
        half = 1 << (t.arrow().bit_width - 1)
        if t == TINYINT:  # Jackson takes bytes without a sign, too
            return lambda v: (v + half) % (2 * half) - half if type(v) is int and -half <= v < 2 * half else _bad()
        return lambda v: v if type(v) is int and -half <= v < half else _bad()
    if t.name in ("DOUBLE", "FLOAT"):
        return _read_float
    if isinstance(t, DecimalType):
        return _decimal_reader(t)
    if t.name == "DATE":
        return _read_date
    if t == VARIANT:
        return _read_variant
    if isinstance(t, ArrayType):
        item = _inner_reader(t.element, misfits)
        return lambda v: [item(x) for x in v] if isinstance(v, list) else _bad()
    if isinstance(t, MapType):
        value = _inner_reader(t.value, misfits)
        return lambda v: [(k, value(x)) for k, x in v.pairs] if isinstance(v, Members) else _bad()
    if isinstance(t, StructType):
        return _struct_reader(t, misfits)
    raise TypeError(t.sql)


def _bad() -> Any:
    raise _MisfitError


def _read_string(v: Any) -> str | None:
    return utf8(v if isinstance(v, str) else written(v))


def _read_float(v: Any) -> float:
    if isinstance(v, Real):
        return float(v.text)
    if type(v) is int:
        return float(v)
    special = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
    special |= {"+INF": math.inf, "-INF": -math.inf}
    return special[v] if isinstance(v, str) and v in special else _bad()


def _decimal_reader(t: DecimalType) -> Callable[[Any], Decimal]:
    limit = Decimal(10) ** (t.precision - t.scale)
    step = Decimal(1).scaleb(-t.scale)
    context = Context(prec=100)

    def read(v: Any) -> Decimal:
        text = v.text if isinstance(v, Real) else v.replace(",", "") if isinstance(v, str) else v
        if isinstance(v, bool) or not isinstance(text, (int, str)) or not set(str(text)) <= set("0123456789+-.eE"):
            raise _MisfitError
        try:
            value = Decimal(text).quantize(step, rounding=ROUND_HALF_UP, context=context)
        except InvalidOperation:
            raise _MisfitError from None
        if abs(value) >= limit:
            raise _MisfitError
        return value

    return read


def _read_date(v: Any) -> int:
    if not isinstance(v, str):
        raise _MisfitError
    days = parse_date(v)
    if days is None or len(v) != 10:
        raise RowError("UNSUPPORTED_FEATURE", f"from_json of '{v}' as DATE is not supported.")
    return days


def _read_variant(v: Any) -> str:
    try:
        return wrapped(*of_document(v))
    except MalformedError:  # a name is there twice
        raise _MisfitError from None
    except OddError as error:
        raise told(error) from None


def _struct_reader(t: StructType, misfits: list[str]) -> Callable[[Any], Any]:
    readers = {f.name: (f.name, _inner_reader(f.type, misfits)) for f in t.fields}

    def read(v: Any) -> dict[str, Any]:
        if not isinstance(v, Members):
            raise _MisfitError
        row: dict[str, Any] = dict.fromkeys(readers)
        for key, value in v.pairs:
            known = readers.get(key)
            if known is None:
                continue
            try:
                row[known[0]] = known[1](value)
            except _MisfitError:  # an earlier member of the same name stays
                misfits.append(key)
        return row

    return read


@implementation("from_json")
def from_json(spec: UdfSpec) -> Kernel:
    """from_json in PERMISSIVE mode: a document that does not fit is a struct of NULLs, or NULL for arrays and maps."""
    target = spec.returns
    returns = target.arrow()
    misfits: list[str] = []
    nothing, readable = None, target
    if isinstance(target, StructType):
        nothing = dict.fromkeys(f.name for f in target.fields)
        readable = struct(*(f for f in target.fields if f.name != CORRUPT))
    corrupt = nothing is not None and CORRUPT in nothing
    read = _reader(readable, misfits)

    def convert(text: str) -> Any:
        if not text.strip():
            return None
        misfits.clear()
        found = nothing
        try:
            tree = parsed(text, TYPED)
            if target == VARIANT and not isinstance(tree, (str, list, Members)):
                start = len(text) - len(text.lstrip(SPACE))
                check_end(text, start, TYPED.raw_decode(text, start)[1])
            if isinstance(target, ArrayType) and isinstance(target.element, StructType) and isinstance(tree, Members):
                tree = [tree]
            if tree is not None or target == VARIANT:
                found = read(tree)
            elif corrupt:
                misfits.append(text)
        except OddError as error:
            raise told(error) from None
        except (ValueError, _MisfitError):
            misfits.append(text)
        return {**found, CORRUPT: text if misfits else None} if corrupt and found is not None else found

    def kernel(value: pa.Array) -> pa.Array:
        return per_distinct(convert, (value,), returns)

    return kernel
