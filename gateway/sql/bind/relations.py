"""Relations of FROM: tables, views, CTEs, VALUES, table functions, joins and lateral views, as bound relations with scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from sqlglot import exp

from gateway.catalog.objects import StoredView
from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind import file_metadata, table_changes
from gateway.sql.bind.binder import no_routine
from gateway.sql.bind.columns import check_no_star
from gateway.sql.bind.computed import whole_number
from gateway.sql.bind.correlations import check_existence
from gateway.sql.bind.inline_tables import check_cell
from gateway.sql.bind.joins import Joins, check_plain
from gateway.sql.bind.pivots import pivoted, unpivoted
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.bind.travel import version_of
from gateway.sql.bind.view_columns import cast_columns, kept_columns
from gateway.sql.functions.fold import fold, fold_whole
from gateway.sql.read.tree import Pivot, Unpivot, span_of
from gateway.sql.typed.catalogue import Context, is_generator
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import written_of
from gateway.sql.typed.foldable import is_foldable
from gateway.sql.typed.nodes import (
    Call,
    Col,
    Cte,
    CteRef,
    Generate,
    Ids,
    Lit,
    OneRow,
    Project,
    Range,
    Rel,
    Scan,
    Values,
)
from gateway.sqltypes import BIGINT, BOOLEAN, StructType, is_numeric
from gateway.worker_jobs import TempView

Node = exp.Expr
_VIEW_DEPTH = 100  # Spark's default
_FILE_FORMATS = frozenset({"delta", "parquet", "csv", "json", "orc", "avro", "text", "binaryfile"})


class Tables(Protocol):
    """What resolving needs of the catalogs: tables by name and by path, and the parser for views."""

    def table(self, parts: Sequence[str], as_of: Any, span: Span | None) -> Any:
        """The `catalog.base.BoundTable` or the `StoredView`; raises TABLE_OR_VIEW_NOT_FOUND with the nearest names."""

    def path(self, format_: str, path: str, as_of: Any, span: Span | None) -> Any: ...

    def changes(self, parts: Sequence[str], start: Any, end: Any, span: Span | None) -> Any:
        """The changes of a table from a version or moment to another, or to the newest version."""

    def computed(self, rel: Rel, ids: Ids) -> int | None:
        """The one value of a query of one row; raises what computing it raises."""

    def view_tree(self, view: TempView) -> Node: ...

    def inside(self, view: TempView) -> Tables:
        """The same catalogs under the names that a view was made under."""


class Relations(Joins):
    """The part of `resolve.Binder` that binds FROM clauses."""

    context: Context
    tables: Tables
    views: Mapping[str, TempView]
    ctes: dict[str, tuple[Cte, tuple[str, ...]]]
    view_stack: tuple[str, ...]
    visible: frozenset[str] | None  # names of views that may be meant; None: all
    asked: tuple[
        Node | None, bool, file_metadata.Asked
    ]  # of the statement with this root: what of `_metadata` it names

    def query(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        """A query; given by the subclass."""
        raise NotImplementedError

    def inside(self, view: TempView) -> tuple[Relations, Tables]:
        """A binder for a view's query, and the tables under the view's names; given by the subclass."""
        raise NotImplementedError

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
            if isinstance(node.this, exp.Anonymous) and node.this.name.lower() == table_changes.NAME:
                changed, qualifier = self._changes(node.this)
                return changed, self.aliased(changed, alias, qualifier)
            if isinstance(node.this, exp.Anonymous):
                rel, inner = self._table_function(node.this, parent)
                scope = self.aliased(rel, alias, (node.this.name.lower(),), "NUM_TABLE_VALUE_ALIASES_MISMATCH")
                return rel, scope.reading(inner)
            rel, qualifier = self._table(node)
            scope = self.aliased(rel, alias, qualifier)
            if isinstance(rel, CteRef):
                scope.outer_refs.update((c.id, c) for c in rel.cte.outer)
            return file_metadata.described(self, node, rel, scope), scope
        if isinstance(node, exp.Values):
            rel = self.values(node)
            return rel, self.aliased(rel, alias, (), "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH")
        if isinstance(node, Pivot):
            return pivoted(self, node, parent)
        if isinstance(node, Unpivot):
            return unpivoted(self, node, parent)
        if isinstance(node, exp.Lateral):
            inner = node.this
            if alias is not None:
                inner.set("alias", alias)
            return self.relation(inner, parent)
        if isinstance(node, exp.Subquery):
            is_query = isinstance(node.this, (exp.Query, exp.Values)) and not _is_relation(node.this)
            if is_query and not node.args.get("joins"):
                rel, inner = self.query(node.this, parent)
                return rel, self.aliased(rel, alias, ()).reading(inner)
            rel, scope = self.relation(node.this, parent)
            rel, scope = self._joins(rel, scope, node.args.get("joins") or (), parent)
            if alias is not None:
                columns = scope.columns()
                fresh = tuple(Col(c.type, c.nullable, self.ids.take(), getattr(c, "name", "")) for c in columns)
                rel = Project(fresh, rel, tuple(columns))
                return rel, self.aliased(rel, alias, ()).reading(scope)
            return rel, scope
        raise unsupported(type(node).__name__, span_of(node))

    def aliased(
        self, rel: Rel, alias: Node | None, qualifier: tuple[str, ...], mismatch: str = "ASSIGNMENT_ARITY_MISMATCH"
    ) -> Scope:
        """The scope of one relation under an alias and column aliases; `mismatch` is the error of a wrong number."""
        columns = rel.columns
        shown = None  # with a table's own name Spark shows its catalog's, which is called otherwise there
        if alias is not None:
            shown = name = alias.this.name if alias.this is not None else ""
            qualifier = (name.lower(),)
            given = alias.args.get("columns") or []
            if given:
                names = renamed([c.name for c in columns], [g.name for g in given], name, span_of(alias), mismatch)
                columns = tuple(replace(c, name=n) for c, n in zip(columns, names, strict=True))
                rel.columns = columns
                return Scope([Source(qualifier, columns, shown=shown)])
        return Scope([Source(qualifier, columns, self.ids.repeated, shown)])

    def _table(self, node: exp.Table) -> tuple[Rel, tuple[str, ...]]:
        parts = [node.args[k].name for k in ("catalog", "db", "this") if node.args.get(k) is not None]
        version = node.args.get("version")
        span = span_of(node)
        as_of = version_of(version, self) if version is not None else None
        if len(parts) == 1:
            name = parts[0].lower()
            if name in self.ctes:
                if as_of is not None:
                    raise unsupported("time travel on a CTE", span)
                return self._cte(name), (name,)
            view = self.views.get(name) if self.visible is None or name in self.visible else None
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
        if isinstance(table, StoredView):
            if as_of is not None:
                raise unsupported("time travel on a view", span)
            return self._stored_view(table, span), qualifier
        return self.scan(table, name_.table), qualifier

    def scan(self, table: Any, alias: str) -> Scan:
        """A fresh scan of all columns of `table`."""
        fields = table.schema.fields
        names = tuple([f.name for f in fields])
        columns = map(Col, [f.type for f in fields], [f.nullable for f in fields], self.ids.several(len(fields)), names)
        return Scan(tuple(columns), table, names, alias)

    def _cte(self, name: str) -> Rel:
        cte, names = self.ctes[name]
        columns = tuple(
            Col(c.type, c.nullable, self.ids.take(), n) for c, n in zip(cte.plan.columns, names, strict=True)
        )
        if names == tuple(c.name for c in cte.plan.columns):
            places = {c.id: at for at, c in enumerate(cte.plan.columns)}
            for c, at in list(places.items()):
                if c in self.ids.repeated:
                    self.ids.repeated[columns[at].id] = columns[places[self.ids.repeated[c]]].id
        return CteRef(columns, cte)

    def _view(self, view: TempView, span: Span | None) -> Rel:
        if view.name.lower() in self.view_stack:
            path = " -> ".join(f"`{name}`" for name in (*self.view_stack, view.name.lower()))
            message = f"Recursive view `{view.name}` detected (cycle: {path})."
            raise UserError("RECURSIVE_VIEW", message, span=span)
        if len(self.view_stack) >= _VIEW_DEPTH:
            message = (
                f"The depth of view `{self.view_stack[0]}` exceeds the maximum view resolution depth ({_VIEW_DEPTH})."
            )
            raise UserError("VIEW_EXCEED_MAX_NESTED_DEPTH", message, span=span)
        binder, inside = self.inside(view)
        try:
            rel, _ = binder.query(inside.view_tree(view), None)
        except UserError as error:
            error.span = span
            raise
        exprs = kept_columns(view, rel.columns, span)
        names = view.columns
        if not names:
            if exprs is rel.columns or view.made is None:
                return rel
            names = tuple(f.name for f in view.made.fields)
        columns = tuple(Col(e.type, e.nullable, self.ids.take(), n) for e, n in zip(exprs, names, strict=True))
        return Project(columns, rel, tuple(exprs))

    def _stored_view(self, view: StoredView, span: Span | None) -> Rel:
        """A lasting view: no temporary view is seen in it, and its columns keep the types that it was made with."""
        text = TempView(str(view.name), view.query, (), view.catalog, view.schema_name, views=frozenset())
        rel = self._view(text, span)
        exprs = cast_columns(view, rel.columns, span)
        columns = tuple(
            Col(e.type, e.nullable, self.ids.take(), f.name) for e, f in zip(exprs, view.schema.fields, strict=True)
        )
        return Project(columns, rel, exprs)

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
                    span=span_of(tree),
                )
            for cell in row:
                check_cell(cell, self.catalogue, span_of(tree))
        columns = []
        for index in range(width):
            common = written_of([row[index].type for row in rows])
            if common is None:
                raise UserError(
                    "INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE",
                    f"Found incompatible types in the column `col{index + 1}` for inline table.",
                    span=span_of(node),
                )
            nullable = any(row[index].nullable for row in rows)  # as written, whatever they turn out to be
            for row in rows:
                cell = coerced(row[index], common)
                folded = fold(cell, self.context) if not isinstance(cell, Lit) else None
                row[index] = folded if folded is not None else cell
            columns.append(Col(common, nullable, self.ids.take(), f"col{index + 1}"))
        return Values(tuple(columns), tuple(tuple(row) for row in rows))

    def _table_function(self, call: exp.Anonymous, parent: Scope | None) -> tuple[Rel, Scope]:
        name, scope = call.name.lower(), Scope(parent=parent)
        if name == "range":
            return self._range(call), scope
        row = self.catalogue.get(name)
        if row is not None and row.kind != "generator":
            raise UserError(
                "NOT_A_TABLE_FUNCTION",
                f"`{call.name}` appears as a table function here, but the function was defined as a scalar function. Please "
                "update the query to move the function call outside the FROM clause.",
                span=span_of(call),
            )
        bound = self.expressions.bind(call, scope)
        if not is_generator(bound, self.catalogue):
            raise UserError(
                "UNRESOLVED_TABLE_VALUED_FUNCTION",
                f"Could not resolve `{call.name}` to a table-valued function.",
                span=span_of(call),
            )
        return self.spread(OneRow(()), bound, False, None), scope

    def _changes(self, call: exp.Anonymous) -> tuple[Rel, tuple[str, ...]]:
        parts, start, end = table_changes.changes_asked(call, self.expressions, self.context)
        hidden = self.visible is not None and parts[0].lower() not in self.visible
        if len(parts) == 1 and parts[0].lower() in self.views and not hidden:
            raise unsupported(f"{table_changes.NAME} of a view", span_of(call))
        table = self.tables.changes(parts, start, end, span_of(call))
        name = table.name
        return self.scan(table, name.table), (name.catalog.lower(), name.schema.lower(), name.table.lower())

    def spread(self, rel: Rel, call: Call, outer: bool, names: Sequence[str] | None) -> Generate:
        """`generated`, of a generator in FROM."""
        check_plain(call, "A generator in FROM", call.span)
        return self.generated(rel, call, outer, names)

    def generated(self, rel: Rel, call: Call, outer: bool, names: Sequence[str] | None) -> Generate:
        """The generator's columns behind those of `rel`."""
        assert isinstance(call.type, StructType)
        check_existence(call, call.span)
        outer = outer or call.fn.endswith("_outer")
        fields = call.type.fields
        labels = list(names) if names else [f.name for f in fields]
        if len(labels) != len(fields):
            raise UserError(
                "UDTF_ALIAS_NUMBER_MISMATCH",
                "The number of aliases supplied in the AS clause does not match the number of columns output by the "
                f"generator. Expected {len(fields)} aliases, but got {','.join(labels)}.",
                span=call.span,
            )
        columns = tuple(
            Col(f.type, f.nullable or outer, self.ids.take(), n) for f, n in zip(fields, labels, strict=True)
        )
        return Generate((*rel.columns, *columns), rel, call, outer)

    def _range(self, call: exp.Anonymous) -> Rel:
        if not 1 <= len(call.expressions) <= 4:
            raise UserError(
                "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                f"The `range` requires [1, 2, 3, 4] parameters but the actual number is {len(call.expressions)}.",
                span=span_of(call),
            )
        numbers: list[int] = []
        for arg in call.expressions:
            if isinstance(arg, exp.Kwarg):  # to Spark no constant, whatever stands there
                name = arg.this.name.lower()
                if name not in ("start", "end", "step"):
                    raise unsupported(f"the named argument {name} of range", span_of(arg))
                raise _not_foldable(name, span_of(call))
            expr = self.expressions.bind(arg, Scope())
            literal = fold_whole(expr, self.context)
            value = literal.value if literal is not None and expr.type != BOOLEAN else None
            if literal is None and is_numeric(expr.type):
                if not is_foldable(expr):
                    names = ("end",) if len(call.expressions) == 1 else ("start", "end", "step", "numSlices")
                    raise _not_foldable(names[len(numbers)], span_of(call))
                value = whole_number(expr, self.tables, self.ids, span_of(arg))
            if value is None:
                raise UserError("UNEXPECTED_INPUT_TYPE", "range() takes integer constants.", span=span_of(arg))
            numbers.append(int(value))
        start, stop = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
        step = numbers[2] if len(numbers) > 2 else 1
        if step == 0:
            raise UserError("INVALID_PARAMETER_VALUE", "The step of range() must not be 0.", span=span_of(call))
        return Range((Col(BIGINT, False, self.ids.take(), "id"),), start, stop, step)

    def _lateral_view(self, rel: Rel, scope: Scope, view: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        scope.parent = parent
        check_no_star(view.this)
        try:
            call = self.expressions.bind(view.this, scope)
        except UserError as error:
            if error.condition != "UNRESOLVED_ROUTINE" or error.span != span_of(view.this):
                raise
            raise no_routine(view.this.name, error.span) from None
        if is_generator(call, self.catalogue) and self.catalogue[call.fn].from_only:
            raise no_routine(view.this.name, call.span)
        if not is_generator(call, self.catalogue):
            raise UserError(
                "UNSUPPORTED_GENERATOR.NOT_GENERATOR",
                f"The generator is not supported: {view.this.name} is expected to be a generator.",
                span=span_of(view),
            )
        alias = view.args["alias"]
        names = [c.name for c in alias.args.get("columns") or ()]
        made = self.spread(rel, call, bool(view.args.get("outer")), names or None)
        fresh = made.columns[len(rel.columns) :]
        qualifier = (alias.this.name.lower(),) if alias.this is not None else ()
        scope.sources.append(Source(qualifier, fresh))
        return made, scope


def _is_relation(node: Node) -> bool:
    return isinstance(node, (exp.Table, exp.Lateral, Pivot, Unpivot)) or (
        isinstance(node, exp.Subquery) and (bool(node.args.get("joins")) or node.args.get("alias") is not None)
    )


def renamed(
    names: Sequence[str],
    given: Sequence[str],
    relation: str,
    span: Span | None,
    mismatch: str = "ASSIGNMENT_ARITY_MISMATCH",
) -> list[str]:
    """The names that a list of column aliases gives; `mismatch` is the error of a wrong number."""
    if len(given) != len(names):
        raise UserError(
            mismatch,
            f"The number of column aliases ({len(given)}) of `{relation}` does not match its number of columns "
            f"({len(names)}).",
            span=span,
        )
    return list(given)


def _not_foldable(parameter: str, span: Span | None) -> UserError:
    text = f"The function `range` requires the parameter `{parameter}` to be a foldable expression of BIGINT."
    return UserError("NON_FOLDABLE_ARGUMENT", text, span=span)
