"""Rows of conditional functions: if, coalesce and their kin, NULL and NaN tests, assertions, typeof."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from gateway.errors import UnsupportedError
from gateway.sql.functions.lowerings import equals, lazy_case, literal, not_null, raises, text
from gateway.sql.functions.operators import comparison
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, Site, coerce_args, make, param
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import is_apart, least_common_of, plain
from gateway.sql.typed.foldable import UNASKED
from gateway.sql.typed.nodes import Call, Case, Expr, Fn, Lit, Udf
from gateway.sql.typed.walk import nodes
from gateway.sqltypes import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    VARIANT,
    VOID,
    DataType,
    DecimalType,
    array,
    is_fractional,
    is_nested,
    is_numeric,
    is_string,
)

_LARGE = 40  # parts of an operand
_SINGLE = frozenset(("coalesced", "null_where_equal"))


def _common(site: Site, start: int = 0) -> tuple[tuple[Expr, ...], DataType]:
    """The arguments from `start` on under casts to their least common type."""
    common = least_common_of(a.type for a in site.args[start:])
    if common is None:
        raise site.diff_types()
    return (*site.args[:start], *(coerced(a, common) for a in site.args[start:])), common


def _counted(site: Site, *counts: int) -> None:
    if len(site.args) not in counts:
        raise site.wrong_count(str(counts[0]) if len(counts) == 1 else f"[{', '.join(map(str, counts))}]")


def _bind_if(function: Function, site: Site) -> Expr:
    _counted(site, 3)
    if site.args[0].type not in (BOOLEAN, VOID):
        raise site.mismatch(0, "BOOLEAN")
    args, common = _common(site, 1)
    return make(function, site, (coerced(args[0], BOOLEAN), *args[1:]), common, args[1].nullable or args[2].nullable)


def _if(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return lazy_case(call.type, (args[0], args[1]), otherwise=args[2])


def _bind_nvl2(function: Function, site: Site) -> Expr:
    _counted(site, 3)
    args, common = _common(site, 1)
    return make(function, site, args, common, args[1].nullable or args[2].nullable)


def _nvl2(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return lazy_case(call.type, (not_null(args[0]), args[1]), otherwise=args[2])


def _bind_coalesce(function: Function, site: Site) -> Expr:
    if not site.args:
        raise site.wrong_count("> 0")
    if function.name == "nvl":
        _counted(site, 2)
    args, common = _common(site)
    return make(function, site, args, common, all(a.nullable for a in args))


def _written_once(first: Expr, type_: DataType) -> tuple[Expr, ...]:
    """The first operand of coalesce, or those of one that it is: the engine writes each operand twice, and so those within."""
    return first.args if isinstance(first, Fn) and first.name == "coalesce" and first.type == type_ else (first,)


def _coalesce(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if call.type == VOID:
        return bound.null(VOID)
    args = (*_written_once(args[0], call.type), *args[1:])
    if _doubles(args[0]) and not any(map(raises, args[1:])):
        return bound.udf("coalesced", call.type, *args, nullable=call.nullable)
    return bound.fn("coalesce", call.type, *args, nullable=call.nullable)


def _bind_nullif(function: Function, site: Site) -> Expr:
    """Keeps the first argument as written beside the two compared under their common type."""
    args, kept = _compared("=", site), site.args[0]
    return make(function, site, (*args, kept) if kept is not args[0] else args, kept.type, True)


def _compared(symbol: str, site: Site) -> tuple[Expr, ...]:
    """The two arguments as a comparison has them."""
    _counted(site, 2)
    compared = comparison(symbol, site.args[0], site.args[1], site.span)
    assert isinstance(compared, Call)
    return compared.args


def _nullif(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    left, right = args[0], args[1]
    if call.type == VOID:
        return bound.null(VOID)
    if len(args) == 2 and _doubles(left) and not (is_nested(left.type) or left.type in (FLOAT, DOUBLE, VARIANT)):
        return bound.udf("null_where_equal", call.type, left, right)
    before: tuple[tuple[Expr, Expr], ...] = ()
    if len(args) == 2 and isinstance(left, Case) and left.otherwise is not None and all(map(_is_null, left.whens)):
        before, left = left.whens, left.otherwise  # what is written twice would be four times there, and so on
    kept = args[2] if len(args) == 3 else left
    if left.type in (FLOAT, DOUBLE):  # 0.0 = -0.0 in Spark
        zero = bound.lit(0.0, left.type)
        left, right = bound.op("+", left.type, left, zero), bound.op("+", right.type, right, zero)
    return bound.case(call.type, *before, (equals(left, right), bound.null(call.type)), otherwise=kept)


def _doubles(expr: Expr) -> bool:
    """Whether it is large, of calls whose operands the engine writes twice: each one more would double it again."""
    parts = nodes(expr)
    return len(parts) > _LARGE and any(
        (isinstance(p, Fn) and p.name == "coalesce") or (isinstance(p, Udf) and p.impl in _SINGLE) for p in parts
    )


def _is_null(when: tuple[Expr, Expr]) -> bool:
    return isinstance(when[1], Lit) and when[1].value is None


def _shown_nullif(call: Call, names: list[str]) -> str:
    return f"{call.shown}({', '.join(names[:2])})"


def _bind_zero(function: Function, site: Site) -> Expr:
    """nullifzero(x) and zeroifnull(x): x against the INT 0."""
    _counted(site, 1)
    arg = site.args[0]
    if not (is_numeric(arg.type) or is_string(arg.type) or arg.type == VOID):
        raise site.diff_types()
    common = least_common_of([arg.type, INT])
    if common is None:
        raise site.diff_types()
    if arg.type == VOID and function.name == "nullifzero":
        return make(function, site, (arg,), VOID, True)
    cast = coerced(arg, common)
    if function.name == "zeroifnull":
        return make(function, site, (cast,), common, False)
    return make(
        function, site, (cast, arg) if cast is not arg else (cast,), arg.type if arg.type != VOID else INT, True
    )


def _zero(type_: DataType) -> Lit:
    if type_ in (FLOAT, DOUBLE):
        return bound.lit(0.0, type_)
    if isinstance(type_, DecimalType):
        return bound.lit(Decimal(0).scaleb(-type_.scale), type_)
    return bound.lit(0, type_)


def _zeroifnull(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.fn("coalesce", call.type, *_written_once(args[0], call.type), _zero(call.type), nullable=False)


def _nullifzero(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if call.type == VOID:
        return args[0]
    return bound.case(call.type, (equals(args[0], _zero(args[0].type)), bound.null(call.type)), otherwise=args[-1])


def _shown_first(call: Call, names: list[str]) -> str:
    return f"{call.shown}({names[0]})"


def _bind_extreme(function: Function, site: Site) -> Expr:
    """greatest and least do not promote strings."""
    if len(site.args) < 2:
        raise site.wrong_count("> 1")
    types = [a.type for a in site.args if a.type != VOID]
    if any(is_string(t) for t in types) and not all(is_string(t) for t in types):
        raise site.diff_types()
    args, common = _common(site)
    if any(is_nested(t) and is_apart(plain(t), common) for t in types):
        raise site.diff_types()
    site.check_orderable(common)
    return make(function, site, args, common, all(a.nullable for a in args))


def _extreme(name: str) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        if is_nested(call.type):
            values = bound.fn("make_array", array(call.type), *args, nullable=False)
            most = "max" if name == "greatest" else "min"
            return bound.udf("array_extreme", call.type, values, params=(most,), nullable=call.nullable)
        if call.type == VOID:
            return bound.null(VOID)
        if is_fractional(call.type):
            return bound.udf("float_extreme", call.type, *args, params=(name,), nullable=call.nullable)
        return bound.fn(name, call.type, *args, nullable=call.nullable)

    return lower


def _isnull(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.is_null(args[0])


def _isnotnull(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return not_null(args[0])


def _isnan(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.fn("coalesce", BOOLEAN, bound.fn("isnan", BOOLEAN, args[0]), bound.lit(False, BOOLEAN), nullable=False)


_FLOATS = param(DOUBLE, FLOAT, common=True)


def _bind_nanvl(function: Function, site: Site) -> Expr:
    if len(site.args) == 2 and site.args[1].type == VOID and site.args[0].type == FLOAT:  # else it is a DOUBLE
        site = replace(site, args=(site.args[0], coerced(site.args[1], FLOAT)))
    args = coerce_args(Function("nanvl", (_FLOATS, _FLOATS)), site)
    return make(function, site, args, args[0].type, any(a.nullable for a in args))


def _nanvl(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    """Spark evaluates the second operand only where the first is NaN."""
    if not raises(args[1]):
        return bound.fn("nanvl", call.type, *args, nullable=call.nullable)
    left, right = args
    return bound.case(call.type, (bound.fn("isnan", BOOLEAN, left), right), otherwise=left)


def _bind_equal_null(function: Function, site: Site) -> Expr:
    return make(function, site, _compared("<=>", site), BOOLEAN, False)


def _equal_null(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.op("IS NOT DISTINCT FROM", BOOLEAN, *args, nullable=False)


def _bind_assert(function: Function, site: Site) -> Expr:
    _counted(site, 1, 2)
    if site.args and site.args[0].type == STRING:
        raise site.mismatch(0, "BOOLEAN")
    args = coerce_args(Function("assert_true", (param(BOOLEAN), param("string")), optional=1), site)
    return make(function, site, args, VOID, True)


def _shown_assert(call: Call, names: list[str]) -> str:
    return f"{call.shown}({names[0]}, {names[1] if len(names) == 2 else default_message(names[0])})"


def default_message(condition: str) -> str:
    """Spark's default message of assert_true."""
    return f"'{condition}' is not true!"


