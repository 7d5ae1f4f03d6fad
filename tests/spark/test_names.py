"""Names and versions: Spark sees the gateway's tables as they are now, under the gateway's names."""

from __future__ import annotations

import pytest

from tests.live.gateway import Server
from tests.live.spark import Sql

pytestmark = pytest.mark.spark


def test_a_table_that_is_made_anew_is_never_stale(sql: Sql) -> None:
    for round_ in range(4):
        sql.embedded(f"CREATE TABLE anew AS SELECT id + {round_} AS a{round_ % 2} FROM range({round_ + 1})")
        assert sql.spark("SELECT * FROM anew ORDER BY 1") == [(i + round_,) for i in range(round_ + 1)]
        sql.embedded("DROP TABLE anew")
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            sql.spark("SELECT * FROM anew")


def test_a_table_that_is_replaced_in_its_folder_is_never_stale(sql: Sql) -> None:
    for round_ in range(3):
        sql.embedded(f"CREATE OR REPLACE TABLE again AS SELECT {round_} AS a{round_} FROM range(3)")
        assert sql.spark(f"SELECT a{round_} FROM again") == [(round_,)] * 3
        sql.spark(f"CREATE OR REPLACE TABLE again AS SELECT {round_} AS b{round_} FROM range(2)")
        assert sql.embedded(f"SELECT b{round_} FROM again") == [(round_,)] * 2


def test_commits_are_seen_at_once_both_ways(sql: Sql) -> None:
    sql.embedded("CREATE OR REPLACE TABLE both_ways AS SELECT 0 AS n")
    for i in range(1, 5):
        (sql.embedded if i % 2 else sql.spark)(f"INSERT INTO both_ways VALUES ({i})")
        expected = [(sum(range(i + 1)), i + 1)]
        assert sql.spark("SELECT sum(n), count(*) FROM both_ways") == expected
        assert sql.embedded("SELECT sum(n), count(*) FROM both_ways") == expected


def test_time_travel(sql: Sql) -> None:
    sql.embedded("CREATE OR REPLACE TABLE travel AS SELECT 1 AS n")
    history = sql.spark("DESCRIBE HISTORY travel")
    version, moment = history[0][0], history[0][1]
    sql.embedded("INSERT INTO travel VALUES (2)")
    for text in (
        f"SELECT sum(n) FROM travel VERSION AS OF {version}",
        f"SELECT sum(n) FROM main.default.travel@v{version}",
        f"SELECT sum(n) FROM travel TIMESTAMP AS OF '{moment:%Y-%m-%d %H:%M:%S.%f}'",
    ):
        assert sql.spark(text) == [(1,)], text
    assert sql.spark("SELECT sum(n) FROM travel") == [(3,)]


def test_names_of_one_two_and_three_parts_in_both_catalogs(sql: Sql) -> None:
    sql.embedded("CREATE SCHEMA IF NOT EXISTS Names")
    sql.embedded("CREATE OR REPLACE TABLE names.t AS SELECT 1 AS id, CAST(named_struct('x', 5) AS STRUCT<x: INT>) AS s")
    for name in ("names.t", "main.names.t", "Main.NAMES.T", "`main`.`names`.`t`"):
        assert sql.spark(f"SELECT id, {name}.id, {name}.s.x FROM {name}") == [(1, 1, 5)]
    sql.spark("CREATE TABLE IF NOT EXISTS main.names.made AS SELECT 7 AS n")
    assert sql.embedded("SELECT n FROM names.made") == [(7,)]
    sql.auto("USE main.names")
    assert sql.spark("SELECT t.id FROM t") == [(1,)]
    schema, table = sql.embedded("SHOW SCHEMAS IN samples")[0][0], ""
    table = sql.embedded(f"SHOW TABLES IN samples.{schema}")[0][1]
    expected = sql.embedded(f"SELECT count(*) FROM samples.{schema}.{table}")
    assert sql.spark(f"SELECT count(*) FROM samples.{schema}.{table}") == expected
    sql.auto(f"USE samples.{schema}")
    for name in (table, f"{schema}.{table}", f"samples.{schema}.{table}", f"({schema}.{table})"):
        assert sql.spark(f"SELECT count(*) FROM {name}") == expected
    assert sql.spark("SELECT id FROM main.names.t") == [(1,)]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql.spark("SELECT * FROM names.t")  # main's, which the catalog samples does not have


