"""Relations of Spark's grammar: tables, subqueries, VALUES, table functions, joins and lateral views."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from gateway.errors import unsupported
from gateway.sql.read.calls import CallParser, are_built_in
from gateway.sql.read.cursor import STRICT, user_error
from gateway.sql.read.expressions import AFTER_QUERY, Node
from gateway.sql.read.primaries import KEYS
from gateway.sql.read.tokens import END, NUMBER, QUOTED, syntax_error
from gateway.sql.read.tree import Pivot, Unpivot, span_of

_JOIN_TYPES = frozenset({"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL"})
_STOPS = frozenset({")", ",", END, ".", "AS", "JOIN"})


class RelationParser(CallParser):
    """FROM clauses."""

    def from_clause(self, select: exp.Select) -> None:
        """``FROM relation, … LATERAL VIEW …`` into `select` (keys from_, joins, laterals)."""
        start = self.index
        self.expect("FROM")
        joins: list[Node] = []
        at = self.index
        first = self._extensions(self._lateral_or_primary(), joins, at)
        source = self.place(exp.From(this=first), start)
        while self.word == ",":  # a cross join, which what follows takes in as it does any other
            comma = self.index
            self.advance()
            joins.append(self.place(exp.Join(this=self._lateral_or_primary(), kind="CROSS"), comma))
            source.set("this", self._extensions(source.this, joins, at))
        select.set("from_", source)
        if joins:
            select.set("joins", joins)
        self.lateral_views(select)

    def lateral_views(self, select: exp.Select) -> None:
        """``LATERAL VIEW [OUTER] f(…) t [AS] a, b`` …"""
        views: list[Node] = []
        while self.word == "LATERAL" and self.peek() == "VIEW":
            start = self.index
            self.advance(2)
            outer = self.word == "OUTER" and self.is_name(1) and self.match("OUTER")
            at = self.index
            name = self.dotted()
            if self.word != "(":
                self.fail()
            function = self.call(name, at)
            named = next((a for a in function.args.get("expressions") or () if isinstance(a, exp.Kwarg)), None)
            if named is not None:
                raise syntax_error("=>", self.span(at))
            at = self.index
            table = self.identifier()
            columns: list[Node] = []
            if self.match("AS") or (self.is_name() and not self.clause_ahead()):
                columns.append(self.identifier())
                while self.match(","):
                    columns.append(self.identifier())
            alias = self.place(exp.TableAlias(this=table, columns=columns), at)
            views.append(self.place(exp.Lateral(this=function, view=True, outer=outer, alias=alias), start))
        if self.word in ("PIVOT", "UNPIVOT"):
            message = f"Not allowed in the FROM clause: LATERAL together with {self.word}."
            raise user_error(f"NOT_ALLOWED_IN_FROM.LATERAL_WITH_{self.word}", message, self.span(self.index))
        if views:
            select.set("laterals", views)

    def _lateral_or_primary(self) -> Node:
        if self.word == "LATERAL" and self.peek() != "VIEW":
            start = self.index
            self.advance()
            inner = self.primary_relation()
            alias = inner.args.pop("alias", None)
            if not isinstance(inner, (exp.Subquery, exp.Table)):
                raise unsupported("LATERAL before anything but a subquery or a table function", self.span(start))
            return self.place(exp.Lateral(this=inner, alias=alias), start)
        return self.primary_relation()

    def _extensions(self, first: Node, joins: list[Node], start: int) -> Node:
        """What follows a relation: joins, into `joins`, and PIVOT and UNPIVOT, which take in the relation so far."""
        run = 0
        while True:
            if self._turned():
                if joins:
                    first = self.place(exp.Subquery(this=first, joins=joins[:]), start)
                    joins.clear()
                first = self._pivot(first, start) if self.word == "PIVOT" else self._unpivot(first, start)
                join: Node | None = first
            else:
                join = self._join()
                if join is None:
                    return first
                joins.append(join)
            run += 1
            if run > self.limits.chain:
                self.too_complex("joins in a row", self.limits.chain)

    def _pivot(self, relation: Node, start: int) -> Node:
        """``PIVOT (aggregates FOR columns IN (values)) [alias]``."""
        self.advance()
        self.expect("(")
        items: list[Node] = []
        while not items or self.match(","):
            at = self.index
            item = self.expression()
            if self.match("AS") or (self.is_name() and (self.word != "FOR" or self.peek() == "FOR")):
                item = self.place(exp.Alias(this=item, alias=self.identifier()), at)
            items.append(item)
        self.expect("FOR")
        columns = self.names() if self.word == "(" else [self.identifier()]
        self.expect("IN")
        self.expect("(")
        values: list[Node] = []
        while not values or self.match(","):
            values.append(self.named_expression())
        self.expect(")")
        self.expect(")")
        node = Pivot(this=relation, expressions=items, columns=columns, values=values)
        return self._alias(self.place(node, start), start, listed=False)

    def _unpivot(self, relation: Node, start: int) -> Node:
        """``UNPIVOT [INCLUDE | EXCLUDE NULLS] (values FOR name IN (columns)) [alias]``."""
        self.advance()
        nulls = self.word == "INCLUDE"
        if self.word in ("INCLUDE", "EXCLUDE"):
            self.advance()
            self.expect("NULLS")
        self.expect("(")
        several = self.word == "("
        values = self.names() if several else [self.identifier()]
        self.expect("FOR")
        name = self.identifier()
        self.expect("IN")
        self.expect("(")
        columns: list[Node] = []
        while not columns or self.match(","):
            at = self.index
            if several:
                self.expect("(")
            inside = [self._unpivoted()]
            while several and self.match(","):
                inside.append(self._unpivoted())
            if several:
                self.expect(")")
            column: Node = self.place(exp.Tuple(expressions=inside), at)
            if self.match("AS") or self.is_name():
                column = self.place(exp.Alias(this=column, alias=self.identifier()), at)
            columns.append(column)
        self.expect(")")
        self.expect(")")
        node = Unpivot(this=relation, values=values, name=name, columns=columns, nulls=nulls or None)
        return self._alias(self.place(node, start), start, listed=False)

    def _unpivoted(self) -> Node:
        at = self.index
        parts = self.dotted()
        if len(parts) > len(KEYS):
            raise unsupported("a column of so many parts in UNPIVOT", self.span(at))
        return self.place(exp.Column(**dict(zip(KEYS[-len(parts) :], parts, strict=True))), at)

    def _join(self) -> Node | None:
        word = self.word
        if word not in _JOIN_TYPES:
            return None
        start = self.index
        natural = self.match("NATURAL")
        side: str | None = None
        kind = "INNER"
        word = self.word
        if word in ("LEFT", "RIGHT", "FULL"):
            self.advance()
            side, kind = word, "OUTER"
            if word == "LEFT" and self.word in ("SEMI", "ANTI"):
                kind = self.word
                self.advance()
            else:
                self.match("OUTER")
        elif word in ("SEMI", "ANTI"):
            self.advance()
            side, kind = "LEFT", word
        elif word in ("INNER", "CROSS"):
            self.advance()
            kind = word
        self.expect("JOIN")
        if natural and kind == "CROSS":
            message = 'The join types "NATURAL" and "CROSS" are incompatible.'
            raise user_error("INCOMPATIBLE_JOIN_TYPES", message, self.span(start))
        lateral = self.word == "LATERAL"
        if natural and lateral:
            message = 'The join types "NATURAL" and "LATERAL" are incompatible.'
            raise user_error("INCOMPATIBLE_JOIN_TYPES", message, self.span(start))
        right = self._lateral_or_primary()
        join = exp.Join(this=right, side=side, kind=kind)
        if self.word == "NEAREST" or (self.word in ("APPROX", "EXACT") and self.peek() == "NEAREST"):
            raise unsupported("JOIN … NEAREST", self.span(self.index))
        if natural:
            join.set("method", "NATURAL")
        elif self.word == "ON":
            self.advance()
            join.set("on", self.expression())
        elif self.word == "USING":
            if lateral:
                raise unsupported("LATERAL JOIN with USING", self.span(self.index))
            self.advance()
            join.set("using", self.names())
        return self.place(join, start)

    def primary_relation(self) -> Node:
        """One relation with its alias."""
        start = self.index
        word = self.word
        if word == "(":
            return self._parenthesised(start)
        if word == "VALUES" and self.query_at(0):
            return self.values()
        if not self.is_name():
            self.fail()
        if word == "IDENTIFIER" and self.peek() == "(":
            raise unsupported("IDENTIFIER(…)", self.span(start))
        if word == "SELECT":
            self.fail()
        if word in ("TABLE", "STREAM") and self.peek() == "(":
            raise unsupported(f"{word}(…)", self.span(start))
        parts = self.dotted()
        if self.word == "(":
            return self._table_function(parts, start)
        return self._alias(self._table(parts, start), start)

    def _table_function(self, parts: list[exp.Identifier], start: int) -> Node:
        if len(parts) > 1 and not are_built_in(parts[:-1]):
            raise unsupported("a table function with a qualified name", self.span(start))
        if self.peek() in ("TABLE", "SELECT", "WITH", "FROM") and self.peek(2) not in (")", ",", "."):
            raise unsupported("a table argument", self.span(start))
        arguments, wrapper = self.arguments("")
        if wrapper is not None or (arguments and isinstance(arguments[0], exp.Distinct)):
            self.fail()
        call = self.place(exp.Anonymous(this=parts[-1].name, expressions=arguments), start)
        return self._alias(self.place(exp.Table(this=call), start), start)

    def table_name(self) -> exp.Table:
        """``a.b.c`` as a table without time travel and alias."""
        start = self.index
        return self._named_table(self.dotted(), start)

    def _named_table(self, parts: list[exp.Identifier], start: int) -> exp.Table:
        if len(parts) > 3:
            self.fail(index=start + 6)
        keys = ("catalog", "db", "this")
        names = dict(zip(keys[3 - len(parts) :], parts, strict=True))
        return self.place(exp.Table(**names), start)

    def _table(self, parts: list[exp.Identifier], start: int) -> exp.Table:
        table = self._named_table(parts, start)
        version = self._version()
        if version is not None:
            table.set("version", version)
            self.place(table, start)
        if self.word == "WITH" and self.peek() == "(":
            raise unsupported("options behind a table name", self.span(self.index))
        return table

    def _version(self) -> Node | None:
        start = self.index
        if self.word == "@":
            return self._at_version()
        distance = 1 if self.word == "FOR" else 0
        word = self.peek(distance)
        if word not in ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
            return None
        if self.peek(distance + 1) != "AS" or self.peek(distance + 2) != "OF":
            return None
        self.advance(distance + 3)
        at = self.index
        if word in ("TIMESTAMP", "SYSTEM_TIME"):
            return self.place(exp.Version(this="TIMESTAMP", kind="AS OF", expression=self.value()), start)
        value = self.tokens[at].text
        if self.word == NUMBER and value.isdigit():
            self.advance()
            literal = exp.Literal(this=value, is_string=False)
        else:
            literal = exp.Literal(this=self.string(), is_string=True)
        return self.place(exp.Version(this="VERSION", kind="AS OF", expression=self.place(literal, at)), start)

    def _at_version(self) -> Node:
        """``t@v12`` or ``t@20190101000000000`` (Databricks)."""
        start = self.index
        self.advance()
        text = self.tokens[self.index].text
        digits = text[1:] if self.word[:1] == "V" else text
        if self.word == QUOTED or not digits.isdigit():
            self.fail()
        self.advance()
        literal = self.place(exp.Literal(this=digits, is_string=text == digits), self.index - 1)
        kind = "TIMESTAMP" if text == digits else "VERSION"
        return self.place(exp.Version(this=kind, kind="@", expression=literal), start)

    def values(self) -> Node:
        """``VALUES row, … [alias]``."""
        start = self.index
        self.expect("VALUES")
        rows: list[Node] = []
        while not rows or (not self._more_values() and self.match(",")):
            rows.append(self._row())
        return self._alias(self.place(exp.Values(expressions=rows), start), start)

    def _more_values(self) -> bool:
        """Whether another VALUES follows, which can be no row."""
        return self.word == "," and self.peek() == "VALUES" and self.peek(2) == NUMBER

    def _row(self) -> Node:
        """One row as a Tuple; like Spark, ``struct(…)`` is a row too, every other expression a row of one column."""
        start = self.index
        node = self.expression()
        if isinstance(node, exp.Tuple):
            return node
        bare = node.unnest()  # parentheses around it do not count
        first = next(i for i in range(start, self.index) if self.words[i] != "(")
        if isinstance(bare, exp.Anonymous) and bare.name.upper() == "STRUCT" and self.words[first] == "STRUCT":
            cells = [c.this if isinstance(c, exp.Alias) else c for c in bare.expressions]
            if not cells:
                raise unsupported("A row without columns", span_of(node))
            if not isinstance(cells[0], exp.Distinct):
                return self.place(exp.Tuple(expressions=cells), start)
        return self.place(exp.Tuple(expressions=[node]), start)

    def _parenthesised(self, start: int) -> Node:
        """``(query)``, ``(relation)``; which one is known without a second try, so nesting costs linear time."""
        self.advance()
        if self.word == "(":
            inner = self._parenthesised(self.index)
            bare = isinstance(inner, exp.Subquery) and not inner.args.get("alias") and not inner.args.get("joins")
            if bare and isinstance(inner.this, exp.Query) and (self.word in AFTER_QUERY or self.word == ")"):
                query = self.query(inner)
                self.expect(")")
                return self._alias(self.place(exp.Subquery(this=query), start), start)
            return self._joined(inner, start)
        if self.query_at(0):
            query = self.query()
            bare_values = isinstance(query, exp.Values)
            if self.word == ")" or not bare_values:
                self.expect(")")
                return self._alias(self.place(exp.Subquery(this=query), start), start)
            return self._joined(query, start)
        return self._joined(self._lateral_or_primary(), start)

    def _joined(self, first: Node, start: int) -> Node:
        """The rest of a parenthesised relation: its joins go to key `joins` of the Subquery around it."""
        joins: list[Node] = []
        first = self._extensions(first, joins, start + 1)
        self.expect(")")
        return self._alias(self.place(exp.Subquery(this=first, joins=joins or None), start), start)

    def _turned(self) -> bool:
        """Whether PIVOT or UNPIVOT follows, as a clause and not as an alias."""
        if self.word == "UNPIVOT" and self.peek(2) == "NULLS":
            return True
        return self.word in ("PIVOT", "UNPIVOT") and self.peek() == "(" and self.peek(3) not in (")", ",")

    def _alias(self, node: Node, start: int, listed: bool = True) -> Node:
        """TABLESAMPLE and ``[AS] name [(columns)]`` behind a relation."""
        method = self.peek() in ("SYSTEM", "BERNOULLI") and self.peek(2) == "("
        if self.word == "TABLESAMPLE" and (method or self.peek() == "("):
            node = self._sampled(node, start)
        at = self.index
        named = self.match("AS")
        if named and self.word == "(":
            # ``AS (a, b)``: Spark's grammar makes AS the alias itself.
            self.seek(at)
            named = False
        word = self.word
        if word == QUOTED or (self.is_name() and word not in STRICT and not self.clause_ahead()):
            if not named and self._turned():
                return node
            if word == "WATERMARK" and self.peek() not in _STOPS:
                raise unsupported("WATERMARK", self.span(at))
            name = self.identifier()
            columns = self.names() if listed and self.word == "(" else []
            node.set("alias", self.place(exp.TableAlias(this=name, columns=columns), at))
            return self.place(node, start)
        if named:
            self.fail()
        return node

    def _sampled(self, relation: Node, start: int) -> Node:
        """``TABLESAMPLE (number ROWS)`` is a LIMIT to Spark; of PERCENT and BUCKET each row is there by chance."""
        at = self.index
        self.advance()
        method = "" if self.word == "(" else self.word
        self.advance(1 if method else 0)
        self.expect("(")
        table = isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier)
        if not (table or isinstance(relation, exp.Subquery)):
            raise unsupported("TABLESAMPLE of anything but tables and subqueries", self.span(at))
        part = self._part_of(method, at)
        self.expect(")")
        if self.word == "REPEATABLE":
            raise unsupported("TABLESAMPLE … REPEATABLE", self.span(at))
        select = exp.Select(expressions=[self.place(exp.Star(), at)])
        select.set("from_", self.place(exp.From(this=relation), start))
        select.set("where" if isinstance(part, exp.Where) else "limit", self.place(part, at))
        sample = self.place(exp.Subquery(this=self.place(select, start)), start)
        if table:  # it keeps its name
            name = exp.Identifier(this=relation.name, quoted=True)
            sample.set("alias", self.place(exp.TableAlias(this=self.place(name, start), columns=[]), start))
        return sample

    def _part_of(self, method: str, at: int) -> exp.Where | exp.Limit:
        """Which rows a sample has, of how it is told between its parentheses."""
        if self.match("BUCKET"):
            share = self._whole_number()
            self.expect("OUT")
            self.expect("OF")
            buckets = self._whole_number()
            if self.word != ")":
                raise unsupported("TABLESAMPLE of buckets ON something", self.span(at))
            return self._by_chance(share / buckets if buckets else Decimal("Infinity"), at)
        count = self.expression() if self.word != ")" else exp.Null()
        if self.match("PERCENT") and method != "SYSTEM":
            return self._by_chance(self._share(count, at) / 100, at)
        if method or not self.match("ROWS"):
            raise unsupported("TABLESAMPLE but of ROWS, PERCENT and BUCKET", self.span(at))
        return exp.Limit(expression=count)

    def _whole_number(self) -> Decimal:
        if self.word != NUMBER or not self.tokens[self.index].text.isdecimal():
            self.fail()
        self.advance()
        return Decimal(self.tokens[self.index - 1].text)

    def _share(self, number: Node, at: int) -> Decimal:
        """A number of a sample: digits, with a point or without."""
        if not isinstance(number, exp.Literal) or not number.name.removeprefix("-").replace(".", "", 1).isdecimal():
            raise unsupported("TABLESAMPLE but of ROWS, PERCENT and BUCKET by plain numbers", self.span(at))
        return Decimal(number.name)

    def _by_chance(self, share: Decimal, at: int) -> exp.Where:
        if not 0 <= share <= 1:
            message = f"Sampling fraction ({float(share)}) must be on interval [0, 1]."
            raise user_error("_LEGACY_ERROR_TEMP_0064", message, self.span(at))
        chance = self.place(exp.Anonymous(this="rand", expressions=[]), at)
        limit = self.place(exp.Literal(this=f"{share:f}D", is_string=False), at)
        return exp.Where(this=self.place(exp.LT(this=chance, expression=limit), at))
