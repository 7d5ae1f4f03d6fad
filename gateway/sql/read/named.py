"""Names and queries inside of commands, with their places in the text."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from gateway.errors import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A dotted name as written (quotes removed) and where it stands."""

    parts: tuple[str, ...]
    span: Span

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Query:
    """A query: its tree and its piece of the text."""

    tree: exp.Expr = field(compare=False)
    span: Span
    text: str
