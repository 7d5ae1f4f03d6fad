"""Expressions that a table keeps as text: whoever wrote them into its log is given no more than the row that they are of."""

from __future__ import annotations

from sqlglot import exp

from gateway.errors import UserError, unsupported
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.scope import Scope
from gateway.sql.read.commands import parse_expression
from gateway.sql.typed.catalogue import is_generator
from gateway.sql.typed.nodes import Agg, Expr, Window
from gateway.sql.typed.walk import contains

NOT_ALLOWED = "EXPRESSION_NOT_ALLOWED"
_SHOWN = 200  # characters of a text


def kept_expression(text: str, scope: Scope, expressions: Expressions) -> Expr:
    """The bound form of a constraint, or of what a column is computed from.

    Raises UserError EXPRESSION_NOT_ALLOWED for one that reads other tables, UnsupportedError for one that is not of one row, or
    of what the statement was given.
    """
    found = expressions.bind(kept_tree(text), scope)
    if contains(found, Agg) or contains(found, Window) or is_generator(found, expressions.catalogue):
        raise unsupported(f"an expression of a table that is not of one row ({shown(text)})")
    return found


def kept_tree(text: str) -> exp.Expr:
    """The same, only parsed. Raises as that does, but for what is not of one row."""
    tree = parse_expression(text)
    if tree.find(exp.Query, exp.Exists) is not None:
        raise reads_tables(text)
    if tree.find(exp.Placeholder) is not None:
        raise unsupported(f"a parameter in an expression of a table ({shown(text)})")
    return tree


def shown(text: str) -> str:
    """A text as errors show it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def reads_tables(text: str) -> UserError:
    """The error for one of several tables."""
    told = f"The table's log holds an expression that would read other tables ({shown(text)}): it is not evaluated."
    return UserError(NOT_ALLOWED, told)
