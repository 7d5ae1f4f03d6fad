"""WITH before INSERT, DELETE, UPDATE and MERGE: what is defined there is read by each of their queries."""

from __future__ import annotations

import pytest

from tests.unit.runner.session import Session, refused

_ROW = "WITH q AS (SELECT 2 AS id, 5 AS v) "


@pytest.fixture
def filled(session: Session) -> Session:
    """``t`` with two rows."""
    session.run("CREATE TABLE t (id INT, v INT)")
    session.run("INSERT INTO t VALUES (1, 1), (2, 2)")
    return session


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        (_ROW + "INSERT INTO t SELECT id + 1, v FROM q", [(1, 1), (2, 2), (3, 5)]),
        (_ROW + "INSERT INTO t VALUES (3, 3)", [(1, 1), (2, 2), (3, 3)]),
        (_ROW + "INSERT INTO t WITH r AS (SELECT id + 1, v FROM q) SELECT * FROM r", [(1, 1), (2, 2), (3, 5)]),
        (_ROW + "INSERT INTO t REPLACE USING (id) SELECT * FROM q", [(1, 1), (2, 5)]),
        (_ROW + "INSERT INTO t AS o REPLACE ON (o.id <= r.id) (SELECT * FROM q) AS r", [(2, 5)]),
        (_ROW + "DELETE FROM t WHERE id IN (SELECT id FROM q)", [(1, 1)]),
        (_ROW + "DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM (SELECT * FROM q) r WHERE r.id = t.id)", [(2, 2)]),
        (_ROW + "UPDATE t SET v = (SELECT max(v) FROM q) + 1 WHERE id = (SELECT id - 1 FROM Q)", [(1, 6), (2, 2)]),
        (_ROW + "MERGE INTO t USING q ON t.id = q.id WHEN MATCHED THEN UPDATE SET *", [(1, 1), (2, 5)]),
        (_ROW + "MERGE INTO t USING Q AS `r s` ON t.id = `r s`.id WHEN MATCHED THEN DELETE", [(1, 1)]),
        (
            _ROW + "MERGE INTO t USING (SELECT id, v FROM q UNION ALL SELECT id + 1, v FROM q) r ON t.id = r.id "
            "WHEN NOT MATCHED THEN INSERT *",
            [(1, 1), (2, 2), (3, 5)],
        ),
        (
            "WITH q(id) AS (VALUES (7)), r AS (SELECT id, id + 1 AS v FROM q) MERGE INTO t USING r ON t.id = r.id "
            "WHEN NOT MATCHED THEN INSERT *",
            [(1, 1), (2, 2), (7, 8)],
        ),
        ("WITH q AS (SELECT nope FROM nowhere) DELETE FROM t WHERE id = 1", [(2, 2)]),  # nobody asks for it
    ],
)
def test_each_query_reads_it(filled: Session, statement: str, rows: list[tuple[int, int]]) -> None:
    filled.run(statement)
    assert sorted(filled.run("SELECT * FROM t").rows) == rows


def test_it_hides_a_table_of_the_name_and_no_other(filled: Session) -> None:
    filled.run("CREATE TABLE q (id INT, v INT)")
    filled.run(_ROW + "MERGE INTO t USING shop.q ON t.id = q.id WHEN MATCHED THEN DELETE")
    assert len(filled.run("SELECT * FROM t").rows) == 2
    filled.run(_ROW + "MERGE INTO t USING q ON t.id = q.id WHEN MATCHED THEN DELETE")
    assert filled.run("SELECT * FROM t").rows == [(1, 1)]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("WITH t AS (SELECT 1 AS id) DELETE FROM t", "UNSUPPORTED_FEATURE"),
        (_ROW + "INSERT INTO t WITH q AS (SELECT 1, 2) SELECT * FROM q", "UNSUPPORTED_FEATURE"),
        ("WITH q AS (SELECT 1), Q AS (SELECT 2) DELETE FROM t", "DUPLICATED_CTE_NAMES"),
        ("WITH q AS (SELECT nope) DELETE FROM t WHERE id IN (SELECT * FROM q)", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"),
        ("WITH q AS (SELECT 1) MERGE INTO t USING q VERSION AS OF 1 ON true WHEN MATCHED THEN DELETE",
         "UNSUPPORTED_FEATURE"),
        (_ROW + "TRUNCATE TABLE t", "PARSE_SYNTAX_ERROR"),
    ],
)  # fmt: skip
def test_what_is_refused(filled: Session, statement: str, condition: str) -> None:
    assert refused(filled, statement).condition == condition
    assert len(filled.run("SELECT * FROM t").rows) == 2
