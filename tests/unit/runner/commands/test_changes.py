"""DELETE and UPDATE: the rows that stay, what the log says of it, what is refused before anything is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.delta import commit, log
from gateway.engine.base import Planned, Planning, Statement
from gateway.errors import UnsupportedError, UserError
from tests.unit.runner.session import Events, Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_commit, newest_info, rows_elsewhere

_COUNT = [("num_affected_rows", "bigint", True)]


@pytest.fixture
def table(session: Session) -> Session:
    """``t`` with two files of three rows."""
    session.run("CREATE TABLE t (id INT, s STRING, d DOUBLE)")
    session.run("INSERT INTO t VALUES (1, 'a', 1.5), (2, NULL, 2.5), (3, 'c', double('NaN'))")
    session.run("INSERT INTO t VALUES (11, 'k', 1.5), (12, 'l', NULL), (13, 'm', 3.5)")
    return session


@pytest.mark.rewrites
def test_a_delete_rewrites_only_the_file_with_the_row(table: Session) -> None:
    result = table.run("DELETE FROM t WHERE id = 2")
    assert (result.rows, result.columns) == ([(1,)], _COUNT)
    assert result.finished.modified_rows == 1
    actions = newest_commit(table)
    assert [next(iter(a)) for a in actions] == ["commitInfo", "remove", "add"]
    assert json.loads(actions[2]["add"]["stats"])["numRecords"] == 2
    info = actions[0]["commitInfo"]
    assert (info["operation"], info["operationParameters"]) == ("DELETE", {"predicate": '["(id = 2)"]'})
    metrics = info["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"]) == ("1", "2")
    assert (metrics["numRemovedFiles"], metrics["numAddedFiles"]) == ("1", "1")
    assert info["readVersion"] == 2
    assert table.rows("SELECT id FROM t ORDER BY id") == [(1,), (3,), (11,), (12,), (13,)]
    assert [row[0] for row in rows_elsewhere(table)] == [1, 11, 12, 13, 3]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("s <> 'a'", [1, 2]),  # NULL is not taken
        ("NOT (s = 'a')", [1, 2]),
        ("s IS NULL", [1, 3, 11, 12, 13]),
        ("d > 2.6", [1, 2, 11, 12]),  # NaN is the greatest
        ("d = double('NaN')", [1, 2, 11, 12, 13]),
        ("id BETWEEN 2 AND 12", [1, 13]),
        ("t.id % 2 = 1 AND main.shop.t.s LIKE '_'", [2, 12]),
        ("true", []),
    ],
)
def test_a_delete_takes_the_rows_for_which_its_condition_is_true(
    table: Session, condition: str, left: list[int]
) -> None:
    gone = table.rows(f"DELETE FROM t WHERE {condition}")
    assert gone == [(6 - len(left),)]
    assert table.rows("SELECT id FROM t ORDER BY id") == [(i,) for i in left]
    assert sorted(row[0] for row in rows_elsewhere(table)) == left


def test_whole_files_leave_the_table_unread(table: Session) -> None:
    table.run("DELETE FROM t WHERE id < 10")
    assert [next(iter(a)) for a in newest_commit(table)] == ["commitInfo", "remove"]
    for file in folder_of(table).glob("*.parquet"):
        file.unlink()
    assert table.rows("DELETE FROM t") == [(3,)]
    assert newest_info(table)["operationParameters"] == {"predicate": '["true"]'}
    assert table.rows("SELECT count(*) FROM t") == [(0,)]


def test_nothing_to_change_is_no_commit(table: Session) -> None:
    before = count_versions(table)
    assert table.rows("DELETE FROM t WHERE id = 5") == [(0,)]
    assert table.rows("UPDATE t SET s = 'x' WHERE id = 5") == [(0,)]
    assert count_versions(table) == before


@pytest.mark.rewrites
def test_an_update_changes_what_its_condition_takes(table: Session) -> None:
    result = table.run("UPDATE t AS x SET x.s = upper(concat(s, x.id)), d = id WHERE id IN (1, 2)")
    assert (result.rows, result.columns) == ([(2,)], _COUNT)
    assert table.rows("SELECT id, s, d FROM t WHERE id < 3 ORDER BY id") == [(1, "A1", 1.0), (2, None, 2.0)]
    assert table.rows("SELECT s, d FROM t WHERE id = 11") == [("k", 1.5)]
    metrics = newest_info(table)["operationMetrics"]
    assert (metrics["numUpdatedRows"], metrics["numCopiedRows"]) == ("2", "1")
    assert newest_info(table)["operationParameters"] == {"predicate": '["(id IN (1, 2))"]'}


def test_values_of_an_update_are_those_before_it(table: Session) -> None:
    table.run("CREATE TABLE pair (a INT, b INT)")
    table.run("INSERT INTO pair VALUES (1, 2)")
    table.run("UPDATE pair SET a = b, b = a")
    assert table.rows("SELECT * FROM pair") == [(2, 1)]


def test_columns_may_have_any_name(session: Session) -> None:
    session.run("CREATE TABLE t (file INT, position STRING, _file INT, action INT, there INT)")
    session.run("INSERT INTO t VALUES (1, 'a', 2, 3, 4), (5, 'b', 6, 7, 8)")
    assert session.rows("UPDATE t SET position = concat(position, file), _file = NULL WHERE action = 3") == [(1,)]
    source = "(SELECT 5 AS file, 'z' AS position, 1 AS action, 0 AS there, 0 AS _file)"
    merge = f"MERGE INTO t USING {source} AS q ON t.file = q.file WHEN MATCHED AND t.there = 8 THEN UPDATE SET *"
    assert session.rows(merge) == [(1, 1, 0, 0)]
    assert rows_elsewhere(session) == [(1, "a1", None, 3, 4), (5, "z", 0, 1, 0)]
    assert session.rows("DELETE FROM t WHERE file = 1") == [(1,)]


def test_rows_move_to_their_new_partition(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    session.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    session.run("UPDATE t SET p = 'c d' WHERE id = 1 OR p IS NULL")
    assert rows_elsewhere(session) == [(1, "c d"), (2, "b"), (3, "c d")]
    removed = [a["remove"]["partitionValues"]["p"] for a in newest_commit(session) if "remove" in a]
    assert sorted(removed, key=repr) == ["a", None] or sorted(removed, key=repr) == [None, "a"]
    assert session.rows("DELETE FROM t WHERE p = 'c d'") == [(2,)]
    assert session.rows("SELECT id, p FROM t") == [(2, "b")]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("DELETE FROM t WHERE nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("DELETE FROM t WHERE id IN (SELECT nope FROM t)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("DELETE FROM t WHERE id IN (SELECT id FROM nope)", "TABLE_OR_VIEW_NOT_FOUND"),
        ("DELETE FROM t WHERE id IN (SELECT id FROM t a, t b)", "AMBIGUOUS_REFERENCE"),
        ("DELETE FROM t WHERE id IN (SELECT id, s FROM t)", "DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH"),
        ("DELETE FROM t WHERE id > (SELECT rand() FROM t LIMIT 1)", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        ("DELETE FROM t WHERE id IN (SELECT sum(t.id) FROM t u)", "UNSUPPORTED_FEATURE"),
        ("DELETE FROM t WHERE id = (SELECT id FROM t)", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
        ("DELETE FROM t WHERE (SELECT max(id) FROM t)", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("DELETE FROM t WHERE id > (SELECT max(id) / 0 FROM t)", "DIVIDE_BY_ZERO"),
        ("DELETE FROM t WHERE rand() < 0.5", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        ("DELETE FROM t WHERE count(*) > 1", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
        ("DELETE FROM t WHERE struct(*) IS NOT NULL", "INVALID_USAGE_OF_STAR_OR_REGEX"),
        ("UPDATE t SET s = struct(t.*)", "INVALID_USAGE_OF_STAR_OR_REGEX"),
        (
            "MERGE INTO t USING t AS u ON t.id = u.id WHEN NOT MATCHED THEN INSERT (s) VALUES (hash(u.*))",
            "INVALID_USAGE_OF_STAR_OR_REGEX",
        ),
        ("DELETE FROM t WHERE 1 / (id - 1) > 0", "DIVIDE_BY_ZERO"),
        ("DELETE FROM nope", "TABLE_OR_VIEW_NOT_FOUND"),
        ("UPDATE t SET nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("UPDATE t SET s = 'a', t.S = 'b'", "DELTA_CONFLICT_SET_COLUMN"),
        ("UPDATE t SET id = 'abc' WHERE id = 77", "CAST_INVALID_INPUT"),
        ("UPDATE t SET id = 99999999999", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        ("UPDATE t SET id = id + 99999999999 WHERE id = 13", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        ("UPDATE t SET s = rand()", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        ("UPDATE t x SET s = 'a' WHERE t.id = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (
            "UPDATE t SET s = (SELECT s, id FROM t)",
            "INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN",
        ),
        ("UPDATE t SET s = (SELECT s FROM t)", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
        ("UPDATE t SET s = (SELECT u.s FROM t u WHERE u.d = t.d)", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
        ("UPDATE t SET s = (SELECT uuid())", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        ("UPDATE t SET id = (SELECT max(id) + 99999999999 FROM t)", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        ("DELETE FROM t WHERE id", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("UPDATE t SET id = array(1)", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
        ("DELETE FROM t VERSION AS OF 1 WHERE id = 1", "PARSE_SYNTAX_ERROR"),
        ("DELETE t WHERE id = 1", "PARSE_SYNTAX_ERROR"),
        ("UPDATE t SET id = 1 WHERE", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_what_is_wrong_leaves_the_table_as_it_was(table: Session, statement: str, condition: str) -> None:
    before = count_versions(table), sorted(folder_of(table).iterdir())
    assert refused(table, statement).condition == condition
    assert (count_versions(table), sorted(folder_of(table).iterdir())) == before


def test_views_and_tables_that_are_only_read_are_not_changed(table: Session) -> None:
    table.run("CREATE VIEW v AS SELECT * FROM t")
    assert refused(table, "DELETE FROM v").condition == "DELTA_UNSUPPORTED_SOURCE"
    assert refused(table, "DELETE FROM samples.nyctaxi.trips").condition == "PERMISSION_DENIED"


def test_tables_that_ask_more_of_their_writers_are_refused_by_name(table: Session) -> None:
    table.run("CREATE TABLE kept (id INT) TBLPROPERTIES ('delta.appendOnly' = 'true')")
    table.run("INSERT INTO kept VALUES (1)")
    assert refused(table, "DELETE FROM kept").condition == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    assert refused(table, "UPDATE kept SET id = 2").condition == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    table.run("CREATE TABLE many (id INT)")
    folder = table.runner.catalogs["main"].table_location("shop", "many")
    (metadata,) = [a["metaData"] for a in log.actions(folder, 0) if "metaData" in a]
    spec = {**metadata, "configuration": {"delta.enableIcebergCompatV2": "true"}}
    commit.publish(folder, 1, [{"metaData": spec}])
    error = refused(table, "UPDATE many SET id = -1")
    assert isinstance(error, UnsupportedError)
    assert "delta.enableIcebergCompatV2" in error.message


def test_not_null_columns_take_no_null(session: Session) -> None:
    session.run("CREATE TABLE t (id INT NOT NULL, s STRING)")
    session.run("INSERT INTO t VALUES (1, 'a')")
    assert refused(session, "UPDATE t SET id = NULL").condition == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    assert session.rows("SELECT * FROM t") == [(1, "a")]
    assert len(list(folder_of(session).glob("*.parquet"))) == 1


@pytest.mark.parametrize(
    ("meanwhile", "condition"),
    [
        ("INSERT INTO t VALUES (2, 'late', 0.0)", "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"),
        ("DELETE FROM t WHERE id = 1", "DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT"),
        ("INSERT INTO t VALUES (500, 'far', 0.0)", None),
        ("DELETE FROM t WHERE id = 13", None),
    ],
)
def test_another_writer_is_overtaken_where_that_is_right(
    table: Session, monkeypatch: pytest.MonkeyPatch, meanwhile: str, condition: str | None
) -> None:
    publish = commit.publish
    asked: list[str] = []

    def late(*arguments: Any) -> None:
        if not asked:
            asked.append(meanwhile)
            table.run(meanwhile)
        publish(*arguments)

    monkeypatch.setattr(commit, "publish", late)
    if condition is None:
        assert table.rows("UPDATE t SET s = 'mine' WHERE id = 2") == [(1,)]
        assert table.rows("SELECT s FROM t WHERE id = 2") == [("mine",)]
        assert table.rows("SELECT count(*) FROM t") == [(7,) if "INSERT" in meanwhile else (5,)]
    else:
        with pytest.raises(UserError) as caught:
            table.run("UPDATE t SET s = 'mine' WHERE id = 2")
        assert (caught.value.condition, caught.value.sqlstate, caught.value.retryable) == (condition, "2D521", True)
        assert table.rows("SELECT count(*) FROM t WHERE s = 'mine'") == [(0,)]


def test_explain_says_how_rows_are_found(table: Session) -> None:
    ((text,),) = table.rows("EXPLAIN DELETE FROM t WHERE id = 2")
    assert text.startswith("Engine: datafusion")
    assert "files 1 of 2" in text
    assert table.rows("SELECT count(*) FROM t") == [(6,)]


@pytest.fixture
def nested(session: Session) -> Session:
    """``t`` with a struct in a struct, and NULL in its place."""
    session.run("CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRUCT<c: STRING, d: INT>>)")
    session.run("INSERT INTO t SELECT 1, named_struct('a', 1, 'b', named_struct('c', 'x', 'd', 2))")
    session.run("INSERT INTO t VALUES (2, NULL)")
    return session


def test_fields_of_structs_are_set_beside_those_that_stay(nested: Session) -> None:
    """A struct that was NULL is none any more, as with Delta."""
    nested.run("UPDATE t SET t.S.b.C = 'y', s.a = s.a + id")
    rows = [(1, {"a": 2, "b": {"c": "y", "d": 2}}), (2, {"a": None, "b": {"c": "y", "d": None}})]
    assert nested.rows("SELECT * FROM t ORDER BY id") == rows
    nested.run(
        "MERGE INTO t USING (SELECT 1 AS k, '7' AS v) q ON t.id = q.k WHEN MATCHED THEN UPDATE SET t.s.a = v, s.b.d = k + 1 "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s.b = NULL"
    )
    assert nested.rows("SELECT * FROM t ORDER BY id") == [
        (1, {"a": 7, "b": {"c": "y", "d": 2}}),
        (2, {"a": None, "b": None}),
    ]


@pytest.mark.parametrize(
    ("assignments", "condition"),
    [
        ("s.a = 1, s = NULL", "DELTA_CONFLICT_SET_COLUMN"),
        ("s.b = NULL, s.b.c = 'x'", "DELTA_CONFLICT_SET_COLUMN"),
        ("s.a = 1, s.A = 2", "DELTA_CONFLICT_SET_COLUMN"),
        ("s.zz = 1", "FIELD_NOT_FOUND"),
        ("id.a = 1", "INVALID_EXTRACT_BASE_FIELD_TYPE"),
        ("s.a = 3000000000", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        ("s.a = 'x'", "CAST_INVALID_INPUT"),
        ("s.a = DEFAULT", "UNSUPPORTED_FEATURE"),
    ],
)
def test_fields_that_cannot_be_set(nested: Session, assignments: str, condition: str) -> None:
    before = nested.rows("SELECT * FROM t ORDER BY id")
    assert refused(nested, f"UPDATE t SET {assignments}").condition == condition
    assert nested.rows("SELECT * FROM t ORDER BY id") == before


@pytest.mark.rewrites
@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET s = 'x' WHERE id = 2",
        "DELETE FROM t WHERE id = 2",
        "MERGE INTO t USING (SELECT 2 AS id, 'x' AS s, 1D AS d) n ON t.id = n.id WHEN MATCHED THEN UPDATE SET *",
    ],
)
def test_what_is_planned_behind_the_announcement_is_told_as_planning(table: Session, text: str) -> None:
    events = Events()
    table.runner.run(Statement("s", text, table.state, ()), events)
    told = [event.begins for event in events.events if isinstance(event, Planning)]
    assert sum(1 if begins else -1 for begins in told) == 0  # each has its end
    announced = next(i for i, event in enumerate(events.events) if isinstance(event, Planned))
    assert Planning(True) in events.events[announced:]


_ASKED = [
    ("DELETE FROM t WHERE id IN (SELECT k FROM q)", 3, [3, 11, 13]),
    ("DELETE FROM t WHERE id NOT IN (SELECT k FROM q)", 0, [1, 2, 3, 11, 12, 13]),  # there is a NULL
    ("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM q WHERE k = t.id)", 3, [1, 2, 12]),
    ("DELETE FROM t WHERE d = 1.5 AND id < (SELECT max(id) FROM t u WHERE u.d = t.d)", 1, [2, 3, 11, 12, 13]),
    ("DELETE FROM t WHERE id > (SELECT k FROM q WHERE k > 99)", 0, [1, 2, 3, 11, 12, 13]),
]


@pytest.fixture(params=["true", "false"], ids=["marks", "rewrites"])
def asked(table: Session, request: pytest.FixtureRequest) -> Session:
    """The table with deletion vectors and without, and ``q``."""
    table.run(f"ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{request.param}')")
    table.run("CREATE TABLE q (k INT, w STRING)")
    table.run("INSERT INTO q VALUES (1, 'x'), (2, 'y'), (12, NULL), (NULL, 'n')")
    return table


@pytest.mark.parametrize(("statement", "count", "left"), _ASKED)
def test_a_subquery_chooses_rows_to_delete(asked: Session, statement: str, count: int, left: list[int]) -> None:
    versions = count_versions(asked)
    assert asked.rows(statement) == [(count,)]
    assert asked.rows("SELECT id FROM t ORDER BY id") == [(i,) for i in left]
    assert count_versions(asked) == versions + bool(count)
    if count:
        assert newest_info(asked)["operationMetrics"]["numDeletedRows"] == str(count)


def test_a_subquery_gives_a_value_to_the_rows_that_change_alone(asked: Session) -> None:
    """No row is NULL; two would raise, but not for rows that stay as they are."""
    asked.run("INSERT INTO q VALUES (13, 'p'), (13, 'q')")
    assert asked.rows(
        "UPDATE t SET s = (SELECT w FROM q WHERE k = id), d = (SELECT count(*) FROM t) WHERE id < 12"
    ) == [(4,)]
    info = newest_info(asked)
    assert info["operationParameters"] == {"predicate": '["(id < 12)"]'}
    assert info["operationMetrics"]["numUpdatedRows"] == "4"
    assert asked.rows("SELECT id, s, d FROM t ORDER BY id") == [
        *((1, "x", 6.0), (2, "y", 6.0), (3, None, 6.0), (11, None, 6.0), (12, "l", None), (13, "m", 3.5))
    ]
    assert (
        refused(asked, "UPDATE t SET s = (SELECT w FROM q WHERE k = id)").condition == "SCALAR_SUBQUERY_TOO_MANY_ROWS"
    )


def test_what_a_subquery_changes_goes_through_constraints_and_into_the_feed(session: Session) -> None:
    session.run(
        "CREATE TABLE t (id INT, v INT, g INT GENERATED ALWAYS AS (v * 2), p STRING) PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableRowTracking' = 'true')"
    )
    session.run("ALTER TABLE t ADD CONSTRAINT small CHECK (v < 100)")
    session.run("INSERT INTO t (id, v, p) VALUES (1, 10, 'a'), (2, 20, 'a'), (3, 30, 'b')")
    ids = session.rows("SELECT id, _metadata.row_id FROM t ORDER BY id")
    session.run("UPDATE t SET v = (SELECT max(v) FROM t) + 1, p = 'c' WHERE id IN (SELECT max(id) FROM t GROUP BY p)")
    assert session.rows("SELECT id, v, g, p FROM t ORDER BY id") == [
        *((1, 10, 20, "a"), (2, 31, 62, "c"), (3, 31, 62, "c"))
    ]
    assert session.rows("SELECT id, _metadata.row_id FROM t ORDER BY id") == ids
    session.run("DELETE FROM t WHERE v = (SELECT min(v) FROM t)")
    told = session.rows("SELECT id, v, _change_type FROM table_changes('t', 3) ORDER BY ALL")
    assert told == [
        *((1, 10, "delete"), (2, 20, "update_preimage"), (2, 31, "update_postimage")),
        *((3, 30, "update_preimage"), (3, 31, "update_postimage")),
    ]
    error = refused(session, "UPDATE t SET v = (SELECT sum(v) FROM t) * 50")
    assert error.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


@pytest.mark.parametrize(
    ("statement", "meanwhile", "condition"),
    [
        ("DELETE FROM t WHERE id > 12 AND d > (SELECT min(d) FROM t)", "t", "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"),
        ("UPDATE t SET d = (SELECT max(id) FROM t) WHERE id = 13", "t", "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"),
        ("DELETE FROM t WHERE id > 12 AND id < 20 AND d > (SELECT min(k) FROM q)", "t", None),
        ("DELETE FROM t WHERE id > 12 AND d > (SELECT min(k) FROM q)", "q", None),
    ],
)
def test_what_a_subquery_reads_of_the_table_itself_counts_as_read(
    asked: Session, monkeypatch: pytest.MonkeyPatch, statement: str, meanwhile: str, condition: str | None
) -> None:
    publish = commit.publish
    more = {"t": "INSERT INTO t VALUES (500, 'far', 0.0)", "q": "INSERT INTO q VALUES (-5, 'far')"}

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(commit, "publish", publish)
        asked.run(more[meanwhile])
        publish(*arguments)

    monkeypatch.setattr(commit, "publish", late)
    if condition is None:
        assert asked.rows(statement) == [(1,)]
    else:
        assert refused(asked, statement).condition == condition


def test_explain_and_views_and_versions_in_subqueries(asked: Session) -> None:
    asked.run("CREATE OR REPLACE TEMPORARY VIEW late AS SELECT k FROM q WHERE k > 1")
    ((text,),) = asked.rows("EXPLAIN DELETE FROM t WHERE id IN (SELECT k FROM late)")
    assert text.startswith("Engine: datafusion")
    assert "main.shop.q" in text
    assert asked.rows("DELETE FROM t WHERE id IN (SELECT k FROM late)") == [(2,)]
    assert asked.rows("DELETE FROM t WHERE id IN (SELECT id FROM t VERSION AS OF 1)") == [(2,)]
    assert asked.rows("SELECT id FROM t ORDER BY id") == [(11,), (13,)]
    assert asked.rows("UPDATE t SET s = (SELECT s FROM t VERSION AS OF 2 u WHERE u.id = t.id - 10)") == [(2,)]
    assert asked.rows("SELECT s FROM t ORDER BY id") == [("a",), ("c",)]
