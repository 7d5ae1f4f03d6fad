"""What the history says of runs that ended without a word: that, once, and nothing of those that had their last word."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.pipelines import lock, run
from gateway.pipelines.history import COMPLETED, CRASHED, History, Run
from gateway.pipelines.warehouse import Warehouse

KEY = b"k" * 32
BEGAN = datetime(2023, 11, 14, tzinfo=UTC)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_run_is_in_the_history_once(tmp_path: Path, recorded: bool) -> None:
    """Also where it was killed between its record and the end of its lock."""
    there = Warehouse(tmp_path)
    past = History(there)
    if recorded:
        past.add(Run("run-0", "shop", BEGAN, BEGAN, COMPLETED))
    path = run.lock_path(tmp_path, "shop")
    path.parent.mkdir()
    path.write_bytes(lock.sealed(path, lock.Holder("run-0", "shop", BEGAN.timestamp()), KEY))
    project: Any = SimpleNamespace(name="shop", storage_folder=None)
    for number in (1, 2):
        holder = lock.Holder(f"run-{number}", "shop", BEGAN.timestamp())
        with run._held(project, there, holder, KEY, past, print):
            pass
    assert [row["state"] for row in past.runs("shop", 9)] == [COMPLETED if recorded else CRASHED]
