"""Statements as values: what `commands.parse_statement` answers.

Names stay as written, with their positions; who knows catalogs resolves them. Queries inside commands are trees as in
`parse.py`, already checked against the allow-list.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from gateway.errors import Span
from gateway.sql.read.named import Name as Name
from gateway.sql.read.named import Query as Query
from gateway.sql.read.table_nodes import AddColumns as AddColumns
from gateway.sql.read.table_nodes import AddConstraint as AddConstraint
from gateway.sql.read.table_nodes import AddedColumn as AddedColumn
from gateway.sql.read.table_nodes import AddKey as AddKey
from gateway.sql.read.table_nodes import AlterTable as AlterTable
from gateway.sql.read.table_nodes import ChangeColumns as ChangeColumns
from gateway.sql.read.table_nodes import Check as Check
from gateway.sql.read.table_nodes import ClusterBy as ClusterBy
from gateway.sql.read.table_nodes import ColumnChange as ColumnChange
from gateway.sql.read.table_nodes import ColumnDefinition as ColumnDefinition
from gateway.sql.read.table_nodes import CopyInto as CopyInto
from gateway.sql.read.table_nodes import CreateClone as CreateClone
from gateway.sql.read.table_nodes import CreateTable as CreateTable
from gateway.sql.read.table_nodes import CreateTableLike as CreateTableLike
from gateway.sql.read.table_nodes import DropColumns as DropColumns
from gateway.sql.read.table_nodes import DropConstraint as DropConstraint
from gateway.sql.read.table_nodes import DropFeature as DropFeature
from gateway.sql.read.table_nodes import DropKey as DropKey
from gateway.sql.read.table_nodes import Key as Key
from gateway.sql.read.table_nodes import RenameColumn as RenameColumn
from gateway.sql.read.table_nodes import SetProperties as SetProperties
from gateway.sql.read.table_nodes import SyncIdentity as SyncIdentity
from gateway.sql.read.table_nodes import UnsetProperties as UnsetProperties
from gateway.sql.read.tree import IntervalLiteral, TypedLiteral


@dataclass(frozen=True, slots=True)
class UseCatalog:
    """USE CATALOG x, SET CATALOG x."""

    name: str


@dataclass(frozen=True, slots=True)
class UseSchema:
    """USE [SCHEMA | DATABASE | NAMESPACE] x or a.b; `bare` without the word (then one part may mean a catalog)."""

    name: Name
    bare: bool


@dataclass(frozen=True, slots=True)
class Kill:
    """CALL system.kill('statement id')."""

    statement_id: str


@dataclass(frozen=True, slots=True)
class SetConf:
    """SET (key None), SET -v (`verbose`), SET key (value None), SET key = value (raw text, trimmed)."""

    key: str | None = None
    value: str | None = None
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class SetTimeZone:
    """SET TIME ZONE 'zone' | LOCAL (both None) | INTERVAL …."""

    zone: str | None = None
    interval: IntervalLiteral | TypedLiteral | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Reset:
    """RESET [key]."""

    key: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCurrent:
    """SHOW CURRENT NAMESPACE."""


@dataclass(frozen=True, slots=True)
class ShowCatalogs:
    """SHOW CATALOGS [[LIKE] 'pattern']."""

    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowSchemas:
    """SHOW SCHEMAS | DATABASES | NAMESPACES [IN catalog] [LIKE pattern]."""

    catalog: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES [IN schema] [LIKE pattern]."""

    schema: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowTableExtended:
    """SHOW TABLE EXTENDED [IN schema] LIKE pattern."""

    pattern: str
    schema: Name | None = None


@dataclass(frozen=True, slots=True)
class ShowViews:
    """SHOW VIEWS [IN schema] [LIKE pattern]."""

    schema: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """SHOW COLUMNS IN table [IN schema]."""

    table: Name
    schema: Name | None = None


@dataclass(frozen=True, slots=True)
class ShowFunctions:
    """SHOW [ALL | USER | SYSTEM] FUNCTIONS [IN schema] [LIKE pattern]; a bare name is a pattern, too."""

    scope: str = "ALL"
    schema: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowListed:
    """SHOW TABLES | COLUMNS | FUNCTIONS IN CATALOG name [SCHEMA LIKE p] [TABLE LIKE p] [LIKE p]; TABLES also IN ALL CATALOGS.

    What drivers send in the place of metadata calls (databricks-jdbc, databricks-sql-connector with use_sea).
    """

    kind: str
    catalog: Name | None = None
    schema: str | None = None
    table: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowKeys:
    """SHOW [FOREIGN] KEYS IN CATALOG catalog IN SCHEMA schema IN TABLE table."""

    table: Name
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class ShowTblProperties:
    """SHOW TBLPROPERTIES table [(key)]."""

    table: Name
    key: str | None = None


