"""Queries: from the parsed tree to bound relations. Names, stars, ordinals, aliases, CTEs and views end here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from gateway.errors import UserError, unsupported
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.expressions import RULES
from gateway.sql.bind.file_metadata import Asked
from gateway.sql.bind.names import Names
from gateway.sql.bind.organization import limited, ordered
from gateway.sql.bind.parameters import Given
from gateway.sql.bind.relations import Relations, Tables, renamed
from gateway.sql.bind.scope import Scope
from gateway.sql.bind.select import SelectBinder
from gateway.sql.bind.sorting import check_comparable
from gateway.sql.read.tree import span_of
from gateway.sql.typed.catalogue import Catalogue, Context
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import comparable_type, least_common_type, plain
from gateway.sql.typed.nodes import Col, Cte, Ids, Project, Rel, SetOp, With
from gateway.sqltypes import DataType, StructField, StructType, struct
from gateway.worker_jobs import TempView

Node = exp.Expr


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A whole query: its relation and what the client sees of it."""

    rel: Rel
    schema: StructType
    ids: Ids | None = None  # given where subqueries stand in expressions


class Binder(Relations):
    """Binds one statement."""

    def __init__(
        self,
        catalogue: Catalogue,
        context: Context,
        tables: Tables,
        views: Mapping[str, TempView],
        parameters: dict[int | str, Given],
        ids: Ids | None = None,
        view_stack: tuple[str, ...] = (),
        visible: frozenset[str] | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.context = context
        self.tables = tables
        self.views = views
        self.ids = ids or Ids()
        self.ctes: dict[str, tuple[Cte, tuple[str, ...]]] = {}
        self.expressions = Expressions(RULES, catalogue, context, self.ids, self, parameters)
        self.names = Names(catalogue, context.time_zone)
        self.view_stack = view_stack
        self.visible = visible
        self.asked: tuple[Node | None, bool, Asked] = (None, False, None)

    def inside(self, view: TempView) -> tuple[Relations, Tables]:
        """A binder for a view's query under the names that it was made under."""
        tables = self.tables.inside(view)
        context = replace(self.context, catalog=view.catalog, schema=view.schema)
        stack = (*self.view_stack, view.name.lower())
        return Binder(self.catalogue, context, tables, self.views, {}, self.ids, stack, view.views), tables

    def statement(self, node: Node) -> BoundQuery:
        """A top-level query."""
        rel, _ = self.query(node, None)
        schema = struct(*(StructField(c.name, c.type, c.nullable) for c in rel.columns))
        return BoundQuery(rel, schema, self.ids if self.ids.subqueries else None)

    def query(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        """A query and the scope that it was bound in (whose `outer_refs` are its references to enclosing queries)."""
        with_ = node.args.get("with_")
        if with_ is None:
            return self._query(node, parent)
        ctes, self.ctes = self.ctes, dict(self.ctes)
        try:
            defined = self._define(with_, parent)
            rel, scope = self._query(node, parent)
        finally:
            self.ctes = ctes
        if any(cte.outer for cte in defined):
            scope.outer_refs.update((c.id, c) for cte in defined for c in cte.outer)
            rel = With(rel.columns, rel, defined)
        return rel, scope

    def _query(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        windows = self.expressions.windows
        try:
            if node.args.get("around"):
                self.expressions.windows = {w.this.name: w for w in node.args["around"]}
            if isinstance(node, exp.Subquery):
                node = _unwrapped(node)
            if isinstance(node, exp.Select):
                return SelectBinder(self, node, parent).bind()
            rel, scope = self._body(node, parent)
            return self._organized(node, rel), scope
        finally:
            self.expressions.windows = windows

    def _body(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, parent)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, parent)
        if isinstance(node, exp.Values):
            rel = self.values(node)
            self.aliased(rel, node.args.get("alias"), (), "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH")
            return rel, Scope(parent=parent)
        raise unsupported(type(node).__name__, span_of(node))

    def _define(self, with_: exp.With, parent: Scope | None) -> tuple[Cte, ...]:
        if with_.args.get("recursive"):
            raise unsupported("WITH RECURSIVE", span_of(with_))
        seen: set[str] = set()
        defined: list[Cte] = []
        for cte in with_.expressions:
            name = cte.args["alias"].this.name
            if name.lower() in seen:
                raise UserError(
                    "DUPLICATED_CTE_NAMES",
                    f"CTE definition can't have duplicate names: `{name}`.",
                    span=span_of(cte.args["alias"]),
                )
            seen.add(name.lower())
            plan, inner = self.query(cte.this, parent)
            columns = cte.args["alias"].args.get("columns") or []
            names = [c.name for c in plan.columns]
            if columns:
                names = renamed(names, [c.name for c in columns], name, span_of(cte.args["alias"]))
            outer = tuple(inner.outer_refs.values())
            defined.append(Cte(self.ids.take(), plan, outer))
            self.ctes[name.lower()] = (defined[-1], tuple(names))
        return tuple(defined)

    def _organized(self, node: Node, rel: Rel) -> Rel:
        """ORDER BY, LIMIT and OFFSET of a query that is not a SELECT: only its output columns are known."""
        order = node.args.get("order")
        if order is not None:
            rel = ordered(self.expressions, order, rel)
        return limited(self.expressions, self.tables, node, rel)

    def retyped(self, plan: Rel, types: Sequence[DataType]) -> Rel:
        """`plan` with its columns under implicit casts to `types`."""
        if all(c.type == t for c, t in zip(plan.columns, types, strict=True)):
            return plan
        exprs = tuple(coerced(c, t) for c, t in zip(plan.columns, types, strict=True))
        columns = tuple(
            Col(t, e.nullable, self.ids.take(), c.name) for c, e, t in zip(plan.columns, exprs, types, strict=True)
        )
        return Project(columns, plan, exprs)

    def _set_operation(self, node: exp.SetOperation, parent: Scope | None) -> tuple[Rel, Scope]:
        kind = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}[type(node)]
        every = not node.args.get("distinct")
        operands = [node.expression]
        left = node.this
        while (
            kind == "union"
            and every
            and isinstance(left, exp.Union)
            and not left.args.get("distinct")
            and not _has_organization(left)
        ):
            operands.append(left.expression)
            left = left.this
        operands.append(left)
        operands.reverse()
        scope = Scope(parent=parent)
        inputs = []
        for operand in operands:
            rel, inner = self.query(operand, parent)
            scope.outer_refs.update(inner.outer_refs)
            inputs.append(rel)
        first = inputs[0]
        word = {"union": "UNION", "intersect": "INTERSECT", "except": "EXCEPT"}[kind]
        for index, rel in enumerate(inputs[1:], 2):
            if len(rel.columns) != len(first.columns):
                raise UserError(
                    "NUM_COLUMNS_MISMATCH",
                    f"{word} can only be performed on inputs with the same number of columns, but the first input has "
                    f"{len(first.columns)} columns and the {_ordinal(index)} input has {len(rel.columns)} columns.",
                    span=span_of(node),
                )
        types: list[DataType] = []
        for position in range(len(first.columns)):
            common = _met([r.columns[position].type for r in inputs], kind)
            if common is None:
                raise UserError(
                    "INCOMPATIBLE_COLUMN_TYPE",
                    f"{word} can only be performed on tables with compatible column types. The {_ordinal(position + 1)} "
                    f'column of the second table is "{inputs[-1].columns[position].type.sql}" type which is not '
                    f'compatible with "{first.columns[position].type.sql}" at the same column of the first table.',
                    span=span_of(node),
                )
            if kind != "union" or not every:
                check_comparable(common, word, span_of(node))
            types.append(common)
        inputs = [self.retyped(r, types) for r in inputs]
        columns: list[Col] = []
        places = {c.id: place for place, c in enumerate(first.columns)}
        for position, t in enumerate(types):
            sides = [r.columns[position].nullable for r in inputs]
            nullable = any(sides) if kind == "union" else sides[0] if kind == "except" else all(sides)
            kept = first.columns[position].type  # also as CHAR or VARCHAR
            shown = kept if plain(kept) == t else t
            columns.append(Col(shown, nullable, self.ids.take(), first.columns[position].name))
            if (qualifier := self.ids.qualifiers.get(first.columns[position].id)) is not None:
                self.ids.qualifiers[columns[-1].id] = qualifier
            before = self.ids.repeated.get(first.columns[position].id)
            if before in places and shown == kept == columns[places[before]].type:
                self.ids.repeated[columns[-1].id] = columns[places[before]].id
        return SetOp(tuple(columns), kind, every, tuple(inputs)), scope


def _met(types: Sequence[DataType], kind: str) -> DataType | None:
    """Set operations fold their inputs from the left; UNION looks at the structure alone, not at names of fields."""
    meet = comparable_type if kind == "union" else least_common_type
    result: DataType | None = types[0]
    for t in types[1:]:
        result = meet(result, t) if result is not None else None
    return result


def _unwrapped(node: exp.Subquery) -> exp.Query:
    """``(SELECT …) ORDER BY …`` as the SELECT with these clauses, which know its relations; else `node`."""
    inner = node.this
    if not isinstance(inner, exp.Select) or _has_organization(inner) or inner.args.get("around"):
        return node
    select = inner.copy()
    for name in ("order", "limit", "offset"):
        if node.args.get(name) is not None:
            select.set(name, node.args[name].copy())
    return select


def _has_organization(node: Node) -> bool:
    return any(node.args.get(k) is not None for k in ("order", "limit", "offset", "with_"))


def _ordinal(n: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(n, f"{n}th")
