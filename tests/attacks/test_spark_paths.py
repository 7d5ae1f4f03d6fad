"""With Spark as second engine: what a log, a link or an object file says is looked at before Spark follows it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.attacks.attacker import add_action, contents, log_action, put_instead
from tests.attacks.test_expressions import keep
from tests.attacks.test_objects import TABLE, VIEW
from tests.attacks.test_paths import SECRET, data_file, spellings
from tests.live.gateway import Server
from tests.live.spark import Sql

pytestmark = [pytest.mark.spark]


@pytest.fixture
def schema(sql: Sql, spark_server: Server) -> Iterator[Path]:
    """The folder of the schema `handed`, with the table `t` of one row."""
    sql.embedded("CREATE SCHEMA handed")
    sql.embedded("CREATE TABLE handed.t AS SELECT 1 AS id")
    yield spark_server.warehouse / "handed"
    shutil.rmtree(spark_server.warehouse / "handed")


@pytest.fixture
def outside(sql: Sql, schema: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder that is none of the server's, with a Delta table and a text; it is as it was when the test ends."""
    sql.embedded(f"CREATE TABLE handed.secret AS SELECT {SECRET} AS id")
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "tokens").write_text(f"admin:{SECRET}\n")
    os.rename(schema / "secret", folder / "secret")
    before = contents(folder)
    yield folder
    assert contents(folder) == before


def refused(sql: Sql, text: str, *conditions: str) -> None:
    """Neither engine answers, and neither tells what is outside."""
    for run in (sql.spark, sql.auto):
        with pytest.raises(Exception, match="SQLSTATE") as caught:
            run(text)
        assert str(SECRET) not in str(caught.value), text
        assert not conditions or any(f"[{c}" in str(caught.value) for c in conditions), str(caught.value)


ON_SPARK = (
    "SELECT * FROM handed.t",
    "SELECT hash(id) FROM handed.t",
    "DELETE FROM handed.t WHERE id < 5",
    "OPTIMIZE handed.t",
)


@pytest.mark.parametrize("spelt", [*spellings(Path("/"), Path("/")), "another scheme"])
def test_logs_cannot_list_files_of_others(sql: Sql, schema: Path, outside: Path, spelt: str) -> None:
    secret = data_file(outside / "secret")
    path = (spellings(secret, schema / "t") | {"another scheme": f"jar:file:{secret}!/x"})[spelt]
    log_action(schema / "t", 1, add=add_action(path, secret.stat().st_size))
    for text in (*ON_SPARK, f"SELECT * FROM delta.`{schema / 't'}`"):
        with pytest.raises(Exception, match="PATH_NOT_ALLOWED") as caught:
            sql.spark(text)
        assert str(SECRET) not in str(caught.value)
    # What is refused is not tried on the other engine: no word of Spark.
    with pytest.raises(Exception, match="SQLSTATE") as caught:
        sql.auto("SELECT * FROM handed.t")
    assert "PATH_NOT_ALLOWED" in str(caught.value) or "DELTA_FILE_NOT_FOUND" in str(caught.value)


