"""Texts are views inside the engine: nested values and functions of ours take them plain, results hold none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gateway.engine import datafusion
from gateway.engine.shapes import without_views
from gateway.runner import Runner, make_runner
from tests.unit.runner.session import Session


@pytest.fixture
def texts(session: Session) -> Session:
    """A session with the table `texts`: a text, bytes, a CHAR and a partition column."""
    session.run("CREATE TABLE texts (id INT, s STRING, b BINARY, c CHAR(4), p STRING) PARTITIONED BY (p)")
    session.run(
        "INSERT INTO texts VALUES (1, 'a text of more than twelve bytes', X'00ff', 'x', 'left'), "
        "(2, 'short', X'', 'yy', 'right'), (3, NULL, NULL, NULL, NULL), (4, '', X'31', 'zzzz', 'left')"
    )
    return session


LONG = "a text of more than twelve bytes"


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT s, b, c, p FROM texts WHERE id = 1", [(LONG, b"\x00\xff", "x   ", "left")]),
        ("SELECT s FROM texts ORDER BY s", [(None,), ("",), (LONG,), ("short",)]),
        ("SELECT p, count(*) FROM texts GROUP BY p ORDER BY p", [(None, 1), ("left", 2), ("right", 1)]),
        ("SELECT count(*) FROM texts WHERE b = X'00FF' OR b = X''", [(2,)]),
        ("SELECT coalesce(b, X'07'), coalesce(s, 'none') FROM texts WHERE id = 3", [(b"\x07", "none")]),
        ("SELECT b || X'01', s || '!' FROM texts WHERE id = 2", [(b"\x01", "short!")]),
        ("SELECT sha2(b, 256) = sha2('1', 256) FROM texts WHERE id = 4", [(True,)]),
        ("SELECT collect_list(s), collect_set(b) FROM texts WHERE id IN (1)", [([LONG], [b"\x00\xff"])]),
        (
            "SELECT array(s, 'x'), named_struct('p', p, 'b', b) FROM texts WHERE id = 2",
            [(["short", "x"], {"p": "right", "b": b""})],
        ),
        ("SELECT map(s, b) FROM texts WHERE id = 2", [([("short", b"")],)]),
        ("SELECT transform(array(1, 2), x -> s) FROM texts WHERE id = 2", [(["short", "short"],)]),
        ("SELECT transform(array('x'), x -> concat(x, s)) FROM texts WHERE id = 2", [(["xshort"],)]),
        ("SELECT array_contains(array('short'), s) FROM texts WHERE id = 2", [(True,)]),
        ("SELECT e FROM texts LATERAL VIEW explode(split(s, 'o')) AS e WHERE id = 2", [("sh",), ("rt",)]),
        (
            "SELECT s FROM texts WHERE id = 2 UNION ALL SELECT 'constant' UNION ALL SELECT string(7) ORDER BY s",
            [("7",), ("constant",), ("short",)],
        ),
        ("SELECT p FROM texts INTERSECT SELECT 'left'", [("left",)]),
        ("SELECT x.id FROM texts x JOIN VALUES ('short') v(s) ON x.s = v.s", [(2,)]),
        ("SELECT x.id FROM texts x JOIN texts y ON x.s = y.p || y.c", []),
        ("SELECT id FROM texts WHERE s IN (SELECT string('short'))", [(2,)]),
        ("SELECT id FROM texts WHERE b IN (SELECT X'31')", [(4,)]),
        ("SELECT lag(s, 1, 'first') OVER (ORDER BY id) FROM texts ORDER BY id LIMIT 2", [("first",), (LONG,)]),
        ("SELECT max(s) OVER (PARTITION BY p ORDER BY b) FROM texts WHERE p = 'right'", [("short",)]),
        ("SELECT min(s), max(b), min_by(s, id), count(DISTINCT p) FROM texts", [("", b"1", LONG, 2)]),
        (
            "SELECT CASE WHEN id = 1 THEN s WHEN id = 2 THEN p ELSE 'else' END FROM texts ORDER BY id LIMIT 3",
            [(LONG,), ("right",), ("else",)],
        ),
        (
            "SELECT p, s, grouping_id() FROM texts WHERE id = 2 GROUP BY ROLLUP (p, s) ORDER BY 3",
            [("right", "short", 0), ("right", None, 1), (None, None, 3)],
        ),
        ("SELECT s FROM texts WHERE s LIKE 'a text%' AND upper(p) = 'LEFT' AND c = 'x   '", [(LONG,)]),
        (
            "SELECT regexp_replace(s, 'o', '0'), md5(b), length(s), octet_length(b) FROM texts WHERE id = 4",
            [("", "c4ca4238a0b923820dcc509a6f75849b", 0, 1)],
        ),
        (
            "SELECT listagg(s, ', ') WITHIN GROUP (ORDER BY id), max(p) FROM texts WHERE id < 3",
            [(f"{LONG}, short", "right")],
        ),
    ],
)  # fmt: skip
def test_views_meet_plain_texts(texts: Session, sql: str, rows: list[Any]) -> None:
    assert texts.rows(sql) == rows


def test_a_sort_of_all_rows_is_of_plain_texts(texts: Session) -> None:
    whole = texts.rows("EXPLAIN SELECT s, b FROM texts WHERE id > 1 ORDER BY s")[0][0]
    assert "SortExec: expr=[c0@0 ASC]" in whole and "CAST(s@" in whole
    window = texts.rows("EXPLAIN SELECT row_number() OVER (PARTITION BY s ORDER BY id) FROM texts WHERE id > 1")[0][0]
    assert "CAST(s@" in window.partition("WindowAggExec")[2]
    first = texts.rows("EXPLAIN SELECT s FROM texts WHERE id > 1 ORDER BY s LIMIT 1")[0][0]
    assert "CAST(" not in first.partition("SortExec: TopK")[2]


def test_rows_that_are_handed_on_are_read_plain(texts: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[pa.DataType] = []

    def told(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        left.extend(batch.schema.types)
        return without_views(batch)

    monkeypatch.setattr(datafusion, "without_views", told)
    texts.run("SELECT s FROM texts LIMIT 2")
    assert set(left) == {pa.string()}
    left.clear()
    texts.run("SELECT s FROM texts WHERE id = 2")
    assert set(left) == {pa.string_view()}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Runner:
    """A runner with little memory over a table `shop.lines` of 100 MB of texts."""
    folder = tmp_path_factory.mktemp("narrow")
    made = make_runner(
        warehouse=str(folder / "warehouse"),
        samples=str(samples),
        allow_paths=(),
        spill=str(folder / "spill"),
        memory_limit=1 << 26,
    )
    made.warm_up()
    numbers = np.random.default_rng(1).permutation(400_000)
    lines = pa.array([f"{n:07} " + "some text " * 25 for n in numbers.tolist()])
    write_deltalake(str(folder / "warehouse" / "shop" / "lines"), pa.table({"n": numbers, "line": lines}))
    return made


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT line FROM lines WHERE n >= 0 ORDER BY line",
        "SELECT n, line, row_number() OVER (ORDER BY line) AS r FROM lines WHERE n >= 0",
        "SELECT line, count(*) FROM lines GROUP BY line",
        "SELECT a.line, b.n FROM lines a JOIN lines b ON a.n = b.n WHERE b.line LIKE '%text %'",
    ],
)
def test_more_than_fits_into_memory(narrow: Runner, sql: str) -> None:
    session = Session(narrow)
    session.run("USE shop")
    assert len(session.rows(sql)) == 400_000


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT line, n FROM lines ORDER BY n LIMIT 100000",
        "SELECT line, max(n) AS n FROM lines GROUP BY line ORDER BY n LIMIT 100000",
        "SELECT line, n FROM (SELECT n, line FROM lines ORDER BY n LIMIT 100000)",
    ],
)
def test_texts_of_many_rows_stay_in_their_order(session: Session, sql: str) -> None:
    session.run("CREATE TABLE lines AS SELECT id AS n, id || ' is the number' AS line FROM range(60000)")
    session.run("INSERT INTO lines SELECT id AS n, id || ' is the number' AS line FROM range(60000, 120000)")
    for _ in range(5):
        assert [n for _, n in session.rows(sql)] == list(range(100_000))


def test_a_sort_that_does_not_fit_beside_others_has_one_partition(tmp_path: Path, samples: Path) -> None:
    made = make_runner(
        warehouse=str(tmp_path / "warehouse"), samples=str(samples), spill=str(tmp_path / "spill"), memory_limit=1 << 25
    )
    made.warm_up()
    rows = Session(made).rows("SELECT id, repeat(string(id), 16) AS s FROM range(300000) ORDER BY s DESC")
    assert rows[0][0] == 99999
    assert len(rows) == 300_000
