"""Keys of ORDER BY … LIMIT over rows that come in sides: those of a UNION ALL, the partitions of a table.

The engine (DataFusion 55) sorts each side by itself, leaves out the keys that are constant there, and drops what comes after
the last row that any side has kept, by the keys that are left: rows of a side that the others would put first are lost.
Where a key may be constant in a side, all are written so that they are constant together or not at all, and then no side is
sorted. None of them is part of another: a scan is told of such keys with columns that it does not have.

Remove when `SortExec` shares no filter between sides whose keys it has left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Lit, Rel, SortKey
from gateway.sql.typed.walk import inputs_of, read_by


def kept_keys(rel: Rel, keys: Sequence[SortKey]) -> list[SortKey]:
    """The lowered `keys` of a sort that stands in `rel`, below projections, as a LIMIT above may have them."""
    exprs = [k.expr for k in keys if not isinstance(k.expr, Lit)]
    if len(exprs) < 2 or not _is_dealt(rel):
        return list(keys)
    while isinstance(rel, b.Project):
        rel = rel.input
    if all(_varies(rel, e) for e in exprs):
        return list(keys)
    return [k if isinstance(k.expr, Lit) else replace(k, expr=_beside(k.expr, exprs)) for k in keys]


def _beside(key: b.Expr, exprs: Sequence[b.Expr]) -> b.Expr:
    return b.udf("beside", key.type, key, *(e for e in exprs if e is not key), nullable=key.nullable)


def _is_dealt(rel: Rel) -> bool:
    """Whether rows come in sides that may have constants of their own; groups are dealt out anew."""
    if isinstance(rel, b.SetOp) and rel.kind == "union" and rel.all:
        return True
    if isinstance(rel, b.Scan):
        return any(name in rel.table.partition_columns for name in rel.sources)
    if isinstance(rel, (b.Distinct, b.Aggregate)):
        return False
    return any(map(_is_dealt, (rel.cte.plan,) if isinstance(rel, b.CteRef) else inputs_of(rel)))


def _varies(rel: Rel, expr: b.Expr) -> bool:
    """Whether the engine knows `expr` for no constant of each side: a column of a table or a range that no condition reads."""
    if not isinstance(expr, Col):
        return False
    places = [i for i, c in enumerate(rel.columns) if c.id == expr.id]
    if isinstance(rel, b.Sort):
        return _varies(rel.input, expr)
    if isinstance(rel, b.Filter):
        return not _reads(rel.condition, expr) and _varies(rel.input, expr)
    if isinstance(rel, b.Join):
        return not _reads(rel.condition, expr) and any(_varies(side, expr) for side in (rel.left, rel.right))
    if not places:
        return False
    if isinstance(rel, b.Project):
        return _varies(rel.input, rel.exprs[places[0]])
    if isinstance(rel, b.CteRef):
        return _varies(rel.cte.plan, rel.cte.plan.columns[places[0]])
    if isinstance(rel, b.SetOp):
        return rel.kind == "union" and any(_varies(side, side.columns[places[0]]) for side in rel.inputs)
    if isinstance(rel, b.Scan):
        return rel.sources[places[0]] not in rel.table.partition_columns
    return isinstance(rel, b.Range)


def _reads(condition: b.Expr | None, column: Col) -> bool:
    return condition is not None and column.id in read_by(condition)
