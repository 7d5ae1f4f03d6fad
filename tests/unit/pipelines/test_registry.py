"""Places of syntax errors, as Spark 4.2 tells them for one statement of a file."""

from __future__ import annotations

import pytest

from gateway.pipelines.registry import in_file

FIRST = "-- first\nCREATE MATERIALIZED VIEW a AS SELECT 1 AS x;"
BAD = "\n\n-- second\nCREATE MATERIALIZED VIEW b AS\n  SELECT x\n  FRM a"
HEAD = "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'a': extra input 'a'. SQLSTATE: 42601 "


@pytest.mark.parametrize(
    ("text", "error", "place"),
    [
        (
            f"{FIRST}{BAD};\nCREATE MATERIALIZED VIEW c AS SELECT 1;",
            f"{HEAD}(line 6, pos 6)\n\n== SQL ==\n{BAD}\n------^^^\n",
            "(line 7, pos 6)",
        ),
        (
            "SELECT 1; SELCT\n 2;",
            f"{HEAD}(line 1, pos 1)\n\n== SQL ==\n SELCT\n-^^^\n 2\n",
            "(line 1, pos 10)",
        ),
        ("SELECT 1; SELCT; SELCT;", f"{HEAD}(line 1, pos 1)\n\n== SQL ==\n SELCT\n-^^^\n", "(line 1, pos 1)"),
        ("", f"{HEAD}(line 1, pos 1)", "(line 1, pos 1)"),
    ],
)
def test_a_place_is_one_of_the_file(text: str, error: str, place: str) -> None:
    assert f"SQLSTATE: 42601 {place}" in in_file(error, text)
    assert in_file("Something else.", text) == "Something else."
