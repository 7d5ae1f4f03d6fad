"""Everyday constructs from end to end: names, types, nullability and values as Spark 4.2 recorded them.

tests/data/query-probes.jsonl holds a statement a line with Spark's columns and rows (each value cast to STRING in SQL), or
its error; "zone" is a session time zone other than UTC. What is not answered here is listed in `REFUSED` and must be refused by
name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import GatewayError, UnsupportedError
from gateway.runner import Runner
from tests.unit.runner.session import Session

DATA = Path(__file__).parents[2] / "data" / "query-probes.jsonl"
PROBES: list[dict[str, Any]] = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
REFUSED: dict[str, str] = {
    "SELECT sum(a) AS b FROM VALUES (1, 5.0), (2, 20.0) AS t(a, b) GROUP BY ROLLUP(b) HAVING b > 10": "both a column",
    "SELECT * FROM VALUES (1, 'a') AS t(n, s) PIVOT (first(s) FOR n IN (1))": "PIVOT of first",
    "SELECT a FROM VALUES (1,2),(1,3),(2,1) AS t(a,b) GROUP BY a HAVING EXISTS (SELECT 1 FROM VALUES (5) AS u(c) WHERE c = "
    "sum(t.b))": "an aggregate of the enclosing query in a subquery of HAVING",
    "SELECT c1, count(*) AS n FROM VALUES (1) AS q(c1) GROUP BY q.c1 HAVING EXISTS (SELECT id FROM range(3) WHERE id = n)": (
        "an aggregate of the enclosing query in a subquery of HAVING"
    ),
    "SELECT window.start, count(*) FROM VALUES (TIMESTAMP'2024-01-01 00:00:10') AS t(ts) GROUP BY window(ts, '1 minute')": (
        "`window`"
    ),
    "SELECT * FROM VALUES (1) t5(a) JOIN LATERAL (SELECT m FROM VALUES (0L), (1L) AS t6(m) WHERE m <> t5.a AND (NOT true) "
    "GROUP BY CUBE(m)) AS t9": "a constant beside a column of the outer query",
    # each name would be computed once more, as another value
    "SELECT r = s AS e FROM (SELECT rand() AS r, r AS s)": "an alias of what differs from call to call",
    "WITH a AS (SELECT uuid() AS u) SELECT (SELECT u FROM a) = (SELECT u FROM a)": "used more than once",
    "SELECT rand() AS r, id FROM range(9) GROUP BY id HAVING r < 0.5": "a name of what differs from call to call",
    "SELECT rand() AS r FROM range(9) QUALIFY r < row_number() OVER (ORDER BY id)": "a name of what differs",
    "SELECT rand() BETWEEN 0 AND 1": "`between` of what differs from call to call",
    "SELECT * FROM range(3) t, LATERAL (SELECT t.id + rand() AS r)": "a LATERAL subquery that differs",
    "SELECT col + 1 AS col2, explode(array(1, 2, 3)) AS col": "an item's name inside or beside a generator",
    "SELECT array(1, 2, 3) AS arr, explode(arr) AS col, count(*)": "an item's name inside or beside a generator",
    "SELECT mode(col) FROM VALUES (map(1, 'a')) AS tab(col)": "mode of a MAP",
    # the parameter has no value where Spark computes the aggregate
    "SELECT transform(array(1), x -> sum(v) + sum(x)) FROM VALUES (1) AS t(v)": "of a lambda's parameter",
    "SELECT filter(array(1), x -> max(x) > 0)": "of a lambda's parameter",
    "SELECT map_zip_with(map(1, 2), map(1, 2), (k, a, b) -> first(a) OVER ())": "of a lambda's parameter",
    "SELECT s.* EXCEPT (b) FROM VALUES (named_struct('a', 1, 'b', 2)) AS t(s)": "EXCEPT of a struct's fields",
    "SELECT n, (SELECT count(*) FROM (SELECT DISTINCT q FROM VALUES (1) b(q) WHERE q < x.n)) FROM (SELECT 6 / k AS n FROM "
    "(SELECT k FROM VALUES (0), (1) z(k) ORDER BY k DESC LIMIT 1)) x": "of a query over LIMIT",
    "SELECT i, (SELECT sum(i + 1) OVER ()) FROM VALUES (1) AS t(i)": "a column of the outer query in a window",
    "SELECT 1 FROM VALUES (1) AS t(a) GROUP BY CUBE (a, a, a, a, a, a, a, a, a, a, a, a, a) LIMIT 1": "CUBE of more than 12",
    "SELECT CURRENT_PATH": "`current_path`",
    "SELECT lag(v, 1 + 1) OVER (ORDER BY v) FROM VALUES (1),(2) AS t(v)": "parameter 2 of `lag`",
    "SELECT mask('a', 'Q', array_max(array('a', 'b')), 'd')": "parameter 3 of `mask`, which must be constant",
    "SELECT listagg(c, array_max(array(',', '+'))) FROM VALUES ('a') AS t(c)": "parameter 2 of `listagg`",
    "SELECT percentile(c, array_max(array(0.5, 0.1))) FROM VALUES (1) AS t(c)": "parameter 2 of `percentile`",
    "SELECT percentile(c, array()) FROM VALUES (1) AS t(c)": "of no percentage",
    "SELECT approx_percentile(c, array()) FROM VALUES (1) AS t(c)": "of no percentage",
    "SELECT collect_set(0) FROM (SELECT 0 FROM VALUES (1) t(i) HAVING count(i) > 0)": "A construct of this statement",
    # the engine panics while it plans this, whichever rules it goes by (DataFusion 55)
    "SELECT t0.x FROM VALUES (1D) t0(x) RIGHT JOIN VALUES (2, 1D) t1(n, x) ON 1 = 1 WHERE EXISTS (SELECT * FROM (SELECT "
    "NULL AS a, t2.id * t2.id AS b FROM range(5) t2 LEFT ANTI JOIN VALUES (1) t3(k) ON 1 = 1 WHERE t2.id = t1.x) t4 WHERE "
    "t4.b = t1.n AND (1 - t4.a) IS DISTINCT FROM 3)": "A construct of this statement",
    # Spark can't resolve the first two and answers the third with the windows of the rows that are left
    "SELECT explode(array(1, 2)) AS x HAVING x > 1 ORDER BY x": "ORDER BY beside a generator and HAVING",
    "SELECT a, explode(array(1)) AS x FROM VALUES (1) AS t(a) GROUP BY ROLLUP (a) HAVING a IS NULL": "grouping sets",
    "SELECT explode(array(a)) FROM VALUES (1) AS t(a) GROUP BY ROLLUP (a)": "a generator beside grouping sets",
    "SELECT explode(array(5, 6)) AS x, row_number() OVER (ORDER BY 1) AS r HAVING x > 5": "a window function",
    "SELECT sum(c) FROM VALUES (1) AS t(c) GROUP BY ROLLUP (c) HAVING NOT (c > NULL)": "a key of grouping sets in HAVING",
    "SELECT a IN (1), explode(array(a IN (SELECT 1))) FROM VALUES (1) AS t(a) GROUP BY a": "a subquery in a generator",
    "SELECT count(*) FROM VALUES (1) AS t(a) GROUP BY ROLLUP (sum(a) OVER (), a)": "window functions or correlated",
    "SELECT count(*) FROM VALUES (1) AS t(a) GROUP BY CUBE (rand() < 2, a)": "what differs from call to call",
    "SELECT explode(array(1, 2)), col + 1": "an item's name inside or beside a generator",
    "SELECT * BETWEEN 1 AND 2 FROM VALUES (1) AS t(a)": "a star before BETWEEN",
    "SELECT TIMESTAMP'10:00:00' > TIMESTAMP'T10:00'": "A time of day as a timestamp",
    "SELECT from_json('{\"a\":1}', 'a INT, a INT')": "two fields of one name",
}


@pytest.fixture(scope="module")
def asked(runner: Runner) -> Session:
    """One session for all statements."""
    return Session(runner)


def in_its_zone(asked: Session, probe: dict[str, Any]) -> Session:
    """The common session, or one in the probe's own time zone."""
    if "zone" not in probe:
        return asked
    session = Session(asked.runner)
    session.run(f"SET TIME ZONE '{probe['zone']}'")
    return session


