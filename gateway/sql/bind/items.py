"""The items of one SELECT: stars expanded, names given, generators taken out, earlier aliases known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from gateway.errors import Span, UnsupportedError, UserError, unsupported
from gateway.sql.bind.binder import not_scalar
from gateway.sql.bind.columns import left_by_except, merged_name, star_columns
from gateway.sql.bind.generated import Generators
from gateway.sql.bind.relations import Relations
from gateway.sql.bind.scope import Scope
from gateway.sql.read.tree import span_of
from gateway.sql.typed.catalogue import is_generator, is_steady
from gateway.sql.typed.nodes import Agg, Call, Cast, Col, Expr, Lit, Subquery, Window
from gateway.sql.typed.walk import children, contains
from gateway.sqltypes import is_integral

Node = exp.Expr
#: What generators name their columns, without the number behind it; but those whose columns are fields of structs.
_OF_GENERATORS = frozenset({"col", "c", "key", "value", "pos"})
_OF_STRUCTS = ("inline", "inline_outer")
_ALIAS_REFERENCE = "lateralAliasReference("


@dataclass(slots=True)
class Item:
    """One select item: its name in the result and its bound expression.

    `lateral` is the expression with references to earlier aliases as such, None if it has none.
    """

    name: str
    expr: Expr
    aliased: bool
    lateral: Expr | None = None


class SelectItems:
    """Binds the select list of one SELECT."""

    def __init__(self, binder: Relations, node: exp.Select, generators: Generators) -> None:
        self.binder = binder
        self.node = node
        self.expressions = binder.expressions
        self.ids = binder.ids
        self.generators = generators

    def bound(self, scope: Scope) -> list[Item]:
        """The items in their order; each sees the aliases before it."""
        items: list[Item] = []
        scope.listing = True
        for number, tree in enumerate(self.node.expressions, 1):
            try:
                found = self._item(tree, scope)
            except UserError as error:
                self._refuse_generated(tree, error)
                raise self.expressions.earlier(self.node.expressions[number:], scope, error) from None
            for item in found:
                if item.aliased:
                    name = item.name.lower()
                    if name in scope.lateral and len(found) > 1:
                        continue  # one of several aliases of a generator hides nothing
                    if name in scope.lateral:
                        scope.ambiguous_lateral.add(name)
                    scope.lateral[name] = _column_of(item.expr)
                    if not is_steady(item.expr, self.binder.catalogue):
                        scope.unsteady_lateral.add(name)
            items += found
        scope.listing = False
        scope.lateral = {}
        scope.ambiguous_lateral = set()
        scope.unsteady_lateral = set()
        return items

    def _refuse_generated(self, tree: Node, error: UserError) -> None:
        """UnsupportedError where Spark may find a missing name: around generators it knows the aliases of all items."""
        if not error.condition.startswith("UNRESOLVED_COLUMN"):
            return
        aliases = {name.lower() for item in self.node.expressions for name in _given_names(item)}
        generators = [item for item in self.node.expressions if self._names_generator(item)]
        unnamed = {item.name.lower() for item in generators if _inner(item) is item}
        missing = {c.name.lower() for c in tree.find_all(exp.Column)}
        theirs = not _OF_GENERATORS.isdisjoint(name.rstrip("0123456789") for name in missing)
        given = unnamed and (theirs or not unnamed.isdisjoint(_OF_STRUCTS))
        if given or (generators and missing & aliases):
            raise unsupported("an item's name inside or beside a generator", span_of(tree))

    def _names_generator(self, tree: Node) -> bool:
        inner = _inner(tree)
        row = self.binder.catalogue.get(inner.name.lower()) if isinstance(inner, exp.Anonymous) else None
        return row is not None and row.kind == "generator"

    def _item(self, tree: Node, scope: Scope) -> list[Item]:
        if scope.lateral and self._names_generator(tree):  # of the earlier items it sees the generated ones only
            lateral = scope.lateral
            scope.lateral = {n: e for n, e in lateral.items() if self.generators.uses(e) and isinstance(e, Col)}
            try:
                return self._selected(tree, scope)
            finally:
                scope.lateral = lateral
        return self._selected(tree, scope)

    def _selected(self, tree: Node, scope: Scope) -> list[Item]:
        if isinstance(tree, exp.Star):
            return self._star(scope.columns(), tree, scope)
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
            qualifier = [p.name for p in tree.parts[:-1]]
            if tree.this.args.get("except_") and scope.qualified(qualifier) is None:
                raise unsupported("EXCEPT of a struct's fields", span_of(tree))
            return self._star(star_columns(tree, scope), tree.this, scope.of(qualifier))
        if isinstance(tree, exp.Alias):
            expr = self.expressions.bind(tree.this, scope)
            lateral = self._lateral(tree.this, scope)
            if is_generator(expr, self.binder.catalogue):
                return self._generated(expr, tree.args["alias"].name, None)
            return [Item(tree.args["alias"].name, expr, True, lateral)]
        if isinstance(tree, exp.Aliases):
            expr = self.expressions.bind(tree.this, scope)
            if not is_generator(expr, self.binder.catalogue):
                raise UserError(
                    "MULTI_ALIAS_WITHOUT_GENERATOR",
                    "Multi part aliasing is not supported with an expression that is not a generator.",
                    span=span_of(tree),
                )
            return self._generated(expr, None, [i.name for i in tree.expressions])
        expr = self.expressions.bind(tree, scope)
        if is_generator(expr, self.binder.catalogue):
            return self._generated(expr, None, None)
        if isinstance(expr, Call) and expr.fn in ("_field", "_map_item") and isinstance(tree, (exp.Column, exp.Dot)):
            lateral = None if isinstance(tree, exp.Column) or _is_path(tree) else self._lateral(tree, scope)
            shown = expr if lateral is None else lateral
            return [Item(self._name(tree, shown), expr, True, lateral)]  # a path is an alias by itself
        lateral = self._lateral(tree, scope)
        name = self._name(tree, expr if lateral is None else lateral)
        alone = name.removeprefix(_ALIAS_REFERENCE).removesuffix(")")
        if name == f"{_ALIAS_REFERENCE}{alone})" and "(" not in alone:
            name = alone
        return [Item(name, expr, False, lateral)]

    def _lateral(self, tree: Node, scope: Scope) -> Expr | None:
        """`tree` as its name shows it, with earlier aliases as ``lateralAliasReference(alias)``; None if it names none."""
        if not scope.lateral:
            return None
        windows = self.expressions.windows
        over = tree.find_all(exp.Window) if windows else ()
        named = [windows.get(w.args["alias"].name) for w in over if w.args.get("alias")]
        trees = [tree, *(window for window in named if window is not None)]
        parts = [part.name for t in trees for c in t.find_all(exp.Column) for part in c.parts]
        lateral = scope.lateral
        used = {name.lower(): name for name in parts if name.lower() in lateral}
        if not used:
            return None
        references = {
            name: Col(lateral[name].type, lateral[name].nullable, self.ids.take(), self._shown(lateral[name], spelled))
            for name, spelled in used.items()
        }
        scope.lateral = {**lateral, **references}
        try:
            shown = self.expressions.bind(tree, scope)
        finally:
            scope.lateral = lateral
        return shown if self._reads(shown, {c.id for c in references.values()}, None, span_of(tree)) else None

    def _shown(self, aliased: Expr, spelled: str) -> str:
        """An alias in the name of another item: a generated column is one of FROM by then."""
        return (
            spelled if isinstance(aliased, Col) and self.generators.uses(aliased) else f"{_ALIAS_REFERENCE}{spelled})"
        )

    def _reads(self, expr: Expr, aliases: set[int], place: str | None, span: Span | None) -> bool:
        """Whether an alias is in `expr`; Spark lets no aggregate function and no window refer to one."""
        found = isinstance(expr, Col) and expr.id in aliases
        if isinstance(expr, Col) and found and place is not None:
            raise UnsupportedError(
                f"UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_{place}",
                "Referencing an alias of the same select list in "
                f"{'a window expression' if place == 'WINDOW' else 'an aggregate function'} is not supported: {expr.name}.",
                span=span,
            )
        if isinstance(expr, (Window, Agg)) and place is None:
            place = "WINDOW" if isinstance(expr, Window) else "AGGREGATE_FUNC"
        for child in children(expr):
            found = self._reads(child, aliases, place, span) or found
        return found

    def _name(self, tree: Node, expr: Expr) -> str:
        return str(self._name_of(tree, expr))

    def _name_of(self, tree: Node, expr: Expr) -> Any:
        if isinstance(tree, exp.Column) and (isinstance(expr, Col) or merged_name(expr)):
            return tree.this.name
        if isinstance(tree, exp.Column) and isinstance(expr, Call) and expr.fn == "grouping_id":
            return "grouping__id"
        if isinstance(tree, exp.Column) and (
            isinstance(expr, Lit) or (isinstance(expr, Call) and expr.fn in ("_field", "_map_item"))
        ):
            return tree.this.name
        if isinstance(tree, exp.Dot) and _is_path(tree):
            return tree.expression.name
        if isinstance(tree, exp.Column) and tree.args.get("table") is None and not isinstance(expr, Call):
            return tree.this.name
        return self.binder.names.of(expr)

    def _star(self, columns: list[Expr], star: Node, scope: Scope) -> list[Item]:
        items = []
        for expr in left_by_except(columns, star, scope):
            name = merged_name(expr) or (expr.name if isinstance(expr, Col) else self.binder.names.of(expr))
            if isinstance(expr, Call) and expr.fn == "_field":
                name = expr.shown or name
            items.append(Item(name, expr, False))
        if not items:
            raise unsupported("a result without columns", span_of(star))
        return items

    def _generated(self, expr: Expr, alias: str | None, names: list[str] | None) -> list[Item]:
        assert isinstance(expr, Call)
        if self.binder.catalogue[expr.fn].from_only:
            raise not_scalar(expr.fn, expr.span)
        if self.node.args.get("group") is not None and contains(expr, Subquery):
            raise unsupported("a subquery in a generator beside GROUP BY", expr.span)
        aliased = alias is not None or names is not None
        return [Item(c.name, c, aliased) for c in self.generators.add(expr, alias, names)]


def _column_of(expr: Expr) -> Expr:
    """What an alias of `expr` is to later items: of an integer no literal, of which decimals count the digits."""
    counted = isinstance(expr, Lit) and is_integral(expr.type)
    return Cast(expr.type, expr.nullable, expr, implicit=True) if counted else expr


def _inner(tree: Node) -> Node:
    """A select item without its aliases."""
    return tree.this if isinstance(tree, (exp.Alias, exp.Aliases)) else tree


def _given_names(tree: Node) -> list[str]:
    """The aliases of a select item."""
    if isinstance(tree, exp.Alias):
        return [tree.args["alias"].name]
    return [i.name for i in tree.expressions] if isinstance(tree, exp.Aliases) else []


def _is_path(tree: Node) -> bool:
    while isinstance(tree, exp.Dot):
        tree = tree.this
    return isinstance(tree, exp.Column)
