"""CREATE TEMPORARY VIEW by its tokens, for a query that the own parser does not know."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import unsupported
from gateway.sql.statement import Statement
from gateway.sql.tokens import END, STRING, span_of_token


@dataclass(frozen=True, slots=True)
class MadeView:
    """The parts of the statement; `query` is the text behind AS."""

    name: str
    columns: tuple[str, ...]
    comment: str | None
    query: str
    replaces: bool


def view_of(statement: Statement) -> MadeView | None:
    """The view that a statement makes; None for other statements.

    Raises UnsupportedError for USING and for comments of columns.
    """
    words, tokens = statement.words, statement.tokens
    at = 3 if words[1:3] == ["OR", "REPLACE"] else 1
    if words[0] != "CREATE" or words[at] not in ("TEMPORARY", "TEMP") or words[at + 1] != "VIEW":
        return None
    name = at + 2
    at = name + 1
    columns: list[str] = []
    if words[at] == "(":
        at += 1
        while words[at] != ")":
            columns.append(str(tokens[at].text))
            if words[at + 1] not in (",", ")"):
                raise unsupported("a column of a view with more than its name", span_of_token(tokens[at + 1]))
            at += 2 if words[at + 1] == "," else 1
        at += 1
    comment = None
    if words[at] == "COMMENT" and words[at + 1] == STRING:
        comment, at = str(tokens[at + 1].text), at + 2
    if words[at] != "AS" or words[at + 1] == END:
        raise unsupported(f"CREATE TEMPORARY VIEW with {tokens[at].text or 'no query'}", span_of_token(tokens[at]))
    query = statement.text[tokens[at + 1].start : statement.span.stop]
    return MadeView(str(tokens[name].text), tuple(columns), comment, query, words[1] == "OR")
