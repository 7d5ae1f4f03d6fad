"""Expectations among table properties."""

from __future__ import annotations

import pytest

from gateway.pipelines.expectations import Expectation, Outcome, parse
from gateway.pipelines.project import ProjectError


def test_properties_of_others_are_no_expectations() -> None:
    properties = {
        "delta.appendOnly": "true",
        "gateway.expect.b": "x > 0",
        "gateway.expect.b.action": "FAIL",
        "gateway.expect.a": "y IS NOT NULL",
        "gateway.expect.action": "z",
    }
    assert parse("s.t", properties) == [
        Expectation("a", "y IS NOT NULL", "warn"),
        Expectation("action", "z", "warn"),
        Expectation("b", "x > 0", "fail"),
    ]


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("gateway.expect.a.action", "stop", "gateway.expect.a.action is 'stop', not one of warn, fail, count"),
        ("gateway.expect.a.severity", "1", "unknown property gateway.expect.a.severity"),
        ("gateway.expect.", "x", "unknown property gateway.expect."),
        ("gateway.expect.a", " ", "gateway.expect.a has no predicate"),
        ("gateway.expect.b.action", "fail", "gateway.expect.b.action stands without gateway.expect.b"),
    ],
)
def test_bad_properties_are_told_by_table_and_key(key: str, value: str, told: str) -> None:
    with pytest.raises(ProjectError) as caught:
        parse("shop.t", {"gateway.expect.a": "x > 0", key: value})
    assert caught.value.message.startswith("shop.t: ") and told in caught.value.message


def test_what_fails_a_run() -> None:
    fail, warn = Expectation("a", "x", "fail"), Expectation("a", "x", "warn")
    assert not Outcome(fail, 3, 0).fails_run
    assert Outcome(fail, 3, 1).fails_run
    assert Outcome(fail, None, None, error="division by zero").fails_run
    assert not Outcome(warn, 3, 1).fails_run