def ids(probe: dict[str, Any]) -> str:
    """The statement, cut."""
    return str(probe["sql"])[:90]


@pytest.mark.parametrize("probe", [p for p in PROBES if "columns" in p and p["sql"] not in REFUSED], ids=ids)
def test_answers(asked: Session, probe: dict[str, Any]) -> None:
    sql, asked = probe["sql"], in_its_zone(asked, probe)
    result = asked.run(sql)
    assert result.columns == [tuple(c) for c in probe["columns"]]
    names = [f"c{i}" for i in range(len(result.columns))]
    texts = asked.rows(
        f"SELECT {', '.join(f'CAST({n} AS STRING)' for n in names)} FROM ({sql}) AS q({', '.join(names)})"
    )
    assert sorted(texts, key=repr) == sorted((tuple(r) for r in probe["rows"]), key=repr)
    assert len(result.rows) == len(texts)


@pytest.mark.parametrize("probe", [p for p in PROBES if "condition" in p], ids=ids)
def test_errors(asked: Session, probe: dict[str, Any]) -> None:
    with pytest.raises(GatewayError) as caught:
        in_its_zone(asked, probe).run(probe["sql"])
    assert (caught.value.condition, caught.value.sqlstate) == (probe["condition"], probe["sqlstate"])


@pytest.mark.parametrize("sql", list(REFUSED))
def test_refused_by_name(asked: Session, sql: str) -> None:
    with pytest.raises(UnsupportedError, match=REFUSED[sql]):
        asked.run(sql)


