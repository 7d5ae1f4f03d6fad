"""Behaviours that a comparable gateway tests, a row each in tests/data/peer-checklist.csv, with the tests that cover them."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.marks import functions

ROOT = Path(__file__).resolve().parents[2]
with (ROOT / "tests" / "data" / "peer-checklist.csv").open(encoding="utf-8", newline="") as _file:
    ROWS: list[dict[str, str]] = list(csv.DictReader(_file))

# How many behaviours each group has at least; a row may be added, none may go.
LEAST = {
    "Thrift": 28,
    "Engine": 54,
    "Metadata": 16,
    "Catalog client": 5,
    "Cache": 4,
    "Functions": 8,
    "Configuration": 6,
    "Authentication": 4,
    "Errors": 2,
    "Observability": 3,
    "Writes": 3,
    "Stability": 4,
    "Smoke": 6,
    "Bar": 12,
}


@pytest.mark.parametrize("row", ROWS, ids=[r["id"] for r in ROWS])
def test_every_behaviour_has_a_test_or_a_reason(row: dict[str, str]) -> None:
    nodes = row["tests"].split()
    assert row["behaviour"]
    match row["applies"]:
        case "yes":
            assert nodes
            assert not row["reason"]
        case "later":  # the tests of such a row cover what there is of it
            assert row["reason"]
        case "no":
            assert row["reason"]
            assert not nodes
        case other:
            pytest.fail(f"applies: {other!r}")
    for node in nodes:
        path, _, name = node.partition("::")
        assert name.startswith("test_"), node
        assert (ROOT / path).is_file(), node
        assert name in functions(ROOT / path), node
    if row["applies"] == "yes":
        assert any(functions(ROOT / path)[name] for path, _, name in (node.partition("::") for node in nodes))


def test_tests_that_are_left_out_are_known() -> None:
    loaded = functions(ROOT / "tests" / "attacks" / "test_load.py")
    assert loaded and not any(loaded.values())
    assert functions(Path(__file__))["test_tests_that_are_left_out_are_known"]


def test_no_behaviour_is_missing_and_none_is_twice() -> None:
    assert len({r["id"] for r in ROWS}) == len({(r["group"], r["behaviour"]) for r in ROWS}) == len(ROWS)
    found = Counter(r["group"] for r in ROWS)
    assert set(found) == set(LEAST)
    assert {g: n for g, n in found.items() if n < LEAST[g]} == {}
