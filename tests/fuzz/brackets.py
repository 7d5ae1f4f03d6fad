"""SQL text as tokens and brackets: the structure that any statement has, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.fuzz.tree import Tree

_TOKEN = re.compile(
    r"""
    \s+ | --[^\n]* | /\*.*?\*/
  | [rR]?'(?:[^'\\]|\\.|'')*' | [rR]?"(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*`
  | \d+(?:\.\d*)?(?:[eE][+-]?\d+)?[A-Za-z]* | \.\d+(?:[eE][+-]?\d+)?[A-Za-z]*
  | [^\W\d]\w*
  | <=> | -> | => | :: | != | <> | <= | >= | == | \|\| | << | >>>? | .
    """,
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSED = "([{", ")]}"


def tokens(text: str) -> list[str]:
    """All of a text in pieces; blanks and comments are pieces, too."""
    return _TOKEN.findall(text)


def is_blank(token: str) -> bool:
    """Whether a token says nothing."""
    return token.isspace() or token.startswith(("--", "/*"))


def levels(pieces: list[str]) -> Iterator[tuple[int, str]]:
    """Each token with the number of brackets around it; brackets themselves count as outside."""
    depth = 0
    for piece in pieces:
        if piece in _CLOSED:
            depth -= 1
        yield depth, piece
        if piece in _OPEN:
            depth += 1


def split(text: str, separator: str = ",") -> list[str]:
    """A text in parts at a separator outside of all brackets, blanks stripped."""
    parts = [""]
    for depth, piece in levels(tokens(text)):
        if depth == 0 and piece == separator:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts]


def items(text: str) -> tuple[list[str], str]:
    """The items of a SELECT, whose word is cut off, and the rest from FROM on."""
    head, rest = "", ""
    for depth, piece in levels(tokens(text)):
        if rest or (depth == 0 and piece.upper() == "FROM"):
            rest += piece
        else:
            head += piece
    return split(head), rest


def arguments(text: str) -> list[str] | None:
    """What stands in the brackets that `text` begins with; None if something follows them."""
    pieces = list(levels(tokens(text)))
    if not pieces or pieces[0][1] != "(" or pieces[-1] != (0, ")") or any(d == 0 for d, _ in pieces[1:-1]):
        return None
    inside = "".join(p for _, p in pieces[1:-1])
    return split(inside) if inside.strip() else []


_CLAUSES = (
    ("UNION",), ("INTERSECT",), ("EXCEPT",), ("MINUS",), ("WITH",), ("SELECT",), ("FROM",), ("WHERE",), ("GROUP", "BY"),
    ("HAVING",), ("ORDER", "BY"), ("SORT", "BY"), ("LIMIT",), ("OFFSET",), ("WINDOW",), ("LATERAL", "VIEW"),
)  # fmt: skip
_MAY_GO = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "SORT", "LIMIT", "OFFSET", "LATERAL"})
_JOINED = ("AND", "OR")


def tree(text: str) -> Tree:
    """A statement as a tree: brackets, their members, and clauses."""
    return _sequence([t for t in tokens(text.strip().rstrip(";")) if not t.startswith(("--", "/*"))], whole=True)


def _sequence(pieces: list[str], whole: bool = False) -> Tree:
    """What stands between two brackets."""
    words = [p.upper() for p in pieces if not p.isspace()]
    if words and words[0] in ("SELECT", "WITH", "VALUES", "FROM"):
        parts = tuple(_clause(c) for c in _clauses(pieces))
        return Tree(parts, "query")
    members = _split(pieces, ",")
    if len(members) > 1:
        return Tree(tuple(_operands(m) for m in members), "list", separator=",")
    return _operands(pieces) if not whole else Tree((_operands(pieces),))


def _clauses(pieces: list[str]) -> list[list[str]]:
    """Pieces cut before each word that begins a clause outside of all brackets."""
    found: list[list[str]] = [[]]
    upper = [p.upper() for p in pieces]
    for i, (depth, piece) in enumerate(levels(pieces)):
        following = [u for u in upper[i : i + 4] if not u.isspace()]
        if depth == 0 and any(tuple(following[: len(c)]) == c for c in _CLAUSES) and found[-1]:
            found.append([])
        found[-1].append(piece)
    return found


def _clause(pieces: list[str]) -> Tree:
    head = next((i for i, p in enumerate(pieces) if not p.isspace()), 0)
    word = pieces[head].upper() if pieces else ""
    known = any(word == c[0] for c in _CLAUSES)
    if not known or word in ("UNION", "INTERSECT", "EXCEPT", "MINUS", "LIMIT", "OFFSET", "LATERAL"):
        inside = Tree((_operands(pieces),))
        return Tree((inside,), "optional") if word in _MAY_GO else inside
    end = head + 1
    for more in ("BY", "DISTINCT", "ALL"):
        after = next((i for i in range(end, len(pieces)) if not pieces[i].isspace()), end)
        if after < len(pieces) and pieces[after].upper() == more:
            end = after + 1
    members = tuple(_operands(m) for m in _split(pieces[end:], ","))
    made = Tree(("".join(pieces[:end]), Tree(members, "list", separator=",")))
    return Tree((made,), "optional") if word in _MAY_GO else made


def _split(pieces: list[str], *separators: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for depth, piece in levels(pieces):
        if depth == 0 and piece.upper() in separators:
            parts.append([])
        else:
            parts[-1].append(piece)
    return parts


def _operands(pieces: list[str]) -> Tree:
    """One member: a conjunction, or text with brackets in it."""
    words = [p.upper() for d, p in levels(pieces) if d == 0]
    for joined in _JOINED:
        if joined in words and "BETWEEN" not in words and "CASE" not in words and "JOIN" not in words:
            return Tree(tuple(_operands(p) for p in _split(pieces, joined)), "list", separator=joined)
    parts: list[str | Tree] = []
    group: list[str] | None = None
    for depth, piece in levels(pieces):
        if depth == 0 and piece in _OPEN and group is None:
            parts.append(piece)
            group = []
        elif depth == 0 and piece in _CLOSED and group is not None:
            parts += [_sequence(group), piece]
            group = None
        elif group is not None:
            group.append(piece)
        else:
            parts.append(piece)
    parts += group or []
    return Tree(tuple(parts), "expr")
