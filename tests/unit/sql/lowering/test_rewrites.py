"""Rules of lowering and generating, proved by running statements: each with the rows that Spark gives for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.errors import GatewayError, Span, UnsupportedError
from tests.conformance.session import Session, open_runner
from tests.unit.sql.functions.probe_runner import same_rows

_SETUP = (
    "CREATE TEMPORARY VIEW z AS SELECT id AS l, id % 3 AS z FROM range(9)",
    "CREATE TEMPORARY VIEW t AS SELECT * FROM VALUES (1, 10), (2, 20), (2, 20), (3, NULL), (NULL, 40) AS v(a, b)",
    "CREATE TEMPORARY VIEW u AS SELECT * FROM VALUES (1, 'x'), (2, 'y'), (2, 'y'), (4, 'w') AS v(a, c)",
    "CREATE TEMPORARY VIEW w AS SELECT * FROM VALUES (1), (NULL) AS v(x)",
)

Rows = list[list[Any]]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    made = Session(open_runner(tmp_path_factory.mktemp("rewrites")))
    for statement in _SETUP:
        made.execute(statement)
    return made


def check(session: Session, sql: str, expected: Rows) -> None:
    got = session.execute(sql).rows()
    assert same_rows(expected, got), f"{expected} / {got}"


LAZY: list[tuple[str, Rows]] = [
    ("SELECT count(*) FROM z WHERE z <> 0 AND l / z > 0", [[6]]),
    ("SELECT count(*) FROM z WHERE NOT (z = 0 OR l % z > 5)", [[6]]),
    ("SELECT count(*) FROM z WHERE z = 0 OR l / z > 100", [[3]]),
    ("SELECT count(*) FROM (SELECT * FROM z WHERE z <> 0) q WHERE l / z > 0", [[6]]),
    ("SELECT count(*) FROM (SELECT * FROM (SELECT * FROM z WHERE z <> 0) p WHERE l / z > 0) q WHERE l % z >= 0", [[6]]),
    ("SELECT count(*) FILTER (WHERE z <> 0 AND l / z > 1) FROM z", [[4]]),
    ("SELECT sum(CASE WHEN z <> 0 THEN l / z END) FROM z", [[19.5]]),
    ("SELECT count(*) FROM z WHERE CASE WHEN z <> 0 THEN l / z > 0 ELSE false END", [[6]]),
    ("SELECT sum(if(z = 0, 0, l div z)) FROM z", [[19]]),
    ("SELECT sum(coalesce(nullif(z, 0), 1) + CASE z WHEN 0 THEN 0 ELSE 6 div z END) FROM z", [[39]]),
    ("SELECT sum(l / z) FROM (SELECT * FROM z WHERE z <> 0)", [[19.5]]),
    ("SELECT count(*) FROM z p JOIN z q ON p.l = q.l AND p.z <> 0 AND p.l / p.z > 1", [[4]]),
    ("SELECT l FROM z WHERE z <> 0 AND l / z > 6 ORDER BY l / z", [[7]]),
    ("SELECT z, sum(l) FROM z GROUP BY z HAVING z <> 0 AND 10 / z > 6", [[1, 12]]),
    ("SELECT l / z AS q, z FROM z WHERE z = 2 ORDER BY q LIMIT 1", [[1.0, 2]]),
    ("SELECT 1 FROM z WHERE false AND l / z > 1", []),
]

SETS: list[tuple[str, Rows]] = [
    ("SELECT a FROM t INTERSECT ALL SELECT a FROM u", [[1], [2], [2]]),
    ("SELECT a FROM t INTERSECT SELECT a FROM u", [[1], [2]]),
    ("SELECT a FROM t EXCEPT ALL SELECT 2", [[1], [2], [3], [None]]),
    ("SELECT * FROM VALUES (0.0D), (-0.0D) INTERSECT ALL SELECT * FROM VALUES (-0.0D), (0.0D)", [[0.0], [0.0]]),
    ("SELECT * FROM VALUES (1, 0F), (1, -0F), (1, 0F) EXCEPT ALL SELECT * FROM VALUES (1, -0F), (1, -0F)", [[1, 0.0]]),
    ("SELECT a FROM t EXCEPT SELECT a FROM u", [[3], [None]]),
    ("SELECT a FROM t UNION SELECT a FROM u", [[1], [2], [3], [4], [None]]),
    ("SELECT a FROM t WHERE a = 2 UNION ALL SELECT '7'", [[2], [2], [7]]),
    ("SELECT named_struct('a', 1) UNION SELECT named_struct('b', 1)", [[{"s": [["a", 1]]}]]),
]

JOINS: list[tuple[str, Rows]] = [
    ("SELECT * FROM t FULL JOIN u USING (a) WHERE a IN (3, 4)", [[3, None, None], [4, None, "w"]]),
    ("SELECT a, c FROM t RIGHT JOIN u USING (a) WHERE c = 'w'", [[4, "w"]]),
    ("SELECT * FROM t NATURAL JOIN u WHERE a = 1", [[1, 10, "x"]]),
    ("SELECT * FROM t SEMI JOIN u USING (a) WHERE b < 20", [[1, 10]]),
    ("SELECT * FROM t ANTI JOIN u USING (a)", [[3, None], [None, 40]]),
    ("SELECT count(*) FROM t p JOIN t q ON p.a <=> q.a", [[7]]),
    (
        "SELECT t.a, q.x FROM t LEFT JOIN ((SELECT 1 AS x) q JOIN (SELECT 1 AS y) r ON q.x = r.y) ON t.a = q.x WHERE b > 10",
        [[2, None], [2, None], [None, None]],
    ),
]

GROUPS: list[tuple[str, Rows]] = [
    ("SELECT a, count(*) FROM t GROUP BY ROLLUP (a)", [[1, 1], [2, 2], [3, 1], [None, 1], [None, 5]]),
    ("SELECT a, b, count(*) FROM t WHERE a = 2 GROUP BY a, b GROUPING SETS ((a), (b))", [[2, None, 2], [None, 20, 2]]),
    ("SELECT a, b, count(*), grouping(b) FROM t WHERE a = 2 GROUP BY a, b GROUPING SETS (a)", [[2, None, 2, 1]]),
    ("SELECT count(*) FROM t WHERE a > 9 GROUP BY GROUPING SETS ((a), ())", []),
    ("SELECT a, grouping_id(a) FROM t WHERE a = 1 GROUP BY a WITH CUBE", [[1, 0], [None, 1]]),
    ("SELECT 1 FROM t HAVING true", [[1]]),
    ("SELECT 1 FROM t WHERE false HAVING count(*) = 0", [[1]]),
    ("SELECT count(DISTINCT a, b) FROM t", [[2]]),
    ("SELECT max(x) FROM VALUES (double('NaN')), (1.0D) AS v(x)", [[{"f": "NaN"}]]),
    ("SELECT count(*) FROM (SELECT DISTINCT x FROM VALUES (0.0D), (-0.0D) AS v(x))", [[1]]),
]

SUBQUERIES: list[tuple[str, Rows]] = [
    ("SELECT a FROM t WHERE a NOT IN (SELECT x FROM w)", []),
    ("SELECT a FROM t WHERE a NOT IN (SELECT x FROM w WHERE x IS NOT NULL)", [[2], [2], [3]]),
    ("SELECT a FROM t WHERE a NOT IN (SELECT x FROM w WHERE x > 5)", [[1], [2], [2], [3], [None]]),
    ("SELECT a FROM t WHERE a IN (SELECT x FROM w)", [[1]]),
    ("SELECT b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", [[10], [20], [20]]),
    ("SELECT b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", [[None], [40]]),
    ("SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) FROM t WHERE b > 10", [[2, 2], [2, 2], [None, 0]]),
    ("SELECT a, (SELECT max(c) FROM u WHERE u.a = t.a) FROM t WHERE b = 40", [[None, None]]),
    ("SELECT (SELECT a FROM u WHERE false)", [[None]]),
    ("SELECT a, a IN (SELECT x FROM w) FROM t WHERE b < 20 OR b = 40", [[1, True], [None, False]]),
    ("SELECT a, a NOT IN (SELECT x FROM w WHERE x = 1) FROM t WHERE b <> 20", [[1, False], [None, False]]),
    ("SELECT a, a NOT IN (SELECT x FROM w WHERE x > 5) FROM t WHERE b <> 20", [[1, True], [None, True]]),
    ("SELECT a, EXISTS (SELECT 1 FROM u WHERE u.a = t.a) FROM t WHERE b <> 20", [[1, True], [None, False]]),
    ("SELECT CASE WHEN EXISTS (SELECT 1 FROM u) THEN 'some' END", [["some"]]),
    ("SELECT a, (SELECT c FROM u WHERE u.a = t.a) FROM t WHERE b <> 20", [[1, "x"], [None, None]]),
    ("SELECT a FROM t WHERE (a, b) IN (SELECT a, 10 FROM u)", [[1]]),
    ("SELECT a FROM t WHERE a NOT IN (SELECT x FROM w WHERE w.x = t.a)", [[2], [2], [3], [None]]),
    ("SELECT t.a, q.x FROM t LEFT JOIN w q ON t.a = q.x AND t.a IN (SELECT a FROM u) WHERE b = 10", [[1, 1]]),
]

VALUES: list[tuple[str, Rows]] = [
    ("SELECT (1, NULL) = (1, 'x'), (1, NULL) <=> (1, NULL), (1, 'a') < (1, 'b')", [[False, True, True]]),
    ("SELECT (a, b) IN ((1, 10), (2, 30)) FROM t WHERE a < 3", [[True], [False], [False]]),
    ("SELECT array(named_struct('f', 1), NULL).f", [[[1, None]]]),
    ("SELECT explode(array(1, 2)) AS x, explode(array(x, 10)) AS y", [[1, 1], [1, 10], [2, 2], [2, 10]]),
    ("SELECT a, explode(array(a, b)) AS x, x + 1 FROM t WHERE a = 1", [[1, 1, 2], [1, 10, 11]]),
    ("SELECT '2020-01-31' + INTERVAL 1 DAY", [["2020-02-01 00:00:00"]]),
]


@pytest.mark.parametrize(("sql", "expected"), [*LAZY, *SETS, *JOINS, *GROUPS, *SUBQUERIES, *VALUES])
def test_rows(session: Session, sql: str, expected: Rows) -> None:
    check(session, sql, expected)


RAISING = [
    ("SELECT count(*) FROM z WHERE l / z > 0", "DIVIDE_BY_ZERO"),
    ("SELECT CASE WHEN l > 5 THEN l / z ELSE 0 END FROM z", "DIVIDE_BY_ZERO"),
    ("SELECT (SELECT a FROM u)", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
    ("SELECT (SELECT c FROM u WHERE u.a = t.a) FROM t", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
    ("SELECT array(1, 2)[2]", "INVALID_ARRAY_INDEX"),
    ("SELECT 1 WHERE 'true'", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
    ("SELECT * FROM t JOIN u ON t.a", "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE"),
    ("SELECT count(uuid())", "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION"),
    ("SELECT CASE WHEN NULL THEN 1 END", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
]


@pytest.mark.parametrize(("sql", "condition"), RAISING)
def test_raises(session: Session, sql: str, condition: str) -> None:
    with pytest.raises(GatewayError) as raised:
        session.execute(sql)
    assert raised.value.condition == condition


REFUSED = [
    "SELECT * FROM t PIVOT (sum(b) FOR a IN (1.5D, 2))",
    "SELECT a FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (1)",
    "SELECT * FROM t, LATERAL (SELECT c FROM u WHERE u.a > t.a ORDER BY c || t.a LIMIT 1)",
    "SELECT 'a' COLLATE UNICODE",
    "SELECT variant_delete(parse_json('1'), '$.a')",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.a NOT IN (SELECT x FROM w))",
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT * FROM r",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_refused_by_name(session: Session, sql: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        session.execute(sql)
    assert raised.value.sqlstate == "0A000"
    assert raised.value.condition.startswith("UNSUPPORTED")
    assert raised.value.span is not None


def test_a_refusal_of_the_engine_points_at_the_statement(session: Session) -> None:
    with pytest.raises(UnsupportedError) as raised:
        session.execute("-- who\n  SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.a NOT IN (SELECT x FROM w))")
    assert raised.value.condition == "UNSUPPORTED_FEATURE.ENGINE"
    assert raised.value.span == Span(9, 15)


def test_rewrites_databricks_get_array_access(session: Session) -> None:
    """get() counts from 0 and gives NULL before the first and behind the last element, also for computed indexes."""
    check(
        session,
        "SELECT i, get(array('p', 'q', 'r'), i) FROM VALUES (-2), (-1), (0), (1), (2), (3), (NULL) AS v(i)",
        [[-2, None], [-1, None], [0, "p"], [1, "q"], [2, "r"], [3, None], [None, None]],
    )
    check(session, "SELECT get(CAST(NULL AS ARRAY<INT>), 0), get(array(), 0), get(array(NULL, 1), 0)", [[None] * 3])


def test_execute_handles_delta_type_nested_field_access_query_shape(session: Session, tmp_path: Path) -> None:
    """A field of a struct that get() finds in an array inside a struct column of a Delta table."""
    session.execute("DROP TABLE IF EXISTS complex")
    session.execute(
        "CREATE TABLE complex AS SELECT id, named_struct('items', array(named_struct('name', 'first', 'prices', "
        "array(1.5D, 2.5D)), named_struct('name', 'second', 'prices', array()))) AS c_struct_all_complex FROM range(2)"
    )
    check(
        session,
        "SELECT get(c_struct_all_complex.items, 0).prices AS prices, c_struct_all_complex.items[1].name AS name, "
        "get(c_struct_all_complex.items, 5).prices AS none, c_struct_all_complex.items.name AS names, "
        "get(get(c_struct_all_complex.items, 0).prices, 1) AS price FROM complex WHERE id = 0",
        [[[1.5, 2.5], "second", None, ["first", "second"], 2.5]],
    )


def test_copies_of_copies_have_an_end(session: Session) -> None:
    """Queries of a WITH that read the query around them, each twice the one before it."""
    names = ", ".join(f"c{n} AS (SELECT x.w FROM c{n - 1} x JOIN c{n - 1} y ON x.w = y.w)" for n in range(1, 30))
    with pytest.raises(GatewayError) as caught:
        session.execute(f"SELECT (WITH c0 AS (SELECT t.a AS w), {names} SELECT count(*) FROM c29) FROM t")
    assert caught.value.condition == "STATEMENT_TOO_COMPLEX"
