"""What operators say of themselves is read from their texts, in which literals of statements stand as well."""

from __future__ import annotations

from typing import Any

from gateway.engine.measures import operators


class Metrics:
    """Metrics as DataFusion writes them, and none that are numbers."""

    def __init__(self, text: str) -> None:
        self._text = text

    def metrics(self) -> list[Any]:
        return []

    def __str__(self) -> str:
        return self._text


class Plan:
    """A plan of one operator."""

    def __init__(self, text: str) -> None:
        self._text = text

    def metrics(self) -> Metrics:
        return Metrics(self._text)

    def display(self) -> str:
        return "DataSourceExec"

    def children(self) -> list[Any]:
        return []


def test_what_was_pruned_and_held_is_read_beside_a_literal_of_megabytes() -> None:
    # One word of this length held a worker for minutes when names were looked for as words of any letters.
    text = (
        f"output_rows{{expr={'x' * 1_000_000}}}=3, row_groups_pruned_statistics{{partition=0}}=5 total → 2 matched, "
        "row_groups_pruned_statistics{partition=1}=4 total → 4 matched, other=9 total → 1 matched, build_mem_used=1.5 KB"
    )
    (found,) = operators(Plan(text))
    assert found.pruned == (("row groups by statistics", 3, 9),)
    assert found.memory == 1536
