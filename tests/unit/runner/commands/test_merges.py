"""MERGE: which clause takes which row, what is written anew, and what Delta refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import UserError
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_commit, rows_here_and_there

_COLUMNS = [(f"num_{kind}_rows", "bigint", True) for kind in ("affected", "updated", "deleted", "inserted")]
_ON = "MERGE INTO t USING s ON t.id = s.id"


@pytest.fixture
def merging(session: Session) -> Session:
    """A target ``t`` of two files and a source ``s``, which have 2 and 3 in common."""
    session.run("CREATE TABLE t (id INT, v STRING, n BIGINT)")
    session.run("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20)")
    session.run("INSERT INTO t VALUES (3, 'c', 30), (NULL, 'd', 40)")
    session.run("CREATE TABLE s (id INT, v STRING, n INT)")
    session.run("INSERT INTO s VALUES (2, 'B', 200), (3, 'C', NULL), (4, 'D', 400), (NULL, 'E', 500)")
    return session


@pytest.mark.parametrize(
    ("clauses", "counts", "rows"),
    [
        (
            "WHEN MATCHED THEN UPDATE SET *",
            (2, 2, 0, 0),
            [(None, "d", 40), (1, "a", 10), (2, "B", 200), (3, "C", None)],
        ),
        (
            "WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.v), n = t.n + s.n",
            (2, 2, 0, 0),
            [(None, "d", 40), (1, "a", 10), (2, "bB", 220), (3, "cC", None)],
        ),
        ("WHEN MATCHED THEN DELETE", (2, 0, 2, 0), [(None, "d", 40), (1, "a", 10)]),
        (
            "WHEN MATCHED AND s.n > 0 THEN DELETE WHEN MATCHED THEN UPDATE SET t.n = -1",
            (2, 1, 1, 0),
            [(None, "d", 40), (1, "a", 10), (3, "c", -1)],
        ),
        (
            "WHEN MATCHED AND s.n IS NULL THEN UPDATE SET v = 'null'",  # no clause for the other
            (1, 1, 0, 0),
            [(None, "d", 40), (1, "a", 10), (2, "b", 20), (3, "null", 30)],
        ),
        (
            "WHEN NOT MATCHED THEN INSERT *",
            (2, 0, 0, 2),
            [(None, "E", 500), (None, "d", 40), (1, "a", 10), (2, "b", 20), (3, "c", 30), (4, "D", 400)],
        ),
        (
            "WHEN NOT MATCHED BY TARGET AND s.id = 4 THEN INSERT (id, n) VALUES (s.id + 1, s.n)",
            (1, 0, 0, 1),
            [(None, "d", 40), (1, "a", 10), (2, "b", 20), (3, "c", 30), (5, None, 400)],
        ),
        (
            "WHEN NOT MATCHED AND id = 4 THEN INSERT (id) VALUES (id) WHEN NOT MATCHED THEN INSERT (v) VALUES (lower(v))",
            (2, 0, 0, 2),
            [(None, "d", 40), (None, "e", None), (1, "a", 10), (2, "b", 20), (3, "c", 30), (4, None, None)],
        ),
        (
            "WHEN NOT MATCHED BY SOURCE THEN DELETE",
            (2, 0, 2, 0),
            [(2, "b", 20), (3, "c", 30)],
        ),
        (
            "WHEN NOT MATCHED BY SOURCE AND t.id IS NULL THEN UPDATE SET v = upper(v) WHEN NOT MATCHED BY SOURCE THEN DELETE",
            (2, 1, 1, 0),
            [(None, "D", 40), (2, "b", 20), (3, "c", 30)],
        ),
        (
            "WHEN MATCHED AND t.id = 2 THEN UPDATE SET v = s.v WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED AND s.id IS NOT NULL THEN INSERT * "
            "WHEN NOT MATCHED BY SOURCE AND n < 20 THEN UPDATE SET n = n - 100",
            (4, 2, 1, 1),
            [(None, "d", 40), (1, "a", -90), (2, "B", 20), (4, "D", 400)],
        ),
    ],
)
def test_each_row_goes_to_the_first_clause_that_takes_it(
    merging: Session, clauses: str, counts: tuple[int, ...], rows: list[tuple[Any, ...]]
) -> None:
    result = merging.run(f"{_ON} {clauses}")
    assert (result.rows, result.columns) == ([counts], _COLUMNS)
    assert result.finished.modified_rows == counts[0]
    assert sorted(rows_here_and_there(merging), key=repr) == sorted(rows, key=repr)


@pytest.mark.rewrites
def test_only_files_with_changed_rows_are_written_anew(merging: Session) -> None:
    merging.run(f"{_ON} WHEN MATCHED AND s.id = 3 THEN UPDATE SET v = s.v WHEN NOT MATCHED AND s.id = 4 THEN INSERT *")
    actions = newest_commit(merging)
    assert sum("remove" in a for a in actions) == 1
    info = actions[0]["commitInfo"]
    assert (info["operation"], info["readVersion"]) == ("MERGE", 2)
    assert info["operationParameters"] == {
        "predicate": '["(id = id)"]',
        "matchedPredicates": '[{"predicate":"(id = 3)","actionType":"update"}]',
        "notMatchedPredicates": '[{"predicate":"(id = 4)","actionType":"insert"}]',
        "notMatchedBySourcePredicates": "[]",
    }
    wanted = {"numSourceRows": 4, "numTargetRowsCopied": 1, "numTargetRowsUpdated": 1, "numTargetRowsInserted": 1}
    assert {k: int(info["operationMetrics"][k]) for k in wanted} == wanted
    assert json.loads(actions[-1]["add"]["stats"])["numRecords"] == 3


def test_a_merge_that_changes_nothing_is_no_commit(merging: Session) -> None:
    before = count_versions(merging)
    assert merging.rows(f"{_ON} AND s.id > 100 WHEN MATCHED THEN DELETE") == [(0, 0, 0, 0)]
    assert merging.rows(f"{_ON} WHEN NOT MATCHED AND s.id = 2 THEN INSERT *") == [(0, 0, 0, 0)]
    assert count_versions(merging) == before


@pytest.mark.parametrize(
    "clauses",
    [
        "WHEN MATCHED THEN UPDATE SET v = s.v",
        "WHEN MATCHED AND s.v = 'x' THEN UPDATE SET v = s.v",
        "WHEN MATCHED AND s.v = 'x' THEN DELETE",
    ],
)
def test_two_rows_of_the_source_for_one_of_the_target(merging: Session, clauses: str) -> None:
    merging.run("INSERT INTO s VALUES (2, 'x', 1)")
    before = count_versions(merging)
    error = refused(merging, f"{_ON} {clauses}")
    assert error.condition == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    assert error.sqlstate == "21506"
    assert count_versions(merging) == before
    assert merging.rows(f"{_ON} WHEN MATCHED THEN DELETE") == [(2, 0, 2, 0)]
    assert merging.rows(f"{_ON} WHEN NOT MATCHED AND s.id = 2 THEN INSERT *") == [(2, 0, 0, 2)]


def test_an_overflow_names_the_column_of_its_clause(merging: Session) -> None:
    clauses = "WHEN MATCHED THEN UPDATE SET id = s.n * 10000000000 WHEN NOT MATCHED THEN INSERT (v) VALUES (s.v)"
    error = refused(merging, f"{_ON} {clauses}")
    assert error.condition == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
    assert "column `id`" in error.message


def test_a_table_is_its_own_source(merging: Session) -> None:
    merging.run("MERGE INTO t USING t AS old ON t.id = old.id + 1 WHEN MATCHED THEN UPDATE SET v = old.v")
    assert rows_here_and_there(merging) == [(None, "d", 40), (1, "a", 10), (2, "a", 20), (3, "b", 30)]


def test_a_source_is_read_once(merging: Session) -> None:
    source = "(SELECT id, CAST(rand() * 1e15 AS BIGINT) AS n FROM s WHERE id IS NOT NULL)"
    merging.run(
        f"MERGE INTO t USING {source} q ON t.id = q.id WHEN MATCHED THEN UPDATE SET n = q.n, v = CAST(q.n AS STRING)"
    )
    changed = merging.rows("SELECT v, n FROM t WHERE id IN (2, 3)")
    assert len(changed) == 2
    assert all(v == str(n) for v, n in changed)


def test_rows_of_partitions(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    session.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    source = "(SELECT * FROM VALUES (1, 'z'), (3, 'a'), (9, NULL) AS q(id, p))"
    result = session.rows(
        f"MERGE INTO t USING {source} q ON t.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert result == [(3, 2, 0, 1)]
    assert rows_here_and_there(session) == [(1, "z"), (2, "b"), (3, "a"), (9, None)]
    added = {a["add"]["partitionValues"]["p"] for a in newest_commit(session) if "add" in a}
    assert added == {"z", "a", None}


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        (f"{_ON}", "MERGE_WITHOUT_WHEN"),
        (f"{_ON} WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE", "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
        (f"{_ON} WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED THEN DELETE", "PARSE_SYNTAX_ERROR"),
        (f"{_ON} WHEN MATCHED THEN INSERT *", "PARSE_SYNTAX_ERROR"),
        (f"{_ON} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1)", "MERGE_INSERT_VALUE_COUNT_MISMATCH"),
        (f"{_ON} WHEN NOT MATCHED THEN INSERT (id, ID) VALUES (1, 2)", "DELTA_DUPLICATE_COLUMNS_ON_INSERT"),
        (f"{_ON} WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)", "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (f"{_ON} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.v", "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (f"{_ON} WHEN MATCHED THEN UPDATE SET v = 'x', v = 'y'", "DELTA_CONFLICT_SET_COLUMN"),
        (f"{_ON} WHEN MATCHED THEN UPDATE SET v = n", "AMBIGUOUS_REFERENCE"),
        (f"{_ON} WHEN MATCHED THEN UPDATE SET id = s.n * 99999999999", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        (f"{_ON} WHEN NOT MATCHED THEN INSERT (id) VALUES ('x')", "CAST_INVALID_INPUT"),
        (f"{_ON} WHEN MATCHED AND s.id IN (SELECT 1) THEN DELETE", "DELTA_UNSUPPORTED_SUBQUERY"),
        (f"{_ON} WHEN MATCHED AND rand() > 2 THEN DELETE", "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"),
        ("MERGE INTO t USING s AS q (a, b, c) ON t.id = a WHEN MATCHED THEN DELETE", "COLUMN_ALIASES_NOT_ALLOWED"),
        ("MERGE INTO t USING nope ON true WHEN MATCHED THEN DELETE", "TABLE_OR_VIEW_NOT_FOUND"),
        ("MERGE INTO t USING t ON t.id = t.id WHEN MATCHED THEN DELETE", "AMBIGUOUS_REFERENCE"),
        (
            "MERGE INTO t USING (SELECT 9 AS id) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *",
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        ),
        ("MERGE WITH SCHEMA INTO t USING s ON true WHEN MATCHED THEN DELETE", "PARSE_SYNTAX_ERROR"),
        (f"{_ON} WHEN MATCHED THEN UPDATE SET v = DEFAULT + 1", "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (f"{_ON} WHEN MATCHED THEN UPDATE SET v = rand()", "UNSUPPORTED_FEATURE"),
        (f"{_ON} WHEN MATCHED AND s.v THEN DELETE", "UNSUPPORTED_FEATURE"),
        ("MERGE INTO t USING s ON t.nope = s.id WHEN MATCHED THEN DELETE", "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
    ],
)
def test_what_is_wrong_leaves_the_table_as_it_was(merging: Session, statement: str, condition: str) -> None:
    before = count_versions(merging), sorted(folder_of(merging).iterdir())
    assert refused(merging, statement).condition == condition
    assert (count_versions(merging), sorted(folder_of(merging).iterdir())) == before


def test_explain_says_how_partners_are_found(merging: Session) -> None:
    ((text,),) = merging.rows(f"EXPLAIN {_ON} WHEN MATCHED THEN DELETE")
    assert text.startswith("Engine: datafusion")
    assert "Table: main.shop.t version 2" in text


def test_columns_behind_except_are_left_as_they_are(session: Session) -> None:
    allowed = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    session.run(f"CREATE TABLE t (id INT, v STRING, w INT DEFAULT 7) {allowed}")
    session.run("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    source = "(SELECT * FROM VALUES (2, 'B', 20), (3, 'C', 30) AS s(id, v, w)) AS s"
    star = "WHEN MATCHED THEN UPDATE SET * EXCEPT (w) WHEN NOT MATCHED THEN INSERT * EXCEPT (V, W)"
    session.run(f"MERGE INTO t USING {source} ON t.id = s.id {star}")
    assert session.rows("SELECT * FROM t ORDER BY id") == [(1, "a", 1), (2, "B", 2), (3, None, 7)]


def test_a_source_need_not_have_what_except_leaves_out(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, v STRING)")
    session.run("MERGE INTO t USING (SELECT 5 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT * EXCEPT (v)")
    assert session.rows("SELECT * FROM t") == [(5, None)]


def test_columns_that_except_leaves_out_are_not_brought_along(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, v STRING)")
    session.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    source = "(SELECT * FROM VALUES (2, 'B', 1, 2), (3, 'C', 3, 4) AS s(id, v, n, m)) AS s"
    star = "WHEN MATCHED THEN UPDATE SET * EXCEPT (n) WHEN NOT MATCHED THEN INSERT * EXCEPT (v, n)"
    session.run(f"MERGE WITH SCHEMA EVOLUTION INTO t USING {source} ON t.id = s.id {star}")
    result = session.run("SELECT * FROM t ORDER BY id")
    assert [name for name, _, _ in result.columns] == ["id", "v", "m"]
    assert result.rows == [(1, "a", None), (2, "B", 2), (3, None, 4)]


@pytest.mark.parametrize(
    ("clause", "condition"),
    [
        ("WHEN MATCHED THEN UPDATE SET * EXCEPT (zz)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("WHEN NOT MATCHED THEN INSERT * EXCEPT (id, zz)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("WHEN MATCHED THEN UPDATE SET * EXCEPT ()", "PARSE_SYNTAX_ERROR"),
        ("WHEN MATCHED THEN UPDATE SET * EXCEPT v", "PARSE_SYNTAX_ERROR"),
        ("WHEN MATCHED THEN UPDATE SET * EXCEPT (t.v)", "PARSE_SYNTAX_ERROR"),
        ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET * EXCEPT (v)", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_what_is_wrong_behind_except_is_told(session: Session, clause: str, condition: str) -> None:
    session.run("CREATE TABLE t (id INT, v STRING)")
    with pytest.raises(UserError) as caught:
        session.run(f"MERGE INTO t USING (SELECT 1 AS id, 'a' AS v) AS s ON t.id = s.id {clause}")
    assert caught.value.condition == condition and caught.value.span is not None


@pytest.mark.parametrize("on", ["t.id = s.id", "t.id = s.id AND 1 / (s.id + 1) > 0"])
def test_a_source_may_be_large(session: Session, on: str) -> None:
    session.run("CREATE TABLE t (id BIGINT, v STRING)")
    session.run("INSERT INTO t VALUES (1, 'a'), (-7, 'b')")
    source = "SELECT id, repeat(CAST(id % 10 AS STRING), 300) AS v FROM range(40000)"  # 12 MB
    merged = session.run(
        f"MERGE INTO t USING ({source}) s ON {on} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert merged.rows == [(40000, 1, 0, 39999)]
    assert session.rows("SELECT count(*), sum(length(v)), count(DISTINCT v) FROM t") == [(40001, 12_000_001, 11)]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("(VALUES (1, 'q'), (5, 'r') AS s(id, b))", "s"),
        ("(SELECT s.* FROM VALUES (1, 'q'), (5, 'r') AS s(id, b))", "s"),
        ("(SELECT DISTINCT * FROM u WHERE id > 0)", "u"),
        ("(SELECT w.id, w.b FROM u AS w)", "w"),
        ("(WITH c AS (SELECT * FROM u) SELECT * FROM c)", "c"),
    ],
)
def test_columns_of_a_source_without_a_name_are_called_as_inside_of_it(
    session: Session, source: str, name: str
) -> None:
    session.run("CREATE TABLE t AS SELECT * FROM VALUES (1, 'x'), (2, 'y') AS v(id, b)")
    session.run("CREATE TABLE u AS SELECT * FROM VALUES (1, 'q'), (5, 'r') AS v(id, b)")
    clauses = (
        f"WHEN MATCHED THEN UPDATE SET b = {name}.b WHEN NOT MATCHED THEN INSERT (id, b) VALUES ({name}.id, {name}.b)"
    )
    session.run(f"MERGE INTO t USING {source} ON t.id = {name}.id {clauses}")
    assert session.rows("SELECT * FROM t ORDER BY id") == [(1, "q"), (2, "y"), (5, "r")]
    for hidden in ("(SELECT w.id + 0 AS id FROM u AS w)", "(SELECT w.id FROM u AS w) AS x"):
        error = refused(session, f"MERGE INTO t USING {hidden} ON t.id = w.id WHEN MATCHED THEN DELETE")
        assert error.condition == "DELTA_MERGE_UNRESOLVED_EXPRESSION"
