"""The line that tells how far a statement is: while its rows come too, and nothing is left of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gateway.cli import progress
from gateway.cli.output import first_rows
from gateway.cli.progress import Progress

BATCHES = [pa.record_batch([pa.array(range(1000))], names=["x"])] * 3


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_FETCH_SECONDS", 0.0)


def test_rows_are_counted_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(Progress(True).fetching(BATCHES)) == BATCHES
    told = capsys.readouterr().err
    assert [f"{n},000 rows" in told for n in (1, 2, 3)] == [True] * 3
    assert told.endswith("\r") and not told.rstrip("\r").rpartition("\r")[2].strip()


def test_the_line_is_wiped_before_rows_are_shown_that_were_not_all_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    rows, more = first_rows(Progress(True).fetching(BATCHES), 10)
    assert more and rows[0].num_rows == 10
    told = capsys.readouterr().err
    assert "1,000 rows" in told and told.endswith("\r")


def test_nothing_is_told_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(Progress(False).fetching(BATCHES)) == BATCHES
    assert capsys.readouterr().err == ""
