"""In which order Spark evaluates the operands of a call, and which of them a NULL spares.

Most expressions of Spark give NULL as soon as an operand is NULL, without evaluating the ones after it: an error that one of
those would raise is never seen. What evaluates all its operands (concat, greatest, struct, …) is not listed here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gateway.sql.functions.fold import fold
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import Agg, Call, Case, Cast, Col, Expr, Fn, Lambda, LambdaVar, Lit, Udf
from gateway.sql.typed.walk import children, has_columns, nodes, rebuilt
from gateway.sqltypes import BINARY, BOOLEAN, DOUBLE, INT, VOID, ArrayType, DecimalType, is_fractional, is_nested

#: What looks at elements with a lambda, and the connective that it is.
DECIDING = {"exists": "or", "forall": "and"}
_REPEATED = 60  # nodes of operands of which one is written twice
_WRITTEN = 16  # elements that are looked at one by one

# fmt: off
# What Spark rewrites as CASE or COALESCE, or evaluates lazily in another way: an operand may never be needed.
CONDITIONAL = frozenset((
    "if", "coalesce", "nvl", "nvl2", "nullif", "zeroifnull", "nullifzero", "nanvl", "decode", "right", "regexp_substr",
    "count_if", "typeof",
))
# From the first operand to the last.
_FORWARD = frozenset((
    "+", "-", "*", "=", "<", ">", "<=", ">=", "&", "|", "^", "<<", ">>", ">>>", "like", "ilike", "rlike", "regexp",
    "regexp_like", "_array_item", "_map_item", "_interval_add", "_interval_sub", "_interval_mul", "_interval_div",
    "_sub_dates", "_sub_timestamps", "_date_add_days", "_date_add_months", "_date_add_micros", "_ts_add_micros",
    "_ts_add_months", "_ntz_add_micros", "_ntz_add_months", "add_months", "array_append", "array_contains", "array_except",
    "array_insert", "array_intersect", "array_join", "array_position", "array_prepend", "array_remove", "array_union",
    "arrays_overlap", "atan2", "bit_get", "btrim", "conv", "convert_timezone", "date_add", "date_diff",
    "date_format", "date_sub", "date_trunc", "dateadd", "datediff", "element_at", "find_in_set",
    "format_number", "from_unixtime", "from_utc_timestamp", "get", "getbit", "hypot", "instr", "left", "levenshtein", "log",
    "make_date", "make_dt_interval", "make_timestamp", "make_timestamp_ltz", "make_timestamp_ntz", "make_ym_interval",
    "map_contains_key", "map_from_arrays", "months_between", "next_day", "overlay", "pow", "power", "regexp_count",
    "regexp_extract", "regexp_extract_all", "regexp_instr", "regexp_replace", "regexp_substr", "repeat", "replace", "right",
    "sequence", "sha2", "shiftleft", "shiftright", "shiftrightunsigned", "slice", "split", "split_part",
    "str_to_map", "substr", "substring", "substring_index", "timediff", "timestampadd", "timestampdiff", "to_date",
    "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "to_unix_timestamp", "to_utc_timestamp", "translate", "try_add",
    "try_element_at", "try_make_timestamp", "try_make_timestamp_ltz", "try_make_timestamp_ntz", "try_multiply",
    "try_subtract", "try_to_date", "try_to_timestamp", "unix_timestamp", "width_bucket", "sort_array", "to_char",
    "to_varchar", "to_number", "try_to_number",
))
# A divisor before what is divided, a count before what is repeated; trim(characters FROM text) begins with the text.
_BACKWARD = frozenset((
    "/", "%", "div", "pmod", "try_divide", "try_mod", "trunc", "array_repeat", "trim", "ltrim", "rtrim",
))

# Listed above, but what Spark's optimizer does not know to be NULL as soon as an operand is.
_NOT_STRICT = frozenset((
    "array_append", "array_insert", "array_join", "array_prepend", "array_repeat", "btrim", "concat", "date_trunc",
    "locate", "ltrim", "nullif", "rtrim", "sequence", "to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz",
    "to_unix_timestamp", "trim", "trunc", "try_to_date", "try_to_timestamp", "unix_timestamp", "zip_with",
))
_STRICT_OF_TWO = frozenset(("decode", "levenshtein"))  # a third operand may be NULL, or is a branch
# So those of texts; of BINARY they evaluate all their operands.
_FORWARD_OF_TEXTS = frozenset(("contains", "endswith", "lpad", "rpad", "startswith"))
# Evaluate all their operands, and are known to be NULL as those above.
_INVOKED = frozenset(("decode", "encode", "parse_url", "try_parse_url"))
# Evaluate all their operands, but in generated code only as far as none is NULL.
_THOROUGH = frozenset(("arrays_zip", "concat"))

# Only a NULL in the first operand spares the others.
_BY_FIRST = frozenset(("aggregate", "format_string", "printf", "reduce"))
# One in the first or the second spares what comes behind it.
_BY_TWO = frozenset(("map_zip_with", "nullif", "zip_with"))

#: NULL where an operand raises, if one of them is no number: `data` tells that behind the operator.
TRIED = frozenset(("try_add", "try_divide", "try_mod", "try_multiply", "try_subtract"))

# Their result is NULL only where an operand is: to know one, it is enough to know what they are made of.
_NULL_BY_OPERAND = frozenset((
    "+", "-", "*", "/", "%", "div", "pmod", "=", "<", ">", "<=", ">=", "&", "|", "^", "<<", ">>", ">>>", "not", "negative",
    "positive", "~", "abs", "upper", "lower", "length", "char_length", "octet_length", "date_add", "date_sub", "datediff",
    "year", "month", "day", "hour", "minute", "second", "_interval_add", "_interval_sub", "_sub_dates", "_sub_timestamps",
))

# Spark computes their argument once, and only for rows that FILTER lets through; what needs it twice computes it before.
_ONCE = frozenset((
    "sum", "min", "max", "count", "first", "last", "any_value", "collect_list", "collect_set", "array_agg", "bool_and",
    "bool_or", "every", "some", "bit_and", "bit_or", "bit_xor", "median", "mode", "percentile", "percentile_approx",
    "approx_percentile", "approx_count_distinct", "listagg", "string_agg", "regr_count", "max_by", "min_by",
))
# fmt: on


#: What asks whether its operand is NULL, and what it says of one that never is.
NULL_TESTS = {"is null": False, "isnull": False, "is not null": True, "isnotnull": True}


def certain(expr: Expr) -> bool | None:
    """What Spark knows a condition for without evaluating it: a test for NULL of what never is, a column beside itself."""
    if isinstance(expr, Lit) and expr.type == BOOLEAN:
        told: bool | None = expr.value
        return told
    if not isinstance(expr, Call):
        return None
    if expr.fn in ("and", "or"):
        parts = [certain(a) for a in expr.args]
        decisive = expr.fn == "or"
        return decisive if decisive in parts else None if None in parts else not decisive
    if expr.fn == "not":
        inner = certain(expr.args[0])
        return None if inner is None else not inner
    if any(a.nullable for a in expr.args):
        return None
    if expr.fn in ("=", "<=>"):
        left, right = expr.args
        return True if isinstance(left, Col) and isinstance(right, Col) and left.id == right.id else None
    return NULL_TESTS.get(expr.fn)


#: What `truth` says of a condition that is not told while compiling.
UNKNOWN = "unknown"
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def truth(expr: Expr, context: Context) -> bool | str | None:
    """What a condition without columns is: true, false, NULL (None) or `UNKNOWN`."""
    if isinstance(expr, Lit):
        return None if expr.value is None else bool(expr.value)
    if not isinstance(expr, Call):
        return UNKNOWN
    if expr.fn in ("and", "or", "between", "not"):
        parts = [truth(a, context) for a in expr.args]
        if UNKNOWN in parts:
            return UNKNOWN
        if expr.fn == "not":
            return None if parts[0] is None else not parts[0]
        decisive = expr.fn == "or"
        return decisive if decisive in parts else None if None in parts else not decisive
    values = [fold(a, context) for a in expr.args]
    found = [v for v in values if v is not None]
    if len(found) < len(values):
        return UNKNOWN
    if expr.fn in NULL_TESTS:
        return (found[0].value is None) is not NULL_TESTS[expr.fn]
    if expr.fn == "in":
        equal = [truth(Call(expr.type, True, "=", (found[0], item)), context) for item in found[1:]]
        return UNKNOWN if UNKNOWN in equal else True if True in equal else None if None in equal else False
    if expr.fn not in (*_COMPARED, "<=>") or is_nested(found[0].type):
        return UNKNOWN
    left, right = (v.value for v in found)
    if left is None or right is None:
        return (left is None and right is None) if expr.fn == "<=>" else None
    if is_fractional(found[0].type):
        if found[0].type != DOUBLE or not (isinstance(left, float) and isinstance(right, float)):
            return UNKNOWN
        left, right = ((math.isnan(v), 0.0 if math.isnan(v) else v) for v in (left, right))  # NaN is the largest
    return _COMPARED["=" if expr.fn == "<=>" else expr.fn](left, right)


def simplified(expr: Expr, context: Context) -> Expr:
    """`expr` with a literal or column for what conditions without columns choose; the same object if there is none.

    Of a branch that is computed Spark has tried to know the value before, and lets it be if that failed.
    """
    expr = rebuilt(expr, lambda e: simplified(e, context)) if children(expr) else expr
    chosen = _chosen(expr, context)
    if chosen is not expr and not isinstance(chosen, (Col, Lit)):
        chosen = fold(chosen, context) or chosen
    return chosen if isinstance(chosen, (Col, Lit)) else expr


def is_nothing(expr: Expr, context: Context) -> bool:
    """Whether a constant is NULL, as far as that is known while compiling."""
    return _is_nothing(simplified(expr, context), context)


def _is_nothing(plain: Expr, context: Context) -> bool:
    """The same of what is simplified."""
    known = fold(plain, context) if plain.nullable else None
    return known is not None and known.value is None


def _chosen(expr: Expr, context: Context) -> Expr:
    if isinstance(expr, Call):
        choice = _CHOICES.get(expr.fn)
        return expr if choice is None else choice(expr, context)
    if not isinstance(expr, Case):
        return expr
    left = [(truth(c, context), (c, v)) for c, v in expr.whens]
    left = [(told, when) for told, when in left if told is True or told == UNKNOWN]
    if left and left[0][0] is True:
        return left[0][1][1]
    if not left:
        return expr.otherwise if expr.otherwise is not None else Lit(expr.type, True, None)
    return expr


def _branch(call: Call, context: Context) -> Expr:
    told = truth(call.args[0], context)
    return call if told == UNKNOWN else call.args[1 if told is True else 2]


def _first(call: Call, context: Context) -> Expr:
    left = tuple(a for a in call.args if not _is_nothing(a, context)) or call.args[:1]  # simplified before
    return left[0] if len(left) == 1 or not left[0].nullable else call


def _by_null(call: Call, context: Context) -> Expr:
    known = fold(call.args[0], context)
    return call if known is None else call.args[2 if known.value is None else 1]


def _unless_equal(call: Call, context: Context) -> Expr:
    left, right, *kept = call.args
    told = truth(Call(BOOLEAN, True, "=", (left, right)), context)
    return call if told == UNKNOWN else Lit(call.type, True, None) if told is True else (*kept, left)[0]


def _unless_zero(call: Call, context: Context) -> Expr:
    value, *kept = call.args
    return _unless_equal(replace(call, args=(value, Cast(value.type, False, Lit(INT, False, 0)), *kept)), context)


#: What a conditional call of constants chooses; the call itself where that is not known while compiling.
_CHOICES: dict[str, Callable[[Call, Context], Expr]] = {
    "if": _branch, "coalesce": _first, "nvl": _first, "nvl2": _by_null, "nullif": _unless_equal, "nullifzero": _unless_zero,
    "_array_item": lambda call, _: written_item(call) or call,
}  # fmt: skip
#: The calls that may come to one of their operands.
CHOOSING = frozenset((*CONDITIONAL, *_CHOICES, "and", "or"))


def agreed(expr: Expr) -> Expr | None:
    """What a conditional gives in all its branches, if that is one expression: Spark's optimizer asks for no condition then."""
    if isinstance(expr, Case):
        given = [*(v for _, v in expr.whens), expr.otherwise]
    elif isinstance(expr, Call) and expr.fn in ("if", "nvl2"):
        given = list(expr.args[1:])
    elif isinstance(expr, Call) and expr.fn == "decode" and len(expr.args) > 2:
        given = [*expr.args[2::2], expr.args[-1] if len(expr.args) % 2 == 0 else None]
    else:
        return None
    values = [Lit(expr.type, True, None) if v is None or is_written_null(v) else _only(v) for v in given]
    return values[0] if all(key(v) == key(values[0]) for v in values) else None


