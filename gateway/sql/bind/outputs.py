"""What the clauses above a select list see of it: ORDER BY and HAVING name its items and, below them, the columns of FROM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.scope import Scope, ambiguous, fields_of, unresolved
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import Agg, Col, Expr, Subquery
from gateway.sql.typed.walk import children
from gateway.sqltypes import quote_part

#: What Spark swallows while it looks for the columns of an ORDER BY item: the next place is tried.
_SWALLOWED = frozenset(
    {
        "AMBIGUOUS_REFERENCE",
        "INVALID_EXTRACT_BASE_FIELD_TYPE",
        "FIELD_NOT_FOUND",
        "AMBIGUOUS_REFERENCE_TO_FIELDS",
    }
)


@dataclass(frozen=True, slots=True)
class Output:
    """One item: `same` is equal for items that are one attribute, `plain` whether it is a column of FROM itself."""

    name: str
    expr: Expr
    qualifier: tuple[str, ...]
    same: Any
    plain: bool


@dataclass(slots=True)
class Outputs:
    """The items of a select list by name; what a subclass finds goes before or behind the columns of FROM."""

    items: Sequence[Output]
    aggregates: int = 0  # calls of aggregate functions that are written in the expression
    depth: int = 0  # how many of them are around the name that is looked for
    below: list[Col] = field(default_factory=list)  # columns of FROM that no item was found for

    def find(self, scope: Scope, parts: Sequence[str], span: Span | None) -> Expr | None:
        """What a name stands for, enclosing queries left out."""
        raise NotImplementedError

    def named(self, parts: Sequence[str], span: Span | None) -> Expr | None:
        """The item, or a field of it, that dotted names stand for; raises AMBIGUOUS_REFERENCE."""
        for depth in range(min(3, len(parts) - 1), -1, -1):
            qualifier, wanted = tuple(p.lower() for p in parts[:depth]), parts[depth].lower()
            found = [o for o in self.items if o.name.lower() == wanted]
            found = [o for o in found if not depth or o.qualifier[-depth:] == qualifier]
            if len({o.same for o in found}) > 1:
                raise ambiguous(parts[: depth + 1], [(o.qualifier, o.name) for o in found], span)
            if found:
                output = found[0]
                if self.depth and not output.plain:
                    raise unsupported(
                        f"{quote_part(parts[0])}, an item of the select list, in an aggregate function", span
                    )
                expr = output.expr
                return fields_of(
                    replace(expr, name=parts[depth]) if isinstance(expr, Col) else expr, parts[depth + 1 :], span
                )
        return None

    def missing(self, parts: Sequence[str], span: Span | None) -> UserError:
        """UNRESOLVED_COLUMN with the nearest items."""
        return unresolved(parts, list(dict.fromkeys(o.name for o in self.items)), span)


class Sorted(Outputs):
    """ORDER BY: an item goes before a column."""

    def find(self, scope: Scope, parts: Sequence[str], span: Span | None) -> Expr | None:
        found = self.named(parts, span)
        if found is None:
            found = scope.local(parts, span)
            self.below += columns_in(found) if found is not None else []
        return found

    def here(self, name: str, scope: Scope) -> Expr | None:
        """The item or column of a name, enclosing queries left out; None for none or several."""
        try:
            return self.find(scope, (name,), None)
        except UserError as error:
            if error.condition not in _SWALLOWED:
                raise
            return None

    def bind(self, bind: Callable[[exp.Expr, Scope], Expr], tree: exp.Expr, scope: Scope) -> Expr:
        """The bound form of an ORDER BY item; where its items do not fit, all its names are those of FROM."""
        self.aggregates, self.below = 0, []
        for outputs in (self, Lower(self.items)):
            scope.outputs = outputs
            try:
                found = bind(tree, scope)
                self.aggregates, self.below = outputs.aggregates, outputs.below
                return found
            except UserError as error:
                if error.condition not in _SWALLOWED:
                    raise
                last = error
            finally:
                scope.outputs = None
        column = tree.find(exp.Column)
        raise self.missing([p.name for p in column.parts] if column is not None else [""], last.span)


class Lower(Outputs):
    """ORDER BY where an item was found that does not fit: columns only."""

    def find(self, scope: Scope, parts: Sequence[str], span: Span | None) -> Expr | None:
        found = scope.local(parts, span)
        self.below += columns_in(found) if found is not None else []
        return found


@dataclass(slots=True)
class Grouped(Outputs):
    """HAVING: a column goes before an item, but for one that is neither grouped nor inside an aggregate function."""

    retried: set[int] = field(default_factory=set)  # places of such names
    places: dict[int, int] = field(default_factory=dict)  # of the columns found, by identity
    found: list[Col] = field(default_factory=list)  # keeps the identities alive
    place: int = 0
    sets: bool = False  # over grouping sets

    def restart(self) -> None:
        """Before the condition is bound (once more)."""
        self.place, self.places, self.found = 0, {}, []

    def find(self, scope: Scope, parts: Sequence[str], span: Span | None) -> Expr | None:
        self.place += 1
        if self.place in self.retried:
            item = self.named(parts, span)
            if item is None:
                raise self.missing(parts, span)
            return item
        try:
            column = scope.local(parts, span)
        except UserError as error:
            if error.condition not in _SWALLOWED:
                raise
            column = None
        if column is None:
            return self.named(parts, span)
        if (
            self.sets
            and not self.depth
            and any(o.name.lower() == parts[-1].lower() and not o.plain for o in self.items)
        ):
            # Spark takes the column where no operand has to be cast, else the item.
            raise unsupported("a name in HAVING over grouping sets that is both a column and an item", span)
        return self._noted(column)

    def _noted(self, expr: Expr) -> Expr:
        if isinstance(expr, Col):
            fresh = replace(expr)
            self.found.append(fresh)
            self.places[id(fresh)] = self.place
            return fresh
        args: tuple[Expr, ...] | None = getattr(expr, "args", None)
        return replace(expr, args=tuple(map(self._noted, args))) if args else expr  # type: ignore[call-arg]

    def lost(self, expr: Expr, keys: Mapping[Any, Expr]) -> set[int]:
        """The places of the columns in `expr` that are neither in a grouping key nor in an aggregate function."""
        if isinstance(expr, (Agg, Subquery)) or key(expr) in keys:
            return set()
        if isinstance(expr, Col):
            return {self.places[id(expr)]} if id(expr) in self.places and not expr.outer else set()
        return {place for child in children(expr) for place in self.lost(child, keys)}


def columns_in(expr: Expr) -> list[Col]:
    """The columns of `expr`."""
    return [expr] if isinstance(expr, Col) else [c for child in children(expr) for c in columns_in(child)]


def unsupported_in_sort(span: Span | None) -> UserError:
    """UNSUPPORTED_EXPR_FOR_OPERATOR: a window or an aggregate in ORDER BY that is not the select list's."""
    message = "A query operator contains one or more unsupported expressions: ORDER BY takes no window functions, and "
    message += "aggregate functions only where the SELECT is grouped. Give the expression a name in the select list."
    return UserError("UNSUPPORTED_EXPR_FOR_OPERATOR", message, span=span)
