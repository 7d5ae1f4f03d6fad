"""COPY INTO gives a table the rows of each file once, says how many, and changes nothing where files or options are wrong."""

from __future__ import annotations

import math
import os
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from gateway.delta import commit
from gateway.delta.copying import copy_files, loaded_files, matches
from gateway.delta.table import open_snapshot
from gateway.errors import UnsupportedError, UserError
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_commit, newest_info, rows_elsewhere

COUNTS = ["num_affected_rows", "num_inserted_rows", "num_skipped_corrupt_files"]


@pytest.fixture
def source(session: Session, tmp_path: Path) -> Path:
    """A folder that statements may read, with three files of two rows."""
    allowed = session.runner.environment(session.state).tables.paths.roots[-1]
    folder = Path(allowed) / tmp_path.name
    folder.mkdir(parents=True)
    for i in range(3):
        _write(folder / f"in{i}.parquet", i)
    return folder


def _write(path: Path, first: int, **more: Any) -> None:
    columns = {"ID": pa.array([first, first + 10], pa.int32()), "name": [f"n{first}", None], **more}
    pq.write_table(pa.table(columns), path)


def _copy(session: Session, folder: Path, rest: str = "") -> int:
    result = session.run(f"COPY INTO t FROM '{folder}' FILEFORMAT = PARQUET {rest}")
    assert [name for name, _, _ in result.columns] == COUNTS
    ((affected, inserted, corrupt),) = result.rows
    assert affected == inserted == result.finished.modified_rows and corrupt == 0
    return int(affected)


def test_each_file_is_loaded_once(session: Session, source: Path) -> None:
    session.run("CREATE TABLE t (id BIGINT, name STRING)")
    assert _copy(session, source, "FILES = ('in0.parquet')") == 2
    (identifier,) = (action["txn"] for action in newest_commit(session) if "txn" in action)
    assert identifier["appId"] == f"copy into: {source}/in0.parquet"
    assert newest_info(session)["operation"] == "COPY INTO" and newest_info(session)["isBlindAppend"] is True
    assert _copy(session, source, "PATTERN = 'in[0-1].par*'") == 2
    assert _copy(session, source) == 2
    versions = count_versions(session)
    assert _copy(session, source) == 0
    assert _copy(session, Path(f"file:{source}/")) == 0
    _write(source / "in0.parquet", 50)  # a file that is there already stays loaded
    assert _copy(session, source) == 0
    assert count_versions(session) == versions
    rows = [(0, "n0"), (1, "n1"), (2, "n2"), (10, None), (11, None), (12, None)]
    assert session.rows("SELECT * FROM t ORDER BY id") == rows
    assert sorted(rows_elsewhere(session)) == rows
    assert _copy(session, source, "COPY_OPTIONS ('force' = 'true')") == 6
    assert session.rows("SELECT count(*) FROM t WHERE id IN (50, 60)") == [(2,)]


def test_checkpoints_know_what_was_loaded(session: Session, source: Path) -> None:
    session.run("CREATE TABLE t (id BIGINT, name STRING) TBLPROPERTIES ('delta.checkpointInterval' = '2')")
    assert _copy(session, source, "PATTERN = '{x,in1}.parquet'") == 2
    session.run("INSERT INTO t VALUES (7, 'x')")
    log = folder_of(session) / "_delta_log"
    assert (log / "00000000000000000002.checkpoint.parquet").exists()
    for version in ("0" * 20, f"{1:020d}"):
        (log / f"{version}.json").unlink()
    assert _copy(session, source) == 4


def test_rows_become_those_of_the_table(session: Session, source: Path) -> None:
    session.run(
        "CREATE TABLE t (p DATE, Id DECIMAL(12, 2) NOT NULL, name CHAR(3), d STRING DEFAULT 'd', g DECIMAL(13, 2) "
        "GENERATED ALWAYS AS (Id + 1), CONSTRAINT small CHECK (Id < 40)) PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', 'delta.columnMapping.mode' = 'name')"
    )
    assert _copy(session, source, "FILES = ('in1.parquet')") == 2
    first = (None, Decimal("1.00"), "n1 ", "d", Decimal("2.00"))
    assert session.rows("SELECT * FROM t ORDER BY id")[0] == first
    _write(source / "late.parquet", 40, p=pa.array([date(2020, 1, 1)] * 2))
    text = f"COPY INTO t FROM '{source}' FILEFORMAT = PARQUET FILES = ('late.parquet')"
    assert refused(session, text).condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    _write(source / "late.parquet", 20, p=pa.array([date(2020, 1, 1)] * 2))
    assert _copy(session, source, "FILES = ('late.parquet')") == 2
    assert session.rows("SHOW PARTITIONS t") == [(date(2020, 1, 1),), (None,)]


