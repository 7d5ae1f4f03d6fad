"""Histories of a table: random inserts, deletes, updates and merges give the rows that a plain model of them gives.

After each statement the table is read here and by another reader of Delta tables, at the end each of its versions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.featured import FeaturedHistory
from tests.live.histories import History, seeds
from tests.unit.runner.session import Session
from tests.unit.runner.written import folder_of

_STEPS = 14


@pytest.mark.parametrize("kind", ["plain", "vectors", "checks"])
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_history_is_what_its_statements_say(session: Session, seed: int, partitioned: bool, kind: str) -> None:
    history = History(session, seed, folder_of(session), partitioned, kind)
    for _ in range(_STEPS):
        history.step()
    for version, rows in enumerate(history.versions):
        history.compare(f"SELECT k, s, d, p FROM t VERSION AS OF {version}", rows, f"version {version}")


@pytest.mark.parametrize("seed", seeds(0, 6))
def test_a_history_of_a_table_with_features(session: Session, seed: int, tmp_path: Path) -> None:
    allowed = session.runner.environment(session.state).tables.paths.roots[-1]
    files = Path(allowed) / tmp_path.name
    files.mkdir(parents=True)
    history = FeaturedHistory(session, seed, folder_of(session), files)
    for _ in range(_STEPS):
        history.step()
    for version, rows in enumerate(history.versions):
        history.compare(f"SELECT k, s, d, p FROM t VERSION AS OF {version}", rows, f"version {version}")
