"""The types of VARIANT values, one for each value and one that several share, as schema_of_variant tells them."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import pyarrow as pa

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, implementation
from gateway.engine.functions.distinct import scalar
from gateway.engine.functions.variants import told, unwrapped_value
from gateway.variant_building import Document, MalformedError, Members, OddError
from gateway.variants import document_of, scalar_of

# A type: the name of a scalar one, or a list of DECIMAL, precision and scale, of ARRAY and its element, of OBJECT and pairs of
# names and types in the order of the names. What JSON can hold, so that types are handed on as texts.
Schema = Any
_VOID, _ANY = "VOID", "VARIANT"
_LONG = ["DECIMAL", 20, 0]
_MOST = 38
_NUMBERS = ("BIGINT", "FLOAT", "DOUBLE")  # the later one holds the earlier
_TIMES = ("DATE", "TIMESTAMP_NTZ", "TIMESTAMP")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_DIGITS = frozenset("0123456789")


@scalar("variant_schema")
def variant_schema(value: str, shown: bool) -> str:
    """The type of a VARIANT: as Spark shows it, or to be met with others by `variant_schemas`."""
    try:
        schema = _of(document_of(*unwrapped_value(value)))
    except (MalformedError, OddError) as error:
        raise told(error) from None
    return _shown(schema) if shown else json.dumps(schema)


@implementation("variant_schemas")
def variant_schemas(_: UdfSpec) -> Kernel:
    """The type that those of a list have in common, as Spark shows it; VOID of none."""

    def shared(schemas: list[str] | None) -> str:
        known = [json.loads(text) for text in sorted(schemas or ())]
        found = reduce(_met, known, _VOID)
        if found != reduce(_met, reversed(known), _VOID):  # names in upper and lower case: the first one counts
            raise told(OddError("a type that depends on the order of rows"))
        return _shown(found)

    def kernel(array: pa.Array) -> pa.Array:
        return pa.array([shared(schemas) for schemas in array.to_pylist()], pa.string())

    return kernel


def _of(document: Document) -> Schema:
    if isinstance(document, Members):
        return ["OBJECT", [[name, _of(inner)] for name, inner in document.pairs]]
    if isinstance(document, list):
        element: Schema = _VOID
        for inner in document:
            element = _met(element, _of(inner))
            if element == _ANY:
                break
        return ["ARRAY", element]
    name, value = scalar_of(document)
    if name != "DECIMAL":
        return name
    _, digits, exponent = value.as_tuple()
    scale = max(-exponent, 0)
    return ["DECIMAL", max(len(digits) + max(exponent, 0), scale), scale]


def _met(one: Schema, other: Schema) -> Schema:
    """The type of values of two types: VARIANT if they have nothing in common."""
    tightest = _tightest(one, other)
    if tightest is not None:
        return tightest
    kinds = {_kind(one), _kind(other)}
    if kinds <= {"DECIMAL", "BIGINT"}:
        return _decimals(_LONG if one == "BIGINT" else one, _LONG if other == "BIGINT" else other)
    if kinds in ({"DECIMAL", "DOUBLE"}, {"DECIMAL", "FLOAT"}):
        return "DOUBLE"
    if kinds == {"ARRAY"}:
        return ["ARRAY", _met(one[1], other[1])]
    if kinds == {"OBJECT"}:
        fields, more = dict(one[1]), dict(other[1])
        both = {name: _met(fields.get(name, _VOID), more.get(name, _VOID)) for name in {**fields, **more}}
        return ["OBJECT", [[name, both[name]] for name in sorted(both)]]
    return _ANY


def _kind(schema: Schema) -> str:
    return schema if isinstance(schema, str) else str(schema[0])


def _tightest(one: Schema, other: Schema) -> Schema | None:
    """The type that two have in common without a value of either becoming another; names of fields in either case are one."""
    if one == other or other == _VOID:
        return one
    if one == _VOID:
        return other
    for family in (_NUMBERS, _TIMES):
        if one in family and other in family:
            return max(one, other, key=lambda known: family.index(str(known)))
    kinds = {_kind(one), _kind(other)}
    if kinds == {"ARRAY"}:
        element = _tightest(one[1], other[1])
        return None if element is None else ["ARRAY", element]
    if kinds == {"OBJECT"} and len(one[1]) == len(other[1]):
        pairs = list(zip(one[1], other[1], strict=True))
        if all(a.lower() == b.lower() for (a, _), (b, _) in pairs):
            types = [_tightest(a, b) for (_, a), (_, b) in pairs]
            if None not in types:
                return ["OBJECT", [[name, found] for (name, _), found in zip(one[1], types, strict=True)]]
    return None


def _decimals(one: Schema, other: Schema) -> Schema:
    scale = max(one[2], other[2])
    precision = max(one[1] - one[2], other[1] - other[2]) + scale
    return "DOUBLE" if precision > _MOST else ["DECIMAL", precision, scale]


def _shown(schema: Schema) -> str:
    if isinstance(schema, str):
        return schema
    kind = schema[0]
    if kind == "DECIMAL":
        return f"DECIMAL({schema[1]},{schema[2]})"
    if kind == "ARRAY":
        return f"ARRAY<{_shown(schema[1])}>"
    return f"OBJECT<{', '.join(f'{_quoted(name)}: {_shown(found)}' for name, found in schema[1])}>"


def _quoted(name: str) -> str:
    if name and name[0] in _LETTERS and _LETTERS.union(_DIGITS).issuperset(name):
        return name
    return f"`{name.replace('`', '``')}`"
