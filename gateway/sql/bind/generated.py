"""Generators among select items: their columns exist as soon as they are bound, their relation once its input is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.relations import Relations
from gateway.sql.typed.nodes import Call, Col, Expr, Generate, OneRow, Rel, Window
from gateway.sql.typed.walk import children, contains
from gateway.sqltypes import StructType


class Generators:
    """The generators of one SELECT, in the order of its items; later ones run per row of the earlier."""

    def __init__(self, binder: Relations) -> None:
        self._binder = binder
        self._made: list[Generate] = []
        self._ids: set[int] = set()

    def add(self, call: Call, alias: str | None, names: Sequence[str] | None) -> tuple[Col, ...]:
        """The output columns of a generator under an alias, or several; else under its own names."""
        assert isinstance(call.type, StructType)
        if alias is not None:
            if len(call.type.fields) > 1:
                raise UserError(
                    "UDTF_ALIAS_NUMBER_MISMATCH",
                    "The number of aliases supplied in the AS clause does not match the number of columns output by the "
                    f"generator. Expected {len(call.type.fields)} aliases, but got {alias}.",
                    span=call.span,
                )
            names = (alias,)
        made = self._binder.generated(OneRow(()), call, False, names)
        self._made.append(made)
        self._ids.update(c.id for c in made.columns)
        return made.columns

    def __bool__(self) -> bool:
        return bool(self._made)

    def uses(self, expr: Expr) -> bool:
        """Whether `expr` reads a generated column."""
        return (isinstance(expr, Col) and expr.id in self._ids) or any(self.uses(c) for c in children(expr))

    def refuse(self, expr: Expr | None, where: str, span: Span | None) -> None:
        """UnsupportedError if `expr` reads a generated column."""
        if expr is not None and self._made and self.uses(expr):
            raise unsupported(f"a generated column in {where}", span)

    def check_grouped(self, outputs: Sequence[Expr], span: Span | None) -> None:
        """Beside aggregates there is one generator, and no item but itself reads its columns."""
        if len(self._made) > 1:
            raise UserError(
                "UNSUPPORTED_GENERATOR.MULTI_GENERATOR",
                f"The generator is not supported: only one generator allowed per SELECT clause but found {len(self._made)}.",
                span=self._made[1].generator.span,
            )
        seen: set[int] = set()
        for output in outputs:
            if not isinstance(output, Col) or output.id in seen:
                self.refuse(output, "another item beside aggregates", span)
            elif isinstance(output, Col):
                seen.add(output.id)

    def check_ungrouped(self) -> None:
        """Beside no aggregate none holds a window function."""
        for made in self._made:
            if contains(made.generator, Window):
                text = "A generator of a select list without aggregates can't hold window functions."
                raise UserError("UNSUPPORTED_EXPR_FOR_OPERATOR", text, span=made.generator.span)

    def calls(self) -> list[Call]:
        """The generators themselves."""
        return [made.generator for made in self._made]

    def rewrite(self, change: Callable[[Expr], Expr]) -> None:
        """Apply `change` to the arguments of every generator."""
        for made in self._made:
            made.generator = replace(made.generator, args=tuple(change(a) for a in made.generator.args))

    @property
    def ids(self) -> set[int]:
        """Ids of all generated columns."""
        return self._ids

    def relation(self, source: Rel) -> Rel:
        """The source with the generators' columns behind its own."""
        for made in self._made:
            source = Generate((*source.columns, *made.columns), source, made.generator, made.outer)
        return source