@dataclass(frozen=True, slots=True)
class DescribeTable:
    """DESCRIBE [TABLE] [EXTENDED | FORMATTED] table [column], or table AS JSON."""

    table: Name
    extended: bool = False
    column: Name | None = None
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class DescribeQuery:
    """DESCRIBE [QUERY] query."""

    query: Query


@dataclass(frozen=True, slots=True)
class DescribeSchema:
    """DESCRIBE SCHEMA | DATABASE [EXTENDED] name."""

    name: Name
    extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeCatalog:
    """DESCRIBE CATALOG [EXTENDED] name."""

    name: Name
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN [EXTENDED | CODEGEN | COST | FORMATTED | LOGICAL] statement; `mode` lower case, "simple" without a word.

    Mode "analyze", which Spark does not have, runs the query and tells what its operators did.
    """

    mode: str
    statement: Command


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column that CREATE VIEW names."""

    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [TEMPORARY] VIEW [IF NOT EXISTS] name [(columns)] [COMMENT 'c'] [TBLPROPERTIES (…)] AS query."""

    name: Name
    query: Query
    temporary: bool = False
    replace: bool = False
    if_not_exists: bool = False
    columns: tuple[ViewColumn, ...] = ()
    comment: str | None = None
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AlterView:
    """ALTER VIEW name AS query; without a query WITH SCHEMA mode (`made_view`, "" for COMPENSATION)."""

    name: Name
    query: Query | None
    mode: str = ""


@dataclass(frozen=True, slots=True)
class AlterViewProperties:
    """ALTER VIEW name SET | UNSET TBLPROPERTIES (…)."""

    name: Name
    change: SetProperties | UnsetProperties


@dataclass(frozen=True, slots=True)
class Rename:
    """ALTER TABLE | VIEW name RENAME TO name; `kind` is TABLE or VIEW."""

    name: Name
    to: Name
    kind: str


@dataclass(frozen=True, slots=True)
class CommentOn:
    """COMMENT ON TABLE | VIEW | COLUMN | SCHEMA name IS 'comment' | NULL."""

    kind: str
    name: Name
    comment: str | None


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP VIEW [IF EXISTS] name."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropFunction:
    """DROP FUNCTION [IF EXISTS] name."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateVolume:
    """CREATE VOLUME [IF NOT EXISTS] name [COMMENT 'c']."""

    name: Name
    if_not_exists: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class DropVolume:
    """DROP VOLUME [IF EXISTS] name."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class PutFile:
    """PUT 'file of the client' INTO 'path of a volume' [OVERWRITE]; `span` is the path's."""

    local: str
    path: str
    span: Span = field(compare=False)
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class GetFile:
    """GET 'path of a volume' TO 'file of the client'."""

    path: str
    local: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """REMOVE 'path of a volume'."""

    path: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ListFiles:
    """LIST 'folder of a volume' [LIMIT n]."""

    path: str
    span: Span = field(compare=False)
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ShowVolumes:
    """SHOW VOLUMES [IN schema] [LIKE pattern]."""

    schema: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    """SHOW CREATE TABLE name."""

    table: Name


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] name [COMMENT 'c']."""

    name: Name
    if_not_exists: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class DropSchema:
    """DROP SCHEMA [IF EXISTS] name [RESTRICT | CASCADE]."""

    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS] name."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """column = value; `value` None for DEFAULT."""

    column: Name
    value: exp.Expr | None = field(compare=False)


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT [WITH SCHEMA EVOLUTION] INTO | OVERWRITE [TABLE] name [PARTITION (…)] [(columns) | BY NAME] query.

    `partition` has the columns of PARTITION with their constants, None for those that the query gives; `replaced` is the
    condition of REPLACE WHERE. VALUES is a query, too.
    """

    table: Name
    query: Query
    columns: tuple[Name, ...] | None = None
    by_name: bool = False
    overwrite: bool = False
    partition: tuple[Assignment, ...] = ()
    replaced: exp.Expr | None = field(default=None, compare=False)
    evolves: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceOn:
    """INSERT INTO [TABLE] name [alias] [BY NAME] REPLACE ON condition query | (query) [alias].

    Or REPLACE USING (columns) query, which is the condition that all these columns are equal.
    """

    table: Name
    alias: str | None
    by_name: bool
    condition: exp.Expr = field(compare=False)
    source: exp.Expr = field(compare=False)
    span: Span
    using: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """DESCRIBE HISTORY name [LIMIT n]."""

    table: Name
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    """DESCRIBE DETAIL name."""

    table: Name


