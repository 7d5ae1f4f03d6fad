"""All that a table's log says of a snapshot, beyond what its readers need: for who copies, removes or rewrites files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from gateway.delta.containment import local_path
from gateway.delta.replay import Fields, State, replayed
from gateway.delta.table import Snapshot, moved, of_this_table
from gateway.delta.vectors import file_of
from gateway.errors import ServerError


def state_of(snapshot: Snapshot) -> State:
    """All that the log says of a snapshot's version. Raises ServerError; also if another table has come to its name."""
    with of_this_table(snapshot):
        state = replayed(snapshot.root, snapshot.version, snapshot.within)
    if str(state.metadata.get("id")) != snapshot.table_id:
        raise moved(snapshot.root)
    return state


def agreed_state(snapshot: Snapshot) -> State:
    """The same for who copies, removes or puts back files: what is live by it is what is read of the snapshot.

    Raises ServerError DELTA_LOG_CORRUPT: a checkpoint may say that a file is there and that it is gone.
    """
    state = state_of(snapshot)
    odd = {path for path, _ in state.files}.symmetric_difference(map(os.path.normpath, snapshot.files.paths))
    if odd:
        text = f"The log of the Delta table {snapshot.root} says in two ways whether the file {min(odd)} is in it."
        raise ServerError("DELTA_LOG_CORRUPT", text)
    return state


def specs_of(snapshot: Snapshot, paths: Sequence[str] | None = None) -> list[Fields]:
    """What the log says of each file of a snapshot, or of those of some places. Raises ServerError DELTA_LOG_CORRUPT."""
    state = state_of(snapshot)
    by_path = {path: spec for (path, _), spec in state.files.items()}
    try:
        return [by_path[os.path.normpath(path)] for path in (snapshot.files.paths if paths is None else paths)]
    except KeyError as error:
        text = f"The log of the Delta table {snapshot.root} does not list the file {error}."
        raise ServerError("DELTA_LOG_CORRUPT", text) from error


def missing_of(root: str, specs: Iterable[Fields]) -> str | None:
    """The first of the data files and deletion vectors of a log's ``add``s that is not there, as VACUUM may have removed it."""
    for spec in specs:
        vector = spec.get("deletionVector")
        places = [local_path(root, spec["path"]) or spec["path"], None if vector is None else file_of(root, vector)]
        for path in places:
            if path is not None and not os.path.isfile(path):
                return str(path)
    return None