def test_instants_with_a_pattern_are_refused_outside_of_utc(asked: Session) -> None:
    zoned = in_its_zone(asked, {"zone": "Pacific/Apia"})
    for call in (
        "to_timestamp(TIMESTAMP_NTZ'2023-07-15 00:00:00', 'a')",
        "to_date(TIMESTAMP_NTZ'2023-07-15 00:00:00', 'a')",
        "to_timestamp_ntz(TIMESTAMP'2023-07-15 00:00:00', 'a')",
    ):
        assert len(asked.rows(f"SELECT {call}")) == 1
        with pytest.raises(UnsupportedError, match="in a time zone other than UTC"):
            zoned.run(f"SELECT {call}")
    assert (
        len(zoned.rows("SELECT to_timestamp(DATE'2023-07-15', 'a'), to_timestamp(TIMESTAMP_NTZ'2023-07-15 00:00:00')"))
        == 1
    )


@pytest.mark.parametrize("clause", ["SORT BY id % 7, id DESC", "DISTRIBUTE BY id % 3 SORT BY id % 7, 1 DESC"])
def test_rows_come_as_they_are_sorted_inside_of_partitions(asked: Session, clause: str) -> None:
    rows = asked.rows(f"SELECT id FROM range(5000) {clause}")
    assert rows == sorted(rows, key=lambda row: (row[0] % 7, -row[0]))
    assert asked.rows(f"SELECT id FROM range(5000) {clause} LIMIT 2") == rows[:2]


def test_rows_come_in_the_order_of_what_they_are_clustered_by(asked: Session) -> None:
    assert asked.rows("SELECT id FROM range(5000) CLUSTER BY 4999 - id LIMIT 2") == [(4999,), (4998,)]


def test_elements_that_nobody_reads_are_computed_only_where_they_are_constants(asked: Session) -> None:
    assert asked.rows("SELECT array(1, raise_error('x'))[0]") == [(1,)]
    assert asked.rows("SELECT array(5, 1 div id, 1 + 1)[0] FROM range(2)") == [(5,), (5,)]
    assert asked.rows("SELECT array(5, if(id = 0, 1 div 0, 1))[0] FROM range(2)") == [(5,), (5,)]


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ("range(20) a CROSS JOIN range(5) b OFFSET 99", 1),
        ("range(20) a LEFT JOIN range(5) b ON false OFFSET 19", 1),
        ("range(20) a RIGHT JOIN range(5) b ON false OFFSET 4", 1),
        ("range(20) UNION ALL SELECT * FROM range(5) OFFSET 3", 22),
        ("(SELECT * FROM range(20) UNION ALL SELECT * FROM range(5) OFFSET 3) OFFSET 4", 18),
        ("range(20) UNION ALL SELECT * FROM range(5) ORDER BY id OFFSET 2147483647", 0),
    ],
)
def test_an_offset_without_a_limit_counts_the_rows_of_several_inputs(asked: Session, rows: str, count: int) -> None:
    assert asked.rows(f"SELECT count(*) FROM (SELECT * FROM {rows})") == [(count,)]


NO_FORM = {
    "a wall clock beyond all": "SELECT try_cast(timestamp_micros(c) AS TIMESTAMP_NTZ) FROM VALUES (9223372036854775807) t(c)",
    "a map that has no key": "SELECT CAST(NULL AS MAP<VOID,VOID>) FROM range(1)",
    "a name that Arrow ends early": r"SELECT named_struct('a\0b', 1)",
}


@pytest.mark.parametrize("sql", NO_FORM.values(), ids=NO_FORM)
def test_what_the_engine_has_no_form_for_is_refused_each_time(asked: Session, sql: str) -> None:
    zoned = in_its_zone(asked, {"zone": "Asia/Kathmandu"})
    for _ in range(2):
        with pytest.raises(UnsupportedError):
            zoned.run(sql)


def test_order_and_first_rows(asked: Session) -> None:
    ordered = [
        p
        for p in PROBES
        if " ORDER BY " in p["sql"] and p["sql"].endswith(("ORDER BY q", "NULLS FIRST", "ALL", ", 2")) and "rows" in p
    ]
    assert len(ordered) >= 6
    for probe in ordered:
        texts = [tuple(None if v is None else str(v) for v in row) for row in asked.rows(probe["sql"])]
        assert [t[0] for t in texts] == [r[0] for r in probe["rows"]]
        if probe["sql"].endswith(", 2"):
            assert texts == [tuple(r) for r in probe["rows"]]


@pytest.mark.parametrize("rows", ["VALUES (1L) AS t(a)", "(SELECT id + 1 AS a FROM range(1))"])
def test_filters_over_columns_that_double_with_each_query_are_planned(asked: Session, rows: str) -> None:
    for start in (f"SELECT a FROM {rows}", f"WITH q AS (SELECT a FROM {rows} WHERE a > 0) SELECT a FROM q"):
        sql = start
        for level in range(24):
            sql = f"SELECT a + a AS a FROM ({sql}) WHERE a > {level}"
        assert asked.rows(sql) == [(1 << 24,)]
