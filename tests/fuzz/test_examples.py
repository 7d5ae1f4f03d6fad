"""What the installed Spark shows of its functions, in its own examples: answered alike, or refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.compare import compare
from tests.fuzz.embedded import Embedded
from tests.fuzz.exceptions import excuse
from tests.fuzz.spark import Spark
from tests.fuzz.tree import case, query

pytestmark = [pytest.mark.spark, pytest.mark.heavy]

_EXAMPLE = re.compile(r"^\s*> (SELECT.*?);\s*$", re.MULTILINE | re.DOTALL | re.IGNORECASE)
#: Functions whose values differ from server to server, from call to call, or from moment to moment, or have no order.
_NEVER_ALIKE = re.compile(
    r"\b(?:collect_set|current_(?:catalog|timestamp|user)|localtimestamp|now|rand|random|session_user|user|uuid|version)\b(?!')"
)
_LEAST = 800  # which are answered


def _examples(spark: Spark) -> Iterator[str]:
    """All of them, each once."""
    seen = set[str]()
    for (name,) in spark.ask(case("examples", query("SHOW FUNCTIONS"))).rows:
        told = spark.ask(case("examples", query(f"DESCRIBE FUNCTION EXTENDED `{name}`")))
        found = [text for row in told.rows for text in _EXAMPLE.findall(row[0])]
        yield from (text for text in dict.fromkeys(found) if text not in seen)
        seen.update(found)


def test_examples_of_functions_are_answered_alike(spark: Any, tmp_path: Path) -> None:
    theirs, ours = Spark(spark), Embedded(tmp_path)
    answered, differing = 0, []
    for text in _examples(theirs):
        one = case("examples", query(text))
        told = ours.ask(one)
        if told.kind == "refused" or _NEVER_ALIKE.search(text):
            continue
        asked = theirs.ask(one)
        difference = compare(one, asked, told)
        if difference is not None and excuse(one, difference, asked, told) is None:
            differing.append(f"{text}\n  Spark: {asked}\n  ours:  {told}")
        answered += told.kind == "answer"
    assert differing == []
    assert answered > _LEAST
