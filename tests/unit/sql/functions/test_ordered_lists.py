"""collect_list over sorted rows, and listagg WITHIN GROUP: what they collect is in the order of the rows, whatever it is."""

from __future__ import annotations

import pytest

from tests.conformance.session import Session, open_runner

_KEYS = (
    "v",
    "v DESC NULLS LAST, id",
    "f, id DESC",
    "s DESC, id",
    "b NULLS LAST, d DESC, n",
    "r, id",
    "a DESC, id",
    "t DESC NULLS FIRST, id",
    "upper(s), v % 5, id",
)
_ROWS = (
    "id, id * 7919 % 101 AS g, IF(id % 13 = 0, NULL, id * 104729 % 10007) AS v, "
    "element_at(array(0.0D, -0.0D, double('NaN'), NULL, 2.5D, -7D), CAST(id % 6 + 1 AS INT)) AS f, "
    "element_at(array('a', 'b', 'B', '', NULL, 'ab', 'é'), CAST(id % 7 + 1 AS INT)) AS s, nullif(id % 3, 2) = 1 AS b, "
    "date_add(DATE'2024-01-01', CAST(id % 50 AS INT)) AS d, CAST(id AS DECIMAL(12, 2)) / 4 AS n, "
    "named_struct('x', nullif(id % 4, 0), 'y', string(id % 5)) AS r, array(id % 2, NULL, id % 3) AS a, "
    "timestamp_micros(id * 86399 - 1000000000) AS t"
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = Session(open_runner(tmp_path_factory.mktemp("ordered")))
    session.execute(f"CREATE TABLE t AS SELECT {_ROWS} FROM range(6000)")
    session.execute(f"INSERT INTO t SELECT {_ROWS} FROM range(6000, 12000)")
    return session


@pytest.mark.parametrize("order", _KEYS)
@pytest.mark.parametrize("grouped", ["g", "0"])
def test_lists_are_in_the_order_of_the_rows(session: Session, order: str, grouped: str) -> None:
    order = f"{order}, id"
    lists = (
        f"SELECT {grouped} AS g, collect_list(id), collect_list(v) FROM (SELECT * FROM t ORDER BY {order}) GROUP BY 1"
    )
    texts = f"SELECT {grouped} AS g, listagg(string(id), '-') WITHIN GROUP (ORDER BY {order}) AS l FROM t GROUP BY 1"
    found = {g: (ids, values) for g, ids, values in session.execute(lists).rows()}
    joined = dict(session.execute(texts).rows())
    wanted: dict[int, tuple[list[int], list[int]]] = {}
    for g, i, v in session.execute(f"SELECT {grouped} AS g, id, v FROM t ORDER BY {order}").rows():
        ids, values = wanted.setdefault(g, ([], []))
        ids.append(i)
        values += [] if v is None else [v]
    assert found == {g: (ids, values) for g, (ids, values) in wanted.items()}
    assert joined == {g: "-".join(map(str, ids)) for g, (ids, _) in wanted.items()}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT listagg(s, ', ') WITHIN GROUP (ORDER BY s) FROM VALUES ('b'), (NULL), ('a') AS t(s)", [["a, b"]]),
        ("SELECT listagg(s) WITHIN GROUP (ORDER BY s DESC) FROM VALUES ('b'), (NULL), ('é') AS t(s)", [["éb"]]),
        ("SELECT listagg(s, ',') WITHIN GROUP (ORDER BY s) FROM VALUES (CAST(NULL AS STRING)) AS t(s)", [[None]]),
        ("SELECT listagg(s, ',') WITHIN GROUP (ORDER BY s) FROM VALUES ('a') AS t(s) WHERE s = 'x'", [[None]]),
        ("SELECT listagg(s, ',') WITHIN GROUP (ORDER BY s) FROM VALUES (''), ('') AS t(s)", [[","]]),
        ("SELECT listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s DESC) FROM VALUES ('a'), ('b'), ('a') AS t(s)", [["b,a"]]),
        (
            "SELECT listagg(s, ',') WITHIN GROUP (ORDER BY k, s DESC) FROM VALUES ('a', 1), ('b', NULL), ('c', 1) AS t(s, k)",
            [["b,c,a"]],
        ),
        (
            "SELECT listagg(s, ',') WITHIN GROUP (ORDER BY s) FILTER (WHERE k > 1) "
            "FROM VALUES ('b', 2), ('a', 1), ('a', 3) AS t(s, k)",
            [["a,b"]],
        ),
        ("SELECT collect_list(s) FROM (SELECT * FROM VALUES ('b'), (NULL), ('a') AS t(s) ORDER BY s DESC)", [[["b", "a"]]]),
        ("SELECT collect_list(s) FROM (SELECT * FROM VALUES (CAST(NULL AS STRING)) AS t(s) ORDER BY s)", [[[]]]),
    ],
)  # fmt: skip
def test_small_lists(session: Session, text: str, rows: list[list[object]]) -> None:
    assert session.execute(text).rows() == rows
