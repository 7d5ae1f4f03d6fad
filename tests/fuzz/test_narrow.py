"""Statements have their rows with little memory, too: a slice of those that `python -m tests.fuzz.narrow` makes."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.narrow import run


def test_rows_are_the_same_with_little_memory(tmp_path: Path) -> None:
    tally, found = run(tmp_path, seed=1, statements=8, seconds=120.0)
    assert not found
    assert tally.alike >= 5
