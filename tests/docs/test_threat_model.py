"""Each promise of docs/threat-model.md names tests that exist."""

import re
from pathlib import Path

from tests.docs.marks import functions

ROOT = Path(__file__).resolve().parents[2]
SELDOM = ("; only `make test-heavy` |", "; only `make test-spark` |")


def test_every_test_that_is_named_exists() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    named = re.findall(r"`([a-z_/]+\.py)::(\w+)`", text)
    assert len(named) > 30
    for file, name in named:
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), f"{file}::{name}"


def promises() -> list[str]:
    """The rows of all tables of promises."""
    text = (ROOT / "docs" / "threat-model.md").read_text().partition("\n## ")[2]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [row for row in rows if not row.startswith(("| attack |", "| mistake |", "| ---"))]


def test_every_promise_names_a_test() -> None:
    rows = promises()
    assert len(rows) > 20
    assert [row for row in rows if "::" not in row] == []


def test_what_rests_on_tests_that_are_seldom_run_says_so() -> None:
    wrong = []
    for row in promises():
        named = re.findall(r"`([a-z_/]+\.py)::(\w+)`", row)
        seldom = not any(functions(ROOT / "tests" / file)[name] for file, name in named)
        if seldom is not row.endswith(SELDOM):
            wrong.append(row)
    assert not wrong, wrong
