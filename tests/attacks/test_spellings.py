"""Every way that we know to name a file, in every statement that takes one, and functions and settings that would reach out."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import contents, outcome
from tests.live.gateway import Server

SECRET = "TOPSECRET"


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that statements may not read, with a table and files."""
    folder = tmp_path_factory.mktemp("outside")
    write_deltalake(str(folder / "t"), pa.table({"x": [SECRET]}))
    pq.write_table(pa.table({"x": [SECRET]}), folder / "x.parquet")
    (folder / "x.csv").write_text(SECRET)
    return folder


# {o} is the folder outside, {a} one that statements may read.
SPELLINGS = (
    "{o}/t", "../../outside/t", "{o}/../{n}/t", "file:{o}/t", "file://{o}/t", "file:///{o}/t", "FILE:{o}/t",
    "/{o}/t", "{o}//t/",
    "{a}/../{n}/t", "{a}/%2e%2e/{n}/t", "{a}/..%2f{n}/t", "{a}/%252e%252e/{n}/t", "{a}/./../{n}/./t", "{o}/t\0",
    "{a}\0/../{n}/t", "\\\\host\\share\\t", "//host/share/t", "s3://bucket/t", "s3a://bucket/t", "dbfs:/t", "hdfs://host/t",
    "abfss://c@a.dfs.core.windows.net/t", "http://127.0.0.1:1/t", "https://host/t", "~/t", "$HOME/t", "${{HOME}}/t", "memory:///t",
    "file://localhost{o}/t", "file://evil{o}/t", "{o}/t?x=y", "{o}/t#f", "/proc/self/root{o}/t", "/proc/self/cwd", "/dev/fd/0",
    "/etc/passwd", " {o}/t", "{o}/t ", "\n{o}/t", "\u202e{o}/t", "{a}/\u2024\u2024/{n}/t", "jar:file:{o}/t!/x", "glob:{o}/*",
    "{o}/t/_delta_log", "{o}/{{t,x}}", "{o}/[t]", "{o}/*", "{o}/x.parquet", "{o}/x.csv", "/dev/zero", "/proc/self/environ",
)  # fmt: skip
FORMATS = ("delta", "parquet", "csv", "json", "text", "binaryFile", "orc")
# {p} in backquotes, {q} as a text.
STATEMENTS = (
    "CREATE TABLE made USING delta LOCATION '{q}'", "CREATE TABLE made (x STRING) USING delta LOCATION '{q}'",
    "DESCRIBE DETAIL '{q}'", "DESCRIBE HISTORY delta.`{p}`", "SELECT * FROM read_files('{q}')",
    "EXPLAIN SELECT * FROM delta.`{p}`",
    "SELECT * FROM table_changes('{q}', 0)", "INSERT INTO delta.`{p}` VALUES ('x')",
    "INSERT OVERWRITE delta.`{p}` VALUES ('x')", "UPDATE delta.`{p}` SET x = 'y'", "DELETE FROM delta.`{p}`",
    "MERGE INTO delta.`{p}` t USING (SELECT 'x' AS k) s ON t.x = s.k WHEN MATCHED THEN DELETE",
    "INSERT INTO delta.`{p}` REPLACE WHERE x = 'x' VALUES ('x')", "INSERT INTO delta.`{p}` REPLACE USING (x) SELECT 'x' AS x",
    "INSERT WITH SCHEMA EVOLUTION INTO delta.`{p}` SELECT 'x', 1 AS y", "REPLACE TABLE made (x STRING) LOCATION '{q}'",
    "CREATE TABLE delta.`{p}` AS SELECT 1 AS x",
    "DROP TABLE delta.`{p}`", "TRUNCATE TABLE delta.`{p}`", "SELECT * FROM IDENTIFIER('delta.`{q}`')", "OPTIMIZE delta.`{p}`",
    "CREATE VIEW made AS SELECT * FROM delta.`{p}`", "VACUUM delta.`{p}`", "RESTORE TABLE delta.`{p}` TO VERSION AS OF 0",
    "CREATE TABLE made SHALLOW CLONE delta.`{p}`", "CONVERT TO DELTA parquet.`{p}`", "CREATE SCHEMA made LOCATION '{q}'",
    "INSERT OVERWRITE DIRECTORY '{q}' SELECT 1", "ADD JAR '{q}'", "LOAD DATA INPATH '{q}' INTO TABLE made",
    "COPY (SELECT 1) TO '{q}'",
    "CREATE EXTERNAL TABLE made (x STRING) STORED AS CSV LOCATION '{q}'", "SELECT * FROM '{q}'", "SELECT * FROM `{p}`",
    "SELECT xpath_string('<!DOCTYPE a [<!ENTITY x SYSTEM \"file://{q}\">]><a>&x;</a>', '/a')", "ATTACH '{q}' AS made",
)  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_path_elsewhere_is_refused_in_every_statement(
    client: Client, server: Server, outside: Path, spelling: str
) -> None:
    allowed = server.warehouse.parent / "files"
    path = spelling.format(o=outside, n=os.path.relpath(outside, allowed.parent), a=allowed)
    before = contents(outside)
    quoted = path.replace("\\", "\\\\").replace("'", "\\'")
    texts = [f"SELECT * FROM {name}.`{path}`" for name in FORMATS]
    texts += [text.format(p=path, q=quoted) for text in STATEMENTS]
    for text in texts:
        told = outcome(client, text)
        wrong = "[{'plan': 'Error occurred during query planning: '}" if text.startswith("EXPLAIN ") else ""
        assert isinstance(told, RemoteError) or (wrong and str(told).startswith(wrong)), (text, told)
        assert "INTERNAL" not in str(told), told
        assert SECRET not in str(told)
    assert contents(outside) == before


