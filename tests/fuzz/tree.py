"""Statements as trees: text with marked pieces, so that a statement that differs can be made smaller piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.worker_jobs import Parameter

#: What may happen to a piece: `expr`, `query` and `relation` give way to a smaller one, `optional` is left out, `list` loses
#: members, `values` (text, rows, text, names, text) loses columns.
KINDS = ("text", "expr", "query", "relation", "optional", "list", "values")


@dataclass(frozen=True, slots=True)
class Tree:
    """A piece of SQL text. `separator` and `least` (members that must stay) are those of a list, `type` of an expression."""

    parts: tuple[str | Tree, ...]
    kind: str = "text"
    type: str = ""
    separator: str = ""
    least: int = 1

    def __str__(self) -> str:
        return self.separator.join(map(str, self.parts))

    def walk(self, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Tree]]:
        """All pieces with their paths, outer ones first."""
        yield path, self
        for i, part in enumerate(self.parts):
            if isinstance(part, Tree):
                yield from part.walk((*path, i))

    def put(self, path: tuple[int, ...], piece: Tree) -> Tree:
        """The same tree with another piece at `path`."""
        if not path:
            return piece
        at = path[0]
        child = self.parts[at]
        assert isinstance(child, Tree)
        return replace(self, parts=(*self.parts[:at], child.put(path[1:], piece), *self.parts[at + 1 :]))


def expr(type_: str, *parts: str | Tree) -> Tree:
    """An expression."""
    return Tree(parts, "expr", type_)


def optional(*parts: str | Tree) -> Tree:
    """A clause that may be left out."""
    return Tree(parts, "optional")


def listed(parts: tuple[str | Tree, ...], separator: str = ", ", least: int = 1) -> Tree:
    """Members of which at least `least` stay."""
    return Tree(parts, "list", separator=separator, least=least)


def query(*parts: str | Tree) -> Tree:
    """A whole query."""
    return Tree(parts, "query")


def relation(*parts: str | Tree) -> Tree:
    """What stands in FROM."""
    return Tree(parts, "relation")


@dataclass(frozen=True, slots=True)
class Case:
    """What both engines are asked: statements of one session, of which the last one's answer is compared.

    Attributes:
        tree: a list of the statements.
        zone: the session's time zone.
        ordered: positions of columns by which ORDER BY sorts the rows of the last statement, the first ones of its keys.
        functions: names of the catalogue that occur.
        parameters: values of the last statement's parameters.
        labels: what the generator put in, for the exceptions and the tally.
    """

    kind: str
    tree: Tree
    zone: str = "UTC"
    ordered: tuple[int, ...] = ()
    functions: frozenset[str] = frozenset()
    parameters: tuple[Parameter, ...] = ()
    labels: frozenset[str] = frozenset()
    seed: Any = field(default=None, compare=False)

    @property
    def statements(self) -> list[str]:
        """The texts in their order."""
        return [str(part) for part in self.tree.parts]


def case(kind: str, *statements: str | Tree, **more: Any) -> Case:
    """A case of these statements."""
    return Case(kind, listed(tuple(statements), ";\n"), **more)