def _only(expr: Expr) -> Expr:
    """What coalesce comes to where all of its other operands are written NULLs."""
    while isinstance(expr, Call) and expr.fn in ("coalesce", "nvl"):
        left = [a for a in expr.args if not is_written_null(a)]
        if len(left) != 1 or left[0].type != expr.type:
            break
        expr = left[0]
    return expr


def absorbed(terms: Sequence[Expr], symbol: str) -> list[Expr]:
    """The operands of an AND or OR but for those that say no more than another one: ``a AND (b OR a)`` is ``a`` to Spark."""
    other = "or" if symbol == "and" else "and"
    parts = [frozenset(map(key, _operands(t, other))) for t in terms]
    kept: list[int] = []
    for i, part in enumerate(parts):
        if not any(p <= part and (p < part or k < i) for k, p in enumerate(parts)):
            kept.append(i)
    return [terms[i] for i in kept]


def _operands(expr: Expr, symbol: str) -> list[Expr]:
    if not isinstance(expr, Call) or expr.fn != symbol:
        return [expr]
    return [part for arg in expr.args for part in _operands(arg, symbol)]


def written_item(call: Call) -> Expr | None:
    """The element that ``array(a, b, …)[1]`` is, which Spark's optimizer puts in its place."""
    if call.fn != "_array_item" or not isinstance(call.args[0], Call) or call.args[0].fn != "array":
        return None
    items, index = call.args[0].args, call.args[1]
    known = isinstance(index, Lit) and index.value is not None and 0 <= index.value < len(items)
    return items[index.value] if known and isinstance(index, Lit) else None