def test_describe_detail_tells_the_gateways_name(sql: Sql) -> None:
    sql.embedded("CREATE OR REPLACE TABLE detailed AS SELECT 1 AS n")
    assert sql.spark("DESCRIBE DETAIL detailed")[0][2] == "main.default.detailed"
    assert sql.spark("SELECT detail, name FROM (SELECT 1 AS detail, 'spark_catalog.x' AS name)") == [
        (1, "spark_catalog.x")
    ]


@pytest.mark.parametrize("name", ["nope", "default.nope", "main.default.nope", "samples.nope.t", "nope.default.t"])
def test_errors_name_the_gateways_names(sql: Sql, name: str) -> None:
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND") as raised:
        sql.spark(f"SELECT * FROM {name}")
    text = str(raised.value)
    assert "spark_catalog" not in text and "__samples__" not in text and "42P01" in text


def test_errors_about_samples_name_samples(sql: Sql) -> None:
    schema = sql.embedded("SHOW SCHEMAS IN samples")[0][0]
    table = sql.embedded(f"SHOW TABLES IN samples.{schema}")[0][1]
    for text in (
        f"SELECT nope FROM samples.{schema}.{table}",
        f"SELECT samples.{schema}.{table}.nope FROM samples.{schema}.{table}",
        f"SELECT * FROM samples.{schema}.{table} VERSION AS OF 12345",
        f"SELECT * FROM samples.{schema}.nope",
    ):
        with pytest.raises(Exception, match="SQLSTATE") as raised:
            sql.spark(text)
        assert "spark_catalog" not in str(raised.value) and "__samples__" not in str(raised.value)


def test_nothing_is_written_to_samples_or_to_paths(sql: Sql, spark_server: Server) -> None:
    schema = sql.embedded("SHOW SCHEMAS IN samples")[0][0]
    table = sql.embedded(f"SHOW TABLES IN samples.{schema}")[0][1]
    name = f"samples.{schema}.{table}"
    folder = spark_server.warehouse / "default" / "forbidden"
    for text in (
        f"DELETE FROM {name}",
        f"OPTIMIZE {name}",
        f"VACUUM {name}",
        f"RESTORE {name} TO VERSION AS OF 0",
        f"ALTER TABLE {name} ADD COLUMN x INT",
        f"CREATE TABLE samples.{schema}.n AS SELECT 1 AS a",
        f"INSERT INTO __samples__{schema}.{table} SELECT * FROM {name}",
        f"INSERT INTO delta.`{folder}` SELECT 1",
        f"CREATE TABLE delta.`{folder}` AS SELECT 1 AS a",
        f"INSERT OVERWRITE DIRECTORY '{folder}' USING parquet SELECT 1",
        f"INSERT OVERWRITE DIRECTORY USING parquet OPTIONS (path '{folder}') SELECT 1",
        f"CREATE TABLE forbidden (a INT) OPTIONS (path '{folder}x')",
        f"VACUUM '{folder}'",
    ):
        with pytest.raises(Exception, match="SQLSTATE"):
            sql.spark(text)
        assert not folder.exists(), text


