"""How tables are made and altered, as values: the part of `command_nodes` that says what a table is like."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from gateway.errors import Span
from gateway.sql.read.named import Name, Query
from gateway.sqltypes import DataType, StructField


@dataclass(frozen=True, slots=True)
class SetProperties:
    """SET TBLPROPERTIES (…)."""

    pairs: tuple[tuple[str, str], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """UNSET TBLPROPERTIES [IF EXISTS] (…); Delta asks for none of them to be there."""

    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """name type [COMMENT 'c'] [FIRST | AFTER column]; a dotted name is a field inside of a struct."""

    name: Name
    field: StructField
    first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True)
class AddColumns:
    """ADD COLUMN | COLUMNS (…)."""

    columns: tuple[AddedColumn, ...]


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What is done to a column; what is None stays. `default` is the text of SET DEFAULT, empty for DROP DEFAULT."""

    column: Name
    comment: str | None = None
    not_null: bool | None = None
    type: DataType | None = None
    default: str | None = None
    first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """ALTER | CHANGE COLUMN …, …."""

    columns: tuple[ColumnChange, ...]


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN column TO name."""

    column: Name
    to: str
    span: Span


@dataclass(frozen=True, slots=True)
class DropColumns:
    """DROP COLUMN | COLUMNS [IF EXISTS] (…)."""

    columns: tuple[Name, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """CLUSTER BY (…), without columns CLUSTER BY NONE."""

    columns: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """ADD CONSTRAINT name CHECK (condition); `text` is the condition as Delta logs it, its tokens with blanks between."""

    name: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP CONSTRAINT [IF EXISTS] name [RESTRICT | CASCADE]."""

    name: str
    if_exists: bool
    span: Span
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """[CONSTRAINT name] PRIMARY KEY (columns), or FOREIGN KEY (columns) REFERENCES parent [(parent_columns)]."""

    name: str | None
    columns: tuple[str, ...]
    rely: bool
    span: Span
    parent: Name | None = None
    parent_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AddKey:
    """ADD key."""

    key: Key


@dataclass(frozen=True, slots=True)
class DropKey:
    """DROP PRIMARY KEY [IF EXISTS] [RESTRICT | CASCADE], with columns DROP FOREIGN KEY [IF EXISTS] (columns)."""

    columns: tuple[str, ...] | None
    if_exists: bool
    cascade: bool
    span: Span


@dataclass(frozen=True, slots=True)
class DropFeature:
    """DROP FEATURE name [TRUNCATE HISTORY]."""

    name: str
    truncate: bool
    span: Span


@dataclass(frozen=True, slots=True)
class SyncIdentity:
    """ALTER | CHANGE COLUMN column SYNC IDENTITY."""

    column: Name


TableChange = (
    SetProperties | UnsetProperties | AddColumns | RenameColumn | DropColumns | ChangeColumns | AddConstraint | DropConstraint
    | ClusterBy | AddKey | DropKey | DropFeature | SyncIdentity
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE name change."""

    name: Name
    change: TableChange


@dataclass(frozen=True, slots=True)
class Identity:
    """GENERATED ALWAYS | BY DEFAULT AS IDENTITY [(START WITH start INCREMENT BY step)]."""

    explicit: bool
    start: int = 1
    step: int = 1


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """name type [NOT NULL] [COMMENT 'c'] [DEFAULT text] [GENERATED ALWAYS AS (text) | GENERATED … AS IDENTITY]."""

    field: StructField
    span: Span
    default: str | None = None
    generated: str | None = None
    identity: Identity | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """[CONSTRAINT name] CHECK (text), of a table or a column."""

    name: str | None
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name [(columns)] clauses [AS query]; `columns` None with AS alone.

    REPLACE TABLE is `replace` of what `must_exist`.
    """

    name: Name
    columns: tuple[ColumnDefinition, ...] | None = None
    query: Query | None = None
    replace: bool = False
    if_not_exists: bool = False
    partitioned_by: tuple[str, ...] = ()
    clustered_by: tuple[Name, ...] = ()
    checks: tuple[Check, ...] = ()
    keys: tuple[Key, ...] = ()
    comment: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    location: str | None = None
    must_exist: bool = False


@dataclass(frozen=True, slots=True)
class CopyInto:
    """COPY INTO table FROM 'path' | (query) FILEFORMAT = format [FILES | PATTERN] [FORMAT_OPTIONS] [COPY_OPTIONS].

    `span` is the path's, which `query` reads as if its files were Parquet.
    """

    table: Name
    path: str
    span: Span
    format: str
    files: tuple[str, ...] | None = None
    pattern: str | None = None
    format_options: tuple[tuple[str, str], ...] = ()
    copy_options: tuple[tuple[str, str], ...] = ()
    query: Query | None = None


@dataclass(frozen=True, slots=True)
class CreateClone:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name [SHALLOW | DEEP] CLONE source [AS OF] [TBLPROPERTIES (…)].

    `moment`: the constant expression that is asked for in the place of `timestamp`, a text.
    """

    name: Name
    source: Name
    deep: bool
    replace: bool = False
    if_not_exists: bool = False
    version: int | None = None
    timestamp: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    moment: exp.Expr | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CreateTableLike:
    """CREATE TABLE [IF NOT EXISTS] name LIKE source [USING delta] [TBLPROPERTIES (…)]."""

    name: Name
    source: Name
    if_not_exists: bool = False
    properties: tuple[tuple[str, str], ...] = ()
