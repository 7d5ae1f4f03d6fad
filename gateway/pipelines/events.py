"""The messages of a run's event stream as states of flows. Spark sends nothing but a time and a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.engine.spark.errors import NO_SPACE

# Low to high: the state of a table is the highest of its flows'.
STATES = ("EXCLUDED", "IDLE", "COMPLETED", "QUEUED", "PLANNING", "STARTING", "RUNNING", "STOPPED", "SKIPPED", "FAILED")
FINAL = frozenset({"COMPLETED", "FAILED", "SKIPPED", "STOPPED", "EXCLUDED", "IDLE"})

_FLOW = re.compile(r"Flow '?(?P<flow>.+?)'? (?:is |has )?(?P<state>[A-Z]{4,})\b")
_UNRESOLVED = re.compile(r"Failed to resolve flow( due to upstream failure)?: '(?P<flow>.+)'\.")
_RUN = re.compile(r"Run (?:is )?(?P<state>[A-Z]+)")
_ERROR = "\nError: "
_JAVA = re.compile(r"^(?:Caused by: )?(?:\(?[\w.$]*(?:Exception|Error)\)?:? *)+(?=\[)")
_PLAN = re.compile(
    r"^=== Streaming Query ===$.*?^Thread State: [^\n]*$(?:\s*^Logical Plan:$.*?(?:^\s*$|\Z))?",
    re.MULTILINE | re.DOTALL,
)
_STACK = re.compile(r"at [\w.$/<>]+\(|\.\.\. \d+ more|Driver stacktrace:")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]*)\]")
# They only say that what they carry has failed.
_CARRIERS = ("STREAM_FAILED", "TASK_WRITE_FAILED")
_CARRIED = re.compile(r".* terminated with exception: | SQLSTATE: \w{5}")
_PYTHON = "PYTHON_EXCEPTION"
_FRAME = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+)')
_LIBRARIES = ("site-packages", "pyspark.zip")
_LONGEST = 1000
_CATALOG = re.compile(r"(?<![\w`.])(?:`spark_catalog`|spark_catalog)\.(?=[\w`])")
_STATEMENT_PLACE = re.compile(r";? line \d+ pos \d+;?\Z")  # counted from the end of a statement that is not told
_OWN_CATALOG = re.compile(r"REQUIRES_SINGLE_PART_NAMESPACE\].*`main`\.")
_OWN_CATALOG_TEXT = "within definitions tables are named as schema.table, without main. before it"


@dataclass(frozen=True, slots=True)
class FlowEvent:
    """A flow reached a state; `error` is what Spark says of a failure, after which it may start the flow again."""

    flow: str
    state: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class UnresolvedEvent:
    """A flow cannot be analysed; `upstream` if only because one that it reads from cannot."""

    flow: str
    error: str
    upstream: bool


@dataclass(frozen=True, slots=True)
class RunEvent:
    """The run as a whole reached a state."""

    state: str
    error: str | None = None


Event = FlowEvent | UnresolvedEvent | RunEvent


def parse(message: str) -> Event | None:
    """What `message` says; None for a sentence that is none of these."""
    head, _, error = message.partition(_ERROR)
    if found := _UNRESOLVED.match(head):
        return UnresolvedEvent(found["flow"], error, found[1] is not None)
    if found := _RUN.match(head):
        return RunEvent(found["state"], error or None)
    found = _FLOW.match(head)
    if not found or found["state"] not in STATES:
        return None
    return FlowEvent(found["flow"], found["state"], error or None)


def reason(error: str) -> str:
    """The sentence of Spark's text that tells most, without its advice, plans and stack traces.

    Names have no catalog, as in definitions. An exception stands before its causes: the first is told that does not only
    carry others.
    """
    if _OWN_CATALOG.search(error):
        return _OWN_CATALOG_TEXT
    found = without_catalog(_STATEMENT_PLACE.sub("", _reason(error)))
    return found[max(0, *map(found.find, NO_SPACE)) :]  # without the exceptions around it


def without_catalog(text: str) -> str:
    """`text` with the names of Spark's catalog as definitions spell them."""
    return _CATALOG.sub("", text)


def _reason(error: str) -> str:
    lines = [line for line in _PLAN.sub("", error).splitlines() if line.strip() and not _STACK.match(line.strip())]
    plain, carriers = [], []
    for i, line in enumerate(lines):
        text = _JAVA.sub("", line.strip())
        condition = _CONDITION.match(text)
        if condition is None:
            plain.append(text)
        elif condition[1] == _PYTHON:
            return _raised(lines[i + 1 :])[:_LONGEST]
        elif condition[1] not in _CARRIERS:
            return text[:_LONGEST]
        else:
            carriers.append(text)
            plain.clear()
    if carriers:
        return (plain or [_CARRIED.sub("", carriers[-1])])[-1][:_LONGEST]
    return (plain or ["no reason given"])[0][:_LONGEST]


def _raised(lines: Sequence[str]) -> str:
    """The exception at the end of Python's `lines` of a traceback, and where the user's code raised it."""
    frames, text = [], ""
    for line in lines:
        if line.strip().startswith("SQLSTATE: "):
            break
        if found := _FRAME.match(line.strip()):
            frames.append(found)
            text = ""
        elif not line.startswith(" ") and not text:
            text = line.strip()
    own = [f for f in frames if not any(name in f["file"] for name in _LIBRARIES)] or frames
    where = f" ({own[-1]['file']}, line {own[-1]['line']})" if own else ""
    return f"[{_PYTHON}] {text or 'a Python function failed'}{where}"
