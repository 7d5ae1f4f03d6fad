"""COPY INTO: files of a folder that become rows of a table."""

from __future__ import annotations

from gateway.errors import unsupported
from gateway.sql.read.command_nodes import CopyInto
from gateway.sql.read.definitions import TableParser
from gateway.sql.read.tokens import END, STRING

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
        if self.word == "(":
            raise unsupported("COPY INTO … FROM (SELECT …)", self.span(self.index))
        at = self.index
        path = self.string()
        span = self.span(at)
        if self.word in _CLAUSES:
            raise unsupported(f"COPY INTO … {self.word}", self.span(self.index))
        self.expect("FILEFORMAT")
        self.expect("=")
        at = self.index
        kind = self.identifier().name.upper()
        if kind != "PARQUET":
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
        return CopyInto(table, path, span, files, pattern, format_options, copy_options)

    def _strings(self) -> tuple[str, ...]:
        self.expect("(")
        found = [self.string()]
        while self.match(","):
            found.append(self.string())
        self.expect(")")
        return tuple(found)
