"""All files that a log names, of whatever version: looked at before something else than our own reader follows them.

Our reader takes the paths of one version, one by one (`delta.table`); Spark and the reader of deletion vectors take what the
log says. Here all of the log is read, once per file of it: commits, checkpoints, their sidecars and checksums.
"""

from __future__ import annotations

import json
import os
import re
from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.delta.containment import (
    Within,
    check_still_there,
    check_tree,
    end_of_link,
    is_under,
    is_within,
    local_path,
    not_allowed,
    opened,
    source,
)
from gateway.delta.log import LOG
from gateway.errors import GatewayError, ServerError, UserError

_SIDECARS = "_sidecars"
_OF_READERS = ("", _SIDECARS, "_staged_commits")  # folders of a log
# Actions whose paths are files.
_FILES = ("add", "remove", "cdc", "allFiles")
_DELETION_VECTOR = "deletionVector"
_COLUMNS = [f"{kind}.path" for kind in ("add", "remove", "cdc", "sidecar")] + [
    f"{kind}.{_DELETION_VECTOR}.{name}" for kind in ("add", "remove") for name in ("storageType", "pathOrInlineDv")
]
_UUID = 20  # characters of a deletion vector's name in a log
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_KEPT_TABLES = 256

# Per log and file of it: its identity, and the paths in it that lie outside of the table's folder.
_Known = dict[str, tuple[tuple[int, ...], tuple[str, ...]]]


class _Looked:
    """What was found in the logs of tables that were looked at lately."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tables: OrderedDict[tuple[str, Within], _Known] = OrderedDict()

    def of(self, root: str, within: Within) -> _Known:
        with self._lock:
            known = self._tables.setdefault((root, within), {})
            self._tables.move_to_end((root, within))
            while len(self._tables) > _KEPT_TABLES:
                self._tables.popitem(last=False)
        return known


_LOOKED = _Looked()


def check_for_others(root: str, within: Within, writes: bool) -> None:
    """Raise PATH_NOT_ALLOWED unless all that Spark could follow from a table's folder stays `within` folders.

    A statement that `writes` goes through no link at all: Spark's VACUUM removes what lies behind one.
    """
    check_still_there(root)
    check_tree(root, () if writes else within)
    check_logged(root, within)


def check_log(root: str, within: Within) -> None:
    """Before a log is read: an error about a line of it quotes the line, so all of it must be the server's own."""
    place = f"{root}/{LOG}"
    try:
        if os.path.islink(place):
            end_of_link(place, within)
        check_tree(place, within)
        if _may_have_sidecars(place, within):
            check_logged(root, within)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError("PATH_NOT_FOUND", f"{root} is not a Delta table.") from error


def _may_have_sidecars(place: str, within: Within) -> bool:
    for name in os.listdir(place):
        if ".checkpoint." in name and name[:1].isdigit():
            if not name.endswith(".checkpoint.parquet") and name.count(".") > 2 and "-" in name:  # named by a UUID
                return True
            try:
                with source(os.path.join(place, name), within) as file:
                    if "sidecar" in pq.read_schema(file).names:
                        return True
            except (OSError, pa.ArrowException):
                continue  # damaged: the log's reader says so
    return False


def check_logged(root: str, within: Within) -> None:
    """Raise PATH_NOT_ALLOWED if a log names a file that does not lie `within` folders."""
    known = _LOOKED.of(root, within)
    for folder in _OF_READERS:
        place = os.path.join(root, LOG, folder).rstrip("/")
        try:
            names = [n for n in os.listdir(place) if (folder and n[:1] != ".") or n[:1].isdigit()]
        except (FileNotFoundError, NotADirectoryError):
            continue
        for name in names:
            path = os.path.join(place, name)
            try:
                found = os.stat(path)
            except FileNotFoundError:
                continue  # cleaned up
            identity = (found.st_ino, found.st_mtime_ns, found.st_size)
            entry = known.get(path)
            if entry is None or entry[0] != identity:
                entry = known[path] = identity, tuple(_outside(root, path, within))
            for other in entry[1]:
                _check(root, other, within)


def _outside(root: str, path: str, within: Within) -> Iterator[str]:
    """Paths in a file of the log that lie outside of the table's folder. Raises for those that are nowhere."""
    for logged, absolute in _logged(root, path, within):
        found = None if _SCHEME.match(logged) and logged[:5].lower() != "file:" else local_path(root, logged)
        relative = logged[:1] != "/" and ":" not in logged
        if found is None or "\0" in found or (absolute and relative):
            raise _elsewhere(root, logged)
        if not is_under(os.path.normpath(found), root):
            _check(root, found, within)
            yield found


def _check(root: str, path: str, within: Within) -> None:
    if not is_within(os.path.realpath(path), within):
        raise _elsewhere(root, path)


def _elsewhere(root: str, logged: str) -> UserError:
    return not_allowed(f"The Delta table {root} lists a file outside of its folder ({logged}), which")


def _logged(root: str, path: str, within: Within) -> Iterator[tuple[str, bool]]:
    """Paths as spelt in a file of the log; whether one of them has to be absolute."""
    try:
        if path.endswith(".parquet"):
            with source(path, within) as file, pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches(columns=_COLUMNS):
                    for action in batch.to_pylist():
                        _check_sidecar(root, action)
                        yield from _paths(action)
        elif path.endswith((".json", ".crc")):
            with os.fdopen(opened(path, within), encoding="utf-8") as lines:
                for line in lines:
                    if line.strip():
                        action = json.loads(line)
                        _check_sidecar(root, action)
                        yield from _paths(action)
    except GatewayError:
        raise
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise ServerError("DELTA_LOG_CORRUPT", f"The file {path} of a Delta table's log is damaged.") from error


def _check_sidecar(root: str, action: dict[str, Any]) -> None:
    """A sidecar has paths of its own, so it must be one of those that are read here."""
    sidecar = action.get("sidecar")
    if sidecar is None or sidecar.get("path") is None:
        return
    folder = os.path.join(root, LOG, _SIDECARS)
    path = local_path(folder, sidecar["path"]) or ""
    name = os.path.basename(path)
    if os.path.dirname(path) != folder or name[:1] == "." or not name.endswith((".parquet", ".json")):
        raise _elsewhere(root, sidecar["path"])


def _paths(action: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    for kind in _FILES:
        found = action.get(kind)
        for file in found if isinstance(found, list) else [found] if found is not None else []:
            if file.get("path") is not None:
                yield file["path"], False
            vector = file.get(_DELETION_VECTOR)
            if vector is None or vector.get("storageType") is None:
                continue
            name = vector["pathOrInlineDv"]
            if vector["storageType"] == "p":
                yield name, True
            elif vector["storageType"] == "u" and name[:-_UUID] and not name[:-_UUID].isalnum():
                yield f"{name[:-_UUID]}/deletion_vector", False


__all__ = ["check_for_others", "check_log", "check_logged"]
