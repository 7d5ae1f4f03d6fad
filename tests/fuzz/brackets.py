"""SQL text as tokens and brackets: the structure that any statement has, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
