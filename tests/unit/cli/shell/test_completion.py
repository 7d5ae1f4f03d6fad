"""What is offered where one types."""

from __future__ import annotations

import pytest

from gateway.cli.shell.completion import Names
from gateway.protocol.client import Client


def never() -> Client:
    raise AssertionError("nothing is asked")


@pytest.fixture
def names() -> Names:
    known = Names(never)
    known.tables = frozenset(
        {
            ("main", "default", "trips"),
            ("main", "sales", "orders"),
            ("samples", "tpch", "region"),
            ("main", "default", "odd name"),
        }
    )
    known.columns = {("main", "default", "trips"): ("fare", "from place"), ("main", "sales", "orders"): ("total",)}
    known.functions = ("concat", "count", "to_date")
    return known


@pytest.mark.parametrize(
    ("before", "offered"),
    [
        ("SELECT * FROM tr", ["trips"]),
        ("SELECT * FROM `o", ["`odd name`"]),
        ("SELECT * FROM sal", ["sales"]),
        ("SELECT * FROM sales.", ["sales.orders"]),
        ("SELECT * FROM samples.tp", ["samples.tpch"]),
        ("\\d samples.tpch.", ["samples.tpch.region"]),
        ("\\d", ["\\dn", "\\dt", "\\dv", "\\df", "\\d", "\\ddl", "\\dh"]),
        ("SELECT co", ["concat", "count", "COLUMNS", "COMMENT"]),
        (
            "SELECT * FROM trips WHERE f",
            ["fare", "`from place`", "FALSE", "FILTER", "FIRST", "FROM", "FULL", "FUNCTIONS"],
        ),
        ("SELECT trips.fa", ["trips.fare"]),
        ("SELECT ", []),
        ("SELECT zzz", []),
    ],
)
def test_offers(names: Names, before: str, offered: list[str]) -> None:
    found = list(names.offered(before, "main.default"))
    assert [text for text, _ in found] == offered
    word = before.split(" ")[-1]
    assert all(start == -len(word) for _, start in found)
