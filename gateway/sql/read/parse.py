"""Queries of Databricks SQL as sqlglot trees: our own grammar, written after Spark's, over sqlglot's tokens and nodes.

sqlglot's own parser reads 20 dialects at once: it accepts text that Spark refuses and groups operators otherwise. This one
knows Spark's grammar only, so every node it can make is listed here, and what it does not know is an error with a position.

Tree conventions (keys that are not named are absent; every node has its position, see `tree.span_of`):

Literals
    ``Literal(this, is_string)``: a string's value (adjacent literals joined), or a number as written with its suffix and,
    if a minus stands before it, with that (``-1``, ``1L``, ``-1.5BD``, ``.5``, ``1e3``; see `tree.number_suffix`).
    ``Null()``, ``Boolean(this)``. ``TypedLiteral(this=text, kind)`` for DATE/TIMESTAMP[_LTZ|_NTZ]/X/INTERVAL 'text'.
    ``IntervalLiteral(parts=((text, UNIT), …), to=UNIT | None)``. ``Placeholder()`` is ``?``, ``Placeholder(this=name)`` is
    ``:name``.
Names
    ``Column(this=Identifier, table=, db=, catalog=)`` for one to four dotted names (relation or struct fields: the binder
    decides), more names and fields of other expressions: ``Dot(this, expression=Identifier)``. ``(a).b`` is a Dot of column a.
    ``Identifier(this=as written, quoted)``. ``Star(except_=[Column, …])``; ``t.*`` is ``Column(this=Star, table=…)``.
    Parameterless functions without parentheses (``current_date``) are Columns.
Operators
    Parentheses leave no node. ``And Or`` (long chains balanced as Spark does) ``Not EQ NEQ NullSafeEQ LT LTE GT GTE Add Sub
    Mul Div IntDiv Mod DPipe BitwiseAnd BitwiseOr BitwiseXor BitwiseLeftShift BitwiseRightShift UnsignedRightShift Neg Positive
    BitwiseNot``. ``IS [NOT] DISTINCT FROM`` is NullSafeEQ, with Not around it for the form without NOT.
    ``Is(this, expression=Null | Boolean | Var("UNKNOWN"))``, ``In(this, expressions | query)`` (query: a query node),
    ``Between(this, low, high)``, ``Like | ILike(this, expression)`` (expression ``Any | All(this=Tuple)`` for LIKE ANY / ALL),
    with ESCAPE ``Escape(this=Like, expression=Literal)``, ``RegexpLike``; every NOT form is Not around it.
    ``Cast | TryCast(this, to)`` where `to` is a `gateway.sqltypes.DataType` and key `dcolon` is True for ``::`` (``?::``).
    ``Case(this, ifs=[If(this, true)], default)``, ``Bracket(this, expressions=[index])``,
    ``Tuple(expressions)`` for ``(a, b)``.
Calls
    ``Anonymous(this=name as written, expressions)`` for every function; a qualified one is ``Dot(Column, Anonymous)``.
    DISTINCT: one argument ``Distinct(expressions)``. ``Kwarg(this=Identifier, expression)`` for ``name => value``.
    ``Lambda(this=body, expressions=[Identifier])``. Units (``dateadd(MONTH, …)``) are ``Var``. STRUCT(…) may hold Alias.
    Wrapped, inside out: ``WithinGroup(this, expression=Order)``, ``Filter(this, expression=Where)``, ``IgnoreNulls |
    RespectNulls(this)``, ``Window(this, partition_by, order=Order, spec=WindowSpec(kind, start, start_side, end, end_side),
    alias=Identifier of a named window)``; frame bounds are "UNBOUNDED", "CURRENT ROW" or an expression.
    With words: ``Extract(this=Var, expression)``, ``Trim(this, expression=pattern | None, position=BOTH | LEADING | TRAILING |
    None)`` only for TRIM(… FROM …); POSITION(x IN s) is ``locate(x, s)``, SUBSTR(… FROM …) ``substring``, OVERLAY ``overlay``.
Queries (all are `exp.Query` except Values)
    ``Select(expressions, distinct=Distinct(), from_=From(this), joins, laterals, where, group, having, qualify, windows)``,
    ``Union | Intersect | Except(this, expression, distinct: bool)``, ``Values(expressions=[Tuple], alias)``,
    ``Subquery(this=query)`` for a query in parentheses as operand or scalar. ``TABLE t`` is ``SELECT * FROM t``.
    On any of them: ``with_=With(expressions=[CTE(this, alias=TableAlias)], recursive)``, order (what SORT BY, CLUSTER BY and
    DISTRIBUTE BY say, too), around (a WINDOW clause), ``limit=Limit(expression)`` (LIMIT ALL leaves none),
    ``offset=Offset(expression)``.
    ``Ordered(this, desc, nulls_first)``: None where not written; ORDER BY ALL: ``Ordered(this=Var("ALL"))``; before them
    ``Distributed(this)``. ``Alias(this, alias=Identifier)``, ``Aliases(this, expressions=[Identifier])``.
    ``Exists(this=query)``.
    ``Group(expressions, all=True for GROUP BY ALL)``; expressions may hold ``Rollup | Cube | GroupingSets(expressions)``
    whose elements are expressions or Tuples; WITH ROLLUP / CUBE is one Rollup / Cube; ``GROUP BY a, b GROUPING SETS (…)`` has
    expressions [a, b] and key `grouping_sets` [GroupingSets].
Relations
    ``Table(this, db, catalog, version=Version(this="VERSION" | "TIMESTAMP", kind="AS OF" | "@", expression), alias)``; a table
    function is ``Table(this=Anonymous)``; ``Subquery(this=query, alias)``; a relation in parentheses is
    ``Subquery(this=relation, joins, alias)``; ``Values``; ``Lateral(this=Subquery | Table(Anonymous), alias)``; LATERAL VIEW:
    ``Lateral(this=Anonymous, view=True, outer, alias)`` in `laterals`. ``TableAlias(this=Identifier, columns=[Identifier])``.
    Joins apply left to right in one list, commas included: ``Join(this, side=LEFT | RIGHT | FULL | None,
    kind=INNER | CROSS | OUTER | SEMI | ANTI, method="NATURAL", on, using=[Identifier])``.
"""

