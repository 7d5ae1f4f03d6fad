"""Values of every SQL type: hypothesis strategies, and a slow, obvious text form to hold the vectorised ones against."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from gateway import sqltypes as t
from gateway.floats import float_text

UNTIMED = settings(deadline=None)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)

ATOMS: tuple[t.DataType, ...] = (
    t.VOID, t.BOOLEAN, t.TINYINT, t.SMALLINT, t.INT, t.BIGINT, t.FLOAT, t.DOUBLE, t.decimal(10, 2), t.decimal(38, 18),
    t.STRING, t.varchar(20), t.char(3), t.BINARY, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ, t.YEAR_MONTH, t.DAY_TIME,
    t.interval("month"), t.interval("hour", "second"), t.interval("day"),
)  # fmt: skip

MICROS = st.integers(
    (datetime(1, 1, 2, tzinfo=UTC) - EPOCH) // TICK, (datetime(9999, 12, 30, tzinfo=UTC) - EPOCH) // TICK
) | st.integers(-5, 4000).map(lambda s: s * 1_000_000 * 86400)
DAYS = st.integers((date(1, 1, 1) - date(1970, 1, 1)).days, (date(9999, 12, 31) - date(1970, 1, 1)).days)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.text('"\\\n\t\x01a', max_size=5)


def _bits(width: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (width - 1)), 2 ** (width - 1) - 1)


def _decimals(kind: t.DecimalType) -> st.SearchStrategy[Decimal]:
    top = 10**kind.precision - 1
    return (st.integers(-top, top) | st.integers(-20, 20)).map(lambda v: Decimal(f"{v}e-{kind.scale}"))


_STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "VOID": st.none(),
    "BOOLEAN": st.booleans(),
    "TINYINT": _bits(8),
    "SMALLINT": _bits(16),
    "INT": _bits(32),
    "BIGINT": _bits(64),
    "FLOAT": st.floats(width=32) | st.integers(-5, 10).map(float),
    "DOUBLE": st.floats() | st.integers(-5, 10**9).map(float),
    "STRING": TEXTS,
    "VARCHAR": TEXTS,
    "CHAR": TEXTS,
    "BINARY": st.binary(max_size=8),
    "DATE": DAYS,
    "TIMESTAMP": MICROS,
    "TIMESTAMP_NTZ": MICROS,
    "INTERVAL YEAR TO MONTH": _bits(32),
    "INTERVAL DAY TO SECOND": _bits(64),
}


def values_of(kind: t.DataType) -> st.SearchStrategy[Any]:
    """Values of `kind` or None, in the form in which `pa.array(values, kind.arrow())` takes them."""
    inner: st.SearchStrategy[Any]
    if isinstance(kind, t.DecimalType):
        inner = _decimals(kind)
    elif isinstance(kind, t.ArrayType):
        inner = st.lists(values_of(kind.element), max_size=3)
    elif isinstance(kind, t.MapType):
        keys = values_of(kind.key).filter(lambda key: key is not None)
        inner = st.lists(st.tuples(keys, values_of(kind.value)), max_size=3, unique_by=lambda pair: repr(pair[0]))
    elif isinstance(kind, t.StructType):
        inner = st.fixed_dictionaries({f.name: values_of(f.type) for f in kind.fields})
    else:
        inner = _STRATEGIES[kind.name]
    return st.none() | inner


_KEYS = st.sampled_from([a for a in ATOMS if a.name not in ("VOID", "DOUBLE", "FLOAT")])


def _containers(inner: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.DataType]:
    names = st.lists(TEXTS.filter(bool), min_size=1, max_size=3, unique=True)
    structs = names.flatmap(
        lambda ns: st.tuples(*(inner for _ in ns)).map(
            lambda kinds: t.struct(*(t.StructField(n, k) for n, k in zip(ns, kinds, strict=True)))
        )
    )
    return inner.map(t.array) | st.tuples(_KEYS, inner).map(lambda kv: t.map_of(*kv)) | structs


KINDS: st.SearchStrategy[t.DataType] = st.recursive(st.sampled_from(ATOMS), _containers, max_leaves=4)


@st.composite
def columns(draw: st.DrawFn, kinds: st.SearchStrategy[t.DataType] = KINDS) -> tuple[t.DataType, list[Any]]:
    """A type and a list of its values."""
    kind = draw(kinds)
    return kind, draw(st.lists(values_of(kind), max_size=12))


def array_of(kind: t.DataType, values: list[Any]) -> pa.Array:
    """The internal Arrow array of `values`."""
    return pa.array(values, kind.arrow())


def java_number(value: float, kind: type[np.floating]) -> str:
    """`Double.toString` / `Float.toString`, one by one."""
    return float_text(float(kind(value)), 53 if kind is np.float64 else 24)


def timestamp(micros: int, zone: str | None) -> str:
    """``YYYY-MM-DD HH:MM:SS[.ffffff]`` by the standard library."""
    instant = EPOCH + timedelta(microseconds=micros)
    local = instant.astimezone(ZoneInfo(zone)) if zone else instant
    text = f"{local.year:04}-{local.month:02}-{local.day:02} {local:%H:%M:%S}"
    return text + (f".{local.microsecond:06}".rstrip("0") if local.microsecond else "")


def interval(value: int, kind: t.IntervalType, literal: bool) -> str:
    """Interval text by divmod."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    if kind.is_year_month:
        if not literal:
            return f"{sign}{size // 12}-{size % 12}"
        body = {"year": f"{size // 12}", "month": f"{size}"}[kind.start]
        return f"INTERVAL '{sign}{body if kind.start == kind.end else f'{size // 12}-{size % 12}'}' {_units(kind)}"
    if not literal:
        seconds, micros = divmod(size, 10**6)
        days, clock = divmod(seconds, 86400)
        return f"{sign}{days} {clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}.{micros:06}000"
    units = t.DAY_TIME_UNITS[t.DAY_TIME_UNITS.index(kind.start) : t.DAY_TIME_UNITS.index(kind.end) + 1]
    text, rest = "", size
    for unit in units:
        step = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}[unit] * 10**6
        count, rest = divmod(rest, step)
        text += ("" if unit == kind.start else " " if unit == "hour" else ":") + (
            f"{count}" if unit == "day" else f"{count:02}"
        )
    if kind.end == "second" and rest:
        text += f".{rest:06}".rstrip("0")
    return f"INTERVAL '{sign}{text}' {_units(kind)}"


