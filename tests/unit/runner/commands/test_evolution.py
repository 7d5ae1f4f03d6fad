"""MERGE and INSERT WITH SCHEMA EVOLUTION: which columns a table gets, what its rows have in them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, newest_commit, rows_here_and_there

_ON = "MERGE WITH SCHEMA EVOLUTION INTO t USING ({}) s ON t.id = s.id "
_ALL = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


@pytest.fixture
def merging(session: Session) -> Session:
    """``t`` with two rows."""
    session.run("CREATE TABLE t (id INT, v STRING)")
    session.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return session


@pytest.mark.parametrize(
    ("source", "clauses", "columns", "rows"),
    [
        (
            "SELECT 1 AS id, 'q' AS v, 5 AS n UNION ALL SELECT 7, 'r', 6",
            _ALL,
            "id v n",
            [(1, "q", 5), (2, "b", None), (7, "r", 6)],
        ),
        ("SELECT 1 AS id, 5 AS n", _ALL, "id v n", [(1, "a", 5), (2, "b", None)]),
        ("SELECT 7 AS id, 5 AS n", _ALL, "id v n", [(1, "a", None), (2, "b", None), (7, None, 5)]),
        (
            "SELECT 1 AS id, named_struct('f', 1) AS n, array(1) AS l",
            _ALL,
            "id v n l",
            [(1, "a", {"f": 1}, [1]), (2, "b", None, None)],
        ),
        ("SELECT 1 AS id, 'z' AS V", _ALL, "id v", [(1, "z"), (2, "b")]),
        (
            "SELECT 1 AS id, 5 AS n, 6 AS m",
            "WHEN MATCHED THEN UPDATE SET N = s.n + m",
            "id v n",
            [(1, "a", 11), (2, "b", None)],
        ),
        ("SELECT 1 AS id, 5 AS n", "WHEN MATCHED AND n = 5 THEN DELETE", "id v", [(2, "b")]),
        (
            "SELECT 1 AS id, 5 AS n",
            "AND n = 5 WHEN MATCHED AND n > 4 THEN UPDATE SET n = n + t.id "
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'alone'",
            "id v n",
            [(1, "a", 6), (2, "alone", None)],
        ),
    ],
)
@pytest.mark.parametrize("vectors", [False, True])
def test_a_table_gets_the_columns_that_are_given(
    merging: Session, source: str, clauses: str, columns: str, rows: list[tuple[Any, ...]], vectors: bool
) -> None:
    if vectors:
        merging.run("ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    merging.run(_ON.format(source) + clauses)
    assert [name for (name,) in merging.rows("SHOW COLUMNS IN t")] == columns.split()
    assert sorted(merging.rows("SELECT * FROM t"), key=repr) == sorted(rows, key=repr)
    if not vectors:
        rows_here_and_there(merging)
    changed = [action for action in newest_commit(merging) if "metaData" in action]
    assert len(changed) == (columns.split() != ["id", "v"])
    assert merging.rows("SELECT * FROM t VERSION AS OF 1 ORDER BY id") == [(1, "a"), (2, "b")]


def test_columns_come_although_no_row_does(merging: Session) -> None:
    before = count_versions(merging)
    assert merging.rows(_ON.format("SELECT 9 AS id, 5 AS n") + "WHEN MATCHED THEN UPDATE SET *") == [(0, 0, 0, 0)]
    assert count_versions(merging) == before + 1
    assert merging.rows("SELECT * FROM t ORDER BY id") == [(1, "a", None), (2, "b", None)]


def test_columns_come_into_tables_that_ask_for_more(session: Session) -> None:
    session.run(
        "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, k INT, d STRING DEFAULT 'd') TBLPROPERTIES "
        "('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true', "
        "'delta.enableChangeDataFeed' = 'true', 'delta.feature.allowColumnDefaults' = 'supported')"
    )
    session.run("INSERT INTO t (k) VALUES (1), (2)")
    session.run(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS k, 5 AS n UNION ALL SELECT 3, 4) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, s.n)"
    )
    session.run("INSERT INTO t (k) VALUES (9)")
    rows = [(1, 1, "d", 5), (2, 2, "d", None), (3, 3, "d", 4), (4, 9, "d", None)]
    assert session.rows("SELECT * FROM t ORDER BY k") == rows
    feed = session.rows("SELECT k, n, _change_type FROM table_changes('t', 2, 2) ORDER BY k, n NULLS FIRST")
    assert feed == [(1, None, "update_preimage"), (1, 5, "update_postimage"), (3, 4, "insert")]
    assert session.rows("SELECT count(DISTINCT _metadata.row_id) FROM t") == [(4,)]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        (_ON.format("SELECT 1 AS id, NULL AS n") + _ALL, "DELTA_MERGE_ADD_VOID_COLUMN"),
        (_ON.format("SELECT 1 AS id, 2 AS n, 3 AS N") + _ALL, "UNSUPPORTED_FEATURE"),
        (_ON.format("SELECT 1 AS id, 2 AS `a b`") + _ALL, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (_ON.format("SELECT 1 AS id, TIMESTAMP_NTZ'2024-01-01 00:00:00' AS n") + _ALL, "DELTA_FEATURES_REQUIRE"),
        (_ON.format("SELECT 1 AS id, 2 AS n") + "WHEN MATCHED AND t.n = 1 THEN UPDATE SET *", "DELTA_MERGE_UNRESOLVED"),
        (
            _ON.format("SELECT 1 AS id") + "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 1",
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        ),
        ("MERGE INTO t USING (SELECT 1 AS id, 2 AS n) s ON t.id = s.id " + _ALL, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
    ],
)
def test_what_is_refused_changes_nothing(merging: Session, statement: str, condition: str) -> None:
    before = count_versions(merging)
    assert refused(merging, statement).condition.startswith(condition)
    assert count_versions(merging) == before


def test_types_that_give_way_are_refused(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, v INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    error = refused(session, _ON.format("SELECT 1 AS id, 5L AS v") + _ALL)
    assert error.condition == "UNSUPPORTED_FEATURE"
    session.run(_ON.format("SELECT 1 AS id, 5 AS v, 6L AS n") + _ALL)
    assert session.rows("SELECT * FROM t") == [(1, 5, 6)]


_INTO = "INSERT WITH SCHEMA EVOLUTION INTO t "


@pytest.mark.parametrize(
    ("statement", "columns", "row"),
    [
        (_INTO + "SELECT 3, 'c', 5 AS n", "id v n", (3, "c", 5)),
        (_INTO + "VALUES (3, 'c', 5)", "id v col3", (3, "c", 5)),
        (_INTO + "BY NAME SELECT 5 AS n, 3 AS ID", "id v n", (3, None, 5)),
        (_INTO + "(v, id) VALUES ('c', 3)", "id v", (3, "c")),
        (_INTO + "BY NAME SELECT 3 AS id, named_struct('f', array(1)) AS s", "id v s", (3, None, {"f": [1]})),
        ("WITH q AS (SELECT 3 AS id, 4 AS n) " + _INTO + "BY NAME SELECT * FROM q", "id v n", (3, None, 4)),
        (_INTO + "BY NAME REPLACE WHERE id = 3 SELECT 3 AS id, 4 AS n", "id v n", (3, None, 4)),
    ],
)
def test_inserts_bring_columns_along(merging: Session, statement: str, columns: str, row: tuple[Any, ...]) -> None:
    merging.run(statement)
    assert [name for (name,) in merging.rows("SHOW COLUMNS IN t")] == columns.split()
    more = (None,) * (len(row) - 2)
    assert merging.rows("SELECT * FROM t ORDER BY id") == [(1, "a", *more), (2, "b", *more), row]
    rows_here_and_there(merging)
    changed = [action for action in newest_commit(merging) if "metaData" in action]
    assert len(changed) == (columns.split() != ["id", "v"])
    assert merging.rows("SELECT * FROM t VERSION AS OF 1 ORDER BY id") == [(1, "a"), (2, "b")]


def test_columns_come_although_nothing_is_inserted(merging: Session) -> None:
    before = count_versions(merging)
    assert merging.rows(_INTO + "BY NAME SELECT 9 AS id, 5 AS n WHERE false") == [(0, 0)]
    assert count_versions(merging) == before + 1
    assert merging.rows("SELECT * FROM t ORDER BY id") == [(1, "a", None), (2, "b", None)]


def test_overwrites_bring_columns_along(merging: Session) -> None:
    merging.run("INSERT WITH SCHEMA EVOLUTION OVERWRITE t SELECT 3, 'c', 5 AS n")
    assert merging.rows("SELECT id, v, n FROM t") == [(3, "c", 5)]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        (_INTO + "SELECT 4", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        (_INTO + "(id, zz) VALUES (1, 2)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (_INTO + "SELECT 2, 'b', 7 AS id", "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"),
        (_INTO + "SELECT 2, 'b', 7 AS n, 8 AS N", "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"),
        (_INTO + "BY NAME SELECT 1 AS id, 1 AS n, 2 AS N", "DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA"),
        (_INTO + "BY NAME SELECT 1 AS id, 2 AS `a b`", "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (_INTO + "BY NAME SELECT 1 AS id, NULL AS n", "UNSUPPORTED_FEATURE"),
        (_INTO + "BY NAME SELECT 1 AS id, TIMESTAMP_NTZ'2024-01-01 00:00:00' AS n", "DELTA_FEATURES_REQUIRE"),
        (_INTO + "REPLACE USING (id) SELECT 1, 'x', 2 AS n", "UNSUPPORTED_FEATURE"),
        ("INSERT INTO t BY NAME SELECT 1 AS id, 2 AS n", "DELTA_METADATA_MISMATCH"),
    ],
)
def test_inserts_that_are_refused_change_nothing(merging: Session, statement: str, condition: str) -> None:
    before = count_versions(merging)
    assert refused(merging, statement).condition.startswith(condition)
    assert count_versions(merging) == before


def test_inserts_whose_types_or_fields_give_way_are_refused(session: Session) -> None:
    session.run(
        "CREATE TABLE t (id INT, s STRUCT<a: INT>, l ARRAY<STRUCT<a: INT>>) "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    for given in (
        "SELECT 5L",
        "SELECT 1, named_struct('a', 1, 'b', 2), NULL",
        "SELECT 1, NULL, array(named_struct('a', 1, 'b', 2))",
    ):
        assert refused(session, f"{_INTO}{given}").condition == "UNSUPPORTED_FEATURE"
    session.run(_INTO + "SELECT 1, named_struct('a', 1), NULL, 6L AS n")
    assert session.rows("SELECT id, s.a, n FROM t") == [(1, 1, 6)]
