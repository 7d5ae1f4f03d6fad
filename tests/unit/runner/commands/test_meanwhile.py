"""Changes of views, names, keys and schemas that have looked before another session's: one after the other, or a conflict."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

from gateway.catalog import facts, writers
from gateway.catalog.local import LocalCatalog
from gateway.delta import write
from gateway.worker_jobs import marker_of
from tests.unit.runner.session import Session, refused

_PRIMARY = "ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a)"
_KEY = "CONSTRAINT young PRIMARY KEY (b)"
_NULLS = "ALTER TABLE t ALTER COLUMN a DROP NOT NULL"


@pytest.fixture
def made(session: Session) -> Session:
    """A view ``v`` of 1 and a table ``t``."""
    session.run("CREATE VIEW v AS SELECT 1 AS a")
    session.run("CREATE TABLE t (a INT NOT NULL, b INT)")
    return session


def _before_it_is_alone(session: Session, monkeypatch: pytest.MonkeyPatch, meanwhile: str) -> None:
    """Run a statement right before the next one changes what the catalog keeps."""
    alone = facts.alone

    def late(root: str) -> AbstractContextManager[None]:
        monkeypatch.setattr(facts, "alone", alone)
        session.run(meanwhile)
        return alone(root)

    monkeypatch.setattr(facts, "alone", late)


@pytest.mark.parametrize(
    ("statement", "meanwhile", "condition"),
    [
        ("ALTER VIEW v SET TBLPROPERTIES ('k' = '1')", "CREATE OR REPLACE VIEW v AS SELECT 2 AS a", "WRITE_CONFLICT"),
        ("COMMENT ON VIEW v IS 'x'", "ALTER VIEW v SET TBLPROPERTIES ('k' = '1')", "WRITE_CONFLICT"),
        ("COMMENT ON VIEW v IS 'x'", "DROP VIEW v", "WRITE_CONFLICT"),
        ("ALTER VIEW v AS SELECT 3 AS a", "CREATE OR REPLACE VIEW v AS SELECT 2 AS a", "WRITE_CONFLICT"),
        ("ALTER VIEW v AS SELECT 3 AS a", "DROP VIEW v", "WRITE_CONFLICT"),
        ("ALTER VIEW v RENAME TO w", "CREATE OR REPLACE VIEW v AS SELECT 2 AS a", "WRITE_CONFLICT"),
        ("ALTER VIEW v RENAME TO w", "CREATE TABLE w AS SELECT 2 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE VIEW x AS SELECT 1 AS a", "CREATE TABLE x AS SELECT 5 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE x AS SELECT 5 AS a", "CREATE VIEW x AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE x (a INT)", "CREATE VIEW x AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE x LIKE t", "CREATE VIEW x AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE x SHALLOW CLONE t", "CREATE VIEW x AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("ALTER TABLE t RENAME TO x", "CREATE VIEW x AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        (
            f"CREATE TABLE z (b INT NOT NULL, {_KEY})",
            f"CREATE TABLE y (b INT NOT NULL, {_KEY})",
            "CONSTRAINT_ALREADY_EXISTS",
        ),
        (_PRIMARY, "ALTER TABLE t RENAME TO u", "WRITE_CONFLICT"),
        (_PRIMARY, "DROP TABLE t", "WRITE_CONFLICT"),
        (_PRIMARY, _NULLS, "INVALID_PARAMETER_VALUE"),
        (_NULLS, _PRIMARY, "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
    ],
)
def test_the_second_of_two_changes_undoes_nothing_of_the_first(
    made: Session, monkeypatch: pytest.MonkeyPatch, statement: str, meanwhile: str, condition: str
) -> None:
    _before_it_is_alone(made, monkeypatch, meanwhile)
    assert refused(made, statement).condition == condition
    views = {row[1] for row in made.rows("SHOW VIEWS")}
    assert ("v" in views) == (meanwhile != "DROP VIEW v")
    assert ("shop", "z", False) not in made.rows("SHOW TABLES")
    if meanwhile.startswith("CREATE OR REPLACE"):
        assert made.rows("SELECT * FROM v") == [(2,)]
    if " x " in meanwhile:
        assert ("x" in views) == meanwhile.startswith("CREATE VIEW")


@pytest.mark.parametrize("meanwhile", ["CREATE TABLE x AS SELECT 1 AS a", "CREATE VIEW x AS SELECT 1 AS a"])
@pytest.mark.parametrize("new", ["x AS SELECT 5 AS a", "x (a INT)", "x LIKE t", "x DEEP CLONE t"])
def test_a_table_that_need_not_exist_may_be_made_meanwhile(
    made: Session, monkeypatch: pytest.MonkeyPatch, new: str, meanwhile: str
) -> None:
    _before_it_is_alone(made, monkeypatch, meanwhile)
    assert made.rows(f"CREATE TABLE IF NOT EXISTS {new}") == []
    assert made.rows("SELECT * FROM x") == [(1,)]


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE gone.t AS SELECT 1 AS a", "CREATE TABLE gone.t (a INT)", "CREATE TABLE gone.t SHALLOW CLONE t"],
)
@pytest.mark.parametrize("how", ["", " CASCADE"])
def test_no_table_brings_back_a_schema_that_is_dropped_meanwhile(
    made: Session, monkeypatch: pytest.MonkeyPatch, statement: str, how: str
) -> None:
    made.run("CREATE SCHEMA IF NOT EXISTS gone COMMENT 'for a while'")
    check_own = write.check_own

    def late(path: str) -> None:
        monkeypatch.setattr(write, "check_own", check_own)
        made.run(f"DROP SCHEMA gone{how}")
        check_own(path)

    monkeypatch.setattr(write, "check_own", late)
    if "CLONE" in statement:
        made.run("DROP SCHEMA gone")
        monkeypatch.setattr(write, "check_own", check_own)
    error = refused(made, statement)
    assert error.condition in ("WRITE_CONFLICT", "SCHEMA_NOT_FOUND")
    assert ("gone",) not in made.rows("SHOW SCHEMAS")


def test_what_is_dropped_leaves_the_folder_of_the_warehouse_as_it_was(made: Session) -> None:
    """Those who look whether another table was moved would see the change, and begin anew."""
    catalog = made.runner.catalogs["main"]
    assert isinstance(catalog, LocalCatalog)
    made.run("DROP TABLE t")
    seen = marker_of(catalog.root)
    made.run("CREATE TABLE t AS SELECT 1 AS a")
    made.run("DROP TABLE t")
    assert marker_of(catalog.root) == seen


@pytest.mark.parametrize("how", ["", " CASCADE"])
def test_a_schema_that_is_dropped_meanwhile_leaves_no_comment(
    made: Session, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    made.run("DROP SCHEMA IF EXISTS gone")
    made.run("CREATE SCHEMA gone COMMENT 'for a while'")
    _before_it_is_alone(made, monkeypatch, f"DROP SCHEMA gone{how}")
    assert refused(made, "COMMENT ON SCHEMA gone IS 'late'").condition == "SCHEMA_NOT_FOUND"
    made.run("CREATE SCHEMA gone")
    assert ("Comment", "") in made.rows("DESCRIBE SCHEMA gone")


def test_what_several_find_of_one_table_is_kept(made: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    made.run("INSERT INTO t VALUES (1, NULL), (2, 5)")
    _before_it_is_alone(made, monkeypatch, "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS b")
    made.run("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a")
    assert ("num_nulls", "0") in made.rows("DESCRIBE EXTENDED t a")
    assert ("num_nulls", "1") in made.rows("DESCRIBE EXTENDED t b")


@pytest.mark.parametrize(
    ("dropped", "condition"), [("TABLE {}t", "TABLE_OR_VIEW_NOT_FOUND"), ("SCHEMA {}gone", "SCHEMA_NOT_FOUND")]
)
@pytest.mark.parametrize("tolerant", ["", "IF EXISTS "])
def test_what_others_drop_meanwhile_need_not_exist(
    made: Session, monkeypatch: pytest.MonkeyPatch, dropped: str, condition: str, tolerant: str
) -> None:
    made.run("CREATE SCHEMA IF NOT EXISTS gone")
    taking = writers.taking

    def late(*names: str) -> AbstractContextManager[None]:
        monkeypatch.setattr(writers, "taking", taking)
        made.run(f"DROP {dropped.format('')}")
        return taking(*names)

    monkeypatch.setattr(writers, "taking", late)
    if tolerant:
        assert made.rows(f"DROP {dropped.format(tolerant)}") == []
    else:
        assert refused(made, f"DROP {dropped.format(tolerant)}").condition == condition