def unread_constants(call: Call, item: Expr) -> list[Expr]:
    """The constants in elements that `written_item` leaves out: Spark computes them before it knows that nobody reads them."""
    found: list[Expr] = []
    open_ = [e for e in children(call.args[0]) if e is not item]
    while open_:
        one = open_.pop()
        if not has_columns(one):
            found.append(one)
        elif not isinstance(one, Case) and not (isinstance(one, Call) and one.fn in (*CONDITIONAL, "and", "or")):
            open_ += children(one)
    return found


def has_known_null(lowered: Sequence[Expr], row_by_row: bool) -> bool:
    """Whether the engine may know that one of some lowered operands is NULL, and so drop the others; `row_by_row` as of
    `operands`: Spark then simplifies no conditional, which the engine does."""
    if any(e.nullable and not has_columns(e) for e in lowered):
        return True
    parts = [(e, nodes(e)) for e in lowered] if row_by_row else []
    if sum(len(inside) for _, inside in parts) > _REPEATED:
        return False
    return any(e.nullable and any(_chooses(p) for p in inside) for e, inside in parts)


def _chooses(lowered: Expr) -> bool:
    return isinstance(lowered, Case) or (isinstance(lowered, Fn) and lowered.name in ("coalesce", "nullif"))


def is_written_null(expr: Expr) -> bool:
    """Whether it is NULL as it is written, of whatever type."""
    while isinstance(expr, Cast):
        expr = expr.arg
    return isinstance(expr, Lit) and expr.value is None


