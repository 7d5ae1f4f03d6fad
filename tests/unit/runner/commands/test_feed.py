"""The change data feed: what each statement tells of the rows that it changes, and what table_changes reads of that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.delta import log
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_commit, newest_info

_ROWS = "VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y'), (4, 'd', 'y')"


@pytest.fixture(params=["true", "false"], ids=["vectors", "files"])
def fed(session: Session, request: pytest.FixtureRequest) -> Session:
    """``t`` with four rows in two partitions, and a feed."""
    session.run(
        "CREATE TABLE t (id INT, s STRING, p STRING) PARTITIONED BY (p) TBLPROPERTIES "
        f"('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = '{request.param}')"
    )
    session.run(f"INSERT INTO t {_ROWS}")
    return session


def _told(session: Session, version: int) -> list[tuple[Any, ...]]:
    """The changes of one version."""
    return session.rows(
        f"SELECT _change_type, id, s, p FROM table_changes('t', {version}, {version}) ORDER BY id, _change_type DESC, s"
    )


def _newest(session: Session) -> list[tuple[Any, ...]]:
    return _told(session, count_versions(session) - 1)


def test_the_protocol_and_the_first_rows(fed: Session) -> None:
    protocol = next(a["protocol"] for a in log.actions(str(folder_of(fed)), 0) if "protocol" in a)
    assert protocol["minWriterVersion"] == 7 and "changeDataFeed" in protocol["writerFeatures"]
    assert _newest(fed) == [
        ("insert", i, s, p) for i, s, p in ((1, "a", "x"), (2, "b", "x"), (3, "c", "y"), (4, "d", "y"))
    ]
    assert not any("cdc" in a for a in newest_commit(fed))


def test_update_tells_of_rows_before_and_after(fed: Session) -> None:
    fed.run("UPDATE t SET s = 'z' WHERE id = 1")
    assert _newest(fed) == [("update_preimage", 1, "a", "x"), ("update_postimage", 1, "z", "x")]
    (cdc,) = [a["cdc"] for a in newest_commit(fed) if "cdc" in a]
    assert cdc["path"].startswith("_change_data/p=x/cdc-") and cdc["dataChange"] is False
    assert cdc["partitionValues"] == {"p": "x"} and cdc["size"] == (folder_of(fed) / cdc["path"]).stat().st_size
    assert newest_info(fed)["operationMetrics"]["numAddedChangeFiles"] == "1"
    fed.run("UPDATE t SET p = 'y' WHERE id = 1")
    assert _newest(fed) == [("update_preimage", 1, "z", "x"), ("update_postimage", 1, "z", "y")]
    assert fed.rows("SELECT * FROM t ORDER BY ALL") == [(1, "z", "y"), (2, "b", "x"), (3, "c", "y"), (4, "d", "y")]


@pytest.mark.parametrize(
    ("condition", "gone"),
    [("id = 2", [2]), ("p = 'y'", [3, 4]), ("id IN (1, 3, 4)", [1, 3, 4]), ("true", [1, 2, 3, 4])],
)
def test_delete_tells_of_rows_that_go(fed: Session, condition: str, gone: list[int]) -> None:
    fed.run(f"DELETE FROM t WHERE {condition}")
    assert [(kind, i) for kind, i, *_ in _newest(fed)] == [("delete", i) for i in gone]
    fed.run("INSERT INTO t VALUES (9, 'n', 'x')")
    assert _newest(fed) == [("insert", 9, "n", "x")]


def test_rows_go_one_after_the_other(fed: Session) -> None:
    """A file with a deletion vector gets another, and goes as a whole in the end."""
    for i in (3, 4, 1, 2):
        fed.run(f"DELETE FROM t WHERE id = {i}")
        assert [(kind, x) for kind, x, *_ in _newest(fed)] == [("delete", i)]
    fed.run("RESTORE TABLE t TO VERSION AS OF 2")
    assert [(kind, x) for kind, x, *_ in _newest(fed)] == [("insert", i) for i in (1, 2, 4)]
    fed.run("RESTORE TABLE t TO VERSION AS OF 3")
    assert [(kind, x) for kind, x, *_ in _newest(fed)] == [("delete", 4)]


def test_merge_tells_of_each_clause(fed: Session) -> None:
    fed.run(
        "MERGE INTO t USING (SELECT * FROM VALUES (1, 'm'), (3, 'm'), (9, 'n') v(id, s)) q ON t.id = q.id "
        "WHEN MATCHED AND q.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET s = q.s "
        "WHEN NOT MATCHED THEN INSERT (id, s, p) VALUES (q.id, q.s, 'z') "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET s = NULL "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert _newest(fed) == [
        ("update_preimage", 1, "a", "x"),
        ("update_postimage", 1, "m", "x"),
        ("update_preimage", 2, "b", "x"),
        ("update_postimage", 2, None, "x"),
        ("delete", 3, "c", "y"),
        ("delete", 4, "d", "y"),
        ("insert", 9, "n", "z"),
    ]
    assert fed.rows("SELECT * FROM t ORDER BY ALL") == [(1, "m", "x"), (2, None, "x"), (9, "n", "z")]
    fed.run("MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 1) q ON t.id = q.id WHEN MATCHED THEN DELETE")
    assert _newest(fed) == [("delete", 1, "m", "x")]
    fed.run("MERGE INTO t USING (SELECT 8 AS id) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT (id) VALUES (q.id)")
    assert _newest(fed) == [("insert", 8, None, None)]


def test_rows_in_the_place_of_others(fed: Session) -> None:
    fed.run("INSERT INTO t REPLACE WHERE id = 1 VALUES (1, 'r', 'x')")
    assert _newest(fed) == [("insert", 1, "r", "x"), ("delete", 1, "a", "x")]
    fed.run("INSERT INTO t REPLACE ON (t.id = q.id) (SELECT 2 AS id, 'o' AS s, 'x' AS p) AS q")
    assert _newest(fed) == [("insert", 2, "o", "x"), ("delete", 2, "b", "x")]
    fed.run("INSERT OVERWRITE t PARTITION (p = 'y') SELECT 7, 's'")
    assert _newest(fed) == [("delete", 3, "c", "y"), ("delete", 4, "d", "y"), ("insert", 7, "s", "y")]
    fed.run("INSERT OVERWRITE t VALUES (5, 'w', 'x')")
    assert [(kind, i) for kind, i, *_ in _newest(fed)] == [("delete", 1), ("delete", 2), ("insert", 5), ("delete", 7)]
    fed.run("TRUNCATE TABLE t")
    assert _newest(fed) == [("delete", 5, "w", "x")]


def test_what_changes_no_row_is_not_told(fed: Session) -> None:
    fed.run("INSERT INTO t VALUES (5, 'e', 'x')")
    fed.run("OPTIMIZE t")
    assert any("remove" in a for a in newest_commit(fed)) and _newest(fed) == []
    fed.run("ALTER TABLE t SET TBLPROPERTIES ('k' = 'v')")
    assert _newest(fed) == []


@pytest.mark.parametrize(
    ("operation", "counts", "told"),
    [
        ("MERGE", ("0", "0", "0"), False),
        ("MERGE", (0, 0, 0), False),
        ("MERGE", ("0", "1", "0"), True),
        ("MERGE", ("0", "0", None), True),
        ("DELETE", ("0", "0", "0"), True),
    ],
)
def test_a_merge_that_counts_no_row_has_changed_none(
    session: Session, operation: str, counts: tuple[object, ...], told: bool
) -> None:
    """Spark writes files anew whose rows were paired and met no condition, has no files of changes then, and tells of none."""
    session.run("CREATE TABLE t (id INT, s STRING, p STRING) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    session.run("INSERT INTO t VALUES (1, 'a', 'x')")
    session.run("INSERT OVERWRITE t VALUES (1, 'a', 'x')")
    path = Path(log.commit_path(str(folder_of(session)), 2))
    metrics = zip(("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"), counts, strict=True)
    info = {"operation": operation, "operationMetrics": {name: count for name, count in metrics if count is not None}}
    actions = [{"commitInfo": info} if "commitInfo" in a else a for a in newest_commit(session)]
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert _told(session, 2) == [("insert", 1, "a", "x"), ("delete", 1, "a", "x")] * told


def test_ranges(fed: Session) -> None:
    fed.run("UPDATE t SET s = 'z' WHERE id = 1")
    assert fed.rows("SELECT count(*) FROM table_changes('t', 0)") == [(6,)]
    assert fed.rows("SELECT count(*) FROM table_changes('main.shop.t', 0, 1)") == [(4,)]
    assert fed.rows("SELECT count(*) FROM table_changes('`t`', 2, 99L)") == [(2,)]
    assert fed.rows("SELECT count(*) FROM table_changes('t', '2020-01-01')") == [(6,)]
    ((moment,),) = fed.rows("SELECT max(_commit_timestamp) FROM table_changes('t', 2)")
    shown = moment.strftime("%Y-%m-%d %H:%M:%S.%f")
    assert fed.rows(f"SELECT count(*) FROM table_changes('t', TIMESTAMP '{shown}', 5)") == [(2,)]
    assert fed.rows(f"SELECT t.n FROM table_changes('t', 2, TIMESTAMP '{shown}') AS t(n, s, p, c, v, w) LIMIT 1") == [
        (1,)
    ]
    columns = fed.run("SELECT * FROM table_changes('t', 0)").columns
    assert columns[3:] == [
        ("_change_type", "string", True),
        ("_commit_version", "bigint", True),
        ("_commit_timestamp", "timestamp", True),
    ]


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        ("'t', 9", "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ("'t', 1, 0", "DELTA_INVALID_CDC_RANGE"),
        ("'t', NULL", "DELTA_CDC_READ_NULL_RANGE_BOUNDARY"),
        ("'t', 1.5", "DELTA_UNSUPPORTED_EXPRESSION"),
        ("'t', 'x'", "DELTA_TIMESTAMP_INVALID"),
        ("'t', '2999-01-01'", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        ("'t', 0, '1999-01-01'", "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
        ("'t'", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
        ("'nope', 0", "TABLE_OR_VIEW_NOT_FOUND"),
        ("'a b', 0", "PARSE_SYNTAX_ERROR"),
        ("NULL, 0", "DELTA_UNSUPPORTED_EXPRESSION"),
        ("'delta.`/x/t`', 0", "UNSUPPORTED_FEATURE"),
    ],
)
def test_bounds_that_are_not_there(fed: Session, arguments: str, condition: str) -> None:
    assert refused(fed, f"SELECT * FROM table_changes({arguments})").condition == condition


def test_versions_without_a_feed(session: Session) -> None:
    session.run("CREATE TABLE t (id INT)")
    assert refused(session, "SELECT * FROM table_changes('t', 0)").condition == "DELTA_MISSING_CHANGE_DATA"


def test_no_file_stays_of_a_statement_that_fails(fed: Session) -> None:
    fed.run("ALTER TABLE t ADD CONSTRAINT small CHECK (id < 100)")
    before = sorted(p for p in folder_of(fed).rglob("*") if p.is_file())
    assert refused(fed, "UPDATE t SET id = id * 50").condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert sorted(p for p in folder_of(fed).rglob("*") if p.is_file()) == before
