"""Changes of a table's rows: the conditions and values of DELETE, UPDATE and MERGE, bound over the table's columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.columns import check_no_star
from gateway.sql.bind.resolve import Binder
from gateway.sql.bind.scope import Scope, Source, field_of
from gateway.sql.bind.sites import called
from gateway.sql.read.command_nodes import Assignment, Name
from gateway.sql.read.tree import span_of
from gateway.sql.typed import nodes as b
from gateway.sql.typed.assignment import Assigned, assigned, has_other_fields, in_order_of
from gateway.sql.typed.catalogue import is_generator
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.walk import contains
from gateway.sqltypes import BOOLEAN, STRING, StructField, StructType

Bind = Callable[[], b.Expr]
T = TypeVar("T")
_ASKING = frozenset({"DELETE", "UPDATE"})  # what may hold subqueries


@dataclass(slots=True)
class Target:
    """The changed table in one query: its scan, the columns that names may mean, and those that say where a row is."""

    scan: b.Scan
    columns: tuple[b.Col, ...]
    file: b.Col
    position: b.Col
    scope: Scope
    assigned_to: Scope


@dataclass(frozen=True, slots=True)
class Place:
    """An assignment to a column, or to the field of it that lower-cased names lead to."""

    path: tuple[str, ...]
    given: Assignment


@dataclass(slots=True)
class Held:
    """The source of a MERGE in one query: its scan, its names, and whether a joined row has one of it."""

    scan: b.Scan
    source: Source
    there: b.Expr


def _seen_through(source: exp.Expr) -> exp.Expr | None:
    """The relation by whose name the columns of a source in brackets can be called, as Spark gives such a source no other.

    That is so where all of them are columns of one relation.
    """
    if not isinstance(source, exp.Subquery) or source.args.get("alias") is not None:
        return None
    query = source.this
    if isinstance(query, exp.Values):
        return query if query.args.get("alias") is not None else None
    if not isinstance(query, exp.Select) or query.args.get("joins") or query.args.get("laterals"):
        return None
    clause = query.args.get("from_")
    if clause is None or any(type(item) not in (exp.Column, exp.Star) for item in query.expressions):
        return None
    is_named = isinstance(clause.this, exp.Table) or clause.this.args.get("alias") is not None
    return clause.this if is_named else None


def _common_name(source: exp.Expr, inner: exp.Expr) -> str | None:
    """The name of `inner`, a relation of a query, where it is that of a common table expression in front of it."""
    query = source.this
    ctes = {str(cte.alias).lower() for cte in query.args["with_"].expressions} if query.args.get("with_") else set()
    if not ctes or not isinstance(inner, exp.Table) or len(inner.parts) > 1 or inner.name.lower() not in ctes:
        return None
    return str(inner.alias or inner.name).lower()


class ChangeBinder:
    """Binds what one query of a change reads; `shown` is the table's name, `what` the statement's first word."""

    def __init__(self, binder: Binder, shown: str, what: str) -> None:
        self.binder = binder
        self.ids = binder.ids
        self.shown = shown
        self.what = what
        self.casts: list[Assigned] = []
        self.evolves = False  # whether Delta would bring along fields that structs have not
        self.asks = False  # whether a condition or a value holds a subquery

    def target(self, table: Any, alias: str | None, more: int = 0) -> Target:
        """The table with its two marks, which are its last columns and which nobody can name.

        Nor can anybody but who assigns to them name the last `more` columns of its own, which it gets by the statement.
        """
        name = table.name
        scan = self.binder.scan(table, name.table)
        qualifier = (alias.lower(),) if alias else name.qualifier
        *columns, file, position = scan.columns
        scope = Scope([Source(qualifier, tuple(columns[: len(columns) - more]))])
        assigned_to = Scope([Source(qualifier, tuple(columns))]) if more else scope
        return Target(scan, tuple(columns), file, position, scope, assigned_to)

    def condition(self, tree: exp.Expr | None, scope: Scope, clause: str = "WHERE") -> b.Expr:
        """A condition; TRUE where none is written."""
        if tree is None:
            return b.lit(True, BOOLEAN)
        if self.what == "MERGE":  # where Delta casts what is no condition
            found = self.clause(lambda: self._plain(tree, lambda: self.binder.expressions.bind(tree, scope), True))
            if found.type != BOOLEAN:
                raise unsupported(f"a condition of type {found.type.sql} in MERGE", span_of(tree))
            return found
        return self._plain(tree, lambda: self.binder.expressions.condition(tree, scope, clause), True)

    def of_partitions(self, tree: exp.Expr, names: Sequence[str], scope: Scope) -> b.Expr:
        """A condition over a table's partition columns alone. Raises DELTA_NON_PARTITION_COLUMN_REFERENCE."""
        span = span_of(tree)
        if tree.find(exp.Query) is not None:
            text = "A subquery is no predicate of partitions."
            raise UserError("DELTA_FAILED_RECOGNIZE_PREDICATE", text, span=span)
        if tree.find(exp.Lambda) is not None:
            raise unsupported(f"a lambda in a condition of {self.what}", span)
        known = {name.lower() for name in names}
        for column in tree.find_all(exp.Column):
            shown = ".".join(part.name for part in column.parts)
            if shown.lower() not in known:
                text = (
                    f"Predicate references non-partition column '{shown}'. Only the partition columns may be referenced: "
                    f"[{', '.join(names)}]"
                )
                raise UserError("DELTA_NON_PARTITION_COLUMN_REFERENCE", text, span=span)
        expressions = self.binder.expressions
        expressions.random = False
        found = expressions.condition(tree, scope, "WHERE")
        if expressions.random:
            raise unsupported(f"a function that is not deterministic in a condition of {self.what}", span)
        return found

    def value(self, given: Assignment, column: StructField, scope: Scope) -> b.Expr:
        """The value that a column takes, cast as storing does."""
        tree = given.value
        if tree is None:
            return b.null(column.type)
        found = self._plain(tree, lambda: self.binder.expressions.bind(tree, scope), False)
        return self.stored(found, column, span_of(tree))

    def stored(self, found: b.Expr, column: StructField, span: Span | None) -> b.Expr:
        """A value cast to the type of the column that takes it; fields of structs are found by their names, in either case."""
        if self.evolves and has_other_fields(found.type, column.type):
            raise unsupported(f"{self.what} of {column.name} by a struct whose fields are others", span)
        found = in_order_of(found, column.type, span)
        self.casts += assigned(found.type, column, self.shown, True, span)
        return coerced(found, column.type)

    def _plain(self, tree: exp.Expr, bind: Bind, is_condition: bool) -> b.Expr:
        """An expression that a change takes: no function that is not deterministic, no aggregate, no star, subqueries where
        Databricks has them."""
        check_no_star(tree)
        expressions, span = self.binder.expressions, span_of(tree)
        expressions.random, before, self.ids.subqueries = False, self.ids.subqueries, False
        found = bind()
        if self.ids.subqueries and self.what not in _ASKING:
            if is_condition:
                text = f"Subqueries are not supported in the {self.what}."
                raise UserError("DELTA_UNSUPPORTED_SUBQUERY", text, span=span)
            raise unsupported(f"a subquery in a value of {self.what}", span)
        self.asks = self.asks or self.ids.subqueries
        self.ids.subqueries = before or self.ids.subqueries
        if expressions.random and self.what == "MERGE" and not is_condition:
            raise unsupported("a function that is not deterministic in a value of MERGE", span)
        if expressions.random:
            raise self._random(span)
        if contains(found, b.Agg) or contains(found, b.Window) or is_generator(found, self.binder.catalogue):
            text = "A query operator contains one or more unsupported expressions."
            raise UserError("UNSUPPORTED_EXPR_FOR_OPERATOR", text, span=span)
        return found

    def _random(self, span: Span | None) -> UserError:
        if self.what == "MERGE":
            text = "Non-deterministic functions are not supported in a MERGE operation."
            return UserError("DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", text, span=span)
        text = "The operator expects a deterministic expression."
        return UserError("INVALID_NON_DETERMINISTIC_EXPRESSIONS", text, span=span)

    # ---- MERGE

    def source(self, tree: exp.Expr) -> tuple[b.Rel, Source]:
        """The source of a MERGE as it is written: its rows, and what its columns are called."""
        rel, scope = self.binder.relation(tree, None)
        (source,) = scope.sources
        inner = _seen_through(tree)
        common = None if inner is None else _common_name(tree, inner)
        if common is not None:
            source = dataclasses.replace(source, qualifier=(common,), shown=common)
        elif inner is not None:
            (named,) = self.binder.relation(inner, None)[1].sources
            source = dataclasses.replace(source, qualifier=named.qualifier, shown=named.shown)
        return rel, source

    def held(self, table: Any, like: Source, nullable: bool) -> Held:
        """The source's rows that are held in memory: its columns, and one more that is true, NULL where no row was joined."""
        rows = self.binder.scan(table, "source")
        columns = tuple(
            b.Col(c.type, c.nullable or nullable, c.id, old.name)
            for c, old in zip(rows.columns[:-1], like.columns, strict=True)
        )
        present = rows.columns[-1]
        news = {old.id: new.id for new, old in zip(columns, like.columns, strict=True)}
        repeated = {new: news[like.repeated[old]] for old, new in news.items() if like.repeated.get(old) in news}
        there = b.Call(BOOLEAN, False, "is not null", (b.Col(BOOLEAN, True, present.id, present.name),))
        return Held(rows, Source(like.qualifier, columns, repeated, like.shown), there)

    @staticmethod
    def clause(bind: Callable[[], T]) -> T:
        """What is bound of a clause of MERGE; a name that means nothing there is called as Delta does."""
        try:
            return bind()
        except UserError as error:
            if not error.condition.startswith("UNRESOLVED_COLUMN"):
                raise
            text = f"Cannot resolve a name in a clause of MERGE: {error.message}"
            raise UserError("DELTA_MERGE_UNRESOLVED_EXPRESSION", text, span=error.span) from None

    # ---- assignments

    def assignments(
        self, given: Sequence[Assignment], scope: Scope, table: StructType, action: str = "update"
    ) -> dict[str, list[Place]]:
        """The assignments by the table's columns. Raises DELTA_CONFLICT_SET_COLUMN, DELTA_DUPLICATE_COLUMNS_ON_INSERT."""
        found: dict[str, list[Place]] = {}
        for one in given:
            name, path = self._place(one.column, scope)
            if path and action == "insert":
                raise unsupported("INSERT of a field of a struct in MERGE", one.column.span)
            others = [place for place in found.get(name, ()) if _overlap(place.path, path)]
            if others and action == "insert":
                text = "Duplicate column names in INSERT clause"
                raise UserError("DELTA_DUPLICATE_COLUMNS_ON_INSERT", text, span=one.column.span)
            if others:
                shown = ", ".join(f"`{'.'.join((name, *of))}`" for of in (others[0].path, path))
                text = f"There is a conflict from these SET columns: [{shown}]."
                raise UserError("DELTA_CONFLICT_SET_COLUMN", text, span=one.column.span)
            found.setdefault(name, []).append(Place(path, one))
        by_name = {f.name.lower(): f.name for f in table.fields}
        return {by_name[name]: places for name, places in found.items()}

    def _place(self, name: Name, scope: Scope) -> tuple[str, tuple[str, ...]]:
        """The column that a name means, and the way to the field within it."""
        found = scope.local(name.parts, name.span)
        path: tuple[str, ...] = ()
        while isinstance(found, b.Call) and found.fn == "_field":
            inner = found.args[0]
            assert isinstance(inner.type, StructType)
            path = (inner.type.fields[found.data[0]].name.lower(), *path)
            found = inner
        if found is None:
            raise scope.missing(name.parts, name.span)
        if not isinstance(found, b.Col):
            raise unsupported("setting what is no field of a struct", name.span)
        return found.name.lower(), path

    def assigned(
        self, places: Sequence[Place], column: StructField, old: b.Expr | None, scope: Scope, default: b.Expr
    ) -> b.Expr:
        """What a column becomes that had `old`, or its fields; `default` is what DEFAULT stands for."""
        first = places[0].given
        if not places[0].path:
            return default if first.value is None else self.value(first, column, scope)
        if first.value is None or old is None:
            raise unsupported("DEFAULT for a field of a struct", first.column.span)
        assert isinstance(column.type, StructType)
        members: list[b.Expr] = []
        for f in column.type.fields:
            inner = [Place(place.path[1:], place.given) for place in places if place.path[0] == f.name.lower()]
            before = field_of(old, f.name, first.column.span)
            value = self.assigned(inner, f, before, scope, b.null(f.type)) if inner else before
            members += [b.Lit(STRING, False, f.name), value]
        return called(self.binder.expressions, "named_struct", tuple(members), (), first.column.span)


