"""Texts that would take gigabytes are refused before memory is taken, also where a column says how long they get."""

from __future__ import annotations

import pytest

from gateway.errors import GatewayError, ResourceError
from gateway.runner import Runner
from tests.unit.runner.session import Session


@pytest.mark.parametrize(
    "expression",
    [
        "lpad('a', c, 'xy')",
        "rpad('a', c)",
        "space(c)",
        "repeat('abc', c)",
        "repeat('abc', 2147483647)",
        "array_repeat(repeat('x', 100000), c - 2147383647)",
        "replace(repeat('a', 100000), 'a', repeat('b', c - 2147383647))",
    ],
)
def test_refused(runner: Runner, expression: str) -> None:
    with pytest.raises(ResourceError):
        Session(runner).run(f"SELECT {expression} FROM VALUES (2147483647) AS t(c)")


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("SELECT CAST('{n}' AS INTERVAL DAY)", "INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING"),
        ("SELECT CAST('{n}-1' AS INTERVAL YEAR TO MONTH)", "INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING"),
        ("SELECT INTERVAL '{n}-1' YEAR TO MONTH", "INVALID_INTERVAL_FORMAT.UNKNOWN"),
        ("SELECT INTERVAL '{n} 00:00:00' DAY TO SECOND", "INVALID_INTERVAL_FORMAT.UNKNOWN"),
        ("SELECT regexp_extract('a', '(a{{{n}}})', 1)", "INVALID_PARAMETER_VALUE.PATTERN"),
        ("SELECT from_json('1', 'a DECIMAL({n}, 1)')", "PARSE_SYNTAX_ERROR"),
        ("SELECT CAST('1e{n}' AS DECIMAL(3, 1))", "CAST_INVALID_INPUT"),
    ],
    ids=["days", "years", "written years", "written days", "repetitions", "precision", "exponent"],
)
def test_numbers_of_thousands_of_digits_are_told_by_name(runner: Runner, statement: str, condition: str) -> None:
    with pytest.raises(GatewayError) as raised:
        Session(runner).run(statement.format(n="9" * 5000))
    assert raised.value.condition == condition
