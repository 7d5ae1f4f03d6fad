"""What did not fit, or could not be planned, is run again more sparingly, and comes to an end."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import datafusion
import pytest

from gateway.engine.datafusion import DataFusionEngine
from gateway.engine.economies import NONE, Economy

EXHAUSTED = "Resources exhausted: Failed to allocate additional 10.0 MB for {}[1]"
MESSAGES = {
    "sorter": EXHAUSTED.format("ExternalSorterMerge"),
    "merge": EXHAUSTED.format("SortPreservingMergeExec"),
    "top": EXHAUSTED.format("TopK"),
    "join": EXHAUSTED.format("HashJoinInput"),
    "group": EXHAUSTED.format("FinalHashAggregateStream"),
    "lost": "partition not used yet",
    "at odds": "SanityCheckPlan",
    "other": "Divide by zero",
}


def ladder(*messages: str) -> list[list[str]]:
    """What each run goes without where all fail, with `messages` by turns."""
    economy = NONE
    found: list[list[str]] = []
    for name in itertools.cycle(messages):
        following = economy.after(MESSAGES[name], views=True)
        if following is None:
            break
        economy = following
        found.append([name for name in Economy.__slots__ if getattr(economy, name)])
        assert len(found) < 10
    return found


@pytest.mark.parametrize(
    ("message", "steps"),
    [
        ("sorter", [["plain"], ["plain", "one_partition"], ["plain", "one_partition", "few_rows"]]),
        ("merge", [["plain"], ["plain", "one_partition"], ["plain", "one_partition", "few_rows"]]),
        ("top", [["plain"], ["plain", "one_partition"], ["plain", "one_partition", "few_rows"]]),
        ("join", [["plain"], ["plain", "sorted_joins"]]),
        ("group", [["plain"], ["plain", "few_rows"]]),
        ("lost", [["plain", "one_partition"]]),
        ("at odds", [["plain", "fewer_rules"]]),
        ("other", []),
    ],
)
def test_each_run_goes_without_more(message: str, steps: list[list[str]]) -> None:
    assert ladder(message) == steps


def test_sorts_of_sorted_joins_stay_in_their_partitions() -> None:
    joined = Economy(plain=True, sorted_joins=True)
    assert NONE.after(MESSAGES["join"], views=False) == joined
    assert joined.after(MESSAGES["sorter"], views=False) == Economy(plain=True, sorted_joins=True, few_rows=True)


def test_whatever_fails_it_ends() -> None:
    for messages in itertools.permutations(MESSAGES, 3):
        ladder(*messages)


@pytest.mark.parametrize(
    ("economy", "limit", "files"),
    [(NONE, 1 << 30, 32), (Economy(one_partition=True), 1 << 30, 64), (NONE, 1 << 24, 2)],
    ids=["two partitions", "one", "little"],
)
def test_a_sort_merges_as_many_files_as_leave_memory_to_others(economy: Economy, limit: int, files: int) -> None:
    assert economy.merged_files(limit, partitions=2) == files


def test_partitions_that_spill_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    rows = datafusion.SessionContext().sql(
        "SELECT v % 13 AS g, md5(cast(v % 337 AS varchar)) AS s FROM generate_series(1, 40000) AS t(v)"
    )
    ctx = DataFusionEngine(1 << 21, str(tmp_path), partitions=2).context(False, False, Economy(few_rows=True))
    ctx.register_record_batches("t", [rows.collect()])

    groups: list[int] = []

    def run() -> None:
        groups.extend(ctx.sql("SELECT g, count(DISTINCT s) AS n FROM t GROUP BY g").count() for _ in range(15))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert groups == [13] * 15


def test_what_does_not_fit_lies_where_it_should(tmp_path: Path) -> None:
    ctx = DataFusionEngine(1 << 26, str(tmp_path / "it's here"), partitions=2).context(False, False, NONE)
    stream = ctx.sql(
        "SELECT v, repeat(CAST(v AS varchar), 12) AS s FROM generate_series(1, 1500000) AS t(v) ORDER BY s"
    ).execute_stream()
    assert next(iter(stream)) is not None
    assert [p for p in (tmp_path / "it's here").rglob("*") if p.is_file()]
