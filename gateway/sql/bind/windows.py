"""Window functions: OVER clauses, named windows and frames, checked as Spark's analysis does."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.instants import MICROS_PER_DAY, known_zone
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.clauses import wrapped
from gateway.sql.bind.scope import Scope
from gateway.sql.bind.sorting import sort_keys
from gateway.sql.read.tree import span_of
from gateway.sql.typed.nodes import Agg, Bound, Call, Col, Expr, Frame, Lit, SortKey, Window
from gateway.sql.typed.walk import contains
from gateway.sqltypes import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    IntervalType,
    interval,
    is_integral,
    is_numeric,
    is_orderable,
)

Node = exp.Expr
DAYS = interval("day")


def window(binder: Expressions, node: exp.Window, scope: Scope) -> Expr:
    function = wrapped(binder, node.this, scope, windowed=True)
    span = span_of(node)
    spec = node
    alias = node.args.get("alias")
    if alias is not None:
        named = binder.windows.get(alias.name)
        if named is None:
            raise UserError(
                "MISSING_WINDOW_SPECIFICATION",
                f"Window specification is not defined in the WINDOW clause for {alias.name}.",
                span=span,
            )
        spec = named
    partition = tuple(binder.bind(p, scope) for p in spec.args.get("partition_by") or ())
    for key in partition:
        if not is_orderable(key.type):
            message = f'A column expression cannot be sorted because its type "{key.type.sql}" is not orderable.'
            raise UserError("EXPRESSION_TYPE_IS_NOT_ORDERABLE", message, span=span)
    order_node = spec.args.get("order")
    order = tuple(sort_keys(binder, order_node.expressions, scope)) if order_node is not None else ()
    return _windowed(binder, function, partition, order, spec.args.get("spec"), scope, span)


def _windowed(
    binder: Expressions,
    function: Expr,
    partition: tuple[Expr, ...],
    order: tuple[SortKey, ...],
    spec: Node | None,
    scope: Scope,
    span: Span | None,
) -> Expr:
    row = binder.catalogue.get(function.fn) if isinstance(function, (Call, Agg)) else None
    if row is not None and row.kind == "generator":
        message = f"The generator is not supported: nested in the expression {row.name} OVER."
        raise UserError("UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS", message, span=span)
    if row is None or row.kind not in ("window", "aggregate"):
        raise UserError(
            "UNSUPPORTED_EXPR_FOR_WINDOW", "The expression is not supported within a window function.", span=span
        )
    if isinstance(function, Agg) and function.distinct:
        raise UserError(
            "DISTINCT_WINDOW_FUNCTION_UNSUPPORTED", "Distinct window functions are not supported.", span=span
        )
    ranking = row.kind == "window" and row.name not in ("first_value", "last_value", "nth_value", "any_value")
    if (ranking or row.name == "nth_value") and not order:
        raise UserError(
            "WINDOW_FUNCTION_FRAME_NOT_ORDERED",
            f"The window function {row.name} requires window to be ordered. Please add an ORDER BY clause.",
            span=span,
        )
    if ranking:
        unit = "RANGE" if row.name == "cume_dist" else "ROWS"
        if spec is not None and row.name not in ("lag", "lead"):
            given = _frame(binder, spec, order, scope, span)
            if given.unit != unit or given.start.kind != "unbounded" or given.end.kind != "current":
                raise UserError(
                    "WINDOW_FUNCTION_AND_FRAME_MISMATCH",
                    f"{row.name} function cannot be evaluated within the specified window frame.",
                    span=span,
                )
        elif spec is not None:
            raise UserError(
                "WINDOW_FUNCTION_AND_FRAME_MISMATCH",
                f"{row.name} cannot be evaluated on another window frame.",
                span=span,
            )
        frame = Frame(unit, Bound("unbounded", preceding=True), Bound("current"))
    elif spec is not None:
        frame = _frame(binder, spec, order, scope, span)
    elif order:
        frame = Frame("RANGE", Bound("unbounded", preceding=True), Bound("current"))
    else:
        frame = Frame("ROWS", Bound("unbounded", preceding=True), Bound("unbounded"))
    return Window(function.type, function.nullable, function, partition, order, frame)


def _frame(binder: Expressions, spec: Node, order: tuple[SortKey, ...], scope: Scope, span: Span | None) -> Frame:
    unit = spec.args["kind"].upper()
    start = _frame_bound(binder, spec.args["start"], spec.args.get("start_side"), unit, scope, span)
    end = _frame_bound(binder, spec.args["end"], spec.args.get("end_side"), unit, scope, span)
    if unit == "RANGE":
        offsets = [x for x in (start, end) if x.kind == "offset"]
        if not order and not (start.kind == "unbounded" and end.kind == "unbounded"):
            raise UserError(
                "DATATYPE_MISMATCH.RANGE_FRAME_WITHOUT_ORDER",
                "A range window frame cannot be used in an unordered window specification.",
                span=span,
            )
        if offsets and len(order) != 1:
            raise UserError(
                "DATATYPE_MISMATCH.RANGE_FRAME_MULTI_ORDER",
                "A range window frame with value boundaries cannot be used in a window specification with multiple "
                "order by expressions.",
                span=span,
            )
        if offsets:
            _check_range(binder, order[0].expr.type, [x.offset for x in offsets if x.offset is not None], span)
        for x in offsets if len(offsets) == 2 else ():  # both are evaluated, to be compared
            _check_offset(x, order[0].expr.type, span)
    if _rank(start) == float("inf") or _rank(end) == float("-inf"):
        raise UserError(
            "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_INVALID_BOUND",
            "The upper bound of a window frame does not follow its lower bound.",
            span=span,
        )
    if _rank(start) > _rank(end):
        if "current" in (start.kind, end.kind):  # Spark compares offsets alone, and finds no rows
            raise unsupported("a window frame without rows", span)
        raise UserError(
            "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WRONG_COMPARISON",
            "The lower bound of a window frame must be less than or equal to the upper bound.",
            span=span,
        )
    return Frame(unit, start, end)


def _frame_bound(
    binder: Expressions, bound: Any, side: str | None, unit: str, scope: Scope, span: Span | None
) -> Bound:
    preceding = (side or "").upper() == "PRECEDING"
    if bound == "UNBOUNDED":
        return Bound("unbounded", None, preceding)
    if bound == "CURRENT ROW":
        return Bound("current")
    value = binder.bind(bound, scope)
    if not isinstance(value, Lit) and not contains(value, Col):
        raise unsupported("a window frame bound other than a literal", span_of(bound) or span)
    if not isinstance(value, Lit):
        raise UserError(
            "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WITHOUT_FOLDABLE",
            "Window frame bound is not a foldable expression.",
            span=span,
        )
    if unit == "ROWS" and value.type != INT:
        raise UserError(
            "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE",
            f'The data type of a window frame bound "{value.type.sql}" does not match the expected data type "INT".',
            span=span,
        )
    if is_numeric(value.type) and value.value is not None and value.value < 0:
        return Bound("offset", Lit(value.type, False, -value.value), not preceding)
    return Bound("offset", value, preceding)


def _check_range(binder: Expressions, key: DataType, offsets: list[Lit], span: Span | None) -> None:
    """Raise where Spark does for offsets that do not fit the key; UNSUPPORTED_FEATURE for what the engine knows nothing of."""
    if key in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        if len({x.type for x in offsets}) > 1:
            raise UserError(
                "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_DIFF_TYPES",
                f'Window frame bounds do not have the same type: "{offsets[0].type.sql}" <> "{offsets[1].type.sql}".',
                span=span,
            )
        if not _fits_time(key, offsets[0].type):
            raise UserError(
                "DATATYPE_MISMATCH.RANGE_FRAME_INVALID_TYPE",
                f'The data type "{key.sql}" used in the order specification does not support the data type '
                f'"{offsets[0].type.sql}" which is used in the range frame.',
                span=span,
            )
        if all(_is_distance(binder, key, x) for x in offsets):
            return
    elif key in (STRING, BOOLEAN) and any(is_numeric(x.type) for x in offsets):
        raise UserError(
            "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE",
            f'The data type of a window frame bound "{key.sql}" does not match the expected data type '
            '"(NUMERIC or INTERVAL DAY TO SECOND or INTERVAL YEAR TO MONTH or INTERVAL)".',
            span=span,
        )
    elif all(_is_step(key, x.type) for x in offsets):
        return
    raise unsupported(f"a RANGE frame over {key.sql} with offsets like {offsets[0].type.sql}", span)


def _is_step(key: DataType, offset: DataType) -> bool:
    """Whether a number of type `offset` is the same one as a number of the key's type."""
    if is_integral(offset):
        return is_numeric(key)
    return key == DOUBLE and (offset == DOUBLE or isinstance(offset, DecimalType))


