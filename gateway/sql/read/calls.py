"""Function calls: arguments, the clauses behind them, windows, and the calls that Spark writes with words inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

from gateway.errors import unsupported
from gateway.sql.read.cursor import user_error
from gateway.sql.read.expressions import Node
from gateway.sql.read.primaries import KEYS, PrimaryParser
from gateway.sql.read.tokens import STRING
from gateway.sql.read.tree import end_of, mark, span_of, start_of

_DATETIME_UNITS = frozenset(
    {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"}
)
_UNIT_FUNCTIONS = frozenset(
    {"TIMESTAMPADD", "DATEADD", "DATE_ADD", "TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF", "TIMEDIFF"}
)
_NULLS_INSIDE = frozenset({"FIRST", "LAST", "ANY_VALUE"})


_BUILT_IN = (["builtin"], ["system", "builtin"])


def are_built_in(qualifier: list[exp.Identifier]) -> bool:
    """Whether names in front of a function's say that it is one of Spark's own."""
    return [part.name.lower() for part in qualifier] in _BUILT_IN


class CallParser(PrimaryParser):
    """Calls with everything that may stand behind them."""

    def call(self, name: list[exp.Identifier], start: int) -> Node:
        """A function call from its opening parenthesis on, with what may follow it."""
        if len(name) == 1 and not name[0].args.get("quoted"):
            upper = self.words[start]
            special = self.SPECIAL.get(upper)
            if special is not None and self.peek() not in (")", "DISTINCT", "ALL") and self.peek(2) != "=>":
                found = special(self, start)
                if found is not None:
                    return self._over(found, start)
        else:
            upper = ""
        if are_built_in(name[:-1]):
            name = name[-1:]
        arguments, wrapper = self.arguments(upper)
        if self.word == "USING" and self.peek() == STRING and upper in ("TRANSFORM", "MAP", "REDUCE"):
            raise unsupported(f"{upper} … USING", self.span(start))
        self._check_unit(upper, arguments, start)
        node: Node = exp.Anonymous(this=name[-1].name, expressions=arguments)
        self.place(node, start)
        if len(name) > 1:
            qualifier = exp.Column(**dict(zip(KEYS[5 - len(name) :], name[:-1], strict=True)))
            mark(qualifier, start_of(name[0]), end_of(name[-2]))
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
        unit = upper in _UNIT_FUNCTIONS and self.word in _DATETIME_UNITS and self.peek() == ","
        distinct = False
        if self.word in ("DISTINCT", "ALL") and self.peek() not in (")", ",", ".", "=>", "->", "("):
            distinct = self.word == "DISTINCT"
            self.advance()
        elif self.word == "DISTINCT" and self.peek() == "(":
            distinct = True
            self.advance()
        items: list[Node] = []
        while not items or self.match(","):
            if upper == "STRUCT":
                items.append(self.named_expression())
            else:
                items.append(self._argument())
        if upper in _NULLS_INSIDE and self.word in ("IGNORE", "RESPECT") and self.peek() == "NULLS":
            wrapper = exp.IgnoreNulls if self.word == "IGNORE" else exp.RespectNulls
            self.advance(2)
        if unit and len(items) == 3:  # beside one argument it is a column
            word = self.tokens[start]
            items[0] = mark(exp.Var(this=word.text), word.start, word.end)
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
            self.advance(2)
            parts = [self.expression()]
            while self.match(","):
                parts.append(self.expression())
            node.set("partition_by", parts)
            if cluster and self.word in ("ORDER", "SORT"):
                self.fail()
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
        self.advance()
        position = None
        if self.word in ("BOTH", "LEADING", "TRAILING") and self.peek() not in (")", ",", ".", "("):
            position = self.word
            self.advance()
        pattern = None
        if position is None or self.word != "FROM":
            at = self.index
            pattern = self.value()
            if self.word != "FROM":
                if position is not None:
                    self.fail()
                return self._plain(pattern, at, start)
        self.expect("FROM")
        source = self.value()
        self.expect(")")
        return self.place(exp.Trim(this=source, expression=pattern, position=position), start)

    def _position(self, start: int) -> Node | None:
        self.advance()
        at = self.index
        needle = self.value()
        if self.word != "IN":
            return self._plain(needle, at, start)
        self.advance()
        source = self.value()
        self.expect(")")
        return self.place(exp.Anonymous(this="locate", expressions=[needle, source]), start)

    def _substring(self, start: int) -> Node | None:
        self.advance()
        at = self.index
        text = self.value()
        if self.word != "FROM":
            return self._plain(text, at, start)
        self.advance()
        items = [text, self.value()]
        if self.match("FOR"):
            items.append(self.value())
        self.expect(")")
        return self.place(exp.Anonymous(this="substring", expressions=items), start)

    def _overlay(self, start: int) -> Node | None:
        self.advance()
        at = self.index
        text = self.value()
        if self.word != "PLACING":
            return self._plain(text, at, start)
        self.advance()
        items = [text, self.value()]
        self.expect("FROM")
        items.append(self.value())
        if self.match("FOR"):
            items.append(self.value())
        self.expect(")")
        return self.place(exp.Anonymous(this="overlay", expressions=items), start)

    def _plain(self, first: Node, at: int, start: int) -> Node:
        """The call at `start` after all a plain one: `first`, begun at `at`, is the value that its arguments begin with."""
        arguments = [self.expression_from(first, at)]
        while self.match(","):
            arguments.append(self._argument())
        self.expect(")")
        return self.place(exp.Anonymous(this=self.tokens[start].text, expressions=arguments), start)

    SPECIAL: ClassVar[dict[str, Callable[[CallParser, int], Node | None]]] = {
        "EXTRACT": _extract,
        "TRIM": _trim,
        "POSITION": _position,
        "SUBSTR": _substring,
        "SUBSTRING": _substring,
        "OVERLAY": _overlay,
    }
