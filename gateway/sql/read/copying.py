"""COPY INTO: files of a folder that become rows of a table."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from gateway.errors import Span, unsupported
from gateway.sql.read import allowed
from gateway.sql.read.command_nodes import CopyInto, Query
from gateway.sql.read.definitions import TableParser
from gateway.sql.read.tokens import END, QUOTED, STRING, span_of_token

_FORMATS = ("PARQUET", "CSV", "JSON")
_CLAUSES = ("VALIDATE", "WITH", "ENCRYPTION", "CREDENTIAL")


class CopyParser(TableParser):
    """Files into tables."""

    def _copy(self) -> CopyInto:
        self.advance()
        self.expect("INTO")
        if self.word == STRING:
            raise unsupported("COPY INTO a path", self.span(self.index))
        table = self._name()
        if self.word == "(" or self.word == "BY":
            raise unsupported("COPY INTO with a list of columns or BY POSITION", self.span(self.index))
        self.expect("FROM")
        query = None
        if self.word == "(":
            query, path, span = self._selected()
        else:
            at = self.index
            path = self.string()
            span = self.span(at)
        if self.word in _CLAUSES:
            raise unsupported(f"COPY INTO … {self.word}", self.span(self.index))
        self.expect("FILEFORMAT")
        self.expect("=")
        at = self.index
        kind = self.identifier().name.upper()
        if kind not in _FORMATS:
            raise unsupported(f"COPY INTO … FILEFORMAT = {kind}", self.span(at))
        files: tuple[str, ...] | None = None
        pattern: str | None = None
        format_options: tuple[tuple[str, str], ...] = ()
        copy_options: tuple[tuple[str, str], ...] = ()
        seen: set[str] = set()
        while self.word != END:
            if self.word in _CLAUSES:
                raise unsupported(f"COPY INTO … {self.word}", self.span(self.index))
            clause = "FILES or PATTERN" if self.word in ("FILES", "PATTERN") else self.word
            self._once(seen, clause)
            if self.match("FILES", "="):
                files = self._strings()
            elif self.match("PATTERN", "="):
                pattern = self.string()
            elif self.match("FORMAT_OPTIONS"):
                format_options = self._properties()
            elif self.match("COPY_OPTIONS"):
                copy_options = self._properties()
            else:
                self.fail()
        return CopyInto(table, path, span, kind, files, pattern, format_options, copy_options, query)

    def _selected(self) -> tuple[Query, str, Span]:
        """``(SELECT … FROM 'path')``: its query, in which the path is a relation, the path and its place."""
        start, depth = self.index, 0
        for at in range(start, len(self.words) - 1):
            depth += {"(": 1, ")": -1}.get(self.words[at], 0)
            if not depth:
                raise unsupported("COPY INTO … FROM a query that is not of a path", self.span(start))
            if depth == 1 and self.words[at] == "FROM" and self.words[at + 1] == STRING:
                break
        else:
            self.fail()
        self.seek(at + 1)
        path = self.string()
        if self.word != ")":
            raise unsupported("COPY INTO … FROM (SELECT … FROM 'path' …) with more behind it", self.span(self.index))
        place = self.tokens[at + 1]
        kinds = ((TokenType.VAR, "parquet"), (TokenType.DOT, "."), (TokenType.IDENTIFIER, path))
        relation = [Token(kind, text, start=place.start, end=place.end) for kind, text in kinds]
        self.tokens = [*self.tokens[: at + 1], *relation, *self.tokens[at + 2 :]]
        self.words = [*self.words[: at + 1], "PARQUET", ".", QUOTED, *self.words[at + 2 :]]
        self.seek(start + 1)
        tree = self.query()
        allowed.check(tree)
        span = self.span(start + 1)
        self.expect(")")
        return Query(tree, span, self.text[span.start : span.stop]), path, span_of_token(place)

    def _strings(self) -> tuple[str, ...]:
        self.expect("(")
        found = [self.string()]
        while self.match(","):
            found.append(self.string())
        self.expect(")")
        return tuple(found)
