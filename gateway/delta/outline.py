"""What a table is without its files: its columns and its comment, for lists of thousands of tables.

Read from the log itself, as long as it is a few small commits from the first on, or behind a Parquet checkpoint, of which is
read what it says of the table; for all others, and for whatever looks odd, there is no outline, and the table is to be opened.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from dataclasses import dataclass
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple

import pyarrow as pa

from gateway.delta import log
from gateway.delta.containment import Within, is_within, opened
from gateway.delta.features import check_readable
from gateway.delta.replay import read_actions
from gateway.delta.schema import parse_schema, struct_of
from gateway.delta.table import mapping_of
from gateway.errors import GatewayError
from gateway.sqltypes import StructType
from gateway.worker_jobs import marker_of

_MOST_COMMITS, _MOST_BYTES = 10, 256 * 1024
_OF_TABLE = ("protocol", "metaData")
_KEPT = 50_000
_STUMBLES = (GatewayError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, pa.ArrowException)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Outline:
    """The columns of a table's newest version, and its comment. Two are never equal: it may be asked for by its identity."""

    schema: StructType
    comment: str | None


@dataclass(frozen=True, slots=True)
class _Kept:
    """An outline with what shows that it still holds: the newest commit, and that there is no newer one."""

    outline: Outline
    newest: str
    following: str
    marker: tuple[int, ...]

    def holds(self) -> bool:
        # Most are asked of tables that have not changed; `access` finds out without an exception that a file is not there.
        return marker_of(self.newest) == self.marker and not os.access(self.following, os.F_OK)


_lock = Lock()
_kept: OrderedDict[str, _Kept] = OrderedDict()


def kept_of(root: str) -> Outline | None:
    """The outline that is kept of the table in a folder, if it holds."""
    known = _kept.get(root)
    return known.outline if known is not None and known.holds() else None


def outline_of(root: str, within: Within) -> Outline | None:
    """The outline of the table in the real folder `root`; None if only opening it tells. Raises nothing."""
    known = kept_of(root)
    if known is not None:
        return known
    try:
        found = _read(root, within)
    except _STUMBLES:  # opening the table tells what is wrong
        return None
    if found is None:
        return None
    with _lock:
        _kept[root] = found
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return found.outline


def _read(root: str, within: Within) -> _Kept | None:
    place = f"{root}/{log.LOG}"
    if "%" in root or os.path.realpath(place) != place or not is_within(place, within):
        return None
    found = _listed(place)
    if found is None or (found.checkpoint and log.lost_checkpoint(root) is not None):
        return None
    newest, following = (log.commit_path(root, found.commits.stop + i) for i in (-1, 0))
    marker = marker_of(newest)
    protocol: Any = None
    metadata: dict[str, Any] = {}
    of_checkpoint = (read_actions(f"{place}/{name}", within, _OF_TABLE) for name in found.checkpoint)
    of_commits = (_actions(log.commit_path(root, version)) for version in found.commits)
    for action in chain.from_iterable((*of_checkpoint, *of_commits)):
        protocol = action.get("protocol", protocol)
        metadata = action.get("metaData", metadata)
    read = log.protocol_of(protocol)
    comment = metadata.get("description")
    if read is None or not (comment is None or isinstance(comment, str)):
        return None
    check_readable(read, root)
    columns = parse_schema(
        json.loads(metadata["schemaString"]), mapping_of(read, metadata.get("configuration") or {}, root)
    )
    kept = _Kept(Outline(struct_of(columns), comment), newest, following, marker)
    return kept if marker and kept.holds() else None


class _Listed(NamedTuple):
    """What is to be read of a log: the files of its newest checkpoint, and the commits behind it."""

    checkpoint: list[str]
    commits: range


def _listed(place: str) -> _Listed | None:
    """That of a log which is nothing but files of known kinds, with a few small commits to read; None for others."""
    sizes: dict[int, int] = {}
    checkpoints: list[str] = []
    hinted = False
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name.endswith(".crc"):
                continue
            if not entry.is_file(follow_symlinks=False):
                return None
            if entry.name[log.DIGITS :] == ".json" and log.is_version(entry.name):
                sizes[int(entry.name[: log.DIGITS])] = entry.stat(follow_symlinks=False).st_size
            elif log.is_checkpoint(entry.name) and entry.name.endswith(".parquet"):
                checkpoints.append(entry.name)
            elif entry.name == log.HINT:
                hinted = True
            else:
                return None
    whole = log.whole_checkpoints(checkpoints)
    start = max(whole, default=-1)
    behind = sorted(version for version in sizes if version > start)
    commits = range(start + 1, start + 1 + len(behind))
    known = behind == list(commits) and (start in sizes or bool(behind)) and (start >= 0 or not (hinted or checkpoints))
    few = len(behind) <= _MOST_COMMITS and sum(sizes[version] for version in behind) <= _MOST_BYTES
    return _Listed(whole.get(start, []), commits) if known and few else None


def _actions(path: str) -> list[dict[str, Any]]:
    """The actions of a commit. Raises ValueError for what is none."""
    with os.fdopen(opened(path, ()), "rb") as file:
        found = [json.loads(line) for line in file if line.strip()]
    if not found or not all(isinstance(action, dict) for action in found):
        raise ValueError(path)
    return found
