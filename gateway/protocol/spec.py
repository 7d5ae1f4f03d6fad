"""Plans: what the codec knows of a generated Thrift class, taken from its `thrift_spec` once.

A generated spec is a tuple padded with None up to the highest field id (3,353 entries for ExecuteStatement); a plan is a
dict by field id. Plans are made on first use and shared by all threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

STOP, BOOL, BYTE, DOUBLE, I16, I32, I64 = 0, 2, 3, 4, 6, 8, 10
STRING, STRUCT, MAP, SET, LIST = 11, 12, 13, 14, 15

# Bytes of one value on the wire, for types whose size does not depend on the value.
FIXED: dict[int, int] = {BOOL: 1, BYTE: 1, I16: 2, I32: 4, I64: 8, DOUBLE: 8}
# The least number of bytes that one value of any type takes: what a declared count is checked against.
LEAST: dict[int, int] = {**FIXED, STRING: 4, STRUCT: 1, LIST: 5, SET: 5, MAP: 6}


class Field(NamedTuple):
    """One field: wire type, attribute name, and what its type needs.

    `arg` is True for text and False for binary (STRING), a `Plan` (STRUCT), `(type, arg)` (LIST, SET),
    `(key type, key arg, value type, value arg)` (MAP), else None.
    """

    ttype: int
    name: str
    arg: Any


@dataclass(slots=True, eq=False)
class Plan:
    """A generated class: `fields` by id (ascending), `nones` makes an instance with every field absent.

    `column` marks the TxxxColumn structs, whose `values` may stay undecoded.
    """

    cls: type[Any]
    fields: dict[int, Field]
    nones: tuple[None, ...]
    column: bool


_plans: dict[type[Any], Plan] = {}


def plan_of(cls: type[Any]) -> Plan:
    """The plan of a generated class."""
    known = _plans.get(cls)
    if known is not None:
        return known
    entries = [entry for entry in cls.thrift_spec if entry is not None]
    names = {entry[2] for entry in entries}
    plan = Plan(cls, {}, (None,) * len(entries), names == {"values", "nulls"})
    _plans[cls] = plan  # before its fields: a struct may contain itself
    for number, ttype, name, args, _default in sorted(entries, key=lambda entry: entry[0]):
        plan.fields[number] = Field(ttype, name, _argument(ttype, args))
    return plan


def _argument(ttype: int, args: Any) -> Any:
    """A `Field.arg` from the fourth member of a `thrift_spec` entry."""
    if ttype == STRING:
        return args != "BINARY"
    if ttype == STRUCT:
        return plan_of(args[0])
    if ttype in (LIST, SET):
        return args[0], _argument(args[0], args[1])
    if ttype == MAP:
        return args[0], _argument(args[0], args[1]), args[2], _argument(args[2], args[3])
    return None
