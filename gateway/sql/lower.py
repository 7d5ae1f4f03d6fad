"""From the Spark level to the engine level: every call by its catalogue row, every cast by its pair, laziness kept.

Spark evaluates AND, OR and CASE left to right and only when needed; DataFusion evaluates all conjuncts of a filter and
simplifies boolean CASEs to AND. Where a later operand can fail for a row (`raises`), the connective is therefore written as
an integer CASE compared with 1, which DataFusion keeps lazy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gateway.errors import UnsupportedError
from gateway.instants import BLANKS
from gateway.sql.bound import (
    Agg,
    Call,
    Case,
    Cast,
    Col,
    EngineCast,
    Expr,
    Lambda,
    Lit,
    Op,
    SortKey,
    Subquery,
    Window,
    children,
)
from gateway.sql.bounds import Bounds
from gateway.sql.catalogue import BOUNDED, Catalogue, Context
from gateway.sql.fold import fold
from gateway.sql.functions.casts import fold_cast, lower_cast
from gateway.sql.literals import TRUTHS
from gateway.sqltypes import BOOLEAN, DOUBLE, FLOAT, INT, VOID, DataType, DecimalType, decimal

_COMPARISONS = frozenset({"=", "<>", "!=", "<", "<=", ">", ">="})
_ONE = Lit(INT, False, 1)
_ZERO = Lit(INT, False, 0)


def _sum_type(agg: Agg) -> DataType:
    """The type in which an aggregate adds up."""
    if agg.fn == "avg" and agg.args and isinstance(agg.args[0].type, DecimalType):
        precision, scale = agg.args[0].type.precision, agg.args[0].type.scale
        return decimal(min(38, precision + 10), scale)
    return agg.type


@dataclass(slots=True)
class Lowering:
    """The state of one statement's lowering."""

    catalogue: Catalogue
    context: Context
    bounds: Bounds | None = None
    _raises: dict[int, bool] = field(default_factory=dict)
    _keep: list[Expr] = field(default_factory=list)  # so that ids in `_raises` stay unique

    def raises(self, expr: Expr) -> bool:
        """Whether evaluating the engine-level `expr` can fail for some row."""
        known = self._raises.get(id(expr))
        if known is None:
            known = bool(getattr(expr, "raises", False)) or any(self.raises(c) for c in children(expr))
            self._raises[id(expr)] = known
            self._keep.append(expr)
        return known

    def lower(self, expr: Expr) -> Expr:
        """The engine-level form of `expr`."""
        if isinstance(expr, (Col, Lit)):
            return expr
        if isinstance(expr, Call):
            return self._call(expr)
        if isinstance(expr, Cast):
            arg = self.lower(expr.arg)
            if isinstance(arg, Lit) and not expr.is_try:
                folded = fold_cast(arg, expr.type, self.context)
                if folded is not None:
                    return folded
            return lower_cast(expr, arg, self.context)
        if isinstance(expr, Case):
            return self._case(expr)
        if isinstance(expr, Agg):
            return self._agg(expr)
        if isinstance(expr, Window):
            return Window(
                expr.type,
                expr.nullable,
                self.lower(expr.fn),
                tuple(self.lower(p) for p in expr.partition),
                self.sort_keys(expr.order),
                expr.frame,
            )
        if isinstance(expr, Subquery):
            return replace(expr, args=tuple(self.lower(a) for a in expr.args))
        if isinstance(expr, Lambda):
            return Lambda(expr.type, expr.nullable, expr.params, self.lower(expr.body))
        return expr

    def sort_keys(self, keys: Sequence[SortKey]) -> tuple[SortKey, ...]:
        """Lowered ORDER BY items; float keys are normalised so that -0.0 sorts with 0.0."""
        lowered = []
        for sort in keys:
            expr = self.lower(sort.expr)
            if expr.type in (FLOAT, DOUBLE):
                expr = Op(expr.type, expr.nullable, "+", (expr, Lit(expr.type, False, 0.0)))
            lowered.append(SortKey(expr, sort.descending, sort.nulls_first))
        return tuple(lowered)

    def _call(self, call: Call) -> Expr:
        if call.fn in ("and", "or"):
            if len(call.args) == 2 and isinstance(call.args[1], Lit) and _is_no_truth(call.args[0]):
                return self.lower(call.args[0])  # it raises: Spark evaluates constants from left to right
            return self.connective(call.fn, [self.lower(a) for a in call.args])
        row = self.catalogue.get(call.fn)
        if row is None or row.lower is None:
            raise UnsupportedError(
                "UNSUPPORTED_FUNCTION", f"The function `{call.shown or call.fn}` is not supported.", span=call.span
            )
        args = tuple(self.lower(a) for a in call.args)
        if args and all(isinstance(a, Lit) for a in args):
            folded = fold(replace(call, args=args), self.context)
            if folded is not None:
                return folded
        if call.fn in ("+", "-", "*") and self.bounds is not None and self.bounds.exact(call):
            return Op(call.type, call.nullable, call.fn, args)  # no row can overflow
        try:
            return row.lower(call, args, self.context)
        except UnsupportedError as error:
            raise error.at(call.span) from None

    def _agg(self, agg: Agg) -> Expr:
        if agg.type == VOID:
            return Lit(VOID, True, None)
        row = self.catalogue.get(agg.fn)
        if row is None or row.lower is None:
            raise UnsupportedError(
                "UNSUPPORTED_FUNCTION", f"The aggregate `{agg.shown or agg.fn}` is not supported.", span=agg.span
            )
        args = tuple(self.lower(a) for a in agg.args)
        bounded = agg.fn in ("sum", "avg") and self.bounds is not None and self.bounds.sum_fits(agg, _sum_type(agg))
        lowered = replace(
            agg,
            args=args,
            data=(*agg.data, BOUNDED) if bounded else agg.data,
            where=self.lower(agg.where) if agg.where is not None else None,
            order=self.sort_keys(agg.order),
        )
        try:
            return row.lower(lowered, args, self.context)
        except UnsupportedError as error:
            raise error.at(agg.span) from None

    def _case(self, case: Case) -> Expr:
        whens = tuple((self.lower(c), self.lower(v)) for c, v in case.whens)
        otherwise = self.lower(case.otherwise) if case.otherwise is not None else None
        if case.type == BOOLEAN and any(
            self.raises(v) for v in (*(v for _, v in whens), *([otherwise] if otherwise else []))
        ):
            integer = Case(
                INT,
                True,
                tuple((c, EngineCast(INT, True, v)) for c, v in whens),
                EngineCast(INT, True, otherwise) if otherwise is not None else None,
            )
            return Op(BOOLEAN, True, "=", (integer, _ONE))
        return Case(case.type, case.nullable, whens, otherwise)

    def connective(self, symbol: str, args: list[Expr]) -> Expr:
        """AND / OR of lowered operands, lazy where a later one raises."""
        if len(args) == 1:
            return args[0]
        if not any(self.raises(a) for a in args):
            return Op(BOOLEAN, any(a.nullable for a in args), symbol.upper(), tuple(args))
        first = next((i for i in range(1, len(args)) if self.raises(args[i])), 1)
        head = self.connective(symbol, args[:first])
        tail = self.connective(symbol, args[first:])
        both = EngineCast(INT, True, Op(BOOLEAN, True, symbol.upper(), (head, tail)))
        decided: tuple[Expr, Expr]
        decided = (Op(BOOLEAN, head.nullable, "NOT", (head,)), _ZERO) if symbol == "and" else (head, _ONE)
        return Op(BOOLEAN, True, "=", (Case(INT, True, (decided,), both), _ONE))

    def filters(self, conjuncts: Sequence[Expr]) -> list[Expr]:
        """Lowered conjuncts of one filter chain, in order: those that can't fail stay bare (the reader prunes with them), a
        raising one is evaluated only where all bare and earlier ones hold."""
        bare: list[Expr] = []
        raising: list[Expr] = []
        for conjunct in conjuncts:
            if _is_unknown(conjunct):  # the engine would move NULL below an aggregate, whose row stays then
                conjunct = Lit(BOOLEAN, False, False)
            (raising if self.raises(conjunct) else bare).append(conjunct)
        if not raising:
            return bare
        if not bare and len(raising) == 1:
            return raising
        condition = raising[-1]
        for earlier in reversed(raising[:-1]):
            condition = self._when(earlier, condition)
        if bare:
            guard = bare[0] if len(bare) == 1 else Op(BOOLEAN, True, "AND", tuple(bare))
            condition = self._when(guard, condition)
        return [*bare, condition]

    @staticmethod
    def _when(guard: Expr, condition: Expr) -> Expr:
        integer = Case(INT, True, ((guard, EngineCast(INT, True, condition)),), _ZERO)
        return Op(BOOLEAN, True, "=", (integer, _ONE))


def _is_unknown(e: Expr) -> bool:
    """Whether a lowered condition is NULL for every row."""
    if isinstance(e, Op) and e.symbol in ("AND", "OR", "NOT"):
        return all(map(_is_unknown, e.args))
    args = e.args if isinstance(e, Op) and e.symbol in _COMPARISONS else (e,)
    return any(isinstance(a, Lit) and a.value is None for a in args)


def _is_no_truth(e: Expr) -> bool:
    """Whether it is the cast of a text that is no BOOLEAN."""
    if not isinstance(e, Cast) or e.is_try or e.type != BOOLEAN or not isinstance(e.arg, Lit):
        return False
    text = e.arg.value
    return isinstance(text, str) and text.strip(BLANKS).lower() not in TRUTHS