def _assert_true(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("assert_true", VOID, *args, raises=True, volatile=True)


def _bind_raise(function: Function, site: Site) -> Expr:
    _counted(site, 1, 2)
    if len(site.args) == 2:
        raise refused_form("raise_error with an error class and parameters", site)
    args = coerce_args(Function("raise_error", (param("string"),)), site)
    return make(function, site, args, VOID, True)


def refused_form(what: str, site: Site) -> UnsupportedError:
    """UNSUPPORTED_FEATURE for a form of a function, at the call."""
    return UnsupportedError("UNSUPPORTED_FEATURE", f"{what} is not supported.", span=site.span)


def _raise_error(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("raise_error", VOID, *args, raises=True, volatile=True)


def _typeof(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return text(call.args[0].type.simple)


def _bind_typeof(function: Function, site: Site) -> Expr:
    _counted(site, 1)
    return make(function, site, site.args, STRING, False)


def _lower_unmatched(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    """The operand under a condition that always holds, of which the engine does not know it."""
    chance = bound.fn("random", DOUBLE, nullable=False)
    return bound.case(call.type, (bound.op("<", BOOLEAN, chance, bound.lit(2.0, DOUBLE)), args[0]))


ROWS: tuple[Function, ...] = (
    Function(UNASKED, kind="operator", lower=literal(None), shown=lambda call, names: "NULL"),
    Function("_unmatched", kind="operator", lower=_lower_unmatched),
    Function("if", bind=_bind_if, lower=_if, shown=lambda call, names: f"(IF({names[0]}, {names[1]}, {names[2]}))"),
    Function("nvl2", bind=_bind_nvl2, lower=_nvl2),
    Function("coalesce", bind=_bind_coalesce, lower=_coalesce),
    Function("nvl", bind=_bind_coalesce, lower=_coalesce, aliases=("ifnull",)),
    Function("nullif", bind=_bind_nullif, lower=_nullif, shown=_shown_nullif),
    Function("zeroifnull", bind=_bind_zero, lower=_zeroifnull),
    Function("nullifzero", bind=_bind_zero, lower=_nullifzero, shown=_shown_first),
    Function("greatest", bind=_bind_extreme, lower=_extreme("greatest")),
    Function("least", bind=_bind_extreme, lower=_extreme("least")),
    Function(
        "isnull",
        (param("any"),),
        returns=BOOLEAN,
        nullable="never",
        lower=_isnull,
        shown=lambda call, names: f"({names[0]} IS NULL)",
    ),
    Function(
        "isnotnull",
        (param("any"),),
        returns=BOOLEAN,
        nullable="never",
        lower=_isnotnull,
        shown=lambda call, names: f"({names[0]} IS NOT NULL)",
    ),
    Function("isnan", (param(DOUBLE, FLOAT),), returns=BOOLEAN, nullable="never", lower=_isnan),
    Function("nanvl", bind=_bind_nanvl, lower=_nanvl),
    Function("equal_null", bind=_bind_equal_null, lower=_equal_null),
    Function("assert_true", bind=_bind_assert, lower=_assert_true, shown=_shown_assert),
    Function(
        "raise_error",
        bind=_bind_raise,
        lower=_raise_error,
        shown=lambda call, args: f"raise_error(USER_RAISED_EXCEPTION, map(errorMessage, {args[0]}))",
    ),
    Function("typeof", bind=_bind_typeof, lower=_typeof),
)
