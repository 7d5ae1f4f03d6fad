"""How the prompt shows rows: what its shortcuts change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class View:
    """How rows are shown."""

    format: str = "table"
    vertical: str = "auto"
    timing: bool = True
    pager: bool = True
    max_rows: int = 1000
    progress: bool = True
