"""Logs and files that Spark would read otherwise than the look at them before: a second spelling, a second place, a class."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.delta.log_paths import check_for_others, logged_expressions
from gateway.delta.spark_schemas import told_expressions
from gateway.errors import GatewayError
from tests.attacks.attacker import add_action

ELSEWHERE = "file:///etc/passwd"
CODE = "reflect('java.lang.System', 'getProperty', 'user.dir')"
KEY = "org.apache.spark.sql.parquet.row.metadata"
PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}


def schema(**field: Any) -> str:
    """The text of a schema of one column."""
    one = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [one | field]})


def metadata(**more: Any) -> dict[str, Any]:
    return {"id": "x", "format": {"provider": "parquet", "options": {}}, "schemaString": schema(), **more}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The folder of a table of one commit, in a folder that statements may use."""
    log = tmp_path / "table" / "_delta_log"
    log.mkdir(parents=True)
    actions = [{"protocol": PLAIN}, {"metaData": metadata(partitionColumns=[], configuration={})}]
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")
    return log.parent


def look(table: Path) -> set[str]:
    """What is looked at before Spark gets a table; the expressions that it would evaluate to write."""
    within = (os.path.realpath(table.parent),)
    check_for_others(os.path.realpath(table), within, writes=False)
    return logged_expressions(os.path.realpath(table), within, writes=True)


def condition(table: Path) -> str:
    with pytest.raises(GatewayError) as caught:
        look(table)
    return caught.value.condition


def test_a_checksum_has_expressions_like_a_commit(table: Path) -> None:
    """Spark takes protocol and metadata from the checksum of a version, if there is one, and not from the log."""
    assert look(table) == set()
    checksum = {"numFiles": 0, "protocol": PLAIN, "metadata": metadata(configuration={"delta.constraints.k": CODE})}
    (table / "_delta_log" / f"{0:020d}.crc").write_text(json.dumps(checksum))
    assert look(table) == {CODE}


@pytest.mark.parametrize(
    ("checkpoint", "told"),
    [
        ({"sidecarFiles": [{"path": "../../other.parquet"}]}, "PATH_NOT_ALLOWED"),
        ({"sidecarFiles": [{"path": "/etc/passwd"}]}, "PATH_NOT_ALLOWED"),
        ({"nonFileActions": [{"add": add_action(ELSEWHERE, 1)}]}, "PATH_NOT_ALLOWED"),
        ({"path": "../../other.json"}, "DELTA_LOG_CORRUPT"),
        ({"path": "file:x.json"}, "DELTA_LOG_CORRUPT"),
        ([], None),
        ({"sidecarFiles": 1}, "DELTA_LOG_CORRUPT"),
    ],
)
def test_the_hint_at_a_checkpoint_names_no_files_elsewhere(table: Path, checkpoint: Any, told: str | None) -> None:
    """Spark takes the sidecars that the hint lists for those of the checkpoint, which it does not open then."""
    hint = table / "_delta_log" / "_last_checkpoint"
    hint.write_text(json.dumps({"version": 0, "size": 1, "v2Checkpoint": checkpoint}))
    if told is None:
        assert look(table) == set()
    else:
        assert condition(table) == told
    code = metadata(configuration={"Delta.Constraints.k": CODE})
    hint.write_text(json.dumps({"version": 0, "size": 1, "v2Checkpoint": {"nonFileActions": [{"metaData": code}]}}))
    assert look(table) == {CODE}


@pytest.mark.parametrize("name", ["path", "PATH", "Path"])
@pytest.mark.parametrize("kind", ["add", "ADD", "remove", "sidecar", "Cdc"])
def test_a_checkpoint_has_its_names_in_one_spelling(table: Path, kind: str, name: str) -> None:
    """Spark, which minds no case, would follow the PATH of an ADD."""
    file = pa.array([{name: ELSEWHERE}], pa.struct([(name, pa.string())]))
    pq.write_table(pa.table({kind: file}), table / "_delta_log" / f"{0:020d}.checkpoint.parquet")
    exact = kind.islower() and name.islower()
    assert condition(table) == ("PATH_NOT_ALLOWED" if exact else "DELTA_LOG_CORRUPT")


def test_nor_a_column_twice(table: Path) -> None:
    file = pa.array([{"path": "x"}], pa.struct([("path", pa.string())]))
    pq.write_table(
        pa.Table.from_arrays([file, file], ["add", "add"]), table / "_delta_log" / f"{0:020d}.checkpoint.parquet"
    )
    assert condition(table) == "DELTA_LOG_CORRUPT"


@pytest.mark.parametrize("name", [f"{1:020d}.json", f"{0:020d}.crc", "_last_checkpoint"])
def test_a_key_that_comes_twice_is_damage(table: Path, name: str) -> None:
    line = '{"add": {"path": "%s", "path": "x", "size": 1}, "allFiles": []}'
    (table / "_delta_log" / name).write_text(line % ELSEWHERE + "\n")
    assert condition(table) == "DELTA_LOG_CORRUPT"


@pytest.mark.parametrize(
    "action",
    [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["adaptiveMetadata-preview"]}},
        {"checkpoint": {"version": 0, "contentRoot": {"path": ELSEWHERE, "sizeInBytes": 1}}},
    ],
)
def test_files_are_listed_in_ways_that_are_known(table: Path, action: dict[str, Any]) -> None:
    """Spark's preview of trees of manifests lists files in files that nobody here reads."""
    (table / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(action) + "\n")
    assert condition(table) == "UNSUPPORTED_TABLE_FEATURE"


