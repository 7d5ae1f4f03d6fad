"""Queries that stay compiled answer as they did, as long as what they name is as it was."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gateway.worker_jobs import Parameter
from tests.live.processes import eventually
from tests.unit.runner.session import Result, Session


def was_kept(result: Result) -> bool:
    """Whether a query was not read and compiled for this answer."""
    return bool(result.finished.facts["parse_ms"] == 0.0)


def until_kept(session: Session, text: str) -> Result:
    """The answer to a query that is kept: one of a table that was just written is not, as its files may change unseen."""
    eventually(lambda: was_kept(session.run(text)), 10)
    return session.run(text)


@pytest.fixture
def table(session: Session) -> Session:
    session.run("CREATE OR REPLACE TABLE kept (a INT)")
    session.run("INSERT INTO kept VALUES (1), (2)")
    return session


@pytest.mark.parametrize(
    "text", ["SELECT 1 AS a, 'x' AS b", "SELECT sum(a) FROM kept WHERE a > 0", "SELECT * FROM range(3)"]
)
def test_the_second_time_nothing_is_compiled(table: Session, text: str) -> None:
    first, second = table.run(text), until_kept(table, text)
    assert not was_kept(first)
    assert (first.rows, first.columns) == (second.rows, second.columns)
    assert first.finished.facts["read"] == second.finished.facts["read"]


@pytest.mark.parametrize(
    "change", ["INSERT INTO kept VALUES (3)", "CREATE OR REPLACE TABLE kept (a INT) ", "DELETE FROM kept"]
)
def test_a_change_ends_it(table: Session, change: str) -> None:
    text = "SELECT a FROM kept ORDER BY a"
    until_kept(table, text)
    table.run(change)
    now = table.run(text)
    assert not was_kept(now) and now.rows != [(1,), (2,)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT rand() >= 0 AS a",
        "SELECT current_timestamp() > TIMESTAMP'2020-01-01 00:00:00' AS a",
        "SELECT count(*) FROM kept VERSION AS OF 1",
        "SELECT count(*) FROM information_schema.tables WHERE table_name = 'kept'",
    ],
)
def test_what_nothing_shows_to_be_as_it_was_is_compiled_each_time(table: Session, text: str) -> None:
    assert table.run(text).rows == table.run(text).rows
    assert not was_kept(table.run(text))


def test_parameters_and_settings_make_another_one(table: Session) -> None:
    text = "SELECT :a AS a"
    for value in ("1", "2"):
        assert table.run(text, Parameter("a", "INT", value)).rows == [(int(value),)]
    assert was_kept(table.run(text, Parameter("a", "INT", "1")))
    zones = "SELECT hour(TIMESTAMP'2020-01-01 12:00:00Z') AS h"
    assert table.rows(zones) == [(12,)]
    table.run("SET TIME ZONE 'Asia/Tokyo'")
    assert table.rows(zones) == [(21,)]


def test_what_would_hold_much_memory_is_compiled_each_time(table: Session) -> None:
    large = "x" * 100_000
    for text, *parameters in (
        (f"SELECT length('{large}') AS n",),
        ("SELECT length(:a) AS n", Parameter("a", "STRING", large)),
    ):
        answers = [table.run(text, *parameters) for _ in range(2)]
        assert [answer.rows for answer in answers] == [[(100_000,)]] * 2
        assert not was_kept(answers[1])


def test_a_view_of_the_session_hides_it(table: Session) -> None:
    text = "SELECT a FROM kept ORDER BY a"
    assert until_kept(table, text).rows == [(1,), (2,)]
    table.run("CREATE TEMPORARY VIEW kept AS SELECT 9 AS a")
    assert table.rows(text) == [(9,)]


def folder_of(session: Session, table: str) -> Path:
    return Path(session.run(f"DESCRIBE DETAIL {table}").rows[0][4].removeprefix("file:"))


def taken_by_another_table(session: Session, table: str) -> None:
    """Have another writer make a table, which says 42, in the folder of a name."""
    session.run("CREATE OR REPLACE TABLE other AS SELECT 42 AS a")
    (folder := folder_of(session, "other")).rename(folder.with_name(table))


@pytest.mark.parametrize("link", ["lately", "of"])
def test_a_link_that_leads_to_another_table_is_followed(table: Session, link: str) -> None:
    schema = folder_of(table, "kept").parent
    table.run("CREATE TABLE two AS SELECT 42 AS a")
    table.run("CREATE SCHEMA IF NOT EXISTS newer")
    table.run("CREATE OR REPLACE TABLE newer.kept AS SELECT 42 AS a")
    at, text = (
        (schema / "lately", "SELECT a FROM lately")
        if link == "lately"
        else (schema.parent / link, "SELECT a FROM of.kept")
    )
    for first, target, rows in (("kept", "shop", [(1,), (2,)]), ("two", "newer", [(42,)])):
        at.unlink(missing_ok=True)
        at.symlink_to(first if link == "lately" else target)
        for _ in range(3):
            time.sleep(0.05)
            assert sorted(table.rows(text)) == rows
    at.unlink()
    table.run("DROP SCHEMA newer CASCADE")


@pytest.mark.parametrize(
    "hidden", ["CREATE VIEW named AS SELECT a FROM kept", "CREATE TABLE named LOCATION '{}' AS SELECT a FROM kept"]
)
def test_a_table_that_comes_to_hide_a_name_is_seen(table: Session, hidden: str) -> None:
    table.run(hidden.format(folder_of(table, "kept").parents[2] / "files" / "named"))
    text = "SELECT sum(a) FROM named"
    assert until_kept(table, text).rows == [(3,)]
    taken_by_another_table(table, "named")
    assert table.rows(text) == [(42,)]


def test_a_table_whose_name_is_spelt_as_it_is_asked_for_is_seen(table: Session) -> None:
    text = "SELECT sum(a) FROM KEPT"
    assert until_kept(table, text).rows == [(3,)]
    taken_by_another_table(table, "KEPT")
    assert table.rows(text) == [(42,)]


def test_files_that_are_gone_are_told(table: Session, tmp_path: Path) -> None:
    text = "SELECT sum(a) FROM kept"
    until_kept(table, text)
    (location,) = table.rows("SELECT DISTINCT _metadata.file_path FROM kept")[0]
    Path(location.removeprefix("file:")).rename(tmp_path / "away")
    with pytest.raises(Exception, match=r"DELTA_FILE_NOT_FOUND|FAILED_READ_FILE"):
        table.run(text)
