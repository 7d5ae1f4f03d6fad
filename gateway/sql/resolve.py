"""Queries: from the parsed tree to bound relations. Names, stars, ordinals, aliases, CTEs and views end here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Protocol

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.jobs import TempView
from gateway.sql.binding import Expressions
from gateway.sql.bound import (
    Agg,
    Call,
    Cast,
    Col,
    Cte,
    CteRef,
    Distinct,
    Expr,
    Filter,
    Generate,
    Ids,
    Join,
    Limit,
    Lit,
    OneRow,
    Project,
    Range,
    Rel,
    Scan,
    SetOp,
    Sort,
    SortKey,
    Values,
    Window,
    children,
    key,
)
from gateway.sql.catalogue import Catalogue, Context
from gateway.sql.coerce import coerced, least_common_of, least_common_type
from gateway.sql.fold import fold
from gateway.sql.functions.operators import comparison, has_map
from gateway.sql.grouping import Grouping, Windows, contains, has_grouping_call
from gateway.sql.names import Names
from gateway.sql.scope import Scope, Source
from gateway.sql.tree import span_of
from gateway.sqltypes import BIGINT, BOOLEAN, VOID, DataType, StructField, StructType, is_integral, struct

Node = exp.Expr
_FILE_FORMATS = frozenset({"delta", "parquet", "csv", "json", "orc", "avro", "text", "binaryfile"})


class Tables(Protocol):
    """What resolving needs of the catalogs: tables by name and by path, and the parser for views."""

    def table(self, parts: Sequence[str], as_of: Any, span: Span | None) -> Any:
        """The `catalog.base.BoundTable`; raises TABLE_OR_VIEW_NOT_FOUND with the nearest names."""

    def path(self, format_: str, path: str, as_of: Any, span: Span | None) -> Any: ...

    def view_tree(self, view: TempView) -> Node: ...

    def inside(self, view: TempView) -> Tables:
        """The same catalogs under the names that a view was made under."""


@dataclass(slots=True)
class Item:
    """One select item: its name in the result and its bound expression."""

    name: str
    expr: Expr
    aliased: bool


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A whole query: its relation and what the client sees of it."""

    rel: Rel
    schema: StructType


