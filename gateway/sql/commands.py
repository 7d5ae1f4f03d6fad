"""Statements of all kinds from tokens to the values of `command_nodes`; `parse_statement` is the way in.

A statement or clause that has no value there is refused by name.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot.tokenizer_core import Token

from gateway.errors import UserError, unsupported
from gateway.sql import allowed
from gateway.sql.command_nodes import (
    Command,
    CreateSchema,
    CreateTable,
    CreateView,
    DescribeCatalog,
    DescribeQuery,
    DescribeSchema,
    DescribeTable,
    DropSchema,
    DropTable,
    DropView,
    Explain,
    Insert,
    Name,
    Query,
    Reset,
    SetConf,
    SetTimeZone,
    ShowCatalogs,
    ShowColumns,
    ShowFunctions,
    ShowSchemas,
    ShowTables,
    ShowTblProperties,
    ShowViews,
    UseCatalog,
    UseSchema,
    ViewColumn,
)
from gateway.sql.cursor import DEFAULT_LIMITS, Limits, user_error
from gateway.sql.datatypes import data_type
from gateway.sql.parse import QueryParser, prepare_recursion
from gateway.sql.statement import Kind, Statement, keywords_of, kind_of, read_statement
from gateway.sql.tokens import END, NUMBER, STRING
from gateway.sql.tree import IntervalLiteral, TypedLiteral
from gateway.sqltypes import StructField

__all__ = [
    "Command",
    "CommandParser",
    "CreateSchema",
    "CreateTable",
    "CreateView",
    "DescribeCatalog",
    "DescribeQuery",
    "DescribeSchema",
    "DescribeTable",
    "DropSchema",
    "DropTable",
    "DropView",
    "Explain",
    "Insert",
    "Name",
    "Query",
    "Reset",
    "SetConf",
    "SetTimeZone",
    "ShowCatalogs",
    "ShowColumns",
    "ShowFunctions",
    "ShowSchemas",
    "ShowTables",
    "ShowTblProperties",
    "ShowViews",
    "UseCatalog",
    "UseSchema",
    "ViewColumn",
    "parse_command",
    "parse_statement",
]

_EXPLAIN_MODES = frozenset({"LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST"})
_SCHEMA_WORDS = frozenset({"SCHEMA", "DATABASE", "NAMESPACE"})
_SCHEMAS_WORDS = frozenset({"SCHEMAS", "DATABASES", "NAMESPACES"})
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
        ),
        *("ADD", "LIST", "LOCK", "UNLOCK", "RESTORE"),
    }
)


def parse_statement(text: str, limits: Limits = DEFAULT_LIMITS) -> Command:
    """The one statement of `text`.

    Raises:
        UserError: PARSE_EMPTY_STATEMENT, PARSE_SYNTAX_ERROR and the other conditions of Spark's parser.
        UnsupportedError: a statement, clause or construct that is not answered here, by name.
        ResourceError: STATEMENT_TOO_LARGE, STATEMENT_TOO_COMPLEX.
    """
    return parse_command(read_statement(text, limits))


def parse_command(statement: Statement) -> Command:
    """The statement's query or command; errors as `parse_statement`."""
    prepare_recursion(statement.limits)
    parser = CommandParser(statement.tokens, statement.words, statement.limits)
    parser.text = statement.text
    if statement.error is not None and parser.word == "SET":
        return parser.set_configuration(statement.text[statement.tokens[0].end + 1 :].strip())
    return parser.command(statement.kind, statement.keywords)


def explained(statement: Statement) -> Statement | None:
    """The statement behind EXPLAIN; None for one that explains nothing."""
    words = statement.words
    if words[0] != "EXPLAIN":
        return None
    index = 2 if words[1] in _EXPLAIN_MODES else 1
    return _behind(statement.tokens, words, index, statement.text, statement.limits)


def _behind(tokens: list[Token], words: list[str], index: int, text: str, limits: Limits) -> Statement:
    """The statement that starts at a token, with its offsets in the whole text."""
    rest = text[: tokens[len(words) - 2].end + 1]
    tokens, words = tokens[index:], words[index:]
    return Statement(kind_of(words, tokens), keywords_of(words), tokens, words, rest, limits)


