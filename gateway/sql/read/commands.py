"""Statements of all kinds from tokens to the values of `command_nodes`; `parse_statement` is the way in.

A statement or clause that has no value there is refused by name.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from gateway.errors import UnsupportedError, UserError, unsupported
from gateway.sql.read.alter import AlterParser
from gateway.sql.read.changes import ChangeParser
from gateway.sql.read.command_nodes import (
    Command,
    DescribeCatalog,
    DescribeDetail,
    DescribeHistory,
    DescribeQuery,
    DescribeSchema,
    DescribeTable,
    Explain,
    Kill,
    Name,
    Reset,
    SetConf,
    SetTimeZone,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowCurrent,
    ShowFunctions,
    ShowKeys,
    ShowListed,
    ShowPartitions,
    ShowSchemas,
    ShowTableExtended,
    ShowTables,
    ShowTblProperties,
    ShowViews,
    ShowVolumes,
    UseCatalog,
    UseSchema,
)
from gateway.sql.read.command_rules import SCHEMA_WORDS
from gateway.sql.read.copying import CopyParser
from gateway.sql.read.cursor import DEFAULT_LIMITS, Limits
from gateway.sql.read.maintenance import MaintenanceParser
from gateway.sql.read.parse import prepare_recursion
from gateway.sql.read.staging import StagingParser
from gateway.sql.read.statement import Kind, Statement, keywords_of, kind_of, read_statement
from gateway.sql.read.tokens import END, STRING
from gateway.sql.read.tree import IntervalLiteral, TypedLiteral

_EXPLAIN_MODES = frozenset({"LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST"})
_LISTS: dict[str, type[ShowTables] | type[ShowViews] | type[ShowVolumes]] = {
    "TABLES": ShowTables,
    "VIEWS": ShowViews,
    "VOLUMES": ShowVolumes,
}
_SCHEMAS_WORDS = frozenset({"SCHEMAS", "DATABASES", "NAMESPACES"})


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


def parse_expression(text: str) -> exp.Expr:
    """An expression that is kept as text, such as a table's constraint. Raises as `parse_statement`."""
    statement = read_statement(f"SELECT {text}")
    prepare_recursion(statement.limits)
    parser = CommandParser(statement.tokens, statement.words, statement.limits)
    parser.advance()
    return parser.whole_expression()


def references(tree: exp.Expr) -> list[tuple[str, ...]]:
    """The names of columns in an expression, as they are written."""
    return [tuple(part.name for part in column.parts) for column in tree.find_all(exp.Column)]


def explained(statement: Statement) -> Statement | None:
    """The statement behind EXPLAIN; None for one that explains nothing."""
    words = statement.words
    if words[0] != "EXPLAIN":
        return None
    index = 2 if words[1] in _EXPLAIN_MODES or _analyzes(words[1:]) else 1
    return _behind(statement.tokens, words, index, statement.text, statement.limits)


def _analyzes(words: list[str]) -> bool:
    """Whether EXPLAIN is followed by its word ANALYZE, not by the statement ANALYZE TABLE."""
    return words[0] == "ANALYZE" and words[1] not in ("TABLE", "TABLES")


def _behind(tokens: list[Token], words: list[str], index: int, text: str, limits: Limits) -> Statement:
    """The statement that starts at a token, with its offsets in the whole text."""
    rest = text[: tokens[len(words) - 2].end + 1]
    tokens, words = tokens[index:], words[index:]
    return Statement(kind_of(words, tokens), keywords_of(words), tokens, words, rest, limits)


