"""Primary expressions: literals, names, stars, CASE, CAST, lambdas, parentheses, and named expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

from gateway.errors import UnsupportedError, unsupported
from gateway.sql.read.cursor import user_error
from gateway.sql.read.datatypes import data_type
from gateway.sql.read.expressions import AFTER_QUERY, ExpressionParser, Node
from gateway.sql.read.tokens import END, NUMBER, QUOTED, STRING
from gateway.sql.read.tree import IntervalLiteral, TypedLiteral, end_of, mark, start_of

_TYPED = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X", "INTERVAL"})
# Words that are an operator where an operand is expected, never a column.
_NOT_AN_OPERAND = frozenset({"AND", "OR", "DIV", "THEN", "WHEN", "AS", "ON", "USING", "BY", "JOIN", "NOT", "IN", "IS"})
# Clauses that a forgotten operand leaves here; Spark takes these words for columns and fails later, less clearly.
_CLAUSE_WORDS = frozenset({"FROM", "WHERE", "GROUP", "ORDER"})
KEYS = ("catalog", "db", "table", "this")

_INTERVAL_UNITS: dict[str, str] = {}
for _unit in ("NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"):
    _INTERVAL_UNITS[_unit] = _INTERVAL_UNITS[_unit + "S"] = _unit
_TO_UNITS = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR"})


class PrimaryParser(ExpressionParser):
    """What an operand starts with; `call` is given by the subclass.

    With `before_query` a query in brackets that follows a name is no argument of a function: it stands behind a condition.
    """

    before_query = False

    def call(self, name: list[exp.Identifier], start: int) -> Node:
        """A function call from its opening parenthesis on."""
        raise NotImplementedError

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
        if follower == "(" and not (self.before_query and self.query_at(1)):
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
            mark(column, start_of(first), end_of(first))
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
        if len(parts) > self.limits.depth:
            self.too_complex("names in a row", self.limits.depth)
        if self.word == "(" and not (self.before_query and self.query_at(0)):
            return self.call(parts, start)
        head = parts[:4]
        node: Node = exp.Column(**dict(zip(KEYS[4 - len(head) :], head, strict=True)))
        self.place(node, start)
        for extra in parts[4:]:
            node = self.place(exp.Dot(this=node, expression=extra), start)
        return node

    def _star(self, start: int, qualifier: list[exp.Identifier]) -> Node:
        star = exp.Star()
        if self.word == "EXCEPT" and self.peek() == "(" and not self.query_at(2):
            self.advance(2)
            columns: list[Node] = []
            while not columns or self.match(","):
                at = self.index
                parts = self.dotted()
                if len(parts) > 4:
                    raise unsupported("EXCEPT of a nested field", self.span(at))
                columns.append(self.place(exp.Column(**dict(zip(KEYS[4 - len(parts) :], parts, strict=True))), at))
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
        mark(node, token.start, token.end)
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
            raise UnsupportedError("UNSUPPORTED_TYPED_LITERAL", message, span=self.span(start))
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
        return self.place(exp.Placeholder(this=self.parameter_name().name), start)

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
        names = self.names() if self.word == "(" else [self.identifier()]
        self.expect("->")
        return self.place(exp.Lambda(this=self.expression(), expressions=names), start)

    def _parenthesis(self) -> Node:
        start = self.index
        if self._lambda_ahead():
            return self._lambda()
        if self.query_at(1) and self.peek() != "(":
            self.advance()
            return self.place(exp.Subquery(this=self.query_and_paren()), start)
        self.advance()
        items = [self.named_expression()]
        if self.word == ",":
            while self.match(","):
                items.append(self.named_expression())
            self.expect(")")
            return self.place(exp.Tuple(expressions=items), start)
        only = items[0]
        if isinstance(only, exp.Subquery) and self.word in AFTER_QUERY:
            return self.place(exp.Subquery(this=self.query_and_paren(only)), start)
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

    PRIMARIES: ClassVar[dict[str, Callable[[PrimaryParser], Node | None]]] = {
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
