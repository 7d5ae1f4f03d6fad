"""Changes of rows by the embedded engine and by Spark: the same counts, rows and history, whoever reads them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_COLUMNS = "(id INT, s STRING, d DOUBLE, e DECIMAL(12, 3), t TIMESTAMP, p STRING)"
_ROWS = (
    "VALUES (1, 'a', 1.5, 1.25, TIMESTAMP'2024-01-02 03:04:05', 'x'), (2, NULL, double('NaN'), NULL, NULL, 'x'), "
    "(3, 'c', -0.0, -7.5, TIMESTAMP'1969-12-31 23:59:59.5', NULL), (4, 'a text of more than thirty-two characters, cut', "
    "NULL, 0, TIMESTAMP'9999-12-31 00:00:00', 'y z')"
)
_SOURCE = "(SELECT * FROM VALUES (1, 'A', 'q'), (4, NULL, 'x'), (9, 'I', NULL) AS v(id, s, p))"
_STATEMENTS = (
    "DELETE FROM {t} WHERE id = 2",
    "DELETE FROM {t} WHERE d > 1",
    "DELETE FROM {t} WHERE s LIKE 'a%' AND p = 'x'",
    "DELETE FROM {t} WHERE p IS NULL",
    "DELETE FROM {t} WHERE id > 100",
    "DELETE FROM {t}",
    "UPDATE {t} SET s = concat(s, '!'), e = id / 3, t = t + INTERVAL 1 DAY WHERE id < 4",
    "UPDATE {t} SET p = 'x' WHERE p IS NULL OR p = 'y z'",
    "UPDATE {t} SET d = id",
    "UPDATE {t} SET s = NULL WHERE d = double('NaN')",
    "MERGE INTO {t} AS t USING {q} AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = q.s, p = q.p "
    "WHEN NOT MATCHED THEN INSERT (id, s, p) VALUES (q.id, q.s, q.p)",
    "MERGE INTO {t} AS t USING {q} AS q ON t.id = q.id WHEN MATCHED AND q.s IS NULL THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE AND t.d > 0 THEN UPDATE SET e = 1 WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "MERGE INTO {t} AS t USING {q} AS q ON t.id = q.id WHEN NOT MATCHED AND q.id > 5 THEN INSERT (id) VALUES (q.id + 1)",
    "INSERT OVERWRITE {t} SELECT id + 10, s, d, e, t, p FROM {t} WHERE id < 3",
    "INSERT INTO {t} REPLACE WHERE p = 'x' SELECT 7, 'r', 7.5, 7, NULL, 'x'",
    "TRUNCATE TABLE {t}",
)
# What is counted alike; times and sizes differ.
_METRICS = (
    *("numDeletedRows", "numUpdatedRows", "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
    *("numTargetRowsMatchedUpdated", "numTargetRowsMatchedDeleted", "numTargetRowsNotMatchedBySourceUpdated"),
    *("numTargetRowsNotMatchedBySourceDeleted", "numSourceRows", "numOutputRows"),
)


def _made(sql: Sql, name: str, parted: bool, properties: str = "") -> None:
    sql.auto(f"DROP TABLE IF EXISTS {name}")
    sql.embedded(f"CREATE TABLE {name} {_COLUMNS} {'PARTITIONED BY (p)' if parted else ''} {properties}")
    sql.embedded(f"INSERT INTO {name} {_ROWS}")


def _bag(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(row).replace("-0.0", "0.0") for row in rows)


def _history(ask: Callable[[str], list[tuple[Any, ...]]], name: str) -> list[tuple[Any, ...]]:
    """Operation, what it says of itself and counts of each version."""
    rows = ask(f"DESCRIBE HISTORY {name}")
    found = []
    for row in rows:
        parameters, metrics = dict(row[5] or ()), dict(row[12] or ())
        parameters.pop("predicate", None)  # has Spark's numbers of columns in it
        shown = {k: v for k, v in parameters.items() if "redicates" not in k}
        found.append((row[0], row[4], shown, row[9], row[11], {k: metrics.get(k) for k in _METRICS}))
    return found


@pytest.mark.parametrize("parted", [False, pytest.param(True, marks=pytest.mark.heavy)])
def test_both_engines_change_the_same_rows(sql: Sql, parted: bool) -> None:
    for statement in _STATEMENTS:
        for name in ("ours", "theirs"):
            _made(sql, name, parted)
        ours = sql.embedded(statement.format(t="ours", q=_SOURCE))
        theirs = sql.spark(statement.format(t="theirs", q=_SOURCE))
        assert ours == theirs, statement
        expected = _bag(sql.embedded("SELECT * FROM theirs"))
        assert _bag(sql.spark("SELECT * FROM ours")) == expected, statement
        assert _bag(sql.embedded("SELECT * FROM ours")) == expected, statement
        told = sql.spark if statement is _STATEMENTS[-1] else sql.embedded  # Spark takes most of the time
        (new, *_), (other, *_) = _history(told, "ours"), _history(told, "theirs")
        assert new == other, statement


_CARE = (
    *("DELETE FROM {t} WHERE id = 2", "UPDATE {t} SET s = 'u' WHERE id IN (1, 4)", "OPTIMIZE {t}"),
    *(
        "INSERT INTO {t} (id, s) VALUES (8, 'n')",
        "DELETE FROM {t} WHERE id = 8",
        "RESTORE TABLE {t} TO VERSION AS OF 2",
    ),
)
_OF_FILES = (
    *("numRemovedFiles", "numAddedFiles", "numDeletionVectorsAdded", "numDeletionVectorsUpdated"),
    *("numDeletionVectorsRemoved", "numRestoredFiles", "numOfFilesAfterRestore", "numDeletedRows", "numUpdatedRows"),
)


@pytest.mark.parametrize(
    ("vectors", "mapping"),
    [
        ("true", "name"),
        *(
            pytest.param(*pair, marks=pytest.mark.heavy)
            for pair in (("true", "none"), ("false", "none"), ("false", "name"))
        ),
    ],
)
def test_both_engines_keep_the_features_of_a_table(sql: Sql, vectors: str, mapping: str) -> None:
    """Tables made here, cared for by each of the two, with the same files, vectors and counts."""
    properties = f"'delta.enableDeletionVectors' = '{vectors}', 'delta.columnMapping.mode' = '{mapping}'"
    for name in ("ours", "theirs"):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
        sql.embedded(f"CREATE TABLE {name} {_COLUMNS} PARTITIONED BY (p) TBLPROPERTIES ({properties})")
        sql.embedded(f"INSERT INTO {name} {_ROWS}")
        sql.embedded(f"INSERT INTO {name} {_ROWS}")
    for statement in _CARE:
        ours, theirs = sql.embedded(statement.format(t="ours")), sql.spark(statement.format(t="theirs"))
        if not statement.startswith(("OPTIMIZE", "RESTORE")):  # which tell bytes and times
            assert ours == theirs, statement
        expected = _bag(sql.embedded("SELECT * FROM theirs"))
        for read in (sql.spark, sql.embedded):
            assert _bag(read("SELECT * FROM ours")) == expected, statement
        tells = sql.spark if statement is _CARE[-1] else sql.embedded
        (new, *_), (other, *_) = (tells(f"DESCRIBE HISTORY {name} LIMIT 1") for name in ("ours", "theirs"))
        assert [new[i] for i in (0, 4, 9, 10, 11)] == [other[i] for i in (0, 4, 9, 10, 11)], statement
        counts, others = dict(new[12]), dict(other[12])
        # Into how many files rows that stay are written is up to Spark's tasks, and then how many others are written anew.
        told = _OF_FILES if vectors == "true" else ("numDeletedRows", "numUpdatedRows")
        assert {k: counts.get(k) for k in told} == {k: others.get(k) for k in told}, statement


def test_each_engine_goes_on_where_the_other_stopped(sql: Sql) -> None:
    _made(sql, "ours", True)
    for at, statement in enumerate(_STATEMENTS[:5] + _STATEMENTS[6:13]):
        (sql.spark if at % 2 else sql.embedded)(statement.format(t="ours", q=_SOURCE))
        assert _bag(sql.spark("SELECT * FROM ours")) == _bag(sql.embedded("SELECT * FROM ours")), statement


# What is asked in conditions, over ``ours`` and ``q``, whose numbers are 1, 1, 4, 9 and NULL.
_ASKED = (
    "id IN (SELECT k FROM q)",
    "id NOT IN (SELECT k FROM q)",
    "id NOT IN (SELECT k FROM q WHERE k IS NOT NULL)",
    "id NOT IN (SELECT k FROM q WHERE k > 100)",
    "(id, s) IN (SELECT k, lower(w) FROM q)",
    "s IN (SELECT w FROM q WHERE q.k <= ours.id)",
    "EXISTS (SELECT 1 FROM q WHERE q.k = ours.id AND w IS NULL)",
    "NOT EXISTS (SELECT 1 FROM q WHERE k = id)",
    "EXISTS (SELECT k FROM q WHERE k > 8) AND id < 3",
    "id > (SELECT avg(k) FROM q)",
    "id = (SELECT max(u.id) FROM ours u WHERE u.p = ours.p)",
    "d > (SELECT count(*) FROM q WHERE k = id) OR p IS NULL",
    "p = 'x' AND id IN (SELECT k FROM q WHERE w > (SELECT min(w) FROM q))",
    "p IN (SELECT 'x' FROM q)",
    "id IN (WITH c AS (SELECT k + 1 AS k FROM q) SELECT k FROM c UNION SELECT id + 3 FROM ours)",
    "CASE WHEN id < 3 THEN EXISTS (SELECT 1 FROM q WHERE k = id) ELSE (SELECT max(k) FROM q) > 5 END",
    "id > (SELECT k FROM q WHERE k > 100)",
    "id IN (SELECT NULL) OR id IN (SELECT explode(array(k, 2)) FROM q)",
    "NULL NOT IN (SELECT k FROM q WHERE false) AND id IN (SELECT max(k) OVER () FROM q)",
    "(id IN (SELECT k FROM q)) = true AND id IN (SELECT id FROM ours VERSION AS OF 1)",
    "s IN (SELECT max(u.s) FROM ours u GROUP BY u.p HAVING count(*) > (SELECT count(k) - 3 FROM q))",
)
_VALUES = (
    "(SELECT max(w) FROM q WHERE k = id)",
    "concat(s, (SELECT count(*) FROM q))",
    "(SELECT w FROM q WHERE k > 100)",
    "CAST((SELECT min(u.id) FROM ours u WHERE u.id > ours.id) + id AS STRING)",
)


def _asked_of(sql: Sql, vectors: str) -> None:
    _made(sql, "ours", False, f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')")
    sql.embedded("INSERT INTO ours SELECT id + 10, s, d, e, t, p FROM ours")


@pytest.mark.heavy  # Spark takes a minute to plan what is asked
def test_subqueries_choose_the_rows_that_they_do_in_a_query_of_spark(sql: Sql) -> None:
    """Delta with Spark refuses them in these statements; its queries know what they mean."""
    sql.auto("DROP TABLE IF EXISTS q")
    sql.embedded("CREATE TABLE q (k INT, w STRING)")
    sql.embedded("INSERT INTO q VALUES (1, 'A'), (1, 'B'), (4, NULL), (9, 'I'), (NULL, 'N')")
    _asked_of(sql, "true")
    everything = sql.embedded("SELECT id, s FROM ours")
    pairs = [(condition, _VALUES[at % len(_VALUES)]) for at, condition in enumerate(_ASKED)]
    one = "SELECT {at}, id, CAST({value} AS STRING) FROM ours WHERE {condition}"
    found = sql.spark(
        " UNION ALL ".join(one.format(at=at, value=value, condition=asked) for at, (asked, value) in enumerate(pairs))
    )
    for vectors, (at, (condition, value)) in itertools.product(("true", "false"), enumerate(pairs)):
        taken = [row[1:] for row in found if row[0] == at]
        left = [row for row in everything if row[0] not in {number for number, _ in taken}]
        _asked_of(sql, vectors)
        assert sql.embedded(f"DELETE FROM ours WHERE {condition}") == [(len(taken),)], condition
        assert _bag(sql.embedded("SELECT id, s FROM ours")) == _bag(left), condition
        _asked_of(sql, vectors)
        assert sql.embedded(f"UPDATE ours SET s = {value}, e = 7 WHERE {condition}") == [(len(taken),)], condition
        assert _bag(sql.embedded("SELECT id, s FROM ours")) == _bag(left + taken), (condition, value)
        assert sql.embedded("SELECT count(*) FROM ours WHERE e = 7") == [(len(taken),)], condition
    sql.embedded(f"DELETE FROM ours WHERE {_ASKED[0]}")
    assert _bag(sql.spark("SELECT * FROM ours")) == _bag(sql.embedded("SELECT * FROM ours"))
