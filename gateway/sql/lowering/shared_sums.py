"""Sums of one column and different constants, from one sum and one count: ``sum(x + 3)`` is ``sum(x) + 3 * count(x)``.

Only where the columns' ranges and the number of rows show that neither a row nor a sum can overflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from gateway.sql.lowering.expressions import Lowering
from gateway.sql.typed.catalogue import BOUNDED
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import Agg, Call, Cast, Col, Expr, Lit, Op, lit
from gateway.sqltypes import BIGINT

_ENOUGH = 3  # two aggregates stand in for this many, and their additions


class _Term(NamedTuple):
    """What a sum adds up: a column and a number."""

    value: Expr
    number: int
    key: tuple[Any, ...]  # of what may share a sum


def lowered_aggregates(aggs: Sequence[Expr], lowering: Lowering) -> list[Expr]:
    """The engine-level forms of the aggregates of one GROUP BY."""
    terms = [_term(agg, lowering) for agg in aggs]
    uses = Counter(term.key for term in terms if term is not None)
    return [
        lowering.lower(agg) if term is None or uses[term.key] < _ENOUGH else _shared(agg, term, lowering)
        for agg, term in zip(aggs, terms, strict=True)
    ]


def _term(agg: Expr, lowering: Lowering) -> _Term | None:
    plain = isinstance(agg, Agg) and agg.fn == "sum" and agg.type == BIGINT and not agg.distinct and not agg.order
    if not plain or lowering.bounds is None:
        return None
    assert isinstance(agg, Agg)
    added = agg.args[0]
    while isinstance(added, Cast) and added.implicit:
        added = added.arg
    if not isinstance(added, Call) or added.fn not in ("+", "-") or len(added.args) != 2:
        return None
    value, number = added.args
    if added.fn == "+" and _integer(value) is not None:
        value, number = number, value
    found = _integer(number)
    column = value.arg if isinstance(value, Cast) and value.implicit else value
    if found is None or not isinstance(column, Col) or not lowering.bounds.sum_splits(agg, added, value, found):
        return None
    where = key(agg.where) if agg.where is not None else None
    return _Term(value, -found if added.fn == "-" else found, (key(value), where))


def _integer(e: Expr) -> int | None:
    while isinstance(e, Cast) and e.implicit:
        e = e.arg
    found = e.value if isinstance(e, Lit) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _shared(agg: Expr, term: _Term, lowering: Lowering) -> Expr:
    assert isinstance(agg, Agg)
    total = lowering.lower(replace(agg, args=(term.value,), data=(*agg.data, BOUNDED)))
    count = lowering.lower(Agg(BIGINT, False, "count", (term.value,), where=agg.where))
    times = Op(BIGINT, False, "*", (lit(term.number, BIGINT), count))
    return Op(BIGINT, True, "+", (total, times))