def vector(kind: str, name: str) -> dict[str, Any]:
    return {"storageType": kind, "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 10, "cardinality": 1}


@pytest.mark.parametrize(
    "actions",
    [
        {"add": add_action("x", 1) | {"deletionVector": vector("p", "file:///etc/passwd")}},
        {"add": add_action("x", 1) | {"deletionVector": vector("p", "relative")}},
        {"add": add_action("x", 1) | {"deletionVector": vector("u", "../../../" + "a" * 20)}},
        {"cdc": {"path": "../../../x", "partitionValues": {}, "size": 1, "dataChange": False}},
        {"remove": {"path": "/etc/passwd", "dataChange": True, "deletionTimestamp": 0}},
        {"sidecar": {"path": "/etc/passwd", "sizeInBytes": 1, "modificationTime": 0}},
        {"sidecar": {"path": "../x.parquet", "sizeInBytes": 1, "modificationTime": 0}},
    ],
)
def test_nor_deletion_vectors_and_the_like(sql: Sql, schema: Path, actions: dict[str, Any]) -> None:
    log_action(schema / "t", 1, **actions)
    with pytest.raises(Exception, match="PATH_NOT_ALLOWED"):
        sql.spark("SELECT * FROM handed.t")


def test_a_checkpoint_in_another_spelling_lists_none_either(sql: Sql, schema: Path, outside: Path) -> None:
    """Spark minds no case: it would follow the PATH of an `add`."""
    secret, log = data_file(outside / "secret"), schema / "t" / "_delta_log"
    actions: dict[str, Any] = {}
    for line in (log / f"{0:020d}.json").read_text().splitlines():
        actions |= json.loads(line)
    metadata = actions["metaData"] | {"configuration": {}, "format": {"provider": "parquet", "options": {}}}
    file = add_action(f"file://{secret}", secret.stat().st_size)
    file["PATH"] = file.pop("path")
    texts = pa.map_(pa.string(), pa.string())
    of_format = pa.struct([("provider", pa.string()), ("options", texts)])
    types = {
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "format": of_format,
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": texts,
            }
        ),
        "add": pa.struct(
            {
                "PATH": pa.string(),
                "partitionValues": texts,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
            }
        ),
    }
    rows = [("protocol", actions["protocol"]), ("metaData", metadata), ("add", file)]
    columns = {
        kind: pa.array([plain(value) if kind == of else None for of, value in rows], type_)
        for kind, type_ in types.items()
    }
    pq.write_table(pa.table(columns), log / f"{0:020d}.checkpoint.parquet")
    (log / "_last_checkpoint").write_text(json.dumps({"version": 0, "size": 3}))
    refused(sql, "SELECT * FROM handed.t", "DELTA_LOG_CORRUPT")


