"""INSERT … REPLACE ON: all rows of the query are there afterwards, and none that the condition pairs with one of them."""

from __future__ import annotations

import pytest

from tests.unit.runner.session import Session, refused

SOURCE = "(SELECT * FROM VALUES (2, 'B', 9), (4, 'D', 9), (NULL, 'N', 9) AS v(id, d, p))"


@pytest.fixture
def shop(session: Session) -> Session:
    session.run("CREATE TABLE t (id INT, d STRING, p INT)")
    session.run("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1), (2, 'bb', 2)")
    session.run("INSERT INTO t VALUES (3, 'c', 2), (NULL, 'n', 3)")
    return session


ROWS = [(None, "n", 3), (1, "a", 1), (2, "b", 1), (2, "bb", 2), (3, "c", 2)]


@pytest.mark.parametrize(
    ("text", "rows", "inserted"),
    [
        (
            f"INSERT INTO TABLE t AS x REPLACE ON (x.id <=> s.id) {SOURCE} AS s",
            [(None, "N", 9), (1, "a", 1), (2, "B", 9), (3, "c", 2), (4, "D", 9)],
            3,
        ),
        (
            f"INSERT INTO t REPLACE ON (t.id = s.id) {SOURCE} s",
            [(None, "N", 9), (None, "n", 3), (1, "a", 1), (2, "B", 9), (3, "c", 2), (4, "D", 9)],
            3,
        ),
        (
            f"INSERT INTO t REPLACE ON t.id <=> s.id {SOURCE} s",
            [(None, "N", 9), (1, "a", 1), (2, "B", 9), (3, "c", 2), (4, "D", 9)],
            3,
        ),
        (
            "INSERT INTO t AS x REPLACE ON abs(x.id) = q (SELECT 5 AS k, 'e', 3 AS q)",
            [(None, "n", 3), (1, "a", 1), (2, "b", 1), (2, "bb", 2), (5, "e", 3)],
            1,
        ),
        (
            "INSERT INTO t x BY NAME REPLACE ON (x.p <=> s.p AND x.id > 1) (SELECT 2 AS p, 7 AS id, 'g' AS d) AS s",
            [(None, "n", 3), (1, "a", 1), (2, "b", 1), (7, "g", 2)],
            1,
        ),
        ("INSERT INTO t REPLACE ON (t.p = s.p) (SELECT * FROM t WHERE id = 3) AS s", [*ROWS[:3], (3, "c", 2)], 1),
        ("INSERT INTO t REPLACE ON (true) (SELECT 0, 'z', 0) AS s", [(0, "z", 0)], 1),
        ("INSERT INTO t REPLACE ON t.p = q SELECT 0, 'z', 1 AS q", [ROWS[0], (0, "z", 1), *ROWS[3:]], 1),
        (
            f"INSERT INTO t REPLACE USING (id) {SOURCE}",
            [(None, "N", 9), (None, "n", 3), (1, "a", 1), (2, "B", 9), (3, "c", 2), (4, "D", 9)],
            3,
        ),
        (
            "INSERT INTO TABLE t REPLACE USING (p, ID) SELECT 2L AS id, 'x', 1 AS p",
            [*ROWS[:2], (2, "bb", 2), (2, "x", 1), ROWS[4]],
            1,
        ),
        (
            "INSERT INTO t BY NAME REPLACE USING (p) WITH w AS (SELECT 'g' AS d, 2 AS p, 7 AS id) SELECT * FROM w",
            [*ROWS[:3], (7, "g", 2)],
            1,
        ),
        ("INSERT INTO t REPLACE USING (id) SELECT * FROM t WHERE id = 2", ROWS, 2),
        ("INSERT INTO t REPLACE USING (id) SELECT * FROM t WHERE false", ROWS, 0),
        (
            "INSERT INTO t REPLACE ON (CAST(NULL AS BOOLEAN)) (SELECT 0, 'z', 0) AS s",
            [ROWS[0], (0, "z", 0), *ROWS[1:]],
            1,
        ),
        ("INSERT INTO t REPLACE ON (true) (SELECT 0, 'z', 0 WHERE false) AS s", ROWS, 0),
    ],
)
def test_rows_take_the_place_of_others(shop: Session, text: str, rows: list[tuple[object, ...]], inserted: int) -> None:
    before = len(shop.rows("DESCRIBE HISTORY t"))
    assert shop.rows(text) == [(inserted, inserted)]
    assert shop.rows("SELECT * FROM t ORDER BY ALL") == rows
    history = shop.run("DESCRIBE HISTORY t")
    assert len(history.rows) == before + (inserted > 0)  # one commit, or none where there is nothing to say