from __future__ import annotations

import sys

from sqlglot import exp

from gateway.errors import unsupported
from gateway.sql.read.cursor import Limits, user_error
from gateway.sql.read.expressions import SET_OPERATORS, Node
from gateway.sql.read.relations import RelationParser
from gateway.sql.read.tokens import END
from gateway.sql.read.tree import Clustered, Distributed, end_of, mark, span_of, start_of

__all__ = ["QueryParser", "span_of"]

# Python frames that one open bracket may cost, in the parser or in a walk over the tree.
_FRAMES = 24
_CLAUSE_STOPS = frozenset({")", ",", END, ".", "FROM"})


class QueryParser(RelationParser):
    """Whole queries."""

    def query(self, first: Node | None = None) -> Node:
        """``[WITH …] terms [ORDER BY … LIMIT … OFFSET …]``."""
        start = self.index
        ctes = self._ctes() if self.word == "WITH" and first is None else None
        node = self._terms(first)
        self._organization(node)
        if ctes is not None:
            node.set("with_", ctes)
        if first is None:
            self.place(node, start)
        if self.word == "|>":
            raise unsupported("pipe syntax (|>)", self.span(self.index))
        return node

    def _ctes(self) -> exp.With:
        start = self.index
        self.expect("WITH")
        recursive = self.word == "RECURSIVE" and self.is_name(1) and self.peek() != "AS" and self.match("RECURSIVE")
        ctes: list[Node] = []
        while not ctes or self.match(","):
            at = self.index
            name = self.identifier()
            columns = self.names() if self.word == "(" and not self.query_at(0) else []
            alias = self.place(exp.TableAlias(this=name, columns=columns), at)
            if self.word == "MAX" and self.peek() == "RECURSION":
                raise unsupported("MAX RECURSION LEVEL", self.span(self.index))
            self.match("AS")
            self.expect("(")
            body = self.query()
            self.expect(")")
            ctes.append(self.place(exp.CTE(this=body, alias=alias), at))
        return self.place(exp.With(expressions=ctes, recursive=recursive or None), start)

    def _terms(self, first: Node | None = None) -> Node:
        """Set operations: INTERSECT binds tighter than UNION and EXCEPT, each from left to right."""
        left = self._intersections(first)
        run = 0
        while self.word in SET_OPERATORS:
            kind = exp.Union if self.word == "UNION" else exp.Except
            left = self._set_operation(kind, left)
            run += 1
            if run > self.limits.chain:
                self.too_complex("set operations in a row", self.limits.chain)
        return left

    def _intersections(self, first: Node | None) -> Node:
        left = first if first is not None else self._operand()
        run = 0
        while self.word == "INTERSECT":
            left = self._set_operation(exp.Intersect, left)
            run += 1
            if run > self.limits.chain:
                self.too_complex("set operations in a row", self.limits.chain)
        return left

    def _set_operation(self, kind: type[exp.SetOperation], left: Node) -> Node:
        self.advance()
        every = self.word == "ALL"
        if every or self.word == "DISTINCT":
            self.advance()
        if self.word == "BY" and self.peek() == "NAME":
            raise unsupported("BY NAME", self.span(self.index))
        right = self._operand() if kind is exp.Intersect else self._intersections(None)
        node = kind(this=left, expression=right, distinct=not every)
        return mark(node, start_of(left), self.tokens[self.index - 1].end)

    def _operand(self) -> Node:
        start = self.index
        word = self.word
        if word == "SELECT":
            return self._select()
        if word == "(":
            self.advance()
            return self.place(exp.Subquery(this=self.query_and_paren()), start)
        if word == "VALUES":
            return self.values()
        if word == "TABLE":
            self.advance()
            table = self.table_name()
            source = self.place(exp.From(this=table), start)
            return self.place(exp.Select(expressions=[self.place(exp.Star(), start)], from_=source), start)
        if word == "FROM":
            return self._from_first()
        if word in ("MAP", "REDUCE"):
            raise unsupported(f"{word} … USING", self.span(start))
        self.fail()

    def _from_first(self) -> Node:
        """``FROM t SELECT …``, or ``FROM t`` for all of its columns."""
        start = self.index
        holder = exp.Select()
        self.from_clause(holder)
        if self.word == "|>":
            raise unsupported("pipe syntax (|>)", self.span(self.index))
        if self.word == "SELECT":
            select = self._select(holder)
        else:
            holder.set("expressions", [self.place(exp.Star(), start)])
            select = holder
        if self.word in ("SELECT", "INSERT"):
            raise unsupported("several clauses behind one FROM", self.span(self.index))
        return self.place(select, start)

    def _select(self, holder: exp.Select | None = None) -> exp.Select:
        start = self.index
        self.expect("SELECT")
        select = exp.Select()
        if self.word in ("DISTINCT", "ALL") and self.peek() not in _CLAUSE_STOPS:
            if self.word == "DISTINCT":
                select.set("distinct", self.place(exp.Distinct(), self.index))
            self.advance()
        items: list[Node] = []
        while not items or self.match(","):
            items.append(self.named_expression())
        select.set("expressions", items)
        if holder is not None:
            for key in ("from_", "joins", "laterals"):
                if key in holder.args:
                    select.set(key, holder.args[key])
        elif self.word == "FROM":
            self.from_clause(select)
        if self.word == "LATERAL" and self.peek() == "VIEW":
            self.lateral_views(select)
        if self.word == "WHERE":
            at = self.index
            self.advance()
            select.set("where", self.place(exp.Where(this=self.expression()), at))
        if self.word == "GROUP" and self.peek() == "BY":
            select.set("group", self._group())
        if self.word == "HAVING":
            at = self.index
            self.advance()
            select.set("having", self.place(exp.Having(this=self.expression()), at))
        for _ in range(2):
            if self.word == "QUALIFY" and not select.args.get("qualify"):
                at = self.index
                self.advance()
                select.set("qualify", self.place(exp.Qualify(this=self.expression()), at))
            elif self.word == "WINDOW" and not select.args.get("windows"):
                select.set("windows", self._windows())
        return self.place(select, start)

    def _group(self) -> exp.Group:
        start = self.index
        self.advance(2)
        if self.word == "ALL" and self.peek() not in (",", ".", "(", "["):
            self.advance()
            return self.place(exp.Group(all=True), start)
        items: list[Node] = []
        while not items or self.match(","):
            items.append(self._group_item())
        group = exp.Group(expressions=items)
        if self.word == "WITH" and self.peek() in ("ROLLUP", "CUBE"):
            kind = exp.Rollup if self.peek() == "ROLLUP" else exp.Cube
            self.advance(2)
            if any(isinstance(item, (exp.Rollup, exp.Cube, exp.GroupingSets)) for item in items):
                self.fail(index=self.index - 2)
            group = exp.Group(expressions=[self.place(kind(expressions=items), start)])
        elif self.word == "GROUPING" and self.peek() == "SETS":
            group.set("grouping_sets", [self._grouping_sets()])
        return self.place(group, start)

    def _group_item(self) -> Node:
        start = self.index
        if self.word in ("ROLLUP", "CUBE") and self.peek() == "(" and self.peek(2) != ")":
            kind = exp.Rollup if self.word == "ROLLUP" else exp.Cube
            self.advance()
            return self.place(kind(expressions=self._sets(nested=False)), start)
        if self.word == "GROUPING" and self.peek() == "SETS":
            return self._grouping_sets()
        return self.expression()

    def _grouping_sets(self) -> exp.GroupingSets:
        start = self.index
        self.advance(2)
        return self.place(exp.GroupingSets(expressions=self._sets(nested=True)), start)

    def _sets(self, nested: bool) -> list[Node]:
        """``(a, (b, c), ())``: expressions and Tuples, with `nested` also ROLLUP, CUBE and GROUPING SETS."""
        self.expect("(")
        found: list[Node] = []
        while not found or self.match(","):
            start = self.index
            if self.word == "(" and self.peek() == ")":
                self.advance(2)
                if not nested:
                    message = "Empty set in ROLLUP or CUBE grouping sets is not supported."
                    raise user_error("_LEGACY_ERROR_TEMP_0051", message, self.span(start))
                found.append(self.place(exp.Tuple(expressions=[]), start))
            else:
                found.append(self._group_item() if nested else self.expression())
        self.expect(")")
        return found

    def _windows(self) -> list[Node]:
        self.advance()
        found: list[Node] = []
        while not found or self.match(","):
            start = self.index
            name = self.identifier()
            if name.name in {window.this.name for window in found}:
                message = f"Invalid SQL syntax: The definition of window '{name.name}' is repetitive."
                raise user_error("INVALID_SQL_SYNTAX.REPETITIVE_WINDOW_DEFINITION", message, self.span(start))
            self.expect("AS")
            found.append(self.window(exp.Window(this=name), start))
        return [self._defined(window, found) for window in found]

    def _defined(self, window: Node, windows: list[Node]) -> Node:
        """A window of a WINDOW clause; the definition of `windows` that it refers to, under its own name."""
        reference = window.args.get("alias")
        if reference is None:
            return window
        meant = next((w for w in windows if w.this.name == reference.name), None)
        condition = "UNRESOLVED_WINDOW_REFERENCE" if meant is None else "INVALID_WINDOW_REFERENCE"
        if meant is None or meant.args.get("alias") is not None:
            message = f"Invalid SQL syntax: Window reference '{reference.name}' is not a window specification."
            raise user_error(f"INVALID_SQL_SYNTAX.{condition}", message, span_of(reference))
        defined = meant.copy()
        defined.set("this", window.this)
        return defined

    def _organization(self, node: Node) -> None:
        """The clauses behind a whole query."""
        self._order(node)
        if self.word == "WINDOW" and self.is_name(1):
            node.set("around", self._windows())
        if self.word == "LIMIT":
            start = self.index
            self.advance()
            if self.word == "ALL":
                self.advance()
            else:
                node.set("limit", self.place(exp.Limit(expression=self.expression()), start))
        if self.word == "OFFSET":
            start = self.index
            self.advance()
            node.set("offset", self.place(exp.Offset(expression=self.expression()), start))

    def _order(self, node: Node) -> None:
        """ORDER BY, CLUSTER BY, DISTRIBUTE BY and SORT BY.

        Spark sorts by the last three inside of partitions, of which there is one here.
        """
        first = self.index
        words: list[str] = []
        items: list[Node] = []
        distributed: list[Node] = []
        for word in ("ORDER", "CLUSTER", "DISTRIBUTE", "SORT"):
            if self.word != word or self.peek() != "BY":
                continue
            start = self.index
            words.append(word)
            self.advance(2)
            if word in ("CLUSTER", "DISTRIBUTE"):
                exprs = self._list()
                distributed = [mark(Distributed(this=e), start_of(e), end_of(e)) for e in exprs]
                if word == "CLUSTER":
                    items = [mark(Clustered(this=e.copy()), start_of(e), end_of(e)) for e in exprs]
            elif word == "ORDER" and self.word == "ALL" and self.peek() not in (",", ".", "(", "["):
                items = [self._order_all()]
            else:
                items = self.sort_items()
        if len(words) > 1 and words != ["DISTRIBUTE", "SORT"]:
            message = "The feature is not supported: Combination of ORDER BY/SORT BY/DISTRIBUTE BY/CLUSTER BY."
            raise user_error("UNSUPPORTED_FEATURE.COMBINATION_QUERY_RESULT_CLAUSES", message, self.span(start))
        if words:
            node.set("order", self.place(exp.Order(expressions=[*distributed, *items]), first))

    def _order_all(self) -> exp.Ordered:
        at = self.index
        self.advance()
        word = self.place(exp.Var(this="ALL"), at)
        desc = None
        if self.word in ("ASC", "DESC"):
            desc = self.word == "DESC"
            self.advance()
        first = None
        if self.match("NULLS", "FIRST"):
            first = True
        elif self.match("NULLS", "LAST"):
            first = False
        return self.place(exp.Ordered(this=word, desc=desc, nulls_first=first), at)

    def _list(self) -> list[Node]:
        items = [self.expression()]
        while self.match(","):
            items.append(self.expression())
        return items


def prepare_recursion(limits: Limits) -> None:
    """Raise Python's recursion limit to what trees of the allowed depth need, in the parser and in the walks behind it."""
    needed = (limits.depth + limits.chain) * _FRAMES + 1000
    if sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)