@pytest.mark.parametrize("properties", ["", "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"])
def test_columns_are_added_where_that_is_asked_for(session: Session, source: Path, properties: str) -> None:
    session.run(f"CREATE TABLE t (id BIGINT) {properties}")
    session.run("INSERT INTO t VALUES (5)")
    error = refused(session, f"COPY INTO t FROM '{source}' FILEFORMAT = PARQUET")
    assert error.condition == "COPY_INTO_SCHEMA_MISMATCH_WITH_TARGET_TABLE" and "name" in error.message
    assert _copy(session, source, "FILES = ('in0.parquet') COPY_OPTIONS ('mergeSchema' = 'true')") == 2
    assert session.rows("SELECT * FROM t ORDER BY id") == [(0, "n0"), (5, None), (10, None)]
    assert [f.name for f in session.run("SELECT * FROM t").planned.schema.fields] == ["id", "name"]
    assert _copy(session, source, "COPY_OPTIONS ('mergeSchema' = 'true', 'force' = 'false')") == 4


def test_files_with_different_columns_are_merged_where_that_is_asked_for(session: Session, source: Path) -> None:
    session.run("CREATE TABLE t (id BIGINT)")
    _write(source / "a_wide.parquet", 5, more=[1.5, None], nested=[{"x": 1}, None])
    _write(source / "b_wider.parquet", 6, last=["l", "m"])
    both = "COPY_OPTIONS ('mergeSchema' = 'true')"
    assert (
        refused(session, f"COPY INTO t FROM '{source}' FILEFORMAT = PARQUET {both}").condition == "UNSUPPORTED_FEATURE"
    )
    both = "FORMAT_OPTIONS ('mergeSchema' = 'true') " + both
    assert _copy(session, source, both) == 10
    names = [f.name for f in session.run("SELECT * FROM t").planned.schema.fields]
    assert names == ["id", "name", "more", "nested", "last"]
    assert session.rows("SELECT * FROM t WHERE id IN (0, 5, 15, 16) ORDER BY id") == [
        (0, "n0", None, None, None),
        (5, "n5", 1.5, {"x": 1}, None),
        (15, None, None, None, None),
        (16, None, None, None, "m"),
    ]
    assert _copy(session, source, both) == 0
    for name, values in (("more", ["x", "y"]), ("MORE", [1.5, 2.5]), ("nested", [{"y": 1}, None])):
        _write(source / "other.parquet", 7, **{name: values})
        session.run("CREATE OR REPLACE TABLE t (id BIGINT)")
        again = f"{both[:-1]}, 'force' = 'true')"
        error = refused(session, f"COPY INTO t FROM '{source}' FILEFORMAT = PARQUET {again}")
        assert error.condition == "UNSUPPORTED_FEATURE"
        assert session.rows("SELECT * FROM t") == []


def test_what_a_query_makes_of_files(session: Session, source: Path) -> None:
    session.run("CREATE TABLE t (id BIGINT, name STRING)")
    made = f"COPY INTO t FROM (SELECT {{}} FROM '{source}') FILEFORMAT = PARQUET"
    session.run(made.format("upper(name) AS NAME, id + 100 AS id") + " FILES = ('in0.parquet')")
    session.run(made.format("*") + " PATTERN = '*1*'")
    error = refused(session, made.format("id, 5 AS extra"))
    assert error.condition == "COPY_INTO_SCHEMA_MISMATCH_WITH_TARGET_TABLE"
    result = session.run(made.format("id, 5 AS extra") + " COPY_OPTIONS ('mergeSchema' = 'true')")
    assert result.rows == [(2, 2, 0)]
    assert session.rows("SELECT * FROM t ORDER BY id") == [
        *((1, "n1", None), (2, None, 5), (11, None, None), (12, None, 5), (100, "N0", None), (110, None, None))
    ]
    assert session.rows(made.format("id")) == [(0, 0, 0)]


