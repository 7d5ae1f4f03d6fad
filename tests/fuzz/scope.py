"""Columns that expressions may use, and VALUES lists of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.fuzz.tree import Tree, expr, listed
from tests.fuzz.values import literal


@dataclass(slots=True)
class Column:
    """A column in scope: how it is written, its type, and its values if it is one of a VALUES list."""

    text: str
    type: str
    values: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Scope:
    """Columns that expressions may use. With `rows`, a column of a type that has none is made, with so many values."""

    columns: list[Column]
    rows: int = 0
    edge: float = 0.2
    nothing: float = 0.1

    def column(self, random: Random, type_: str) -> Column | None:
        """A column of a type."""
        found = [c for c in self.columns if c.type == type_]
        if self.rows and len(found) < 2 and (not found or random.random() < 0.5):
            made = Column(f"c{len(self.columns)}", type_)
            nothing = self.nothing if random.random() < 0.6 else 0.0  # half of the columns are never NULL
            made.values = [literal(random, type_, self.edge, nothing) for _ in range(self.rows)]
            self.columns.append(made)
            found.append(made)
        return random.choice(found) if found else None


def values_relation(columns: Sequence[Column], rows: int, alias: str = "t") -> Tree:
    """``VALUES (…), (…) AS t(c0, …)`` of columns with their values."""
    shown = columns or [Column("c", "int", ["0"] * rows)]
    lines = tuple(Tree(("(", listed(tuple(expr(c.type, c.values[i]) for c in shown)), ")")) for i in range(rows))
    names = listed(tuple(c.text for c in shown))
    return Tree(("VALUES ", listed(lines), f" AS {alias}(", names, ")"), "values")
