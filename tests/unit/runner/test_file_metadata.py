"""`_metadata`: what Spark tells of a table's files and rows beside its columns, only where it is asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.runner.session import Session
from tests.unit.runner.session import refused as raised
from tests.unit.runner.written import folder_of

_FILES = "file_path:string,file_name:string,file_size:bigint,file_block_start:bigint,file_block_length:bigint"
_PLAIN = f"struct<{_FILES},file_modification_time:timestamp>"


def refused(session: Session, text: str, condition: str, sqlstate: str) -> None:
    error = raised(session, text)
    assert (error.condition, error.sqlstate) == (condition, sqlstate)


@pytest.fixture
def tables(session: Session) -> Session:
    """``t`` of two files, partitioned, and ``v`` whose rows are deleted by vectors."""
    session.run(
        "CREATE TABLE t (a INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    )
    session.run("INSERT INTO t VALUES (1, 'a b%c'), (2, 'é;[x]')")
    session.run("CREATE TABLE v (a INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    session.run("INSERT INTO v SELECT * FROM VALUES (1), (2), (3) ORDER BY 1")
    session.run("DELETE FROM v WHERE a = 2")
    return session


def test_each_row_tells_its_file(tables: Session) -> None:
    fields = "file_path, file_name, file_size, file_block_start, file_block_length"
    asked = ", ".join(f"_metadata.{name}" for name in fields.split(", "))
    rows = {row[0]: row[1:] for row in tables.rows(f"SELECT a, {asked} FROM t")}
    root = folder_of(tables)
    files = {path.parent.name: path for path in Path(root).rglob("*.parquet") if "_delta_log" not in path.parts}
    for key, folder, spelt in ((1, "p=a b%25c", "p=a%20b%2525c"), (2, "p=é;%5Bx%5D", "p=é;%255Bx%255D")):
        file = files[folder]
        size = os.stat(file).st_size
        assert rows[key] == (f"file:{root}/{spelt}/{file.name}", file.name, size, 0, size)
    assert tables.rows(
        "SELECT count(*) FROM t WHERE _metadata.file_modification_time > current_timestamp() - INTERVAL 1 DAY"
    ) == [(2,)]


def test_rows_of_tables_with_vectors_tell_their_places(tables: Session) -> None:
    assert sorted(tables.rows("SELECT a, _metadata.row_index FROM v")) == [(1, 0), (3, 2)]
    refused(tables, "SELECT _metadata.row_index FROM t", "FIELD_NOT_FOUND", "42704")


def test_it_is_no_column(tables: Session) -> None:
    assert tables.run("SELECT * FROM t").columns == [("a", "int", True), ("p", "string", True)]
    assert tables.run("SELECT *, _metadata.file_size + 1 FROM t").columns[2] == (
        "(_metadata.file_size + 1)",
        "bigint",
        False,
    )
    assert tables.run("SELECT _metadata FROM t").columns == [("_metadata", _PLAIN, False)]
    refused(tables, "SELECT _metadata.* FROM t", "CANNOT_RESOLVE_STAR_EXPAND", "42704")
    refused(tables, "SELECT _metadata.row_id FROM t", "FIELD_NOT_FOUND", "42704")


def test_names_go_as_those_of_columns(tables: Session) -> None:
    found = tables.rows(
        "SELECT x.a FROM t x JOIN v y ON x.a = y.a WHERE x._metadata.file_size > 0 ORDER BY y._METADATA.row_index"
    )
    assert found == [(1,)]
    outer = tables.run("SELECT y._metadata.file_name FROM t x LEFT JOIN v y ON x.a = y.a WHERE x.a = 2")
    assert (outer.rows, outer.columns) == ([(None,)], [("file_name", "string", True)])
    refused(tables, "SELECT _metadata.file_size FROM t x JOIN v y ON x.a = y.a", "AMBIGUOUS_REFERENCE", "42704")
    assert tables.rows("SELECT count(DISTINCT _metadata.file_name), max(v._metadata['row_index']) FROM v") == [(1, 2)]


def test_a_column_of_that_name_goes_first(session: Session) -> None:
    session.run("CREATE TABLE m (_metadata INT)")
    session.run("INSERT INTO m VALUES (7)")
    assert session.rows("SELECT _metadata FROM m") == [(7,)]
    refused(session, "SELECT _metadata.file_name FROM m", "INVALID_EXTRACT_BASE_FIELD_TYPE", "42000")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT _metadata.file_size FROM (SELECT * FROM t) x",
        "WITH x AS (SELECT * FROM t) SELECT _metadata.file_size FROM x",
        "SELECT a AS `_metadata`, _metadata FROM t",
        "SELECT _metadata.file_size FROM t x JOIN v USING (a)",
        "DELETE FROM t WHERE _metadata.file_size > 0",
    ],
)
def test_what_spark_finds_elsewhere_is_refused(tables: Session, text: str) -> None:
    refused(tables, text, "UNSUPPORTED_FEATURE", "0A000")


def test_blocks_of_large_files_are_not_told(session: Session) -> None:
    session.run("CREATE TABLE big AS SELECT sha2(CAST(id AS STRING), 512) AS s FROM range(100000)")
    assert session.rows("SELECT min(_metadata.file_size) > 4194304 FROM big") == [(True,)]
    for what in ("_metadata", "_metadata.file_block_start", "_metadata.file_block_length"):
        refused(session, f"SELECT {what} FROM big", "UNSUPPORTED_FEATURE", "0A000")
