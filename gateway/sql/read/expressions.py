"""Expressions of Spark's grammar (SqlBaseParser.g4) as sqlglot nodes; `parse.py` describes the tree.

Strategy: boolean levels (OR, AND, NOT, one predicate) are methods, everything between comparison and unary is one
precedence-climbing loop, primaries are found by their first word. A rule either consumes tokens or raises.
"""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

from gateway.errors import unsupported
from gateway.sql.read.cursor import Cursor, user_error
from gateway.sql.read.datatypes import data_type
from gateway.sql.read.tokens import END, NUMBER, STRING
from gateway.sql.read.tree import Positive, UnsignedRightShift, end_of, mark, start_of

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
# Characters in names of ``value:path`` that mean something else in a path of variant_get.
_ODD = frozenset(".'\"?[]\\`\t\n\r")
_QUERY = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})
SET_OPERATORS = frozenset({"UNION", "EXCEPT", "MINUS", "SETMINUS", "INTERSECT"})
AFTER_QUERY = SET_OPERATORS | {"ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW"}


def balanced(kind: type[B], terms: list[Node]) -> B:
    """A tree of `terms` under one associative operator, halved as Spark halves long chains (its names show it)."""

    def build(low: int, high: int) -> Node:
        if low == high:
            return terms[low]
        middle = low if high - low == 1 else low + (high - low) // 2
        node = kind(this=build(low, middle), expression=build(middle + 1, high))
        return mark(node, start_of(terms[low]), end_of(terms[high]))

    found = build(0, len(terms) - 1)
    assert isinstance(found, kind)
    return found


_ENDS = ("order", "limit", "offset")  # what only a query has behind it


class ExpressionParser(Cursor):
    """Recursive descent over one statement's tokens."""

    def query(self, first: Node | None = None) -> Node:
        """A query; given by the subclass. `first` is an operand that was parsed already."""
        raise NotImplementedError

    def _primary(self) -> Node:
        """An operand without operators; given by the subclass."""
        raise NotImplementedError

    def _typed_literal(self) -> Node:
        """A word and the text behind it; given by the subclass."""
        raise NotImplementedError

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
        if self.word == "EXISTS" and self.peek() == "(" and self.query_at(2):
            at = self.index
            self.advance(2)
            query = self.query_and_paren()
            node: Node = self.place(exp.Exists(this=query), at)
        else:
            node = self._predicate()
        for index in range(start + count - 1, start - 1, -1):
            node = self.place(exp.Not(this=node), index)
        return node

    def _predicate(self) -> Node:
        start = self.index
        return self._predicated(self.value(), start)

    def expression_from(self, left: Node, start: int) -> Node:
        """The expression that goes on behind the value `left`, which began at token `start`."""
        node = self._predicated(left, start)
        terms = [node]
        while self.match("AND"):
            terms.append(self._negation())
        node = balanced(exp.And, terms) if len(terms) > 1 else node
        terms = [node]
        while self.match("OR"):
            terms.append(self._conjunction())
        return balanced(exp.Or, terms) if len(terms) > 1 else node

    def _predicated(self, left: Node, start: int) -> Node:
        """`left` with the one predicate that may stand behind a value."""
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

    def _lists_literals(self) -> bool:
        """Whether a word and a text follow, and until the bracket nothing but more literals."""
        if self.peek() != STRING:
            return False
        at = 2
        while self.peek(at) == "," and self.peek(at + 1) in (STRING, NUMBER):
            at += 2
        return self.peek(at) == ")"

    def _in(self, left: Node) -> exp.Expression:
        self.expect("(")
        if self.word == ")":
            message = "Invalid SQL syntax: IN predicate requires at least one value."
            raise user_error("INVALID_SQL_SYNTAX.EMPTY_IN_PREDICATE", message, self.span(self.index))
        if self.word in ("SELECT", "VALUES") and self._lists_literals():
            self._typed_literal()  # Spark's grammar tries expressions first
        if self.word != "(" and self.query_at(0):
            at, word, follower = self.index, self.word, self.peek()
            asks = follower == "(" and self._is_only_query_at(2)
            query = self.query_and_paren()
            if not asks and _is_list(query, word, follower):  # as Spark's grammar reads it
                if follower == "(":
                    raise user_error("UNRESOLVED_ROUTINE", f"Cannot resolve routine `{word}`.", self.span(at))
                message = f"A column, variable, or function parameter with name `{word}` cannot be resolved."
                raise user_error("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", message, self.span(at))
            return exp.In(this=left, query=query)
        items = [self.expression()]
        if isinstance(items[0], exp.Subquery) and self.word in AFTER_QUERY:
            return exp.In(this=left, query=self.query_and_paren(items[0]))
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
            if self.query_at(0):
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
            self.place(left, start)
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
        run = 0
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
            elif word == ":" and (self.is_name(1) or self.peek() == "["):
                self.advance()
                node = exp.JSONExtract(this=node, expression=exp.Literal.string(self._path()))
            elif word == "COLLATE" and self.is_name(1):
                self.advance()
                node = exp.Collate(this=node, expression=self.identifier())
            else:
                return node
            self.place(node, start)
            run += 1
            if run > self.limits.chain:
                self.too_complex("accesses in a row", self.limits.chain)

    def _path(self) -> str:
        """What stands behind ``value:``, as a path of variant_get; brackets that are no part of one are left."""
        found = "$" if self.word == "[" else f"$.{self._field()}"
        while True:
            if self.word == "." and self.is_name(1):
                self.advance()
                found += f".{self._field()}"
            elif self.word == "[" and self.peek(2) == "]" and self.peek() in (STRING, NUMBER):
                key = self.tokens[self.index + 1].text
                if self.peek() == STRING and _is_odd(key.replace(".", "")):
                    raise unsupported(f"the field {key!r} behind ':'", self.span(self.index + 1))
                found += f"['{key}']" if self.peek() == STRING else f"[{key}]"
                self.advance(3)
            elif found == "$" or (self.word == "[" and self.peek() == "*"):
                raise unsupported("such brackets behind ':'", self.span(self.index))
            else:
                return found

    def _field(self) -> str:
        name = str(self.identifier().name)
        if _is_odd(name):
            raise unsupported(f"the field `{name}` behind ':'", self.span(self.index - 1))
        return name

    def query_at(self, distance: int) -> bool:
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

    def _is_only_query_at(self, distance: int) -> bool:
        """Whether a query starts there that can be no expression: behind its word stands neither an operator nor a bracket."""
        if self.peek(distance) == "(" or not self.query_at(distance):
            return False
        return self.peek(distance + 1) == NUMBER or self.is_name(distance + 1)

    def query_and_paren(self, first: Node | None = None) -> Node:
        found = self.query(first)
        self.expect(")")
        return found


def _is_list(query: Node, word: str, follower: str) -> bool:
    """Whether a query behind IN can be read as expressions too: a call of `word`, or a sum that begins with it."""
    if isinstance(query, exp.Values):
        return word == "VALUES" and follower == "(" and not any(query.args.get(k) for k in ("alias", *_ENDS))
    if not isinstance(query, exp.Select) or word != "SELECT" or follower not in ("(", "-", "+"):
        return False
    told = {name for name, value in query.args.items() if value}
    return told == {"expressions"} and not any(isinstance(e, (exp.Alias, exp.Aliases)) for e in query.expressions)


def _is_odd(name: str) -> bool:
    """Whether a name of ``value:path`` may mean something else in a path."""
    return name != name.strip() or not _ODD.isdisjoint(name)
