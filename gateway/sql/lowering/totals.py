"""Sums beside DISTINCT, whose type the engine would change under what stands over them.

It computes DISTINCT by two aggregates, the second of which has sums of sums: over decimals those are of a wider type than the
first, which its functions of ours then do not take ("single_distinct_aggregation_to_group_by failed", DataFusion 55).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.sql.functions.lowerings import engine_cast
from gateway.sql.typed.nodes import AggFn, Expr
from gateway.sql.typed.walk import nodes, rebuilt_engine
from gateway.sqltypes import MAX_PRECISION, DecimalType, decimal

_WIDER = 10  # digits that a sum has more than what it adds up


def beside_distinct(aggregates: Sequence[Expr]) -> list[Expr]:
    """Lowered aggregates of one GROUP BY, with sums of the widest decimals if one of them is DISTINCT."""
    if any(isinstance(n, AggFn) and n.distinct for a in aggregates for n in nodes(a)):
        return [_widest(a) for a in aggregates]
    return list(aggregates)


def _widest(e: Expr) -> Expr:
    if not isinstance(e, AggFn):
        return rebuilt_engine(e, _widest)
    if e.name == "sum" and not e.distinct and isinstance(e.type, DecimalType) and e.type.precision < MAX_PRECISION:
        most = decimal(MAX_PRECISION, e.type.scale)
        value = engine_cast(e.args[0], decimal(MAX_PRECISION - _WIDER, e.type.scale))
        return engine_cast(replace(e, type=most, args=(value, *e.args[1:])), e.type)
    return e
