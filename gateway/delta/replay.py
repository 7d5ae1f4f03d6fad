"""All that a log says of one version, as its actions: what statistics, deletion vectors and tombstones are spelt like.

`delta.table` knows which files there are; who takes files out of a table, or puts them back, must repeat what the log says of
them. Read once per statement that needs it: the newest checkpoint up to the version, then the commits behind it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.delta import log
from gateway.delta.checkpoint_facts import SIDECAR, VECTOR, leaves, says
from gateway.delta.containment import Within, local_path, opened, source
from gateway.delta.log import LOG
from gateway.delta.parsed_statistics import PARSED, instants_of, opened_checkpoint, with_texts
from gateway.errors import GatewayError, ServerError

Fields = dict[str, Any]
#: What tells a file from another: where it lies, and its deletion vector.
Key = tuple[str, str | None]
_COLUMNS = ("protocol", "metaData", "add", "remove", "txn", "domainMetadata", "sidecar")
# Columns of checkpoints that say again, for readers, what others say.
_AGAIN = (PARSED, "partitionValues_parsed")
_TYPES = {
    "path": str,
    "size": int,
    "deletionTimestamp": int,
    "partitionValues": dict,
    "deletionVector": dict,
    "stats": str,
    "baseRowId": int,
    "defaultRowCommitVersion": int,
}
_OTHERS: dict[str, dict[str, type]] = {
    "txn": {"appId": str, "version": int},
    "domainMetadata": {"domain": str, "configuration": str},
}
_MAPS = ("partitionValues", "tags", "configuration", "options")


@dataclass(slots=True)
class State:
    """The actions that hold at a version; files by `key_of`, `removed` those that are gone but may still lie there."""

    version: int
    protocol: Fields = field(default_factory=dict)
    metadata: Fields = field(default_factory=dict)
    files: dict[Key, Fields] = field(default_factory=dict)
    removed: dict[Key, Fields] = field(default_factory=dict)
    domains: dict[str, Fields] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)  # versions of applications

    def take(self, root: str, action: Fields) -> None:
        """What one action changes."""
        for kind, spec in action.items():
            match kind:
                case "add" | "remove":
                    check_file(root, spec)
                    key = key_of(root, spec)
                    there, gone = (self.files, self.removed) if kind == "add" else (self.removed, self.files)
                    gone.pop(key, None)
                    there[key] = spec
                case "protocol":
                    self.protocol = spec
                case "metaData":
                    self.metadata = spec
                case "txn":
                    check_other(root, kind, spec)
                    self.transactions[spec["appId"]] = spec["version"]
                case "domainMetadata":
                    check_other(root, kind, spec)
                    self.domains[spec["domain"]] = spec


def check_file(root: str, spec: Fields) -> None:
    """Raise ServerError DELTA_LOG_CORRUPT for an action of a file whose fields are of other types than the protocol's."""
    wrong = [name for name, kind in _TYPES.items() if spec.get(name) is not None and type(spec[name]) is not kind]
    path = spec.get("path")
    if wrong or path is None or "\0" in unquote(path):
        text = f"The log of the Delta table {root} has an action whose {', '.join(wrong) or 'path'} is none: {str(path)[:200]}."
        raise ServerError("DELTA_LOG_CORRUPT", text)


def check_other(root: str, kind: str, spec: object) -> None:
    """Raise ServerError DELTA_LOG_CORRUPT for a transaction or domain whose fields are of other types than the protocol's."""
    wanted = _OTHERS[kind].items()
    if not isinstance(spec, dict) or any(type(spec.get(name)) is not type_ for name, type_ in wanted):
        text = f"The log of the Delta table {root} has a {kind} that is none: {str(spec)[:200]}."
        raise ServerError("DELTA_LOG_CORRUPT", text)


def key_of(root: str, spec: Fields) -> Key:
    """The key of an ``add`` or ``remove``."""
    path = local_path(root, spec["path"])
    return (os.path.normpath(path) if path is not None else spec["path"], vector_id(spec.get("deletionVector")))


def vector_id(vector: Fields | None) -> str | None:
    """What the protocol tells deletion vectors apart by; None without one."""
    if vector is None:
        return None
    name = f"{vector['storageType']}{vector['pathOrInlineDv']}"
    return name if vector.get("offset") is None else f"{name}@{vector['offset']}"


