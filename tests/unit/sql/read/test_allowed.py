"""Nodes and arguments that binding does not know never pass it unseen: they are refused by name and place."""

from __future__ import annotations

import pytest
from sqlglot import exp

from gateway.errors import Span, UnsupportedError
from gateway.sql.read import allowed
from tests.unit.sql.read.trees import parse_query


def test_a_plain_query_passes() -> None:
    allowed.check(
        parse_query("WITH a AS (SELECT 1 x) SELECT count(*) FROM a JOIN b USING (x) GROUP BY ROLLUP (x) LIMIT 1")
    )


def test_an_unknown_node_is_refused_by_name_and_place() -> None:
    query = parse_query("SELECT a, b FROM t")
    node = exp.CurrentDate()
    node.meta.update(start=10, end=10)
    query.set("expressions", [query.expressions[0], node])
    with pytest.raises(UnsupportedError, match="CURRENTDATE is not supported") as caught:
        allowed.check(query)
    assert caught.value.span == Span(10, 11)


def test_an_unknown_argument_is_refused_but_its_default_is_not() -> None:
    query = parse_query("SELECT a FROM t")
    query.set("hint", None)
    query.set("kind", "")
    allowed.check(query)
    query.set("hint", exp.Hint(expressions=[]))
    with pytest.raises(UnsupportedError, match="HINT of SELECT"):
        allowed.check(query)


def test_the_first_in_reading_order_is_named() -> None:
    with pytest.raises(UnsupportedError, match="COLLATE") as caught:
        allowed.check(parse_query("SELECT b, a COLLATE x, c COLLATE y FROM t"))
    assert caught.value.span == Span(10, 21)


def test_every_listed_argument_exists() -> None:
    """A key that sqlglot renames would make its check a dead letter."""
    ours = {"dcolon", "around"}
    for kind, keys in allowed.ALLOWED.items():
        known = set(kind.arg_types)
        if issubclass(kind, exp.Values):
            known |= {"with_", "windows", "sort", "distribute", "cluster"}
        assert keys - ours <= known, kind