def plain(value: Any) -> Any:
    """Objects as Arrow takes them for maps, too."""
    return {k: [] if v == {} else plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def test_a_checksum_runs_no_code(sql: Sql, schema: Path) -> None:
    """Spark takes a table's metadata from there."""
    log = schema / "t" / "_delta_log"
    actions: dict[str, Any] = {}
    for line in (log / f"{0:020d}.json").read_text().splitlines():
        actions |= json.loads(line)
    code = "reflect('java.lang.System', 'getProperty', 'user.dir') = 'x'"
    checksum: dict[str, Any] = {"tableSizeBytes": 1, "numFiles": 1, "numMetadata": 1, "numProtocol": 1}
    checksum |= {"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}
    checksum |= {"metadata": actions["metaData"] | {"configuration": {"delta.constraints.k": code}}}
    (log / f"{0:020d}.crc").write_text(json.dumps(checksum))
    refused(sql, "INSERT INTO handed.t SELECT hash(1)", "UNSUPPORTED_FEATURE")


def test_a_parquet_file_names_no_class(sql: Sql, schema: Path) -> None:
    """Nor what to evaluate: Spark takes the schema that a file holds for it, classes and values of older rows included."""
    folder = schema / "files"
    folder.mkdir()
    one = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    code = {"EXISTS_DEFAULT": "from_xml('<a/>', 'b INT', map('rowValidationXSDPath', '/etc/passwd')).b"}
    class_ = {"type": "udt", "pyClass": "unittest.__main__.X", "sqlType": "long"}
    for change in ({"name": "old", "metadata": code}, {"type": class_}):
        text = json.dumps({"type": "struct", "fields": [one, one | change]})
        table = pa.table({"id": [1]}).replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": text})
        pq.write_table(table, folder / "x.parquet")
        with pytest.raises(Exception, match=r"UNSUPPORTED_FEATURE|UNSUPPORTED_DATATYPE"):
            sql.spark(f"SELECT * FROM parquet.`{folder}`")


@pytest.mark.parametrize("instead", ["link", "device", "pipe"])
def test_links_and_pipes_below_a_table(sql: Sql, schema: Path, outside: Path, instead: str) -> None:
    path = data_file(schema / "t")
    path.unlink()
    put_instead(path, instead, data_file(outside / "secret"))
    for text in ON_SPARK:
        if text.startswith("OPTIMIZE"):  # a single file is not even opened without Spark
            with pytest.raises(Exception, match=r"PATH_NOT_ALLOWED|FAILED_READ_FILE"):
                sql.spark(text)
        else:
            refused(sql, text, "PATH_NOT_ALLOWED", "FAILED_READ_FILE")


def test_what_spark_removes_is_behind_no_link(sql: Sql, schema: Path, outside: Path) -> None:
    sql.embedded("CREATE TABLE handed.other AS SELECT 1 AS id")
    os.symlink(outside, schema / "t" / "away")
    before = contents(outside)
    with pytest.raises(Exception, match="PATH_NOT_ALLOWED"):
        sql.spark("VACUUM handed.t RETAIN 200 HOURS")
    sql.auto("VACUUM handed.t RETAIN 200 HOURS")  # which without Spark neither follows nor removes links
    assert contents(outside) == before and (schema / "t" / "away").is_symlink()
    for text in ("TRUNCATE TABLE handed.t", "INSERT OVERWRITE handed.t SELECT 2"):  # elsewhere they write a log only
        with pytest.raises(Exception, match="PATH_NOT_ALLOWED"):
            sql.spark(text)
    (schema / "t" / "away").unlink()
    os.symlink("../other", schema / "t" / "away")  # inside of the warehouse: read, but not written through
    assert sql.spark("SELECT * FROM handed.t") == [(1,)]
    with pytest.raises(Exception, match="PATH_NOT_ALLOWED"):
        sql.spark("VACUUM handed.t RETAIN 200 HOURS")


def test_tables_and_schemas_that_are_links(sql: Sql, schema: Path, outside: Path) -> None:
    os.symlink(outside / "secret", schema / "lnk")
    for text in (
        "CREATE TABLE handed.lnk USING delta AS SELECT hash(1) AS id",
        "CREATE OR REPLACE TABLE handed.lnk USING delta AS SELECT hash(1) AS id",
        "CREATE TABLE handed.lnk (a INT) USING csv",
        "SELECT * FROM handed.lnk",
        "INSERT INTO handed.lnk SELECT hash(1)",
    ):
        refused(sql, text, "LOCATION_ALREADY_EXISTS", "TABLE_OR_VIEW_NOT_FOUND")


@pytest.mark.parametrize("instead", ["link", "link to a folder", "pipe"])
def test_folders_of_files(sql: Sql, schema: Path, outside: Path, instead: str) -> None:
    folder = schema / "files"
    folder.mkdir()
    (folder / "good").write_text("good\n")
    assert sql.spark(f"SELECT * FROM text.`{folder}`") == [("good",)]
    put_instead(folder / "x", instead.split()[0], outside if "folder" in instead else outside / "tokens")
    for text in (f"SELECT * FROM text.`{folder}`", f"SELECT * FROM text.`{folder / 'x'}`"):
        refused(sql, text, "PATH_NOT_ALLOWED", "FAILED_READ_FILE")


def test_patterns_are_no_paths(sql: Sql, schema: Path) -> None:
    for name in ("a*", "ab", "{x,y}", "[xy]", "x"):
        (schema / name).mkdir()
        (schema / name / "f").write_text(f"{name}\n")
    for name in ("a*", "{x,y}", "[xy]"):
        refused(sql, f"SELECT * FROM text.`{schema / name}`")


@pytest.mark.parametrize(
    "change",
    [
        {"location": "../../../outside"},
        {"definition": "(value STRING) USING text LOCATION '{}'"},
        {"definition": "(value STRING) USING text OPTIONS (path '{}')"},
        {"definition": "USING text AS SELECT * FROM text.`{}`"},
        {"definition": "(value STRING) USING jdbc OPTIONS (url '{}')"},
    ],
)
def test_object_files_of_tables(sql: Sql, schema: Path, outside: Path, change: dict[str, str]) -> None:
    (schema / "_objects").mkdir(exist_ok=True)
    (schema / "bad").mkdir()
    filled = {key: value.replace("{}", str(outside / "tokens")) for key, value in change.items()}
    columns = {"type": "struct", "fields": [{"name": "value", "type": "string", "nullable": True, "metadata": {}}]}
    record = TABLE | {"format": "text", "definition": "(value STRING) USING text", "schema": columns}
    path = schema / "_objects" / "bad.table.json"
    path.write_text(json.dumps(record))
    assert sql.spark("SELECT * FROM handed.bad") == []
    path.write_text(json.dumps(record | filled))
    refused(sql, "SELECT * FROM handed.bad")
    path.write_text(json.dumps(record))
    os.symlink(outside / "tokens", schema / "bad" / "part")
    refused(sql, "SELECT * FROM handed.bad", "PATH_NOT_ALLOWED")
    refused(sql, "INSERT INTO handed.bad VALUES ('x')", "PATH_NOT_ALLOWED")


@pytest.mark.parametrize(
    "change",
    [
        {"query": "SELECT value AS a FROM text.`{}`"},
        {"query": "SELECT reflect('java.lang.System', 'getenv', 'PATH') AS a"},
        {"query": "SELECT value AS a FROM text.`{inside}` WITH (path = '{}')"},
        {"query": "SELECT 1 AS a; DROP TABLE handed.t"},
        {"settings": {"spark.sql.runSQLOnFiles": "true"}},
    ],
)
def test_object_files_of_views(sql: Sql, schema: Path, outside: Path, change: dict[str, Any]) -> None:
    (schema / "_objects").mkdir(exist_ok=True)
    named = (
        json.dumps(change).replace("{}", str(outside / "tokens")).replace("{inside}", str(schema / "t" / "_delta_log"))
    )
    filled = json.loads(named)
    record = VIEW | {"needs_spark": True, "schema_name": "handed"}
    path = schema / "_objects" / "bad.view.json"
    path.write_text(json.dumps(record))
    assert sql.spark("SELECT * FROM handed.bad") == [(1,)]
    path.write_text(json.dumps(record | filled))
    refused(sql, "SELECT * FROM handed.bad")
    assert sql.spark("SELECT * FROM handed.t") == [(1,)]


@pytest.mark.parametrize("key", ["'option.path'", "option.PATH", "'option.parquet.crypto.factory.class'"])
def test_properties_are_no_options(sql: Sql, schema: Path, outside: Path, key: str) -> None:
    """Spark takes properties of such names for options of the files: nothing is made, and no table is lost by it."""
    properties = f"TBLPROPERTIES ({key} = '{outside / 'tokens'}')"
    refused(sql, f"CREATE TABLE handed.made (a STRING) USING parquet {properties}", "UNSUPPORTED_FEATURE")
    refused(sql, "SELECT * FROM handed.made", "TABLE_OR_VIEW_NOT_FOUND")
    assert not (schema / "made").exists()
    sql.spark("CREATE TABLE handed.filled (a STRING) USING parquet")
    sql.spark("INSERT INTO handed.filled VALUES ('x')")
    refused(sql, f"ALTER TABLE handed.filled SET {properties}", "UNSUPPORTED_FEATURE")
    assert sql.spark("SELECT * FROM handed.filled") == [("x",)]
    sql.spark("ALTER TABLE handed.filled SET TBLPROPERTIES ('options' = 'x')")
    sql.spark("INSERT INTO handed.filled VALUES ('x')")
    assert sql.spark("SELECT * FROM handed.filled") == [("x",), ("x",)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM text.`{inside}` WITH (path = '{file}')",
        "SELECT * FROM text.`{inside}` WITH ('paths' = '[\"{file}\"]')",
        "WITH x AS (SELECT * FROM csv.`{inside}` WITH (header false, `PATH` '{file}')) SELECT count(*) FROM x",
        "SELECT * FROM handed.t WITH (path '{file}')",
        "INSERT INTO handed.t WITH (path = '{file}') VALUES (2)",
        "SELECT from_xml('<a/>', 'b INT', map('rowValidationXSDPath', '{file}'))",
        "SELECT from_xml('<a/>', 'b INT', map('rowValidation' || 'XSDPath', '{file}'))",
        "SELECT schema_of_xml('<a/>', map('rowV\\u0061lidationXSDPath', '{file}'))",
    ],
)
def test_options_name_no_files(sql: Sql, schema: Path, outside: Path, text: str) -> None:
    """Options of one relation go before the path that was looked at, and functions of texts open files for theirs."""
    filled = text.format(inside=schema / "t" / "_delta_log", file=outside / "tokens")
    refused(sql, filled, "UNSUPPORTED_FEATURE")
    refused(sql, f"CREATE TEMPORARY VIEW reaching AS {filled}", "UNSUPPORTED_FEATURE", "PARSE_SYNTAX_ERROR")
    assert sql.embedded("SELECT * FROM handed.t") == [(1,)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 --\r, {call}\n, 2",
        "SELECT 1 -- \\\r, {call}\n, 2",
        "SELECT 1 /* /*+ */ , {call} /* */ -- */\n, 2",
        'SELECT /*+ a("/*") */ {call} -- */ 1',
        "SELECT /*+ a(`/*`) */ {call} -- */ 1",
        "SELECT /*+ a('*/ , ') */ {call} , 'x'",
    ],
)
def test_code_that_is_a_comment_to_us_alone(sql: Sql, schema: Path, text: str) -> None:
    """Comments and hints end where Spark's lexer ends them: what looks like a comment here could be code there."""
    refused(sql, text.format(call='reflect("java.lang.System", "getProperty", "user.home")'), "UNSUPPORTED_FEATURE")


