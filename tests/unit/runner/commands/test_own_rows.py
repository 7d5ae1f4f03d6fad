"""Statements that write what they have read of the same table: what others commit meanwhile is neither lost nor overlooked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.delta import commit, write
from tests.unit.runner.session import Session, refused

LATE = (2, 9)


@pytest.fixture
def table(session: Session) -> Session:
    """``t``, partitioned by its first column."""
    session.run("CREATE TABLE t (p INT, n BIGINT) PARTITIONED BY (p)")
    session.run("INSERT INTO t VALUES (1, 1), (2, 2)")
    return session


def _once(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, meanwhile: Callable[[], object]) -> None:
    """Do something right before a function of a module is called for the first time."""
    original = getattr(module, name)

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(module, name, original)
        meanwhile()
        return original(*arguments)

    monkeypatch.setattr(module, name, late)


@pytest.mark.parametrize("place", [(commit, "publish"), (write, "make_table")], ids=lambda p: p[1])
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t REPLACE WHERE p = 1 SELECT 1, n FROM t WHERE p = 2",
        "INSERT INTO t REPLACE WHERE n < 2 SELECT 1, -count(*) FROM t",
        "INSERT OVERWRITE t PARTITION (p = 1) SELECT n FROM t WHERE p = 2",
        "INSERT OVERWRITE t SELECT DISTINCT * FROM t",
        "INSERT INTO t REPLACE USING (p) SELECT 1 AS p, n FROM t WHERE p = 2",
        "CREATE OR REPLACE TABLE t AS SELECT DISTINCT * FROM t",
        "CREATE OR REPLACE TABLE t AS SELECT 1 AS p, (SELECT max(n) FROM t) AS n",
        "CREATE OR REPLACE TABLE t AS SELECT * FROM v",
        "REPLACE TABLE t AS SELECT DISTINCT * FROM t",
    ],
)
def test_what_others_commit_meanwhile_is_a_conflict(
    table: Session, monkeypatch: pytest.MonkeyPatch, statement: str, place: tuple[Any, str]
) -> None:
    table.run("CREATE VIEW v AS SELECT * FROM t")
    if place[0] is write and "TABLE" not in statement:
        return
    _once(monkeypatch, *place, lambda: table.run(f"INSERT INTO t VALUES {LATE}"))
    error = refused(table, statement)
    assert error.condition.startswith(("WRITE_CONFLICT", "DELTA_CONCURRENT_APPEND"))
    assert error.retryable
    assert table.rows("SELECT * FROM t ORDER BY n") == [(1, 1), (2, 2), LATE]
    table.run(statement)


def test_a_table_that_is_made_anew_meanwhile_is_not_replaced_by_its_old_rows(
    table: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def anew() -> None:
        table.run("DROP TABLE t")
        table.run("CREATE TABLE t AS SELECT 5 AS p, 5L AS n")

    _once(monkeypatch, write, "make_table", anew)
    assert refused(table, "CREATE OR REPLACE TABLE t AS SELECT DISTINCT * FROM t").condition == "WRITE_CONFLICT"
    assert table.rows("SELECT * FROM t") == [(5, 5)]
    _once(monkeypatch, write, "make_table", lambda: table.run("DROP TABLE t"))
    assert refused(table, "CREATE OR REPLACE TABLE t AS SELECT DISTINCT * FROM t").condition == "WRITE_CONFLICT"


def test_a_replacement_of_other_rows_follows_what_was_committed(
    table: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any order of the two is one in which they might have come one after the other."""
    _once(monkeypatch, write, "make_table", lambda: table.run(f"INSERT INTO t VALUES {LATE}"))
    table.run("CREATE OR REPLACE TABLE t AS SELECT 7 AS p, 7L AS n")
    assert table.rows("SELECT * FROM t") == [(7, 7)]
