"""Files with deletion vectors, read by the engine's own scan: the rows, errors and order of a table without any."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.delta import scan
from gateway.errors import GatewayError
from gateway.runner import Runner
from tests.unit.runner.session import Session

COLUMNS = (
    "id INT, k BIGINT, s STRING, c CHAR(4), d DECIMAL(10, 2), f DOUBLE, n STRUCT<a: INT, b: STRING>, l ARRAY<INT>, "
    "p STRING"
)
ROWS = """SELECT CAST(id AS INT), id % 7, IF(id % 11 = 0, NULL, concat('s', id % 13)), concat('c', id % 3),
    CAST(id AS DECIMAL(10, 2)) / 4, IF(id % 17 = 0, double('NaN'), id / 3D),
    named_struct('a', CAST(id % 5 AS INT), 'b', concat('b', id)),
    array(CAST(id AS INT), CAST(id % 4 AS INT)), IF(id < 3000, 'x', 'y') FROM range(6000)"""
#: Every one of them fails for a row that is deleted: `id` is 3, 1003 and so on there.
RAISING = (
    "SELECT count(*) FROM t WHERE 1 / (id % 1000 - 3) > 0",
    "SELECT count(*) FROM t WHERE k >= 0 AND 1 / (id % 1000 - 3) > 0 AND id > 5",
    "SELECT id FROM t ORDER BY 1 / (id % 1000 - 3), id LIMIT 5",
    "SELECT min(1 / (id % 1000 - 3)), max(1 / (id % 1000 - 3)) FROM t",
    "SELECT y FROM (SELECT 1 / (id % 1000 - 3) AS y, id FROM t) WHERE y > 0.3 ORDER BY id",
    "SELECT round(1 / (id % 1000 - 3), 1) AS y, count(*) FROM t GROUP BY y HAVING y > 0.2 ORDER BY y",
    "SELECT count(*) FROM t a JOIN t b ON a.id = b.id AND 1 / (a.id % 1000 - 3) > 0 WHERE b.k < 3",
    "SELECT count(*) FROM t a JOIN t b ON 1 / (a.id % 1000 - 3) = 1 / (b.id % 1000 - 3) AND a.id = b.id",
    "SELECT id, sum(1 / (id % 1000 - 3)) OVER (ORDER BY id) AS w FROM t QUALIFY w > 0 ORDER BY id LIMIT 7",
    "SELECT count(*) FROM t WHERE id IN (SELECT id FROM t WHERE 1 / (id % 1000 - 3) > 0)",
    "SELECT count(*) FROM t WHERE p = 'q' OR 1 / (id % 1000 - 3) > 0 OR p = 'x'",
    "SELECT DISTINCT 1 / (id % 1000 - 3) > 0 AS y FROM t WHERE k = 3 ORDER BY y",
)
QUERIES = (
    "SELECT count(*), sum(id), min(s), max(d) FROM t",
    "SELECT * FROM t WHERE id BETWEEN 990 AND 1010 ORDER BY id",
    "SELECT * FROM t WHERE id IN (3, 4, 5999) ORDER BY id",
    "SELECT id, c, length(c) FROM t WHERE c = 'c1' AND id < 30 ORDER BY id",
    "SELECT count(*) FROM t WHERE s LIKE 's1%' AND p = 'y'",
    "SELECT count(*) FROM t WHERE s IS NULL OR s <=> 's3'",
    "SELECT count(*) FROM t WHERE n.a = 3 AND n.b LIKE 'b1%'",
    "SELECT id FROM t WHERE l[1] = 3 AND element_at(l, 1) > 5980 ORDER BY id",
    "SELECT count(*) FROM t WHERE levenshtein(s, 's1') < 2 AND initcap(s) = 'S1'",
    "SELECT count(*) FROM t WHERE regexp_replace(s, '([0-9])$', '<$1>') = 's<4>' AND n.b > 'b3'",
    "SELECT count(*) FROM t WHERE f > 1000 AND f = f",
    "SELECT p, c, count(*), avg(d) FROM t GROUP BY p, c ORDER BY p, c",
    "SELECT id FROM t ORDER BY id DESC LIMIT 3",
    "SELECT id, f FROM t ORDER BY f DESC, id LIMIT 5",
    "SELECT id FROM t ORDER BY id LIMIT 5 OFFSET 2",
    "SELECT a.id FROM t a JOIN t b ON a.id = b.id + 1 WHERE b.id % 1000 < 6 ORDER BY a.id",
    "SELECT count(*) FROM t a LEFT JOIN t b ON a.id = b.id + 1 WHERE b.id IS NULL",
    "SELECT count(*) FROM t a WHERE NOT EXISTS (SELECT * FROM t b WHERE b.id = a.id + 1)",
    "SELECT id FROM t WHERE id = (SELECT max(id) FROM t WHERE p = 'x')",
    "SELECT id, lag(id) OVER (ORDER BY id) FROM t WHERE id % 1000 < 6 ORDER BY id",
    "SELECT p, id FROM t WHERE p = 'y' AND id < 3006 UNION ALL SELECT p, id FROM t WHERE id < 5 ORDER BY ALL",
    "SELECT id, e FROM t LATERAL VIEW explode(l) AS e WHERE id < 6 ORDER BY ALL",
    "SELECT rank() OVER (PARTITION BY k ORDER BY id) AS r, id FROM t QUALIFY r = 430 ORDER BY id",
)


@pytest.fixture(params=["one file", "partitions"], scope="module")
def tables(request: pytest.FixtureRequest, runner: Runner) -> Iterator[Session]:
    """``t`` with deleted rows in its files, and ``plain`` with the same rows and none deleted; no file is too small."""
    session = Session(runner)
    for text in ("DROP SCHEMA IF EXISTS marked CASCADE", "CREATE SCHEMA marked", "USE marked"):
        session.run(text)
    by = "PARTITIONED BY (p)" if request.param == "partitions" else ""
    for name, vectors in (("t", "true"), ("plain", "false")):
        session.run(f"CREATE TABLE {name} ({COLUMNS}) {by} TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')")
        session.run(f"INSERT INTO {name} {ROWS}")
        session.run(f"DELETE FROM {name} WHERE id % 1000 = 3 OR id > 5990")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_LARGE_NUMBERED", 0)
        yield session


def answer(session: Session, text: str) -> object:
    """The rows, or the condition."""
    try:
        return [tuple(map(repr, row)) for row in session.rows(text)]
    except GatewayError as error:
        return error.condition


@pytest.mark.parametrize("text", [*RAISING, *QUERIES])
def test_rows_are_those_of_a_table_without_vectors(tables: Session, text: str) -> None:
    expected = answer(tables, text.replace("FROM t", "FROM plain").replace("JOIN t", "JOIN plain"))
    assert isinstance(expected, list) and expected, expected
    assert answer(tables, text) == expected


def test_the_engine_reads_them_itself(tables: Session) -> None:
    told = "\n".join(str(row[0]) for row in tables.rows("EXPLAIN SELECT * FROM t WHERE id = 7"))
    assert "reader native" in told and "deletion vectors on" in told
    plan = "\n".join(str(row[0]) for row in tables.rows("EXPLAIN ANALYZE SELECT s FROM t WHERE id = 7"))
    assert "row groups by statistics" in plan


@pytest.mark.parametrize("least", [0, 1 << 20], ids=["numbered", "small"])
def test_many_files_with_vectors(session: Session, monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    monkeypatch.setattr(scan, "_LARGE_NUMBERED", least)
    session.run("CREATE TABLE t (id INT, p INT) PARTITIONED BY (p)")
    session.run("INSERT INTO t SELECT CAST(id AS INT), CAST(id % 70 AS INT) FROM range(700)")
    session.run("DELETE FROM t WHERE id < 70")
    assert session.rows("SELECT count(*), sum(id) FROM t WHERE id >= 0") == [(630, sum(range(70, 700)))]
    assert session.rows("SELECT sum(id) FROM t WHERE p = 3") == [(sum(range(73, 700, 70)),)]
    told = "".join(str(row[0]) for row in session.rows("EXPLAIN SELECT sum(id) FROM t WHERE id > 5"))
    assert f"reader {'mixed' if least == 0 else 'dataset'}" in told


@pytest.mark.parametrize(
    "condition", ["n.a = 3", "l[0] > 5 OR n IS NULL", "exists(l, x -> x = 3)", "s = 's1' OR n.b = 'b7'"]
)
def test_conditions_that_no_scan_takes(tables: Session, condition: str) -> None:
    """What numbers the rows would stand above them: such a query is read by our own reader."""
    text = f"SELECT count(*), sum(id) FROM t WHERE {condition}"
    assert answer(tables, text) == answer(tables, text.replace("FROM t", "FROM plain"))


#: Changes of ``one`` and ``two``, which are alike but for how their files are read.
CHANGES = (
    "UPDATE {} SET k = -1 WHERE id = 77",
    "UPDATE {} SET s = 'new', d = d + 1 WHERE id % 100 = 5 AND s IS NOT NULL",
    "UPDATE {} SET k = k + 1 WHERE c = 'c1' AND 10 / (id % 1000 - 3) < 0",
    "UPDATE {} SET f = 1 WHERE f = f AND f > 1900",
    "UPDATE {} SET k = 5 WHERE n.a = 3 AND exists(l, x -> x = 3)",
    "UPDATE {} SET s = s WHERE id IN (SELECT max(id) FROM {})",
    "DELETE FROM {} WHERE id BETWEEN 100 AND 120",
    "DELETE FROM {} WHERE s LIKE 's12%' AND p = 'y'",
    "DELETE FROM {} WHERE id > (SELECT avg(id) FROM {}) AND k = 0",
    "MERGE INTO {} t USING (SELECT CAST(id * 37 AS INT) AS id, -2L AS k FROM range(200)) q ON t.id = q.id "
    "WHEN MATCHED AND t.k > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET k = q.k "
    "WHEN NOT MATCHED AND q.id < 7000 THEN INSERT (id, k, p) VALUES (q.id, q.k, 'x')",
    "MERGE INTO {} t USING (SELECT CAST(id AS INT) AS id FROM range(10)) q ON t.id = q.id AND 1 / (t.id % 1000 - 3) < 0 "
    "WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED BY SOURCE AND t.id > 5900 THEN DELETE",
)


@pytest.mark.parametrize(
    ("by", "properties"),
    [("", ""), ("PARTITIONED BY (p)", "delta.enableRowTracking"), ("", "delta.enableChangeDataFeed")],
    ids=["plain", "tracked", "fed"],
)
def test_rows_that_are_changed_are_found_alike(
    session: Session, monkeypatch: pytest.MonkeyPatch, by: str, properties: str
) -> None:
    """By the engine's own scan, which numbers them, and by our own reader."""
    also = f", '{properties}' = 'true'" if properties else ""
    for name in ("one", "two"):
        session.run(
            f"CREATE TABLE {name} ({COLUMNS}) {by} TBLPROPERTIES ('delta.enableDeletionVectors' = 'true'{also})"
        )
        session.run(f"INSERT INTO {name} {ROWS}")
        session.run(f"DELETE FROM {name} WHERE id % 1000 = 3")
    for text in CHANGES:
        done = []
        for name, least in (("one", 0), ("two", 1 << 40)):
            monkeypatch.setattr(scan, "_LARGE_NUMBERED", least)
            done.append(answer(session, text.replace("{}", name)))
        assert done[0] == done[1]
        assert isinstance(done[0], list), text
        rows = [answer(session, f"SELECT * FROM {name} ORDER BY id, p, k") for name in ("one", "two")]
        assert rows[0] == rows[1], text


def test_the_engine_numbers_rows_itself(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_LARGE_NUMBERED", 0)
    session.run(f"CREATE TABLE counted ({COLUMNS})")
    session.run(f"INSERT INTO counted {ROWS}")
    told = "\n".join(
        str(row[0])
        for row in session.rows(
            "EXPLAIN MERGE INTO counted t USING (SELECT 7 AS i) q ON t.id = q.i WHEN MATCHED THEN DELETE"
        )
    )
    assert "reader native" in told and "rows are counted" in told
