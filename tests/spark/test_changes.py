"""Changes of rows by the embedded engine and by Spark: the same counts, rows and history, whoever reads them."""

from __future__ import annotations

import itertools

import pytest

from tests.live.delta_changes import COLUMNS, ROWS, SOURCE, STATEMENTS, bag
from tests.live.spark import Sql

pytestmark = pytest.mark.spark


def _made(sql: Sql, name: str, parted: bool, properties: str = "") -> None:
    sql.auto(f"DROP TABLE IF EXISTS {name}")
    sql.embedded(f"CREATE TABLE {name} {COLUMNS} {'PARTITIONED BY (p)' if parted else ''} {properties}")
    sql.embedded(f"INSERT INTO {name} {ROWS}")


def test_each_engine_goes_on_where_the_other_stopped(sql: Sql) -> None:
    _made(sql, "ours", True)
    for at, statement in enumerate(STATEMENTS[:5] + STATEMENTS[6:13]):
        (sql.spark if at % 2 else sql.embedded)(statement.format(t="ours", q=SOURCE))
        assert bag(sql.spark("SELECT * FROM ours")) == bag(sql.embedded("SELECT * FROM ours")), statement


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
        assert bag(sql.embedded("SELECT id, s FROM ours")) == bag(left), condition
        _asked_of(sql, vectors)
        assert sql.embedded(f"UPDATE ours SET s = {value}, e = 7 WHERE {condition}") == [(len(taken),)], condition
        assert bag(sql.embedded("SELECT id, s FROM ours")) == bag(left + taken), (condition, value)
        assert sql.embedded("SELECT count(*) FROM ours WHERE e = 7") == [(len(taken),)], condition
    sql.embedded(f"DELETE FROM ours WHERE {_ASKED[0]}")
    assert bag(sql.spark("SELECT * FROM ours")) == bag(sql.embedded("SELECT * FROM ours"))
