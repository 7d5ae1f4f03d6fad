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


def test_arrays_and_maps(cursor: Any) -> None:
    try:
        cursor.execute("SELECT :a AS a", {"a": [1]})
    except exc.ServerOperationError as error:
        assert "ARRAY" in str(error) and "SQLSTATE: 0A000" in str(error)
        return
    cursor.execute("SELECT :a AS a, :m AS m", {"a": [1, 2, 3], "m": {"k": 1}})
    row = cursor.fetchone()
    assert (plain(row.a), plain(row.m)) == ([1, 2, 3], [("k", 1)])


def test_a_value_is_never_text_of_the_statement(cursor: Any) -> None:
    cursor.execute("SELECT ? AS v", ["1); DROP TABLE x; --"])
    assert cursor.fetchone()[0] == "1); DROP TABLE x; --"


def test_a_missing_parameter_is_named(cursor: Any) -> None:
    with pytest.raises(Exception, match=r"UNBOUND_SQL_PARAMETER.*p.*42P02"):
        cursor.execute("SELECT :p", {"q": 1})
