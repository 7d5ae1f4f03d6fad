"""What a statement is, known from its tokens before any parser runs: kind, words, parameter markers, limits.

One tokenisation per statement. Several statements in a text are split on `;` outside of brackets and scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from sqlglot.tokenizer_core import Token, TokenType

from gateway.errors import ResourceError, Span, UserError
from gateway.sql.read.cursor import DEFAULT_LIMITS, Limits
from gateway.sql.read.tokens import END, QUOTED, STRING, scan, span_of_token, syntax_error


class Kind(StrEnum):
    """What a statement does, by its first words."""

    QUERY = "query"
    DML = "dml"
    DDL = "ddl"
    METADATA = "metadata"
    SESSION = "session"
    SCRIPT = "script"
    RIGHTS = "rights"


_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "MAP", "REDUCE"), Kind.QUERY),
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "TRUNCATE", "LOAD"), Kind.DML),
    **dict.fromkeys(
        (
            *(
                "CREATE",
                "REPLACE",
                "DROP",
                "UNDROP",
                "ALTER",
                "COMMENT",
                "MSCK",
                "REPAIR",
                "FSCK",
                "OPTIMIZE",
                "REORG",
                "VACUUM",
            ),
            *("RESTORE", "CONVERT", "CLONE", "ANALYZE", "REFRESH", "CACHE", "UNCACHE", "CLEAR", "SYNC", "GENERATE"),
            *("ADD", "EXPORT", "IMPORT", "LOCK", "UNLOCK", "DFS"),
        ),
        Kind.DDL,
    ),
    **dict.fromkeys(("SHOW", "DESCRIBE", "DESC", "EXPLAIN", "LIST"), Kind.METADATA),
    **dict.fromkeys(
        (*("USE", "SET", "RESET", "DECLARE", "EXECUTE", "CALL", "START", "COMMIT", "ROLLBACK"), "UNSET", "PREPARE"),
        Kind.SESSION,
    ),
    **dict.fromkeys(("BEGIN",), Kind.SCRIPT),
    **dict.fromkeys(("GRANT", "REVOKE", "DENY"), Kind.RIGHTS),
}
# Databricks' own, with files of the client; always with a path.
_STAGING = frozenset({"PUT", "GET", "REMOVE"})
_THINGS = frozenset({"TABLE", "VIEW", "FUNCTION", "VARIABLE", "VAR", "SCHEMA", "HISTORY", "DETAIL", "PARTITIONS"})
# END of these is not that of a BEGIN or CASE.
_BLOCKS_OF_THEIR_OWN = frozenset({"IF", "WHILE", "LOOP", "REPEAT", "FOR"})
CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_DEEPER = frozenset({"(", "[", "{", "CASE"})
_SHALLOWER = frozenset({")", "]", "}", "END"})
# What a ':' may follow when it opens a parameter marker although the name is glued to it.
_OPERAND_ENDS = frozenset({")", "]", "'", "0", QUOTED})


@dataclass(frozen=True, slots=True)
class Marker:
    """A parameter marker: `name` None for ``?``."""

    name: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: `tokens` and `words` (see `tokens.scan`) are parallel and end with the end token.

    `keywords` are its first words (at most three, upper case). `text` is the whole text that was sent: spans are offsets in it.
    `error` is set only for SET, whose text need not be made of tokens.
    """

    kind: Kind
    keywords: tuple[str, ...]
    tokens: list[Token] = field(repr=False)
    words: list[str] = field(repr=False)
    text: str
    limits: Limits = DEFAULT_LIMITS
    error: UserError | None = None

    @property
    def markers(self) -> tuple[Marker, ...]:
        """Parameter markers in order, as far as tokens alone can tell (``a:b`` is none)."""
        found: list[Marker] = []
        for i, word in enumerate(self.words):
            if word == "?":
                found.append(Marker(None, span_of_token(self.tokens[i])))
            elif word == ":" and i + 1 < len(self.words):
                name = self.tokens[i + 1]
                before = self.tokens[i - 1] if i else None
                glued = before is not None and before.end + 1 == self.tokens[i].start
                operand = i > 0 and (self.words[i - 1] in _OPERAND_ENDS or self.words[i - 1][:1].isalpha())
                if name.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and not (glued and operand):
                    found.append(Marker(name.text, Span(self.tokens[i].start, name.end + 1)))
        return tuple(found)

    @property
    def span(self) -> Span:
        """From the first to the last token."""
        last = self.tokens[-2] if len(self.tokens) > 1 else self.tokens[-1]
        return Span(self.tokens[0].start, last.end + 1)


def read_statement(text: str, limits: Limits = DEFAULT_LIMITS) -> Statement:
    """The one statement of `text`; trailing semicolons are fine, a second statement is not.

    Raises:
        UserError: PARSE_EMPTY_STATEMENT, PARSE_SYNTAX_ERROR, UNCLOSED_BRACKETED_COMMENT.
        ResourceError: STATEMENT_TOO_LARGE, STATEMENT_TOO_COMPLEX.
    """
    tokens, words, error = _scan(text, limits)
    if words[0] == END and error is None:
        raise UserError("PARSE_EMPTY_STATEMENT", "Syntax error, unexpected empty statement.")
    if error is not None and words[0] != "SET":
        raise error
    if words[0] == "BEGIN" and words[1] != "TRANSACTION":
        return _statement(text, tokens, words, limits, None)
    stop = len(words) - 1
    while stop > 0 and words[stop - 1] == ";":
        stop -= 1
    if stop < len(words) - 1:
        tokens = [*tokens[:stop], tokens[-1]]
        words = [*words[:stop], END]
    if words[0] == END:
        raise UserError("PARSE_EMPTY_STATEMENT", "Syntax error, unexpected empty statement.", span=Span(0, len(text)))
    if ";" in words and error is None:
        at = words.index(";")
        after = tokens[at + 1 if at else 0]
        raise syntax_error(after.text, span_of_token(after), "only one statement is allowed in a request")
    return _statement(text, tokens, words, limits, error)


