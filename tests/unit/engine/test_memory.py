"""Joins and sorts that do not fit into memory: answered another way, or told in words of ours."""

from __future__ import annotations

import pytest

from gateway.errors import ResourceError
from gateway.runner import make_runner
from tests.conformance.session import Session

GROUPED = "(SELECT id % 30000 AS m, count(*) AS s FROM range(60000) GROUP BY ALL)"
FEW = "(SELECT id % 5 AS m, sum(id) AS s FROM range(300) GROUP BY id % 5)"


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A session with two MiB for a statement."""
    folder = tmp_path_factory.mktemp("narrow")
    (folder / "warehouse").mkdir()
    warehouse, samples, spill = (str(folder / name) for name in ("warehouse", "samples", "spill"))
    runner = make_runner(warehouse=warehouse, samples=samples, spill=spill, memory_limit=2 << 20)
    runner.warm_up()
    return Session(runner)


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
