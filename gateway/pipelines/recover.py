"""Tables that a run empties before it fills them: as they were, and how they get their rows back if they stay empty.

What they were is kept in the lock file of the run, so that the next run can do it for one that was killed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.delta import log
from gateway.delta.restore import restore
from gateway.errors import GatewayError
from gateway.pipelines import checkpoints
from gateway.pipelines.definitions import MATERIALIZED_VIEW, STREAMING_TABLE, Dataset
from gateway.pipelines.prepare import Prepared
from gateway.pipelines.warehouse import version

# What fills a table again, also when no row comes of it.
_FILLING = ("WRITE", "STREAMING UPDATE", "MERGE", "RESTORE")


@dataclass(frozen=True, slots=True)
class Before:
    """A table before the run `run`: its newest version; for a streaming table the folder and names of its checkpoints."""

    table: str
    folder: str
    version: int
    run: str
    place: str = ""
    checkpoints: Sequence[str] = ()


def record(prepared: Prepared, anew: Sequence[Dataset], run: str) -> list[Before]:
    """The tables with rows that a run will empty: all materialized views, and the streaming tables among `anew`.

    Streaming tables whose checkpoints are on another file system are left out: they cannot be put back together.
    """
    found = []
    for table in prepared.definitions.tables():
        folder = prepared.folder(table)
        newest = version(folder)
        if newest is None:
            continue
        if table.kind == MATERIALIZED_VIEW:
            found.append(Before(table.label, str(folder), newest, run))
        elif table in anew and (place := checkpoints.place(prepared.project, table.id)) is not None:
            found.append(Before(table.label, str(folder), newest, run, str(place), checkpoints.numbers(place)))
    return found


def set_aside(prepared: Prepared, anew: Sequence[Dataset], run: str) -> None:
    """Set checkpoints of tables to be computed anew aside where Spark would go on with them."""
    for table in anew:
        place = checkpoints.place(prepared.project, table.id) if table.kind == STREAMING_TABLE else None
        if place is not None:
            checkpoints.set_aside(place, run)


def give_back(before: Before) -> str | None:
    """Give a table that was emptied and not filled again its rows of before, with the checkpoints that belong to them.

    What was done, in words; None if nothing was to be done. To be called when no Spark writes the table any more; calling it
    again does no harm.
    """
    try:
        return _give_back(before)
    except (GatewayError, OSError) as error:
        return f"warning: {before.table} cannot be given back its rows of before the run: {error}"


def _give_back(before: Before) -> str | None:
    newest = version(Path(before.folder))
    if newest is None or newest < before.version:
        return None  # somebody has removed it, or made it anew
    emptied, filled = _changes(before.folder, before.version)
    if filled:
        return None
    if before.place:
        checkpoints.put_back(Path(before.place), before.checkpoints, before.run)
    if not emptied:
        return None
    try:
        restore(before.folder, before.version)
    except GatewayError as error:
        if before.place:
            checkpoints.remove_all(Path(before.place))
        return f"warning: {before.table} is empty until the next run: {error.message}"
    return f"{before.table} has its rows of before the run again (version {before.version})"


def forget(before: Before) -> None:
    """The table is as it should be: remove what was kept for `give_back`."""
    if before.place:
        checkpoints.remove_aside(Path(before.place), before.run)


def _changes(folder: str, version: int) -> tuple[bool, bool]:
    """Whether commits after `version` have taken rows out, and whether one after these has filled the table again."""
    emptied = filled = False
    for number in log.commit_versions(folder):
        if number <= version:
            continue
        actions = log.actions(folder, number)
        removes = any(a["remove"].get("dataChange") for a in actions if "remove" in a)
        adds = any(a["add"].get("dataChange") for a in actions if "add" in a)
        operation = next((a["commitInfo"].get("operation") for a in actions if "commitInfo" in a), "")
        if adds or operation in _FILLING:
            filled = True
        elif removes:
            emptied, filled = True, False
    return emptied, filled
