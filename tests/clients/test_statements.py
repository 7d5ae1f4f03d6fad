"""The statements that each program sends of its own accord, as it writes them: all run without Spark, or fail in its words."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import Server

SHOW_TABLES = ("database", "tableName", "isTemporary")
SHOW_ALL_TABLES = ("namespace", "tableName", "isTemporary", "information", "catalogName", "tableType", "remarks")
DESCRIBED = ("col_name", "data_type", "comment")
RESULT = ("Result",)


@dataclass(frozen=True)
class Fails:
    """A statement that is refused, with what its client looks for in the words."""

    words: str
    state: str


@dataclass(frozen=True)
class Gives:
    """The whole answer: names and rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def _quoted(number: int) -> str:
    return f"'v{number}'"


# Client: what it sends, {s} being a schema with the table t (id INT, v STRING) of two rows and the view w, and what is due:
# names of columns (() for any), the whole answer, or a failure.
STATEMENTS: dict[str, list[tuple[str, tuple[str, ...] | Fails | Gives]]] = {
    "databricks-sql-connector": [
        ("select 0", Gives(("0",), [(0,)])),
        ("SELECT 1;", Gives(("1",), [(1,)])),
        ("SELECT '数据砖'", Gives(("数据砖",), [("数据砖",)])),
        ("SELECT * FROM RANGE(10 * 16) WHERE id > 158;", Gives(("id",), [(159,)])),
        ("SELECT NULL UNION (SELECT 1) order by 1", Gives(("NULL",), [(None,), (1,)])),
        ("SELECT 'you\\'re' AS t WHERE 'you\\'re' LIKE 'you\\'%'", Gives(("t",), [("you're",)])),
        ("SELECT 1 FROM", Gives(("FROM",), [(1,)])),
        ("SET QUERY_TAGS", ("key", "value")),
        ("USE CATALOG nowhere", Fails("nowhere", "42704")),
        ("^ FOO BAR", Fails("PARSE_SYNTAX_ERROR", "42601")),
        ("CREATE TABLE IF NOT EXISTS TABLE x", Fails("PARSE_SYNTAX_ERROR", "42601")),
        ("COMMIT", Fails("COMMIT is not supported", "0A000")),
        ("BEGIN TRANSACTION", Fails("BEGIN TRANSACTION is not supported. SQLSTATE", "0A000")),  # Spark has none, either
    ],
    "databricks-sqlalchemy": [
        ("SHOW SCHEMAS", ("databaseName",)),
        ("SHOW TABLES FROM `main`.`{s}`", SHOW_TABLES),
        ("SHOW VIEWS FROM `main`.`{s}`", ("namespace", "viewName", "isTemporary")),
        ("DESCRIBE TABLE EXTENDED `main`.`{s}`.`t`", DESCRIBED),
        ("DESCRIBE TABLE EXTENDED `main`.`{s}`.`none`", Fails("TABLE_OR_VIEW_NOT_FOUND", "42P01")),
        (
            "CREATE TABLE {s}.made (\n\tid BIGINT NOT NULL, \n\tv STRING COMMENT 'c'\n) USING DELTA\n"
            "TBLPROPERTIES('delta.feature.allowColumnDefaults' = 'enabled')\n\n",
            RESULT,
        ),
    ],
    "Superset": [
        ("SHOW CATALOGS", ("catalog",)),
        ("SELECT current_catalog()", Gives(("current_catalog()",), [("main",)])),
        ("USE CATALOG `main`", RESULT),
        ("USE SCHEMA `{s}`", RESULT),
        ("SHOW TABLES IN {s} LIKE 't*'", SHOW_TABLES),
        ("SHOW PARTITIONS {s}.parted", ("p",)),
        ("REFRESH TABLE {s}.t", RESULT),
        ("REFRESH TABLE {s}.w", RESULT),
        ("REFRESH TABLE {s}.none", Fails("TABLE_OR_VIEW_NOT_FOUND", "42P01")),
        ("SHOW FUNCTIONS", ("function",)),
        (
            "SELECT date_trunc('MONTH', d) AS d, count(*) AS `COUNT(*)` FROM (SELECT DATE'2024-05-06' AS d) AS virtual_table "
            "GROUP BY date_trunc('MONTH', d) ORDER BY `COUNT(*)` DESC LIMIT 1001",
            ("d", "COUNT(*)"),
        ),
    ],
    "ibis": [
        ("SELECT CURRENT_CATALOG()", ("current_catalog()",)),
        ("SELECT CURRENT_DATABASE()", ("current_schema()",)),
        ("CREATE VOLUME IF NOT EXISTS `{s}`.`memory` COMMENT 'Ibis memtable storage volume'", RESULT),
        ("CREATE TEMPORARY VIEW ibis_view AS SELECT * FROM {s}.t", RESULT),
        ("DESCRIBE EXTENDED ibis_view AS JSON", ("json_metadata",)),
        ("DROP VIEW IF EXISTS ibis_view", RESULT),
        ("DESCRIBE SELECT 1 AS x", DESCRIBED),
        ("SELECT CURRENT_VERSION()", ("current_version()",)),
    ],
    "sqlmesh": [
        ("/* SQLMESH_PLAN: 0f */ CREATE SCHEMA IF NOT EXISTS `main`.`{s}`", RESULT),
        (
            "SELECT CASE WHEN table_type = 'VIEW' THEN 'view' ELSE 'table' END AS type FROM system.information_schema.tables "
            "WHERE table_schema = '{s}' AND table_name = 'w'",
            Gives(("type",), [("view",)]),
        ),
        ("CREATE TABLE IF NOT EXISTS `main`.`{s}`.`m` AS SELECT CAST(`id` AS INT) AS `id` FROM {s}.t", ()),
        (
            "INSERT INTO `main`.`{s}`.`m` REPLACE WHERE `id` BETWEEN 1 AND 9 SELECT 5",
            ("num_affected_rows", "num_inserted_rows"),
        ),
        ("SELECT `id` FROM {s}.m WHERE TRUE AND FALSE LIMIT 0", Gives(("id",), [])),
        ("CREATE OR REPLACE VIEW `main`.`{s}`.`v` (`id`) AS SELECT `id` FROM {s}.m", RESULT),
    ],
    "dbt-databricks": [
        ('/* {{"app": "dbt", "node_id": "x"}} */\n\nselect 1 as id\n  ', Gives(("id",), [(1,)])),
        ("create schema if not exists `main`.`{s}`\n", RESULT),
        ("select * from (select 1 as a) as __dbt_sbq where false limit 0", Gives(("a",), [])),
        ("DESCRIBE TABLE EXTENDED `main`.`{s}`.`t` AS JSON", ("json_metadata",)),
        ("COMMENT ON COLUMN `main`.`{s}`.`t`.`id` IS 'key'", RESULT),
        ("SHOW TBLPROPERTIES `main`.`{s}`.`t`", ("key", "value")),
        ("SHOW TABLE EXTENDED IN `main`.`{s}` LIKE 't|w'", (*SHOW_TABLES, "information")),
        ("SET spark.databricks.clusterUsageTags.sparkVersion", ("key", "value")),
        ("describe extended `main`.`{s}`.`none`", Fails("[TABLE_OR_VIEW_NOT_FOUND]", "42P01")),
        ("show tables in `main`.`nowhere`", Fails("SCHEMA_NOT_FOUND", "42704")),
        ("ALTER table `main`.`{s}`.`t` SET TAGS ( 'a' = 'b' )", Fails("SET TAGS is not supported. SQLSTATE", "0A000")),
        (
            "ALTER TABLE `main`.`{s}`.`t`\nALTER COLUMN `id`\nSET TAGS ( 'a' = 'b' )",
            Fails("ALTER COLUMN … SET TAGS is not supported. SQLSTATE", "0A000"),
        ),
    ],
    "dbt-spark": [
        ("USE `default`", RESULT),
        ("show databases", ("databaseName",)),
        ("create schema if not exists {s}", RESULT),
        ("show table extended in {s} like '*'", (*SHOW_TABLES, "information")),
        ("describe extended {s}.t", DESCRIBED),
        ("insert into {s}.t values (cast(1.0 as bigint), 'x')", ("num_affected_rows", "num_inserted_rows")),
        ("drop table if exists {s}.none", RESULT),
    ],
    "ADBC Go": [
        ("SELECT current_schema()", ("current_schema()",)),
        ("SHOW CATALOGS LIKE 'ma*'", Gives(("catalog",), [("main",)])),
        ("SHOW SCHEMAS IN `main` LIKE '{s}'", Gives(("databaseName",), [("{s}",)])),
        ("SHOW TABLES IN `main`.`{s}` LIKE 't'", Gives(SHOW_TABLES, [("{s}", "t", False)])),
        (
            "SELECT DISTINCT c.TABLE_NAME, c.ordinal_position, c.COLUMN_NAME, c.DATA_TYPE, c.IS_NULLABLE "
            "FROM `main`.information_schema.COLUMNS c WHERE c.TABLE_SCHEMA='{s}' AND c.TABLE_NAME LIKE 't' "
            "ORDER BY c.TABLE_NAME, c.ordinal_position",
            ("TABLE_NAME", "ordinal_position", "COLUMN_NAME", "DATA_TYPE", "IS_NULLABLE"),
        ),
        ("DROP TABLE IF EXISTS `{s}`.`ingested`", RESULT),
        ("CREATE TABLE `{s}`.`ingested` (`b` BINARY)", RESULT),
        ("INSERT INTO `{s}`.`ingested` VALUES (UNHEX('f000'))", ("num_affected_rows", "num_inserted_rows")),
    ],
    "Databricks JDBC, ADBC C#": [
        ("SHOW CATALOGS", ("catalog",)),
        ("SHOW SCHEMAS IN `main` LIKE '{s}'", ("databaseName",)),
        ("SHOW TABLES IN CATALOG `main` SCHEMA LIKE '{s}' LIKE '*'", SHOW_ALL_TABLES),
        ("SHOW TABLES IN ALL CATALOGS SCHEMA LIKE '{s}'", SHOW_ALL_TABLES),
        ("SHOW TABLES IN CATALOG `main` SCHEMA LIKE '{s}' LIKE '.'", SHOW_ALL_TABLES),
        ("SHOW COLUMNS IN CATALOG `main` SCHEMA LIKE '{s}' TABLE LIKE 't' LIKE 'i*'", ()),
        ("SHOW FUNCTIONS IN CATALOG `main` SCHEMA LIKE '*' LIKE 'add_*'", ()),
        (
            "SHOW KEYS IN CATALOG `main` IN SCHEMA `{s}` IN TABLE `t`",
            ("catalogName", "namespace", "tableName", "col_name", "keySeq", "constraintName"),
        ),
        ("SHOW FOREIGN KEYS IN CATALOG `main` IN SCHEMA `{s}` IN TABLE `t`", ()),
        ("SET CATALOG `main`", RESULT),
        ("USE SCHEMA `{s}`", RESULT),
        ("DESC TABLE EXTENDED `main`.`{s}`.`t` AS JSON", ("json_metadata",)),
        ("DESC TABLE EXTENDED `main`.`{s}`.`none` AS JSON", Fails("TABLE_OR_VIEW_NOT_FOUND", "42P01")),
    ],
    "Power BI, Tableau": [
        (
            "select `v`, count(1) as `C1` from (select `id`, `v` from `main`.`{s}`.`t`) as `ITBL` group by `v` limit 1000001",
            ("v", "C1"),
        ),
        ("SELECT * FROM `{s}`.`t` LIMIT 0", Gives(("id", "v"), [])),
        ("SELECT * FROM (SELECT id FROM `{s}`.`t`) `Custom SQL Query` WHERE 1=0", Gives(("id",), [])),
        ("SELECT 1 AS `one`, COUNT(1) AS `n` FROM `{s}`.`parted` GROUP BY 1", Gives(("one", "n"), [])),
    ],
    "Metabase": [
        ("set legacy_time_parser_policy = legacy", Fails("only 'corrected' is", "0A000")),  # Spark honours it
        ("SET TIME ZONE 'Europe/Amsterdam'", ("key", "value")),
        ("select current_timezone()", Gives(("current_timezone()",), [("Europe/Amsterdam",)])),
        (
            "select table_name, comment from information_schema.tables where table_schema = '{s}'",
            ("table_name", "comment"),
        ),
        ("select full_data_type from information_schema.columns where table_schema = '{s}' and table_name = 't'", ()),
        (
            "select kcu.column_name from information_schema.key_column_usage kcu join "
            "information_schema.referential_constraints rc on kcu.constraint_name = rc.constraint_name",
            Gives(("column_name",), []),
        ),
        ("show tables", SHOW_TABLES),
        ("describe `{s}`.`t`", DESCRIBED),
    ],
    "DBeaver": [
        ("SHOW VIEWS IN {s}", ("namespace", "viewName", "isTemporary")),
        ("SHOW CREATE TABLE main.{s}.t", ("createtab_stmt",)),
        ("SHOW TABLES DROPPED IN {s}", Fails("SHOW TABLES DROPPED is not supported", "0A000")),
        ("SHOW SCHEMAS DROPPED", Fails("SHOW SCHEMAS DROPPED is not supported", "0A000")),
        ("DESCRIBE SCHEMA EXTENDED {s}", ("database_description_item", "database_description_value")),
        ("DESCRIBE TABLE EXTENDED main.{s}.t", DESCRIBED),
    ],
    "whatever writes SQL into files": [
        ("SELECT\r\n\t1 AS x -- c\r\n;\r\n", Gives(("x",), [(1,)])),
        ("SELECT 1 AS x;;", Gives(("x",), [(1,)])),
        ("/* a /* in */ it */ -- b\nSELECT 1 AS x; -- done", Gives(("x",), [(1,)])),
        ("\u00a0SELECT\u20031\u00a0AS x\u3000", Gives(("x",), [(1,)])),
        ("\ufeffSELECT 1 AS x", Fails("PARSE_SYNTAX_ERROR", "42601")),  # as Spark has it
        ("-- nothing\r\n", Fails("PARSE_EMPTY_STATEMENT", "42617")),
        ("SELECT 1; SELECT 2", Fails("only one statement", "42601")),
        (
            f"SELECT count(*) AS n FROM range(9999) WHERE id IN ({', '.join(map(str, range(5000)))})",
            Gives(("n",), [(5000,)]),
        ),
        (
            f"SELECT count(*) AS n FROM range(9999) WHERE concat('v', id) NOT IN ({', '.join(map(_quoted, range(5000)))})",
            Gives(("n",), [(4999,)]),
        ),
        (
            "SELECT a.r_name, t.id FROM samples.tpch.region a JOIN main.{s}.t AS t ON t.id = a.r_regionkey WHERE id = 1",
            ("r_name", "id"),
        ),
    ],
    "Spark's own tools": [
        ("SHOW CURRENT NAMESPACE", Gives(("catalog", "namespace"), [("main", "default")])),
        ("SHOW CURRENT DATABASE", ("catalog", "namespace")),
    ],
    "Hive JDBC": [
        ("use {s}", RESULT),
        ("SELECT current_database()", Gives(("current_schema()",), [("{s}",)])),
        ("SELECT 'a\\'b', \"c\"", Gives(("a'b", "c"), [("a'b", "c")])),
    ],
    "PyHive": [
        ("SHOW SCHEMAS", ("databaseName",)),
        ("SHOW TABLES IN `{s}`", SHOW_TABLES),
        ("DESCRIBE {s}.parted", DESCRIBED),
    ],
}


