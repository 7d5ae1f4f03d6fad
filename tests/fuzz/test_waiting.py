"""Plain statements end: a slice of those that `python -m tests.fuzz.waiting` makes, and what it has found."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.fuzz.waiting import Asked, Waiting, run

#: What the engine failed at: a DISTINCT of one value with a limit, told to stop early.
FOUND = (
    "SELECT DISTINCT a.k FROM (SELECT b.k, b.v FROM (SELECT c.k, c.v FROM many AS c LEFT ANTI JOIN few AS d ON c.k = d.v WHERE "
    "c.k = 1) AS b EXCEPT SELECT k, v FROM none) AS a WHERE a.k NOT IN (SELECT v FROM few WHERE v IS NOT NULL) OR a.k IN (1) "
    "LIMIT 1",
)


def test_statements_end(tmp_path: Path) -> None:
    assert not run(tmp_path, seed=11, statements=60, seconds=120.0).found
    with closing(Waiting(tmp_path, seconds=60.0)) as waiting:
        for text in FOUND:
            for partitions in (2, 7):
                waiting.ask(Asked(text, partitions, repartitions=False))
    assert waiting.ended == 2 * len(FOUND)
    assert not waiting.found
