"""Types of every operator and context over all pairs of types, against Spark's (tests/data/coercion.csv)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.errors import GatewayError
from gateway.sql.typed.coerce import can_store
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Call, Expr, Project
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    YEAR_MONTH,
    DataType,
    StructField,
    array,
    char,
    decimal,
    map_of,
    struct,
    varchar,
)
from tests.unit.sql.bind.analysis import analysed, failure

DATA = Path(__file__).parents[3] / "data" / "coercion.csv"
_SIMPLE = (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID)
_NESTED = (array(INT), map_of(STRING, INT), struct(StructField("a", INT)))
TYPES: dict[str, DataType] = {
    t.simple: t for t in (*_SIMPLE, *_NESTED, decimal(5, 2), decimal(38, 18), char(3), varchar(5), YEAR_MONTH, DAY_TIME)
}
COLUMNS = {name: f"c{i}" for i, name in enumerate(TYPES)}
TABLE = struct(*(StructField(COLUMNS[name], t) for name, t in TYPES.items() if t != VOID))

# Context -> its text over the operands {l} and {r}, or over the type names {L} and {R}.
TEXTS = {
    "add": "{l} + {r}",
    "sub": "{l} - {r}",
    "mul": "{l} * {r}",
    "div": "{l} / {r}",
    "mod": "{l} % {r}",
    "intdiv": "{l} div {r}",
    "eq": "{l} = {r}",
    "lt": "{l} < {r}",
    "nulleq": "{l} <=> {r}",
    "coalesce": "coalesce({l}, {r})",
    "case": "CASE WHEN true THEN {l} ELSE {r} END",
    "in": "{l} IN ({r})",
    "between": "{l} BETWEEN {r} AND {r}",
    "concat": "concat({l}, {r})",
    "union": "{l} FROM t UNION ALL SELECT {r}",
    "cast": "CAST({l} AS {R})",
    "try_cast": "TRY_CAST({l} AS {R})",
}
_COMPARED = ("eq", "lt", "nulleq", "in", "between")

# VARIANT is no type of the gateway: its rows and columns are left out by name.
UNKNOWN = ("variant",)


def rows() -> Iterator[dict[str, str]]:
    with DATA.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["left"] not in UNKNOWN and row["right"] not in UNKNOWN:
                yield row


def _operand(name: str) -> str:
    return "NULL" if name == "void" else COLUMNS[name]


def _compared_in(expr: Expr) -> DataType:
    """The type in which a bound comparison compares."""
    assert isinstance(expr, Call)
    first = expr.args[0]
    if expr.fn == "between":
        assert isinstance(first, Call)
        first = first.args[0]
    return first.type


def answer(context: str, left: str, right: str) -> str:
    """What analysis says, in the notation of the table."""
    text = TEXTS[context].format(l=_operand(left), r=_operand(right), R=right)
    try:
        query = analysed(f"SELECT {text} FROM t", {"t": TABLE})
    except GatewayError as error:
        return "!" + failure(error)
    type_ = plain(query.schema.fields[0].type).simple  # Spark's CHAR and VARCHAR are texts with their type beside them
    if context in _COMPARED:
        assert isinstance(query.rel, Project)
        return f"{type_}@{_compared_in(query.rel.exprs[0]).simple}"
    return type_


@pytest.mark.parametrize("context", list(TEXTS))
def test_coercion(context: str) -> None:
    expected = {(r["left"], r["right"]): r[context] for r in rows()}
    assert len(expected) == 22 * 22
    got = {pair: answer(context, *pair) for pair in expected}
    differ = [f"{a}, {b}: {want} / {got[a, b]}" for (a, b), want in expected.items() if got[a, b] != want]
    assert not differ, "\n".join(differ)


def test_store_assignment() -> None:
    expected = {(r["left"], r["right"]): r["store_assign"] == "ok" for r in rows() if r["right"] != "void"}
    got = {(left, right): can_store(TYPES[left], TYPES[right]) for left, right in expected}
    assert got == expected
