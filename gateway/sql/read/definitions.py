"""CREATE TABLE: columns with what is asked of them, and the clauses behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from gateway.errors import UserError, unsupported
from gateway.sql.read import allowed
from gateway.sql.read.command_nodes import (
    Check,
    ColumnDefinition,
    Command,
    CreateClone,
    CreateTable,
    CreateTableLike,
    Name,
    Query,
)
from gateway.sql.read.cursor import user_error
from gateway.sql.read.datatypes import data_type
from gateway.sql.read.keys import KeyParser, only_one
from gateway.sql.read.table_nodes import Identity, Key
from gateway.sql.read.tokens import END, NUMBER, STRING
from gateway.sqltypes import BIGINT, StructField

_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "FOREIGN", "CHECK", "UNIQUE")
# Clauses of columns that are refused by name.
_OF_COLUMNS = ("MASK", "UNIQUE", "COLLATE")
_ON_COLUMNS = ("CHECK", "CONSTRAINT", "PRIMARY", "FOREIGN", "REFERENCES")
_CLAUSES = frozenset({"CLUSTERED", "STORED", "ROW", "SKEWED", "OPTIONS", "SHALLOW", "DEEP", "CLONE", "WITH"})


@dataclass(slots=True)
class _Clauses:
    """What a definition says of a table beside its columns, which PARTITIONED BY may give types or names to."""

    columns: tuple[ColumnDefinition, ...] | None
    partitions: tuple[str, ...] = ()
    clusters: tuple[Name, ...] = ()
    comment: str | None = None
    location: str | None = None
    properties: tuple[tuple[str, str], ...] = ()


class TableParser(KeyParser):
    """The definitions of tables."""

    def _replace_table(self) -> Command:
        self.advance()
        if self.word != "TABLE":
            self._refuse()
        self.advance()
        return self._create_table(True, True)

    def _create_table(self, replace: bool, must_exist: bool = False) -> Command:
        if_not_exists = self._if_not_exists()
        if if_not_exists and replace:
            self.fail("IF NOT EXISTS does not go with OR REPLACE", self.index - 3)
        name = self._name()
        if self.word == "LIKE" and not replace:
            return self._create_like(name, if_not_exists)
        if self.word == "CLONE" or (self.word in ("SHALLOW", "DEEP") and self.peek() == "CLONE"):
            if must_exist:
                raise unsupported("REPLACE TABLE … CLONE", self.span(self.index))
            return self._create_clone(name, replace, if_not_exists)
        columns, constraints = self._definitions() if self.word == "(" and not self.query_at(0) else (None, [])
        said = self._table_clauses(columns, constraints)
        columns = said.columns
        if said.partitions and said.clusters:
            text = "Operation not allowed: Clustering and partitioning cannot both be specified."
            raise user_error("_LEGACY_ERROR_TEMP_0035", text, name.span)
        query: Query | None = None
        if self.word == "AS" or self.query_at(0):
            self.match("AS")
            query = self._final_query()
        elif self.word != END:
            self._refuse_table_clause()
        keys = [one for one in constraints if isinstance(one, Key)]
        only_one(keys, name)
        if query is not None and columns is not None:
            text = "Operation not allowed: Schema may not be specified in a Create Table As Select (CTAS) statement."
            raise user_error("_LEGACY_ERROR_TEMP_0035", text, name.span)
        if query is None and columns is None and said.location is None:
            columns = ()
        return CreateTable(
            name,
            columns,
            query,
            replace,
            if_not_exists,
            said.partitions,
            said.clusters,
            tuple(one for one in constraints if isinstance(one, Check)),
            tuple(keys),
            said.comment,
            said.properties,
            said.location,
            must_exist,
        )

    def _table_clauses(self, columns: tuple[ColumnDefinition, ...] | None, constraints: list[Check | Key]) -> _Clauses:
        """What stands behind the columns, in any order, each once."""
        said, seen = _Clauses(columns), set[str]()
        while True:
            word = self.word
            if word in ("PARTITIONED", "CLUSTER") and self.peek() == "BY":
                self._once(seen, f"{word} BY")
                self.advance(2)
                if word == "CLUSTER":
                    said.clusters = self._clusters()
                else:
                    said.partitions, said.columns = self._partitions(said.columns, constraints)
                continue
            if word not in ("USING", "COMMENT", "LOCATION", "TBLPROPERTIES"):
                return said
            self._once(seen, word)
            if word == "USING":
                self._using()
                continue
            self.advance()
            if word == "COMMENT":
                said.comment = self.string()
            elif word == "LOCATION":
                said.location = self.string()
            else:
                said.properties = self._properties()

    def _create_like(self, name: Name, if_not_exists: bool) -> CreateTableLike:
        self.advance()
        source = self._name()
        properties: tuple[tuple[str, str], ...] = ()
        seen: set[str] = set()
        while self.word in ("USING", "TBLPROPERTIES"):
            self._once(seen, self.word)
            if self.word == "USING":
                self._using()
            else:
                self.advance()
                properties = self._properties()
        if self.word != END:
            self._refuse_table_clause()
        return CreateTableLike(name, source, if_not_exists, properties)

    def _create_clone(self, name: Name, replace: bool, if_not_exists: bool) -> CreateClone:
        deep = self.word != "SHALLOW"
        self.advance(1 if self.word == "CLONE" else 2)
        source = self._name()
        version: int | None = None
        timestamp: str | None = None
        moment: exp.Expr | None = None
        self.match("FOR")
        if self.match("VERSION") or self.match("SYSTEM_VERSION"):
            self.expect("AS", "OF")
            version = self.integer()
        elif self.match("TIMESTAMP") or self.match("SYSTEM_TIME"):
            self.expect("AS", "OF")
            if self.word == STRING and self.peek() in (END, "TBLPROPERTIES"):
                timestamp = self.string()
            else:
                moment = self.expression()
                allowed.check(moment)
        properties = self._properties() if self.match("TBLPROPERTIES") else ()
        if self.word != END:
            self._refuse_table_clause()
        return CreateClone(name, source, deep, replace, if_not_exists, version, timestamp, properties, moment)

    def _using(self) -> None:
        self.advance()
        at = self.index
        provider = self._name(8)
        if str(provider).lower() != "delta":
            raise unsupported(f"CREATE TABLE … USING {provider}", self.span(at))

    def _refuse_table_clause(self) -> NoReturn:
        word = self.word
        if word in _CLAUSES or word in ("DEFAULT", "PARTITIONED", "CLUSTER", "FROM", "LIKE", "LOCATION"):
            raise unsupported(f"CREATE TABLE … {word}", self.span(self.index))
        self.fail()

    def _definitions(self) -> tuple[tuple[ColumnDefinition, ...], list[Check | Key]]:
        self.expect("(")
        found: list[ColumnDefinition] = []
        constraints: list[Check | Key] = []
        while True:
            if self.word in _CONSTRAINTS and (self.word == "CONSTRAINT" or self.peek() in ("KEY", "(")):
                constraints.append(self._constraint_of())
            else:
                self._column_definition(found, constraints)
            if not self.match(","):
                break
        self.expect(")")
        return tuple(found), constraints

    def _column_definition(self, found: list[ColumnDefinition], constraints: list[Check | Key]) -> None:
        at = self.index
        name = self.identifier().name
        kind = data_type(self)
        nullable = True
        comment: str | None = None
        default: str | None = None
        generated: str | None = None
        identity: Identity | None = None
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
            elif self.word == "DEFAULT":
                self._once(seen, "DEFAULT")
                self.advance()
                default = self._kept_text()[1]
            elif self.word == "GENERATED":
                self._once(seen, "GENERATED")
                found_ = self._generated()
                generated, identity = (found_, None) if isinstance(found_, str) else (None, found_)
            elif self.word in _ON_COLUMNS:
                one = self._constraint_of(name)
                if isinstance(one, Key):
                    self._key_once(seen, one, name)
                constraints.append(one)
            elif self.word in _OF_COLUMNS:
                raise unsupported(f"a column with {self.word}", self.span(self.index))
            else:
                self.fail()
        span = self.span(at)
        if default is not None and generated is not None:
            text = (
                "A column cannot have both a default value and a generation expression but column "
                f"{name} has default value: ({default}) and generation expression: ({generated})."
            )
            raise user_error("GENERATED_COLUMN_WITH_DEFAULT_VALUE", text, span)
        if default is not None and identity is not None:
            text = (
                "A column cannot have both a default value and an identity column specification but column "
                f"{name} has default value: ({default}) and an identity column specification."
            )
            raise user_error("IDENTITY_COLUMN_WITH_DEFAULT_VALUE", text, span)
        if identity is not None and kind != BIGINT:
            text = f"DataType {kind.json()} is not supported for IDENTITY columns."
            raise user_error("DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE", text, span)
        field = StructField(name, kind, nullable, comment)
        self._add(found, ColumnDefinition(field, span, default, generated, identity))

    def _add(self, found: list[ColumnDefinition], one: ColumnDefinition) -> None:
        name = one.field.name
        if name.lower() in {f.field.name.lower() for f in found}:
            message = f"The column `{name}` already exists. Choose another name or rename the existing column."
            raise user_error("COLUMN_ALREADY_EXISTS", message, one.span)
        found.append(one)

    def _generated(self) -> str | Identity:
        self.advance()
        explicit = self.match("BY", "DEFAULT")
        if not explicit:
            self.expect("ALWAYS")
        self.expect("AS")
        if self.word == "(" and not explicit:
            return self._bracketed_text()[1]
        self.expect("IDENTITY")
        start, step, seen = 1, 1, set[str]()
        if self.match("("):
            while self.word != ")":
                at, word = self.index, self.word
                if word in seen:
                    text = f"Duplicated IDENTITY column sequence generator option: {word}."
                    raise user_error("IDENTITY_COLUMNS_DUPLICATED_SEQUENCE_GENERATOR_OPTION", text, self.span(at))
                seen.add(word)
                if self.match("START", "WITH"):
                    start = self._whole()
                else:
                    self.expect("INCREMENT", "BY")
                    step = self._whole()
            self.advance()
        if step == 0:
            text = "IDENTITY column step cannot be 0."
            raise user_error("IDENTITY_COLUMNS_ILLEGAL_STEP", text, self.span(self.index - 1))
        return Identity(explicit, start, step)

    def _whole(self) -> int:
        """A whole number of 64 bits, with its sign."""
        at = self.index
        negative = self.match("-")
        digits = self.tokens[self.index].text
        if self.word != NUMBER or not digits.isdigit():
            self.fail()
        self.advance()
        found = -int(digits) if negative else int(digits)
        if not -(2**63) <= found < 2**63:
            raise unsupported(f"{found} as the start or step of an IDENTITY column", self.span(at))
        return found

    def _key_once(self, seen: set[str], key: Key, column: str) -> None:
        kind = "PRIMARY KEY" if key.parent is None else "REFERENCES"
        if kind in seen:
            text = f'CREATE TABLE column `{column}` specifies descriptor "{kind}" more than once, which is invalid.'
            raise user_error("CREATE_TABLE_COLUMN_DESCRIPTOR_DUPLICATE", text, key.span)
        seen.add(kind)

    def _constraint_of(self, column: str | None = None) -> Check | Key:
        """``[CONSTRAINT name] CHECK (condition)``, or a key, of a table or a column; others are refused by name."""
        start = self.index
        name = self.identifier().name if self.match("CONSTRAINT") else None
        if column is None and self._is_key():
            return self._key(name, start)
        if column is not None and self.word in ("PRIMARY", "FOREIGN", "REFERENCES"):
            return self._column_key(column, name, start)
        if self.word != "CHECK":
            raise unsupported(f"a {self.word} constraint", self.span(start))
        self.advance()
        text = self._bracketed_text()[1]
        if self.word in ("NOT", "RELY", "NORELY") and self.peek() != "NULL":
            raise unsupported(f"CHECK … {self.word}", self.span(self.index))
        self.match("ENFORCED")
        return Check(name, text, self.span(start))

    def _bracketed_text(self) -> tuple[exp.Expr, str]:
        self.expect("(")
        found = self._kept_text()
        self.expect(")")
        return found

    def _kept_text(self) -> tuple[exp.Expr, str]:
        """An expression that a table keeps: its tree, and its text as it is written."""
        start = self.index
        tree = self.expression()
        allowed.check(tree)
        span = self.span(start)
        return tree, self.text[span.start : span.stop]

    def _partitions(
        self, columns: tuple[ColumnDefinition, ...] | None, constraints: list[Check | Key]
    ) -> tuple[tuple[str, ...], tuple[ColumnDefinition, ...] | None]:
        """Names of columns, or columns of their own, which stand behind the others; and all columns then."""
        self.expect("(")
        names: list[str] = []
        own: list[ColumnDefinition] = []
        while not names or self.match(","):
            at = self.index
            name = self.identifier()
            if self.word == "(":
                raise unsupported(f"a partition transform ({name.name})", self.span(self.index - 1))
            if self.word not in (",", ")"):
                self.seek(at)
                self._column_definition(own, constraints)
            names.append(name.name)
        self.expect(")")
        if own and len(own) < len(names):
            text = "Operation not allowed: PARTITION BY: Cannot mix partition expressions and partition columns."
            raise user_error("_LEGACY_ERROR_TEMP_0035", text, self.span(self.index - 1))
        every = list(columns or ())
        for one in own:
            self._add(every, one)
        return tuple(names), tuple(every) if own else columns

    def _clusters(self) -> tuple[Name, ...]:
        if self.word in ("NONE", "AUTO"):
            raise unsupported(f"CREATE TABLE … CLUSTER BY {self.word}", self.span(self.index))
        self.expect("(")
        found = [self._name(64)]
        while self.match(","):
            found.append(self._name(64))
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
