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


@pytest.mark.parametrize(
    ("value", "kind"),
    [([1, 2, 3], "ARRAY"), ([["x"], []], "ARRAY"), ([], "ARRAY"), (["x", None], "ARRAY"), ({"k": 1}, "MAP")],
    ids=repr,
)
@pytest.mark.parametrize("named", [True, False])
def test_arrays_and_maps_are_refused_by_name(cursor: Any, value: Any, kind: str, named: bool) -> None:
    statement, parameters = ("SELECT :v AS v", {"v": value}) if named else ("SELECT ? AS v", [value])
    with pytest.raises(
        exc.ServerOperationError, match=rf"^\[UNSUPPORTED_FEATURE\] a parameter of type {kind} "
    ) as caught:
        cursor.execute(statement, parameters)
    assert "SQLSTATE: 0A000" in str(caught.value)
    assert cursor.execute("SELECT :v AS v", {"v": 7}).fetchone()[0] == 7


def test_a_value_is_never_text_of_the_statement(cursor: Any) -> None:
    cursor.execute("SELECT ? AS v", ["1); DROP TABLE x; --"])
    assert cursor.fetchone()[0] == "1); DROP TABLE x; --"


def test_a_missing_parameter_is_named(cursor: Any) -> None:
    with pytest.raises(Exception, match=r"UNBOUND_SQL_PARAMETER.*p.*42P02"):
        cursor.execute("SELECT :p", {"q": 1})
