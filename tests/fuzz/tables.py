"""Delta tables as others wrote them: deletion vectors, column mapping, partitions, odd statistics. From the archive beside the
checkout; where that is missing, sessions ask the tables that they make themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from tests.fuzz.outcome import Outcome
from tests.fuzz.relations import Table
from tests.fuzz.values import TYPES

_MOST_ROWS = 60  # so that joins of them stay small
_MOST_COLUMNS = 14


def readable(folder: Path, asks: Sequence[Callable[[str], Outcome]], seed: int = 0, most: int = 40) -> list[Table]:
    """Some of the small tables that every engine asked reads, with the columns whose types statements are made for.

    Some tables of others only the embedded engine reads: Spark's Delta takes no partition with a colon in its name, for one.
    """
    found: list[Table] = []
    listed = json.loads((folder / "manifest.json").read_text())
    Random(f"{seed} tables").shuffle(listed)
    for entry in listed:
        if len(found) == most:
            break
        if not 0 < (entry.get("rows") or 0) <= _MOST_ROWS:
            continue
        text = f"delta.`{folder / entry['table']}`"
        told = [ask(f"SELECT * FROM {text}") for ask in asks]
        columns = tuple((name, type_) for name, type_, _ in told[0].columns if type_ in TYPES and name.isidentifier())
        if all(outcome.kind == "answer" for outcome in told) and columns:
            found.append(Table(text, columns[:_MOST_COLUMNS]))
    return found
