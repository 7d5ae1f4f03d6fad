"""Instants that files are partitioned by and whose texts name no zone: Spark reads them by the clock of the session.

The protocol lets ``2024-01-01 00:00:00`` be a partition value of a TIMESTAMP column (as Delta-Spark wrote it before 3.3).
deltalake takes it for UTC's; which ones those are is asked of the log itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.delta import log
from gateway.delta.checkpoint_facts import leaves
from gateway.delta.containment import Within, source
from gateway.delta.parsed_statistics import opened_checkpoint
from gateway.delta.replay import checkpoint_files, damage_told, read_actions, replayed
from gateway.instants import Zone, to_instant
from gateway.worker_jobs import marker_of

_VALUES = "partitionValues"
_BARE = r"^\s*\d+-\d+-\d+(?:[ T]\d+:\d+:\d+(?:\.\d*)?)?\s*$"
Mask = npt.NDArray[np.bool_]


def zoneless(
    root: str, version: int, within: Within, names: Mapping[str, str], paths: Sequence[str]
) -> dict[str, Mask]:
    """For each file, whether its value has no zone, of each of some columns for which any has none.

    `names` are the physical names of TIMESTAMP columns by their logical ones, `paths` where the files lie on the disk.
    Raises ServerError DELTA_LOG_CORRUPT.
    """
    if not names or not paths:
        return {}
    with damage_told(root):
        if not _has_any(root, version, within, frozenset(names.values())):
            return {}
        state = replayed(root, version, within)
        told = {path: spec.get(_VALUES) or {} for (path, _), spec in state.files.items()}
        found = {}
        for name, physical in names.items():
            texts = pa.array([told.get(os.path.normpath(path), {}).get(physical) for path in paths], pa.string())
            bare = pc.match_substring_regex(texts, _BARE).fill_null(False).to_numpy(zero_copy_only=False)
            if bare.any():
                found[name] = bare
        return found


def _has_any(root: str, version: int, within: Within, names: frozenset[str]) -> bool:
    """Whether a file of the newest checkpoint, or a commit behind it, has such a value."""
    start, files = checkpoint_files(root, version, within)
    commits = (log.commit_path(root, number) for number in range(start + 1, version + 1))
    return any(_is_in(path, marker_of(path), within, names) for path in (*files, *commits))


@lru_cache(maxsize=1 << 16)
def _is_in(path: str, _: tuple[int, ...], within: Within, names: frozenset[str]) -> bool:
    if path.endswith(".parquet"):
        return any(_is_bare(texts) for texts in _of_checkpoint(path, within, names))
    adds = (action["add"].get(_VALUES) or {} for action in read_actions(path, within) if "add" in action)
    return _is_bare(pa.array([values.get(name) for values in adds for name in names], pa.string()))


def _of_checkpoint(path: str, within: Within, names: frozenset[str]) -> Iterator[pa.Array]:
    """The values of some columns in a checkpoint: the column of all files' values alone is read of it."""
    with source(path, within) as file, opened_checkpoint(file) as parquet:
        wanted = [name for name in leaves(parquet) if name.startswith(f"add.{_VALUES}.")]
        for batch in parquet.iter_batches(columns=wanted) if wanted else ():
            values = pc.struct_field(batch.column(0), _VALUES)
            yield values.items.filter(pc.is_in(values.keys, pa.array(sorted(names))))


def _is_bare(texts: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, _BARE)).as_py())


def in_zone(values: pa.Array, bare: Mask, zone: Zone) -> pa.Array:
    """Instants of which some are the wall clock of `zone` so far, as UTC's."""
    micros = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    moved = np.where(bare, to_instant(micros, zone), micros)
    return pa.array(moved, mask=values.is_null().to_numpy(zero_copy_only=False)).cast(values.type)
