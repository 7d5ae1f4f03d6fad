"""table_changes(): the name of a table in a text, and the versions or moments between which its changes are asked for."""

from __future__ import annotations

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.instants import known_zone, parse_timestamp
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.scope import Scope
from gateway.sql.functions.fold import fold
from gateway.sql.read.commands import parse_expression
from gateway.sql.read.tree import span_of
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.nodes import Lit
from gateway.sqltypes import BIGINT, INT, STRING, TIMESTAMP, DataType

NAME = "table_changes"
Bound = tuple[str, int]


def changes_asked(
    call: exp.Anonymous, expressions: Expressions, context: Context
) -> tuple[list[str], Bound, Bound | None]:
    """The parts of the table's name, and where the changes begin and end; None for the newest version."""
    span = span_of(call)
    if not 2 <= len(call.expressions) <= 3 or any(isinstance(arg, exp.Kwarg) for arg in call.expressions):
        text = f"The `{NAME}` requires [2, 3] parameters but the actual number is {len(call.expressions)}."
        raise UserError("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", text, span=span)
    name = expressions.bind(call.expressions[0], Scope())
    if not isinstance(name, Lit) or name.type != STRING or name.value is None:
        raise _type_refused(name.type, "table name", "StringType literal", span)
    parts = _parts(name.value, span)
    bounds = []
    for arg, word in zip(call.expressions[1:], ("starting", "ending"), strict=False):
        found = expressions.bind(arg, Scope())
        literal = fold(found, context)
        if literal is None:
            raise unsupported(f"this {word} option of {NAME}", span_of(arg))
        bounds.append(_bound(literal, word, context, span_of(arg)))
    return parts, bounds[0], bounds[1] if len(bounds) > 1 else None


def _parts(text: str, span: Span | None) -> list[str]:
    tree = parse_expression(text)
    if not isinstance(tree, exp.Column) or any(not isinstance(part, exp.Identifier) for part in tree.parts):
        raise UserError("PARSE_SYNTAX_ERROR", f"Syntax error in the table name '{text}'.", span=span)
    parts = [part.name for part in tree.parts]
    if len(parts) > 3 or any("/" in part for part in parts):
        raise unsupported(f"{NAME} of this name", span)
    return parts


def _bound(given: Lit, word: str, context: Context, span: Span | None) -> Bound:
    if given.value is None:
        text = "CDC read start/end parameters cannot be null. Please provide a valid version or timestamp."
        raise UserError("DELTA_CDC_READ_NULL_RANGE_BOUNDARY", text, span=span)
    if given.type in (INT, BIGINT):
        if given.value < 0:
            raise unsupported(f"a negative version in {NAME}", span)
        return "version", int(given.value)
    if given.type == TIMESTAMP:
        return "timestamp", int(given.value)
    if given.type == STRING:
        moment = parse_timestamp(given.value, known_zone(context.time_zone))
        if moment is None:
            text = f"The provided timestamp ('{given.value}') cannot be converted to a valid timestamp."
            raise UserError("DELTA_TIMESTAMP_INVALID", text, span=span)
        return "timestamp", moment
    raise _type_refused(given.type, f"{word} option", "IntegerType,LongType,StringType,TimestampType", span)


def _type_refused(given: DataType, what: str, known: str, span: Span | None) -> UserError:
    text = f"Unsupported expression type({given.sql}) for {what}. The supported types are [{known}]."
    return UserError("DELTA_UNSUPPORTED_EXPRESSION", text, span=span)