def operands(call: Call, raising: Sequence[int], row_by_row: bool) -> Sequence[int]:
    """The operands in Spark's order, each evaluated only where none before it is NULL; empty if all are evaluated anyway.

    Args:
        raising: those that may raise; of the others nobody sees whether they are evaluated.
        row_by_row: whether Spark computes them while it plans, so not by the code that it generates.
    """
    fn, args = call.fn, call.args
    if fn in _BY_FIRST:
        return (0, *(k for k in raising[-1:] if k))
    if fn in _FORWARD or (fn in _THOROUGH and not row_by_row) or (fn == "concat" and isinstance(call.type, ArrayType)):
        return range(len(args))
    if fn in _BACKWARD:
        return range(len(args) - 1, -1, -1)
    if fn in _BY_TWO or (fn == "locate" and isinstance(args[-1], Lit) and args[-1].value is not None):
        return range(2)
    return range(len(args)) if fn in _FORWARD_OF_TEXTS and args[0].type != BINARY else ()


def is_strict(call: Call) -> bool:
    """Whether Spark's optimizer puts NULL in the place of a call that has NULL among its operands."""
    if call.fn in _NOT_STRICT or (call.fn in _STRICT_OF_TWO and len(call.args) != 2):
        return False
    return call.fn in _FORWARD or call.fn in _BACKWARD or call.fn in _INVOKED or call.fn in _FORWARD_OF_TEXTS