@dataclass(frozen=True, slots=True)
class ShowPartitions:
    """SHOW PARTITIONS name [PARTITION (column = constant, …)]."""

    table: Name
    partition: tuple[Assignment, ...] = ()


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE TABLE name."""

    table: Name


@dataclass(frozen=True, slots=True)
class RefreshTable:
    """REFRESH TABLE name."""

    table: Name


@dataclass(frozen=True, slots=True)
class Optimize:
    """OPTIMIZE name [WHERE condition] [ZORDER BY (columns)]."""

    table: Name
    condition: exp.Expr | None = field(default=None, compare=False)
    order: tuple[Name, ...] = ()
    full: bool = False


@dataclass(frozen=True, slots=True)
class Analyze:
    """ANALYZE TABLE name [PARTITION (…)] COMPUTE [DELTA] STATISTICS [NOSCAN | FOR COLUMNS columns | FOR ALL COLUMNS].

    `columns` None: of the table alone, empty: of all of them. `delta`: what the log tells of files. `partition`: of some alone.
    """

    table: Name
    scans: bool = True
    columns: tuple[Name, ...] | None = None
    delta: bool = False
    partition: Span | None = None


@dataclass(frozen=True, slots=True)
class AnalyzeTables:
    """ANALYZE TABLES [IN schema] COMPUTE STATISTICS [NOSCAN]."""

    schema: Name | None
    scans: bool = True


@dataclass(frozen=True, slots=True)
class Reorg:
    """REORG TABLE name [WHERE condition] APPLY (PURGE)."""

    table: Name
    condition: exp.Expr | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM name [LITE | FULL] [RETAIN hours HOURS] [DRY RUN]."""

    table: Name
    lite: bool = False
    hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Restore:
    """RESTORE [TABLE] name [TO] VERSION AS OF version | TIMESTAMP AS OF 'timestamp' | expression."""

    table: Name
    version: int | None
    timestamp: str | None
    moment: exp.Expr | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM name [alias] [WHERE condition]."""

    table: Name
    alias: str | None = None
    condition: exp.Expr | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE name [alias] SET assignments [WHERE condition]."""

    table: Name
    alias: str | None
    assignments: tuple[Assignment, ...]
    condition: exp.Expr | None = field(default=None, compare=False)


MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE = "matched", "not matched", "not matched by source"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """WHEN `kind` [AND condition] THEN `action` (update, delete, insert); `assignments` None for ``*`` without `left_out`."""

    kind: str
    action: str
    condition: exp.Expr | None = field(compare=False)
    assignments: tuple[Assignment, ...] | None
    span: Span
    left_out: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE [WITH SCHEMA EVOLUTION] INTO name [alias] USING source ON condition clauses."""

    table: Name
    alias: str | None
    source: exp.Expr = field(compare=False)
    condition: exp.Expr = field(compare=False)
    clauses: tuple[MergeClause, ...]
    evolves: bool = False


Command = (
    Query | UseCatalog | UseSchema | Kill | SetConf | SetTimeZone | Reset
    | ShowCatalogs | ShowSchemas | ShowTables | ShowViews | ShowColumns | ShowFunctions | ShowListed | ShowKeys
    | ShowTblProperties
    | DescribeTable | DescribeQuery | DescribeSchema | DescribeCatalog | Explain
    | ShowCreateTable | CreateClone | CreateView | AlterView | DropView | DropFunction | ShowTableExtended
    | AlterTable | AlterViewProperties | Rename | CommentOn | CreateVolume | DropVolume | ShowVolumes
    | CreateSchema | DropSchema | CreateTable | CreateTableLike | DropTable | Insert | ReplaceOn | Delete | Update | Merge
    | Truncate | CopyInto | PutFile | GetFile | RemoveFile | ListFiles
    | DescribeHistory | DescribeDetail | ShowPartitions | Optimize | Reorg | Vacuum | Restore | RefreshTable | ShowCurrent
    | Analyze | AnalyzeTables
)  # fmt: skip
