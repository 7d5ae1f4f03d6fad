"""Counts of a run, which can be kept in a file and gone on with."""

from __future__ import annotations

import functools
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.sql.functions import CATALOGUE
from tests.fuzz.signatures import NOT_RUN, UNSTEADY

#: What may be said of a statement: Spark agrees with the answer or the error, we refuse, they differ, or an exception holds.
VERDICTS = ("same", "both raise", "refused", "difference", "excused")
ENOUGH = 200
_SHOWN = 60


@dataclass(slots=True)
class Tally:
    """`next` is the number of the next case by kind, so that a run that goes on makes new ones."""

    seed: int = 0
    next: Counter[str] = field(default_factory=Counter)
    verdicts: dict[str, Counter[str]] = field(default_factory=dict)
    differences: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    hits: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        """The counts of both."""
        kinds = {*self.verdicts, *other.verdicts}
        return Tally(
            verdicts={k: self.verdicts.get(k, Counter()) + other.verdicts.get(k, Counter()) for k in kinds},
            differences=self.differences + other.differences,
            excused=self.excused + other.excused,
            refusals=self.refusals + other.refusals,
            hits=self.hits + other.hits,
            seconds=self.seconds + other.seconds,
        )

    def count(self, kind: str, verdict: str, functions: frozenset[str] = frozenset()) -> None:
        """One statement; functions count as hit where both engines were asked."""
        self.verdicts.setdefault(kind, Counter())[verdict] += 1
        if verdict != "refused":
            self.hits.update(functions)

    @property
    def statements(self) -> int:
        """How many statements were judged."""
        return sum(c.total() for c in self.verdicts.values())

    def report(self) -> str:
        """The counts as text."""
        lines = [f"{'':14}{'tried':>9}" + "".join(f"{v:>12}" for v in VERDICTS) + f"{'answered':>10}"]
        for kind, found in sorted(self.verdicts.items()):
            answered = 1 - sum(found[v] for v in ("refused", "both raise")) / max(found.total(), 1)
            lines.append(
                f"{kind:14}{found.total():>9}" + "".join(f"{found[v]:>12}" for v in VERDICTS) + f"{answered:>10.0%}"
            )
        lines.append("differences: " + (", ".join(f"{n} {k}" for k, n in self.differences.most_common()) or "none"))
        lines.append("excused: " + (", ".join(f"{n} {k}" for k, n in self.excused.most_common()) or "none"))
        lines.append("refused most: " + ", ".join(f"{n} {k}" for k, n in self.refusals.most_common(12)))
        names = hittable()
        few = sorted((self.hits[n], n) for n in seldom(self.hits))
        lines.append(
            f"functions: {len(names)}, hit at least {min((self.hits[n] for n in names), default=0)} times; "
            f"{len(names) - len(few)} at {ENOUGH} or more, {len(few)} under it: "
            + ", ".join(f"{n} {c}" for c, n in few[:_SHOWN])
            + (" …" if len(few) > _SHOWN else "")
        )
        lines.append(f"{self.statements} statements in {self.seconds:.0f} s")
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        """Write the counts; a reader never sees half of them."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps({name: getattr(self, name) for name in self.__slots__}, indent=1))
        draft.replace(path)

    @classmethod
    def load(cls, path: Path) -> Tally:
        """The counts of a run before."""
        kept: dict[str, Any] = json.loads(path.read_text())
        verdicts = {kind: Counter(found) for kind, found in kept.pop("verdicts").items()}
        values: dict[str, Any] = {name: Counter(v) if isinstance(v, dict) else v for name, v in kept.items()}
        return cls(verdicts=verdicts, **values)


def seldom(hits: Counter[str]) -> list[str]:
    """Functions that were hit less often than they should be."""
    return [n for n in hittable() if hits[n] < ENOUGH]


@functools.cache
def hittable() -> list[str]:
    """Functions of the catalogue that users may write, that are run here, and that say the same each time."""
    return sorted(
        n
        for n, f in CATALOGUE.items()
        if not n.startswith("_") and n not in UNSTEADY | NOT_RUN and f.deterministic and (f.lower or f.bind)
    )
