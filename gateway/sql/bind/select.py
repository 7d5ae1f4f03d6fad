"""One SELECT: items, aliases, grouping, HAVING, windows, generators, DISTINCT and ORDER BY, resolved in Spark's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.columns import check_stars, merged_name
from gateway.sql.bind.correlations import lost_in_sets
from gateway.sql.bind.generated import Generators
from gateway.sql.bind.group_by import GroupBy
from gateway.sql.bind.grouping import Grouping, Windows, has_grouping_call
from gateway.sql.bind.items import Item, SelectItems
from gateway.sql.bind.organization import check_no_generator, limited, order_keys, ordered, telling
from gateway.sql.bind.outputs import Grouped, Output, Outputs, Sorted, columns_in, unsupported_in_sort
from gateway.sql.bind.qualified import check_qualify
from gateway.sql.bind.relations import Relations
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.bind.sorting import check_comparable, sort_key
from gateway.sql.read.tree import Distributed, span_of
from gateway.sql.typed.catalogue import is_generator, is_steady
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import (
    Agg,
    Call,
    Cast,
    Col,
    Distinct,
    Expr,
    Filter,
    Lit,
    OneRow,
    Project,
    Rel,
    Sort,
    SortKey,
    Subquery,
    Window,
)
from gateway.sql.typed.walk import children, contains, has_outer, nodes
from gateway.sqltypes import VOID, DataType, quote_part

Node = exp.Expr
_TIME_WINDOWS = frozenset({"window", "session_window"})
#: Operators that are resolved as soon as their operands are, if these have one type.
_AT_ONCE = frozenset(
    {"and", "or", "not", "=", "<", ">", "<=", ">=", "<=>", "+", "-", "*", "%", "in", "like", "is null", "is not null"}
    | {"_char_pad"}  # which Spark adds once names are known
)


@dataclass(slots=True)
class _Clauses:
    """What stands above FROM and WHERE: the select list, HAVING, QUALIFY, and the keys of ORDER BY with their outputs."""

    exprs: list[Expr]
    having: Expr | None = None
    qualify: Expr | None = None
    keys: list[tuple[SortKey, int | None]] = field(default_factory=list)


class SelectBinder:
    """One SELECT."""

    def __init__(self, binder: Relations, node: exp.Select, parent: Scope | None) -> None:
        self.binder = binder
        self.node = node
        self.parent = parent
        self.expressions = binder.expressions
        self.ids = binder.ids
        self.generators = Generators(binder)
        self.group_by = GroupBy(binder, node, self.generators)

    def bind(self) -> tuple[Rel, Scope]:
        node, binder = self.node, self.binder
        self.around = self.expressions.windows
        if node.args.get("windows"):
            self.expressions.windows = {w.this.name: w for w in node.args["windows"]}
        try:
            rel, scope = binder.from_(node, self.parent)
            where = node.args.get("where")
            if where is not None:
                condition = self.expressions.condition(where.this, scope)
                self._plain(condition, "WHERE", where)
                rel = Filter(rel.columns, rel, condition)
            self._refuse_time_windows(scope)
            items = SelectItems(binder, node, self.generators).bound(scope)
            return self._finish(rel, scope, items), scope
        finally:
            self.expressions.windows = self.around

    def _refuse_time_windows(self, scope: Scope) -> None:
        """GROUP BY window(…) makes a column `window`: refused by its own name, before that of the column is looked for."""
        group = self.node.args.get("group")
        for tree in group.find_all(exp.Anonymous) if group is not None else ():
            if tree.name.lower() in _TIME_WINDOWS:
                self.expressions.bind(tree, scope)

    def _plain(self, expr: Expr, clause: str, node: Node) -> None:
        if contains(expr, Window):
            raise _window_in(clause, span_of(node))
        if self.parent is not None and self.parent.having and (_aggregates_outer(expr) or _shows(self.parent, expr)):
            raise unsupported("an aggregate of the enclosing query in a subquery of HAVING", span_of(node))
        if contains(expr, Agg) or has_grouping_call(expr) or is_generator(expr, self.binder.catalogue):
            raise UserError(
                "INVALID_WHERE_CONDITION",
                f"The {clause} condition contains invalid expressions: aggregate, window or generator functions.",
                span=span_of(node),
            )

    def _finish(self, rel: Rel, scope: Scope, items: list[Item]) -> Rel:
        node = self.node
        check_stars(node)
        having, order = node.args.get("having"), node.args.get("order")
        distinct = node.args.get("distinct") is not None
        outputs_ = Sorted(self._outputs(items, scope))
        late = having if self.generators else None
        if late is not None:
            self._check_late(late, items)
        above = _Clauses([i.expr for i in items])
        above.having = self._having(having, scope, items) if having is not None and late is None else None
        above.qualify = self._qualify(scope, items)
        extra = [above.having] if above.having is not None else []
        extra += self.generators.calls()
        grouping = self.group_by.grouping(scope, items, [*above.exprs, *extra], having is not None)
        if above.qualify is not None:
            check_qualify(above.qualify, above.exprs, grouping, span_of(node.args["qualify"]))
        if order is not None and not distinct:
            above.keys = self._order(order, scope, items, outputs_, grouping, above.having)
            if grouping is not None:
                self._check_order(order, scope, grouping, any(contains(e, Window) for e in above.exprs))
        if grouping is not None:
            if self.generators and grouping.sets is not None:  # Spark reads a key that is NULL there as a zero
                raise unsupported("a generator beside grouping sets", span_of(node))
            self._group(grouping, above, items, outputs_)
            rel = grouping.relation(rel)
        if above.having is not None:
            rel = Filter(rel.columns, rel, above.having)
        rel = self._windowed(rel, above, grouping)
        exprs = above.exprs
        names = [i.name if grouping is None or i.aliased else grouping.spelt(i.expr) or i.name for i in items]
        outputs = tuple(Col(_shown_type(e), e.nullable, self.ids.take(), n) for e, n in zip(exprs, names, strict=True))
        self._describe(outputs, outputs_.items)
        if late is not None:
            rel = self._late_having(late, Project(outputs, rel, tuple(exprs)), scope, items)
            exprs = list(outputs)
            outputs = tuple(replace(o, id=self.ids.take()) for o in outputs)
        if distinct:
            return self._distinct(rel, exprs, outputs, order)
        keys = telling(order, above.keys) if order is not None else []
        return limited(self.expressions, self.binder.tables, node, self._sorted(rel, exprs, outputs, keys))

    def _qualify(self, scope: Scope, items: list[Item]) -> Expr | None:
        """QUALIFY as a condition above the windows."""
        qualify = self.node.args.get("qualify")
        if qualify is None:
            return None
        aliases = self._aliases(items)
        for column in qualify.find_all(exp.Column):
            self._refuse_shadowed(column, scope, aliases)
        condition = self._with_outputs(qualify.this, scope, aliases, "QUALIFY")
        if not any(contains(e, Window) for e in (condition, *(i.expr for i in items))):
            raise UserError(
                "QUALIFY_REQUIRES_WINDOW_FUNCTION",
                "The QUALIFY clause requires a window function in the SELECT list or in the QUALIFY clause.",
                span=span_of(qualify),
            )
        return condition

    def _group(self, grouping: Grouping, above: _Clauses, items: list[Item], outputs: Sorted) -> None:
        """What stands above GROUP BY, over its keys and aggregates."""
        having, order = self.node.args.get("having"), self.node.args.get("order")
        self.generators.check_grouped(above.exprs, span_of(self.node))
        grouping.free = self.generators.ids
        grouping.check((*above.exprs, *(k.expr for k, _ in above.keys)))
        self.generators.rewrite(grouping.rewrite)
        above.exprs = [grouping.rewrite(e) for e in above.exprs]
        grouping.check_correlation(above.exprs, span_of(self.node))
        _check_scalars(grouping, [i.expr for i in items], above.exprs)
        above.having = self._above(grouping, above.having, having, outputs) if above.having is not None else None
        above.qualify = grouping.rewrite(above.qualify) if above.qualify is not None else None
        above.keys = [
            (SortKey(self._above(grouping, k.expr, order, outputs), k.descending, k.nulls_first), i)
            for k, i in above.keys
        ]

    def _windowed(self, rel: Rel, above: _Clauses, grouping: Grouping | None) -> Rel:
        """Window functions and QUALIFY over `rel`; generators go below them, and above a GROUP BY."""
        windows = Windows(self.ids)
        if grouping is None:
            self.generators.check_ungrouped()
            rel = self.generators.relation(rel)
        else:
            self.generators.rewrite(windows.rewrite)
        above.exprs = [windows.rewrite(e) for e in above.exprs]
        above.qualify = windows.rewrite(above.qualify) if above.qualify is not None else None
        above.keys = [(SortKey(windows.rewrite(k.expr), k.descending, k.nulls_first), i) for k, i in above.keys]
        rel = windows.relation(rel)
        if above.qualify is not None:
            rel = Filter(rel.columns, rel, above.qualify)
        if grouping is not None:
            for window in windows.windows:
                self.generators.refuse(window, "a window function beside GROUP BY", span_of(self.node))
            self.generators.refuse(above.qualify, "QUALIFY beside GROUP BY", span_of(self.node))
            rel = self.generators.relation(rel)
        return rel

    def _distinct(self, rel: Rel, exprs: list[Expr], outputs: tuple[Col, ...], order: Node | None) -> Rel:
        for output in outputs:
            check_comparable(output.type, f'column "{output.name}"', span_of(self.node))
        rel = Distinct(outputs, Project(outputs, rel, tuple(exprs)))
        if order is not None:
            self.expressions.windows = self.around
            rel = ordered(self.expressions, order, rel)
        return limited(self.expressions, self.binder.tables, self.node, rel)

    def _outputs(self, items: list[Item], scope: Scope) -> list[Output]:
        """The items as the clauses above see them."""
        homes = {c.id: s.qualifier for s in reversed(scope.sources) for c in s.columns}
        found = []
        for place, item in enumerate(items):
            expr = item.expr
            if isinstance(expr, Col) and not item.aliased:
                same = ("column", self.ids.repeated.get(expr.id, expr.id))
                found.append(Output(item.name, expr, homes.get(expr.id, ()), same, True))
            else:
                merged = merged_name(expr) is not None and not item.aliased
                found.append(Output(item.name, expr, (), ("merged", key(expr)) if merged else ("item", place), False))
        return found

    def _describe(self, outputs: Sequence[Col], items: Sequence[Output]) -> None:
        """Note which `outputs` are columns of FROM, and which of these are there before."""
        first: dict[Any, int] = {}
        for column, item in zip(outputs, items, strict=True):
            if item.plain:
                self.ids.qualifiers[column.id] = item.qualifier
            if first.setdefault(item.same, column.id) != column.id:
                self.ids.repeated[column.id] = first[item.same]

    @staticmethod
    def _above(grouping: Grouping, expr: Expr, clause: Node | None, outputs: Sorted) -> Expr:
        """`expr` of HAVING or ORDER BY over the groups; a column that is not grouped is as good as unknown there."""
        try:
            return grouping.rewrite(expr)
        except UserError as error:
            if error.condition not in ("MISSING_AGGREGATION", "MISSING_GROUP_BY"):
                raise
            known = {key(k) for k in grouping.keys}
            lost = next((c for c in columns_in(expr) if key(c) not in known), None)
            span = span_of(clause) if clause is not None else None
            raise outputs.missing([lost.name if lost is not None else ""], span) from None

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
        return {n: e for n, e in found.items() if n not in clashing}

    def _having(self, having: Node, scope: Scope, items: list[Item]) -> Expr:
        """HAVING: a grouping column wins over an alias of its name, an alias over any other column."""
        outputs = Grouped(self._outputs(items, scope))
        grouping = self.group_by.grouping(scope, items, [], True)
        outputs.sets, span = grouping is not None and grouping.sets is not None, span_of(having)
        if _has_window(having.this):
            raise _window_in("HAVING", span)
        keys = {key(k): k for k in grouping.keys} if grouping is not None else {}
        scope.having = True
        try:
            while True:
                outputs.restart()
                scope.outputs = outputs
                found = self.expressions.condition(having.this, scope, "HAVING")
                lost = outputs.lost(found, keys) - outputs.retried
                if not lost:
                    if outputs.sets and _late_row(found):
                        raise lost_in_sets(span)
                    if outputs.sets and _is_late(found) and _reads_hidden(found, items):
                        raise unsupported(
                            "a key of grouping sets in HAVING, not selected, beside casts or functions", span
                        )
                    self._refuse_unsteady(found, [i.expr for i in items if key(i.expr) not in keys], having)
                    return found
                outputs.retried |= lost
        finally:
            scope.outputs, scope.having = None, False

    def _check_late(self, having: Node, items: list[Item]) -> None:
        """What Spark can't resolve, or orders otherwise, beside a HAVING over generated rows."""
        for clause, words in (("order", "ORDER BY"), ("qualify", "QUALIFY")):
            if self.node.args.get(clause) is not None:
                raise unsupported(f"{words} beside a generator and HAVING", span_of(having))
        if any(contains(i.expr, Window) for i in items):
            raise unsupported("a window function beside a generator and HAVING", span_of(having))

    def _late_having(self, having: Node, rel: Project, scope: Scope, items: list[Item]) -> Rel:
        """HAVING beside a generator: Spark filters the generated rows, and only the select items have names there."""
        sources = []
        for item, output in zip(items, rel.columns, strict=True):
            homes = [s.qualifier for s in scope.sources if item.expr in s.columns]
            sources.append(Source(homes[0] if homes else (), (output,)))
        outputs = Scope(sources, self.parent)
        condition = self.expressions.condition(having.this, outputs, "HAVING")
        self._plain(condition, "HAVING", having)
        scope.outer_refs.update(outputs.outer_refs)
        return Filter(rel.columns, rel, condition)

    def _with_outputs(self, tree: Node, scope: Scope, aliases: dict[str, Expr], clause: str = "") -> Expr:
        """An expression of HAVING, QUALIFY or ORDER BY: output names win over input columns."""
        scope.overrides = aliases
        try:
            found = self.expressions.condition(tree, scope, clause) if clause else self.expressions.bind(tree, scope)
        finally:
            scope.overrides = {}
        self._refuse_unsteady(found, list(aliases.values()), tree)
        return found

    def _refuse_unsteady(self, found: Expr, items: Sequence[Expr], node: Node) -> None:
        """UnsupportedError for an item, named in another clause, that would be computed there once more, as another value."""
        unsteady = {id(e) for e in items if not is_steady(e, self.binder.catalogue)}
        if unsteady and any(id(part) in unsteady for part in nodes(found)):
            raise unsupported("a name of what differs from call to call", span_of(node))

    @staticmethod
    def _refuse_shadowed(column: exp.Column, scope: Scope, aliases: dict[str, Expr]) -> None:
        """UnsupportedError for a name in QUALIFY that an item and another column have: Spark's choice depends on both."""
        name = column.parts[0].name.lower()
        item, below = aliases.get(name), scope.first(name)
        if item is not None and below is not None and key(item) != key(below):
            raise unsupported(
                f"{quote_part(name)} in QUALIFY, a column and another item of the select list,", span_of(column)
            )

    def _order(
        self,
        order: Node,
        scope: Scope,
        items: list[Item],
        outputs: Sorted,
        grouping: Grouping | None,
        having: Expr | None,
    ) -> list[tuple[SortKey, int | None]]:
        keys: list[tuple[SortKey, int | None]] = []
        exprs = [i.expr for i in items]
        apart = grouping is not None and having is not None and _needs_more(having, grouping, exprs)
        windows, self.expressions.windows = self.expressions.windows, self.around
        for item in order.expressions:
            for expr, place in order_keys(self.expressions, item, exprs, outputs, scope):
                if place is None:
                    check_no_generator(self.expressions, item, expr)
                separate = apart or isinstance(item, Distributed)
                if separate and grouping is not None and place is None:
                    known = {k.id for k in grouping.keys if isinstance(k, Col)}
                    lost = next((c for c in outputs.below if c.id not in known and not c.outer), None)
                    if lost is not None:
                        raise outputs.missing([lost.name], span_of(item))
                if outputs.aggregates and (grouping is None or separate):
                    raise unsupported_in_sort(span_of(item))
                keys.append((sort_key(item, expr), place))
        self.expressions.windows = windows
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


