"""Results of many rows, fetched in small and large pieces, are row-exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

QUERY = "SELECT id, id * 7919 % 1000003 AS k, concat('row ', CAST(id AS STRING)) AS s FROM range({rows}) ORDER BY id"


def check_piece(table: Any, start: int) -> None:
    """Rows `start`… of QUERY, every cell."""
    ids = np.arange(start, start + table.num_rows)
    assert np.array_equal(table.column("id").to_numpy(), ids)
    assert np.array_equal(table.column("k").to_numpy(), ids * 7919 % 1000003)
    assert table.column("s").to_pylist() == [f"row {i}" for i in ids]


@pytest.mark.parametrize(
    ("rows", "arraysize"),
    [
        (10_001, 10_000),
        (10_001, 100_000),
        (10_001, 97),
        (100_001, 100_000),
        (100_001, 1_000),
        pytest.param(1_000_003, 100_000, marks=pytest.mark.slow),
        pytest.param(1_000_003, 2_000_000, marks=pytest.mark.slow),
        pytest.param(1_000_003, 5_003, marks=pytest.mark.slow),
    ],
)
def test_arrow_in_pieces(connect: Any, rows: int, arraysize: int) -> None:
    with connect().cursor(arraysize=arraysize) as cursor:
        cursor.execute(QUERY.format(rows=rows))
        start = 0
        while (piece := cursor.fetchmany_arrow(arraysize)).num_rows:
            assert piece.num_rows == min(arraysize, rows - start)
            check_piece(piece, start)
            start += piece.num_rows
        assert start == rows


@pytest.mark.parametrize("rows", [10_001, 100_001, pytest.param(1_000_003, marks=pytest.mark.slow)])
def test_fetchall(connect: Any, rows: int) -> None:
    with connect().cursor() as cursor:
        got = cursor.execute(QUERY.format(rows=rows)).fetchall()
        assert len(got) == rows
        for i in (0, 1, rows // 2, rows - 1):
            assert tuple(got[i]) == (i, i * 7919 % 1000003, f"row {i}")
        assert all(row.id == i for i, row in enumerate(got))


@pytest.mark.parametrize("compressed", [True, False])
def test_large_result_with_and_without_compression(connect: Any, compressed: bool) -> None:
    with connect(enable_query_result_lz4_compression=compressed).cursor() as cursor:
        table = cursor.execute(QUERY.format(rows=300_000)).fetchall_arrow()
        assert table.num_rows == 300_000
        check_piece(table, 0)


def test_fetchone_and_iteration(cursor: Any) -> None:
    cursor.arraysize = 10
    cursor.execute("SELECT id FROM range(25) ORDER BY id")
    assert cursor.fetchone()[0] == 0
    assert [r[0] for r in cursor.fetchmany(3)] == [1, 2, 3]
    assert [r[0] for r in cursor] == list(range(4, 25))
    assert cursor.fetchone() is None
    assert cursor.fetchmany(5) == []


def test_row_limit(connect: Any) -> None:
    with connect().cursor(row_limit=7) as cursor:
        assert len(cursor.execute("SELECT id FROM range(1000)").fetchall()) == 7


def test_rows_with_long_texts(connect: Any) -> None:
    with connect().cursor() as cursor:
        cursor.execute("SELECT id, repeat('0123456789', 10000) AS s FROM range(200) ORDER BY id")
        rows = cursor.fetchall()
        assert [r.id for r in rows] == list(range(200))
        assert all(r.s == "0123456789" * 10_000 for r in rows)


def test_statement_after_statement_on_one_cursor(cursor: Any) -> None:
    for n in (3, 0, 20_000, 1):
        assert len(cursor.execute(f"SELECT id FROM range({n})").fetchall()) == n
