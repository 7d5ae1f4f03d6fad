"""No literal and no comment of a statement gets into the history, whatever stands around it."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from gateway.history.redaction import redacted, redacted_with
from gateway.sql.read.tokens import NUMBER, STRING, scan

PROBES = Path(__file__).parents[2] / "data" / "query-probes.jsonl"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("SELECT 1, 'a', \"b\", x FROM t1 WHERE a2 = 3.5", "SELECT ?, ?, ?, x FROM t1 WHERE a2 = ?"),
        ("SELECT -1.5e-3, .5, 10L, 1e10D, 2BD", "SELECT -?, ?, ?, ?, ?"),
        ("SELECT 'it''s', 'a\\'b', 'x\\\\', r'a\\', R\"b\\\", X'FF'", "SELECT ?, ?, ?, ?, ?, X?"),
        ("SELECT `a'b`, `c``d 'e`, 'f`g'", "SELECT `a'b`, `c``d 'e`, ?"),
        ("SELECT a -- it's 1\n, 'b'", "SELECT a \n, ?"),
        ("SELECT a -- goes on\\\n it's 1\n, 'b'", "SELECT a \n, ?"),
        ("SELECT /* it's /* 1 */ 2 */ a, 'b'", "SELECT   a, ?"),
        ("SELECT /*+ BROADCAST(t) */ a", "SELECT   a"),
        ("SELECT $$it's$$, $tag$ it's $$ 'a' $tag$, b", "SELECT ?, ?, b"),
        ("SELECT 'never closed FROM t", "SELECT ?"),
        ("SELECT `never closed 'x'", "SELECT ?"),
        ("SELECT 1 AS `a, 's3cr3t', 42", "SELECT ? AS ?"),
        ("SELECT a /* never closed 'x'", "SELECT a"),
        ("SELECT 'ends in \\", "SELECT ?"),
        ("SET spark.x.secret = abc", "SET spark.x.secret = ?"),
        ("  set  a.b=c=d", "set  a.b= ?"),
        ("UPDATE t SET a = b", "UPDATE t SET a = b"),
        ("SELECT :p, ?, a[0]", "SELECT :p, ?, a[?]"),
        ("SELECT bar'x'", "SELECT bar?"),
        ("", ""),
        ("\0'\0'\u202e'x'", "\0?\u202e?"),
    ],
)
def test_literals_become_question_marks_and_comments_go(text: str, left: str) -> None:
    assert redacted(text) == left


@pytest.mark.parametrize(
    ("text", "wrong", "left"),
    [
        ("SELECT 'a', x FROM t", "x", "x"),
        ("  SELECT 1 /* no */ + wrong, 2", "wrong", "wrong"),
        ("SELECT 'a' || 'wrong' || b", "'wrong'", "?"),
        ("SELECT 12345", "12345", "?"),
        ("SELECT -- wrong", "wrong", ""),
        ("SELECT /* wrong */ a, b", "wrong", ""),
        ("SET a = wrong", "wrong", "?"),
    ],
)
def test_a_place_is_found_again(text: str, wrong: str, left: str) -> None:
    at = text.index(wrong)
    shown, (start, stop) = redacted_with(text, (at, at + len(wrong)))
    assert shown == redacted(text) and shown[start:stop] == left
    assert all(0 <= place <= len(shown) for place in redacted_with(text, (0, 10**9))[1])


def _words(text: str) -> list[str] | None:
    """The words of a text, literals as question marks; None for one that has no tokens."""
    tokens, words, error = scan(text)
    if error is not None:
        return None
    kinds = [
        "?" if word in (STRING, NUMBER) or token.text.startswith("$") else token.text
        for token, word in zip(tokens, words, strict=False)
    ]
    return [word for word in kinds if word]


def test_the_rest_is_as_the_parser_reads_it() -> None:
    """Over some thousand statements: the words of what is left are those of the statement."""
    seen = 0
    for line in PROBES.read_text(encoding="utf-8").splitlines():
        text = json.loads(line)["sql"]
        words = _words(text)
        if words is None or words[:1] == ["SET"] or any(word[:1].isdigit() or word == "?::" for word in words):
            continue
        assert _words(redacted(text).replace("?", " 0 ")) == words, text
        seen += 1
    assert seen > 1000


PIECES = [
    "'{}'",
    '"{}"',
    "r'{}'",
    "/* {} */",
    "-- {}\n",
    "$${}$$",
    "$t${}$t$",
    "/* a /* {} */ b */",
    "'{}\\''",
    "-- \\\n {}\n",
]
AROUND = [
    "SELECT ",
    "a",
    " , ",
    "`x`",
    "`y``'z`",
    " 'b' ",
    ' "c" ',
    " 1.5 ",
    "\\",
    " FROM t ",
    "--\n",
    "/**/",
    "r",
    "\n",
    "(",
]


def test_a_secret_is_found_by_no_order_of_pieces() -> None:
    for seed in range(5000):
        chance = random.Random(seed)
        parts = [chance.choice(AROUND) for _ in range(chance.randrange(6))]
        text = "".join(parts)
        if scan(text)[2] is not None:  # what comes before must be whole: else nobody knows where a literal begins
            continue
        text += " " + chance.choice(PIECES).format("hunter2") + chance.choice(AROUND)
        if text.rstrip("\n").endswith("\\"):
            continue
        assert "hunter2" not in redacted(text), text


def test_large_texts_take_no_time() -> None:
    started = time.process_time()
    for text in (
        "'" * 65_537,
        "/*" * 40_000,
        "`" * 65_537,
        "$a$" * 30_000,
        "\\'" * 40_000,
        "1." * 40_000,
        "r'" * 40_000,
        '"\\' * 40_000,
    ):
        redacted(text)
    assert time.process_time() - started < 30.0
