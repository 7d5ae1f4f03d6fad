"""Combinations that were put to Spark 4.2 (tests/data/function-answers.jsonl.gz): the same answer, or a refusal by name."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

from tests.unit.sql.functions.probe_runner import DATA, Probes, judge

ANSWERS = DATA.with_name("function-answers.jsonl.gz")
#: Java 17 does not always write the shortest digits of a double, which shows in column names of constants.
NAME_DIFFERENCES = 10
REFUSED_AT_MOST = 10


def test_answers(tmp_path: Path) -> None:
    runner = Probes(tmp_path)
    found: Counter[str] = Counter()
    bad: list[str] = []
    with gzip.open(ANSWERS, "rt", encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            verdict = judge("", entry, runner.run(entry["sql"]))
            found[verdict.kind] += 1
            if verdict.kind not in ("same", "refused", "name"):
                bad.append(f"{verdict.kind}: {entry['sql'][:200]}\n    {verdict.detail[:400]}")
    assert not bad, "\n".join(bad[:20])
    assert found["same"] > 5500
    assert found["name"] <= NAME_DIFFERENCES
    assert found["refused"] <= REFUSED_AT_MOST
