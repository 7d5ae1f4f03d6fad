"""Makes a statement that differs smaller, as long as it differs in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.tree import Case, Tree
from tests.fuzz.values import EVERYDAY, null

_NOTHING = Tree(())


def shrink(case: Case, differs: Callable[[Case], bool], budget: int = 120) -> Case:
    """The smallest case found with `budget` questions; `differs` says whether one still shows the difference."""
    asked: set[str] = set()
    shrunk = True
    while shrunk:
        shrunk = False
        for tree in _smaller(case.tree):
            text = str(tree)
            if len(text) >= len(str(case.tree)) or text in asked:
                continue
            if len(asked) >= budget:
                return case
            asked.add(text)
            smaller = replace(case, tree=tree)
            if differs(smaller):
                case, shrunk = smaller, True
                break
    return case


def _smaller(root: Tree) -> Iterator[Tree]:
    """Statements with one piece less, those with the largest piece less first."""
    statements = root.parts
    for i in range(len(statements) - 1):  # the last one is what differs
        yield replace(root, parts=(*statements[:i], *statements[i + 1 :]))
    places = sorted(((path, piece) for path, piece in root.walk() if path), key=lambda p: -len(str(p[1])))
    for path, piece in places:
        for less in _less(piece):
            yield root.put(path, less)


def _less(piece: Tree) -> Iterator[Tree]:
    """What may stand in the place of a piece."""
    if piece.kind == "optional" and piece.parts:
        yield replace(piece, parts=())
    elif piece.kind == "list":
        yield from _shorter(piece)
    elif piece.kind == "values":
        yield from _narrower(piece)
    elif piece.kind in ("query", "relation"):
        yield from (inner for path, inner in piece.walk() if path and inner.kind == piece.kind)
    elif piece.kind == "expr":
        inner = [other for path, other in piece.walk() if path and other.kind == "expr"]
        yield from (other for other in inner if other.type == piece.type)
        yield from (Tree((text,), "expr", piece.type) for text in (*EVERYDAY.get(piece.type, ())[:2], null(piece.type)))
        yield from (other for other in inner if other.type != piece.type)


def _shorter(piece: Tree) -> Iterator[Tree]:
    count = len(piece.parts)
    size = count // 2
    while size:
        if count - size >= piece.least:
            for at in range(0, count, size):
                rest = (*piece.parts[:at], *piece.parts[at + size :])
                if len(rest) >= piece.least:
                    yield replace(piece, parts=rest)
        size //= 2


def _narrower(piece: Tree) -> Iterator[Tree]:
    """VALUES without one of its columns."""
    lines, names = piece.parts[1], piece.parts[3]
    assert isinstance(lines, Tree)
    assert isinstance(names, Tree)
    for at in range(len(names.parts) if len(names.parts) > 1 else 0):
        yield replace(
            piece,
            parts=(
                piece.parts[0],
                replace(lines, parts=tuple(_without(line, at) for line in lines.parts)),
                piece.parts[2],
                replace(names, parts=(*names.parts[:at], *names.parts[at + 1 :])),
                piece.parts[4],
            ),
        )


def _without(line: str | Tree, at: int) -> Tree:
    assert isinstance(line, Tree)
    cells = line.parts[1]
    assert isinstance(cells, Tree)
    return replace(
        line, parts=(line.parts[0], replace(cells, parts=(*cells.parts[:at], *cells.parts[at + 1 :])), line.parts[2])
    )
