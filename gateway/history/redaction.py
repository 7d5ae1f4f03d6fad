"""Statement texts without what they were written for: strings and numbers become `?`, comments go.

Works on text, not on tokens: it runs in the front process, which does not parse SQL, and for statements that no parser takes.
What is doubtful is left out.
"""

from __future__ import annotations

import re

# Words that begin with a digit count as numbers; those after a letter (`t1`) do not. What is not closed goes on to the end.
_PIECES = re.compile(
    r"""
    (?P<comment> --[^\n]*(?:(?<=\\)\n[^\n]*)* )
  | (?P<block> /\* )
  | (?P<name> `[^`]*(?:``[^`]*)*(?:`|\Z) )
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
    found: list[str] = []
    at = 0
    while (piece := _PIECES.search(text, at)) is not None:
        found.append(text[at : piece.start()])
        kind = str(piece.lastgroup if piece.lastgroup != "tag" else "tagged")
        kept = _KEPT.get(kind, "?")
        found.append(piece[0] if kept is None else kept)
        at = _block_end(text, piece.end()) if kind == "block" else piece.end()
    found.append(text[at:])
    plain = "".join(found).strip()
    assigned = _SET.match(plain)
    return plain if assigned is None else f"{assigned[0]} ?"


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
