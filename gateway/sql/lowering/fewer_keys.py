"""GROUP BY without the keys that others determine: ``GROUP BY day, year(day)`` has the groups of ``GROUP BY day``.

Those are computed over the groups, which are fewer than the rows, and nothing is hashed or compared for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gateway.sql.lowering.expressions import Lowering
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import is_steady
from gateway.sql.typed.nodes import Call, Col, Expr, Project
from gateway.sql.typed.walk import has_outer, nodes, read_by, substituted
from gateway.sqltypes import DOUBLE, FLOAT, VOID, is_nested


def with_fewer_keys(rel: b.Aggregate, lowering: Lowering) -> Project | None:
    """The rows of `rel` from fewer keys; None where none is determined by the columns among the others."""
    if rel.sets is not None or len(rel.keys) < 2:
        return None
    settling: dict[int, Expr] = {}  # what stands above for a column below
    for key, column in zip(rel.keys, rel.columns, strict=False):
        if isinstance(key, Col) and _is_one_value(key):
            settling.setdefault(key.id, column)
    settled = {at for at, key in enumerate(rel.keys) if _is_settled(key, settling, lowering)}
    if not settled:
        return None
    kept = [at for at in range(len(rel.columns)) if at not in settled]
    keys = tuple(key for at, key in enumerate(rel.keys) if at not in settled)
    groups = replace(rel, columns=tuple(rel.columns[at] for at in kept), keys=keys)
    exprs = (substituted(rel.keys[at], settling) if at in settled else column for at, column in enumerate(rel.columns))
    return Project(rel.columns, groups, tuple(exprs))


def _is_one_value(key: Col) -> bool:
    """Whether rows of one group have the same value, and not only an equal one, as both zeros are."""
    return not is_nested(key.type) and key.type not in (FLOAT, DOUBLE, VOID)


def _is_settled(key: Expr, settling: Mapping[int, Expr], lowering: Lowering) -> bool:
    read = read_by(key)
    if isinstance(key, Col) or not read or not read <= settling.keys():
        return False
    if has_outer(key) or any(isinstance(p, b.Subquery) or (isinstance(p, Call) and p.fn[0] == "_") for p in nodes(key)):
        return False
    return is_steady(key, lowering.catalogue) and not lowering.raises(lowering.lower(key))
