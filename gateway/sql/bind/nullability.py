"""Types and nullability of bound expressions once more, after columns in them have become nullable."""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import GatewayError
from gateway.sql.typed.catalogue import Catalogue, Context, Site, bind_call, nullable_of
from gateway.sql.typed.coerce import cast_nullable
from gateway.sql.typed.nodes import Call, Case, Cast, Expr, Lambda, Lit, Subquery
from gateway.sql.typed.walk import children
from gateway.sqltypes import ArrayType, StructType

_NEVER = frozenset({"is null", "is not null", "<=>", "grouping", "grouping_id", "_grouping_bit"})
_DECIDED = frozenset({"exists", "forall"})  # NULL where the lambda is for some element


class Nullability:
    """Gives expressions the nullability that their new children ask for."""

    def __init__(self, catalogue: Catalogue, context: Context) -> None:
        self._catalogue = catalogue
        self._context = context

    def after(self, expr: Expr, before: Expr) -> Expr:
        """`expr`, made of `before` with other children, as it would have been bound with these."""
        if not any(map(_loosened, children(expr), children(before))):
            return expr
        if isinstance(expr, Cast):
            nullable = cast_nullable(expr.arg.type, expr.type, expr.arg.nullable, expr.is_try)
            return replace(expr, nullable=expr.nullable or nullable)
        if isinstance(expr, Case):
            values = [v for _, v in expr.whens] + ([expr.otherwise] if expr.otherwise is not None else [])
            return replace(expr, nullable=expr.nullable or any(v.nullable for v in values))
        if isinstance(expr, Lambda):
            return replace(expr, nullable=expr.nullable or expr.body.nullable)
        if isinstance(expr, Subquery) and expr.kind == "in":
            return replace(expr, nullable=expr.nullable or any(a.nullable for a in expr.args))
        return self._call(expr) if isinstance(expr, Call) else expr

    def _call(self, call: Call) -> Call:
        row = self._catalogue.get(call.fn)
        if call.fn in _DECIDED:
            return replace(call, nullable=call.nullable or any(a.nullable for a in call.args))
        if call.fn in _NEVER or any(isinstance(a, Lambda) for a in call.args):
            return call
        if call.fn == "_field":
            (of,), (index,) = call.args, call.data
            assert isinstance(of.type, StructType)
            found = of.type.fields[index]
            return replace(call, type=found.type, nullable=call.nullable or of.nullable or found.nullable)
        if call.fn == "_array_item":
            array = call.args[0].type
            assert isinstance(array, ArrayType)
            missing = any(a.nullable for a in call.args) or array.contains_null
            return replace(call, type=array.element, nullable=call.nullable or missing)
        if row is None or row.kind == "operator" or not call.args:
            return replace(call, nullable=call.nullable or any(a.nullable for a in call.args))
        if row.bind is None and not callable(row.returns):
            return replace(call, nullable=call.nullable or nullable_of(row, call.args))
        try:
            bound = bind_call(row, Site(call.shown or call.fn, call.args, self._context, call.span))
        except GatewayError:  # its arguments have been prepared: they are not those that it takes
            return replace(call, nullable=call.nullable or any(a.nullable for a in call.args))
        type_ = bound.type if bound.type.simple == call.type.simple else call.type
        return replace(call, type=type_, nullable=call.nullable or bound.nullable)


def _loosened(new: Expr, old: Expr) -> bool:
    return not isinstance(new, Lit) and ((new.nullable and not old.nullable) or new.type != old.type)
