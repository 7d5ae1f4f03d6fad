"""COPY INTO: which files a table has been given, and the commit that gives it more of them, each once.

The log holds a transaction identifier of each file, in the commit that holds its rows: what tables are made of is known of one
by its commits and checkpoints, whoever writes these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from gateway.delta import commit, files
from gateway.delta.containment import Within
from gateway.delta.datafiles import DataFileWriter
from gateway.delta.logged import state_of
from gateway.delta.rewrite import Reads, check_read, publish_behind
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot
from gateway.delta.write import WriteResult, storage_errors
from gateway.errors import UserError, unsupported

_ID = "copy into: "
_SPECIAL = frozenset("\\^")
_LONGEST, _MOST = 4096, 2048  # characters of a pattern, and what it may stand for


def identifier(path: str) -> str:
    """What a log calls the loading of a file."""
    return f"{_ID}{path}"


def loaded_files(snapshot: Snapshot) -> set[str]:
    """The files that a table has been given by COPY INTO."""
    known = state_of(snapshot).transactions
    return {name.removeprefix(_ID) for name in known if name.startswith(_ID)}


def chosen_files(folder: str, within: Within, names: Sequence[str] | None, pattern: str | None) -> list[str]:
    """The files of a folder (real) by their names, or by a pattern; all of them without either.

    Raises UserError PATH_NOT_FOUND for a name that none has, UnsupportedError for sub-folders.
    """
    there = files.listed(folder, within)
    if names is not None:
        by_name = {os.path.basename(path): path for path in there}
        missing = next((name for name in names if name not in by_name), None)
        if missing is not None:
            if "/" in missing:
                raise unsupported(f"COPY INTO of a file in a sub-folder ({missing})")
            raise UserError("PATH_NOT_FOUND", f"Path does not exist: {folder}/{missing}.")
        return sorted({by_name[name] for name in names})
    if pattern is None:
        return there
    if not _SPECIAL.isdisjoint(pattern) or "/" in pattern:
        raise unsupported(f"the pattern {pattern!r}")
    return [path for path in there if matches(pattern, os.path.basename(path))]


def matches(pattern: str, name: str) -> bool:
    """Whether a name is one of a pattern's: ``*``, ``?``, ``[abc]``, ``[a-c]``, ``{ab,c}``."""
    return any(_matches(one, name) for one in _alternatives(pattern))


@lru_cache(maxsize=256)
def _alternatives(pattern: str) -> tuple[str, ...]:
    """The patterns without braces that one stands for, few: their number grows with each pair of braces."""
    if len(pattern) > _LONGEST:
        raise unsupported(f"a pattern of more than {_LONGEST} characters")
    found: list[str] = []
    open_ones, looked_at = [pattern], 0
    while open_ones:
        one = open_ones.pop()
        looked_at += 1
        several = _opened(one)
        if looked_at + len(open_ones) + len(several) > _MOST:
            raise unsupported(f"a pattern that stands for more than {_MOST} others")
        open_ones += several
        if not several:
            found.append(one)
    return tuple(found)


def _opened(pattern: str) -> list[str]:
    """A pattern once for each alternative of its first braces; nothing without braces."""
    start = pattern.find("{")
    if start < 0:
        return []
    depth, parts, at = 0, [start + 1], start
    for at in range(start, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[at], 0)
        if depth == 1 and pattern[at] == ",":
            parts.append(at + 1)
        if not depth:
            break
    if depth:
        raise unsupported(f"the pattern {pattern!r}")
    ends = [*(p - 1 for p in parts[1:]), at]
    return [pattern[:start] + pattern[a:b] + pattern[at + 1 :] for a, b in zip(parts, ends, strict=True)]


def _matches(pattern: str, name: str) -> bool:
    """Without alternatives: the places of `name` that the pattern may have come to, step by step."""
    places, at = {0}, 0
    while at < len(pattern) and places:
        if pattern[at] == "*":
            places, at = set(range(min(places), len(name) + 1)), at + 1
            continue
        accepts, at = _step(pattern, at)
        places = {p + 1 for p in places if p < len(name) and accepts(name[p])}
    return len(name) in places


def _step(pattern: str, at: int) -> tuple[Callable[[str], bool], int]:
    """Which characters the next of a pattern takes, and where it goes on."""
    if pattern[at] == "?":
        return lambda _: True, at + 1
    if pattern[at] != "[":
        return lambda c, wanted=pattern[at]: c == wanted, at + 1
    end = pattern.find("]", at + 1)
    inner = pattern[at + 1 : end]
    if end < 0 or not inner or inner.startswith("!"):
        raise unsupported(f"the pattern {pattern!r}")
    ranges: list[tuple[str, str]] = []
    i = 0
    while i < len(inner):
        last = inner[i + 2] if inner[i + 1 : i + 2] == "-" and i + 2 < len(inner) else inner[i]
        ranges.append((inner[i], last))
        i += 3 if last is not inner[i] and inner[i + 1 : i + 2] == "-" else 1
    return lambda c: any(low <= c <= high for low, high in ranges), end + 1


def copy_files(
    snapshot: Snapshot,
    paths: Sequence[str],
    batches: Iterable[pa.RecordBatch],
    columns: tuple[Column, ...],
    metadata: dict[str, Any] | None,
    again: bool,
    reads: Reads = (),
) -> WriteResult:
    """Add the rows of files to a table with `columns`, by `metadata` where that changes, in one commit; `reads` of its own.

    Raises UserError DELTA_CONCURRENT_TRANSACTION where another writer has loaded one of them meanwhile, but for files that are
    loaded `again`; what `rewrite.publish_behind` does.
    """
    root = snapshot.root
    partition_by, properties = snapshot.partition_columns, snapshot.properties
    with storage_errors(root), DataFileWriter(root, columns, partition_by, properties) as writer:
        for batch in batches:
            writer.write(batch)
        adds = writer.finish(settles=False)
        moment = commit.now_ms()
        loaded = [{"txn": {"appId": identifier(path), "version": 0, "lastUpdated": moment}} for path in paths]
        metrics = {"numFiles": writer.files, "numOutputRows": writer.rows, "numOutputBytes": writer.bytes}
        parameters = {"mode": "Append", "partitionBy": "[]"}
        info = commit.info_action("COPY INTO", parameters, metrics, metadata is None and not reads, snapshot.version)
        changed = [] if metadata is None else [{"metaData": metadata}]

        def check(newer: Snapshot) -> None:
            check_read(snapshot, newer, reads)
            if not again and not loaded_files(newer).isdisjoint(paths):
                text = (
                    f"Another writer has loaded files into the table {root} at the same time. Send the statement again."
                )
                raise UserError("DELTA_CONCURRENT_TRANSACTION", text, retryable=True)

        version = publish_behind(snapshot, [info, *changed, *loaded, *adds], check, writer.settle)
    commit.checkpoint_if_due(root, version, snapshot.properties)
    return WriteResult(version, writer.rows, writer.files, writer.bytes)