def statement_spans(text: str) -> Iterator[Span]:
    """Where the statements of `text` are, split on `;`; a script (``BEGIN … END``) keeps its own semicolons.

    What stops the scan is raised after the statements before it.
    """
    tokens, words, error = scan(text)
    if error is not None and words[0] == END:
        raise error
    start = 0
    while start < len(words) - 1:
        if words[start] == ";":
            start += 1
            continue
        stop = _statement_end(words, start)
        yield Span(tokens[start].start, tokens[stop - 1].end + 1)
        start = stop
    if error is not None:
        raise error


def _statement_end(words: list[str], start: int) -> int:
    """Index of the `;` or end behind the statement, or script, that begins at `start`."""
    at = start
    if words[start] == "BEGIN" and words[start + 1] != "TRANSACTION":
        depth = 0
        while words[at] != END:
            if words[at] in ("BEGIN", "CASE"):
                depth += 1
            elif words[at] == "END":
                depth -= words[at + 1] not in _BLOCKS_OF_THEIR_OWN
                at += words[at + 1] == "CASE"
            if not depth:
                break
            at += 1
    return words.index(";", at) if ";" in words[at:] else len(words) - 1


def _scan(text: str, limits: Limits) -> tuple[list[Token], list[str], UserError | None]:
    if len(text) > limits.text:
        message = f"The statement has {len(text)} characters, the limit is {limits.text}."
        raise ResourceError("STATEMENT_TOO_LARGE", message)
    tokens, words, error = scan(text, limits.tokens)
    if len(text) > limits.digits:
        for token in tokens:
            if token.token_type is TokenType.NUMBER and len(token.text) > limits.digits:
                message = f"A number has {len(token.text)} digits, the limit is {limits.digits}."
                raise ResourceError("STATEMENT_TOO_COMPLEX", message, span=span_of_token(token))
    if words.count("->") > limits.chain:
        raise ResourceError("STATEMENT_TOO_COMPLEX", f"The statement has more than {limits.chain} lambda functions.")
    depth = 0
    limit = limits.depth
    for index, word in enumerate(words):
        if word in _DEEPER:
            depth += 1
            if depth > limit:
                message = f"The statement is nested deeper than {limit} levels."
                raise ResourceError("STATEMENT_TOO_COMPLEX", message, span=span_of_token(tokens[index]))
        elif word in _SHALLOWER and depth:
            depth -= 1
    return tokens, words, error


def _statement(text: str, tokens: list[Token], words: list[str], limits: Limits, error: UserError | None) -> Statement:
    return Statement(kind_of(words, tokens), keywords_of(words), tokens, words, text, limits, error)


def verb_of(statement: Statement) -> str:
    """What a statement does, and to what kind of thing, as statement types are written: CREATE_TABLE, OPTIMIZE."""
    words = statement.words
    at = 3 if words[1:3] == ["OR", "REPLACE"] else 1
    at += words[at] in ("TEMPORARY", "TEMP")
    return f"{words[0]}_{words[at]}" if words[at] in _THINGS else words[0]


def keywords_of(words: list[str]) -> tuple[str, ...]:
    """The first words, at most three, up to the first token that is no word."""
    found: list[str] = []
    for word in words[:3]:
        if not word[:1].isalpha():
            break
        found.append(word)
    return tuple(found)


def kind_of(words: list[str], tokens: list[Token]) -> Kind:
    """The kind of the statement that starts at the first of `words`; PARSE_SYNTAX_ERROR if no statement starts so."""
    index = 0
    while words[index] == "(":
        index += 1
    first = words[index]
    if index and first not in ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"):
        raise syntax_error(tokens[index].text or None, span_of_token(tokens[index]))
    kind = _KINDS.get(first)
    if first in _STAGING and words[1] == STRING and not index:
        kind = Kind.DML
    if kind is None:
        raise syntax_error(tokens[index].text or None, span_of_token(tokens[index]))
    if first == "BEGIN" and words[1] == "TRANSACTION":
        return Kind.SESSION
    start = words[_after_ctes(words) :] if first == "WITH" else words
    if index == 0 and ((start[0] == "FROM" and _inserts(start)) or (first == "WITH" and start[0] in CHANGES)):
        return Kind.DML
    return kind


def _after_ctes(words: list[str]) -> int:
    """Index behind the CTE list of a WITH at the start; of the end if the list is not well formed."""
    index = 1
    if words[index] == "RECURSIVE" and words[index + 1] not in ("AS", "("):
        index += 1
    while index < len(words) - 1:
        while words[index] not in ("(", END):
            index += 1
        index = _behind(words, index)
        if words[index] == "AS" or words[index] == "(" or words[index] == "MAX":
            continue
        if words[index] != ",":
            return index
        index += 1
    return len(words) - 1


def _behind(words: list[str], index: int) -> int:
    """Index behind the bracket that opens at `index`."""
    depth = 0
    while words[index] != END:
        if words[index] == "(":
            depth += 1
        elif words[index] == ")":
            depth -= 1
            if not depth:
                return index + 1
        index += 1
    return index


def _inserts(words: list[str]) -> bool:
    """Whether INSERT stands outside of brackets in a statement that starts with FROM."""
    depth = 0
    for word in words:
        if word == "(":
            depth += 1
        elif word == ")":
            depth -= 1
        elif word == "INSERT" and depth == 0:
            return True
    return False
