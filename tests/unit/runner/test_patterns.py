"""Name patterns against plain reference matchers, and in time that grows with the lengths only."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import UnsupportedError
from gateway.runner.patterns import hive, jdbc

NAMES = st.text(st.sampled_from("aAbB_%*.\\|é日"), max_size=8)


def jdbc_reference(pattern: str | None, name: str) -> bool:
    """JDBC's pattern as a regular expression."""
    if pattern in (None, "", "%", "*", ".*"):
        return True
    assert pattern is not None
    text, rest = "", pattern
    while rest:
        if rest[0] == "\\" and len(rest) > 1:
            text, rest = text + re.escape(rest[1]), rest[2:]
        elif rest.startswith(".*"):
            text, rest = text + ".*", rest[2:]
        else:
            text += {"%": ".*", "*": ".*", "_": "."}.get(rest[0], re.escape(rest[0]))
            rest = rest[1:]
    return re.fullmatch(text, name, re.IGNORECASE | re.DOTALL) is not None


def spark_reference(pattern: str, name: str) -> bool:
    """Spark's StringUtils.filterPattern for one name."""
    parts = pattern.strip().replace("*", ".*").split("|")
    return any(re.fullmatch(p, name, re.IGNORECASE | re.DOTALL) for p in parts)


@given(NAMES, NAMES)
def test_jdbc_equals_the_reference(pattern: str, name: str) -> None:
    assert jdbc(pattern)(name) == jdbc_reference(pattern, name)


@given(st.text(st.sampled_from("aAbB_%*.| é"), max_size=8), NAMES)
def test_show_equals_the_reference(pattern: str, name: str) -> None:
    assert hive(pattern)(name) == spark_reference(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (None, ["shop", "Sales", "my_db"]),
        ("*", ["shop", "Sales", "my_db"]),
        ("s*", ["shop", "Sales"]),
        ("S*", ["shop", "Sales"]),
        ("s*|my_db", ["shop", "Sales", "my_db"]),
        (" shop ", ["shop"]),
        ("sho.", ["shop"]),
        ("shop.*", []),
        ("s%", []),
        ("my_d_", []),
        ("my_db", ["my_db"]),
        ("", []),
        ("|", []),
        ("shop|", ["shop"]),
    ],
)
def test_show_patterns_as_spark_answers(pattern: str | None, found: list[str]) -> None:
    assert [n for n in ("shop", "Sales", "my_db") if hive(pattern)(n)] == found


@pytest.mark.parametrize("pattern", ["[a-z]*", "sh?p", "s+", "^shop$", "(a|b)", "a{2}", "\\w", "["])
def test_other_regular_expressions_are_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="regular expression"):
        hive(pattern)


def test_case_folds_beyond_ascii() -> None:
    assert jdbc("ÜBER%")("überblick")
    assert hive("ÜBER*")("überblick")


@pytest.mark.parametrize("length", [100, 1000])
def test_no_pattern_explodes(length: int) -> None:
    # Backtracking over the stars would take longer than the age of the universe.
    assert not jdbc("%a" * length + "b")("a" * (2 * length))
    assert jdbc("%a" * length)("a" * (2 * length))
    assert not hive("*a" * length + "b")("a" * (2 * length))
