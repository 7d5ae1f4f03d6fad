"""Clones: a new table with the columns, properties and rows of another at one version, whose files it shares or copies.

A shallow clone's log names the files of its source by absolute paths; what is written to it, deletion vectors too, lies in its
own folder, so that the source never changes, nor does VACUUM of the clone look there. Who removes the source's files harms it.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from gateway.delta import at_work, commit, log
from gateway.delta.containment import held_folder, is_under, local_path, opened
from gateway.delta.features import Kept
from gateway.delta.log import IN_COMMIT_SINCE
from gateway.delta.logged import agreed_state, missing_of
from gateway.delta.metadata import logged_metadata
from gateway.delta.properties import asked
from gateway.delta.replay import Fields
from gateway.delta.scan import missing_file
from gateway.delta.table import Snapshot
from gateway.delta.vectors import encoded, file_of
from gateway.delta.write import beside, check_own, check_snapshot_writable, exists, storage_errors
from gateway.errors import UserError, unsupported

# What Java leaves as it is in the path of a URI.
_PLAIN = "/-_.!~*'():@&=+$,;"


@dataclass(frozen=True, slots=True)
class Cloned:
    """What CLONE did, in the order of its columns."""

    size: int
    files: int
    removed: int
    copied: int
    removed_bytes: int
    copied_bytes: int


def check_cloneable(path: str, source: Snapshot, properties: Mapping[str, str]) -> None:
    """Raise what keeps a clone of `source` with more `properties` from being made in the folder `path`."""
    check_own(path)
    if log.has_log(path):
        raise exists(path)
    if os.path.isdir(path) and os.listdir(path):
        raise UserError("LOCATION_ALREADY_EXISTS", f"The folder {path} exists and is not a Delta table.")
    check_snapshot_writable(source, kept=Kept.BY_STATEMENT)
    wanted = asked(properties)
    if any(not source.protocol.has(name) for name in wanted.features):
        raise unsupported(f"a clone with properties that its source has no features for ({', '.join(wanted.features)})")


def clone(
    path: str,
    source: Snapshot,
    name: str,
    deep: bool,
    properties: Mapping[str, str],
    alive: Callable[[], None],
    claim: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Cloned:
    """Make the clone of `source`, called `name`, in the folder `path`; nothing is there if it raises. See `write.beside`."""
    check_cloneable(path, source, properties)
    state = agreed_state(source)
    given = asked(properties).properties
    metadata = logged_metadata(source)
    configuration = {k: v for k, v in metadata.get("configuration", {}).items() if not k.startswith(IN_COMMIT_SINCE)}
    metadata = {**metadata, "id": str(uuid.uuid4()), "configuration": {**configuration, **given}}
    size = sum(int(spec["size"]) for spec in state.files.values())
    missing = missing_of(source.root, state.files.values())
    if missing is not None:
        raise missing_file(source.root, missing)
    with storage_errors(path), beside(path, False, claim) as folder:
        copier = _Copier(source, folder, alive)
        adds = [copier.copied(spec) if deep else _shared(source.root, spec) for spec in state.files.values()]
        done = Cloned(size, len(adds), 0, len(adds) if deep else 0, 0, size if deep else 0)
        parameters: dict[str, Any] = {"source": name, "sourceVersion": source.version}
        if deep:
            parameters["isShallow"] = False
        metrics = {
            "sourceTableSize": size,
            "sourceNumOfFiles": len(adds),
            "numRemovedFiles": 0,
            "numCopiedFiles": done.copied,
            "removedFilesSize": 0,
            "copiedFilesSize": done.copied_bytes,
        }
        domains = [{"domainMetadata": spec} for spec in state.domains.values() if not spec.get("removed")]
        # Which files COPY INTO has loaded, and how far streams have come, goes with copies of all files.
        done_by = [{"txn": {"appId": app, "version": at}} for app, at in state.transactions.items()] if deep else []
        actions: list[commit.Action] = [
            commit.info_action("CLONE", parameters, metrics, False, -1),
            {"protocol": state.protocol},
            {"metaData": metadata},
            *domains,
            *done_by,
            *({"add": spec} for spec in adds),
        ]
        commit.publish(folder, 0, commit.stamped(folder, -1, metadata["configuration"], actions))
    return done


def _shared(root: str, spec: Fields) -> Fields:
    """The ``add`` of a file where it is."""
    found = {**spec, "path": _uri(root, spec["path"]), "dataChange": True}
    vector = spec.get("deletionVector")
    if vector is not None and vector["storageType"] == "u":
        place = file_of(root, vector)
        assert place is not None
        found["deletionVector"] = {**vector, "storageType": "p", "pathOrInlineDv": _uri_of(place)}
    return found


def uri_path(path: str) -> str:
    """A path in a table's folder as its log spells it."""
    return quote(path, safe=_PLAIN.replace(":", ""))


def _uri(root: str, logged: str) -> str:
    if logged.startswith("/") or logged[:5].lower() == "file:":
        return logged  # of a clone itself
    path = local_path(root, logged)
    assert path is not None
    return _uri_of(path)


def _uri_of(path: str) -> str:
    return "file:" + quote(os.path.normpath(path), safe=_PLAIN)


class _Copier:
    """Copies the files of a table into the folder of another, under names of their own."""

    def __init__(self, source: Snapshot, folder: str, alive: Callable[[], None]) -> None:
        self._source, self._folder, self._alive = source, folder, alive
        self._vectors: dict[str, uuid.UUID] = {}

    def copied(self, spec: Fields) -> Fields:
        """The ``add`` of a file's copy."""
        root = self._source.root
        path = local_path(root, spec["path"])
        assert path is not None  # else the snapshot could not have been opened
        inside = is_under(os.path.normpath(path), root)
        to = os.path.relpath(os.path.normpath(path), root) if inside else f"{uuid.uuid4()}-{os.path.basename(path)}"
        self._copy(path, to)
        found = {**spec, "path": uri_path(to), "dataChange": True}
        vector = spec.get("deletionVector")
        place = None if vector is None else file_of(root, vector)
        if vector is not None and place is not None:
            if place not in self._vectors:
                self._vectors[place] = uuid.uuid4()
                self._copy(place, f"deletion_vector_{self._vectors[place]}.bin")
            name = encoded(self._vectors[place].bytes)
            found["deletionVector"] = {**vector, "storageType": "u", "pathOrInlineDv": name}
        return found

    def _opened(self, path: str) -> int:
        try:
            return opened(path, self._source.within)
        except FileNotFoundError as error:  # the source may be a shallow clone whose own one is gone
            raise missing_file(self._source.root, path) from error

    def _copy(self, path: str, to: str) -> None:
        self._alive()
        at_work.begin(self._folder)
        target = os.path.join(self._folder, to)
        with (
            os.fdopen(self._opened(path), "rb") as read,
            held_folder(os.path.dirname(target), self._folder, []) as held,
        ):
            descriptor = os.open(
                os.path.basename(target), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=held
            )
            with os.fdopen(descriptor, "wb") as written:
                shutil.copyfileobj(read, written, 1 << 20)
                written.flush()
                os.fsync(written.fileno())
