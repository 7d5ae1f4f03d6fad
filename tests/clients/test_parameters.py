"""Named and positional parameters of every type that the connector sends."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from databricks.sql import exc

from tests.clients.test_types import plain

VALUES: tuple[Any, ...] = (
    True,
    1,
    -(2**31),
    2**40,
    1.5,
    'it\'s a \\ "text" -- ; /* */',
    "",
    "数据砖",
    Decimal("-0.5"),
    Decimal("12345678901234567890.123"),
    dt.date(2024, 2, 29),
    dt.datetime(2024, 2, 29, 1, 2, 3, 678, tzinfo=dt.UTC),
    None,
)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_positional(cursor: Any, value: Any) -> None:
    cursor.execute("SELECT ? AS v, ? AS w", [value, 7])
    assert [plain(v) for v in cursor.fetchone()] == [value, 7]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_named(cursor: Any, value: Any) -> None:
    cursor.execute("SELECT :v AS v, :other AS w, :v AS again", {"v": value, "other": 7, "unused": "x"})
    assert [plain(v) for v in cursor.fetchone()] == [value, 7, value]


def test_inside_a_query(cursor: Any) -> None:
    cursor.execute("SELECT id FROM range(100) WHERE id BETWEEN :low AND :high ORDER BY id", {"low": 10, "high": 12})
    assert [r[0] for r in cursor.fetchall()] == [10, 11, 12]


# As Spark answers for the functions array and map over the same values.
COLLECTIONS: tuple[tuple[Any, str, str], ...] = (
    ([1, 2, 3], "array<int>", "[1, 2, 3]"),
    ([1, 2**40], "array<bigint>", "[1, 1099511627776]"),
    (["x", None], "array<string>", "[x, null]"),
    ([None], "array<void>", "[null]"),
    ([], "array<void>", "[]"),
    ([["x"], []], "array<array<string>>", "[[x], []]"),
    ([1, 1.5], "array<double>", "[1.0, 1.5]"),
    ([Decimal("1.5"), Decimal("10.25")], "array<decimal(4,2)>", "[1.50, 10.25]"),
    ([dt.date(2024, 2, 29)], "array<date>", "[2024-02-29]"),
    (['it\'s \\ "x"'], "array<string>", '[it\'s \\ "x"]'),
    ({"k": 1}, "map<string,int>", "{k -> 1}"),
    ({"k": 1, "l": None}, "map<string,int>", "{k -> 1, l -> null}"),
    ({"k": [1, None]}, "map<string,array<int>>", "{k -> [1, null]}"),
)


@pytest.mark.parametrize(("value", "type", "text"), COLLECTIONS, ids=lambda x: repr(x))
@pytest.mark.parametrize("named", [True, False])
def test_arrays_and_maps(cursor: Any, value: Any, type: str, text: str, named: bool) -> None:
    v = ":v" if named else "?"
    cursor.execute(f"SELECT typeof({v}) AS t, CAST({v} AS STRING) AS s", {"v": value} if named else [value, value])
    assert tuple(cursor.fetchone()) == (type, text)


def test_arrays_in_conditions(cursor: Any) -> None:
    cursor.execute("SELECT id FROM range(10) WHERE array_contains(:ids, id) ORDER BY id", {"ids": [2, 5, 50]})
    assert [r[0] for r in cursor.fetchall()] == [2, 5]
    cursor.execute("SELECT :m['b'] AS v, size(:m) AS n", {"m": {"a": 1, "b": 2}})
    assert tuple(cursor.fetchone()) == (2, 2)


@pytest.mark.parametrize(
    ("condition", "parameters", "found"),
    [
        ("c LIKE :p", {"p": "a%"}, ["abc", "a_c", "a\\c"]),
        ("c LIKE :p", {"p": "a\\_c"}, ["a_c"]),
        ("c LIKE :p", {"p": "a\\\\c"}, ["a\\c"]),
        ("c LIKE :p ESCAPE '!'", {"p": "a!_c"}, ["a_c"]),
        ("c NOT LIKE :p", {"p": "a%"}, ["ABC"]),
        ("c ILIKE :p", {"p": "aB%"}, ["abc", "ABC"]),
        ("c RLIKE :p", {"p": "^a.c$"}, ["abc", "a_c", "a\\c"]),
        ("c LIKE ANY (:p, :q)", {"p": "A%", "q": "%b%"}, ["abc", "ABC"]),
        ("c LIKE ALL (:p, :q)", {"p": "a%", "q": "%b%"}, ["abc"]),
        ("c LIKE concat(:p, '%')", {"p": "ab"}, ["abc"]),
        ("c LIKE :p", {"p": None}, []),
        ("c LIKE :p", {"p": "%\\"}, None),
    ],
)
def test_parameters_as_patterns(cursor: Any, condition: str, parameters: dict[str, Any], found: Any) -> None:
    sql = f"SELECT c FROM VALUES ('abc'), ('a_c'), ('a\\\\c'), ('ABC') AS t(c) WHERE {condition}"
    if found is None:
        with pytest.raises(exc.ServerOperationError, match="INVALID_FORMAT"):
            cursor.execute(sql, parameters).fetchall()
        return
    assert sorted(r[0] for r in cursor.execute(sql, parameters).fetchall()) == sorted(found)


def test_too_deep_a_parameter_is_refused(cursor: Any) -> None:
    value: Any = 1
    for _ in range(40):
        value = [value]
    with pytest.raises(exc.DatabaseError, match="more than 64 levels of nesting"):
        cursor.execute("SELECT :v", {"v": value})
    assert cursor.execute("SELECT :v AS v", {"v": 7}).fetchone()[0] == 7


def test_a_value_is_never_text_of_the_statement(cursor: Any) -> None:
    cursor.execute("SELECT ? AS v", ["1); DROP TABLE x; --"])
    assert cursor.fetchone()[0] == "1); DROP TABLE x; --"


def test_a_missing_parameter_is_named(cursor: Any) -> None:
    with pytest.raises(Exception, match=r"UNBOUND_SQL_PARAMETER.*p.*42P02"):
        cursor.execute("SELECT :p", {"q": 1})


def test_a_map_without_entries_is_refused_by_name(cursor: Any) -> None:
    with pytest.raises(exc.ServerOperationError, match="A map without entries"):
        cursor.execute("SELECT :v AS v", {"v": {}})