def _fits_time(key: DataType, offset: DataType) -> bool:
    if key == DATE:
        return offset == INT or (isinstance(offset, IntervalType) and (offset.is_year_month or offset == DAYS))
    return isinstance(offset, IntervalType)


def _is_distance(binder: Expressions, key: DataType, offset: Lit) -> bool:
    """Whether the bounds of all rows are equally far away: months are not, nor days where clocks change."""
    if offset.value is None or (isinstance(offset.type, IntervalType) and offset.type.is_year_month):
        return False
    if key == DATE:
        return offset.type != INT or abs(offset.value) < 1 << 30
    whole = key == TIMESTAMP and abs(offset.value) >= MICROS_PER_DAY
    return abs(offset.value) < 1 << 62 and not (whole and known_zone(binder.context.time_zone).region is not None)


def _check_offset(bound: Bound, key: DataType, span: Span | None) -> None:
    """Spark's cast of an offset to the type of the key, which follows a bound with its sign."""
    if not is_integral(key) or bound.offset is None or bound.offset.value is None:
        return
    most = (1 << (key.arrow().bit_width - 1)) - 1
    value = -bound.offset.value if bound.preceding else bound.offset.value
    if not -most - 1 <= value <= most:
        raise UserError(
            "CAST_OVERFLOW",
            f'The value {value} of the type "{bound.offset.type.sql}" cannot be cast to "{key.sql}" due to an overflow. Use '
            "`try_cast` to tolerate overflow and return NULL instead.",
            span=span,
        )


def _rank(bound: Bound) -> float:
    if bound.kind == "current":
        return 0
    if bound.kind == "unbounded":
        return float("-inf") if bound.preceding else float("inf")
    assert bound.offset is not None
    value = bound.offset.value
    amount = float(value) if isinstance(value, (int, float)) else 1.0
    return -amount if bound.preceding else amount
