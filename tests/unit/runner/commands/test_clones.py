"""Clones: rows of another table at a version, read and written without a change of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from gateway.delta import log
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import folder_of

_ROWS = [(1, "a/b"), (2, "y z"), (3, None), (4, "a/b")]
_MADE = {
    "plain": "",
    "vectors": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "mapped": "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true')",
}


def _files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(params=sorted(_MADE))
def source(session: Session, request: pytest.FixtureRequest) -> Session:
    """``t``, partitioned, with rows of several versions."""
    session.run(f"CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p) COMMENT 'of' {_MADE[request.param]}")
    session.run("INSERT INTO t VALUES (1, 'a/b'), (2, 'y z'), (3, NULL), (5, 'a/b'), (6, 'a/b')")
    session.run("DELETE FROM t WHERE id > 4")
    session.run("INSERT INTO t VALUES (4, 'a/b')")
    return session


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_a_clone_is_read_and_written_and_its_source_stays(source: Session, kind: str) -> None:
    before = _files(folder_of(source))
    assert source.run(f"CREATE TABLE c {kind} CLONE t").rows[0][1] > 0
    ask = "SELECT * FROM {} ORDER BY id"
    assert source.rows(ask.format("c")) == _ROWS == source.rows(ask.format("t"))
    assert source.rows("SELECT id FROM c WHERE p = 'y z'") == [(2,)]
    source.run("UPDATE c SET id = id + 10 WHERE p = 'a/b'")
    source.run("DELETE FROM c WHERE id = 2")
    source.run("INSERT INTO c VALUES (7, 'new')")
    source.run("MERGE INTO c USING (SELECT 3 AS id) q ON c.id = q.id WHEN MATCHED THEN UPDATE SET p = 'm'")
    rows = [(3, "m"), (7, "new"), (11, "a/b"), (14, "a/b")]
    assert source.rows(ask.format("c")) == rows
    source.run("OPTIMIZE c")
    source.run("VACUUM c")
    source.run("VACUUM c LITE")
    assert source.rows(ask.format("c")) == rows
    assert source.rows("SELECT * FROM c VERSION AS OF 0 ORDER BY id") == _ROWS
    source.run("RESTORE TABLE c TO VERSION AS OF 0")
    assert source.rows(ask.format("c")) == _ROWS
    assert _files(folder_of(source)) == before
    if kind == "DEEP":
        source.run("DROP TABLE t")
        assert source.rows(ask.format("c")) == _ROWS


@pytest.mark.parametrize(
    "moment",
    [
        "current_timestamp() - INTERVAL '1:30' HOUR TO MINUTE",
        "date_trunc('second', now()) - make_dt_interval(0, 1, 30) TBLPROPERTIES ('k' = 'v')",
        "(SELECT max(col1) FROM VALUES (now() - INTERVAL 90 MINUTES))",
    ],
)
def test_a_clone_of_a_computed_time(session: Session, moment: str) -> None:
    session.run("CREATE TABLE t (id INT)")
    for version in range(1, 4):
        session.run(f"INSERT INTO t VALUES ({version})")
    for version in range(4):
        then = time.time() - 3600 * (4 - version)
        os.utime(log.commit_path(str(folder_of(session)), version), (then, then))
    session.run(f"CREATE TABLE c SHALLOW CLONE t TIMESTAMP AS OF {moment}")
    assert session.rows("SELECT * FROM c ORDER BY id") == [(1,), (2,)]
    assert (("k", "v") in session.rows("SHOW TBLPROPERTIES c")) == ("'k'" in moment)


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_a_colon_in_the_path_of_a_file_begins_no_address(session: Session, kind: str) -> None:
    """Other writers than Spark leave it as it is in the names of folders."""
    session.run("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    session.run("INSERT INTO t VALUES (1, '10:20')")
    folder = folder_of(session)
    (folder / "p=10%3A20").rename(folder / "p=10:20")
    commit = Path(log.commit_path(str(folder), 1))
    commit.write_text(commit.read_text().replace("p=10%253A20", "p=10:20"))
    session.run(f"CREATE TABLE c {kind} CLONE t")
    assert session.rows("SELECT * FROM c") == session.rows("SELECT * FROM t") == [(1, "10:20")]


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_a_clone_of_a_clone_of_a_version(source: Session, kind: str) -> None:
    source.run("CREATE TABLE c SHALLOW CLONE t VERSION AS OF 1")
    source.run("INSERT INTO c VALUES (9, 'x')")
    source.run(f"CREATE TABLE d {kind} CLONE c TBLPROPERTIES ('k' = 'v')")
    assert [row[0] for row in source.rows("SELECT id FROM d ORDER BY id")] == [1, 2, 3, 5, 6, 9]
    assert ("k", "v") in source.rows("SHOW TBLPROPERTIES d")
    assert source.rows("DESCRIBE DETAIL d")[0][3] == "of"
    history = source.rows("DESCRIBE HISTORY d")
    assert history[0][4] == "CLONE"
    assert dict(history[0][5])["sourceVersion"] == "1"
    if kind == "DEEP":
        paths = DeltaTable(str(folder_of(source, "d"))).get_add_actions(flatten=True)
        assert not any("file:" in path for path in paths["path"].to_pylist())


def test_what_was_loaded_into_a_table_is_not_loaded_into_its_deep_clone_again(session: Session, tmp_path: Path) -> None:
    allowed = session.runner.environment(session.state).tables.paths.roots[-1]
    files = Path(allowed) / tmp_path.name
    files.mkdir()
    (files / "f.csv").write_text("1\n")
    load = f"COPY INTO {{}} FROM '{files}' FILEFORMAT = CSV COPY_OPTIONS ('mergeSchema' = 'true')"
    session.run("CREATE TABLE t (a INT)")
    assert session.rows(load.format("t")) == [(1, 1, 0)]
    session.run("CREATE TABLE deep DEEP CLONE t")
    session.run("CREATE TABLE shallow SHALLOW CLONE t")
    assert session.rows(load.format("deep")) == [(0, 0, 0)]
    assert session.rows(load.format("shallow")) == [(1, 1, 0)]


def test_a_cloned_identity_and_constraint_hold(session: Session) -> None:
    session.run("CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, a INT CHECK (a > 0))")
    session.run("INSERT INTO t (a) VALUES (1), (2)")
    session.run("CREATE TABLE c SHALLOW CLONE t")
    session.run("INSERT INTO c (a) VALUES (3)")
    ids = [row[0] for row in session.rows("SELECT id FROM c")]
    assert len(set(ids)) == 3
    assert refused(session, "INSERT INTO c (a) VALUES (0)").condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("CREATE TABLE t SHALLOW CLONE t", "DELTA_TABLE_ALREADY_EXISTS"),
        ("CREATE OR REPLACE TABLE t SHALLOW CLONE t", "UNSUPPORTED_FEATURE"),
        ("CREATE TABLE c SHALLOW CLONE nope", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE TABLE c SHALLOW CLONE v", "UNSUPPORTED_FEATURE"),
        ("CREATE TABLE c SHALLOW CLONE t VERSION AS OF 7", "DELTA_VERSION_NOT_FOUND"),
        ("CREATE TABLE c SHALLOW CLONE t TIMESTAMP AS OF 'nope'", "DELTA_TIMESTAMP_INVALID"),
        ("CREATE TABLE c SHALLOW CLONE t TIMESTAMP AS OF 'no' || 'pe'", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT"),
        ("CREATE TABLE c SHALLOW CLONE t TIMESTAMP AS OF rand()", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.NON_DETERMINISTIC"),
        ("CREATE TABLE c SHALLOW CLONE t TIMESTAMP AS OF now() nope", "PARSE_SYNTAX_ERROR"),
        ("CREATE TABLE c SHALLOW CLONE t TBLPROPERTIES ('delta.enableRowTracking' = 'true')", "UNSUPPORTED_FEATURE"),
        ("CREATE TABLE c SHALLOW CLONE t TBLPROPERTIES ('delta.unheard' = 'true')", "UNSUPPORTED_FEATURE"),
        ("CREATE TABLE c (a INT) SHALLOW CLONE t", "UNSUPPORTED_FEATURE"),
        ("CREATE TABLE c SHALLOW CLONE delta.`/etc`", "PATH_NOT_ALLOWED"),
    ],
)  # fmt: skip
def test_what_is_no_clone_is_refused_and_nothing_made(session: Session, statement: str, condition: str) -> None:
    session.run("CREATE TABLE t (a INT)")
    session.run("CREATE VIEW v AS SELECT * FROM t")
    error = refused(session, statement)
    assert error.condition == condition
    assert session.rows("SHOW TABLES LIKE 'c'") == []
    assert len(log.commit_versions(str(folder_of(session)))) == 1


def test_a_shared_file_that_is_a_link_by_now_is_not_read(session: Session, tmp_path: Path) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS a")
    session.run("CREATE TABLE c SHALLOW CLONE t")
    folder = folder_of(session)
    (file,) = folder.glob("*.parquet")
    file.rename(tmp_path / "secret.parquet")
    file.symlink_to(tmp_path / "secret.parquet")
    assert refused(session, "SELECT * FROM c").condition == "PATH_NOT_ALLOWED"
    file.unlink()
    assert refused(session, "SELECT * FROM c").condition == "DELTA_FILE_NOT_FOUND"
    folder.rename(tmp_path / "t")
    folder.symlink_to(tmp_path / "t")
    (tmp_path / "secret.parquet").rename(tmp_path / "t" / file.name)
    assert refused(session, "SELECT a + 1 FROM c").condition == "PATH_NOT_ALLOWED"
    folder.unlink()


def test_a_clone_is_not_made_twice(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS a")
    session.run("CREATE TABLE IF NOT EXISTS c SHALLOW CLONE t")
    assert session.rows("CREATE TABLE IF NOT EXISTS c SHALLOW CLONE t") == []
    assert session.rows("SELECT * FROM c") == [(1,)]
    session.run("CREATE TABLE n SHALLOW CLONE samples.tpch.nation")
    assert session.rows("SELECT count(*) FROM n") == [(25,)]


def test_a_table_with_rows_is_no_place_for_a_clone(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS a")
    session.run("CREATE TABLE u AS SELECT 2 AS b")
    error = refused(session, "CREATE OR REPLACE TABLE t SHALLOW CLONE u")
    assert (error.condition, error.sqlstate) == ("DELTA_UNSUPPORTED_NON_EMPTY_CLONE", "0AKDC")
    session.run("CREATE OR REPLACE TABLE c SHALLOW CLONE u")
    session.run("CREATE OR REPLACE TABLE c AS SELECT 3 AS d")  # a clone is replaced as any table is
    assert (session.rows("SELECT * FROM c"), session.rows("SELECT * FROM u")) == ([(3,)], [(2,)])


def test_what_a_clone_of_a_clone_misses_is_told_by_name(source: Session) -> None:
    source.run("CREATE TABLE a SHALLOW CLONE t")
    source.run("CREATE TABLE b SHALLOW CLONE a")
    source.run("DROP TABLE t")
    missing = {"DELTA_FILE_NOT_FOUND", "DELTA_LOG_CORRUPT"}  # a data file, or a deletion vector
    for name in ("a", "b"):
        assert refused(source, f"SELECT * FROM {name}").condition in missing
        assert refused(source, f"CREATE TABLE c DEEP CLONE {name}").condition in missing
        assert source.rows("SHOW TABLES LIKE 'c'") == []
