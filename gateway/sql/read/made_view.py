"""CREATE VIEW, ALTER VIEW and CREATE FUNCTION by their tokens, for what the own parser does not know."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import Span, UserError, unsupported
from gateway.sql.read.statement import Statement
from gateway.sql.read.tokens import END, STRING, span_of_token
from gateway.sqltypes import quote_part

_TEMPORARY = ("TEMPORARY", "TEMP")
_CLAUSES = ("AS", "COMMENT", "TBLPROPERTIES", "WITH", "DEFAULT")  # what may follow a clause of CREATE VIEW
# How a view's columns follow those of its query: types alone, or all of them. Without: casts to those that it was made with.
TYPE_EVOLUTION, EVOLUTION = "TYPE EVOLUTION", "EVOLUTION"


@dataclass(frozen=True, slots=True)
class MadeView:
    """The parts of the statement; `query` is the text behind AS, which starts at `start`.

    `columns` are (name, comment). `alters` tells ALTER VIEW, which keeps all but the query. `collation` is the default one of
    its text, `mode` what stands behind WITH SCHEMA; both "" if nothing is said of them.
    """

    name: tuple[str, ...]
    span: Span
    temporary: bool
    columns: tuple[tuple[str, str | None], ...]
    comment: str | None
    query: str
    start: int
    replaces: bool = False
    if_not_exists: bool = False
    alters: bool = False
    properties: tuple[tuple[str, str], ...] = ()
    collation: str = ""
    mode: str = ""


@dataclass(frozen=True, slots=True)
class MadeFunction:
    """CREATE FUNCTION: `text` is what stands behind the name, from `start` on."""

    name: tuple[str, ...]
    span: Span
    text: str
    start: int
    replaces: bool
    if_not_exists: bool


def view_of(statement: Statement) -> MadeView | None:
    """The view that a statement makes or alters; None for other statements.

    Raises UnsupportedError for USING, WITH SCHEMA BINDING, and comments of a temporary view's columns; UserError for a clause
    that is there twice.
    """
    words, tokens = statement.words, statement.tokens
    if words[:2] == ["ALTER", "VIEW"]:
        name, span, at = _name(statement, 2)
        if words[at] != "AS" or words[at + 1] == END:
            raise unsupported(f"ALTER VIEW … {tokens[at].text}".rstrip(), span_of_token(tokens[0]))
        return MadeView(name, span, False, (), None, *_rest(statement, at + 1), replaces=True, alters=True)
    at = 3 if words[1:3] == ["OR", "REPLACE"] else 1
    temporary = words[at] in _TEMPORARY
    at += temporary
    if words[0] != "CREATE" or words[at] != "VIEW":
        return None
    at += 1
    if_not_exists = not temporary and words[at : at + 3] == ["IF", "NOT", "EXISTS"]
    name, span, at = _name(statement, at + 3 * if_not_exists)
    columns, at = _columns(statement, at, temporary) if words[at] == "(" else ((), at)
    said, at = _said(statement, at, temporary)
    if words[at] != "AS" or words[at + 1] == END:
        what = "TEMPORARY VIEW" if temporary else "VIEW"
        raise unsupported(f"CREATE {what} with {tokens[at].text or 'no query'}", span_of_token(tokens[at]))
    return MadeView(
        name,
        span,
        temporary,
        columns,
        said.comment,
        *_rest(statement, at + 1),
        replaces=words[1] == "OR",
        if_not_exists=if_not_exists,
        properties=said.properties,
        collation=said.collation,
        mode=said.mode,
    )


def _columns(statement: Statement, at: int, temporary: bool) -> tuple[tuple[tuple[str, str | None], ...], int]:
    """The columns from their bracket on, and the token behind it."""
    words, tokens = statement.words, statement.tokens
    columns: list[tuple[str, str | None]] = []
    at += 1
    while words[at] != ")":
        column, comment = str(tokens[at].text), None
        at += 1
        if words[at] == "COMMENT" and words[at + 1] == STRING and not temporary:
            comment, at = str(tokens[at + 1].text), at + 2
        if words[at] not in (",", ")"):
            raise unsupported("a column of a view with more than its name", span_of_token(tokens[at]))
        columns.append((column, comment))
        at += words[at] == ","
    return tuple(columns), at + 1


@dataclass(slots=True)
class _Said:
    """What the clauses before AS say."""

    comment: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    collation: str = ""
    mode: str = ""


def _said(statement: Statement, at: int, temporary: bool) -> tuple[_Said, int]:
    """The clauses from a token on, and the token where they end: AS, or what is not known."""
    words, tokens = statement.words, statement.tokens
    said = _Said()
    seen: set[str] = set()
    while words[at] != "AS":
        clause = "SCHEMA" if words[at] == "WITH" else words[at]
        if clause in seen:
            text = f"Found duplicate clauses: {clause}. Please, remove one of them."
            raise UserError("DUPLICATE_CLAUSES", text, span=span_of_token(tokens[at]))
        seen.add(clause)
        if words[at] == "COMMENT" and words[at + 1] == STRING:
            said.comment, at = str(tokens[at + 1].text), at + 2
        elif words[at] == "TBLPROPERTIES" and words[at + 1] == "(" and not temporary:
            said.properties, at = _properties(statement, at + 2)
        elif words[at : at + 2] == ["DEFAULT", "COLLATION"] and words[at + 3] in _CLAUSES:
            said.collation, at = str(tokens[at + 2].text), at + 3
        elif words[at : at + 3] == ["WITH", "SCHEMA", "COMPENSATION"] and not temporary:
            at += 3
        elif words[at : at + 3] == ["WITH", "SCHEMA", "EVOLUTION"] and not temporary:
            said.mode, at = EVOLUTION, at + 3
        elif words[at : at + 4] == ["WITH", "SCHEMA", "TYPE", "EVOLUTION"] and not temporary:
            said.mode, at = TYPE_EVOLUTION, at + 4
        else:
            break
    return said, at


def clauses(collation: str, mode: str) -> str:
    """What Spark is told of them, with a space behind it."""
    said = f"DEFAULT COLLATION {quote_part(collation)} " if collation else ""
    return said + (f"WITH SCHEMA {mode} " if mode else "")


def function_of(statement: Statement) -> MadeFunction | None:
    """The lasting function that a statement makes; None for other statements."""
    words = statement.words
    at = 3 if words[1:3] == ["OR", "REPLACE"] else 1
    if words[0] != "CREATE" or words[at] != "FUNCTION":
        return None
    at += 1
    if_not_exists = words[at : at + 3] == ["IF", "NOT", "EXISTS"]
    name, span, at = _name(statement, at + 3 * if_not_exists)
    text, start = _rest(statement, at)
    return MadeFunction(name, span, text, start, words[1] == "OR", if_not_exists)


def _name(statement: Statement, at: int) -> tuple[tuple[str, ...], Span, int]:
    """The dotted name at a token, its place, and the token behind it."""
    tokens, words = statement.tokens, statement.words
    first = at
    while words[at + 1] == ".":
        at += 2
    parts = tuple(str(t.text) for t in tokens[first : at + 1 : 2])
    return parts, Span(tokens[first].start, tokens[at].end + 1), at + 1


def _rest(statement: Statement, at: int) -> tuple[str, int]:
    start = statement.tokens[at].start
    return statement.text[start : statement.span.stop], start


def _properties(statement: Statement, at: int) -> tuple[tuple[tuple[str, str], ...], int]:
    """Keys and values from a token on, and the token behind their bracket."""
    words, tokens = statement.words, statement.tokens
    found = []
    while words[at] not in (")", END):
        start = at
        while at == start or words[at] == "." or words[at - 1] == ".":
            at += 1
        key = "".join(str(t.text) for t in tokens[start:at])
        at += words[at] == "="
        value = str(tokens[at].text)
        found.append((key, value if words[at] == STRING else value.lower()))
        at += 1
        if words[at] not in (",", ")"):
            raise unsupported("a property of a view that is no literal", span_of_token(tokens[at]))
        at += words[at] == ","
    return tuple(found), at + 1
