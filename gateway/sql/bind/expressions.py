"""Expressions: from the parsed tree to typed, bound expressions; one function per node class, children first."""

from __future__ import annotations

from sqlglot import exp

from gateway.sql.bind import calls, clauses, columns, leaves, operators, predicates, subqueries, windows
from gateway.sql.bind.binder import Rule
from gateway.sql.read.tree import IntervalLiteral, Positive, TypedLiteral

#: The function that binds a node, by its class.
RULES: dict[type, Rule] = {
    exp.Literal: leaves.literal,
    exp.Null: leaves.null,
    exp.Boolean: leaves.boolean,
    TypedLiteral: leaves.typed_literal,
    IntervalLiteral: leaves.interval,
    exp.Placeholder: leaves.placeholder,
    exp.Column: columns.column,
    exp.Dot: columns.dot,
    exp.Bracket: columns.bracket,
    exp.JSONExtract: columns.path,
    exp.Star: columns.star,
    **dict.fromkeys(operators.BINARY, operators.binary),
    **dict.fromkeys(operators.BITWISE, operators.bitwise),
    exp.NEQ: operators.not_equal,
    exp.DPipe: operators.concat,
    exp.And: operators.connective,
    exp.Or: operators.connective,
    exp.Not: operators.unary,
    exp.Neg: operators.unary,
    Positive: operators.unary,
    exp.BitwiseNot: operators.unary,
    exp.Case: operators.case,
    exp.Cast: operators.cast,
    exp.TryCast: operators.cast,
    exp.Is: predicates.is_,
    exp.In: predicates.in_,
    exp.Between: predicates.between,
    exp.Like: predicates.like,
    exp.ILike: predicates.like,
    exp.Escape: predicates.escape,
    exp.RegexpLike: predicates.rlike,
    exp.Exists: subqueries.exists,
    exp.Subquery: subqueries.scalar,
    exp.Tuple: calls.row_value,
    exp.Anonymous: calls.anonymous,
    exp.Extract: calls.extract,
    exp.Trim: calls.trim,
    exp.Filter: clauses.filtered,
    exp.WithinGroup: clauses.filtered,
    exp.IgnoreNulls: clauses.filtered,
    exp.RespectNulls: clauses.filtered,
    exp.Window: windows.window,
}