class CommandParser(QueryParser):
    """One statement of any kind."""

    text: str = ""

    def command(self, kind: Kind, keywords: tuple[str, ...]) -> Command:
        """The whole statement, up to the end token."""
        if kind is Kind.QUERY:
            return self._final_query()
        rule = {
            "USE": self._use,
            "SET": self._set,
            "RESET": self._reset,
            "SHOW": self._show,
            "DESCRIBE": self._describe,
            "DESC": self._describe,
            "EXPLAIN": self._explain,
            "CREATE": self._create,
            "DROP": self._drop,
            "INSERT": self._insert,
        }.get(self.word)
        if rule is None:
            self._refuse(keywords)
        return rule()

    # ------------------------------------------------------------------ small rules

    def _refuse(self, keywords: tuple[str, ...] = ()) -> NoReturn:
        """Refuse the statement by its first words."""
        words = [w for w in (keywords or tuple(self.words[:3])) if w[:1].isalpha()]
        if self.words[0] in ("WITH", "FROM"):
            raise unsupported(f"{self.words[0]} … before a change of data", self.span(0))
        if self.words[0] == "BEGIN":
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
            raise UserError("DUPLICATE_CLAUSES", message, sqlstate="42614", span=self.span(self.index))
        seen.add(clause)

    # ------------------------------------------------------------------ session

    def _use(self) -> Command:
        self.advance()
        if self.word == "CATALOG" and (self.is_name(1) or self.peek() == STRING):
            self.advance()
            name = self.string() if self.word == STRING else self.identifier().name
            self._end()
            return UseCatalog(name)
        bare = not (self.word in _SCHEMA_WORDS and self.is_name(1))
        if not bare:
            self.advance()
        target = self._name(2)
        self._end()
        return UseSchema(target, bare)

    def _set(self) -> Command:
        word = self.peek()
        if word == "TIME" and self.peek(2) == "ZONE":
            return self._time_zone()
        if word == "CATALOG" and (self.is_name(2) or self.peek(2) == STRING) and self.peek(3) == END:
            self.advance(2)
            return UseCatalog(self.tokens[self.index].text)
        if word in ("VARIABLE", "VAR", "ROLE", "PATH") and self.peek(2) not in ("=", ".", END):
            raise unsupported(f"SET {word}", self.span(0))
        if word == END:
            return SetConf()
        last = self.tokens[len(self.words) - 2]
        return self.set_configuration(self.text[self.tokens[1].start : last.end + 1])

    def set_configuration(self, raw: str) -> SetConf:
        """SET's own little grammar over its raw text."""
        if raw == "-v":
            return SetConf(verbose=True)
        key, equals, value = raw.partition("=")
        if raw.startswith("`") and (close := raw.find("`", 1)) > 0:
            key, rest = raw[1:close], raw[close + 1 :].strip()
            equals, value = rest[:1], rest[1:]
            valid = not rest or equals == "="
        else:
            key = key.strip()
            valid = bool(key) and all(c.isalnum() or c in "_.-:" for c in key)
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] == "`":
            value = value[1:-1]
        if not valid:
            message = (
                "Expected format is 'SET', 'SET key', or 'SET key=value'. If you want to include special characters in "
                "key, or include semicolon in value, please use backquotes, e.g., SET `key`=`value`."
            )
            raise UserError("INVALID_SET_SYNTAX", message, sqlstate="42000", span=self.span(0))
        return SetConf(key, value if equals else None)

    def _time_zone(self) -> Command:
        self.advance(3)
        start = self.index
        result: SetTimeZone
        if self.match("LOCAL"):
            result = SetTimeZone()
        elif self.word == STRING:
            result = SetTimeZone(zone=self.string())
        elif self.word == "INTERVAL":
            interval = self.value()
            if not isinstance(interval, (IntervalLiteral, TypedLiteral)):
                self.fail(index=start)
            result = SetTimeZone(interval=interval)
        else:
            self.fail()
        self._end()
        return result

    def _reset(self) -> Command:
        if self.peek() == END:
            return Reset()
        last = self.tokens[len(self.words) - 2]
        key = self.text[self.tokens[1].start : last.end + 1]
        if len(key) > 1 and key[0] == key[-1] == "`":
            key = key[1:-1]
        elif not all(c.isalnum() or c in "_.-:" for c in key):
            message = "Expected format is 'RESET' or 'RESET key'."
            raise UserError("INVALID_RESET_COMMAND_FORMAT", message, sqlstate="42000", span=self.span(0))
        return Reset(key)

    # ------------------------------------------------------------------ metadata

    def _show(self) -> Command:
        self.advance()
        word = self.word
        result: Command
        if word == "CATALOGS":
            self.advance()
            result = ShowCatalogs(self._pattern())
        elif word in _SCHEMAS_WORDS:
            self.advance()
            result = ShowSchemas(self._in_name(), self._pattern())
        elif word in ("TABLES", "VIEWS"):
            self.advance()
            schema = self._in_name()
            result = (ShowTables if word == "TABLES" else ShowViews)(schema, self._pattern())
        elif word == "COLUMNS":
            self.advance()
            table = self._in_name()
            if table is None:
                self.fail()
            result = ShowColumns(table, self._in_name())
        elif word == "FUNCTIONS" or (word in ("ALL", "USER", "SYSTEM") and self.peek() == "FUNCTIONS"):
            result = self._functions("ALL" if word == "FUNCTIONS" else word)
        elif word == "TBLPROPERTIES":
            self.advance()
            table = self._name()
            key = None
            if self.match("("):
                key = self._property_key()
                self.expect(")")
            result = ShowTblProperties(table, key)
        else:
            self._refuse()
        self._end()
        return result

    def _functions(self, scope: str) -> ShowFunctions:
        self.advance(1 if self.word == "FUNCTIONS" else 2)
        schema = self._in_name()
        if self.match("LIKE") or self.word == STRING:
            pattern: str | None = self.string() if self.word == STRING else str(self._name())
        else:
            pattern = str(self._name()) if self.is_name() else None
        return ShowFunctions(scope, schema, pattern)

    def _describe(self) -> Command:
        self.advance()
        word = self.word
        if word == "QUERY" and self.query_at(1):
            self.advance()
            return DescribeQuery(self._final_query())
        if word != "TABLE" and self.query_at(0):
            return DescribeQuery(self._final_query())
        if word in (
            "FUNCTION",
            "HISTORY",
            "DETAIL",
            "VOLUME",
            "SHARE",
            "CONNECTION",
            "STORAGE",
        ) and self.peek() not in (
            END,
            ".",
        ):
            self._refuse()
        if word in _SCHEMA_WORDS and self.peek() not in (END, "."):
            self.advance()
            extended = self._extended()
            result: Command = DescribeSchema(self._name(2), extended)
        elif word == "CATALOG" and self.peek() not in (END, "."):
            self.advance()
            extended = self._extended()
            result = DescribeCatalog(self._name(1), extended)
        else:
            if word == "TABLE" and self.peek() not in (END, "."):
                self.advance()
            extended = self._extended() or self._word_before_name("FORMATTED")
            table = self._name()
            if self.word == "PARTITION" and self.peek() == "(":
                raise unsupported("DESCRIBE … PARTITION", self.span(0))
            column = self._name(8) if self.is_name() and self.word != "AS" else None
            result = DescribeTable(table, extended, column)
        # `AS JSON` is no syntax here: clients fall back to other calls on SQLSTATE 42601.
        self._end()
        return result

    def _extended(self) -> bool:
        return self._word_before_name("EXTENDED")

    def _word_before_name(self, word: str) -> bool:
        if self.word == word and self.is_name(1):
            self.advance()
            return True
        return False

    def _explain(self) -> Command:
        self.advance()
        mode = "simple"
        if self.word in _EXPLAIN_MODES:
            mode = self.word.lower()
            self.advance()
        if self.word == END or self.word == "EXPLAIN":
            self.fail()
        return Explain(mode, parse_command(_behind(self.tokens, self.words, self.index, self.text, self.limits)))

    # ------------------------------------------------------------------ definitions

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
        if word in _SCHEMA_WORDS and not replace:
            self.advance()
            return self._create_schema()
        if word == "TABLE":
            self.advance()
            return self._create_table(replace)
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
                columns.append(ViewColumn(column, self.string() if self.match("COMMENT") else None))
            self.expect(")")
        if self.word == "USING":
            raise unsupported("CREATE VIEW … USING", self.span(self.index))
        comment: str | None = None
        seen: set[str] = set()
        while self.word != "AS":
            if self.word == "COMMENT":
                self._once(seen, "COMMENT")
                self.advance()
                comment = self.string()
            elif self.word in ("TBLPROPERTIES", "PARTITIONED", "WITH", "DEFAULT", "SCHEMA"):
                raise unsupported(f"CREATE VIEW … {self.word}", self.span(self.index))
            else:
                self.fail()
        self.advance()
        query = self._final_query()
        return CreateView(name, query, temporary, replace, if_not_exists, tuple(columns), comment)

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
                raise UserError("DUPLICATE_KEY", message, sqlstate="23505", span=self.span(at))
            found[key] = value
        self.expect(")")
        return tuple(found.items())

    def _property_key(self) -> str:
        return self.string() if self.word == STRING else str(self._name(16))

    def _drop(self) -> Command:
        self.advance()
        word = self.word
        if word not in _SCHEMA_WORDS | {"TABLE", "VIEW"}:
            self._refuse()
        self.advance()
        if_exists = self.match("IF", "EXISTS")
        name = self._name(2 if word in _SCHEMA_WORDS else 3)
        result: Command
        if word == "TABLE":
            result = DropTable(name, if_exists, self.match("PURGE"))
        elif word == "VIEW":
            result = DropView(name, if_exists)
        else:
            cascade = self.match("CASCADE")
            if not cascade:
                self.match("RESTRICT")
            result = DropSchema(name, if_exists, cascade)
        self._end()
        return result

    # ------------------------------------------------------------------ data

    def _insert(self) -> Insert:
        self.advance()
        if self.word == "OVERWRITE":
            raise unsupported("INSERT OVERWRITE", self.span(0))
        self.expect("INTO")
        if self.word == "TABLE" and self.is_name(1):
            self.advance()
        table = self._name()
        if self.word in ("PARTITION", "REPLACE", "WITH") and self.peek() in ("(", "WHERE", "USING", "ON", "SCHEMA"):
            raise unsupported(f"INSERT INTO … {self.word}", self.span(self.index))
        columns: tuple[Name, ...] | None = None
        by_name = False
        if self.word == "BY" and self.peek() == "NAME":
            self.advance(2)
            by_name = True
        elif self.word == "(" and not self.query_at(0):
            self.advance()
            names: list[Name] = []
            while not names or self.match(","):
                names.append(self._name(1))
            self.expect(")")
            columns = tuple(names)
        return Insert(table, self._final_query(), columns, by_name)