class CommandParser(AlterParser, CopyParser, ChangeParser, MaintenanceParser, StagingParser):
    """One statement of any kind."""

    def command(self, kind: Kind, keywords: tuple[str, ...]) -> Command:
        """The whole statement, up to the end token."""
        if kind is Kind.QUERY:
            return self._final_query()
        rule = {
            "USE": self._use,
            "CALL": self._call,
            "SET": self._set,
            "RESET": self._reset,
            "SHOW": self._show,
            "DESCRIBE": self._describe,
            "DESC": self._describe,
            "EXPLAIN": self._explain,
            "CREATE": self._create,
            "REPLACE": self._replace_table,
            "DROP": self._drop,
            "ALTER": self._alter,
            "COMMENT": self._comment,
            "INSERT": self._insert,
            "WITH": self._change_behind_ctes,
            "DELETE": self._delete,
            "UPDATE": self._update,
            "MERGE": self._merge,
            "TRUNCATE": self._truncate,
            "COPY": self._copy,
            "OPTIMIZE": self._optimize,
            "REORG": self._reorg,
            "VACUUM": self._vacuum,
            "ANALYZE": self._analyze,
            "RESTORE": self._restore,
            "REFRESH": self._refresh,
            "PUT": self._put,
            "GET": self._get,
            "REMOVE": self._remove,
            "LIST": self._list_files,
        }.get(self.word)
        if rule is None:
            self._refuse(keywords)
        return rule()

    def _use(self) -> Command:
        self.advance()
        if self.word == "CATALOG" and (self.is_name(1) or self.peek() == STRING):
            self.advance()
            name = self.string() if self.word == STRING else self.identifier().name
            self._end()
            return UseCatalog(name)
        bare = not (self.word in SCHEMA_WORDS and self.is_name(1))
        if not bare:
            self.advance()
        target = self._name(2)
        self._end()
        return UseSchema(target, bare)

    def _call(self) -> Command:
        if [word.lower() for word in self.words[1:5]] != ["system", ".", "kill", "("]:
            self._refuse()
        self.advance(5)
        statement_id = self.string()
        self.expect(")")
        self._end()
        return Kill(statement_id)

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
            raise UserError("INVALID_SET_SYNTAX", message, span=self.span(0))
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
            raise UserError("INVALID_RESET_COMMAND_FORMAT", message, span=self.span(0))
        return Reset(key)

    def _show(self) -> Command:
        self.advance()
        result = self._show_names() or self._show_facts()
        if result is None:
            self._refuse()
        self._end()
        return result

    def _show_names(self) -> Command | None:
        """SHOW of what there is."""
        word = self.word
        if self._is_listed():
            return self._listed()
        if word in (*_SCHEMAS_WORDS, *_LISTS) and self.peek() == "DROPPED":
            raise unsupported(f"SHOW {word} DROPPED", self.span(0))
        if word == "CATALOGS":
            self.advance()
            return ShowCatalogs(self._pattern())
        if word in _SCHEMAS_WORDS:
            self.advance()
            return ShowSchemas(self._in_name(), self._pattern())
        if word in _LISTS:
            self.advance()
            schema = self._in_name()
            return _LISTS[word](schema, self._pattern())
        if word == "CURRENT" and self.peek() in SCHEMA_WORDS:
            self.advance(2)
            return ShowCurrent()
        if word == "FUNCTIONS" or (word in ("ALL", "USER", "SYSTEM") and self.peek() == "FUNCTIONS"):
            return self._functions("ALL" if word == "FUNCTIONS" else word)
        return None

    def _show_facts(self) -> Command | None:
        """SHOW of what is known of a table."""
        word = self.word
        if word == "KEYS" or (word == "FOREIGN" and self.peek() == "KEYS"):
            return self._keys()
        if word == "TABLE" and self.peek() == "EXTENDED":
            return self._table_extended()
        if word == "COLUMNS":
            self.advance()
            table = self._in_name()
            if table is None:
                self.fail()
            return ShowColumns(table, self._in_name())
        if word == "TBLPROPERTIES":
            self.advance()
            table = self._name()
            key = None
            if self.match("("):
                key = self._property_key()
                self.expect(")")
            return ShowTblProperties(table, key)
        if word == "CREATE" and self.peek() == "TABLE":
            self.advance(2)
            return ShowCreateTable(self._name())
        if word == "PARTITIONS":
            self.advance()
            table = self._name()
            return ShowPartitions(table, self._partition() if self.word == "PARTITION" else ())
        return None

    def _table_extended(self) -> ShowTableExtended:
        self.advance(2)
        schema = self._in_name()
        self.expect("LIKE")
        pattern = self.string()
        if self.word == "PARTITION":
            raise unsupported("SHOW TABLE EXTENDED … PARTITION", self.span(self.index))
        return ShowTableExtended(pattern, schema)

    def _is_listed(self) -> bool:
        if self.word not in ("TABLES", "COLUMNS", "FUNCTIONS") or self.peek() != "IN":
            return False
        if self.peek(2) == "CATALOG":
            return self.is_name(3) and self.peek(3) != "LIKE"  # else a schema of that name
        return self.word == "TABLES" and self.peek(2) == "ALL" and self.peek(3) == "CATALOGS"

    def _listed(self) -> ShowListed:
        kind = self.word.lower()
        everywhere = self.peek(2) == "ALL"
        self.advance(4 if everywhere else 3)
        catalog = None if everywhere else self._name(1)
        schema = self.string() if self.match("SCHEMA", "LIKE") else None
        table = self.string() if kind == "columns" and self.match("TABLE", "LIKE") else None
        return ShowListed(kind, catalog, schema, table, self._pattern())

    def _keys(self) -> ShowKeys:
        foreign = self.word == "FOREIGN"
        self.advance(2 if foreign else 1)
        parts: list[str] = []
        start = self.index
        for word in ("CATALOG", "SCHEMA", "TABLE"):
            self.expect("IN")
            self.expect(word)
            start = self.index if word == "TABLE" else start
            parts.append(str(self._name(1).parts[0]))
        return ShowKeys(Name(tuple(parts), self.span(start)), foreign)

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
        if word in ("HISTORY", "DETAIL") and self.is_name(1):
            return self._of_log(word)
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
        if word in SCHEMA_WORDS and self.peek() not in (END, "."):
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
            result = DescribeTable(table, extended, column, self._as_json(extended, column))
        self._end()
        return result

    def _as_json(self, extended: bool, column: Name | None) -> bool:
        if self.word != "AS" or self.peek() != "JSON":
            return False
        if not extended:
            raise UnsupportedError(
                "DESCRIBE_JSON_NOT_EXTENDED",
                "DESCRIBE TABLE ... AS JSON only supported when [EXTENDED|FORMATTED] is specified.",
                span=self.span(0),
            )
        if column is not None:
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE.DESC_TABLE_COLUMN_JSON",
                "DESC TABLE COLUMN AS JSON not supported for individual columns.",
                span=self.span(0),
            )
        self.advance()
        self.advance()
        return True

    def _of_log(self, word: str) -> Command:
        self.advance()
        table = self._name()
        limit = self.integer() if word == "HISTORY" and self.match("LIMIT") else None
        self._end()
        return DescribeHistory(table, limit) if word == "HISTORY" else DescribeDetail(table)

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
        if self.word in _EXPLAIN_MODES or _analyzes(self.words[self.index :]):
            mode = self.word.lower()
            self.advance()
        if self.word == END or self.word == "EXPLAIN":
            self.fail()
        return Explain(mode, parse_command(_behind(self.tokens, self.words, self.index, self.text, self.limits)))