def is_null_by(call: Call, place: int) -> bool:
    """Whether a call is NULL by its operand at `place`, though no optimizer says so."""
    return call.fn in _THOROUGH or (call.fn == "concat_ws" and place == 0)


def is_key(expr: Expr) -> bool:
    """Whether the conjunct may be the key of a join: an equality of what both have columns."""
    return isinstance(expr, Call) and expr.fn == "=" and all(map(has_columns, expr.args))


def is_random(part: Expr) -> bool:
    """Whether an engine-level call gives another value each time."""
    return isinstance(part, Fn) and part.name in ("random", "uuid")


def is_told(part: Expr) -> bool:
    """Whether it raises an error of the statement's own words."""
    return isinstance(part, Udf) and part.impl in ("raise_error", "assert_true")


def null_by(expr: Expr) -> dict[int, Expr] | None:
    """The columns and lambda variables, by id, of which one is NULL exactly where `expr` is; None if that is not so simple."""
    if isinstance(expr, (Col, LambdaVar)):
        return {expr.id: expr} if expr.nullable else {}
    if isinstance(expr, Cast):
        return None if expr.is_try or expr.arg.type == VOID else null_by(expr.arg)
    if not expr.nullable:
        return {}
    if not isinstance(expr, Call) or expr.fn not in _NULL_BY_OPERAND:
        return None
    found: dict[int, Expr] = {}
    for arg in expr.args:
        part = null_by(arg)
        if part is None:
            return None
        found |= part
    return found


def is_shallow(expr: Expr) -> bool:
    """Whether it is one operation on plain columns: it can fail only where none of them is NULL."""
    if isinstance(expr, Cast) and not expr.is_try:
        return is_shallow(expr.arg) if expr.implicit else isinstance(expr.arg, (Col, LambdaVar))
    args = expr.args if isinstance(expr, Call) else ()
    return all(isinstance(a.arg if isinstance(a, Cast) and a.implicit else a, (Col, LambdaVar, Lit)) for a in args)


def filtered_first(agg: Agg) -> int:
    """How many arguments of an aggregate are computed only where its FILTER holds."""
    if (
        agg.where is None
        or agg.distinct
        or agg.fn not in _ONCE
        or (agg.fn == "sum" and isinstance(agg.type, DecimalType))
    ):
        return 0
    return 1 if agg.fn in ("max_by", "min_by") else len(agg.args)


def as_planned(call: Call) -> Sequence[Expr]:
    """The operands of what Spark computes while it plans: there a threshold of levenshtein of NULL is 0."""
    if call.fn != "levenshtein" or len(call.args) == 2 or not call.args[2].nullable:
        return call.args
    zero = Lit(INT, False, 0)
    most = zero if is_written_null(call.args[2]) else Call(INT, False, "coalesce", (call.args[2], zero))
    return (*call.args[:2], most)


def one_by_one(call: Call) -> Call | None:
    """exists or forall over elements as they are written: Spark stops at the first that decides."""
    items, body = call.args
    if not isinstance(items, Call) or items.fn != "array" or not 1 < len(items.args) <= _WRITTEN:
        return None
    assert isinstance(body, Lambda)
    (variable,) = body.params
    terms = tuple(_with(body.body, variable.id, a) for a in items.args)
    return Call(BOOLEAN, call.nullable, DECIDING[call.fn], terms)


def _with(e: Expr, variable: int, value: Expr) -> Expr:
    if isinstance(e, LambdaVar):
        return value if e.id == variable else e
    return rebuilt(e, lambda child: _with(child, variable, value))
