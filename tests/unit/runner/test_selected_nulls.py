"""(SELECT NULL) as an operand: what stands behind it is not computed, as in Spark, and what stands before it is."""

from __future__ import annotations

import pytest

from gateway.errors import UserError
from gateway.runner import Runner
from tests.unit.runner.session import Session


@pytest.mark.parametrize(
    "expression",
    [
        "(SELECT NULL) + 1 / 0",
        "(SELECT CAST(NULL AS INT)) = 1 / 0",
        "CAST((SELECT NULL) AS INT) + 1 / 0",
        "(SELECT (SELECT NULL)) + 1 / 0",
        "((SELECT NULL) + 1 / 0) + 1 / 0",
        "abs((SELECT NULL) + 1 / 0)",
        "levenshtein((SELECT NULL), CAST(1 / 0 AS STRING))",
        "levenshtein('x', (SELECT NULL))",
        "substring('abc', (SELECT NULL), CAST(1 / 0 AS INT))",
        "(SELECT NULL) IN (1 / 0)",
        "(SELECT NULL) BETWEEN 1 / 0 AND 2",
    ],
)
def test_nothing_behind_it_is_computed(runner: Runner, expression: str) -> None:
    assert Session(runner).rows(f"SELECT {expression}") == [(None,)]
    assert Session(runner).rows(f"SELECT {expression} FROM range(2)") == [(None,), (None,)]


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0 + (SELECT NULL)",
        "1 / 0 > (SELECT CAST(NULL AS INT))",
        "levenshtein(CAST(1 / 0 AS STRING), (SELECT NULL))",
        "1 / 0 IN ((SELECT NULL))",
        "coalesce((SELECT NULL), 1 / 0)",
        "concat((SELECT NULL), CAST(1 / 0 AS STRING))",
        "(SELECT NULL) AND 1 / 0 > 1",
        "array((SELECT NULL), 1 / 0)",
        "id + (SELECT NULL) + 1 / 0",
        "substring((SELECT NULL), CAST(id AS INT), CAST(1 / 0 AS INT))",
    ],
)
def test_what_stands_before_it_is_computed(runner: Runner, expression: str) -> None:
    with pytest.raises(UserError, match="DIVIDE_BY_ZERO"):
        Session(runner).rows(f"SELECT {expression} FROM range(2)")