@pytest.mark.rewrites
def test_the_log_tells_what_was_done(shop: Session) -> None:
    shop.run(f"INSERT INTO TABLE t AS x REPLACE ON (x.id = s.id) {SOURCE} AS s")
    last = shop.rows("DESCRIBE HISTORY t LIMIT 1")[0]
    operation, parameters, metrics = last[4], last[5], last[12]
    assert operation == "WRITE"
    assert dict(parameters) == {"mode": "Overwrite", "partitionBy": "[]", "predicate": "(id = id)"}
    told = {key: int(value) for key, value in metrics}
    assert (told["numDeletedRows"], told["numCopiedRows"], told["numOutputRows"], told["numRemovedFiles"]) == (
        2,
        1,
        4,
        1,
    )


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("INSERT INTO t REPLACE ON (t.id = s.nope) (SELECT 1, 'x', 2) AS s", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("INSERT INTO t REPLACE ON (p = 1) (SELECT 1 AS id, 'x' AS d, 2 AS p) AS s", "AMBIGUOUS_REFERENCE"),
        ("INSERT INTO t REPLACE ON (t.id IN (SELECT 1)) (SELECT 1, 'x', 2) AS s", "DELTA_UNSUPPORTED_SUBQUERY"),
        ("INSERT INTO t REPLACE ON (t.id = 1) (SELECT 1, 'x') AS s", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("INSERT INTO t BY NAME REPLACE ON (t.id = 1) (SELECT 1 AS id, 2 AS q) AS s", "DELTA_METADATA_MISMATCH"),
        ("INSERT INTO t REPLACE ON (t.id = 1) (SELECT 'no', 'x', 2) AS s", "CAST_INVALID_INPUT"),
        ("INSERT INTO t REPLACE USING (id) SELECT 1, 'x', 2", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("INSERT INTO t REPLACE USING (nope) SELECT 1 AS nope, 'x', 2", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("INSERT INTO t REPLACE USING (id) SELECT 'x' AS d, 1 AS id, 2 AS p", "UNSUPPORTED_FEATURE"),
        ("INSERT INTO t REPLACE USING (id, ID) SELECT 1 AS id, 'x', 2", "UNSUPPORTED_FEATURE"),
        ("INSERT INTO t REPLACE USING (id) SELECT 1 AS id, 'x'", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("INSERT INTO t REPLACE USING () SELECT 1 AS id, 'x', 2", "PARSE_SYNTAX_ERROR"),
        ("INSERT INTO t x REPLACE USING (id) SELECT 1 AS id, 'x', 2", "PARSE_SYNTAX_ERROR"),
        ("INSERT OVERWRITE t AS x REPLACE ON (x.id = 1) (SELECT 1, 'x', 2) AS s", "PARSE_SYNTAX_ERROR"),
        ("INSERT INTO t AS x SELECT 1, 'x', 2", "PARSE_SYNTAX_ERROR"),
        ("INSERT INTO samples.tpch.nation AS x REPLACE ON (true) (SELECT 1) AS s", "PERMISSION_DENIED"),
        ("INSERT INTO nope AS x REPLACE ON (true) (SELECT 1) AS s", "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
def test_refusals_change_nothing(shop: Session, text: str, condition: str) -> None:
    assert refused(shop, text).condition == condition
    assert shop.rows("SELECT * FROM t ORDER BY ALL") == ROWS
    assert len(shop.rows("DESCRIBE HISTORY t")) == 3
