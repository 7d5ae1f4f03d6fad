"""CREATE and DROP of schemas, tables and views, DROP of functions; volumes."""

from __future__ import annotations

from typing import NoReturn

from gateway.errors import UnsupportedError, UserError, unsupported
from gateway.sql.read.command_nodes import (
    Command,
    CreateSchema,
    CreateTable,
    CreateView,
    CreateVolume,
    DropFunction,
    DropSchema,
    DropTable,
    DropView,
    DropVolume,
    Query,
    ViewColumn,
)
from gateway.sql.read.command_rules import SCHEMA_WORDS, CommandRules
from gateway.sql.read.cursor import user_error
from gateway.sql.read.datatypes import data_type
from gateway.sql.read.tokens import END, NUMBER, STRING
from gateway.sqltypes import StructField


class DefinitionParser(CommandRules):
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

    def _create_table(self, replace: bool) -> CreateTable:
        if_not_exists = self._if_not_exists()
        if if_not_exists and replace:
            self.fail("IF NOT EXISTS does not go with OR REPLACE", self.index - 3)
        name = self._name()
        columns = self._columns() if self.word == "(" and not self.query_at(0) else None
        partitions: tuple[str, ...] = ()
        comment: str | None = None
        location: str | None = None
        properties: tuple[tuple[str, str], ...] = ()
        seen: set[str] = set()
        while True:
            word = self.word
            if word == "USING":
                self._once(seen, word)
                self.advance()
                at = self.index
                provider = self._name(8)
                if str(provider).lower() != "delta":
                    raise unsupported(f"CREATE TABLE … USING {provider}", self.span(at))
            elif word == "PARTITIONED" and self.peek() == "BY":
                self._once(seen, "PARTITIONED BY")
                self.advance(2)
                partitions = self._partitions()
            elif word == "COMMENT":
                self._once(seen, word)
                self.advance()
                comment = self.string()
            elif word == "LOCATION":
                self._once(seen, word)
                self.advance()
                location = self.string()
            elif word == "TBLPROPERTIES":
                self._once(seen, word)
                self.advance()
                properties = self._properties()
            else:
                break
        query: Query | None = None
        if self.word == "AS" or self.query_at(0):
            self.match("AS")
            query = self._final_query()
        elif self.word != END:
            self._refuse_table_clause()
        if query is not None and columns is not None:
            raise unsupported("CREATE TABLE … AS with a list of columns", name.span)
        if query is None and columns is None and location is None:
            columns = ()
        return CreateTable(
            name, columns, query, replace, if_not_exists, partitions, comment, properties, location
        )  # fmt: skip

    def _refuse_table_clause(self) -> NoReturn:
        word = self.word
        if word in (
            "CLUSTER",
            "CLUSTERED",
            "STORED",
            "ROW",
            "SKEWED",
            "OPTIONS",
            "LIKE",
            "SHALLOW",
            "DEEP",
            "CLONE",
            "WITH",
        ):
            raise unsupported(f"CREATE TABLE … {word}", self.span(self.index))
        if word in ("DEFAULT", "PARTITIONED", "FROM"):
            raise unsupported(f"CREATE TABLE … {word}", self.span(self.index))
        self.fail()

    def _columns(self) -> tuple[StructField, ...]:
        self.expect("(")
        found: list[StructField] = []
        while not found or self.match(","):
            at = self.index
            if self.word in ("CONSTRAINT", "PRIMARY", "FOREIGN", "CHECK", "UNIQUE") and (
                self.word == "CONSTRAINT" or self.peek() in ("KEY", "(")
            ):
                raise unsupported(f"a {self.word} constraint", self.span(at))
            name = self.identifier().name
            kind = data_type(self)
            nullable, comment = True, None
            seen: set[str] = set()
            while self.word not in (",", ")"):
                if self.word == "NOT" and self.peek() == "NULL":
                    self._once(seen, "NOT NULL")
                    self.advance(2)
                    nullable = False
                elif self.word == "COMMENT":
                    self._once(seen, "COMMENT")
                    self.advance()
                    comment = self.string()
                elif self.word in (
                    "DEFAULT",
                    "GENERATED",
                    "PRIMARY",
                    "REFERENCES",
                    "CONSTRAINT",
                    "CHECK",
                    "MASK",
                    "UNIQUE",
                ):
                    raise unsupported(f"a column with {self.word}", self.span(self.index))
                else:
                    self.fail()
            if name.lower() in {f.name.lower() for f in found}:
                message = f"The column `{name}` already exists. Choose another name or rename the existing column."
                raise user_error("COLUMN_ALREADY_EXISTS", message, self.span(at))
            found.append(StructField(name, kind, nullable, comment))
        self.expect(")")
        return tuple(found)

    def _partitions(self) -> tuple[str, ...]:
        self.expect("(")
        found: list[str] = []
        while not found or self.match(","):
            name = self.identifier()
            if self.word == "(":
                raise unsupported(f"a partition transform ({name.name})", self.span(self.index - 1))
            if self.word not in (",", ")"):
                raise unsupported("PARTITIONED BY with types", self.span(self.index))
            found.append(name.name)
        self.expect(")")
        return tuple(found)

    def _properties(self) -> tuple[tuple[str, str], ...]:
        self.expect("(")
        found: dict[str, str] = {}
        while not found or self.match(","):
            at = self.index
            key = self._property_key()
            self.match("=")
            if self.word == STRING:
                value = self.string()
            elif self.word in (NUMBER, "TRUE", "FALSE"):
                value = self.tokens[self.index].text.lower()
                self.advance()
            else:
                self.fail()
            if key in found:
                message = f"Found duplicate keys `{key}`."
                raise UserError("DUPLICATE_KEY", message, span=self.span(at))
            found[key] = value
        self.expect(")")
        return tuple(found.items())

    def _property_key(self) -> str:
        return self.string() if self.word == STRING else str(self._name(16))

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
