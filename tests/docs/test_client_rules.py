"""Each rule of docs/client-rules.md is numbered and names tests that exist."""

import re
from itertools import groupby
from pathlib import Path

from tests.docs.marks import functions

ROOT = Path(__file__).resolve().parents[2]


def tables() -> list[list[str]]:
    """The rows of each table, without their heads."""
    lines = (ROOT / "docs" / "client-rules.md").read_text(encoding="utf-8").splitlines()
    found = [list(rows) for is_row, rows in groupby(lines, lambda line: line.startswith("| ")) if is_row]
    return [rows[2:] for rows in found]


def test_rules_are_counted_without_a_gap() -> None:
    assert len(tables()) == 4
    for rows in tables():
        assert [row.split(" | ")[0] for row in rows] == [f"| {n}" for n in range(1, len(rows) + 1)]


def test_every_rule_names_tests_that_exist_and_one_that_is_run() -> None:
    wrong = []
    for row in (row for rows in tables() for row in rows):
        named = re.findall(r"`([a-z_/]+\.py)::(\w+)`", row)
        runs = [functions(ROOT / "tests" / file).get(name) for file, name in named]
        if None in runs or not any(runs):
            wrong.append(row)
    assert wrong == []
