"""Sentences of Spark's event stream (as recorded from Spark 4.2.0) to states."""

from __future__ import annotations

import pytest

from gateway.pipelines.events import Event, FlowEvent, RunEvent, UnresolvedEvent, parse, reason

FLOW = "spark_catalog.shop.bronze"


@pytest.mark.parametrize(
    ("message", "event"),
    [
        (f"Flow {FLOW} is QUEUED.", FlowEvent(FLOW, "QUEUED")),
        (f"Flow {FLOW} is PLANNING.", FlowEvent(FLOW, "PLANNING")),
        (f"Flow {FLOW} is STARTING.", FlowEvent(FLOW, "STARTING")),
        (f"Flow {FLOW} has COMPLETED.", FlowEvent(FLOW, "COMPLETED")),
        (f"Flow '{FLOW}' has FAILED.\nError: bad\nmore", FlowEvent(FLOW, "FAILED", "bad\nmore")),
        (
            f"Flow '{FLOW}' has FAILED more than 2 times and will not be restarted.\nError: bad",
            FlowEvent(FLOW, "FAILED", "bad"),
        ),
        (f"Flow '{FLOW}' SKIPPED due to upstream failure(s).", FlowEvent(FLOW, "SKIPPED")),
        (f"Flow '{FLOW}' has STOPPED.", FlowEvent(FLOW, "STOPPED")),
        (f"Flow '{FLOW}' is EXCLUDED.", FlowEvent(FLOW, "EXCLUDED")),
        ("Flow spark_catalog.a b.is it is RUNNING.", FlowEvent("spark_catalog.a b.is it", "RUNNING")),
        (f"Failed to resolve flow: '{FLOW}'.\nError: [X] y", UnresolvedEvent(FLOW, "[X] y", upstream=False)),
        (f"Failed to resolve flow due to upstream failure: '{FLOW}'.", UnresolvedEvent(FLOW, "", upstream=True)),
        ("Run is COMPLETED.", RunEvent("COMPLETED")),
        ("Run is FAILED since flow 'a' has failed more than 2 times.", RunEvent("FAILED")),
        ("Run FAILED unexpectedly.", RunEvent("FAILED")),
        ("Something else.", None),
    ],
)
def test_sentences(message: str, event: Event | None) -> None:
    assert parse(message) == event


def test_reason_is_the_line_with_the_condition() -> None:
    text = "\nFailed.\n[TABLE_OR_VIEW_NOT_FOUND] There is no x. SQLSTATE: 42P01\nTo tolerate …\n\tat org.apache"
    assert reason(text) == "[TABLE_OR_VIEW_NOT_FOUND] There is no x. SQLSTATE: 42P01"
    assert reason("(a.B$CException) org.x.DException: [X.Y] z\n[Q] r") == "[X.Y] z"
    assert reason("one\ntwo") == "one"
    assert reason("") == "no reason given"
