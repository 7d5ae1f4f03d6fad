"""Up to where the sources of a table are loaded, by the plans in its ledger; what a source is that is not among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.errors import ConfigError
from gateway.pipelines.jobs.ledger import is_abandoned

# What to do with a source that is not the one that the table was loaded from.
CONTINUE, ADD = "continue", "add"


@dataclass(frozen=True, slots=True)
class Mark:
    """Rows of a source that are in a table, or planned.

    Attributes:
        source: which database and query, whatever the cursor.
        name: of the source, for people.
        column, high: the highest value of a cursor; None if no column tells what is loaded.
    """

    source: str
    name: str
    column: str | None
    high: str | None


def marks(plans: Sequence[dict[str, Any]]) -> dict[str, Mark]:
    """The marks of all sources that are loaded by a cursor or as a whole, by their keys."""
    found: dict[str, Mark] = {}
    for plan in plans:
        if "source" not in plan or is_abandoned(plan):
            continue
        source = plan.get("whole", plan["source"])
        if plan.get("replaces"):
            if plan["done"] is None:
                continue
            found = {source: Mark(source, plan["table"], None, None)} if plan["done"]["loaded"] else {}
            found |= {key: Mark(source, plan["table"], column, high) for key, column, high in plan["done"]["marks"]}
            continue
        # By another column it is loaded further now than was noted.
        found = {k: m for k, m in found.items() if m.source != source and not plan.get("continues")}
        found[plan["source"]] = Mark(source, plan["table"], plan["column"], plan["high"])
    return found


def start(found: dict[str, Mark], key: str, whole: str, column: str, table: str, other: str | None) -> Mark | None:
    """The mark above which a source is to be loaded; None for all its rows.

    Args:
        found: see `marks`.
        key, whole: the source's, with its cursor and whatever the cursor.
        column: the cursor.
        table: what is loaded into, for people.
        other: CONTINUE, ADD or None: what to do if the table has rows of another source.

    Raises:
        ConfigError: the table has rows of this source, but it is not known up to where; or those of another one, and it is
            not said what this one is to them.
    """
    if key in found:
        return found[key]
    anew = "--replace (without --cursor) loads all rows anew, and the next --cursor goes on from there"
    for mark in found.values():
        if mark.source == whole:
            by = "as a whole" if mark.column is None else f"by --cursor {mark.column}"
            text = f"{table} has rows of {mark.name} that were loaded {by}, not by {column}, and would have them twice: {anew}"
            raise ConfigError("cursor", text)
    if not found or other == ADD:
        return None
    same = [mark for mark in found.values() if (mark.column or "").lower() == column.lower()]
    one = same[0] if len(same) == 1 and len({m.source for m in found.values()}) == 1 else None
    if other == CONTINUE:
        if one is None:
            raise ConfigError("other-source", f"{table} has rows of more than one source, or not by {column}: {anew}")
        return one
    ways = [f"--other-source {CONTINUE} loads those with {column} above {one.high}"] if one is not None else []
    ways += [f"--other-source {ADD} loads all its rows beside those that are there", anew]
    names = ", ".join(dict.fromkeys(mark.name for mark in found.values()))
    raise ConfigError(
        "source", f"{table} has rows of another URL, table or query ({names}) than this one: {'; '.join(ways)}"
    )
