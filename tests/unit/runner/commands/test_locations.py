"""CREATE TABLE … LOCATION: tables below allowed folders, which stay there when their names go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import folder_of


@pytest.fixture
def place(session: Session, tmp_path: Path) -> Path:
    """A folder below an allowed one, which is not there yet."""
    allowed = session.runner.environment(session.state).tables.paths.roots[-1]
    parent = Path(allowed) / tmp_path.name
    parent.mkdir()
    return parent / "t"


def test_an_external_table_is_as_any_other_and_stays_when_it_is_dropped(session: Session, place: Path) -> None:
    session.run(f"CREATE TABLE t (id INT PRIMARY KEY, s STRING) PARTITIONED BY (s) LOCATION 'file:{place}'")
    session.run("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    session.run("UPDATE t SET id = 3 WHERE id = 1")
    session.run("OPTIMIZE t")
    session.run("VACUUM t")
    assert session.rows("SHOW TABLES") == [("shop", "t", False)]
    told = {row[0]: row[1] for row in session.rows("DESCRIBE EXTENDED t")}
    assert (told["Type"], told["Location"]) == ("EXTERNAL", f"file:{place}")
    assert json.loads(session.rows("DESCRIBE EXTENDED t AS JSON")[0][0])["type"] == "EXTERNAL"
    kinds = "SELECT table_type FROM information_schema.tables WHERE table_schema = 'shop'"
    assert session.rows(kinds) == [("EXTERNAL",)]
    assert DeltaTable(str(place)).scan().read_all().num_rows == 2
    assert DeltaTable(str(place)).history()[-1]["operationParameters"]["isManaged"] == "false"
    session.run("ALTER TABLE t RENAME TO u")
    assert [row[0] for row in session.rows("SELECT id FROM u ORDER BY id")] == [2, 3]
    session.run("CREATE OR REPLACE TABLE u (a INT)")  # in its place
    assert DeltaTable(str(place)).version() > 2
    ((text,),) = session.rows("SHOW CREATE TABLE u")
    session.run("DROP TABLE u")
    assert (place / "_delta_log").is_dir()
    assert session.rows("SHOW TABLES") == []
    session.run(text)
    assert session.rows("SELECT * FROM u") == []
    session.run("USE default")
    assert refused(session, "DROP SCHEMA shop").condition == "SCHEMA_NOT_EMPTY"
    session.run("DROP SCHEMA shop CASCADE")
    assert (place / "_delta_log").is_dir()
    session.run("CREATE SCHEMA shop")


@pytest.mark.parametrize("name", ["a%20b", "%", "x" * 256], ids=["encoded", "a sign", "long"])
def test_a_folder_that_no_table_can_have_is_told_before_one_is_made(session: Session, place: Path, name: str) -> None:
    for told in (
        f"CREATE TABLE t (id INT) LOCATION '{place.parent}/{name}'",
        f"CREATE TABLE t LOCATION '{place}{name}'",
    ):
        assert refused(session, told).condition in ("UNSUPPORTED_FEATURE", "PATH_NOT_ALLOWED")
    assert session.rows("SHOW TABLES") == [] and not any(place.parent.iterdir())


def test_what_is_there_gets_a_name_if_it_is_what_the_statement_says(session: Session, place: Path) -> None:
    session.run(f"CREATE TABLE t LOCATION '{place}' AS SELECT 1 AS a, 'x' AS b")
    session.run(f"CREATE TABLE again LOCATION '{place}'")
    session.run(f"CREATE TABLE spelt (a INT, b STRING) LOCATION '{place}'")
    session.run("INSERT INTO again VALUES (2, 'y')")
    assert (
        session.rows("SELECT * FROM spelt ORDER BY a")
        == [(1, "x"), (2, "y")]
        == session.rows("SELECT * FROM t ORDER BY a")
    )
    for columns in (
        "(a INT)",
        "(a BIGINT, b STRING)",
        "(a INT, b STRING NOT NULL)",
        "(a INT, b STRING) PARTITIONED BY (b)",
    ):
        text = f"CREATE TABLE other {columns} LOCATION '{place}'"
        assert refused(session, text).condition == "DELTA_CREATE_TABLE_SCHEME_MISMATCH"
    session.run("ALTER TABLE t SET TBLPROPERTIES ('k' = 'v')")
    pairs = [pair for pair in session.rows("SHOW TBLPROPERTIES t") if pair[0] != "k"]
    told = ", ".join(f"'{key}' = '{value}'" for key, value in pairs)
    session.run(f"CREATE TABLE told LOCATION '{place}' TBLPROPERTIES ('k' = 'v', {told})")
    for properties in ("'k' = 'w'", told, f"'k' = 'v', {told}, 'more' = 'x'", "'delta.appendOnly' = 'true'"):
        text = f"CREATE TABLE other LOCATION '{place}' TBLPROPERTIES ({properties})"
        assert refused(session, text).condition == "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY"
    text = f"CREATE TABLE other LOCATION '{place}' AS SELECT 1 AS a"
    assert refused(session, text).condition == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    assert refused(session, f"CREATE TABLE t LOCATION '{place}'").condition == "TABLE_OR_VIEW_ALREADY_EXISTS"


def test_tables_lie_below_allowed_folders_only(session: Session, place: Path) -> None:
    warehouse = folder_of(session).parent.parent
    samples = session.runner.catalogs["samples"].schema_location("tpch")
    (place.parent / "full").mkdir()
    (place.parent / "full" / "f").write_text("x")
    (place.parent / "link").symlink_to("/tmp")
    for folder, condition in (
        ("/etc/t", "PATH_NOT_ALLOWED"),
        (f"{place.parent.parent}", "PATH_NOT_ALLOWED"),
        (f"{place.parent}/../../../t", "PATH_NOT_ALLOWED"),
        (f"{place.parent}/link/t", "PATH_NOT_ALLOWED"),
        (f"{warehouse}/shop/t", "PATH_NOT_ALLOWED"),
        (f"{samples}/t", "PATH_NOT_ALLOWED"),
        ("s3://bucket/t", "PATH_NOT_ALLOWED"),
        ("t", "PATH_NOT_ALLOWED"),
        (f"{place.parent}/none/t", "PATH_NOT_FOUND"),
        (f"{place.parent}/full", "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"),
    ):
        assert refused(session, f"CREATE TABLE t (a INT) LOCATION '{folder}'").condition == condition, folder
    assert refused(session, f"CREATE TABLE t LOCATION '{place}'").condition == "UNSUPPORTED_FEATURE"
    replaced = f"CREATE OR REPLACE TABLE t LOCATION '{place.parent}/full' AS SELECT 1 AS a"
    assert refused(session, replaced).condition == "UNSUPPORTED_FEATURE"
    assert session.rows("SHOW TABLES") == []


def test_a_place_that_is_a_link_by_now_is_not_followed(session: Session, place: Path, tmp_path: Path) -> None:
    session.run(f"CREATE TABLE t (a INT) LOCATION '{place}'")
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    for text in ("SELECT * FROM t", "INSERT INTO t VALUES (1)"):
        assert refused(session, text).condition == "PATH_NOT_ALLOWED"
    stored = folder_of_object(session)
    stored.write_text(stored.read_text().replace(str(place), "/etc"))
    assert refused(session, "SELECT * FROM t").condition == "PATH_NOT_ALLOWED"
    session.run("DROP TABLE t")
    assert session.rows("SHOW TABLES") == []


def folder_of_object(session: Session) -> Path:
    """The file that says where ``t`` lies."""
    return Path(session.runner.catalogs["main"].schema_location("shop"), "_objects", "t.location.json")


def test_a_table_is_replaced_where_it_lies(session: Session, place: Path) -> None:
    session.run(f"CREATE OR REPLACE TABLE t (a INT) LOCATION '{place}'")
    session.run("INSERT INTO t VALUES (1)")
    session.run(f"CREATE OR REPLACE TABLE t (b STRING) LOCATION '{place}'")
    assert session.run("SELECT * FROM t").columns == [("b", "string", True)]
    session.run(f"CREATE OR REPLACE TABLE t LOCATION '{place}' AS SELECT 7 AS c")
    assert session.rows("SELECT * FROM t") == [(7,)]
    history = session.rows("DESCRIBE HISTORY t")
    assert [row[0] for row in history] == [3, 2, 1, 0]
    assert {dict(row[5])["isManaged"] for row in history if row[4].startswith("CREATE")} == {"false"}
    for there in (f"{place}2", f"{place.parent}/other"):
        error = refused(session, f"CREATE OR REPLACE TABLE t (a INT) LOCATION '{there}'")
        assert (error.condition, error.sqlstate) == ("DELTA_TABLE_LOCATION_MISMATCH", "42613")
    assert session.rows("SELECT * FROM t") == [(7,)]
    session.run("CREATE TABLE managed (a INT)")
    error = refused(session, f"CREATE OR REPLACE TABLE managed (a INT) LOCATION '{place}2'")
    assert error.condition == "DELTA_TABLE_LOCATION_MISMATCH"


def test_a_table_without_a_name_is_found_or_replaced_by_a_query(session: Session, place: Path) -> None:
    session.run(f"CREATE TABLE t (a INT) LOCATION '{place}'")
    session.run("INSERT INTO t VALUES (1)")
    session.run("DROP TABLE t")
    error = refused(session, f"CREATE OR REPLACE TABLE t (b INT) LOCATION '{place}'")
    assert error.condition == "DELTA_CREATE_TABLE_SCHEME_MISMATCH"
    session.run(f"CREATE OR REPLACE TABLE t (a INT) LOCATION '{place}'")  # as Spark has it, its rows stay
    assert session.rows("SELECT * FROM t") == [(1,)]
    session.run("DROP TABLE t")
    session.run(f"CREATE OR REPLACE TABLE t LOCATION '{place}' AS SELECT 'x' AS b")
    assert session.rows("SELECT * FROM t") == [("x",)]
    assert len(session.rows("DESCRIBE HISTORY t")) == 3


def test_rows_of_a_table_are_changed_by_its_path(session: Session, place: Path) -> None:
    session.run(f"CREATE TABLE t (id INT, s STRING, CONSTRAINT c CHECK (id > 0)) LOCATION '{place}'")
    name = f"delta.`{place}`"
    assert session.rows(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')") == [(3, 3)]
    assert session.rows(f"UPDATE {name} SET s = {name}.s || 'x' WHERE id = 1") == [(1,)]
    assert session.rows(f"DELETE FROM delta.`file:{place}` WHERE id = 2") == [(1,)]
    merged = f"MERGE INTO {name} t USING (SELECT 3 AS k UNION ALL SELECT 4) s ON t.id = s.k "
    session.run(merged + "WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.k)")
    assert session.rows("SELECT * FROM t ORDER BY id") == [(1, "ax"), (3, "m"), (4, None)]
    session.run(f"INSERT INTO {name} SELECT id + 10, s FROM {name}")
    session.run(f"INSERT INTO {name} REPLACE WHERE id > 10 SELECT 11, 'r'")
    assert session.rows("SELECT count(*) FROM t") == [(4,)]
    session.run(f"INSERT OVERWRITE {name} VALUES (5, 'only')")
    assert pa.table(DeltaTable(str(place)).scan()).to_pylist() == [{"id": 5, "s": "only"}]
    error = refused(session, f"INSERT INTO {name} VALUES (0, 'z')")
    assert error.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert refused(session, f"INSERT INTO {name} VALUES (1)").condition == "DELTA_INSERT_COLUMN_ARITY_MISMATCH"


_TO_PATHS = (
    "INSERT INTO {} VALUES (1)",
    "INSERT OVERWRITE {} VALUES (1)",
    "UPDATE {} SET id = 1",
    "DELETE FROM {}",
    "MERGE INTO {} USING (SELECT 1 AS k) ON id = k WHEN MATCHED THEN DELETE",
)


@pytest.mark.parametrize("statement", _TO_PATHS)
def test_only_what_lies_where_external_tables_may_is_changed_by_its_path(
    session: Session, place: Path, tmp_path: Path, statement: str
) -> None:
    session.run("CREATE TABLE t AS SELECT 7 AS id")
    (sample,) = [row[1] for row in session.rows("DESCRIBE EXTENDED samples.tpch.region") if row[0] == "Location"]
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copytree(folder_of(session), outside / "t")
    (place.parent / "link").symlink_to(outside)
    (place.parent / "empty").mkdir()
    elsewhere = {
        f"delta.`{folder_of(session)}`": "PATH_NOT_ALLOWED",
        f"delta.`{sample.removeprefix('file:')}`": "PATH_NOT_ALLOWED",
        f"delta.`{outside}/t`": "PATH_NOT_ALLOWED",
        f"delta.`{place.parent}/link/t`": "PATH_NOT_ALLOWED",
        f"delta.`{place.parent}/../../t`": "PATH_NOT_ALLOWED",
        f"delta.`{place.parent}/{'../' * 20}{outside}/t`": "PATH_NOT_ALLOWED",
        f"delta.`{place.parent}/nowhere`": "PATH_NOT_FOUND",
        f"delta.`{place.parent}/empty`": "DELTA_TABLE_NOT_FOUND",
        f"parquet.`{place}`": "UNSUPPORTED_FEATURE",
    }
    for name, condition in elsewhere.items():
        assert refused(session, statement.format(name)).condition == condition, name
    assert session.rows("SELECT * FROM t") == [(7,)]
    assert DeltaTable(str(outside / "t")).version() == 0
    assert list((place.parent / "empty").iterdir()) == []


def test_what_changes_rows_by_a_path_is_explained(session: Session, place: Path) -> None:
    session.run(f"CREATE TABLE t (id INT) LOCATION '{place}'")
    name = f"delta.`{place}`"
    for statement in (f"INSERT INTO {name} VALUES (1)", f"INSERT OVERWRITE {name} VALUES (1)", f"DELETE FROM {name}"):
        ((told,),) = session.rows(f"EXPLAIN {statement}")
        assert "Engine: datafusion" in told
    assert session.rows("SELECT count(*) FROM t") == [(0,)]
    session.run("CREATE TABLE own (id INT)")
    own = session.runner.catalogs["main"].table_location("shop", "own")
    assert refused(session, f"EXPLAIN INSERT INTO delta.`{own}` VALUES (1)").condition == "PATH_NOT_ALLOWED"


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE TABLE {}",
        "OPTIMIZE {}",
        "VACUUM {}",
        "COPY INTO {} FROM '/x' FILEFORMAT = CSV",
        "CREATE TABLE {} (a INT)",
        "CREATE OR REPLACE TABLE {} AS SELECT 1 AS a",
    ],
)
def test_other_statements_on_paths_are_refused(session: Session, place: Path, statement: str) -> None:
    session.run(f"CREATE TABLE t (id INT) LOCATION '{place}'")
    assert refused(session, statement.format(f"delta.`{place}`")).condition == "UNSUPPORTED_FEATURE"
