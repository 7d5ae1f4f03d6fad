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


RAISED = """\
[STREAM_FAILED] Query [id = 6] terminated with exception: [TASK_WRITE_FAILED] Failed. SQLSTATE: 58030 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: spark_catalog.s.t [id = 6, runId = 3]
Current Committed Offsets: {}

Current State: ACTIVE
Thread State: RUNNABLE

Logical Plan:
~WriteToMicroBatchDataSourceV1 `spark_catalog`.`s`.`t`
+- ~Project [f(id#1L)#2L AS id#3L]

[TASK_WRITE_FAILED] Task failed while writing rows to file:/w/s/t. SQLSTATE: 58030
"""
PYTHON = """\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/p/t/a.py", line 9, in f
    return help(x)
  File "/venv/lib/site-packages/lib.py", line 1, in help
    raise ValueError('no such luck')
ValueError: no such luck
and more
 SQLSTATE: 38000"""


def test_reason_of_a_failed_stream_is_its_innermost_useful_cause() -> None:
    assert reason(RAISED + PYTHON) == "[PYTHON_EXCEPTION] ValueError: no such luck (/p/t/a.py, line 9)"
    assert reason(RAISED + "[DIVIDE_BY_ZERO] Division by zero.\n[X] y") == "[DIVIDE_BY_ZERO] Division by zero."
    java = "java.io.IOException: No space left on device\n\tat java.base/java.io.X.write(X.java:1)\n\t... 3 more\n"
    assert reason(RAISED + java) == "No space left on device"
    assert reason(RAISED + java.replace("No space left on device", "Broken")) == "java.io.IOException: Broken"
    alone = "[STREAM_FAILED] Query [id = 6] terminated with exception: it is gone SQLSTATE: XXKST\n"
    plan = RAISED[RAISED.index("===") : RAISED.index("[TASK_WRITE_FAILED] Task failed while")]
    assert reason(alone + plan) == reason(alone) == "it is gone"
    assert reason(alone + plan[: plan.index("Logical")]) == "it is gone"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("[X] The table `spark_catalog`.`pp`.`t` is not there.", "[X] The table `pp`.`t` is not there."),
        ("[X] no `y`. SQLSTATE: 42703; line 2 pos 37;", "[X] no `y`. SQLSTATE: 42703"),
        ("[X] flow spark_catalog.pp.b failed", "[X] flow pp.b failed"),
        ("[X] my_spark_catalog.b, `a`.`spark_catalog`.b", "[X] my_spark_catalog.b, `a`.`spark_catalog`.b"),
        (
            "[REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires a single-part namespace, but got identifier "
            "`main`.`pp`.`a`. SQLSTATE: 42K05",
            "within definitions tables are named as schema.table, without main. before it",
        ),
    ],
)
def test_names_are_told_as_definitions_spell_them(error: str, told: str) -> None:
    assert reason(error) == told
