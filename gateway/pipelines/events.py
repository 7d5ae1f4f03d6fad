"""The messages of a run's event stream as states of flows. Spark sends nothing but a time and a sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Low to high: the state of a table is the highest of its flows'.
STATES = ("EXCLUDED", "IDLE", "COMPLETED", "QUEUED", "PLANNING", "STARTING", "RUNNING", "STOPPED", "SKIPPED", "FAILED")
FINAL = frozenset({"COMPLETED", "FAILED", "SKIPPED", "STOPPED", "EXCLUDED", "IDLE"})

_FLOW = re.compile(r"Flow '?(?P<flow>.+?)'? (?:is |has )?(?P<state>[A-Z]{4,})\b")
_UNRESOLVED = re.compile(r"Failed to resolve flow( due to upstream failure)?: '(?P<flow>.+)'\.")
_RUN = re.compile(r"Run (?:is )?(?P<state>[A-Z]+)")
_ERROR = "\nError: "
_JAVA = re.compile(r"^(?:\(?[\w.$]*(?:Exception|Error)\)?:? *)+(?=\[)")


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
    """The sentence of Spark's text that tells most, without its advice, plans and stack traces."""
    lines = [_JAVA.sub("", line.strip()) for line in error.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("[") and "]" in line]
    return (told or lines or ["no reason given"])[0][:1000]