def test_files_outside_of_the_allowed_folders_cannot_be_read(sql: Sql, spark_server: Server) -> None:
    secret = spark_server.log.parent / "secret.txt"
    secret.write_text("a secret\n")
    allowed = spark_server.log.parent / "files"
    sql.embedded("CREATE OR REPLACE TABLE allowed AS SELECT 1 AS a")
    for text in (
        f"SELECT * FROM text.`{secret}`",
        f"SELECT * FROM (text.`{secret}`)",
        f"SELECT * FROM text.`{allowed}/../secret.txt`",
        f"SELECT * FROM text.`file:{secret}`",
        f"SELECT * FROM `org.apache.spark.sql.execution.datasources.text`.`{secret}`",
        f"SELECT * FROM (`org.apache.spark.sql.execution.datasources.text`.`{secret}`)",
        f"SELECT * FROM allowed, text.`{secret}`",
        f"SELECT (SELECT value FROM text.`{secret}`)",
        f"SELECT * FROM binaryFile.`{secret}`",
        f"BEGIN EXECUTE IMMEDIATE 'SELECT * FROM text.`{secret}`'; END",
        f"SELECT TRANSFORM(a) USING 'cat {secret}' AS (b) FROM allowed",
        f"SELECT reflect('java.nio.file.Files', 'readString', '{secret}')",
        "SELECT `reflect`('java.lang.System', 'getenv', 'PATH')",
        "SELECT system.builtin.reflect('java.lang.System', 'getenv', 'PATH')",
        "SELECT `ref${x}lect`('java.lang.System', 'getenv', 'PATH')",
        f"SELECT * FROM te${{x}}xt.`{secret}`",
    ):
        with pytest.raises(Exception, match="SQLSTATE") as raised:
            sql.spark(text)
        assert "a secret" not in str(raised.value)


def test_variables_in_a_text_stay_text(sql: Sql) -> None:
    texts = ("${env:PATH}", "${system:user.dir}", "${hiveconf:x}", "${spark.sql.ansi.enabled}", "${x}")
    asked = "SELECT " + ", ".join(f"'{text}'" for text in texts)
    assert sql.spark(asked) == sql.embedded(asked) == [texts]


def test_files_in_allowed_folders_can_be_read(sql: Sql, spark_server: Server) -> None:
    (spark_server.log.parent / "files" / "a.json").write_text('{"a": 1}\n{"a": 2}\n')
    assert sql.spark(f"SELECT sum(a) FROM json.`{spark_server.log.parent}/files/a.json`") == [(3,)]
    sql.embedded("CREATE OR REPLACE TABLE by_path AS SELECT 5 AS n")
    assert sql.spark(f"SELECT n FROM delta.`{spark_server.warehouse}/default/by_path`") == [(5,)]


def test_a_name_that_spark_alone_reads_as_a_table(sql: Sql) -> None:
    """In another catalog than main Spark would take main's schema of that name."""
    sql.embedded("CREATE SCHEMA IF NOT EXISTS main.tpch")
    sql.embedded("CREATE TABLE IF NOT EXISTS main.tpch.nation AS SELECT 'wrong' AS n_name")
    sql.auto("USE CATALOG samples")
    assert sql.spark("SELECT count(*) FROM tpch.nation") == [(25,)]
    with pytest.raises(
        Exception, match=r"The name tpch\.nation, .* is not supported\. SQLSTATE: 0A000 \(line 1, pos 21"
    ):
        sql.spark("SELECT * FROM STREAM tpch.nation")


def test_names_from_strings_and_parameters(sql: Sql) -> None:
    """IDENTIFIER on both engines, in what is read and what is written."""
    sql.auto("CREATE OR REPLACE TABLE IDENTIFIER(:t) (id INT, s STRING)", t="main.default.told")
    for run in (sql.embedded, sql.spark):
        run("INSERT INTO IDENTIFIER(:t) VALUES (1, :v)", t="told", v="x")
    sql.spark("UPDATE IDENTIFIER('main.' || 'default.told') SET IDENTIFIER('s') = IDENTIFIER(:f)(s)", f="upper")
    asked = "SELECT IDENTIFIER(:c), t.IDENTIFIER('id') + 1 FROM IDENTIFIER('default.' || :t) t WHERE IDENTIFIER('t.id') = :n"
    for run in (sql.embedded, sql.spark):
        assert run(asked, c="s", t="told", n=1) == [("X", 2), ("X", 2)]
        with pytest.raises(Exception, match=r"`nope`.* SQLSTATE: 42703 \(line 1, pos 26"):
            run("SELECT IDENTIFIER('id') , nope FROM IDENTIFIER(:t)", t="told")
