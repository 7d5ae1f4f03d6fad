"""collect_set in two steps has what it has of all rows, beside whatever else a group has."""

from __future__ import annotations

import pytest

from tests.conformance.session import Session, open_runner
from tests.fuzz.compare import same_multiset

_SETUP = (
    "CREATE TABLE t AS SELECT nullif(id % 7, 3) AS g, CASE WHEN id % 5 > 0 THEN string(id % 4) END AS x, id % 3 AS y, "
    "element_at(array(0.0D, -0.0D, double('NaN'), NULL), CAST(id % 4 + 1 AS INT)) AS d, "
    "named_struct('a', nullif(id % 2, 0), 'b', string(id % 3)) AS r, array(id % 2, NULL) AS a FROM range(500)",
)
_TWO_STEPS = (
    ("g", "array_sort(collect_set(x))", "array_sort(array_distinct(collect_list(x)))"),
    ("g", "array_sort(collect_set(r)), count(*)", "array_sort(array_distinct(collect_list(r))), count(*)"),
    (
        "g, y",
        "array_sort(collect_set(a)), min(x), max(y)",
        "array_sort(array_distinct(collect_list(a))), min(x), max(y)",
    ),
    ("y", "array_sort(collect_set(d)), count(d)", "array_sort(array_distinct(collect_list(d + 0.0D))), count(d)"),
    ("y % 2", "array_sort(collect_set(x || y)), max(x)", "array_sort(array_distinct(collect_list(x || y))), max(x)"),
    ("d", "size(collect_set(x)), count(DISTINCT x), count(x)", "count(DISTINCT x), count(DISTINCT x), count(x)"),
    ("g", "array_sort(collect_set(g)), count(x)", "array_sort(array_distinct(collect_list(g))), count(x)"),
)
_ONE_STEP = (
    "SELECT g, collect_set(x), collect_set(y) FROM t GROUP BY g",
    "SELECT g, collect_set(x), sum(y) FROM t GROUP BY g",
    "SELECT g, collect_set(x), count(DISTINCT y) FROM t GROUP BY g",
    "SELECT g, collect_set(x) FILTER (WHERE y > 1) FROM t GROUP BY g",
    "SELECT g, collect_set(x), count(*) FILTER (WHERE y > 1) FROM t GROUP BY g",
    "SELECT g, collect_set(x) FROM t GROUP BY ROLLUP (g)",
    "SELECT collect_set(x) FROM t",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    made = Session(open_runner(tmp_path_factory.mktemp("sets")))
    for statement in _SETUP:
        made.execute(statement)
    return made


def groupings(session: Session, sql: str) -> int:
    """How often the engine is told to group."""
    compiled = session.compiled(sql)
    return compiled.generated.text.count("GROUP BY")


@pytest.mark.parametrize(("keys", "sets", "lists"), _TWO_STEPS)
def test_two_steps_have_what_one_has(session: Session, keys: str, sets: str, lists: str) -> None:
    texts = [f"SELECT {keys}, {items} FROM t GROUP BY {keys}" for items in (sets, lists)]
    apart, together = (session.execute(text) for text in texts)
    assert groupings(session, texts[0]) == 2
    assert same_multiset(apart.rows(), together.rows())
    types = [[(f.type, f.nullable) for f in result.schema.fields] for result in (apart, together)]
    assert types[0][: len(types[1])] == types[1] or "size" in sets


@pytest.mark.parametrize("sql", _ONE_STEP)
def test_what_needs_the_rows_stays_as_it_is(session: Session, sql: str) -> None:
    assert groupings(session, sql) <= 1


def test_groups_above_groups(session: Session) -> None:
    sql = (
        "SELECT e, count(*), size(collect_set(g)) FROM (SELECT g, collect_set(x) AS s FROM t GROUP BY g) "
        "LATERAL VIEW explode(s) AS e GROUP BY e ORDER BY e"
    )
    assert session.execute(sql).rows() == [["0", 7, 6], ["1", 7, 6], ["2", 7, 6], ["3", 7, 6]]