def test_clones_of_tables_that_may_be_read_are_read(sql: Sql, schema: Path) -> None:
    sql.spark("CREATE TABLE handed.clone SHALLOW CLONE handed.t")
    assert sql.spark("SELECT * FROM handed.clone") == sql.auto("SELECT * FROM handed.clone") == [(1,)]
    sql.spark("CREATE TABLE handed.nations SHALLOW CLONE samples.tpch.nation")
    assert sql.auto("SELECT count(*) FROM handed.nations") == [(25,)]


@pytest.mark.parametrize("place", ["delta.generationExpression", "CURRENT_DEFAULT", "delta.constraints.k"])
@pytest.mark.parametrize(
    "text", ["(SELECT max(value) FROM text.`{file}`)", "reflect('java.lang.System', 'getProperty', 'user.dir')"]
)
def test_expressions_of_tables(sql: Sql, schema: Path, outside: Path, place: str, text: str) -> None:
    """What a log has its writers evaluate reads no file and runs no code."""
    sql.embedded("CREATE TABLE handed.kept AS SELECT 1L AS id, 'a' AS s")
    keep(schema / "kept", place, text.format(file=outside / "tokens"))
    named = "handed.kept (id) VALUES (2L)" if "constraints" not in place else "handed.kept VALUES (2L, 'b')"
    refused(sql, f"INSERT INTO {named}", "EXPRESSION_NOT_ALLOWED", "UNSUPPORTED_FEATURE")
    assert sql.embedded("SELECT * FROM handed.kept") == [(1, "a")]


