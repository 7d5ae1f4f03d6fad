"""A short slice of every kind on the Spark of the other tests: the machine runs, and most of what it makes is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import sized
from tests.fuzz.compare import compare
from tests.fuzz.embedded import Embedded
from tests.fuzz.machine import Machine
from tests.fuzz.run import STEPS, endless, run
from tests.fuzz.spark import Spark
from tests.fuzz.tally import Tally
from tests.fuzz.tree import case

pytestmark = pytest.mark.spark

#: What both engines say of, told by hand: a value, a nested one, an error, an order, a setting.
KNOWN = (
    ("SELECT 1 AS a, 'x' AS b, CAST(NULL AS INT) AS c",),
    (
        "SELECT array(1, NULL), map('a', -0.0D), named_struct('d', DATE'9999-12-31'), INTERVAL '1-2' YEAR TO MONTH, X'FF'",
    ),
    ("SELECT 1 / 0",),
    ("SELECT id FROM range(3) ORDER BY 1 DESC",),
    (
        "SET TIME ZONE 'Asia/Kathmandu'",
        "CREATE TEMPORARY VIEW v AS SELECT 1 AS k",
        "SELECT current_timezone(), k FROM v",
    ),
)


@pytest.mark.parametrize("statements", KNOWN, ids=lambda s: s[-1][:40])
def test_both_say_the_same(spark: Any, tmp_path: Path, statements: tuple[str, ...]) -> None:
    one = case("queries", *statements)
    theirs, ours = Spark(spark).ask(one), Embedded(tmp_path).ask(one)
    assert compare(one, theirs, ours) is None
    assert theirs.kind == ours.kind
    assert compare(one, Spark(spark).ask(one, way="generated code"), ours) is None


#: What Spark's optimizer changes the values of.
CHANGED = (
    "SELECT * FROM VALUES (1), (NULL) t(a) LEFT JOIN VALUES (1), (NULL) u(b) ON NOT (a = b OR (a IS NULL AND b IS NULL))",
    "SELECT CAST(d AS INT) FROM VALUES (5.9999999999999999) t(d)",
)


@pytest.mark.parametrize("text", CHANGED)
def test_the_optimizer_is_at_odds_with_the_text(spark: Any, tmp_path: Path, text: str) -> None:
    one = case("queries", text)
    ours, theirs = Embedded(tmp_path).ask(one), Spark(spark)
    difference = compare(one, theirs.ask(one), ours)
    assert difference is not None
    assert difference.kind == "rows"
    assert compare(one, theirs.ask(one, way="values stay"), ours) is None


def test_some_queries_of_many_rows(spark: Any, tmp_path: Path) -> None:
    counts, found = sized.run(tmp_path, Spark(spark), 30, range(14), 120)
    assert found == []
    assert counts["the same"] > 7


@pytest.mark.heavy  # `make fuzz-slice` is longer, and part of what a commit must pass
def test_a_slice(spark: Any, tmp_path: Path) -> None:
    machine = Machine(Embedded(tmp_path / "embedded"), Spark(spark), Tally(seed=20), tmp_path / "found.jsonl")
    machine.budget = 10
    run(machine, endless(tuple(STEPS)), 600, 240, None)
    found = machine.tally.verdicts
    assert set(found) == set(STEPS)
    total = sum(counts.total() for counts in found.values())
    assert sum(counts["same"] for counts in found.values()) > total / 2
    # Not none, since the machine is there to find some: but what is made must not differ as a rule.
    assert sum(counts["difference"] for counts in found.values()) < total / 10