def _has_window(tree: Node) -> bool:
    """Whether a window function is written in `tree`, outside of subqueries."""
    return any(isinstance(n, exp.Window) for n in tree.walk(prune=lambda n: isinstance(n, exp.Query)))


def _window_in(clause: str, span: Span | None) -> UserError:
    text = f"It is not allowed to use window functions inside the {clause} clause."
    return UserError("WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE", text, span=span)


def _shown_type(expr: Expr) -> DataType:
    """The type of an output: columns of an enclosing query are texts where they are CHAR."""
    return plain(expr.type) if isinstance(expr, Col) and expr.outer else expr.type


def _needs_more(having: Expr, grouping: Grouping, items: list[Expr]) -> bool:
    """Whether HAVING asks for an aggregate or a key that is no item of its own: Spark then sorts apart from the groups."""
    shown, keys = {key(i) for i in items}, {key(k) for k in grouping.keys}

    def more(expr: Expr) -> bool:
        k = key(expr)
        if k in shown:
            return False
        return isinstance(expr, Agg) or has_grouping_call(expr) or k in keys or any(map(more, children(expr)))

    return more(having)


def _is_late(having: Expr) -> bool:
    """Whether Spark has to look at it twice: then the grouping sets are resolved, and their keys have other names."""
    if isinstance(having, Agg):
        return bool(columns_in(having))
    late = (
        isinstance(having, Subquery)
        or (isinstance(having, Lit) and having.value is None and having.type != VOID)  # a NULL that was cast
        or (isinstance(having, Cast) and having.implicit and plain(having.arg.type) != having.type)
        or (isinstance(having, Call) and having.fn not in _AT_ONCE)
    )
    return late or any(map(_is_late, children(having)))


