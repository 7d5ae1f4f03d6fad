"""What the grammars of all commands share: names, patterns, the end of a statement, and how one is refused."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from gateway.errors import UserError, unsupported
from gateway.sql.read import allowed
from gateway.sql.read.command_nodes import Assignment, Name, Query
from gateway.sql.read.parse import QueryParser
from gateway.sql.read.tokens import END, STRING

SCHEMA_WORDS = frozenset({"SCHEMA", "DATABASE", "NAMESPACE"})
# Words that name what a statement works on: refusals say "ALTER TABLE", not "ALTER".
_WITH_OBJECT = frozenset(
    {
        *(
            "CREATE",
            "DROP",
            "ALTER",
            "SHOW",
            "DESCRIBE",
            "DESC",
            "COMMENT",
            "CACHE",
            "UNCACHE",
            "CLEAR",
            "REFRESH",
            "ANALYZE",
        ),
        *(
            "MERGE",
            "COPY",
            "TRUNCATE",
            "LOAD",
            "DELETE",
            "EXECUTE",
            "SET",
            "REPAIR",
            "MSCK",
            "REPLACE",
            "UNDROP",
            "START",
            "BEGIN",
        ),
        *("ADD", "LIST", "LOCK", "UNLOCK", "RESTORE"),
    }
)


class CommandRules(QueryParser):
    """The rules."""

    text: str = ""

    def _refuse(self, keywords: tuple[str, ...] = ()) -> NoReturn:
        """Refuse the statement by its first words."""
        words = [w for w in (keywords or tuple(self.words[:3])) if w[:1].isalpha()]
        if self.words[0] in ("WITH", "FROM"):
            raise unsupported(f"{self.words[0]} … before a change of data", self.span(0))
        if self.words[0] == "BEGIN" and self.words[1] != "TRANSACTION":
            raise unsupported("SQL scripting (BEGIN … END)", self.span(0))
        count = 2 if words and words[0] in _WITH_OBJECT else 1
        if count == 2 and words[1:2] in (["TEMPORARY"], ["TEMP"], ["CREATE"]):
            count = 3
        raise unsupported(" ".join(words[:count]), self.span(0))

    def _end(self) -> None:
        if self.word != END:
            self.fail()

    def _name(self, limit: int = 3) -> Name:
        start = self.index
        if self.word == "IDENTIFIER" and self.peek() == "(":
            raise unsupported("IDENTIFIER(…)", self.span(start))
        parts = tuple(part.name for part in self.dotted())
        if len(parts) > limit:
            self.fail(index=start + 2 * limit)
        return Name(parts, self.span(start))

    def _checked_expression(self) -> exp.Expr:
        tree: exp.Expr = self.expression()
        allowed.check(tree)
        return tree

    def _partition(self) -> tuple[Assignment, ...]:
        """``PARTITION (a = constant, b)``."""
        self.advance()
        self.expect("(")
        found: list[Assignment] = []
        while not found or self.match(","):
            name = self._name(1)
            found.append(Assignment(name, self._checked_expression() if self.match("=") else None))
        self.expect(")")
        return tuple(found)

    def _final_query(self) -> Query:
        """The query that is the rest of the statement."""
        start = self.index
        tree = self.query()
        self._end()
        allowed.check(tree)
        span = self.span(start)
        return Query(tree, span, self.text[span.start : span.stop])

    def _pattern(self) -> str | None:
        """``[LIKE] 'pattern'``."""
        if self.match("LIKE") or self.word == STRING:
            return self.string()
        return None

    def _in_name(self) -> Name | None:
        """``IN | FROM name``."""
        return self._name() if self.match("IN") or self.match("FROM") else None

    def _if_not_exists(self) -> bool:
        return self.match("IF", "NOT", "EXISTS")

    def _once(self, seen: set[str], clause: str) -> None:
        if clause in seen:
            message = f"Found duplicate clauses: {clause}. Please, remove one of them."
            raise UserError("DUPLICATE_CLAUSES", message, span=self.span(self.index))
        seen.add(clause)
