"""What a table is without its files: its columns and its comment, for lists of thousands of tables.

Read from the commits themselves, as long as the log is nothing but a few small ones from the first on; for all others, and for
whatever looks odd, there is no outline, and the table is to be opened.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

from gateway.delta import log
from gateway.delta.containment import Within, is_within, opened
from gateway.delta.features import check_readable
from gateway.delta.schema import parse_schema, struct_of
from gateway.delta.table import mapping_of
from gateway.errors import GatewayError
from gateway.sqltypes import StructType
from gateway.worker_jobs import marker_of

_MOST_COMMITS, _MOST_BYTES = 10, 256 * 1024
_KEPT = 50_000
_STUMBLES = (GatewayError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


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
    count = _commits(place)
    if count is None:
        return None
    newest, following = log.commit_path(root, count - 1), log.commit_path(root, count)
    marker = marker_of(newest)
    protocol: Any = None
    metadata: dict[str, Any] = {}
    for version in range(count):
        for action in _actions(log.commit_path(root, version)):
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


def _commits(place: str) -> int | None:
    """How many commits a log has, if it has a few small ones from the first on, and nothing that stands for others."""
    versions: set[int] = set()
    size = 0
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name.endswith(".crc"):
                continue
            if not (entry.name[log.DIGITS :] == ".json" and log.is_version(entry.name)):
                return None
            if not entry.is_file(follow_symlinks=False) or len(versions) == _MOST_COMMITS:
                return None
            size += entry.stat(follow_symlinks=False).st_size
            versions.add(int(entry.name[: log.DIGITS]))
    return len(versions) if versions == set(range(len(versions))) and versions and size <= _MOST_BYTES else None


def _actions(path: str) -> list[dict[str, Any]]:
    """The actions of a commit. Raises ValueError for what is none."""
    with os.fdopen(opened(path, ()), "rb") as file:
        found = [json.loads(line) for line in file if line.strip()]
    if not found or not all(isinstance(action, dict) for action in found):
        raise ValueError(path)
    return found
