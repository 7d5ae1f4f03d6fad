"""CREATE and DROP of schemas and views, DROP of tables and functions; volumes."""

from __future__ import annotations

from gateway.errors import UnsupportedError, unsupported
from gateway.sql.read.command_nodes import (
    Command,
    CreateSchema,
    CreateView,
    CreateVolume,
    DropFunction,
    DropSchema,
    DropTable,
    DropView,
    DropVolume,
    ViewColumn,
)
from gateway.sql.read.command_rules import SCHEMA_WORDS
from gateway.sql.read.definitions import TableParser
from gateway.sql.read.tokens import END


class DefinitionParser(TableParser):
    """The definitions."""

    def _create(self) -> Command:
        self.advance()
        replace = self.match("OR", "REPLACE")
        word = self.word
        if word == "GLOBAL":
            raise unsupported("CREATE GLOBAL TEMPORARY VIEW", self.span(0))
        if word in ("TEMP", "TEMPORARY") and self.peek() == "VIEW":
            self.advance(2)
            return self._create_view(replace, temporary=True)
        if word == "VIEW":
            self.advance()
            return self._create_view(replace, temporary=False)
        if word in SCHEMA_WORDS and not replace:
            self.advance()
            return self._create_schema()
        if word == "TABLE":
            self.advance()
            return self._create_table(replace)
        if word == "VOLUME" and not replace:
            self.advance()
            return self._create_volume()
        what = " ".join(w for w in self.words[self.index : self.index + 2] if w[:1].isalpha())
        if not what:
            self.fail()
        raise unsupported(
            f"CREATE {what if word in ('TEMP', 'TEMPORARY', 'EXTERNAL', 'MATERIALIZED') else word}", self.span(0)
        )

    def _create_view(self, replace: bool, temporary: bool) -> CreateView:
        if_not_exists = self._if_not_exists()
        if if_not_exists and (replace or temporary):
            self.fail("IF NOT EXISTS goes neither with OR REPLACE nor with TEMPORARY", self.index - 3)
        name = self._name(1 if temporary else 3)
        columns: list[ViewColumn] = []
        if self.match("("):
            while not columns or self.match(","):
                column = self.identifier().name
                if temporary and self._columns_have_types():
                    raise self._over_files()
                columns.append(ViewColumn(column, self.string() if self.match("COMMENT") else None))
            self.expect(")")
        if self.word == "USING":
            raise self._over_files()
        comment: str | None = None
        properties: tuple[tuple[str, str], ...] = ()
        seen: set[str] = set()
        while self.word != "AS":
            if self.word == "COMMENT":
                self._once(seen, "COMMENT")
                self.advance()
                comment = self.string()
            elif self.word == "TBLPROPERTIES" and not temporary:
                self._once(seen, "TBLPROPERTIES")
                self.advance()
                properties = self._properties()
            elif self.words[self.index : self.index + 3] == ["WITH", "SCHEMA", "COMPENSATION"] and not temporary:
                self._once(seen, "WITH SCHEMA")
                self.advance(3)
            elif self.word in ("TBLPROPERTIES", "PARTITIONED", "WITH", "DEFAULT", "SCHEMA"):
                raise unsupported(f"CREATE VIEW … {self.word}", self.span(self.index))
            else:
                self.fail()
        self.advance()
        query = self._final_query()
        return CreateView(name, query, temporary, replace, if_not_exists, tuple(columns), comment, properties)

    def _over_files(self) -> UnsupportedError:
        text = (
            "CREATE TEMPORARY VIEW … USING is not supported: make a table of the format, or a view of its files' path."
        )
        return UnsupportedError("UNSUPPORTED_FEATURE.VIEW_USING", text, span=self.span(self.index))

    def _columns_have_types(self) -> bool:
        """Whether a type stands at this token and the bracket ends before USING."""
        if self.word in ("COMMENT", ",", ")"):
            return False
        depth = 1
        for at in range(self.index, len(self.words)):
            depth += {"(": 1, ")": -1}.get(self.words[at], 0)
            if not depth:
                return self.words[at + 1] == "USING"
        return False

    def _create_volume(self) -> CreateVolume:
        if_not_exists = self._if_not_exists()
        name = self._name()
        if self.word == "LOCATION":
            raise unsupported("CREATE VOLUME … LOCATION", self.span(self.index))
        comment = self.string() if self.match("COMMENT") else None
        self._end()
        return CreateVolume(name, if_not_exists, comment)

    def _create_schema(self) -> CreateSchema:
        if_not_exists = self._if_not_exists()
        name = self._name(2)
        comment: str | None = None
        seen: set[str] = set()
        while self.word != END:
            if self.word == "COMMENT":
                self._once(seen, "COMMENT")
                self.advance()
                comment = self.string()
            elif self.word in ("LOCATION", "MANAGED", "WITH", "DEFAULT"):
                raise unsupported(f"CREATE SCHEMA … {self.word}", self.span(self.index))
            else:
                self.fail()
        return CreateSchema(name, if_not_exists, comment)

    def _drop(self) -> Command:
        self.advance()
        word = self.word
        if word not in SCHEMA_WORDS | {"TABLE", "VIEW", "FUNCTION", "VOLUME"}:
            self._refuse()
        self.advance()
        if_exists = self.match("IF", "EXISTS")
        name = self._name(2 if word in SCHEMA_WORDS else 3)
        result: Command
        if word == "TABLE":
            self.match("PURGE")  # there is no trash that it would pass by
            result = DropTable(name, if_exists)
        elif word == "VIEW":
            result = DropView(name, if_exists)
        elif word == "FUNCTION":
            result = DropFunction(name, if_exists)
        elif word == "VOLUME":
            result = DropVolume(name, if_exists)
        else:
            cascade = self.match("CASCADE")
            if not cascade:
                self.match("RESTRICT")
            result = DropSchema(name, if_exists, cascade)
        self._end()
        return result
