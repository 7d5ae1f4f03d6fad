r"""Java regular expressions that RE2 reads alike, as RE2's: the subset that Arrow's kernels match in linear time.

Both take the leftmost match and prefer the earlier alternative. What they read differently is either spelled out (``.``,
``\w``, ``\d``, ``\s``, ASCII-only case folding) or has no counterpart here: look-around, back references, possessive
quantifiers, ``\b``, properties, flags within, repeated pieces that may be empty. ``$`` is the very end of a value that ends
with no line terminator; `Linear.ends` says that it is there, and other values are not for RE2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

_LETTERS = (("a", "z", -32), ("A", "Z", 32))
_SETS = {"d": "0-9", "w": "a-zA-Z0-9_", "s": "\\x{9}-\\x{d}\\x{20}"}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_DOT = "[^\\x{a}\\x{d}\\x{85}\\x{2028}\\x{2029}]"
_NAMED = "(?P<wanted>"
_META = frozenset("\\^$.|?*+()[]{}")
_SURELY_FITS = 100  # characters of which RE2's memory for a pattern, 8 MiB, holds whatever they are
_MOST_REPEATS = 100  # of all counted repeats together: RE2 writes them out


@dataclass(frozen=True, slots=True)
class Linear:
    """RE2's text, the shortest match in characters, the number of groups.

    `looped`: groups are within a repeat. `begins`, `ends`: it looks at where a value begins or ends.
    """

    text: str
    least: int
    groups: int
    looped: bool
    begins: bool
    ends: bool


class _OutsideError(Exception):
    """The pattern is none of the subset."""


@dataclass(slots=True)
class _Reader:
    text: str
    wanted: int | None = None
    at: int = 0
    groups: int = 0
    looped: bool = False
    begins: bool = False
    ends: bool = False
    repeats: int = 1
    fold: bool = False

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        if not char:
            raise _OutsideError
        self.at += 1
        return char

    def pattern(self) -> Linear:
        if self.text.startswith("(?i)"):
            self.fold, self.at = True, 4
        text, least = self.alternatives()
        if self.at < len(self.text):
            raise _OutsideError
        if self.wanted == 0:
            text = f"{_NAMED}{text})"
        return Linear(text, least, self.groups, self.looped, self.begins, self.ends)

    def alternatives(self) -> tuple[str, int]:
        pieces = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            pieces.append(self.sequence())
        return "|".join(text for text, _ in pieces), min(least for _, least in pieces)

    def sequence(self) -> tuple[str, int]:
        out, total = [], 0
        while self.peek() not in ("", "|", ")"):
            groups = self.groups
            text, least, repeatable = self.atom(self.take())
            if self.peek() and self.peek() in "*+?{":
                if not repeatable or not least:
                    raise _OutsideError
                quantifier, low, loops = self.quantifier()
                self.looped = self.looped or (loops and self.groups > groups)
                text, least = text + quantifier, least * low
            out.append(text)
            total += least
        if not out:
            raise _OutsideError
        return "".join(out), total

    def quantifier(self) -> tuple[str, int, bool]:
        """The quantifier as it is, its least count, and whether it repeats."""
        char = self.take()
        low, loops = {"*": (0, True), "+": (1, True), "?": (0, False)}.get(char, (0, True))
        if char == "{":
            body, closed, _ = self.text[self.at :].partition("}")
            first, comma, last = body.partition(",")
            counts = [c for c in (first, last) if c]
            if not closed or not first or not all(c.isascii() and c.isdigit() and len(c) <= 3 for c in counts):
                raise _OutsideError
            low, most = int(first), max(map(int, counts))
            self.repeats *= max(1, most)
            if self.repeats > _MOST_REPEATS or (last and int(last) < low):
                raise _OutsideError
            self.at += len(body) + 1
            char = "{" + first + comma + last + "}"
        if self.peek() == "?":
            char += self.take()
        if self.peek() and self.peek() in "*+?{":
            raise _OutsideError
        return char, low, loops

    def atom(self, char: str) -> tuple[str, int, bool]:
        """An atom's text, its shortest match, and whether a quantifier may follow."""
        if char == "(":
            head = "("
            if self.peek() == "?":
                if self.text[self.at : self.at + 2] != "?:":
                    raise _OutsideError
                self.at, head = self.at + 2, "(?:"
            else:
                self.groups += 1
                head = "(" if self.wanted is None else _NAMED if self.wanted == self.groups else "(?:"
            text, least = self.alternatives()
            if self.take() != ")":
                raise _OutsideError
            return f"{head}{text})", least, True
        if char == "[":
            return self.char_class(), 1, True
        if char == ".":
            return _DOT, 1, True
        if char == "^":
            self.begins = True
            return "\\A", 0, False
        if char == "$":
            self.ends = True
            return "\\z", 0, False
        if char == "\\":
            kind = self.peek()
            if kind and kind.lower() in _SETS:
                self.at += 1
                return f"[{'' if kind.islower() else '^'}{_SETS[kind.lower()]}]", 1, True
            return self.literal(self.escaped()), 1, True
        if char in _META:
            raise _OutsideError
        return self.literal(char), 1, True

    def escaped(self) -> str:
        """The character behind a backslash."""
        char = self.take()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isalnum() or not char.isascii():
            raise _OutsideError
        return char

    def literal(self, char: str) -> str:
        if self.fold and char.isascii() and char.isalpha():
            return f"[{char.lower()}{char.upper()}]"
        return _hex(char)

    def char_class(self) -> str:
        """After ``[``: single characters, ranges and the sets of digits, word characters and spaces."""
        head = "[^" if self.peek() == "^" else "["
        self.at += head == "[^"
        out: list[str] = []
        while True:
            char = self.take()
            if char == "]":
                if not out:
                    raise _OutsideError
                return f"{head}{''.join(out)}]"
            if char == "[" or (char == "&" and self.peek() == "&"):
                raise _OutsideError
            if char == "\\" and self.peek() in _SETS:
                out.append(_SETS[self.take()])
                if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] != "]":
                    raise _OutsideError
                continue
            low = self.escaped() if char == "\\" else char
            high = low
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                high = self.take()
                if high in ("[", "&") or (high == "\\" and self.peek() in _SETS):
                    raise _OutsideError
                high = self.escaped() if high == "\\" else high
                if ord(high) < ord(low):
                    raise _OutsideError
            out.append(self.range(low, high))

    def range(self, low: str, high: str) -> str:
        text = f"{_hex(low)}-{_hex(high)}" if low != high else _hex(low)
        if self.fold:
            for first, last, shift in _LETTERS:
                start, stop = max(low, first), min(high, last)
                if start <= stop:
                    text += f"{chr(ord(start) + shift)}-{chr(ord(stop) + shift)}"
        return text


def _hex(char: str) -> str:
    return char if char.isascii() and char.isalnum() else f"\\x{{{ord(char):x}}}"


@lru_cache(maxsize=256)
def linear(pattern: str, wanted: int | None = None) -> Linear | None:
    """The pattern for RE2, None where it may mean something else to Java.

    With `wanted`, the group of that number (0: all that matches) is its only one, by the name of ``wanted``.
    """
    try:
        found = _Reader(pattern, wanted).pattern()
        if len(found.text) > _SURELY_FITS:
            pc.match_substring_regex(pa.array([""]), found.text)
        return found
    except (_OutsideError, RecursionError, pa.ArrowInvalid):  # the last where RE2 has no room for it
        return None


def rewritten(pieces: Sequence[str | int]) -> str | None:
    """A replacement's literal texts and group numbers as RE2 writes them; None beyond its nine groups."""
    if any(isinstance(p, int) and p > 9 for p in pieces):
        return None
    return "".join(f"\\{p}" if isinstance(p, int) else p.replace("\\", "\\\\") for p in pieces)