def removal(spec: Fields, moment: int, changes_data: bool) -> Fields:
    """The ``remove`` of an ``add``."""
    kept = ("partitionValues", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")
    return {
        "path": spec["path"],
        "deletionTimestamp": moment,
        "dataChange": changes_data,
        "extendedFileMetadata": True,
        **{name: spec[name] for name in kept if spec.get(name) is not None},
    }


def replayed(root: str, version: int, within: Within) -> State:
    """The state of a table at `version`, whose log was looked at before. Raises ServerError DELTA_LOG_CORRUPT."""
    with damage_told(root):
        names = os.listdir(f"{root}/{LOG}")
        start, files = _checkpoint(names, version)
        state = State(version)
        for name in files:
            for action in read_actions(f"{root}/{LOG}/{name}", within):
                sidecar = action.pop("sidecar", None)
                if sidecar is not None:
                    for other in read_actions(_sidecar_path(root, sidecar), within):
                        _check_of_sidecar(root, other)
                        state.take(root, other)
                state.take(root, action)
        for number in range(start + 1, version + 1):
            for action in log.actions(root, number):
                state.take(root, action)
        if not state.protocol or not state.metadata:
            raise KeyError("protocol and metaData")
    return state


def _check_of_sidecar(root: str, action: Fields) -> None:
    """Raise ServerError DELTA_LOG_CORRUPT for what is no action of a file: who reads files alone would not see it."""
    for kind in action.keys() - {"add", "remove"}:
        raise ServerError("DELTA_LOG_CORRUPT", f"The log of the Delta table {root} has a {kind} in a sidecar.")


def checkpoint_lists_vectors(root: str, version: int, within: Within) -> bool:
    """Whether the newest checkpoint up to a version may list a deletion vector, by the one column that tells."""
    with damage_told(root):
        _, files = _checkpoint(os.listdir(f"{root}/{LOG}"), version)
        return any(_may_list_vectors(f"{root}/{LOG}/{name}", within) for name in files)


def _may_list_vectors(path: str, within: Within) -> bool:
    return path.endswith(".json") or says(path, SIDECAR, within) or says(path, VECTOR, within)


def checkpoint_parts(root: str, version: int, within: Within) -> list[str]:
    """The Parquet files of the newest whole checkpoint up to a version, sidecars among them."""
    return [path for path in checkpoint_files(root, version, within)[1] if path.endswith(".parquet")]


def checkpoint_files(root: str, version: int, within: Within) -> tuple[int, list[str]]:
    """The version of the newest whole checkpoint up to one, and all its files, sidecars among them; (-1, []) for none."""
    start, names = _checkpoint(os.listdir(f"{root}/{LOG}"), version)
    parts = [f"{root}/{LOG}/{name}" for name in names]
    return start, [other for part in parts for other in (part, *_sidecars(root, part, within))]


def _sidecars(root: str, path: str, within: Within) -> list[str]:
    if not path.endswith(".json") and not says(path, SIDECAR, within):
        return []
    return [_sidecar_path(root, action["sidecar"]) for action in read_actions(path, within) if "sidecar" in action]


def _sidecar_path(root: str, sidecar: Fields) -> str:
    """Where a sidecar lies, whose path is one of the log's, URI-encoded and maybe absolute."""
    folder = f"{root}/{LOG}/_sidecars"
    return f"{folder}/{os.path.basename(local_path(folder, sidecar['path']) or '')}"


@contextmanager
def damage_told(root: str) -> Iterator[None]:
    """What a damaged log makes its readers raise as ServerError DELTA_LOG_CORRUPT of the table."""
    try:
        yield
    except GatewayError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, pa.ArrowException) as error:
        text = f"The log of the Delta table {root} cannot be read: {str(error)[:300]}"
        raise ServerError("DELTA_LOG_CORRUPT", text) from error


def _checkpoint(names: list[str], version: int) -> tuple[int, list[str]]:
    """The version of the newest whole checkpoint up to one, and its files; (-1, []) for none."""
    whole = log.whole_checkpoints(names)
    newest = max((number for number in whole if number <= version), default=-1)
    return newest, whole.get(newest, [])


def read_actions(path: str, within: Within, kinds: Collection[str] = _COLUMNS) -> Iterator[Fields]:
    """The actions of a file of a log, as JSON has them; of a checkpoint's those of some kinds are read."""
    if path.endswith(".json"):
        with os.fdopen(opened(path, within), encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    yield log.without_nulls(json.loads(line))
        return
    with source(path, within) as file, opened_checkpoint(file) as parquet:
        again = _AGAIN[1:] if _lacks_texts(parquet) else _AGAIN
        wanted = [n for n in leaves(parquet) if n.split(".")[0] in kinds and not set(again) & set(n.split("."))]
        instants = instants_of(parquet)
        for batch in parquet.iter_batches(columns=wanted):
            for kind, specs in zip(batch.schema.names, batch.columns, strict=True):
                told = with_texts(specs, instants) if kind == "add" else specs
                yield from ({kind: _fields(spec)} for spec in told.drop_null().to_pylist())


def _lacks_texts(parquet: pq.ParquetFile) -> bool:
    """Whether statistics of files may be there as structs alone."""
    found = leaves(parquet)
    if not any(name.startswith(f"add.{PARSED}.") for name in found):
        return False
    missing = _missing(parquet, "add.stats") if "add.stats" in found else None
    return missing is None or missing != _missing(parquet, "add.path")


def _missing(parquet: pq.ParquetFile, leaf: str) -> int | None:
    """In how many rows a column is NULL, if all row groups tell."""
    at, metadata = leaves(parquet).index(leaf), parquet.metadata
    known = [metadata.row_group(i).column(at).statistics for i in range(metadata.num_row_groups)]
    told = all(one is not None and one.has_null_count for one in known)
    return sum(one.null_count for one in known) if told else None


def _fields(spec: Fields) -> Fields:
    """A row of a checkpoint as JSON has it: without what is not there, maps as objects."""
    out: Fields = {}
    for name, value in spec.items():
        if value is None:
            continue
        if isinstance(value, dict):
            value = _fields(value)
        elif name in _MAPS and isinstance(value, list):  # of a domain the configuration is a text
            value = dict(value)
        out[name] = value
    return out


__all__ = [
    "Fields",
    "Key",
    "State",
    "check_file",
    "check_other",
    "checkpoint_files",
    "checkpoint_lists_vectors",
    "checkpoint_parts",
    "damage_told",
    "key_of",
    "read_actions",
    "removal",
    "replayed",
    "vector_id",
]
