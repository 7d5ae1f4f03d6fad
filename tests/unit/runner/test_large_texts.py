"""Texts that would take gigabytes are refused before memory is taken, also where a column says how long they get."""

from __future__ import annotations

import pytest

from gateway.errors import ResourceError
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