@pytest.fixture(scope="module")
def schema(server: Server) -> Iterator[str]:
    """A schema with what the statements ask about."""
    name = f"said_{uuid.uuid4().hex[:8]}"
    with Client(server.thrift_url).open() as client:
        for statement in (
            f"CREATE SCHEMA {name}",
            f"CREATE TABLE {name}.t AS SELECT CAST(id AS INT) AS id, 'x' AS v FROM range(2)",
            f"CREATE VIEW {name}.w AS SELECT * FROM {name}.t",
            f"CREATE TABLE {name}.parted (a INT, p STRING) USING DELTA PARTITIONED BY (p)",
        ):
            client.execute(statement).close()
        yield name
        client.execute(f"DROP SCHEMA {name} CASCADE").close()


def answer(client: Client, statement: str) -> Gives | Fails:
    """What became of a statement."""
    try:
        result = client.execute(statement)
    except RemoteError as error:
        return Fails(str(error), error.sqlstate or "")
    columns = tuple(result.columns)
    if result.metadata.resultFormat != ttypes.TSparkRowSetType.ARROW_BASED_SET or result.arrow_schema.names == []:
        result.close()
        return Gives(columns, [])
    return Gives(
        columns, [tuple(column.as_py() for column in row) for row in zip(*result.table().columns, strict=True)]
    )


@pytest.mark.parametrize("program", STATEMENTS)
def test_what_a_program_sends_of_its_own_accord(server: Server, schema: str, program: str) -> None:
    wrong = []
    with Client(server.thrift_url).open(schema="default") as client:
        for text, due in STATEMENTS[program]:
            statement = text.format(s=schema) if "{s}" in text or "{{" in text else text
            got = answer(client, statement)
            if isinstance(due, Fails):
                good = isinstance(got, Fails) and got.state == due.state and due.words in got.words
            elif isinstance(due, Gives):
                rows = [tuple(v.format(s=schema) if isinstance(v, str) else v for v in row) for row in due.rows]
                good = got == Gives(due.columns, rows)
            else:
                good = isinstance(got, Gives) and due in ((), got.columns)
            if not good:
                wrong.append((statement, got))
    assert wrong == []
