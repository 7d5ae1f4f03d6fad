"""Subqueries of DELETE and UPDATE over odd columns, NULLs and tables that are gone: what they choose, why they are refused."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of

_PROPERTIES = (
    "'delta.enableDeletionVectors' = 'false'",
    "'delta.enableDeletionVectors' = 'true'",
    "'delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true'",
)


@pytest.fixture(params=_PROPERTIES, ids=["rewrites", "marks", "mapped"])
def asked(session: Session, request: pytest.FixtureRequest) -> Session:
    """``t`` with structs, arrays, a generated column and a constraint; ``q`` with a row that is there twice, and a NULL."""
    session.run(
        "CREATE TABLE t (id INT, st STRUCT<a: INT, b: STRING>, arr ARRAY<INT>, g INT GENERATED ALWAYS AS (id + 1), "
        f"CONSTRAINT c CHECK (id IS NULL OR id < 1000)) TBLPROPERTIES ({request.param})"
    )
    session.run(
        "INSERT INTO t (id, st, arr) VALUES (1, named_struct('a', 1, 'b', 'x'), array(1, 2)), (2, NULL, NULL), "
        "(NULL, named_struct('a', NULL, 'b', 'n'), array(NULL))"
    )
    session.run("INSERT INTO t (id, st, arr) VALUES (12, named_struct('a', 12, 'b', 'y'), array())")
    session.run("CREATE TABLE q (k INT, w STRING)")
    session.run("INSERT INTO q VALUES (1, 'x'), (1, 'x'), (12, '12'), (NULL, NULL)")
    session.run("CREATE VIEW v AS SELECT id FROM t WHERE id > 1")
    return session


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("st.a IN (SELECT k FROM q)", [None, 2]),
        ("st IN (SELECT st FROM t)", [2]),  # a NULL within a struct is one like any other
        ("st.b = (SELECT max(w) FROM q WHERE k = st.a)", [None, 2, 12]),
        ("(id, st.a) IN (SELECT k, k FROM q)", [None, 2]),
        ("arr IN (SELECT array(k, 2) FROM q)", [None, 2, 12]),
        ("id IN (SELECT explode(arr) FROM t)", [None, 12]),
        ("id IN (SELECT max(k) OVER () FROM q)", [None, 1, 2]),
        ("EXISTS (SELECT 1 FROM q WHERE q.k = t.id LIMIT 0)", [None, 1, 2, 12]),
        ("id IN (SELECT k FROM q UNION ALL SELECT id FROM t VERSION AS OF 0)", [None, 2]),
        ("id NOT IN (SELECT id FROM t VERSION AS OF 1)", [None, 1, 2, 12]),  # which has a NULL
        ("id NOT IN (SELECT id FROM t VERSION AS OF 1 WHERE id IS NOT NULL)", [None, 1, 2]),
        ("id IN (SELECT id FROM v)", [None, 1]),
        ("id IN (SELECT id - 11 FROM table_changes('fed', 0))", [None, 2, 12]),
        ("id IN (SELECT NULL)", [None, 1, 2, 12]),
        ("id NOT IN (SELECT NULL)", [None, 1, 2, 12]),
        ("id NOT IN (SELECT k FROM q WHERE false)", []),
        ("NULL NOT IN (SELECT k FROM q WHERE false)", []),
        ("id IN (SELECT w FROM q WHERE k = 12)", [None, 1, 2]),
        ("(id IN (SELECT k FROM q)) = true", [None, 2]),
        ("(SELECT true)", []),
    ],
)
def test_a_subquery_chooses_rows(asked: Session, condition: str, left: list[int | None]) -> None:
    asked.run("CREATE TABLE fed (id INT) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    asked.run("INSERT INTO fed VALUES (12)")
    assert asked.rows(f"DELETE FROM t WHERE {condition}") == [(4 - len(left),)]
    assert asked.rows("SELECT id FROM t ORDER BY id") == [(id_,) for id_ in left]


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        ("st.a = (SELECT max(k) FROM q)", [(None, 12, None), (1, 12, 2), (2, 12, 3), (12, 12, 13)]),
        ("st = (SELECT named_struct('b', 'x', 'A', 7L))", [(None, 7, None), (1, 7, 2), (2, 7, 3), (12, 7, 13)]),
        (
            "id = id + (SELECT count(*) FROM t u WHERE u.id < t.id)",
            [(None, None, None), (1, 1, 2), (3, None, 4), (14, 12, 15)],
        ),
        ("id = DEFAULT WHERE id IN (SELECT k FROM q)", [(None, None, None), (None, 1, None), (None, 12, None), (2, None, 3)]),
        ("id = EXISTS (SELECT 1 FROM q)", [(1, None, 2), (1, None, 2), (1, 1, 2), (1, 12, 2)]),
        ("id = (SELECT k FROM q WHERE k = 1) WHERE false", [(None, None, None), (1, 1, 2), (2, None, 3), (12, 12, 13)]),
        (
            "st.b = (SELECT max(w) FROM q WHERE k = st.a), id = (SELECT min(k) FROM q) "
            "WHERE EXISTS (SELECT 1 FROM q WHERE k = t.st.a)",
            [(None, None, None), (1, 1, 2), (1, 12, 2), (2, None, 3)],
        ),
    ],
)  # fmt: skip
def test_a_subquery_gives_values(asked: Session, change: str, rows: list[tuple[Any, ...]]) -> None:
    asked.run(f"UPDATE t SET {change}")
    assert asked.rows("SELECT id, st.a, g FROM t ORDER BY id, st.a") == rows


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("DELETE FROM t WHERE id IN (SELECT id FROM t a JOIN t b ON a.id = b.id)", "AMBIGUOUS_REFERENCE"),
        ("DELETE FROM t x WHERE x.id IN (SELECT t.id FROM q)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (
            "DELETE FROM t WHERE struct(id) IN (SELECT struct(k) FROM q)",
            "DATATYPE_MISMATCH.IN_SUBQUERY_DATA_TYPE_MISMATCH",
        ),
        ("DELETE FROM t WHERE id IN (SELECT true)", "DATATYPE_MISMATCH.IN_SUBQUERY_DATA_TYPE_MISMATCH"),
        ("DELETE FROM t WHERE id IN (SELECT * FROM q)", "DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH"),
        ("DELETE FROM t WHERE id IN (VALUES (1), (2))", "UNRESOLVED_ROUTINE"),
        ("DELETE FROM t WHERE arr[0] IN (SELECT k FROM q)", "INVALID_ARRAY_INDEX"),
        (
            "DELETE FROM t WHERE exists(arr, e -> e IN (SELECT k FROM q))",
            "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.HIGHER_ORDER_FUNCTION",
        ),
        *(
            (f"DELETE FROM t WHERE {condition}", "INVALID_NON_DETERMINISTIC_EXPRESSIONS")
            for condition in (
                "id IN (SELECT k FROM q ORDER BY rand() LIMIT 1)",
                "id IN (SELECT k FROM q WHERE rand() < 2)",
                "id = (SELECT max(k) FROM q) AND rand() < 1",
            )
        ),
        (
            "DELETE FROM t WHERE id IN (SELECT k FROM q TABLESAMPLE (50 PERCENT))",
            "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
        ),
        ("DELETE FROM t WHERE count(*) > (SELECT 1)", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
        ("DELETE FROM t WHERE id > (SELECT count(t.id) FROM q)", "UNSUPPORTED_FEATURE"),
        ("DELETE FROM t WHERE row_number() OVER (ORDER BY id) IN (SELECT k FROM q)", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
        ("DELETE FROM t WHERE id IN (SELECT id FROM t VERSION AS OF 99)", "DELTA_VERSION_NOT_FOUND"),
        ("DELETE FROM v WHERE id IN (SELECT k FROM q)", "DELTA_UNSUPPORTED_SOURCE"),
        ("DELETE FROM t WHERE id IN (SELECT w FROM q)", "CAST_INVALID_INPUT"),
        ("DELETE FROM t WHERE (SELECT NULL)", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("DELETE FROM t WHERE id = :p AND id IN (SELECT k FROM q)", "UNBOUND_SQL_PARAMETER"),
        ("UPDATE t SET id = (SELECT max(k) FROM q), id = 5", "DELTA_CONFLICT_SET_COLUMN"),
        ("UPDATE t SET st = (SELECT named_struct('b', 'x', 'c', 1))", "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        ("UPDATE t SET g = (SELECT 1)", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
        ("UPDATE t SET id = (SELECT 1000)", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
        ("UPDATE t SET id = (SELECT 'x')", "CAST_INVALID_INPUT"),
        ("UPDATE t SET id = (SELECT current_date())", "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION"),
        ("UPDATE t SET id = (SELECT q.k FROM q, t WHERE q.k = id)", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
        ("UPDATE t SET id = (SELECT 1/0 FROM q WHERE false)", "DIVIDE_BY_ZERO"),
        ("UPDATE t SET st.c = (SELECT 1)", "FIELD_NOT_FOUND"),
        ("UPDATE v SET id = (SELECT 1)", "DELTA_UNSUPPORTED_SOURCE"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_changes(asked: Session, statement: str, condition: str) -> None:
    before, versions = asked.rows("SELECT * FROM t ORDER BY id"), count_versions(asked)
    assert refused(asked, statement).condition == condition
    assert (asked.rows("SELECT * FROM t ORDER BY id"), count_versions(asked)) == (before, versions)


@pytest.mark.parametrize(
    "statement", ["DELETE FROM t WHERE id IN (SELECT k FROM q)", "UPDATE t SET id = (SELECT max(k) FROM q)"]
)
@pytest.mark.parametrize(
    ("gone", "condition"), [("*.parquet", "DELTA_FILE_NOT_FOUND"), ("_delta_log", "TABLE_OR_VIEW_NOT_FOUND")]
)
def test_a_table_that_is_gone_is_told(asked: Session, statement: str, gone: str, condition: str) -> None:
    assert len(asked.rows("SELECT * FROM q")) == 4
    versions = count_versions(asked)
    for path in folder_of(asked, "q").glob(gone):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    assert refused(asked, statement).condition == condition
    assert count_versions(asked) == versions
