"""Each promise of docs/threat-model.md names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_is_named_exists() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    named = re.findall(r"`([a-z_/]+\.py)::(\w+)`", text)
    assert len(named) > 30
    for file, name in named:
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), f"{file}::{name}"


def test_every_promise_names_a_test() -> None:
    promises = (ROOT / "docs" / "threat-model.md").read_text().partition("\n## ")[2]
    rows = [line for line in promises.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith(("| attack |", "| mistake |", "| ---"))]
    assert len(rows) > 20
    assert [row for row in rows if "::" not in row] == []
