"""Statement texts without what they were written for: strings and numbers become `?`, comments go.

Works on text, not on tokens: it runs in the front process, which does not parse SQL, and for statements that no parser takes.
What is doubtful is left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

# Words that begin with a digit count as numbers; those after a letter (`t1`) do not. What is not closed goes on to the end.
_PIECES = re.compile(
    r"""
    (?P<comment> --[^\n]*(?:(?<=\\)\n[^\n]*)* )
  | (?P<block> /\* )
  | (?P<name> `[^`]*(?:``[^`]*)*` )
  | (?P<open> `.*\Z )  # a name that is not closed may hold anything
  | (?P<raw> (?<!\w)[rR](?:'[^']*(?:'|\Z)|"[^"]*(?:"|\Z)) )
  | (?P<text> '[^'\\]*(?:(?:\\.|'')[^'\\]*)*(?:'|\\?\Z) | "[^"\\]*(?:(?:\\.|"")[^"\\]*)*(?:"|\\?\Z) )
  | (?P<tagged> \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z) )
  | (?P<number> (?<!\w) (?: \d | (?<![\w`)\]]) \.(?=\d) ) [\w.]* (?:(?<=[eE])[+-]\d\w*)? )
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK = re.compile(r"/\*|\*/")
_SET = re.compile(r"\s*SET\s[^=]*=", re.IGNORECASE)
_KEPT = {"name": None, "comment": "", "block": " "}  # None: as it is; what is not here becomes a question mark


def redacted(text: str) -> str:
    """`text` with a question mark for each literal, without comments; of SET only what is set is left."""
    return redacted_with(text)[0]


def redacted_with(text: str, places: Sequence[int] = ()) -> tuple[str, list[int]]:
    """The same, and where `places` of `text` are in it: what is left out is where it would have begun."""
    found: list[str] = []
    starts: list[int] = []  # of the pieces of `found` in `text`: what stays, and what does not, by turns
    at = 0
    while (piece := _PIECES.search(text, at)) is not None:
        start = piece.start()
        starts += (at, start)
        kind = str(piece.lastgroup if piece.lastgroup != "tag" else "tagged")
        kept = _KEPT.get(kind, "?")
        found += (text[at:start], piece[0] if kept is None else kept)
        at = _block_end(text, piece.end()) if kind == "block" else piece.end()
    starts.append(at)
    found.append(text[at:])
    made = "".join(found)
    plain = made.strip()
    assigned = _SET.match(plain)
    shown = plain if assigned is None else f"{assigned[0]} ?"
    before = len(made) - len(made.lstrip())
    return shown, [max(0, min(_moved(found, starts, text, place) - before, len(shown))) for place in places]


def _moved(found: Sequence[str], starts: Sequence[int], text: str, place: int) -> int:
    number = bisect_right(starts, place) - 1
    start, stop = (*starts, len(text))[number : number + 2]
    as_it_is = found[number] == text[start:stop]
    return sum(map(len, found[:number])) + (place - start if as_it_is else 0)


def _block_end(text: str, at: int) -> int:
    """Where a comment ends whose text begins at `at`; they nest."""
    depth = 1
    while depth:
        mark = _BLOCK.search(text, at)
        if mark is None:
            return len(text)
        depth += 1 if mark[0] == "/*" else -1
        at = mark.end()
    return at
