"""The allow-list: every node class and argument of a tree that may reach the binder, checked in one walk.

The parser makes only what its grammar knows; this is the second lock. A class or a set argument that is not listed is refused
with its SQL words, so neither a new parser rule nor a new sqlglot release can pass something on unseen.
"""

from __future__ import annotations

from sqlglot import exp

from gateway.errors import unsupported
from gateway.sql.read.tree import (
    Clustered,
    Distributed,
    IntervalLiteral,
    Pivot,
    Positive,
    TypedLiteral,
    Unpivot,
    UnsignedRightShift,
    span_of,
)

_BINARY = frozenset({"this", "expression"})
_UNARY = frozenset({"this"})
_LIST = frozenset({"expressions"})
_TAIL = frozenset({"with_", "order", "windows", "around", "limit", "offset"})
_SET = _TAIL | {"this", "expression", "distinct"}

ALLOWED: dict[type[exp.Expr], frozenset[str]] = {
    # literals, names
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Null: frozenset(),
    exp.Boolean: _UNARY,
    TypedLiteral: frozenset({"this", "kind"}),
    IntervalLiteral: frozenset({"parts", "to"}),
    exp.Placeholder: _UNARY,
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Var: _UNARY,
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Dot: _BINARY,
    exp.Star: frozenset({"except_"}),
    # operators
    **dict.fromkeys(
        (
            *(exp.And, exp.Or, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Add, exp.Sub),
            *(exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
            *(exp.BitwiseLeftShift, exp.BitwiseRightShift, UnsignedRightShift, exp.Is, exp.Like, exp.ILike),
            *(exp.Escape, exp.RegexpLike),
        ),
        _BINARY,
    ),
    **dict.fromkeys((exp.Not, exp.Neg, Positive, exp.BitwiseNot, exp.Exists, exp.Any, exp.All), _UNARY),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Cast: frozenset({"this", "to", "dcolon"}),
    exp.TryCast: frozenset({"this", "to", "dcolon"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true"}),
    exp.Bracket: frozenset({"this", "expressions"}),
    exp.JSONExtract: frozenset({"this", "expression"}),
    exp.Tuple: _LIST,
    # calls
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Distinct: _LIST,
    exp.Kwarg: _BINARY,
    exp.Lambda: frozenset({"this", "expressions"}),
    exp.Extract: _BINARY,
    exp.Trim: frozenset({"this", "expression", "position"}),
    exp.WithinGroup: _BINARY,
    exp.Filter: _BINARY,
    exp.IgnoreNulls: _UNARY,
    exp.RespectNulls: _UNARY,
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "alias"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    # queries
    exp.Select: _TAIL
    | {"expressions", "distinct", "from_", "joins", "laterals", "where", "group", "having", "qualify"},
    exp.Union: _SET,
    exp.Intersect: _SET,
    exp.Except: _SET,
    exp.Subquery: _TAIL | {"this", "alias", "joins"},
    exp.Values: _TAIL | {"expressions", "alias"},
    exp.With: frozenset({"expressions", "recursive"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.From: _UNARY,
    exp.Where: _UNARY,
    exp.Having: _UNARY,
    exp.Qualify: _UNARY,
    exp.Group: frozenset({"expressions", "grouping_sets", "all"}),
    exp.Rollup: _LIST,
    exp.Cube: _LIST,
    exp.GroupingSets: _LIST,
    exp.Order: _LIST,
    Distributed: _UNARY,
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    Clustered: _UNARY,
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Aliases: frozenset({"this", "expressions"}),
    # relations
    exp.Table: frozenset({"this", "db", "catalog", "version", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Version: frozenset({"this", "kind", "expression"}),
    exp.Lateral: frozenset({"this", "view", "outer", "alias"}),
    exp.Join: frozenset({"this", "side", "kind", "method", "on", "using"}),
    Pivot: frozenset({"this", "expressions", "columns", "values", "alias"}),
    Unpivot: frozenset({"this", "values", "name", "columns", "nulls", "alias"}),
}

# Nodes without nodes below them.
_LEAVES = {kind: ALLOWED[kind] for kind in (exp.Identifier, exp.Literal)}

# SQL words of what the parser can make and nobody here can answer.
_WORDS: dict[type[exp.Expr], str] = {
    exp.Collate: "COLLATE",
}


def check(tree: exp.Expr) -> None:
    """Raise UNSUPPORTED_FEATURE at the first node (in reading order) that is not on the allow-list."""
    stack: list[exp.Expr] = [tree]
    while stack:
        node = stack.pop()
        allowed = ALLOWED.get(type(node))
        if allowed is None:
            words = _WORDS.get(type(node), type(node).__name__.upper())
            raise unsupported(words, span_of(node))
        first = len(stack)
        for key, value in node.args.items():
            if not value:
                continue
            if key not in allowed:
                raise unsupported(f"{key.strip('_').upper()} of {type(node).__name__.upper()}", span_of(node))
            for item in value if isinstance(value, list) else (value,):
                keys = _LEAVES.get(type(item))
                if keys is not None and item.args.keys() <= keys:
                    continue
                # A look into the list first: `isinstance` of an abstract class is slow.
                if type(item) in ALLOWED or isinstance(item, exp.Expr):
                    stack.append(item)
        stack[first:] = stack[first:][::-1]
