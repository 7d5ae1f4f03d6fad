"""Older versions of a table in SQL: every spelling gives the rows of its version, what is not there is an error."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gateway.catalog.local import LocalCatalog
from gateway.delta import table
from gateway.delta.log import commit_path
from gateway.errors import GatewayError
from gateway.runner import Runner
from tests.unit.runner.session import Session

# Versions 0, 1, 2 are from these instants on: 2023-11-14 22:00, 23:00 and 2023-11-15 00:00 UTC.
FIRST = 1_699_999_200
TIMES = (FIRST, FIRST + 3600, FIRST + 7200)
EARLY, LATE = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


@pytest.fixture
def travelled(session: Session, runner: Runner) -> Session:
    """`t` with no row in version 0, 1 in version 1, 1 and 2 in version 2; two views of it."""
    session.run("CREATE TABLE t (id INT)")
    for value in (1, 2):
        session.run(f"INSERT INTO t VALUES ({value})")
    for version, seconds in enumerate(TIMES):
        os.utime(commit_path(place_of(runner), version), (seconds, seconds))
    session.run("CREATE VIEW lasting AS SELECT * FROM t")
    session.run("CREATE OR REPLACE TEMPORARY VIEW fleeting AS SELECT * FROM t")
    return session


def place_of(runner: Runner) -> str:
    """The folder of `t`."""
    catalog = runner.catalogs["main"]
    assert isinstance(catalog, LocalCatalog)
    return str(Path(catalog.root) / "shop" / "t")


@pytest.mark.parametrize(
    ("spelled", "version"),
    [
        ("t", 2),
        ("t VERSION AS OF 0", 0),
        ("t VERSION AS OF 1", 1),
        ("t VERSION AS OF 2", 2),
        ("t VERSION AS OF '1'", 1),
        ("t FOR VERSION AS OF 1", 1),
        ("t FOR SYSTEM_VERSION AS OF 1", 1),
        ("main.shop.t VERSION AS OF 1 AS aliased", 1),
        ("t@v0", 0),
        ("t@v1", 1),
        ("shop.t@v2", 2),
        ("delta.`{path}` VERSION AS OF 0", 0),
        ("delta.`{path}` VERSION AS OF 1", 1),
        ("delta.`{path}`", 2),
        ("t TIMESTAMP AS OF '2023-11-14 22:00:00'", 0),
        ("t TIMESTAMP AS OF '2023-11-14 22:59:59.999999'", 0),
        ("t TIMESTAMP AS OF '2023-11-14 23:00:00'", 1),
        ("t TIMESTAMP AS OF '2023-11-14T23:30:00Z'", 1),
        ("t TIMESTAMP AS OF '2023-11-15'", 2),
        ("t TIMESTAMP AS OF TIMESTAMP '2023-11-14 23:30:00'", 1),
        ("t TIMESTAMP AS OF DATE '2023-11-14' + 1", 2),
        ("t FOR TIMESTAMP AS OF '2023-11-14 23:30:00'", 1),
        ("t FOR SYSTEM_TIME AS OF '2023-11-14 23:30:00'", 1),
        ("delta.`{path}` TIMESTAMP AS OF '2023-11-14 23:30:00'", 1),
    ],
)
def test_every_spelling_gives_the_rows_of_its_version(
    travelled: Session, runner: Runner, spelled: str, version: int
) -> None:
    rows = travelled.rows(f"SELECT * FROM {spelled.format(path=place_of(runner))}")
    assert sorted(rows) == [(i + 1,) for i in range(version)]


def test_a_timestamp_is_read_in_the_zone_of_the_session(travelled: Session) -> None:
    travelled.run("SET TIME ZONE 'Europe/Oslo'")  # an hour ahead of UTC in November
    assert travelled.rows("SELECT * FROM t TIMESTAMP AS OF '2023-11-15 00:30:00'") == [(1,)]
    assert travelled.rows("SELECT * FROM t TIMESTAMP AS OF '2023-11-14 23:30:00'") == []


def test_versions_of_one_table_meet_in_one_statement(travelled: Session) -> None:
    assert sorted(travelled.rows("SELECT a.id, b.id FROM t@v1 a CROSS JOIN t b")) == [(1, 1), (1, 2)]
    assert travelled.rows("SELECT id FROM t EXCEPT SELECT id FROM t VERSION AS OF 1") == [(2,)]
    assert travelled.rows("WITH t AS (SELECT * FROM t@v1) SELECT * FROM t") == [(1,)]
    assert travelled.rows("SELECT count(*) FROM t WHERE id NOT IN (SELECT id FROM t VERSION AS OF 1)") == [(1,)]


def test_a_table_made_anew_has_no_versions_of_the_dropped_one(session: Session) -> None:
    session.run("CREATE TABLE t (id INT)")
    session.run("INSERT INTO t VALUES (7)")
    session.run("DROP TABLE t")
    session.run("CREATE TABLE t (name STRING)")
    assert session.run("SELECT * FROM t VERSION AS OF 0").columns == [("name", "string", True)]
    with pytest.raises(GatewayError) as caught:
        session.run("SELECT * FROM t VERSION AS OF 1")  # the dropped table had one
    assert caught.value.condition == "DELTA_VERSION_NOT_FOUND"


def test_a_new_commit_leaves_older_versions_as_they_were(travelled: Session) -> None:
    assert travelled.rows("SELECT * FROM t VERSION AS OF 1") == [(1,)]
    travelled.run("INSERT INTO t VALUES (3)")
    assert travelled.rows("SELECT * FROM t VERSION AS OF 1") == [(1,)]
    assert sorted(travelled.rows("SELECT * FROM t VERSION AS OF 3")) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("spelled", "condition", "sqlstate"),
    [
        ("t VERSION AS OF 3", "DELTA_VERSION_NOT_FOUND", "22003"),
        ("t@v3", "DELTA_VERSION_NOT_FOUND", "22003"),
        ("t VERSION AS OF 99999999999999999999", "DELTA_VERSION_NOT_FOUND", "22003"),
        ("delta.`{path}` VERSION AS OF 3", "DELTA_VERSION_NOT_FOUND", "22003"),
        ("t TIMESTAMP AS OF '2023-11-14 21:59:59'", EARLY, "42816"),
        ("t TIMESTAMP AS OF '2023-11-15 00:00:01'", LATE, "42816"),
        ("delta.`{path}` TIMESTAMP AS OF '2123-01-01'", LATE, "42816"),
        ("t TIMESTAMP AS OF now() - INTERVAL 1 HOUR", LATE, "42816"),
        ("t TIMESTAMP AS OF current_timestamp() - INTERVAL 20000 DAY", EARLY, "42816"),
        ("t TIMESTAMP AS OF date_sub(current_date(), 20000)", EARLY, "42816"),
        ("t TIMESTAMP AS OF concat('2023-11-14', '')", EARLY, "42816"),
        ("t TIMESTAMP AS OF upper('2023-11-14')", EARLY, "42816"),
        ("t TIMESTAMP AS OF (SELECT current_timestamp())", LATE, "42816"),
        ("t TIMESTAMP AS OF (SELECT min(id) FROM t)", EARLY, "42816"),
        ("t TIMESTAMP AS OF 5", EARLY, "42816"),
        ("t TIMESTAMP AS OF 1 / 0", "DIVIDE_BY_ZERO", "22012"),
        ("t TIMESTAMP AS OF raise_error('x')", "USER_RAISED_EXCEPTION", "P0001"),
        ("t TIMESTAMP AS OF CAST('zz' AS TIMESTAMP)", "CAST_INVALID_INPUT", "22018"),
        ("t TIMESTAMP AS OF concat('ab', 'c')", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT", "42K0E"),
        ("t TIMESTAMP AS OF array(1)", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT", "42K0E"),
        ("t TIMESTAMP AS OF explode(array(1))", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT", "42K0E"),
        ("t TIMESTAMP AS OF count(1)", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.UNEVALUABLE", "42K0E"),
        ("t TIMESTAMP AS OF rank() OVER (ORDER BY 1)", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.UNEVALUABLE", "42K0E"),
        ("t TIMESTAMP AS OF rand()", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.NON_DETERMINISTIC", "42K0E"),
        ("t TIMESTAMP AS OF id", "_LEGACY_ERROR_TEMP_0056", "XX000"),
        ("t VERSION AS OF 'one'", "INVALID_TIME_TRAVEL_SPEC", "42K0E"),
        ("t TIMESTAMP AS OF 'soon'", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT", "42K0E"),
        ("t TIMESTAMP AS OF NULL", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT", "42K0E"),
        ("t VERSION AS OF -1", "PARSE_SYNTAX_ERROR", "42601"),
        ("missing VERSION AS OF 0", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("delta.`{path}x` VERSION AS OF 0", "PATH_NOT_FOUND", "42K03"),
    ],
)
def test_what_is_not_there_is_an_error(
    travelled: Session, runner: Runner, spelled: str, condition: str, sqlstate: str
) -> None:
    with pytest.raises(GatewayError) as caught:
        travelled.run(f"SELECT * FROM {spelled.format(path=place_of(runner))}")
    assert (caught.value.condition, caught.value.sqlstate) == (condition, sqlstate)
    assert caught.value.span is not None


@pytest.mark.parametrize("how", ["VERSION AS OF 1", "@v1", "TIMESTAMP AS OF '2023-11-14 23:30:00'"])
@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("WITH cte AS (SELECT 1 AS id) SELECT * FROM cte", "CTE"),
        ("SELECT * FROM fleeting", "view"),
        ("SELECT * FROM lasting", "view"),
        ("SELECT * FROM main.shop.lasting", "view"),
    ],
)
def test_only_tables_have_versions(travelled: Session, source: str, what: str, how: str) -> None:
    assert travelled.rows(source)
    with pytest.raises(GatewayError, match=f"time travel on a {what}") as caught:
        travelled.run(f"{source}{'' if how.startswith('@') else ' '}{how}")
    assert (caught.value.condition, caught.value.sqlstate) == ("UNSUPPORTED_FEATURE", "0A000")


@pytest.mark.parametrize("sql", ["SELECT count(*) FROM t VERSION AS OF 1", "RESTORE TABLE t TO VERSION AS OF 1"])
def test_who_writes_and_makes_tables_beside_it_keeps_nobody_from_a_version(
    travelled: Session, runner: Runner, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    place, opened, times = Path(place_of(runner)), table._open, iter(range(4))

    def beside(*arguments: Any) -> Any:
        found = opened(*arguments)
        if next(times, None) is not None:
            for folder in (place, place.parent):
                (folder / "_beside").mkdir()
                (folder / "_beside").rmdir()
        return found

    monkeypatch.setattr(table, "_open", beside)
    travelled.run("ALTER TABLE t SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 9999 weeks')")
    travelled.run(sql)
    assert next(times, None) is None
