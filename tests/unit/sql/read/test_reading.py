"""Which statements only read: queries, SHOW, DESCRIBE, EXPLAIN of such. All others are refused by name."""

from __future__ import annotations

import pytest

from gateway.errors import GatewayError, UserError
from gateway.sql.read.reading import check_reads
from gateway.sql.read.statement import read_statement

READING = [
    "SELECT 1",
    "  /* INSERT INTO t */ SELECT 'DELETE FROM t' -- DROP TABLE t",
    "VALUES (1), (2);;",
    "TABLE t",
    "FROM t SELECT x",
    "FROM t |> WHERE x > 1",
    "((SELECT 1) UNION (SELECT 2))",
    "(WITH a AS (SELECT 1) SELECT * FROM a)",
    "WITH a AS (SELECT 1), b (x) AS (SELECT 2) SELECT * FROM a, b",
    "WITH `INSERT` AS (SELECT 1 AS `delete`) SELECT `delete` FROM `INSERT`",
    "SELECT insert, update, delete, merge FROM t",
    "SELECT * FROM t WHERE x IN (SELECT y FROM u) LIMIT 3",
    "SHOW TABLES",
    "SHOW CREATE TABLE t",
    "SHOW TBLPROPERTIES t",
    "DESCRIBE t",
    "DESC EXTENDED t",
    "DESCRIBE HISTORY t",
    "DESCRIBE QUERY SELECT 1",
    "DESCRIBE FUNCTION upper",
    "EXPLAIN SELECT 1",
    "EXPLAIN EXTENDED WITH a AS (SELECT 1) SELECT * FROM a",
    "EXPLAIN SHOW TABLES",
    "EXPLAIN FORMATTED FROM t SELECT x",
    "EXPLAIN ANALYZE SELECT 1",
    "LIST '/Volumes/a/b/c'",
]
# The word that the refusal names.
DOING = {
    "INSERT INTO t VALUES (1)": "INSERT",
    "insert overwrite t select 1": "INSERT",
    "/* SELECT */ INSERT INTO t SELECT 1": "INSERT",
    "-- SELECT 1\nDELETE FROM t": "DELETE",
    "UPDATE t SET x = 1": "UPDATE",
    "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE": "MERGE",
    "TRUNCATE TABLE t": "TRUNCATE",
    "PUT 'x' INTO '/Volumes/a/b/c/x'": "PUT",
    "GET '/Volumes/a/b/c/x' TO 'x'": "GET",
    "REMOVE '/Volumes/a/b/c/x'": "REMOVE",
    "EXPLAIN REMOVE '/Volumes/a/b/c/x'": "REMOVE",
    "COPY INTO t FROM 'x'": "COPY",
    "LOAD DATA INPATH 'x' INTO TABLE t": "LOAD",
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a": "INSERT",
    "WITH a (SELECT 1) INSERT INTO t SELECT * FROM a": "INSERT",
    "WITH a(x) AS (SELECT 1), b AS (SELECT 2) INSERT OVERWRITE t SELECT * FROM a": "INSERT",
    "WITH RECURSIVE a MAX RECURSION LEVEL 3 AS (SELECT 1) INSERT INTO t TABLE a": "INSERT",
    "WITH a AS (SELECT 1) DELETE FROM t WHERE x IN (TABLE a)": "DELETE",
    "WITH a AS (SELECT 1) UPDATE t SET x = 1": "UPDATE",
    "WITH a AS (SELECT 1) MERGE INTO t USING a ON true WHEN MATCHED THEN DELETE": "MERGE",
    "WITH a AS (SELECT 1) FROM a INSERT INTO t SELECT *": "INSERT",
    "FROM t INSERT INTO u SELECT x INSERT INTO v SELECT y": "INSERT",
    "FROM (SELECT 1) INSERT OVERWRITE DIRECTORY 'x' SELECT *": "INSERT",
    "CREATE TABLE t AS SELECT 1": "CREATE",
    "CREATE TEMPORARY VIEW v AS SELECT 1": "CREATE",
    "CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN 1": "CREATE",
    "REPLACE TABLE t AS SELECT 1": "REPLACE",
    "DROP TABLE t": "DROP",
    "ALTER TABLE t ADD COLUMN x INT": "ALTER",
    "COMMENT ON TABLE t IS 'x'": "COMMENT",
    "OPTIMIZE t": "OPTIMIZE",
    "VACUUM t": "VACUUM",
    "RESTORE TABLE t TO VERSION AS OF 1": "RESTORE",
    "ANALYZE TABLE t COMPUTE STATISTICS": "ANALYZE",
    "REFRESH TABLE t": "REFRESH",
    "CACHE TABLE c AS SELECT 1": "CACHE",
    "ADD JAR 'x'": "ADD",
    "LIST JARS": "LIST",
    "SET": "SET",
    "SET x = 1": "SET",
    "SET `x;y` = 'SELECT 1'": "SET",
    "SET TIME ZONE 'UTC'": "SET",
    "SET VAR x = 1": "SET",
    "RESET": "RESET",
    "USE main": "USE",
    "DECLARE x INT": "DECLARE",
    "CALL p()": "CALL",
    "EXECUTE IMMEDIATE 'SELECT 1'": "EXECUTE",
    "BEGIN SELECT 1; END": "BEGIN",
    "BEGIN INSERT INTO t VALUES (1); END": "BEGIN",
    "BEGIN TRANSACTION": "BEGIN",
    "START TRANSACTION": "START",
    "COMMIT": "COMMIT",
    "GRANT SELECT ON t TO u": "GRANT",
    "EXPLAIN INSERT INTO t VALUES (1)": "INSERT",
    "EXPLAIN EXTENDED DELETE FROM t": "DELETE",
    "EXPLAIN CREATE TABLE t AS SELECT 1": "CREATE",
    "EXPLAIN WITH a AS (SELECT 1) INSERT INTO t TABLE a": "INSERT",
    "EXPLAIN SET x = 1": "SET",
    "EXPLAIN ANALYZE INSERT INTO t VALUES (1)": "INSERT",
    "EXPLAIN ANALYZE TABLE t COMPUTE STATISTICS": "ANALYZE",
    "EXPLAIN EXPLAIN DROP TABLE t": "DROP",
}
# What no statement is, is refused as such.
NEITHER = [
    "SELECT 1; DROP TABLE t",
    "SELECT 1;INSERT INTO t VALUES (1);",
    ";INSERT INTO t VALUES (1)",
    "/* SELECT 1",
    "(INSERT INTO t VALUES (1))",
    "(WITH a AS (SELECT 1)) INSERT INTO t TABLE a; SELECT 1",
    "EXPLAIN ANALYZE_NOTHING SELECT 1",
    "EXPLAIN",
    "",
]


@pytest.mark.parametrize("text", READING)
def test_what_only_reads_may_run(text: str) -> None:
    check_reads(read_statement(text))


@pytest.mark.parametrize(("text", "word"), DOING.items())
def test_what_does_more_is_refused_by_name(text: str, word: str) -> None:
    with pytest.raises(UserError) as caught:
        check_reads(read_statement(text))
    assert (caught.value.condition, caught.value.sqlstate) == ("NOT_READ_ONLY", "25006")
    assert caught.value.message.startswith(f"{word} does more than read")
    span = caught.value.span
    assert span is not None and text[span.start : span.stop].upper() == word


@pytest.mark.parametrize("text", NEITHER)
def test_what_is_no_statement_does_not_run_either(text: str) -> None:
    with pytest.raises(GatewayError) as caught:
        check_reads(read_statement(text))
    assert caught.value.condition.startswith(("PARSE_", "UNCLOSED_"))
