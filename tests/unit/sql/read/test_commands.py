"""Commands become values with the names and places that were written; what is not answered is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from gateway.errors import GatewayError, Span, UnsupportedError, UserError
from gateway.sql.read.command_nodes import (
    AlterView,
    ColumnDefinition,
    CreateSchema,
    CreateTable,
    CreateView,
    DescribeCatalog,
    DescribeQuery,
    DescribeSchema,
    DescribeTable,
    DropFunction,
    DropSchema,
    DropTable,
    DropView,
    Explain,
    GetFile,
    Insert,
    ListFiles,
    Name,
    PutFile,
    Query,
    RemoveFile,
    Reset,
    SetConf,
    SetTimeZone,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowFunctions,
    ShowSchemas,
    ShowTables,
    ShowTblProperties,
    ShowViews,
    UseCatalog,
    UseSchema,
    ViewColumn,
)
from gateway.sql.read.commands import parse_statement
from gateway.sql.read.datatypes import parse_type
from gateway.sql.read.tree import IntervalLiteral
from gateway.sqltypes import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    StructField,
    array,
    char,
    decimal,
    interval,
    map_of,
    struct,
    varchar,
)


def plain(value: Any) -> Any:
    """Names as dotted text, queries as their text."""
    return str(value) if isinstance(value, Name) else value.text if isinstance(value, Query) else value


def fields(command: Any) -> dict[str, Any]:
    return {name: plain(getattr(command, name)) for name in command.__slots__}


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("USE CATALOG c", UseCatalog, {"name": "c"}),
        ("USE CATALOG 'c d'", UseCatalog, {"name": "c d"}),
        ("SET CATALOG `c`;", UseCatalog, {"name": "c"}),
        ("use a.b", UseSchema, {"name": "a.b", "bare": True}),
        ("USE SCHEMA s", UseSchema, {"name": "s", "bare": False}),
        ("USE DATABASE `x y`", UseSchema, {"name": "x y", "bare": False}),
        ("USE schema", UseSchema, {"name": "schema", "bare": True}),
        ("SET", SetConf, {"key": None, "value": None}),
        ("SET -v", SetConf, {"verbose": True}),
        ("SET spark.sql.ansi.enabled", SetConf, {"key": "spark.sql.ansi.enabled", "value": None}),
        ("SET a.b = it's /x:y\"  -- c", SetConf, {"key": "a.b", "value": "it's /x:y\"  -- c"}),
        ("SET a.b = x y  -- c", SetConf, {"key": "a.b", "value": "x y"}),
        ("set a=", SetConf, {"key": "a", "value": ""}),
        ("SET `a b`=`c;d`", SetConf, {"key": "a b", "value": "c;d"}),
        ("SET TIME ZONE LOCAL", SetTimeZone, {"zone": None, "interval": None}),
        ("SET TIME ZONE 'Europe/Berlin'", SetTimeZone, {"zone": "Europe/Berlin"}),
        ("SET time.zone = x", SetConf, {"key": "time.zone", "value": "x"}),
        ("RESET", Reset, {"key": None}),
        ("RESET a.b", Reset, {"key": "a.b"}),
        ("SHOW CATALOGS LIKE 'a*'", ShowCatalogs, {"pattern": "a*"}),
        ("SHOW DATABASES", ShowSchemas, {"catalog": None, "pattern": None}),
        ("SHOW SCHEMAS IN `c` LIKE 'x'", ShowSchemas, {"catalog": "c", "pattern": "x"}),
        ("SHOW TABLES FROM a.b 'x|y'", ShowTables, {"schema": "a.b", "pattern": "x|y"}),
        ("SHOW VIEWS IN s", ShowViews, {"schema": "s", "pattern": None}),
        ("SHOW COLUMNS IN t FROM s", ShowColumns, {"table": "t", "schema": "s"}),
        ("SHOW FUNCTIONS", ShowFunctions, {"scope": "ALL", "pattern": None}),
        ("SHOW SYSTEM FUNCTIONS LIKE 'a'", ShowFunctions, {"scope": "SYSTEM", "pattern": "a"}),
        ("SHOW TBLPROPERTIES a.t ('k.x')", ShowTblProperties, {"table": "a.t", "key": "k.x"}),
        ("DESCRIBE t", DescribeTable, {"table": "t", "extended": False, "column": None}),
        ("DESC TABLE EXTENDED a.b.t", DescribeTable, {"table": "a.b.t", "extended": True}),
        ("DESC FORMATTED t c.d", DescribeTable, {"table": "t", "extended": True, "column": "c.d"}),
        ("DESCRIBE table", DescribeTable, {"table": "table"}),
        ("DESCRIBE QUERY SELECT 1", DescribeQuery, {"query": "SELECT 1"}),
        ("DESC WITH a AS (SELECT 1) TABLE a", DescribeQuery, {"query": "WITH a AS (SELECT 1) TABLE a"}),
        ("DESCRIBE SCHEMA EXTENDED a.b", DescribeSchema, {"name": "a.b", "extended": True}),
        ("DESC CATALOG c", DescribeCatalog, {"name": "c", "extended": False}),
        ("DROP VIEW IF EXISTS a.v", DropView, {"name": "a.v", "if_exists": True}),
        ("DROP TABLE t PURGE", DropTable, {"name": "t", "if_exists": False}),
        ("DROP SCHEMA IF EXISTS s CASCADE", DropSchema, {"name": "s", "if_exists": True, "cascade": True}),
        ("DROP DATABASE s RESTRICT", DropSchema, {"name": "s", "cascade": False}),
        ("CREATE SCHEMA IF NOT EXISTS a.s COMMENT 'c'", CreateSchema, {"name": "a.s", "if_not_exists": True, "comment": "c"}),
        (
            "CREATE OR REPLACE TEMPORARY VIEW v (a COMMENT 'x', b) COMMENT 'y' AS SELECT 1, 2 ;",
            CreateView,
            {
                "name": "v", "temporary": True, "replace": True, "if_not_exists": False, "comment": "y",
                "columns": (ViewColumn("a", "x"), ViewColumn("b")), "query": "SELECT 1, 2",
            },
        ),
        ("ALTER VIEW a.v AS SELECT 1", AlterView, {"name": "a.v", "query": "SELECT 1"}),
        ("DROP FUNCTION IF EXISTS a.b.f", DropFunction, {"name": "a.b.f", "if_exists": True}),
        ("SHOW CREATE TABLE a.v", ShowCreateTable, {"table": "a.v"}),
        (
            "CREATE VIEW v TBLPROPERTIES ('a' = 'b') COMMENT 'c' WITH SCHEMA COMPENSATION AS SELECT 1",
            CreateView,
            {"name": "v", "comment": "c", "properties": (("a", "b"),), "query": "SELECT 1"},
        ),
        (
            "CREATE VIEW IF NOT EXISTS a.b.v AS (SELECT 1)",
            CreateView,
            {"name": "a.b.v", "temporary": False, "if_not_exists": True, "query": "(SELECT 1)"},
        ),
        (
            "CREATE TABLE t (id BIGINT NOT NULL COMMENT 'k', `x y` STRUCT<a: INT, b: STRING>) USING delta "
            "PARTITIONED BY (id) LOCATION '/p' COMMENT 'c' TBLPROPERTIES ('a.b' = 'c', d.e = 1, f = true)",
            CreateTable,
            {
                "name": "t", "query": None, "partitioned_by": ("id",), "location": "/p", "comment": "c",
                "properties": (("a.b", "c"), ("d.e", "1"), ("f", "true")),
                "columns": (
                    ColumnDefinition(StructField("id", BIGINT, False, "k"), Span(16, 46)),
                    ColumnDefinition(
                        StructField("x y", struct(StructField("a", INT), StructField("b", STRING))), Span(48, 79)
                    ),
                ),
            },
        ),
        (
            "CREATE OR REPLACE TABLE a.t USING DELTA AS SELECT 1 AS x",
            CreateTable,
            {"name": "a.t", "replace": True, "columns": None, "query": "SELECT 1 AS x"},
        ),
        ("CREATE TABLE t AS (SELECT 1)", CreateTable, {"query": "(SELECT 1)", "columns": None}),
        ("INSERT INTO t VALUES (1)", Insert, {"table": "t", "columns": None, "by_name": False, "query": "VALUES (1)"}),
        ("INSERT INTO TABLE a.t BY NAME SELECT 1 AS x", Insert, {"table": "a.t", "by_name": True}),
        ("INSERT INTO t (SELECT 1)", Insert, {"columns": None, "query": "(SELECT 1)"}),
        ("PUT 'a b' INTO '/Volumes/a/b/c/x'", PutFile, {"local": "a b", "path": "/Volumes/a/b/c/x", "overwrite": False}),
        ("put 'f' into 'p' overwrite", PutFile, {"local": "f", "path": "p", "overwrite": True}),
        ("GET 'p' TO 'f'", GetFile, {"local": "f", "path": "p", "span": Span(4, 7)}),
        ("REMOVE 'p'", RemoveFile, {"path": "p"}),
        ("LIST 'p' LIMIT 3", ListFiles, {"path": "p", "limit": 3}),
    ],
)  # fmt: skip
def test_commands(text: str, kind: type, expected: dict[str, Any]) -> None:
    command = parse_statement(text)
    assert type(command) is kind
    found = fields(command)
    assert {name: found[name] for name in expected} == expected


def test_names_and_queries_have_their_place() -> None:
    text = "INSERT INTO  a . t ( x, `y z` )  SELECT 1, 2 -- end"
    command = parse_statement(text)
    assert isinstance(command, Insert)
    assert command.table == Name(("a", "t"), Span(13, 18))
    assert command.columns == (Name(("x",), Span(21, 22)), Name(("y z",), Span(24, 29)))
    assert isinstance(command.query.tree, exp.Select)
    assert text[command.query.span.start : command.query.span.stop] == command.query.text == "SELECT 1, 2"


def test_time_zone_interval() -> None:
    command = parse_statement("SET TIME ZONE INTERVAL '-8:30' HOUR TO MINUTE")
    assert isinstance(command, SetTimeZone) and isinstance(command.interval, IntervalLiteral)
    assert command.interval.args == {"parts": (("-8:30", "HOUR"),), "to": "MINUTE"}


@pytest.mark.parametrize(
    ("text", "mode", "kind"),
    [
        ("EXPLAIN SELECT 1", "simple", Query),
        ("explain extended (select 1)", "extended", Query),
        ("EXPLAIN FORMATTED INSERT INTO t VALUES (1)", "formatted", Insert),
        ("EXPLAIN WITH a AS (SELECT 1) SELECT * FROM a", "simple", Query),
    ],
)
def test_explain_holds_the_inner_statement(text: str, mode: str, kind: type) -> None:
    command = parse_statement(text)
    assert isinstance(command, Explain)
    assert command.mode == mode
    assert type(command.statement) is kind
    inner = command.statement
    query = inner.query if isinstance(inner, Insert) else inner
    assert isinstance(query, Query)
    assert text[query.span.start : query.span.stop] == query.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("VACUUM '/x'", "VACUUM of a path"),
        ("ALTER TABLE t ADD CONSTRAINT c UNIQUE (a)", "ADD CONSTRAINT … UNIQUE"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT ENFORCED", "ADD CONSTRAINT … CHECK … NOT"),
        ("ALTER TABLE t ADD CHECK (a > 0)", "ALTER TABLE … ADD CHECK"),
        ("ALTER TABLE t CHANGE COLUMN c d BIGINT", "CHANGE COLUMN with another name"),
        ("ALTER TABLE t ADD COLUMNS (c INT DEFAULT 1)", "ADD COLUMNS with DEFAULT"),
        ("COMMENT ON CATALOG c IS 'x'", "COMMENT ON CATALOG"),
        ("SHOW TABLE EXTENDED LIKE 't' PARTITION (a = 1)", "SHOW TABLE EXTENDED … PARTITION"),
        ("LIST '/Volumes/a/b/c' WITH (CREDENTIAL x)", "LIST … WITH"),
        ("LIST FILES", "LIST"),
        ("CREATE VOLUME v LOCATION '/x'", "CREATE VOLUME … LOCATION"),
        ("GRANT SELECT ON t TO u", "GRANT"),
        ("CACHE TABLE t", "CACHE TABLE"),
        ("BEGIN SELECT 1; END", "BEGIN … END"),
        ("BEGIN TRANSACTION", "BEGIN"),
        ("WITH a AS (SELECT 1) INSERT INTO t WITH b AS (SELECT 1), A AS (SELECT 2) SELECT * FROM b", "too"),
        ("WITH a AS (SELECT 1) UPDATE a SET x = 1", "WITH"),
        ("WITH a AS (SELECT 1) FROM a INSERT INTO t SELECT 1", "WITH"),
        ("FROM t INSERT INTO u SELECT 1", "FROM"),
        ("COPY INTO t FROM 'x' FILEFORMAT = AVRO", "FILEFORMAT = AVRO"),
        ("EXECUTE IMMEDIATE 'SELECT 1'", "EXECUTE IMMEDIATE"),
        ("DECLARE x INT", "DECLARE"),
        ("SET VARIABLE x = 1", "SET VARIABLE"),
        ("DESCRIBE HISTORY '/x'", "DESCRIBE HISTORY"),
        ("DESC FUNCTION f", "DESC FUNCTION"),
        ("DROP TEMPORARY VARIABLE x", "DROP TEMPORARY VARIABLE"),
        ("ALTER VIEW v UNSET x", "ALTER VIEW … UNSET"),
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", "CREATE FUNCTION"),
        ("CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1", "CREATE GLOBAL TEMPORARY VIEW"),
        ("CREATE TEMPORARY VIEW v USING csv", "CREATE TEMPORARY VIEW … USING"),
        (
            "CREATE TEMP VIEW v(a INT COMMENT 'x', b STRUCT<c: DECIMAL(3, 1)>) USING csv",
            "CREATE TEMPORARY VIEW … USING",
        ),
        ("CREATE TEMPORARY VIEW v USING csv", "USING"),
        ("CREATE EXTERNAL TABLE t (a INT)", "CREATE EXTERNAL TABLE"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "CREATE MATERIALIZED VIEW"),
        ("CREATE TABLE t (a INT) USING parquet", "USING parquet"),
        ("CREATE TABLE t LIKE u LOCATION '/x'", "LOCATION"),
        ("CREATE TABLE t (a INT) CLUSTER BY AUTO", "CLUSTER BY AUTO"),
        ("CREATE TABLE t (a INT, CONSTRAINT p UNIQUE (a))", "UNIQUE"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a TIMESERIES))", "TIMESERIES"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (years(a))", "years"),
        ("CREATE TABLE t (a INT) SHALLOW CLONE u", "SHALLOW"),
        ("INSERT OVERWRITE LOCAL DIRECTORY '/x' SELECT 1", "DIRECTORY"),
        ("CREATE SCHEMA s LOCATION '/x'", "LOCATION"),
        ("CREATE VIEW v AS SELECT a COLLATE x", "COLLATE"),
    ],
)
def test_what_is_not_answered_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse_statement(text)
    assert words in caught.value.message
    assert caught.value.sqlstate == "0A000"
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("SET a b = c", "INVALID_SET_SYNTAX"),
        ("RESET a b", "INVALID_RESET_COMMAND_FORMAT"),
        ("SHOW TABLES x", "PARSE_SYNTAX_ERROR"),
        ("DESCRIBE EXTENDED t AS JSON x", "PARSE_SYNTAX_ERROR"),
        ("USE", "PARSE_SYNTAX_ERROR"),
        ("USE a.b.c", "PARSE_SYNTAX_ERROR"),
        ("DROP TABLE t u", "PARSE_SYNTAX_ERROR"),
        ("CREATE VIEW v SELECT 1", "PARSE_SYNTAX_ERROR"),
        ("CREATE OR REPLACE VIEW IF NOT EXISTS v AS SELECT 1", "PARSE_SYNTAX_ERROR"),
        ("CREATE TABLE t (a INT) COMMENT 'a' COMMENT 'b'", "DUPLICATE_CLAUSES"),
        ("CREATE TABLE t (a INT, A INT)", "COLUMN_ALREADY_EXISTS"),
        ("CREATE TABLE t (a INT", "PARSE_SYNTAX_ERROR"),
        ("CREATE TABLE t (a)", "PARSE_SYNTAX_ERROR"),
        ("INSERT t VALUES (1)", "PARSE_SYNTAX_ERROR"),
        ("INSERT INTO t", "PARSE_SYNTAX_ERROR"),
        ("EXPLAIN", "PARSE_SYNTAX_ERROR"),
        ("EXPLAIN EXPLAIN SELECT 1", "PARSE_SYNTAX_ERROR"),
        ("SET TIME ZONE 1", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_bad_commands(text: str, condition: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_statement(text)
    assert caught.value.condition == condition


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("integer", INT),
        ("LONG", BIGINT),
        ("byte", TINYINT),
        ("short", SMALLINT),
        ("real", FLOAT),
        ("double", DOUBLE),
        ("dec", decimal(10, 0)),
        ("NUMERIC(5)", decimal(5, 0)),
        ("decimal(38, 38)", decimal(38, 38)),
        ("char(3)", char(3)),
        ("VARCHAR(10)", varchar(10)),
        ("string collate UTF8_BINARY", STRING),
        ("timestamp_ltz", TIMESTAMP),
        ("TIMESTAMP WITHOUT TIME ZONE", TIMESTAMP_NTZ),
        ("interval year to month", interval("year", "month")),
        ("INTERVAL HOUR", interval("hour")),
        ("array<map<string, array<int>>>", array(map_of(STRING, array(INT)))),
        ("struct<>", struct()),
        (
            "STRUCT<a: INT NOT NULL COMMENT 'x', `b c` array<struct<d:string>>>",
            struct(
                StructField("a", INT, False, "x"),
                StructField("b c", array(struct(StructField("d", STRING)))),
            ),
        ),
    ],
)
def test_types(text: str, expected: Any) -> None:
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("GEOMETRY(ANY)", "UNSUPPORTED_DATATYPE"),
        ("TIMESTAMP_NTZ(9)", "UNSUPPORTED_DATATYPE"),
        ("interval", "UNSUPPORTED_DATATYPE"),
        ("string collate UNICODE", "UNSUPPORTED_DATATYPE"),
        ("decimal(39)", "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"),
        ("decimal(3, 5)", "UNSUPPORTED_DATATYPE"),
        ("varchar", "DATATYPE_MISSING_SIZE"),
        ("array", "INCOMPLETE_TYPE_DEFINITION.ARRAY"),
        ("interval month to year", "PARSE_SYNTAX_ERROR"),
        ("int int", "PARSE_SYNTAX_ERROR"),
        ("array<int", "PARSE_SYNTAX_ERROR"),
        ("", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_refused_types(text: str, condition: str) -> None:
    with pytest.raises(GatewayError) as caught:
        parse_type(text)
    assert caught.value.condition == condition
