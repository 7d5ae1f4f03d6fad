"""Joins, sorts and groups that do not fit into memory: answered another way, or told in words of ours."""

from __future__ import annotations

import resource
import shutil
import signal
from pathlib import Path

import pytest

from gateway.engine import datafusion, spill
from gateway.engine.economies import Economy
from gateway.errors import ResourceError, ServerError
from gateway.runner import Runner, make_runner
from tests.conformance.session import Session

GROUPED = "(SELECT id % 30000 AS m, count(*) AS s FROM range(60000) GROUP BY ALL)"
FEW = "(SELECT id % 5 AS m, sum(id) AS s FROM range(300) GROUP BY id % 5)"


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A session with two MiB for a statement."""
    return Session(_runner(tmp_path_factory.mktemp("narrow"), 2))


def _runner(folder: Path, mebibytes: int) -> Runner:
    (folder / "warehouse").mkdir()
    warehouse, samples, spill = (str(folder / name) for name in ("warehouse", "samples", "spill"))
    runner = make_runner(warehouse=warehouse, samples=samples, spill=spill, memory_limit=mebibytes << 20)
    runner.warm_up()
    return runner


def test_a_join_by_ranks_is_done_again_on_one_partition(narrow: Session) -> None:
    """The engine begins such a join anew where it does not fit, and loses count of the partitions that it has read."""
    rows = narrow.execute(
        f"SELECT count(*), sum(a.m) FROM {GROUPED} a LEFT JOIN {FEW} b ON a.m + b.m > 29990 AND a.s < b.s"
    ).rows()
    assert rows == [[30042, 451244756]]


def test_what_does_not_fit_then_is_told(narrow: Session) -> None:
    wide = "(SELECT id AS m, repeat(string(id), 3000000) AS t, count(*) AS s FROM range(3) GROUP BY ALL)"
    with pytest.raises(ResourceError, match="more memory than one statement may use"):
        narrow.execute(f"SELECT * FROM {wide} a LEFT ANTI JOIN {FEW} b ON a.m + b.m > 29990 AND a.s > b.s ORDER BY t")


def test_what_the_sparing_way_cannot_do_is_told_as_what_it_is_for(narrow: Session) -> None:
    """A join that sorts its sides has no place for the NULLs that its condition makes of a column without any."""
    sides = (
        "(SELECT id AS f, id AS k FROM range(300000)) a LEFT JOIN (SELECT id AS f, id AS k FROM range(900, 300000)) b"
    )
    with pytest.raises(ResourceError, match="more memory than one statement may use"):
        narrow.execute(f"SELECT count(*) FROM {sides} ON a.f = b.f AND a.k > b.k")


SPILLED = "SELECT count(*) FROM (SELECT string(hash(id)) AS s, count(*) FROM range(100000) GROUP BY s)"


def test_a_spill_folder_that_is_removed_is_told_and_made_once_more(tmp_path: Path) -> None:
    session = Session(_runner(tmp_path, 2))
    assert session.execute(SPILLED).rows() == [[100000]]
    shutil.rmtree(tmp_path / "spill")
    with pytest.raises(
        ServerError, match=r"that statements spill to \(below --state\) cannot be used: No such file"
    ) as raised:
        session.execute(SPILLED)
    assert raised.value.condition == "WRITE_FAILED"
    assert session.execute(SPILLED).rows() == [[100000]]
    (made,) = (tmp_path / "spill").iterdir()
    spill.sweep(str(tmp_path / "spill"))
    assert made.is_dir(), "it is locked as the first one was"


def test_a_disk_that_spilled_rows_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    session = Session(_runner(tmp_path, 2))
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(ServerError, match="cannot be used: File too large"):
            session.execute(SPILLED)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert session.execute(SPILLED).rows() == [[100000]]


# Both zeros, mixed: what a side that is sorted by its bits has behind one of them comes once more behind the other.
ZEROS = "(SELECT if(id % 2 = 0, -0.0D, 0.0D) AS f, (id * 7) % 300 AS k FROM range(300))"
OTHERS = "(SELECT if(id % 3 = 0, -0.0D, 0.0D) AS f, (id * 11) % 300 AS k FROM range(300))"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT count(*) FROM {0} a JOIN {1} b ON a.f = b.f AND a.k = b.k", 300),
        ("SELECT count(*) FROM {0} a JOIN {1} b ON CAST(a.f AS FLOAT) = CAST(b.f AS FLOAT) AND a.k = b.k", 300),
        ("SELECT count(*) FROM {0} a JOIN {1} b ON a.f <=> b.f AND a.k <=> b.k", 300),
        ("SELECT count(*) FROM {0} a, {1} b WHERE a.f = b.f AND a.k = b.k", 300),
        ("SELECT count(*) FROM {0} a FULL JOIN {1} b USING (f, k)", 300),
        ("SELECT count(*) FROM {0} a LEFT ANTI JOIN {1} b USING (f, k)", 0),
        ("SELECT count(*) FROM {0} a WHERE (f, k) IN (SELECT f, k FROM {1})", 300),
        ("SELECT count(*) FROM {0} a WHERE f IN (SELECT f FROM {1} b WHERE b.k = a.k)", 300),
        ("SELECT count(*) FROM {0} a WHERE f NOT IN (SELECT f FROM {1} b WHERE b.k = a.k)", 0),
        ("SELECT count(*) FROM {0} a WHERE NOT EXISTS (SELECT 1 FROM {1} b WHERE b.f = a.f AND b.k = a.k)", 0),
        ("SELECT count(*) FROM {0} a WHERE (SELECT count(*) FROM {1} b WHERE b.f = a.f AND b.k = a.k) = 1", 300),
        ("SELECT count(*) FROM (SELECT f, k FROM {0} INTERSECT SELECT f, k FROM {1})", 300),
        ("SELECT count(*) FROM (SELECT f, k FROM {0} EXCEPT SELECT f, k FROM {1})", 0),
    ],
)
def test_joins_that_sort_their_sides_take_both_zeros_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, rows: int
) -> None:
    monkeypatch.setattr(datafusion, "NONE", Economy(sorted_joins=True))
    session = Session(_runner(tmp_path, 64))
    assert session.execute(query.format(ZEROS, OTHERS)).rows() == [[rows]]
