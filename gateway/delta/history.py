"""What the log of a table says of its versions, and of the table itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gateway.delta import log
from gateway.delta.table import Snapshot, of_this_table


@dataclass(frozen=True, slots=True)
class Version:
    """One commit: its number, when it was made (epoch milliseconds), what it says of itself."""

    number: int
    time_ms: int
    info: dict[str, Any]


def versions(snapshot: Snapshot, limit: int | None) -> list[Version]:
    """The versions of a table up to that of the snapshot, newest first, as far as there are files of them."""
    with of_this_table(snapshot):
        numbers = [n for n in log.commit_versions(snapshot.root) if n <= snapshot.version]
        times = log.commit_times(snapshot.root, numbers, snapshot.properties)
        newest = list(zip(numbers, times, strict=True))[::-1]
        wanted = newest if limit is None else newest[:limit]
        return [Version(number, time_ms, _info(snapshot.root, number)) for number, time_ms in wanted]


def _info(root: str, number: int) -> dict[str, Any]:
    for action in log.actions(root, number):
        info = action.get("commitInfo")
        if isinstance(info, dict):
            return info
    return {}


def last_modified_ms(snapshot: Snapshot) -> int | None:
    """When the snapshot's version was made; None without a file of it."""
    found = versions(snapshot, 1)
    return found[0].time_ms if found and found[0].number == snapshot.version else None


def texts(values: object) -> list[tuple[str, str | None]] | None:
    """A JSON object as names and texts: texts as they are, other values as JSON; None for what is no object."""
    if not isinstance(values, dict):
        return None
    return [(key, text(value)) for key, value in values.items()]


def text(value: object) -> str | None:
    """A value of JSON as text: a text as it is."""
    return value if isinstance(value, str) or value is None else json.dumps(value, separators=(",", ":"))