def _reads_hidden(expr: Expr, items: Sequence[Item]) -> bool:
    """Whether a column outside of aggregates is no select item under its own name."""
    if isinstance(expr, Agg):
        return False
    if isinstance(expr, Col) and not expr.outer:
        return not any(key(i.expr) == key(expr) and i.name.lower() == expr.name.lower() for i in items)
    return any(_reads_hidden(c, items) for c in children(expr))


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


def _aggregates_outer(expr: Expr) -> bool:
    """Whether an aggregate of `expr` reads a column of an enclosing query."""
    if isinstance(expr, Agg):
        return any(map(has_outer, children(expr)))
    return any(map(_aggregates_outer, children(expr)))


def _shows(scope: Scope, expr: Expr) -> bool:
    """Whether an aggregate of `expr` is one of the select list's of an enclosing query, found by its name."""
    items = scope.outputs.items if isinstance(scope.outputs, Outputs) else ()
    known = {id(part) for o in items for part in nodes(o.expr)}
    return any(isinstance(part, Agg) and id(part) in known for part in nodes(expr))


def _late_row(expr: Expr) -> bool:
    """Whether it holds a SELECT without FROM that reads columns around it."""
    rows = (s for s in nodes(expr) if isinstance(s, Subquery) and s.kind == "scalar" and s.outer)
    return any(isinstance(s.plan, Project) and isinstance(s.plan.input, OneRow) for s in rows)


def _check_scalars(grouping: Grouping, items: list[Expr], over: list[Expr]) -> None:
    """Correlated scalar subqueries are keys that an item shows, or inside aggregates; `over`: the items over the aggregate."""
    shown = {key(s) for s in _scalars(items)}
    for scalar in _scalars(grouping.keys):
        if key(scalar) not in shown:
            raise UserError(
                "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.MUST_AGGREGATE_CORRELATED_SCALAR_SUBQUERY",
                "Correlated scalar subqueries in the GROUP BY clause must also be in the aggregate expressions.",
                span=scalar.span,
            )
    for scalar in _scalars(over):
        raise UserError(
            "SCALAR_SUBQUERY_IS_IN_GROUP_BY_OR_AGGREGATE_FUNCTION",
            "The correlated scalar subquery is neither present in GROUP BY, nor in an aggregate function. Add it to GROUP BY "
            "using ordinal position or wrap it in `first()` (or `first_value`) if you don't care which value you get.",
            span=scalar.span,
        )


def _scalars(exprs: list[Expr]) -> list[Subquery]:
    found = [n for e in exprs for n in nodes(e) if isinstance(n, Subquery)]
    return [s for s in found if s.kind == "scalar" and s.outer]
