"""RE2 stands in for Java's regular expressions only where it gives what the translated patterns give, value by value."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from gateway import sqltypes as t
from gateway.engine.base import UdfSpec
from gateway.engine.functions import IMPLEMENTATIONS, RowError, load, regex
from gateway.engine.functions.distinct import per_distinct
from gateway.engine.functions.linear_patterns import linear

load()
RETURNS = {
    "rlike": t.BOOLEAN,
    "regexp_extract": t.STRING,
    "regexp_count": t.INT,
    "regexp_substr": t.STRING,
    "regexp_replace": t.STRING,
    "split": t.array(t.STRING, False),
}
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "regexp_extract": [(0,), (1,), (2,)],
    "regexp_replace": [("", 1), ("[$0]", 1), ("$1-\\\\", 1), ("x", 2)],
    "split": [(-1,), (2,)],
}
TEXTS = [
    None, "", "a", "A", "ab", "abab", "aXbXc", "a1b22c333", "a\n", "a\r\n", "ab\r", "\n", "a\nb", "a\x85", "b\u2028",
    "é", "eé1", "ß", "\u212a", "k", "K", "İi", "😀a😀", "e\u0301", " a\tb ", "a.b", "a\\b", "$1", "a-b_c", "]b[",
    "\x0b\x0c", "www.shop.example/item/1?x=2",
]  # fmt: skip
PATTERNS = [
    "a", "^a", "a$", "^a$", "$", "^", "a*", "a+?", "(a|b)+", "(a)|(b)", "(?:a|ab)(b?)", ".", ".+", "^.*$", "[^a]",
    "[^a-z0-9]+", "[a-c1-2]{2,3}", "\\d+", "\\D", "\\w+", "\\W", "\\s", "\\S+", "[\\w.-]+", "[\\d]", "\\.", "\\\\",
    "\\$1", "\\t|\\n", "(?i)k", "(?i)[j-l]+", "(?i)[^K]", "(?i)é", "😀", "[😀é]", "a{2}", "([a-z]+)\\.([a-z]+)",
    "^(?:www[.])?([^/]+)/.*$", "item/([0-9]+)[?]", "(\\d)(\\d)?", "b|^a", "[.]$|x",
]  # fmt: skip
OUTSIDE = [
    "(?=a)", "(?!a)", "(?<=a)b", "(a)\\1", "a++", "a*+", "\\bword", "\\p{L}", "(?s).", "(?m)^a", "a(?i)b", "(a*)*",
    "(a?)+", "(|a)", "a|", "[a[bc]]", "[a&&b]", "\\Qa.b\\E", "a\\Z", "\\h", "\\R", "x{1000}", "(a{50}){50}", "]",
    "*a", "(a", "a)", "[]a]", "\\x41", "(?<n>a)",
]  # fmt: skip


def both(name: str, texts: list[str | None], pattern: str, rest: tuple[Any, ...]) -> tuple[Any, Any]:
    """What the implementation gives, and what the translated pattern gives."""
    size = len(texts)
    kinds = [t.INT if isinstance(a, int) else t.STRING for a in rest]
    arrays = [pa.array(texts, pa.string()), pa.array([pattern] * size)]
    arrays += [pa.array([a] * size, kind.arrow()) for a, kind in zip(rest, kinds, strict=True)]
    spec = UdfSpec(name, (t.STRING, t.STRING, *kinds), RETURNS[name])
    function = getattr(regex, name)
    runs: tuple[Callable[[], pa.Array], ...] = (
        lambda: IMPLEMENTATIONS[name](spec)(*arrays),
        lambda: per_distinct(function, tuple(arrays), RETURNS[name].arrow()),
    )
    found: list[Any] = []
    for run in runs:
        try:
            found.append(run().to_pylist())
        except RowError as error:
            found.append(str(error))
    return found[0], found[1]


@pytest.mark.parametrize("name", RETURNS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_both_ways_agree(name: str, pattern: str) -> None:
    for rest in ARGUMENTS.get(name, [()]):
        for texts in (TEXTS, TEXTS * 40):
            ours, translated = both(name, texts, pattern, rest)
            assert ours == translated


def test_these_patterns_go_to_re2() -> None:
    assert [p for p in PATTERNS if linear(p) is None] == []


@pytest.mark.parametrize("pattern", OUTSIDE)
def test_what_may_mean_something_else_does_not(pattern: str) -> None:
    assert linear(pattern) is None


ATOMS = ["a", "b", "é", "\\.", "[a-c]", "[^b]", "[\\w-]", ".", "\\d", "\\S", "^", "$", "\\n", "😀"]
MARKS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "??"]


def _pattern(random_: random.Random, depth: int) -> str:
    pieces = []
    for _ in range(random_.randrange(1, 4)):
        atom = random_.choice(ATOMS)
        if depth and random_.random() < 0.3:
            atom = random_.choice(["(", "(?:"]) + _pattern(random_, depth - 1) + ")"
        pieces.append(atom + random_.choice(MARKS))
    return "".join(pieces) + (f"|{_pattern(random_, 0)}" if random_.random() < 0.2 else "")


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns(seed: int) -> None:
    random_ = random.Random(seed)
    tried = 0
    while tried < 60:
        pattern = random_.choice(["", "(?i)"]) + _pattern(random_, 2)
        if linear(pattern) is None:
            continue
        tried += 1
        texts = ["".join(random_.choices("abA1é😀 .-\n\r\u2028", k=random_.randrange(9))) for _ in range(30)]
        for name in RETURNS:
            ours, translated = both(name, [*texts, None], pattern, ARGUMENTS.get(name, [()])[0])
            assert ours == translated, (name, pattern)
