"""Building blocks of `Function.lower`: natives, the Spark set's natives, functions of ours, and rows that only rename."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.errors import UnsupportedError
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Lower
from gateway.sql.typed.nodes import Agg, Call, Expr, Fn, Lit, SortKey
from gateway.sql.typed.walk import children
from gateway.sqltypes import BINARY, BOOLEAN, INT, STRING, DataType, is_fractional


def engine_cast(arg: Expr, type_: DataType, *, raises: bool = False, is_try: bool = False) -> Expr:
    """DataFusion's CAST even where `arg` claims to have the type already (its native type is another)."""
    return bound.EngineCast(type_, arg.nullable or is_try, arg, raises, is_try)


def native(name: str, *, recast: bool = False, raises: bool = False) -> Lower:
    """The native function `name` (``spark:`` prefix: the Spark set's); `recast` where its result type is another."""

    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        result = bound.fn(name, call.type, *args, nullable=call.nullable, raises=raises)
        return engine_cast(result, call.type) if recast else result

    return lower


def kernel(impl: str, *params: Any, raises: bool = False, volatile: bool = False) -> Lower:
    """Our function `impl` with constant `params`."""

    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        return bound.udf(
            impl, call.type, *args, params=params, nullable=call.nullable, raises=raises, volatile=volatile
        )

    return lower


def by_type(string: Lower, binary: Lower) -> Lower:
    """One lowering for STRING arguments, another for BINARY ones (decided by the first argument)."""

    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        return (binary if args[0].type == BINARY else string)(call, args, context)

    return lower


def literal(value: Any) -> Lower:
    """A constant of the call's type."""

    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        return bound.lit(value, call.type)

    return lower


def integer(value: int) -> Lit:
    """An INT constant."""
    return bound.lit(value, INT)


def text(value: str) -> Lit:
    """A STRING constant."""
    return bound.lit(value, STRING)


def less_than(left: Expr, right: Expr) -> Expr:
    return bound.op("<", BOOLEAN, left, right)


def at_most(left: Expr, right: Expr) -> Expr:
    return bound.op("<=", BOOLEAN, left, right)


def equals(left: Expr, right: Expr) -> Expr:
    return bound.op("=", BOOLEAN, left, right)


def either(left: Expr, right: Expr) -> Expr:
    return bound.op("OR", BOOLEAN, left, right)


def both(left: Expr, right: Expr) -> Expr:
    return bound.op("AND", BOOLEAN, left, right)


def not_null(arg: Expr) -> Expr:
    return bound.op("IS NOT NULL", BOOLEAN, arg, nullable=False)


def key_of_order(keys: Sequence[SortKey]) -> Expr:
    """What ORDER BY sorts by, as bytes that compare as the rows do."""
    ways = tuple((k.descending, k.nulls_first) for k in keys)
    return bound.udf("order_key", BINARY, *(k.expr for k in keys), params=ways, nullable=False)


def one_nan(value: Expr) -> Expr:
    """A float whose NaN is the one that Spark knows: processors make negative ones, which the engine tells apart."""
    return bound.fn("nanvl", value.type, value, bound.lit(math.nan, value.type), nullable=value.nullable)


def one_zero(value: Expr) -> Expr:
    """A float with 0.0 for -0.0: the engine tells them apart in lists, orders and partitions. What is no float is as it was."""
    if not is_fractional(value.type):
        return value
    if isinstance(value, Lit):
        return replace(value, value=0.0) if value.value == 0 else value
    return bound.op("+", value.type, value, Lit(value.type, False, 0.0), nullable=value.nullable)


def any_nan(value: Expr) -> Expr:
    """What `one_nan` was made of, where the NaN is looked at later."""
    if isinstance(value, Fn) and value.name == "nanvl":
        return value.args[0] if isinstance(value.args[1], Lit) and value.args[1].value != value.args[1].value else value
    return value


def raise_row(type_: DataType, condition: str, template: str, *values: Expr) -> Expr:
    """Fails for every row that it is computed for; `template` has ``{0}`` … for the STRING `values`."""
    return bound.udf(
        "raise_row", type_, *(values or (text(""),)), params=(condition, template), raises=True, volatile=True
    )


def refused(call: Call | Agg, what: str) -> UnsupportedError:
    """Refusal of one form of a function that is supported otherwise."""
    return UnsupportedError("UNSUPPORTED_FEATURE", f"{what} is not supported.", span=call.span)


def same_type(args: tuple[Expr, ...]) -> DataType:
    """`returns`: the type of the first argument."""
    return args[0].type


def raises(expr: Expr) -> bool:
    """Whether the engine-level `expr` can fail for some row."""
    return bool(getattr(expr, "raises", False)) or any(raises(c) for c in children(expr))


def lazy_case(type_: DataType, *whens: tuple[Expr, Expr], otherwise: Expr | None = None) -> Expr:
    """CASE whose branches run only where needed: DataFusion turns a boolean CASE into AND unless it is an integer one."""
    if type_ != BOOLEAN or not any(raises(v) for v in (*(v for _, v in whens), *([otherwise] if otherwise else []))):
        return bound.case(type_, *whens, otherwise=otherwise)
    numbers = tuple((c, engine_cast(v, INT)) for c, v in whens)
    other = engine_cast(otherwise, INT) if otherwise is not None else None
    return equals(bound.case(INT, *numbers, otherwise=other), integer(1))