def test_a_file_that_was_looked_at_and_put_back_in_time_is_looked_at_again(table: Path) -> None:
    """Whoever may write a file may set its time, and keep its size."""
    commit = table / "_delta_log" / f"{1:020d}.json"
    inside = "x" * len(ELSEWHERE)
    commit.write_text(json.dumps({"add": add_action(inside, 1)}) + "\n")
    look(table)
    before = commit.stat()
    with commit.open("r+") as file:
        file.write(json.dumps({"add": add_action(ELSEWHERE, 1)}) + "\n")
    os.utime(commit, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = commit.stat()
    assert (before.st_ino, before.st_size, before.st_mtime_ns) == (after.st_ino, after.st_size, after.st_mtime_ns)
    assert condition(table) == "PATH_NOT_ALLOWED"


CLASS = {"type": "udt", "class": "java.lang.Thread", "pyClass": "unittest.__main__.X", "sqlType": "string"}


@pytest.mark.parametrize(
    "type_",
    [
        CLASS,
        {"type": "array", "elementType": CLASS, "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": CLASS, "valueContainsNull": True},
        {"type": "struct", "fields": [{"name": "a", "type": CLASS, "nullable": True, "metadata": {}}]},
    ],
)
def test_a_schema_names_no_class(table: Path, tmp_path: Path, type_: Any) -> None:
    """Spark would make an object of it, and import the module that it names."""
    action = {"metaData": metadata(schemaString=schema(type=type_))}
    (table / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(action) + "\n")
    assert condition(table) == "UNSUPPORTED_DATATYPE"
    with pytest.raises(GatewayError, match="have defined"):
        told(tmp_path, schema(type=type_))
    with pytest.raises(GatewayError, match="have defined"):
        told(tmp_path, schema(type=type_).replace("udt", "\\u0075dt"))


def told(folder: Path, text: str) -> set[str]:
    """What Spark would evaluate to read a Parquet file that holds the text of a schema, in a folder of others."""
    files = folder / "files"
    (files / "below").mkdir(parents=True, exist_ok=True)
    (files / "plain").write_text("PAR1")
    if not (files / "round").is_symlink():
        os.symlink(files, files / "round")
    one = pa.table({"id": [1]})
    pq.write_table(one, files / "plain.parquet")
    pq.write_table(one.replace_schema_metadata({KEY: text}), files / "below" / "part-0")
    return told_expressions(str(files), (os.path.realpath(folder),))


@pytest.mark.parametrize("key", ["EXISTS_DEFAULT", "EXISTS\\u005fDEFAULT"])
def test_values_of_older_rows_are_looked_at(table: Path, tmp_path: Path, key: str) -> None:
    """They are evaluated by who reads, too: from the log of a table, or from what a Parquet file holds for Spark."""
    text = schema(metadata={"EXISTS_DEFAULT": CODE}).replace("EXISTS_DEFAULT", key)
    action = {"metaData": metadata(schemaString=text, configuration={"delta.constraints.k": "id > 0"})}
    (table / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(action) + "\n")
    assert look(table) == {CODE, "id > 0"}
    root = os.path.realpath(table)
    assert logged_expressions(root, (os.path.dirname(root),), writes=False) == {CODE}
    assert told(tmp_path, text) == {CODE}
    assert told(tmp_path, schema()) == set()


@pytest.mark.parametrize("text", ["udt", "[" * 100_000 + "udt"])
def test_schemas_that_are_none_are_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(GatewayError) as caught:
        told(tmp_path, text)
    assert caught.value.condition == "FAILED_READ_FILE"


@pytest.mark.parametrize(
    ("first", "second", "mode", "told"),
    [
        ((1, "pa"), (2, "pb"), "id", None),
        ((1, "pa"), (1, "pb"), "id", "DELTA_LOG_CORRUPT"),
        ((1, "pa"), (1, "pb"), "name", "DELTA_LOG_CORRUPT"),
        ((1, "pa"), (2, "pa"), "name", "DELTA_LOG_CORRUPT"),
        ((1, "pa"), (1, "pa"), "none", None),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_two_columns_that_are_one_in_files(
    table: Path, first: tuple[int, str], second: tuple[int, str], mode: str, told: str | None, inside: bool
) -> None:
    """Spark answers the values of one for both, without a word."""
    fields = [
        {
            "name": name,
            "type": "long",
            "nullable": True,
            "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical},
        }
        for name, (number, physical) in zip("ab", (first, second), strict=True)
    ]
    text = json.dumps({"type": "struct", "fields": fields})
    if inside:
        text = schema(name="s", type={"type": "array", "elementType": json.loads(text), "containsNull": True})
    mapping = {"delta.columnMapping.mode": mode}
    commit = table / "_delta_log" / f"{1:020d}.json"
    commit.write_text(json.dumps({"metaData": metadata(configuration=mapping) | {"schemaString": text}}) + "\n")
    for _ in ("commit", "checkpoint"):
        if told is None:
            assert look(table) == set()
        else:
            assert condition(table) == told
        kind = pa.struct([("schemaString", pa.string()), ("configuration", pa.map_(pa.string(), pa.string()))])
        held = pa.array([{"schemaString": text, "configuration": list(mapping.items())}], kind)
        pq.write_table(pa.table({"metaData": held}), table / "_delta_log" / f"{0:020d}.checkpoint.parquet")
        commit.unlink(missing_ok=True)