class Binder:
    """Binds one statement."""

    def __init__(
        self,
        catalogue: Catalogue,
        context: Context,
        tables: Tables,
        views: Mapping[str, TempView],
        parameters: dict[int | str, Lit],
        ids: Ids | None = None,
        view_stack: tuple[str, ...] = (),
    ) -> None:
        self.catalogue = catalogue
        self.context = context
        self.tables = tables
        self.views = views
        self.ids = ids or Ids()
        self.ctes: dict[str, tuple[Cte, tuple[str, ...]]] = {}
        self.expressions = Expressions(catalogue, context, self.ids, self, parameters)
        self.names = Names(catalogue, context.time_zone)
        self.view_stack = view_stack

    def statement(self, node: Node) -> BoundQuery:
        """A top-level query."""
        rel, _ = self.query(node, None)
        return BoundQuery(rel, struct(*(StructField(c.name, c.type, c.nullable) for c in rel.columns)))

    # --------------------------------------------------------------------------------------------------------- queries

    def query(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        """A query and the scope that it was bound in (whose `outer_refs` are its references to enclosing queries)."""
        ctes = self.ctes
        with_ = node.args.get("with_")
        if with_ is not None:
            self.ctes = dict(ctes)
            self._define(with_)
        try:
            for key_, word in (("sort", "SORT BY"), ("cluster", "CLUSTER BY"), ("distribute", "DISTRIBUTE BY")):
                if node.args.get(key_) is not None:
                    raise unsupported(word, span_of(node.args[key_]))
            if isinstance(node, exp.Select):
                return _Select(self, node, parent).bind()
            rel, scope = self._body(node, parent)
            return self._organized(node, rel, scope), scope
        finally:
            self.ctes = ctes

    def _body(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, parent)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, parent)
        if isinstance(node, exp.Values):
            return self.values(node), Scope(parent=parent)
        raise unsupported(type(node).__name__, span_of(node))

    def _define(self, with_: exp.With) -> None:
        if with_.args.get("recursive"):
            raise unsupported("WITH RECURSIVE", span_of(with_))
        seen: set[str] = set()
        for cte in with_.expressions:
            name = cte.args["alias"].this.name
            if name.lower() in seen:
                raise UserError(
                    "DUPLICATED_CTE_NAMES",
                    f"CTE definition can't have duplicate names: `{name}`.",
                    sqlstate="42602",
                    span=span_of(cte.args["alias"]),
                )
            seen.add(name.lower())
            plan, _ = self.query(cte.this, None)
            columns = cte.args["alias"].args.get("columns") or []
            names = [c.name for c in plan.columns]
            if columns:
                names = _renamed(names, [c.name for c in columns], name, span_of(cte.args["alias"]))
            self.ctes[name.lower()] = (Cte(self.ids.take(), plan), tuple(names))

    def _organized(self, node: Node, rel: Rel, scope: Scope) -> Rel:
        """ORDER BY, LIMIT and OFFSET of a query that is not a SELECT: only its output columns are known."""
        order = node.args.get("order")
        if order is not None:
            output = Scope([Source((), rel.columns)])
            keys = []
            for item in order.expressions:
                keys += self.order_keys(item, list(rel.columns), output)
            rel = Sort(rel.columns, rel, tuple(keys))
        return self.limited(node, rel)

    def order_keys(self, item: Node, columns: list[Col], scope: Scope) -> list[SortKey]:
        """The keys of one ORDER BY item over output `columns`: ordinal, ALL, or an expression."""
        if isinstance(item.this, exp.Var) and item.this.name.upper() == "ALL":
            named = scope.resolve(["all"], None)
            return [self.expressions.sort_key(item, c) for c in ([named] if named is not None else columns)]
        expr = self.expressions.bind(item.this, scope)
        ordinal = ordinal_of(item.this, expr) if self.context.order_by_ordinal else None
        if ordinal is not None:
            if not 1 <= ordinal <= len(columns):
                raise UserError(
                    "ORDER_BY_POS_OUT_OF_RANGE",
                    f"ORDER BY position {ordinal} is not in select list (valid range is [1, {len(columns)}]).",
                    span=span_of(item),
                )
            expr = columns[ordinal - 1]
        return [self.expressions.sort_key(item, expr)]

    def limited(self, node: Node, rel: Rel) -> Rel:
        """LIMIT and OFFSET."""
        limit_node, offset_node = node.args.get("limit"), node.args.get("offset")
        limit = self._count("limit", limit_node.expression) if limit_node is not None else None
        offset = self._count("offset", offset_node.expression) if offset_node is not None else 0
        if limit is None and not offset:
            return rel
        return Limit(rel.columns, rel, limit, offset)

    def _count(self, what: str, node: Node) -> int:
        expr = self.expressions.bind(node, Scope())
        literal = fold(expr, self.context)
        if literal is None:
            raise UserError(
                "INVALID_LIMIT_LIKE_EXPRESSION.IS_UNFOLDABLE",
                f"The {what} expression must evaluate to a constant value.",
                span=span_of(node),
            )
        if not is_integral(literal.type) or (
            literal.type == BIGINT and literal.value is not None and literal.value > 2**31
        ):
            if literal.type == VOID or literal.value is None:
                raise UserError(
                    "INVALID_LIMIT_LIKE_EXPRESSION.IS_NULL",
                    f"The evaluated {what} expression must not be null.",
                    span=span_of(node),
                )
            raise UserError(
                "INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE",
                f'The {what} expression must be integer type, but got "{literal.type.sql}".',
                span=span_of(node),
            )
        if literal.value is None:
            raise UserError(
                "INVALID_LIMIT_LIKE_EXPRESSION.IS_NULL",
                f"The evaluated {what} expression must not be null.",
                span=span_of(node),
            )
        if literal.value < 0:
            raise UserError(
                "INVALID_LIMIT_LIKE_EXPRESSION.IS_NEGATIVE",
                f"The {what} expression must be equal to or greater than 0, but got {literal.value}.",
                span=span_of(node),
            )
        return int(literal.value)

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
            common = least_common_of_pairs([r.columns[position].type for r in inputs])
            if common is None:
                raise UserError(
                    "INCOMPATIBLE_COLUMN_TYPE",
                    f"{word} can only be performed on tables with compatible column types. The {_ordinal(position + 1)} "
                    f'column of the second table is "{inputs[-1].columns[position].type.sql}" type which is not '
                    f'compatible with "{first.columns[position].type.sql}" at the same column of the first table.',
                    span=span_of(node),
                )
            if (kind != "union" or not every) and has_map(common):
                raise UserError(
                    "UNSUPPORTED_FEATURE.SET_OPERATION_ON_MAP_TYPE",
                    f"Cannot have MAP type columns in DataFrame which calls set operations ({word}).",
                    span=span_of(node),
                )
            types.append(common)
        inputs = [self.retyped(r, types) for r in inputs]
        columns = []
        for position, t in enumerate(types):
            sides = [r.columns[position].nullable for r in inputs]
            nullable = any(sides) if kind == "union" else sides[0] if kind == "except" else all(sides)
            columns.append(Col(t, nullable, self.ids.take(), first.columns[position].name))
        return SetOp(tuple(columns), kind, every, tuple(inputs)), scope

    # ------------------------------------------------------------------------------------------------------- relations

    def from_(self, node: exp.Select, parent: Scope | None) -> tuple[Rel, Scope]:
        """The FROM clause with its joins and lateral views."""
        source = node.args.get("from_")
        if source is None:
            rel: Rel = OneRow(())
            scope = Scope(parent=parent)
        else:
            rel, scope = self.relation(source.this, parent)
        rel, scope = self._joins(rel, scope, node.args.get("joins") or (), parent)
        for view in node.args.get("laterals") or ():
            rel, scope = self._lateral_view(rel, scope, view, parent)
        scope.parent = parent
        return rel, scope

    def _joins(self, rel: Rel, scope: Scope, joins: Sequence[Node], parent: Scope | None) -> tuple[Rel, Scope]:
        for join in joins:
            rel, scope = self.join(rel, scope, join, parent)
        return rel, scope

    def relation(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        """One relation of a FROM clause."""
        alias = node.args.get("alias")
        if isinstance(node, exp.Table):
            if isinstance(node.this, exp.Anonymous):
                rel = self._table_function(node.this, parent)
                return rel, self._aliased(rel, alias, (node.this.name.lower(),))
            rel, qualifier = self._table(node)
            return rel, self._aliased(rel, alias, qualifier)
        if isinstance(node, exp.Values):
            rel = self.values(node)
            return rel, self._aliased(rel, alias, ())
        if isinstance(node, exp.Lateral):
            inner = node.this
            if alias is not None:
                inner.set("alias", alias)
            return self.relation(inner, parent)
        if isinstance(node, exp.Subquery):
            if isinstance(node.this, exp.Query) and not node.args.get("joins") and not _is_relation(node.this):
                rel, inner = self.query(node.this, None)
                return rel, self._aliased(rel, alias, ())
            rel, scope = self.relation(node.this, parent)
            rel, scope = self._joins(rel, scope, node.args.get("joins") or (), parent)
            if alias is not None:
                columns = scope.columns()
                fresh = tuple(Col(c.type, c.nullable, self.ids.take(), getattr(c, "name", "")) for c in columns)
                rel = Project(fresh, rel, tuple(columns))
                return rel, self._aliased(rel, alias, ())
            return rel, scope
        raise unsupported(type(node).__name__, span_of(node))

    def _aliased(self, rel: Rel, alias: Node | None, qualifier: tuple[str, ...]) -> Scope:
        columns = rel.columns
        if alias is not None:
            name = alias.this.name if alias.this is not None else ""
            qualifier = (name.lower(),)
            given = alias.args.get("columns") or []
            if given:
                names = _renamed([c.name for c in columns], [g.name for g in given], name, span_of(alias))
                columns = tuple(replace(c, name=n) for c, n in zip(columns, names, strict=True))
                rel.columns = columns
        return Scope([Source(qualifier, columns)])

    def _table(self, node: exp.Table) -> tuple[Rel, tuple[str, ...]]:
        parts = [node.args[k].name for k in ("catalog", "db", "this") if node.args.get(k) is not None]
        version = node.args.get("version")
        span = span_of(node)
        as_of = self._as_of(version) if version is not None else None
        if len(parts) == 1:
            name = parts[0].lower()
            if name in self.ctes:
                if as_of is not None:
                    raise unsupported("time travel on a CTE", span)
                return self._cte(name), (name,)
            view = self.views.get(name)
            if view is not None:
                if as_of is not None:
                    raise unsupported("time travel on a view", span)
                return self._view(view, span), (name,)
        if len(parts) == 2 and parts[0].lower() in _FILE_FORMATS and ("/" in parts[1] or ":" in parts[1]):
            table = self.tables.path(parts[0].lower(), parts[1], as_of, span)
            return self.scan(table, parts[1]), (parts[0].lower(), parts[1].lower())
        table = self.tables.table(parts, as_of, span)
        name_ = table.name
        qualifier = (name_.catalog.lower(), name_.schema.lower(), name_.table.lower())
        return self.scan(table, name_.table), qualifier

    def _as_of(self, version: Node) -> tuple[str, Any]:
        """("version", int) or ("timestamp", microseconds): a constant."""
        expr = self.expressions.bind(version.expression, Scope())
        literal = fold(expr, self.context)
        if literal is None or literal.value is None:
            raise UserError(
                "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT",
                "The time travel expression must be a constant that is not NULL.",
                sqlstate="42K0E",
                span=span_of(version),
            )
        if version.this == "VERSION":
            try:
                return ("version", int(literal.value))
            except ValueError:
                raise UserError(
                    "INVALID_TIME_TRAVEL_SPEC",
                    f"{literal.value!r} is not a version.",
                    sqlstate="42K0E",
                    span=span_of(version),
                ) from None
        from gateway.sqltypes import TIMESTAMP

        moved = fold(Cast(TIMESTAMP, True, literal), self.context) if literal.type != TIMESTAMP else literal
        if moved is None or moved.value is None:
            raise UserError(
                "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT",
                "Cannot be converted to a timestamp.",
                sqlstate="42K0E",
                span=span_of(version),
            )
        return ("timestamp", moved.value)

    def scan(self, table: Any, alias: str) -> Scan:
        """A fresh scan of all columns of `table`."""
        columns = tuple(Col(f.type, f.nullable, self.ids.take(), f.name) for f in table.schema.fields)
        return Scan(columns, table, tuple(f.name for f in table.schema.fields), alias)

    def _cte(self, name: str) -> Rel:
        cte, names = self.ctes[name]
        columns = tuple(
            Col(c.type, c.nullable, self.ids.take(), n) for c, n in zip(cte.plan.columns, names, strict=True)
        )
        return CteRef(columns, cte)

    def _view(self, view: TempView, span: Span | None) -> Rel:
        if view.name.lower() in self.view_stack or len(self.view_stack) > 100:
            raise UserError("CYCLIC_VIEW", f"The view `{view.name}` refers to itself.", span=span)
        inside = self.tables.inside(view)
        context = replace(self.context, catalog=view.catalog, schema=view.schema)
        binder = Binder(
            self.catalogue, context, inside, self.views, {}, self.ids, (*self.view_stack, view.name.lower())
        )
        try:
            rel, _ = binder.query(inside.view_tree(view), None)
        except UserError as error:
            error.span = span
            raise
        if view.columns:
            names = list(view.columns)
            exprs = rel.columns
            columns = tuple(Col(c.type, c.nullable, self.ids.take(), n) for c, n in zip(exprs, names, strict=True))
            return Project(columns, rel, exprs)
        return rel

    def values(self, node: exp.Values) -> Rel:
        """VALUES rows: columns col1.., each of the rows' least common type."""
        scope = Scope()
        rows = [[self.expressions.bind(cell, scope) for cell in row.expressions] for row in node.expressions]
        width = len(rows[0])
        for row, tree in zip(rows, node.expressions, strict=True):
            if len(row) != width:
                raise UserError(
                    "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH",
                    f"Inline table expected {width} columns but found {len(row)} columns in a row.",
                    sqlstate="42000",
                    span=span_of(tree),
                )
            for cell in row:
                if contains(cell, Agg) or contains(cell, Window):
                    raise UserError(
                        "INVALID_INLINE_TABLE.CANNOT_EVALUATE_EXPRESSION_IN_INLINE_TABLE",
                        "Cannot evaluate the expression in an inline table definition.",
                        sqlstate="42000",
                        span=span_of(tree),
                    )
        columns = []
        for index in range(width):
            common = least_common_of([row[index].type for row in rows])
            if common is None:
                raise UserError(
                    "INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE",
                    f"Found incompatible types in the column `col{index + 1}` for inline table.",
                    sqlstate="42000",
                    span=span_of(node),
                )
            for row in rows:
                cell = coerced(row[index], common)
                folded = fold(cell, self.context) if not isinstance(cell, Lit) else None
                row[index] = folded if folded is not None else cell
            nullable = any(row[index].nullable and not _certain(row[index]) for row in rows)
            columns.append(Col(common, nullable, self.ids.take(), f"col{index + 1}"))
        return Values(tuple(columns), tuple(tuple(row) for row in rows))

    def _table_function(self, call: exp.Anonymous, parent: Scope | None) -> Rel:
        name = call.name.lower()
        if name == "range":
            return self._range(call)
        scope = Scope(parent=parent)
        bound = self.expressions.bind(call, scope)
        row = self.catalogue.get(bound.fn) if isinstance(bound, Call) else None
        if row is None or row.kind != "generator" or not isinstance(bound, Call):
            raise UserError(
                "UNRESOLVED_TABLE_VALUED_FUNCTION",
                f"Could not resolve `{call.name}` to a table-valued function.",
                span=span_of(call),
            )
        return self.generated(OneRow(()), bound, False, None)

    def generated(self, rel: Rel, call: Call, outer: bool, names: Sequence[str] | None) -> Generate:
        """The generator's columns behind those of `rel`."""
        assert isinstance(call.type, StructType)
        outer = outer or call.fn.endswith("_outer")
        fields = call.type.fields
        labels = list(names) if names else [f.name for f in fields]
        if len(labels) != len(fields):
            raise UserError(
                "UDTF_ALIAS_NUMBER_MISMATCH",
                "The number of aliases supplied in the AS clause does not match the number of columns output by the "
                f"generator. Expected {len(fields)} aliases, but got {','.join(labels)}.",
                sqlstate="42802",
                span=call.span,
            )
        columns = tuple(
            Col(f.type, f.nullable or outer, self.ids.take(), n) for f, n in zip(fields, labels, strict=True)
        )
        return Generate((*rel.columns, *columns), rel, call, outer)

    def _range(self, call: exp.Anonymous) -> Rel:
        numbers = []
        for arg in call.expressions:
            expr = self.expressions.bind(arg.expression if isinstance(arg, exp.Kwarg) else arg, Scope())
            literal = fold(expr if expr.type == BIGINT else Cast(BIGINT, True, expr), self.context)
            if literal is None or literal.value is None:
                raise UserError(
                    "UNEXPECTED_INPUT_TYPE", "range() takes integer constants.", sqlstate="42K09", span=span_of(arg)
                )
            numbers.append(int(literal.value))
        if not 1 <= len(numbers) <= 4:
            raise UserError(
                "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                f"The `range` requires [1, 2, 3, 4] parameters but the actual number is {len(numbers)}.",
                span=span_of(call),
            )
        start, stop = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
        step = numbers[2] if len(numbers) > 2 else 1
        if step == 0:
            raise UserError("INVALID_PARAMETER_VALUE", "The step of range() must not be 0.", span=span_of(call))
        return Range((Col(BIGINT, False, self.ids.take(), "id"),), start, stop, step)

    def _lateral_view(self, rel: Rel, scope: Scope, view: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        scope.parent = parent
        call = self.expressions.bind(view.this, scope)
        row = self.catalogue.get(call.fn) if isinstance(call, Call) else None
        if row is None or row.kind != "generator" or not isinstance(call, Call):
            raise UserError(
                "UNSUPPORTED_GENERATOR.NOT_GENERATOR",
                f"The generator is not supported: {view.this.name} is expected to be a generator.",
                span=span_of(view),
            )
        alias = view.args["alias"]
        names = [c.name for c in alias.args.get("columns") or ()]
        made = self.generated(rel, call, bool(view.args.get("outer")), names or None)
        fresh = made.columns[len(rel.columns) :]
        qualifier = (alias.this.name.lower(),) if alias.this is not None else ()
        scope.sources.append(Source(qualifier, fresh))
        return made, scope

    def join(self, left: Rel, scope: Scope, node: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        """``left JOIN node``."""
        span = span_of(node)
        side, kind = node.args.get("side"), node.args["kind"]
        word = kind.lower() if kind in ("SEMI", "ANTI") else (side or kind).lower()
        if isinstance(node.this, exp.Lateral):
            return self._lateral_join(left, scope, node, word, parent)
        right, right_scope = self.relation(node.this, parent)
        on, using = node.args.get("on"), node.args.get("using")
        names = [i.name for i in using] if using else []
        if node.args.get("method") == "NATURAL":
            present = {c.name.lower() for c in right_scope.columns() if isinstance(c, Col)}
            names = [c.name for c in scope.columns() if isinstance(c, Col) and c.name.lower() in present]
        left_scope = scope.nullable() if word in ("right", "full") else scope
        new_right = right_scope.nullable() if word in ("left", "full") else right_scope
        both = Scope(
            [*scope.sources, *right_scope.sources],
            parent,
            scope.merged | right_scope.merged,
            scope.hidden | right_scope.hidden,
        )
        condition: Expr | None = None
        merged: dict[str, Expr] = {}
        if names:
            condition, merged, hidden = self._using(names, scope, right_scope, word, span)
            left_scope.hidden = left_scope.hidden | hidden
            new_right.hidden = new_right.hidden | hidden
        elif on is not None:
            condition = self.expressions.condition(on, both)
            if contains(condition, Agg) or contains(condition, Window):
                raise UserError(
                    "UNSUPPORTED_EXPR_FOR_OPERATOR",
                    "A join condition can't hold aggregates or window functions.",
                    span=span,
                )
        if word in ("inner", "cross"):
            word = "inner" if condition is not None else "cross"
        if word in ("semi", "anti"):
            result = scope
            columns = left.columns
        else:
            result = Scope(
                [*left_scope.sources, *new_right.sources],
                parent,
                {**merged, **{n: e for n, e in (left_scope.merged | new_right.merged).items() if n not in merged}},
                left_scope.hidden | new_right.hidden,
            )
            nullable = {c.id: c for c in result.all_columns()}
            columns = tuple(nullable.get(c.id, c) for c in (*left.columns, *right.columns))
        result.outer_refs.update(both.outer_refs)
        return Join(columns, word, left, right, condition), result

    def _using(
        self, names: Sequence[str], left: Scope, right: Scope, word: str, span: Span | None
    ) -> tuple[Expr | None, dict[str, Expr], set[int]]:
        conditions: list[Expr] = []
        merged: dict[str, Expr] = {}
        hidden: set[int] = set()
        for name in names:
            sides = []
            for where, scope in (("left", left), ("right", right)):
                alone = Scope(scope.sources, None, scope.merged, scope.hidden)
                found = alone.resolve([name], span)
                if found is None:
                    known = ", ".join(f"`{c.name}`" for c in scope.all_columns())
                    raise UserError(
                        "UNRESOLVED_USING_COLUMN_FOR_JOIN",
                        f"USING column `{name}` cannot be resolved on the {where} side of the join. The {where}-side "
                        f"columns: [{known}].",
                        span=span,
                    )
                sides.append(found)
            conditions.append(comparison("=", sides[0], sides[1], span))
            for found in sides:
                if isinstance(found, Col):
                    hidden.add(found.id)
            merged[name.lower()] = self._merged(sides[0], sides[1], word)
        condition = conditions[0] if conditions else None
        for extra in conditions[1:]:
            assert condition is not None
            condition = Call(BOOLEAN, True, "and", (condition, extra))
        return condition, merged, hidden

    def _merged(self, left: Expr, right: Expr, word: str) -> Expr:
        if word == "right":
            return right
        if word == "full":
            name = left.name if isinstance(left, Col) else ""
            return MergedColumn.of(self.expressions.call("coalesce", (left, right), Scope(), None), name)
        return left

    def _lateral_join(self, left: Rel, scope: Scope, node: Node, word: str, parent: Scope | None) -> tuple[Rel, Scope]:
        inner = node.this.this
        alias = node.this.args.get("alias")
        if node.args.get("on") is not None or word not in ("inner", "cross", "left"):
            raise unsupported("LATERAL with a join condition", span_of(node))
        if isinstance(inner, exp.Table) and isinstance(inner.this, exp.Anonymous):
            scope.parent = parent
            call = self.expressions.bind(inner.this, scope)
            row = self.catalogue.get(call.fn) if isinstance(call, Call) else None
            if row is not None and row.kind == "generator" and isinstance(call, Call):
                names = [c.name for c in (alias.args.get("columns") or ())] if alias is not None else []
                made = self.generated(left, call, word == "left", names or None)
                qualifier = (alias.this.name.lower(),) if alias is not None and alias.this is not None else ()
                scope.sources.append(Source(qualifier, made.columns[len(left.columns) :]))
                return made, scope
        raise unsupported("LATERAL subqueries", span_of(node))


class MergedColumn:
    """The bare name of a FULL JOIN … USING column: coalesce of both sides, shown under the column's name."""

    @staticmethod
    def of(expr: Expr, name: str) -> Expr:
        if isinstance(expr, Call):
            expr.shown = name
            expr.data = ("merged",)
        return expr


class _Select:
    """One SELECT."""

    def __init__(self, binder: Binder, node: exp.Select, parent: Scope | None) -> None:
        self.binder = binder
        self.node = node
        self.parent = parent
        self.expressions = binder.expressions
        self.ids = binder.ids

    def bind(self) -> tuple[Rel, Scope]:
        node, binder = self.node, self.binder
        saved = self.expressions.windows
        self.expressions.windows = {w.this.name.lower(): w for w in node.args.get("windows") or ()}
        try:
            rel, scope = binder.from_(node, self.parent)
            where = node.args.get("where")
            if where is not None:
                condition = self.expressions.condition(where.this, scope)
                self._plain(condition, "WHERE", where)
                rel = Filter(rel.columns, rel, condition)
            items = self.items(scope)
            return self._finish(rel, scope, items), scope
        finally:
            self.expressions.windows = saved

    def _plain(self, expr: Expr, clause: str, node: Node) -> None:
        if contains(expr, Agg) or contains(expr, Window) or has_grouping_call(expr) or self._generator(expr):
            raise UserError(
                "INVALID_WHERE_CONDITION",
                f"The {clause} condition contains invalid expressions: aggregate, window or generator functions.",
                span=span_of(node),
            )

    # ----------------------------------------------------------------------------------------------------------- items

    def items(self, scope: Scope) -> list[Item]:
        """The select list: stars expanded, names given, earlier aliases visible."""
        items: list[Item] = []
        for tree in self.node.expressions:
            found = self._item(tree, scope)
            for item in found:
                if item.aliased:
                    name = item.name.lower()
                    if name in scope.lateral:
                        scope.ambiguous_lateral.add(name)
                    scope.lateral[name] = item.expr
            items += found
        scope.lateral = {}
        scope.ambiguous_lateral = set()
        return items

    def _item(self, tree: Node, scope: Scope) -> list[Item]:
        inner = tree.this if isinstance(tree, (exp.Alias, exp.Aliases)) else tree
        if isinstance(inner, exp.Anonymous) and scope.lateral:
            row = self.binder.catalogue.get(inner.name.lower())
            if row is not None and row.kind == "generator":
                lateral, scope.lateral = scope.lateral, {}
                try:
                    return self._item(tree, scope)
                finally:
                    scope.lateral = lateral
        if isinstance(tree, exp.Star):
            return self._star(scope.columns(), tree, scope)
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
            return self._star(self.expressions.star_columns(tree, scope), tree.this, scope)
        if isinstance(tree, exp.Alias):
            expr = self.expressions.bind(tree.this, scope)
            return [Item(tree.args["alias"].name, expr, True)]
        if isinstance(tree, exp.Aliases):
            expr = self.expressions.bind(tree.this, scope)
            if not self._generator(expr):
                raise UserError(
                    "MULTI_ALIAS_WITHOUT_GENERATOR",
                    "Multi part aliasing is not supported with an expression that is not a generator.",
                    span=span_of(tree),
                )
            assert isinstance(expr, Call)
            names = tuple(i.name for i in tree.expressions)
            return [Item("", replace(expr, data=(*expr.data, ("aliases", names))), True)]
        expr = self.expressions.bind(tree, scope)
        return [Item(self._name(tree, expr), expr, False)]

    def _name(self, tree: Node, expr: Expr) -> str:
        return str(self._name_of(tree, expr))

    def _name_of(self, tree: Node, expr: Expr) -> Any:
        if isinstance(tree, exp.Column) and (isinstance(expr, Col) or _merged_name(expr)):
            return tree.this.name
        if isinstance(tree, exp.Column) and isinstance(expr, Call) and expr.fn in ("_field", "_map_item"):
            return tree.this.name
        if isinstance(tree, exp.Dot) and _is_path(tree):
            return tree.expression.name
        if isinstance(tree, exp.Column) and tree.args.get("table") is None and not isinstance(expr, Call):
            return tree.this.name
        return self.binder.names.of(expr)

    def _star(self, columns: list[Expr], star: Node, scope: Scope) -> list[Item]:
        removed: set[int] = set()
        removed_names: set[str] = set()
        for column in star.args.get("except_") or ():
            parts = [column.args[k].name for k in ("catalog", "db", "table", "this") if column.args.get(k) is not None]
            found = scope.resolve(parts, span_of(column))
            if isinstance(found, Call) and found.fn == "_field":
                raise unsupported("EXCEPT of a struct's field", span_of(column))
            if not isinstance(found, Col):
                raise scope.missing(parts, span_of(column))
            if found.id in removed:
                raise UserError(
                    "EXCEPT_OVERLAPPING_COLUMNS",
                    f"Columns in an EXCEPT list must be distinct and non-overlapping, but got `{found.name}` twice.",
                    sqlstate="42702",
                    span=span_of(column),
                )
            removed.add(found.id)
            removed_names.add(found.name.lower())
        items = []
        for expr in columns:
            name = _merged_name(expr) or (expr.name if isinstance(expr, Col) else self.binder.names.of(expr))
            if isinstance(expr, Call) and expr.fn == "_field":
                name = expr.shown or name
            if isinstance(expr, Col) and expr.id in removed:
                continue
            items.append(Item(name, expr, False))
        if not items:
            raise (
                UserError(
                    "INVALID_USAGE_OF_STAR_OR_REGEX",
                    "Invalid usage of '*': it stands for no column.",
                    span=span_of(star),
                )
                if removed_names or not columns
                else UserError("INTERNAL_ERROR", "An empty star.")
            )
        return items

    def _generator(self, expr: Expr) -> bool:
        if not isinstance(expr, Call):
            return False
        row = self.binder.catalogue.get(expr.fn)
        return row is not None and row.kind == "generator"

    # -------------------------------------------------------------------------------------------------------- assembly

    def _finish(self, rel: Rel, scope: Scope, items: list[Item]) -> Rel:
        node = self.node
        having, qualify = node.args.get("having"), node.args.get("qualify")
        order = node.args.get("order")
        distinct = node.args.get("distinct") is not None
        aliases = self._aliases(items)
        having_expr = self._having(having, scope, aliases, items) if having is not None else None
        qualify_expr = None
        if qualify is not None:
            qualify_expr = self._with_outputs(qualify.this, scope, aliases, condition=True)
            if not any(contains(e, Window) for e in (qualify_expr, *(i.expr for i in items))):
                raise UserError(
                    "QUALIFY_REQUIRES_WINDOW_FUNCTION",
                    "The QUALIFY clause requires a window function in the SELECT list or in the QUALIFY clause.",
                    sqlstate="42903",
                    span=span_of(qualify),
                )
        keys: list[tuple[SortKey, int | None]] = []
        if order is not None and not distinct:
            keys = self._order(order, scope, items, aliases)
        exprs = [i.expr for i in items]
        extra = [e for e in (having_expr, qualify_expr) if e is not None] + [k.expr for k, _ in keys]
        grouping = self._grouping(scope, items, [*exprs, *extra], having is not None)
        if grouping is not None and order is not None and not distinct:
            self._check_order(order, scope, grouping, any(contains(e, Window) for e in exprs))
        if grouping is not None:
            exprs = [grouping.rewrite(e) for e in exprs]
            having_expr = grouping.rewrite(having_expr) if having_expr is not None else None
            qualify_expr = grouping.rewrite(qualify_expr) if qualify_expr is not None else None
            keys = [(SortKey(grouping.rewrite(k.expr), k.descending, k.nulls_first), i) for k, i in keys]
            rel = grouping.relation(rel)
        if having_expr is not None:
            rel = Filter(rel.columns, rel, having_expr)
        names = [i.name for i in items]
        positions = list(range(len(items)))
        if grouping is None:
            rel, exprs, names, positions = self._generators(rel, exprs, names)
        windows = Windows(self.ids)
        exprs = [windows.rewrite(e) for e in exprs]
        qualify_expr = windows.rewrite(qualify_expr) if qualify_expr is not None else None
        keys = [(SortKey(windows.rewrite(k.expr), k.descending, k.nulls_first), i) for k, i in keys]
        rel = windows.relation(rel)
        if qualify_expr is not None:
            rel = Filter(rel.columns, rel, qualify_expr)
        if grouping is not None:
            rel, exprs, names, positions = self._generators(rel, exprs, names)
        keys = [(k, positions[i] if i is not None else None) for k, i in keys]
        outputs = tuple(Col(e.type, e.nullable, self.ids.take(), n) for e, n in zip(exprs, names, strict=True))
        if distinct:
            for output in outputs:
                if has_map(output.type):
                    raise UserError(
                        "UNSUPPORTED_FEATURE.SET_OPERATION_ON_MAP_TYPE",
                        f'Cannot have MAP type columns in DataFrame which calls set operations (column "{output.name}").',
                        span=span_of(node),
                    )
            rel = Distinct(outputs, Project(outputs, rel, tuple(exprs)))
            if order is not None:
                output_scope = Scope([Source((), outputs)])
                sort_keys = []
                for item in order.expressions:
                    sort_keys += self._distinct_keys(item, outputs, items, output_scope, scope)
                rel = Sort(outputs, rel, tuple(sort_keys))
            return self.binder.limited(node, rel)
        return self.binder.limited(node, self._sorted(rel, exprs, outputs, keys))

    def _distinct_keys(
        self, item: Node, outputs: tuple[Col, ...], items: list[Item], output: Scope, scope: Scope
    ) -> list[SortKey]:
        try:
            return self.binder.order_keys(item, list(outputs), output)
        except UserError as error:
            if not error.condition.startswith("UNRESOLVED_COLUMN"):
                raise
            bound = self.expressions.bind(item.this, scope)
            for column, candidate in zip(outputs, items, strict=False):
                if key(candidate.expr) == key(bound):
                    return [self.expressions.sort_key(item, column)]
            raise

    def _sorted(
        self, rel: Rel, exprs: list[Expr], outputs: tuple[Col, ...], keys: list[tuple[SortKey, int | None]]
    ) -> Rel:
        if not keys:
            return Project(outputs, rel, tuple(exprs))
        known = {key(e): o for e, o in zip(exprs, outputs, strict=True)}
        hidden: list[Col] = []
        hidden_exprs: list[Expr] = []
        sort_keys = []
        for sort, index in keys:
            column = outputs[index] if index is not None else known.get(key(sort.expr))
            if column is None:
                column = Col(sort.expr.type, sort.expr.nullable, self.ids.take(), "")
                known[key(sort.expr)] = column
                hidden.append(column)
                hidden_exprs.append(sort.expr)
            sort_keys.append(SortKey(column, sort.descending, sort.nulls_first))
        every = (*outputs, *hidden)
        rel = Sort(every, Project(every, rel, (*exprs, *hidden_exprs)), tuple(sort_keys))
        return Project(outputs, rel, outputs) if hidden else rel

    def _aliases(self, items: list[Item]) -> dict[str, Expr]:
        found: dict[str, Expr] = {}
        clashing: set[str] = set()
        for item in items:
            name = item.name.lower()
            if name in found and key(found[name]) != key(item.expr):
                clashing.add(name)
            found.setdefault(name, item.expr)
        return {n: e for n, e in found.items() if n not in clashing and not self._generator(e)}

    def _having(self, having: Node, scope: Scope, aliases: dict[str, Expr], items: list[Item]) -> Expr:
        """HAVING: a grouping column wins over an alias of its name, an alias over any other column."""
        scope.fallbacks = aliases
        try:
            first = self.expressions.condition(having.this, scope)
        finally:
            scope.fallbacks = {}
        grouping = self._grouping(scope, items, [first], True)
        try:
            if grouping is not None:
                grouping.rewrite(first)
        except UserError as error:
            if error.condition != "MISSING_AGGREGATION":
                raise
            return self._with_outputs(having.this, scope, aliases, condition=True)
        return first

    def _with_outputs(self, tree: Node, scope: Scope, aliases: dict[str, Expr], condition: bool = False) -> Expr:
        """An expression of HAVING, QUALIFY or ORDER BY: output names win over input columns."""
        scope.overrides = aliases
        try:
            return self.expressions.condition(tree, scope) if condition else self.expressions.bind(tree, scope)
        finally:
            scope.overrides = {}

    def _order(
        self, order: Node, scope: Scope, items: list[Item], aliases: dict[str, Expr]
    ) -> list[tuple[SortKey, int | None]]:
        keys: list[tuple[SortKey, int | None]] = []
        for item in order.expressions:
            if isinstance(item.this, exp.Var) and item.this.name.upper() == "ALL":
                named = aliases.get("all") or scope.resolve(["all"], None)
                if named is not None:
                    keys.append((self.expressions.sort_key(item, named), None))
                else:
                    keys += [(self.expressions.sort_key(item, i.expr), n) for n, i in enumerate(items)]
                continue
            expr = self._with_outputs(item.this, scope, aliases)
            if self._generator(expr):
                raise UserError(
                    "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
                    "The generator is not supported: outside the SELECT clause, found: Sort.",
                    span=span_of(item),
                )
            ordinal = ordinal_of(item.this, expr) if self.binder.context.order_by_ordinal else None
            if ordinal is not None:
                if not 1 <= ordinal <= len(items):
                    raise UserError(
                        "ORDER_BY_POS_OUT_OF_RANGE",
                        f"ORDER BY position {ordinal} is not in select list (valid range is [1, {len(items)}]).",
                        span=span_of(item),
                    )
                chosen = items[ordinal - 1].expr
                sort = (
                    SortKey(chosen, *_direction(item))
                    if self._generator(chosen)
                    else self.expressions.sort_key(item, chosen)
                )
                keys.append((sort, ordinal - 1))
                continue
            keys.append((self.expressions.sort_key(item, expr), None))
        return keys

    def _check_order(self, order: Node, scope: Scope, grouping: Grouping, windows: bool) -> None:
        """Aggregates written in ORDER BY that Spark resolves otherwise than by their columns."""
        keys = {k.id for k in grouping.keys if isinstance(k, Col)}
        for item in order.expressions:
            if isinstance(item.this, (exp.Var, exp.Column, exp.Literal)):
                continue
            try:
                expr = self.expressions.bind(item.this, scope)
            except UserError:
                continue  # an alias: bound with the output names
            if not contains(expr, Agg):
                continue
            if windows:
                raise unsupported("an aggregate in ORDER BY beside window functions", span_of(item))
            if grouping.sets is not None and _aggregated(expr) & keys:
                raise unsupported("an aggregate of a grouping column in ORDER BY with grouping sets", span_of(item))

    def _generators(
        self, rel: Rel, exprs: list[Expr], names: list[str]
    ) -> tuple[Rel, list[Expr], list[str], list[int]]:
        """A generator among the items becomes a relation; `positions` maps items to (first) outputs."""
        result: list[Expr] = []
        labels: list[str] = []
        positions: list[int] = []
        seen = False
        for expr, name in zip(exprs, names, strict=True):
            positions.append(len(result))
            if not self._generator(expr):
                result.append(expr)
                labels.append(name)
                continue
            assert isinstance(expr, Call) and isinstance(expr.type, StructType)
            if seen:
                raise UserError(
                    "UNSUPPORTED_GENERATOR.MULTI_GENERATOR",
                    "The generator is not supported: only one generator allowed per SELECT clause.",
                    span=expr.span,
                )
            seen = True
            if name != self.binder.names.of(expr) and name and len(expr.type.fields) > 1:
                raise UserError(
                    "UDTF_ALIAS_NUMBER_MISMATCH",
                    "The number of aliases supplied in the AS clause does not match the number of columns output by the "
                    f"generator. Expected {len(expr.type.fields)} aliases, but got {name}.",
                    sqlstate="42802",
                    span=expr.span,
                )
            aliases = next((d[1] for d in expr.data if isinstance(d, tuple) and d and d[0] == "aliases"), None)
            if aliases is None and len(expr.type.fields) == 1 and name != self.binder.names.of(expr):
                aliases = (name,)
            clean = replace(
                expr, data=tuple(d for d in expr.data if not (isinstance(d, tuple) and d and d[0] == "aliases"))
            )
            made = self.binder.generated(rel, clean, False, aliases)
            fresh = made.columns[len(rel.columns) :]
            rel = made
            result += fresh
            labels += [c.name for c in fresh]
        return rel, result, labels, positions

    # -------------------------------------------------------------------------------------------------------- grouping

    def _grouping(self, scope: Scope, items: list[Item], exprs: list[Expr], having: bool) -> Grouping | None:
        group = self.node.args.get("group")
        if group is None:
            if any(contains(e, Agg) for e in exprs) or having:
                return Grouping(self.ids, [], None)
            if any(has_grouping_call(e) for e in exprs):
                raise UserError(
                    "UNSUPPORTED_GROUPING_EXPRESSION",
                    "grouping()/grouping_id() can only be used with GroupingSets/Cube/Rollup.",
                    sqlstate="42K0E",
                    span=span_of(self.node),
                )
            return None
        if group.args.get("all"):
            keys = [i.expr for i in items if not contains(i.expr, Agg) and not isinstance(i.expr, Lit)]
            if any(contains(k, Window) for k in keys):
                raise unsupported("GROUP BY ALL with window functions", span_of(group))
            return Grouping(self.ids, _distinct(keys), None)
        if self.binder.context.group_by_aliases:
            scope.fallbacks = self._aliases(items)
        try:
            return self._explicit(group, scope, items)
        finally:
            scope.fallbacks = {}

    def _explicit(self, group: Node, scope: Scope, items: list[Item]) -> Grouping:
        elements: list[list[tuple[Expr, ...]]] = []
        analytic = bool(group.args.get("grouping_sets"))
        plain: list[Expr] = []
        for tree in group.expressions:
            if isinstance(tree, (exp.Rollup, exp.Cube, exp.GroupingSets)):
                analytic = True
                elements.append(self._sets(tree, scope, items))
            else:
                expr = self._key(tree, scope, items)
                plain.append(expr)
                elements.append([(expr,)])
        if group.args.get("grouping_sets"):
            elements = [self._sets(group.args["grouping_sets"][0], scope, items)]
        if not analytic:
            return Grouping(self.ids, _distinct(plain), None)
        keys = _distinct([*plain, *(e for sets in elements for s in sets for e in s)])
        positions = {key(k): i for i, k in enumerate(keys)}
        combined: list[tuple[int, ...]] = []
        for choice in product(*elements):
            indexes = sorted({positions[key(e)] for part in choice for e in part})
            combined.append(tuple(indexes))
        if len(combined) > 4096:
            raise UserError(
                "GROUPING_SIZE_LIMIT_EXCEEDED", "Too many grouping sets (more than 4096).", span=span_of(group)
            )
        if len(set(combined)) != len(combined):
            raise unsupported("the same grouping set twice", span_of(group))
        return Grouping(self.ids, keys, combined)

    def _sets(self, tree: Node, scope: Scope, items: list[Item]) -> list[tuple[Expr, ...]]:
        if isinstance(tree, exp.GroupingSets):
            found: list[tuple[Expr, ...]] = []
            for element in tree.expressions:
                if isinstance(element, (exp.Rollup, exp.Cube, exp.GroupingSets)):
                    found += self._sets(element, scope, items)
                else:
                    found.append(self._members(element, scope, items))
            return found
        groups = [self._members(e, scope, items) for e in tree.expressions]
        if isinstance(tree, exp.Rollup):
            return [tuple(e for g in groups[:n] for e in g) for n in range(len(groups), -1, -1)]
        if len(groups) > 12:
            raise UserError("GROUPING_SIZE_LIMIT_EXCEEDED", "CUBE of more than 12 groups.", span=span_of(tree))
        result = []
        for mask in range((1 << len(groups)) - 1, -1, -1):
            chosen = [g for i, g in enumerate(groups) if mask >> (len(groups) - 1 - i) & 1]
            result.append(tuple(e for g in chosen for e in g))
        return result

    def _members(self, tree: Node, scope: Scope, items: list[Item]) -> tuple[Expr, ...]:
        if isinstance(tree, exp.Tuple):
            return tuple(self._key(e, scope, items) for e in tree.expressions)
        return (self._key(tree, scope, items),)

    def _key(self, tree: Node, scope: Scope, items: list[Item]) -> Expr:
        expr = self.expressions.bind(tree, scope)
        ordinal = ordinal_of(tree, expr) if self.binder.context.group_by_ordinal else None
        if ordinal is not None:
            if any(_is_star(e) for e in self.node.expressions):
                raise UserError(
                    "STAR_GROUP_BY_POS",
                    "Star (*) is not allowed in a select list when GROUP BY an ordinal position is used.",
                    span=span_of(tree),
                )
            if not 1 <= ordinal <= len(items):
                raise UserError(
                    "GROUP_BY_POS_OUT_OF_RANGE",
                    f"GROUP BY position {ordinal} is not in select list (valid range is [1, {len(items)}]).",
                    span=span_of(tree),
                )
            expr = items[ordinal - 1].expr
            if contains(expr, Agg):
                raise UserError(
                    "GROUP_BY_POS_AGGREGATE",
                    f"GROUP BY {ordinal} refers to an expression that contains an aggregate function. Aggregate "
                    "functions are not allowed in GROUP BY.",
                    span=span_of(tree),
                )
        if contains(expr, Agg):
            raise UserError(
                "GROUP_BY_AGGREGATE", "Aggregate functions are not allowed in GROUP BY.", span=span_of(tree)
            )
        if contains(expr, Window):
            raise UserError(
                "UNSUPPORTED_EXPR_FOR_OPERATOR", "Window functions are not allowed in GROUP BY.", span=span_of(tree)
            )
        if has_map(expr.type):
            raise unsupported(f"GROUP BY an expression of type {expr.type.sql}", span_of(tree))
        return expr


def ordinal_of(tree: Node, expr: Expr) -> int | None:
    """The position that an integer literal in ORDER BY or GROUP BY stands for."""
    if isinstance(tree, exp.Literal) and isinstance(expr, Lit) and is_integral(expr.type):
        return int(expr.value)
    return None


def least_common_of_pairs(types: Sequence[DataType]) -> DataType | None:
    """Set operations fold their inputs from the left."""
    result = types[0]
    for t in types[1:]:
        common = least_common_type(result, t)
        if common is None:
            return None
        result = common
    return result


def _direction(item: Node) -> tuple[bool, bool]:
    descending = bool(item.args.get("desc"))
    first = item.args.get("nulls_first")
    return descending, (not descending) if first is None else bool(first)


def _distinct(exprs: Sequence[Expr]) -> list[Expr]:
    found: dict[Any, Expr] = {}
    for e in exprs:
        found.setdefault(key(e), e)
    return list(found.values())


def _certain(expr: Expr) -> bool:
    return isinstance(expr, Lit) and expr.value is not None


def _merged_name(expr: Expr) -> str | None:
    if isinstance(expr, Call) and expr.data == ("merged",):
        return expr.shown
    return None


def _renamed(names: Sequence[str], given: Sequence[str], relation: str, span: Span | None) -> list[str]:
    if len(given) != len(names):
        raise UserError(
            "ASSIGNMENT_ARITY_MISMATCH" if not relation else "NUM_TABLE_VALUE_ALIASES_MISMATCH",
            f"The number of column aliases ({len(given)}) of `{relation}` does not match its number of columns "
            f"({len(names)}).",
            span=span,
        )
    return list(given)


def _has_organization(node: Node) -> bool:
    return any(
        node.args.get(k) is not None for k in ("order", "limit", "offset", "with_", "sort", "cluster", "distribute")
    )


def _is_relation(node: Node) -> bool:
    return isinstance(node, (exp.Table, exp.Lateral)) or (
        isinstance(node, exp.Subquery) and (bool(node.args.get("joins")) or node.args.get("alias") is not None)
    )


def _is_path(tree: Node) -> bool:
    while isinstance(tree, exp.Dot):
        tree = tree.this
    return isinstance(tree, exp.Column)


def _aggregated(expr: Expr) -> set[int]:
    """Columns inside the aggregates of `expr`."""
    found: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        e, inside = stack.pop()
        inside = inside or isinstance(e, Agg)
        if inside and isinstance(e, Col):
            found.add(e.id)
        stack += [(c, inside) for c in children(e)]
    return found


def _is_star(tree: Node) -> bool:
    return isinstance(tree, exp.Star) or (isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star))


def _ordinal(n: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(n, f"{n}th")