def _overlap(one: Sequence[str], two: Sequence[str]) -> bool:
    return all(a == b for a, b in zip(one, two, strict=False))


def chosen(default: b.Expr, *choices: tuple[b.Expr, b.Expr]) -> b.Expr:
    """The value of the first condition that holds, else the default; constant conditions leave no CASE."""
    whens: list[tuple[b.Expr, b.Expr]] = []
    for condition, value in choices:
        if isinstance(condition, b.Lit) and condition.value is True:
            default = value
            break
        whens.append((condition, value))
    if not whens:
        return default
    nullable = default.nullable or any(value.nullable for _, value in whens)
    return b.Case(default.type, nullable, tuple(whens), default)


def equal_to(given: Sequence[tuple[Assignment, b.Lit]]) -> exp.Expr | None:
    """The condition that columns have the values of a PARTITION clause, as they are stored; None for no columns."""
    found: exp.Expr | None = None
    for one, stored in given:
        column = exp.Column(this=exp.Identifier(this=one.column.parts[-1], quoted=True))
        assert one.value is not None
        test = exp.NullSafeEQ(this=column, expression=_as_stored(one.value, stored))
        found = test if found is None else exp.And(this=found, expression=test)
    return found


def _as_stored(tree: exp.Expr, stored: b.Lit) -> exp.Expr:
    """A constant that means what is stored, beside whose column no cast changes which rows it is equal to.

    Texts beside a number would be read as numbers, and '01' be equal to 1.
    """
    value = stored.value
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, float):
        return exp.Literal.string(repr(value))
    if isinstance(value, Decimal):
        digits = exp.Literal.number(f"{abs(value):f}")
        return exp.Neg(this=digits) if value < 0 else digits
    return tree.copy()
