"""Expressions of Spark's grammar (SqlBaseParser.g4) as sqlglot nodes; `parse.py` describes the tree.

Strategy: boolean levels (OR, AND, NOT, one predicate) are methods, everything between comparison and unary is one
precedence-climbing loop, primaries are found by their first word. A rule either consumes tokens or raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from sqlglot import exp

from gateway.errors import UnsupportedError, unsupported
from gateway.sql.cursor import Cursor, user_error
from gateway.sql.datatypes import data_type
from gateway.sql.tokens import END, NUMBER, QUOTED, STRING
from gateway.sql.tree import IntervalLiteral, Positive, TypedLiteral, UnsignedRightShift, span_of

Node = exp.Expr
B = TypeVar("B", bound=exp.Expr)

_BINARY: dict[str, tuple[int, type[exp.Expression]]] = {
    "=": (1, exp.EQ),
    "==": (1, exp.EQ),
    "<=>": (1, exp.NullSafeEQ),
    "<>": (1, exp.NEQ),
    "!=": (1, exp.NEQ),
    "<": (1, exp.LT),
    "<=": (1, exp.LTE),
    "!>": (1, exp.LTE),
    ">": (1, exp.GT),
    ">=": (1, exp.GTE),
    "!<": (1, exp.GTE),
    "|": (2, exp.BitwiseOr),
    "^": (3, exp.BitwiseXor),
    "&": (4, exp.BitwiseAnd),
    "+": (6, exp.Add),
    "-": (6, exp.Sub),
    "||": (6, exp.DPipe),
    "*": (7, exp.Mul),
    "/": (7, exp.Div),
    "%": (7, exp.Mod),
    "DIV": (7, exp.IntDiv),
}
_SHIFT = 5
_UNARY: dict[str, type[exp.Expression]] = {"-": exp.Neg, "+": Positive, "~": exp.BitwiseNot}
_PREDICATES = frozenset({"IS", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP"})
_NEGATABLE = frozenset({"IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP"})
_QUERY = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})
_SET_OPERATORS = frozenset({"UNION", "EXCEPT", "MINUS", "SETMINUS", "INTERSECT"})
_AFTER_QUERY = _SET_OPERATORS | {"ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW"}
_TYPED = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X", "INTERVAL"})
# Words that are an operator where an operand is expected, never a column.
_NOT_AN_OPERAND = frozenset({"AND", "OR", "DIV", "THEN", "WHEN", "AS", "ON", "USING", "BY", "JOIN"})
# Clauses that a forgotten operand leaves here; Spark takes these words for columns and fails later, less clearly.
_CLAUSE_WORDS = frozenset({"FROM", "WHERE", "GROUP", "ORDER"})

_INTERVAL_UNITS: dict[str, str] = {}
for _unit in "NANOSECOND MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH YEAR".split():
    _INTERVAL_UNITS[_unit] = _INTERVAL_UNITS[_unit + "S"] = _unit
_TO_UNITS = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR"})
_DATETIME_UNITS = frozenset(
    "YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND".split()
)
_UNIT_FUNCTIONS = frozenset(
    {"TIMESTAMPADD", "DATEADD", "DATE_ADD", "TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF", "TIMEDIFF"}
)
_NULLS_INSIDE = frozenset({"FIRST", "LAST", "ANY_VALUE"})


def balanced(kind: type[B], terms: list[Node]) -> B:
    """A tree of `terms` under one associative operator, halved as Spark halves long chains (its names show it)."""

    def build(low: int, high: int) -> Node:
        if low == high:
            return terms[low]
        middle = low if high - low == 1 else low + (high - low) // 2
        node = kind(this=build(low, middle), expression=build(middle + 1, high))
        node._meta = {"start": _first(terms[low]), "end": _last(terms[high])}
        return node

    found = build(0, len(terms) - 1)
    assert isinstance(found, kind)
    return found


def _first(node: Node) -> int:
    return int((node._meta or {})["start"])


def _last(node: Node) -> int:
    return int((node._meta or {})["end"])


class ExpressionParser(Cursor):
    """Recursive descent over one statement's tokens."""

    def query(self, first: Node | None = None) -> Node:
        """A query; given by the subclass. `first` is an operand that was parsed already."""
        raise NotImplementedError

    # ------------------------------------------------------------------ boolean levels

    def expression(self) -> Node:
        """Any expression: OR level."""
        left = self._conjunction()
        if self.word != "OR":
            return left
        terms = [left]
        while self.word == "OR":
            self.advance()
            terms.append(self._conjunction())
        return balanced(exp.Or, terms)

    def _conjunction(self) -> Node:
        left = self._negation()
        if self.word != "AND":
            return left
        terms = [left]
        while self.word == "AND":
            self.advance()
            terms.append(self._negation())
        return balanced(exp.And, terms)

    def _negation(self) -> Node:
        start = self.index
        while self.word in ("NOT", "!") and not (self.peek() in (")", ",", END, ".") or self.peek() == "FROM"):
            self.advance()
        count = self.index - start
        if count > self.limits.depth:
            self.too_complex("nested operators", self.limits.depth)
        if self.word == "EXISTS" and self.peek() == "(" and self._query_at(2):
            at = self.index
            self.advance(2)
            query = self._query_and_paren()
            node: Node = self.place(exp.Exists(this=query), at)
        else:
            node = self._predicate()
        for index in range(start + count - 1, start - 1, -1):
            node = self.place(exp.Not(this=node), index)
        return node

    def _predicate(self) -> Node:
        """A value with at most one predicate behind it."""
        start = self.index
        left = self.value()
        word = self.word
        if word not in _PREDICATES:
            return left
        if word == "IS":
            return self._is(left, start)
        negated = False
        if word == "NOT":
            if self.peek() not in _NEGATABLE:
                return left
            negated = True
            self.advance()
            word = self.word
        self.advance()
        if word == "IN":
            node = self._in(left)
        elif word == "BETWEEN":
            low = self.value()
            self.expect("AND")
            node = exp.Between(this=left, low=low, high=self.value())
        elif word in ("LIKE", "ILIKE"):
            node = self._like(exp.Like if word == "LIKE" else exp.ILike, left, start)
        else:
            node = exp.RegexpLike(this=left, expression=self.value())
        self.place(node, start)
        return self.place(exp.Not(this=node), start) if negated else node

    def _is(self, left: Node, start: int) -> Node:
        self.advance()
        negated = self.match("NOT")
        word = self.word
        at = self.index
        node: exp.Expression
        if word == "NULL":
            self.advance()
            node = exp.Is(this=left, expression=self.place(exp.Null(), at))
        elif word in ("TRUE", "FALSE"):
            self.advance()
            node = exp.Is(this=left, expression=self.place(exp.Boolean(this=word == "TRUE"), at))
        elif word == "UNKNOWN":
            self.advance()
            node = exp.Is(this=left, expression=self.place(exp.Var(this="UNKNOWN"), at))
        elif word == "DISTINCT" and self.peek() == "FROM":
            self.advance(2)
            node = exp.NullSafeEQ(this=left, expression=self.value())
            negated = not negated
        else:
            self.fail()
        self.place(node, start)
        return self.place(exp.Not(this=node), start) if negated else node

    def _in(self, left: Node) -> exp.Expression:
        self.expect("(")
        if self.word == ")":
            message = "Invalid SQL syntax: IN predicate requires at least one value."
            raise user_error("INVALID_SQL_SYNTAX.EMPTY_IN_PREDICATE", message, self.span(self.index))
        if self.word != "(" and self._query_at(0):
            return exp.In(this=left, query=self._query_and_paren())
        items = [self.expression()]
        if isinstance(items[0], exp.Subquery) and self.word in _AFTER_QUERY:
            return exp.In(this=left, query=self._query_and_paren(items[0]))
        while self.match(","):
            items.append(self.expression())
        self.expect(")")
        return exp.In(this=left, expressions=items)

    def _like(self, kind: type[exp.Expression], left: Node, start: int) -> exp.Expression:
        at = self.index
        if self.word in ("ANY", "SOME", "ALL") and self.peek() == "(":
            every = self.word == "ALL"
            self.advance(2)
            if self.word == ")":
                message = "Invalid SQL syntax: Expected something between '(' and ')'."
                raise user_error("INVALID_SQL_SYNTAX.EMPTY_QUANTIFIED_PATTERN", message, self.span(at))
            if self._query_at(0):
                raise unsupported("LIKE ANY/ALL with a subquery", self.span(at))
            patterns = [self.expression()]
            while self.match(","):
                patterns.append(self.expression())
            self.expect(")")
            values = self.place(exp.Tuple(expressions=patterns), at)
            return kind(this=left, expression=self.place((exp.All if every else exp.Any)(this=values), at))
        node = kind(this=left, expression=self.value())
        if self.word == "ESCAPE":
            self.place(node, start)
            self.advance()
            at = self.index
            escape = self.place(exp.Literal(this=self.string(), is_string=True), at)
            return exp.Escape(this=node, expression=escape)
        return node

    # ------------------------------------------------------------------ operators

    def value(self, floor: int = 1) -> Node:
        """A value expression whose binary operators are at least of level `floor` (1 comparison … 7 multiplication)."""
        start = self.index
        left = self._unary() if self.word in _UNARY else self._postfix()
        run = 0
        while True:
            word = self.word
            entry = _BINARY.get(word)
            if entry is None:
                return left
            level, kind = entry
            width = 1
            if (word == "<" or word == ">") and self.words[self.index + 1] == word and self._glued(1):
                level, kind, width = _SHIFT, exp.BitwiseLeftShift, 2
                if word == ">":
                    kind = exp.BitwiseRightShift
                    if self.words[self.index + 2] == ">" and self._glued(2):
                        kind, width = UnsignedRightShift, 3
            if level < floor:
                return left
            if word == "DIV" and self.words[self.index + 1] in (")", ",", END, "FROM"):
                return left
            self.advance(width)
            left = kind(this=left, expression=self.value(level + 1))
            left._meta = {"start": self.tokens[start].start, "end": self.tokens[self.index - 1].end}
            run += 1
            if run > self.limits.chain:
                self.too_complex("operators in a row", self.limits.chain)

    def _glued(self, distance: int) -> bool:
        """Whether the token `distance` ahead follows its predecessor without a gap."""
        return self.tokens[self.index + distance].start == self.tokens[self.index + distance - 1].end + 1

    def _unary(self) -> Node:
        start = self.index
        while self.word in _UNARY and not (self.word == "-" and self.peek() == NUMBER):
            self.advance()
        stop = self.index
        if stop - start > self.limits.depth:
            self.too_complex("nested operators", self.limits.depth)
        node = self._postfix()
        for index in range(stop - 1, start - 1, -1):
            node = self.place(_UNARY[self.words[index]](this=node), index)
        return node

    def _postfix(self) -> Node:
        start = self.index
        node = self._primary()
        while True:
            word = self.word
            if word == ".":
                self.advance()
                node = exp.Dot(this=node, expression=self.identifier())
            elif word == "[":
                self.advance()
                node = exp.Bracket(this=node, expressions=[self.value()])
                self.expect("]")
            elif word == "::":
                self.advance()
                node = exp.Cast(this=node, to=data_type(self), dcolon=True)
            elif word == "?::":
                self.advance()
                node = exp.TryCast(this=node, to=data_type(self), dcolon=True)
            elif word == ":" and self.is_name(1):
                self.advance()
                node = exp.JSONExtract(this=node, expression=self.identifier())
            elif word == "COLLATE" and self.is_name(1):
                self.advance()
                node = exp.Collate(this=node, expression=self.identifier())
            else:
                return node
            node._meta = {"start": self.tokens[start].start, "end": self.tokens[self.index - 1].end}

    # ------------------------------------------------------------------ primaries

    def _primary(self) -> Node:
        word = self.word
        rule = self.PRIMARIES.get(word)
        if rule is not None:
            node = rule(self)
            if node is not None:
                return node
        if not self.is_name():
            self.fail()
        follower = self.words[self.index + 1]
        if follower == "(":
            if word == "IDENTIFIER":
                raise unsupported("IDENTIFIER(…)", self.span(self.index))
            if word == "SELECT":
                self.fail(index=self.index + 1)
            return self.call([self.identifier()], self.index - 1)
        if follower == STRING and word != QUOTED:
            return self._typed_literal()
        if follower == "->":
            return self._lambda()
        if word in _NOT_AN_OPERAND or (word in _CLAUSE_WORDS and self.clause_ahead()):
            self.fail()
        return self._reference()

    def _reference(self) -> Node:
        """A column, a star with a qualifier, or a call of a qualified function."""
        start = self.index
        first = self.identifier()
        if self.word != ".":
            column = exp.Column(this=first)
            column._meta = first._meta
            return column
        parts = [first]
        while self.word == ".":
            if self.peek() == "*":
                self.advance(2)
                return self._star(start, parts)
            if not self.is_name(1):
                self.fail(index=self.index + 1)
            self.advance()
            parts.append(self.identifier())
        if self.word == "(":
            return self.call(parts, start)
        keys = ("catalog", "db", "table", "this")
        head = parts[:4]
        node: Node = exp.Column(**dict(zip(keys[4 - len(head) :], head, strict=True)))
        self.place(node, start)
        for extra in parts[4:]:
            node = self.place(exp.Dot(this=node, expression=extra), start)
        return node

    def _star(self, start: int, qualifier: list[exp.Identifier]) -> Node:
        star = exp.Star()
        if self.word == "EXCEPT" and self.peek() == "(" and not self._query_at(2):
            self.advance(2)
            columns: list[Node] = []
            while not columns or self.match(","):
                at = self.index
                parts = self.dotted()
                if len(parts) > 4:
                    raise unsupported("EXCEPT of a nested field", self.span(at))
                keys = ("catalog", "db", "table", "this")
                columns.append(self.place(exp.Column(**dict(zip(keys[4 - len(parts) :], parts, strict=True))), at))
            self.expect(")")
            star.set("except_", columns)
        self.place(star, start)
        if not qualifier:
            return star
        if len(qualifier) > 3:
            raise unsupported("a star behind more than three names", self.span(start))
        keys = ("catalog", "db", "table")
        names = dict(zip(keys[3 - len(qualifier) :], qualifier, strict=True))
        return self.place(exp.Column(this=star, **names), start)

    def _bare_star(self) -> Node:
        self.advance()
        return self._star(self.index - 1, [])

    def _number(self) -> Node:
        token = self.tokens[self.index]
        node = exp.Literal(this=token.text, is_string=False)
        node._meta = {"start": token.start, "end": token.end}
        self.advance()
        return node

    def _negative_number(self) -> Node | None:
        if self.peek() != NUMBER:
            return None
        start = self.index
        self.advance(2)
        return self.place(exp.Literal(this="-" + self.tokens[self.index - 1].text, is_string=False), start)

    def _string_literal(self) -> Node:
        start = self.index
        return self.place(exp.Literal(this=self.string(), is_string=True), start)

    def _typed_literal(self) -> Node:
        start = self.index
        kind = self.word
        if kind == "TIME":
            raise unsupported("a TIME literal", self.span(start))
        if kind not in _TYPED:
            message = (
                f'Literals of the type "{kind}" are not supported. Supported types are "DATE", "TIMESTAMP_NTZ", '
                '"TIMESTAMP_LTZ", "TIMESTAMP", "INTERVAL", "X", "TIME".'
            )
            raise UnsupportedError("UNSUPPORTED_TYPED_LITERAL", message, sqlstate="0A000", span=self.span(start))
        self.advance(2)
        text = self.tokens[self.index - 1].text
        return self.place(TypedLiteral(this=text, kind=kind), start)

    def _interval(self) -> Node | None:
        """``INTERVAL`` with literals and units; None if it is a column or a whole string (a typed literal)."""
        start = self.index
        follower = self.peek()
        if follower == STRING:
            if self.peek(2) not in _INTERVAL_UNITS:
                return None
        elif not (follower == NUMBER or (follower in ("-", "+") and self.peek(2) in (NUMBER, STRING))):
            return None
        self.advance()
        parts: list[tuple[str, str]] = []
        while self.word in (NUMBER, STRING) or (self.word in ("-", "+") and self.peek() in (NUMBER, STRING)):
            if parts and not self._unit_follows():
                break
            sign = ""
            if self.word in ("-", "+"):
                sign = "-" if self.word == "-" else ""
                self.advance()
            text = self._interval_text(sign)
            unit = _INTERVAL_UNITS.get(self.word)
            if unit is None:
                self.fail()
            written = self.word
            self.advance()
            if not parts and self.word == "TO" and written in _TO_UNITS:
                self.advance()
                last = self.word
                if last not in _TO_UNITS:
                    self.fail()
                self.advance()
                return self.place(IntervalLiteral(parts=((text, unit),), to=last), start)
            parts.append((text, unit))
        if len({unit in ("YEAR", "MONTH") for _, unit in parts}) > 1:
            message = "Cannot mix year-month and day-time fields in an interval literal."
            raise user_error("INVALID_INTERVAL_FORMAT.MIXED_FIELDS", message, self.span(start))
        return self.place(IntervalLiteral(parts=tuple(parts), to=None), start)

    def _interval_text(self, sign: str) -> str:
        if self.word == NUMBER:
            text = self.tokens[self.index].text
            if not text.replace(".", "", 1).isdigit():
                self.fail()
            self.advance()
            return sign + text
        text = self.tokens[self.index].text
        self.advance()
        if sign:
            text = text[1:] if text.startswith("-") else sign + text.removeprefix("+")
        return text

    def _unit_follows(self) -> bool:
        """Whether sign, literal and unit stand here: the next part of an interval and not an operator."""
        return self.peek(2 if self.word in ("-", "+") else 1) in _INTERVAL_UNITS

    def _null(self) -> Node:
        self.advance()
        return self.place(exp.Null(), self.index - 1)

    def _boolean(self) -> Node:
        word = self.word
        self.advance()
        return self.place(exp.Boolean(this=word == "TRUE"), self.index - 1)

    def _placeholder(self) -> Node:
        self.advance()
        return self.place(exp.Placeholder(), self.index - 1)

    def _named_parameter(self) -> Node:
        start = self.index
        self.advance()
        return self.place(exp.Placeholder(this=self.identifier().name), start)

    def _case(self) -> Node | None:
        start = self.index
        if self.peek() in (",", ")", END, ".", "FROM", "="):
            return None
        self.advance()
        operand = None if self.word == "WHEN" else self.expression()
        branches: list[Node] = []
        while self.word == "WHEN":
            at = self.index
            self.advance()
            condition = self.expression()
            self.expect("THEN")
            branches.append(self.place(exp.If(this=condition, true=self.expression()), at))
        if not branches:
            self.fail()
        default = self.expression() if self.match("ELSE") else None
        self.expect("END")
        return self.place(exp.Case(this=operand, ifs=branches, default=default), start)

    def _cast(self) -> Node | None:
        if self.peek() != "(":
            return None
        start = self.index
        kind = exp.Cast if self.word == "CAST" else exp.TryCast
        self.advance(2)
        operand = self.expression()
        self.expect("AS")
        to = data_type(self)
        self.expect(")")
        return self.place(kind(this=operand, to=to), start)

    def _lambda(self) -> Node:
        start = self.index
        if self.word == "(":
            names = self.names()
        else:
            names = [self.identifier()]
        self.expect("->")
        return self.place(exp.Lambda(this=self.expression(), expressions=names), start)

    def _parenthesis(self) -> Node:
        start = self.index
        if self._lambda_ahead():
            return self._lambda()
        if self._query_at(1) and self.peek() != "(":
            self.advance()
            return self.place(exp.Subquery(this=self._query_and_paren()), start)
        self.advance()
        items = [self.named_expression()]
        if self.word == ",":
            while self.match(","):
                items.append(self.named_expression())
            self.expect(")")
            return self.place(exp.Tuple(expressions=items), start)
        only = items[0]
        if isinstance(only, exp.Subquery) and self.word in _AFTER_QUERY:
            return self.place(exp.Subquery(this=self._query_and_paren(only)), start)
        if isinstance(only, (exp.Alias, exp.Aliases)):
            self.fail()
        self.expect(")")
        return only

    def _lambda_ahead(self) -> bool:
        """Whether ``(a, b) ->`` stands here."""
        distance = 1
        while self.is_name(distance):
            follower = self.peek(distance + 1)
            if follower == ",":
                distance += 2
            else:
                return follower == ")" and self.peek(distance + 2) == "->"
        return False

    def _query_at(self, distance: int) -> bool:
        """Whether a query starts there (after any opening parentheses)."""
        while self.peek(distance) == "(":
            distance += 1
        word = self.peek(distance)
        if word not in _QUERY:
            return False
        if word == "SELECT":
            return True
        follower = self.peek(distance + 1)
        if word == "VALUES":
            return follower in ("(", NUMBER, STRING, "-", "+", "?", ":") or self.is_name(distance + 1)
        return self.is_name(distance + 1) or (word == "FROM" and follower == "(")

    def _query_and_paren(self, first: Node | None = None) -> Node:
        found = self.query(first)
        self.expect(")")
        return found

    # ------------------------------------------------------------------ names for results

    def named_expression(self) -> Node:
        """An expression with an optional alias (``AS`` may be missing) or list of aliases."""
        start = self.index
        node = self.expression()
        if self.word == "AS":
            self.advance()
            if self.word == "(":
                return self.place(exp.Aliases(this=node, expressions=self.names()), start)
            return self.place(exp.Alias(this=node, alias=self.identifier()), start)
        if self.is_name() and not self.clause_ahead():
            return self.place(exp.Alias(this=node, alias=self.identifier()), start)
        if self.word == "(" and self.is_name(1):
            return self.place(exp.Aliases(this=node, expressions=self.names()), start)
        return node

    # ------------------------------------------------------------------ calls

    def call(self, name: list[exp.Identifier], start: int) -> Node:
        """A function call from its opening parenthesis on, with what may follow it."""
        if len(name) == 1 and not name[0].args.get("quoted"):
            upper = self.words[start]
            special = self.SPECIAL.get(upper)
            if special is not None:
                found = special(self, start)
                if found is not None:
                    return self._over(found, start)
        else:
            upper = ""
        arguments, wrapper = self.arguments(upper)
        self._check_unit(upper, arguments, start)
        node: Node = exp.Anonymous(this=name[-1].name, expressions=arguments)
        self.place(node, start)
        if len(name) > 1:
            qualifier = exp.Column(**dict(zip(("catalog", "db", "table", "this")[5 - len(name) :], name[:-1], strict=True)))
            qualifier._meta = {"start": _first(name[0]), "end": _last(name[-2])}
            node = self.place(exp.Dot(this=qualifier, expression=node), start)
        if wrapper is not None:
            node = self.place(wrapper(this=node), start)
        return self._over(node, start)

    def arguments(self, upper: str) -> tuple[list[Node], type[exp.Expression] | None]:
        """``(…)``: the arguments (one `Distinct` for DISTINCT) and IgnoreNulls / RespectNulls if written inside."""
        self.expect("(")
        wrapper: type[exp.Expression] | None = None
        if self.match(")"):
            return [], None
        start = self.index
        distinct = False
        if self.word in ("DISTINCT", "ALL") and self.peek() not in (")", ",", ".", "=>", "->", "("):
            distinct = self.word == "DISTINCT"
            self.advance()
        elif self.word == "DISTINCT" and self.peek() == "(":
            distinct = True
            self.advance()
        items: list[Node] = []
        while not items or self.match(","):
            if upper in _UNIT_FUNCTIONS and not items and self.word in _DATETIME_UNITS and self.peek() == ",":
                items.append(self.place(exp.Var(this=self.tokens[self.index].text), self._step()))
            elif upper == "STRUCT":
                items.append(self.named_expression())
            else:
                items.append(self._argument())
        if upper in _NULLS_INSIDE and self.word in ("IGNORE", "RESPECT") and self.peek() == "NULLS":
            wrapper = exp.IgnoreNulls if self.word == "IGNORE" else exp.RespectNulls
            self.advance(2)
        if distinct:
            items = [self.place(exp.Distinct(expressions=items), start)]
        self.expect(")")
        return items, wrapper

    def _step(self) -> int:
        """Consume one token; its index."""
        self.advance()
        return self.index - 1

    def _argument(self) -> Node:
        start = self.index
        if self.peek() == "=>" and self.is_name():
            name = self.identifier()
            self.advance()
            return self.place(exp.Kwarg(this=name, expression=self.expression()), start)
        return self.expression()

    def _check_unit(self, upper: str, arguments: list[Node], start: int) -> None:
        if upper in _UNIT_FUNCTIONS and len(arguments) == 3 and arguments[0].is_string:
            message = (
                f"The value of parameter(s) `unit` in `{upper.lower()}` is invalid: expects one of the units without "
                f"quotes YEAR, QUARTER, MONTH, WEEK, DAY, DAYOFYEAR, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND, "
                f"but got the string literal '{arguments[0].this}'."
            )
            raise user_error("INVALID_PARAMETER_VALUE.DATETIME_UNIT", message, self.span(start))

    def _over(self, node: Node, start: int) -> Node:
        """WITHIN GROUP, FILTER, IGNORE NULLS, OVER behind a call, in this order."""
        if self.word == "WITHIN" and self.peek() == "GROUP":
            self.advance(2)
            self.expect("(", "ORDER", "BY")
            at = self.index
            order = self.place(exp.Order(expressions=self.sort_items()), at)
            self.expect(")")
            node = self.place(exp.WithinGroup(this=node, expression=order), start)
        if self.word == "FILTER" and self.peek() == "(":
            self.advance(2)
            at = self.index
            self.expect("WHERE")
            where = self.place(exp.Where(this=self.expression()), at)
            self.expect(")")
            node = self.place(exp.Filter(this=node, expression=where), start)
        if self.word in ("IGNORE", "RESPECT") and self.peek() == "NULLS":
            kind = exp.IgnoreNulls if self.word == "IGNORE" else exp.RespectNulls
            self.advance(2)
            node = self.place(kind(this=node), start)
        if self.word == "OVER" and (self.peek() == "(" or self.is_name(1)):
            self.advance()
            node = self.window(exp.Window(this=node), start)
        return node

    def sort_items(self) -> list[Node]:
        """``expr [ASC | DESC] [NULLS FIRST | LAST], …``; `desc` and `nulls_first` are None where not written."""
        items: list[Node] = []
        while not items or self.match(","):
            start = self.index
            this = self.expression()
            desc: bool | None = None
            if self.word in ("ASC", "DESC"):
                desc = self.word == "DESC"
                self.advance()
            first: bool | None = None
            if self.word == "NULLS":
                if self.peek() not in ("FIRST", "LAST"):
                    self.fail(index=self.index + 1)
                first = self.peek() == "FIRST"
                self.advance(2)
            items.append(self.place(exp.Ordered(this=this, desc=desc, nulls_first=first), start))
        return items

    def window(self, node: exp.Window, start: int) -> exp.Window:
        """Fill `node` with the window specification that stands here."""
        if self.word != "(":
            node.set("alias", self.identifier())
            return self.place(node, start)
        self.advance()
        if self.is_name() and self.peek() == ")":
            node.set("alias", self.identifier())
            self.advance()
            return self.place(node, start)
        if self.word in ("CLUSTER", "PARTITION", "DISTRIBUTE") and self.peek() == "BY":
            cluster = self.word == "CLUSTER"
            if cluster:
                raise unsupported("CLUSTER BY in a window", self.span(self.index))
            self.advance(2)
            parts = [self.expression()]
            while self.match(","):
                parts.append(self.expression())
            node.set("partition_by", parts)
        if self.word in ("ORDER", "SORT") and self.peek() == "BY":
            at = self.index
            self.advance(2)
            node.set("order", self.place(exp.Order(expressions=self.sort_items()), at))
        if self.word in ("ROWS", "RANGE"):
            node.set("spec", self._frame())
        self.expect(")")
        return self.place(node, start)

    def _frame(self) -> exp.WindowSpec:
        at = self.index
        kind = self.word
        self.advance()
        if self.match("BETWEEN"):
            start, start_side = self._bound()
            self.expect("AND")
            end, end_side = self._bound()
        else:
            start, start_side = self._bound()
            end, end_side = "CURRENT ROW", None
        spec = exp.WindowSpec(kind=kind, start=start, start_side=start_side, end=end, end_side=end_side)
        return self.place(spec, at)

    def _bound(self) -> tuple[Node | str, str | None]:
        if self.word == "UNBOUNDED" and self.peek() in ("PRECEDING", "FOLLOWING"):
            side = self.peek()
            self.advance(2)
            return "UNBOUNDED", side
        if self.match("CURRENT", "ROW"):
            return "CURRENT ROW", None
        bound = self.expression()
        if self.word not in ("PRECEDING", "FOLLOWING"):
            self.fail()
        side = self.word
        if bound.find(exp.Column, exp.Anonymous, exp.Subquery, exp.Exists) is not None:
            message = "Invalid SQL syntax: Frame bound value must be a literal."
            raise user_error("INVALID_SQL_SYNTAX.INVALID_WINDOW_FRAME_BOUND", message, span_of(bound))
        self.advance()
        return bound, side

    # ------------------------------------------------------------------ calls with words inside

    def _extract(self, start: int) -> Node | None:
        if not (self.is_name(1) and self.peek(2) == "FROM"):
            return None
        self.advance()
        field = self.place(exp.Var(this=self.tokens[self.index].text), self._step())
        self.advance()
        source = self.value()
        self.expect(")")
        return self.place(exp.Extract(this=field, expression=source), start)

    def _trim(self, start: int) -> Node | None:
        opening = self.index
        self.advance()
        position = None
        if self.word in ("BOTH", "LEADING", "TRAILING") and self.peek() not in (")", ",", ".", "("):
            position = self.word
            self.advance()
        pattern = None
        if self.word != "FROM" or position is None:
            if self.word == ")":
                self.seek(opening)
                return None
            pattern = self.value()
        if self.word != "FROM":
            self.seek(opening)
            return None
        self.advance()
        source = self.value()
        self.expect(")")
        return self.place(exp.Trim(this=source, expression=pattern, position=position), start)

    def _position(self, start: int) -> Node | None:
        opening = self.index
        self.advance()
        if self.word == ")":
            self.seek(opening)
            return None
        needle = self._argument() if self.peek() == "=>" else self.value()
        if self.word != "IN":
            self.seek(opening)
            return None
        self.advance()
        source = self.value()
        self.expect(")")
        return self.place(exp.Anonymous(this="locate", expressions=[needle, source]), start)

    def _substring(self, start: int) -> Node | None:
        opening = self.index
        self.advance()
        if self.word == ")" or self.peek() == "=>":
            self.seek(opening)
            return None
        items = [self.value()]
        if self.word not in ("FROM", ","):
            self.seek(opening)
            return None
        worded = self.word == "FROM"
        self.advance()
        items.append(self.value())
        if self.word == "FOR":
            worded = True
        if not worded:
            self.seek(opening)
            return None
        if self.word in ("FOR", ","):
            self.advance()
            items.append(self.value())
        self.expect(")")
        return self.place(exp.Anonymous(this="substring", expressions=items), start)

    def _overlay(self, start: int) -> Node | None:
        opening = self.index
        self.advance()
        if self.word == ")" or self.peek() == "=>":
            self.seek(opening)
            return None
        items = [self.value()]
        if self.word != "PLACING":
            self.seek(opening)
            return None
        self.advance()
        items.append(self.value())
        self.expect("FROM")
        items.append(self.value())
        if self.match("FOR"):
            items.append(self.value())
        self.expect(")")
        return self.place(exp.Anonymous(this="overlay", expressions=items), start)

    PRIMARIES: ClassVar[dict[str, Callable[[ExpressionParser], Node | None]]] = {
        NUMBER: _number,
        STRING: _string_literal,
        "-": _negative_number,
        "(": _parenthesis,
        "*": _bare_star,
        "?": _placeholder,
        ":": _named_parameter,
        "CASE": _case,
        "CAST": _cast,
        "TRY_CAST": _cast,
        "INTERVAL": _interval,
        "NULL": _null,
        "TRUE": _boolean,
        "FALSE": _boolean,
    }
    SPECIAL: ClassVar[dict[str, Callable[[ExpressionParser, int], Node | None]]] = {
        "EXTRACT": _extract,
        "TRIM": _trim,
        "POSITION": _position,
        "SUBSTR": _substring,
        "SUBSTRING": _substring,
        "OVERLAY": _overlay,
    }
