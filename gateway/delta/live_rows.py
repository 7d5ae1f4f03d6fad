"""Which rows of a table's data files are alive, by the deletion vectors that its log lists."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import chain
from urllib.parse import unquote, urlparse

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable

from gateway.delta import log
from gateway.delta.containment import Within
from gateway.delta.features import Protocol
from gateway.delta.log_paths import Vector, check_logged, logged_vectors
from gateway.delta.replay import checkpoint_lists_vectors, replayed
from gateway.delta.vectors import check_vector, deleted_by, live_mask
from gateway.errors import ServerError

_UNSCANNABLE = frozenset({"typeWidening", "typeWidening-preview", "vacuumProtocolCheck"})


def live_masks(
    root: str, table: DeltaTable, protocol: Protocol, paths: list[str], records: pa.Array | None, within: Within
) -> dict[int, npt.NDArray[np.bool_]]:
    """A mask for each file with a deletion vector, by its place among `paths`. Raises ServerError for what is damaged."""
    if not protocol.has("deletionVectors"):
        _check_without_vectors(root, table.version(), within)
        return {}  # deltalake would open what the log lists, which is nowhere looked at
    if not _may_have_vectors(root, table.version(), within):
        return {}
    check_logged(root, within)  # deltalake opens the files of vectors by the log alone
    logged = logged_vectors(root, within, table.version())
    row_of = {os.path.normpath(path): row for row, path in enumerate(paths)}
    rows: list[int | None] = [None] * len(paths) if records is None else records.to_pylist()
    for path, vectors in logged.items():
        row = row_of.get(os.path.normpath(path))
        if row is not None:
            for vector in vectors:
                check_vector(root, vector, within, rows[row])
    if not _UNSCANNABLE & protocol.reader_features and not any(map(_is_bare, chain.from_iterable(logged.values()))):
        return _masks(root, table, paths, logged)
    # deltalake does not scan these tables, and its deletion vectors come from its scan; or it does not find their files.
    found = _own_vectors(root, table.version(), row_of, within) if logged else {}
    for at, mask in found.items():
        most = rows[at]
        if most is not None and len(mask) > most:
            raise ServerError("DELTA_LOG_CORRUPT", f"A deletion vector of {root} has rows that {paths[at]} lacks.")
    return found


def _is_bare(vector: Vector) -> bool:
    """Whether the file of a deletion vector is named by a path without a scheme, which deltalake takes for no place."""
    return vector.get("storageType") == "p" and str(vector.get("pathOrInlineDv")).startswith("/")


def _may_have_vectors(root: str, version: int, within: Within) -> bool:
    return log.may_list_vectors(root, version) or checkpoint_lists_vectors(root, version, within)


def _check_without_vectors(root: str, version: int, within: Within) -> None:
    """Raise for a file with a deletion vector in a table that has none: which rows it has, readers would not agree on."""
    if not _may_have_vectors(root, version, within):
        return
    if any(spec.get("deletionVector") is not None for spec in replayed(root, version, within).files.values()):
        text = f"The log of the Delta table {root} lists a deletion vector, which its protocol does not have."
        raise ServerError("DELTA_LOG_CORRUPT", text)


def _masks(
    root: str, table: DeltaTable, paths: list[str], logged: Mapping[str, Sequence[Vector]]
) -> dict[int, npt.NDArray[np.bool_]]:
    """Deletion vectors as deltalake reads them."""
    vectors = pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all()
    if not vectors.num_rows:
        return {}
    row_of = {path: row for row, path in enumerate(paths)}
    out: dict[int, npt.NDArray[np.bool_]] = {}
    for batch in vectors.to_batches():
        masks = batch.column("selection_vector")
        for i, url in enumerate(batch.column("filepath").to_pylist()):
            path = unquote(urlparse(url).path)
            if path not in row_of:
                raise ServerError("DELTA_LOG_CORRUPT", f"A deletion vector of {root} belongs to no live file: {url}.")
            mask = masks[i].values.to_numpy(zero_copy_only=False).astype(bool)
            count = int(np.count_nonzero(~mask))
            if path in logged and count not in [vector.get("cardinality") for vector in logged[path]]:
                text = f"The deletion vector of {path} holds {count} rows, which is not what the log of {root} says."
                raise ServerError("DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH", text)
            out[row_of[path]] = mask
    return out


def _own_vectors(
    root: str, version: int, row_of: Mapping[str, int], within: Within
) -> dict[int, npt.NDArray[np.bool_]]:
    """Deletion vectors as the log and their files say, without deltalake."""
    out: dict[int, npt.NDArray[np.bool_]] = {}
    for (path, _), spec in replayed(root, version, within).files.items():
        vector = spec.get("deletionVector")
        if vector is not None:
            out[row_of[path]] = live_mask(deleted_by(root, vector, within))
    return out