REACHING = (
    "java_method('java.lang.System', 'getenv')", "reflect('java.lang.System', 'getProperty', 'user.home')", "getenv('PATH')",
    "load_file('/etc/passwd')", "pg_read_file('/etc/passwd')", "read_text('/etc/passwd')", "glob('/etc/*')", "system('id')",
    "http_get('http://127.0.0.1')", "secret('a', 'b')", "list_secrets()", "sleep(5)", "parquet_metadata('/etc/passwd')",
    "current_setting('x')", "getvariable('x')", "try_reflect('java.lang.System', 'exit')", "from_avro(x'00', '/etc/passwd')",
)  # fmt: skip


@pytest.mark.parametrize("call", REACHING)
def test_functions_that_would_reach_out_are_none(client: Client, call: str) -> None:
    for text in (f"SELECT {call}", f"SELECT * FROM {call}"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError)
        assert told.sqlstate in ("42883", "0A000", "42601", "42P01"), told


@pytest.mark.parametrize(
    "key",
    [
        *(
            "warehouse",
            "state",
            "allow-path",
            "auth",
            "token-file",
            "memory-limit",
            "gateway.warehouse",
            "gateway.slots",
        ),
        *(
            "spark.sql.warehouse.dir",
            "spark.sql.catalog.x",
            "spark.jars",
            "hive.metastore.uris",
            "system:user.home",
            "env:PATH",
        ),
        *(
            "datafusion.execution.batch_size",
            "datafusion.catalog.location",
            "datafusion.runtime.memory_limit",
            "aws.region",
        ),
    ],
)
def test_settings_of_the_server_are_no_settings_of_sessions(client: Client, key: str) -> None:
    for text in (f"SET {key} = /etc", f"SET {key}=1TiB"):
        assert isinstance(outcome(client, text), RemoteError), text
    shown = outcome(client, f"SET {key}")
    assert isinstance(shown, RemoteError) or "/etc" not in str(shown)
    assert "/etc" not in str(outcome(client, "SET"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.shuffle.partitions", "1000000000"),
        ("spark.sql.Shuffle.Partitions", "10001"),
        ("spark.sql.leafNodeDefaultParallelism", "2147483647"),
        ("spark.sql.adaptive.coalescePartitions.initialPartitionNum", "99999999999999999999"),
        ("spark.sql.shuffle.partitions", "0"),
        ("spark.sql.adaptive.customCostEvaluatorClass", "java.lang.Runtime"),
    ],
)
def test_settings_that_would_reach_others_in_one_spark_are_refused(client: Client, key: str, value: str) -> None:
    found = outcome(client, f"SET {key} = {value}")
    assert isinstance(found, RemoteError) and found.sqlstate in ("22022", "42K0I")
