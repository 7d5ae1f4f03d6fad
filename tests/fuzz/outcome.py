"""What an engine said to a statement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Column = tuple[str, str, bool]


@dataclass(slots=True)
class Outcome:
    """`kind`: answer | error | refused (by name, so that Spark would run it). Rows hold `probe_runner.canonical` values."""

    kind: str
    columns: list[Column] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    condition: str = ""
    message: str = ""
    sqlstate: str = ""

    def __str__(self) -> str:
        if self.kind != "answer":
            return f"{self.kind} {self.condition}: {self.message[:300]}"
        names = ", ".join(f"{n}: {t}{'' if null else ' not null'}" for n, t, null in self.columns)
        return f"({names}) {self.rows[:8]}{' …' if len(self.rows) > 8 else ''}"