def _units(kind: t.IntervalType) -> str:
    return kind.sql.removeprefix("INTERVAL ")


_SCALARS: dict[str, Callable[[Any], str]] = {
    "BOOLEAN": lambda v: "true" if v else "false",
    "FLOAT": lambda v: java_number(v, np.float32),
    "DOUBLE": lambda v: java_number(v, np.float64),
    "DECIMAL": lambda v: f"{v:f}",
    "DATE": lambda v: (date(1970, 1, 1) + timedelta(days=v)).isoformat(),
    "TIMESTAMP_NTZ": lambda v: timestamp(v, None),
}


def text(value: Any, kind: t.DataType, zone: str, *, wire: bool, nested: bool = False) -> str | None:
    """What `display` must make of one value."""
    if value is None:
        return "null" if nested else None
    if isinstance(kind, t.ArrayType):
        return "[" + _comma(wire).join(_inner(v, kind.element, zone, wire) for v in value) + "]"
    if isinstance(kind, t.MapType):
        entries = [(text(k, kind.key, zone, wire=wire, nested=True) or "", k, v) for k, v in value]
        if wire:
            entries.sort(key=lambda entry: _raw_key(entry[1], entry[0]))
        between = ":" if wire else " -> "
        return "{" + _comma(wire).join(k + between + _inner(v, kind.value, zone, wire) for k, _, v in entries) + "}"
    if isinstance(kind, t.StructType):
        labels = [json.dumps(f.name, ensure_ascii=False) + ":" if wire else "" for f in kind.fields]
        parts = [
            label + _inner(value[f.name], f.type, zone, wire) for label, f in zip(labels, kind.fields, strict=True)
        ]
        return "{" + _comma(wire).join(parts) + "}"
    if isinstance(kind, t.IntervalType):
        return interval(value, kind, literal=not wire)
    if kind.name == "TIMESTAMP":
        return timestamp(value, zone)
    if kind.name == "BINARY":
        return f'"{base64.b64encode(value).decode()}"' if wire else value.decode()
    if t.is_string(kind):
        return json.dumps(value, ensure_ascii=False) if wire and nested else value
    return _SCALARS.get(kind.name, str)(value)


def _raw_key(key: Any, shown: str) -> bytes:
    return (key if isinstance(key, str) else shown).encode()


def _comma(wire: bool) -> str:
    return "," if wire else ", "


def _inner(value: Any, kind: t.DataType, zone: str, wire: bool) -> str:
    return text(value, kind, zone, wire=wire, nested=True) or ""