@pytest.mark.parametrize(
    ("rest", "condition"),
    [
        ("FILES = ('nope.parquet')", "PATH_NOT_FOUND"),
        ("FILES = ('in0.parquet') PATTERN = '*'", "DUPLICATE_CLAUSES"),
        ("FILES = ()", "PARSE_SYNTAX_ERROR"),
        ("COPY_OPTIONS ('x' = 'true')", "UNSUPPORTED_FEATURE"),
        ("COPY_OPTIONS ('force' = 'maybe')", "UNSUPPORTED_FEATURE"),
        ("FORMAT_OPTIONS ('mergeSchema' = 'maybe')", "UNSUPPORTED_FEATURE"),
        ("PATTERN = 'a/*'", "UNSUPPORTED_FEATURE"),
        ("PATTERN = '[^a]*'", "UNSUPPORTED_FEATURE"),
        ("PATTERN = '{a'", "UNSUPPORTED_FEATURE"),
        ("VALIDATE ALL", "UNSUPPORTED_FEATURE"),
        ("nonsense", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_what_is_wrong_writes_nothing(session: Session, source: Path, rest: str, condition: str) -> None:
    session.run("CREATE TABLE t (id BIGINT, name STRING)")
    assert refused(session, f"COPY INTO t FROM '{source}' FILEFORMAT = PARQUET {rest}").condition == condition
    assert count_versions(session) == 1


def test_what_is_refused(session: Session, source: Path, tmp_path: Path) -> None:
    session.run("CREATE TABLE t (id SMALLINT, name STRING)")
    for text, condition in (
        (f"COPY INTO t FROM '{source}' FILEFORMAT = PARQUET", "UNSUPPORTED_FEATURE"),  # whose ids may not fit
        (f"COPY INTO t FROM '{source}' FILEFORMAT = CSV", "UNSUPPORTED_FEATURE"),
        (f"COPY INTO t FROM (SELECT id FROM '{source}' WHERE id > 1) FILEFORMAT = PARQUET", "UNSUPPORTED_FEATURE"),
        ("COPY INTO t FROM (SELECT id FROM t) FILEFORMAT = PARQUET", "UNSUPPORTED_FEATURE"),
        (f"COPY INTO t FROM (SELECT nope FROM '{source}') FILEFORMAT = PARQUET", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (f"COPY INTO t FROM (SELECT 'x' AS id FROM '{source}') FILEFORMAT = PARQUET", "UNSUPPORTED_FEATURE"),
        (
            f"COPY INTO t FROM (SELECT name, name FROM '{source}') FILEFORMAT = PARQUET",
            "DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA",
        ),
        (f"COPY INTO t FROM (SELECT name FROM '{tmp_path}') FILEFORMAT = PARQUET", "PATH_NOT_ALLOWED"),
        (f"COPY INTO t FROM (SELECT id id id FROM '{source}') FILEFORMAT = PARQUET", "PARSE_SYNTAX_ERROR"),
        (f"COPY INTO t BY POSITION FROM '{source}' FILEFORMAT = PARQUET", "UNSUPPORTED_FEATURE"),
        (f"COPY INTO t FROM '{tmp_path}' FILEFORMAT = PARQUET", "PATH_NOT_ALLOWED"),
        (f"COPY INTO t FROM '{source}/../..' FILEFORMAT = PARQUET", "PATH_NOT_ALLOWED"),
        (f"COPY INTO t FROM '{source}/none' FILEFORMAT = PARQUET", "PATH_NOT_FOUND"),
        (f"COPY INTO nope FROM '{source}' FILEFORMAT = PARQUET", "TABLE_OR_VIEW_NOT_FOUND"),
        (f"COPY INTO samples.tpch.nation FROM '{source}' FILEFORMAT = PARQUET", "PERMISSION_DENIED"),
    ):
        assert refused(session, text).condition == condition
    session.run("CREATE OR REPLACE TABLE t (id BIGINT, name STRING)")
    _write(tmp_path / "secret.parquet", 1)
    os.symlink(tmp_path / "secret.parquet", source / "link.parquet")
    assert refused(session, f"COPY INTO t FROM '{source}' FILEFORMAT = PARQUET").condition == "PATH_NOT_ALLOWED"
    (source / "link.parquet").unlink()
    (source / "bad.parquet").write_bytes(b"PAR1 is no file PAR1")
    assert refused(session, f"COPY INTO t FROM '{source}' FILEFORMAT = PARQUET").condition == "FAILED_READ_FILE"
    (source / "bad.parquet").unlink()
    _write(source / "wide.parquet", 1, other=[1, 2])
    assert isinstance(refused(session, f"COPY INTO t FROM '{source}' FILEFORMAT = PARQUET"), UnsupportedError)
    assert session.rows("SELECT count(*) FROM t") == [(0,)]


def test_two_that_load_the_same_file(session: Session, source: Path) -> None:
    session.run("CREATE TABLE t (id BIGINT, name STRING)")
    seen = open_snapshot(str(folder_of(session)))
    _copy(session, source, "FILES = ('in0.parquet')")
    batch = pa.RecordBatch.from_pydict({"id": pa.array([1], pa.int64()), "name": pa.array(["x"])})
    paths = [str(source / "in0.parquet")]
    with pytest.raises(UserError) as caught:
        copy_files(seen, paths, [batch], seen.columns, None, False)
    assert caught.value.condition == "DELTA_CONCURRENT_TRANSACTION" and caught.value.retryable
    copy_files(seen, [str(source / "in1.parquet")], [batch], seen.columns, None, False)
    assert session.rows("SELECT count(*) FROM t") == [(3,)]
    assert len(list(folder_of(session).glob("*.parquet"))) == 2
    assert loaded_files(open_snapshot(seen.root)) == {str(source / f"in{i}.parquet") for i in (0, 1)}


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        ("*", ["", "a", "a.b"], []),
        ("a?c", ["abc"], ["ac", "abbc"]),
        ("*.csv", ["a.csv", ".csv"], ["a.csv.gz", "csv"]),
        ("part-[0-3][ab]*", ["part-0a", "part-3bz"], ["part-4a", "part-0c"]),
        ("[a-]x", ["ax", "-x"], ["bx"]),
        ("{a,b{c,d}}.x", ["a.x", "bc.x", "bd.x"], ["b.x", "c.x", "a,b.x"]),
        ("a*b*c", ["abc", "axxbyyc"], ["acb", "ab"]),
        ("(a|b).x+", ["(a|b).x+"], ["a.x", "a.xx"]),
    ],
)
def test_patterns_of_names(pattern: str, taken: list[str], left: list[str]) -> None:
    assert [name for name in taken if not matches(pattern, name)] == []
    assert [name for name in left if matches(pattern, name)] == []


def test_identity_columns_are_not_left_empty(session: Session, source: Path) -> None:
    session.run("CREATE TABLE t (nr BIGINT GENERATED ALWAYS AS IDENTITY, id INT, name STRING)")
    error = refused(session, f"COPY INTO t FROM '{source}' FILEFORMAT = PARQUET")
    assert isinstance(error, UnsupportedError) and "identity" in error.message
    assert session.rows("SELECT * FROM t") == []


def test_nan_beside_one_other_value_stays_nan(session: Session, source: Path) -> None:
    folder = source / "nan"
    folder.mkdir()
    rows = pa.table({"k": [1, 2, 3], "d": [math.nan, 1.5, 1.5], "f": pa.array([2.5, 2.5, math.nan], pa.float32())})
    pq.write_table(rows, folder / "f.parquet")
    session.run("CREATE TABLE t (k BIGINT, d DOUBLE, f FLOAT)")
    session.run(f"COPY INTO t FROM '{folder}' FILEFORMAT = PARQUET")
    write_deltalake(folder_of(session, "u"), rows)
    for relation in ("t", "u", f"parquet.`{folder}/f.parquet`"):
        for _ in range(3):
            found = session.rows(f"SELECT string(d), string(f) FROM {relation} ORDER BY k")
            assert found == [("NaN", "2.5"), ("1.5", "2.5"), ("1.5", "NaN")], relation


def test_tables_that_forget_what_was_loaded_are_refused(session: Session, source: Path) -> None:
    """Their checkpoints leave it out, and the same files would come again."""
    kept = "'delta.setTransactionRetentionDuration' = 'interval 0 seconds', 'delta.checkpointInterval' = '1'"
    session.run(f"CREATE TABLE forgets (id INT, name STRING) TBLPROPERTIES ({kept})")
    copied = f"COPY INTO forgets FROM '{source}' FILEFORMAT = PARQUET"
    assert "setTransactionRetentionDuration" in refused(session, copied).message
    session.run(f"{copied} COPY_OPTIONS ('force' = 'true')")

    session.run("CREATE TABLE remembers (id INT, name STRING)")
    session.run(f"ALTER TABLE remembers SET TBLPROPERTIES ({kept})")
    session.run("ALTER TABLE remembers UNSET TBLPROPERTIES ('delta.setTransactionRetentionDuration')")
    copied = copied.replace("forgets", "remembers")
    session.run(copied)
    altered = f"ALTER TABLE remembers SET TBLPROPERTIES ({kept.replace('delta.set', 'DELTA.SET')})"
    assert "setTransactionRetentionDuration" in refused(session, altered).message
    session.run("INSERT INTO remembers VALUES (1, 'x')")
    assert session.run(copied).rows[0][0] == 0


def test_files_that_are_loaded_with_what_the_table_has_see_all_of_it(
    session: Session, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.run("CREATE TABLE t (id BIGINT, name STRING)")
    publish = commit.publish

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(commit, "publish", publish)
        session.run("INSERT INTO t VALUES (7, 'late')")
        publish(*arguments)

    monkeypatch.setattr(commit, "publish", late)
    query = f"SELECT ID + (SELECT count(*) FROM t) AS id, name FROM '{source}'"
    statement = f"COPY INTO t FROM ({query}) FILEFORMAT = PARQUET FILES = ('in0.parquet')"
    assert refused(session, statement).condition == "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"
    session.run(statement)
    assert session.rows("SELECT id FROM t ORDER BY id") == [(1,), (7,), (11,)]
    assert newest_info(session)["isBlindAppend"] is False