def test_tables_behind_views_that_are_changed(sql: Sql, schema: Path) -> None:
    """Delta changes a table through a temporary view of it: what holds for targets holds for such a table."""
    sql.embedded("CREATE TABLE handed.kept AS SELECT 1L AS id, 'a' AS s")
    sql.embedded("CREATE OR REPLACE TEMP VIEW plain AS SELECT * FROM handed.t")
    sql.embedded("CREATE OR REPLACE TEMP VIEW through AS SELECT * FROM handed.kept")
    sql.embedded("CREATE OR REPLACE TEMP VIEW sample AS SELECT * FROM samples.tpch.region")
    for view in ("plain", "through", "sample"):
        sql.spark(f"SELECT hash(*) FROM {view}")  # by now Spark has it
    sql.spark("UPDATE plain SET id = 2")
    assert sql.embedded("SELECT * FROM handed.t") == [(2,)]
    keep(schema / "kept", "delta.generationExpression", "reflect('java.lang.System', 'getProperty', 'user.dir')")
    refused(sql, "UPDATE through SET id = 5L", "UNSUPPORTED_FEATURE")
    assert sql.embedded("SELECT * FROM handed.kept") == [(1, "a")]
    before = sql.embedded("SELECT * FROM samples.tpch.region ORDER BY 1")
    refused(sql, "UPDATE sample SET r_name = 'x'", "PERMISSION_DENIED")
    refused(sql, "DELETE FROM sample", "PERMISSION_DENIED")
    assert sql.embedded("SELECT * FROM samples.tpch.region ORDER BY 1") == before
