"""All files that a log names, of whatever version: looked at before something else than our own reader follows them.

Our reader takes the paths of one version, one by one (`delta.table`); Spark and the reader of deletion vectors take what the
log says. Here all of the log is read, once per file of it: commits, checkpoints, their sidecars, checksums, and the hint at the
newest checkpoint, which may list sidecars in its stead. What others might read otherwise than we do is damage: a key twice, a
column in another spelling.
"""

from __future__ import annotations

import json
import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

import pyarrow as pa

from gateway.delta.checkpoint_facts import SIDECAR, Identity, identity_of, says
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
    real_path,
)
from gateway.delta.expressions import existing_of, expressions_of
from gateway.delta.features import BY_NAME, refused
from gateway.delta.footers import opened_parquet
from gateway.delta.log import DIGITS, HINT, LOG, check_size, is_checkpoint, is_version
from gateway.delta.parquet_facts import Impossible
from gateway.delta.schema import MAPPING, check_told_apart
from gateway.errors import GatewayError, ServerError, UserError

_SIDECARS = "_sidecars"
_OF_READERS = ("", _SIDECARS, "_staged_commits")  # folders of a log
# Actions whose paths are files.
_FILES = ("add", "remove", "cdc", "allFiles")
_DELETION_VECTOR = "deletionVector"
_COLUMNS = ["metaData.configuration", "metaData.schemaString"]
_COLUMNS += [f"{kind}.path" for kind in ("add", "remove", "cdc", "sidecar")] + [
    f"{kind}.{_DELETION_VECTOR}.{name}"
    for kind in ("add", "remove")
    for name in ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")
]
_COLUMNS += ["protocol.readerFeatures", "checkpoint"]
_UUID = 20  # characters of a deletion vector's name in a log
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_KEPT_TABLES = 256


#: What a log says of a deletion vector.
Vector = Mapping[str, Any]


@dataclass(frozen=True)
class _Read:
    """What a file of a log holds: the paths outside of the table's folder, the deletion vectors of data files, the
    expressions that writers are to evaluate, and those of them that readers evaluate, too."""

    identity: Identity
    outside: tuple[str, ...]
    vectors: Mapping[str, Vector]
    expressions: tuple[str, ...]
    existing: tuple[str, ...]


# Per log, its files by their paths.
_Known = dict[str, _Read]
_Spelt = dict[str, tuple[str, "_Spelt"]]


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


def check_log(root: str, within: Within, version: int | None = None) -> None:
    """Before a log is read, up to `version`: an error about a line of it quotes the line, so all must be the server's own."""
    place = f"{root}/{LOG}"
    try:
        if os.path.islink(place):
            end_of_link(place, within)
        check_tree(place, within)
        if _may_have_sidecars(place, within, version):
            check_logged(root, within)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError("PATH_NOT_FOUND", f"{root} is not a Delta table.") from error


def _may_have_sidecars(place: str, within: Within, version: int | None) -> bool:
    """Of the checkpoints that may be read: none that lies before one in a single file that is whole."""
    whole = ""
    for name in sorted(filter(is_checkpoint, os.listdir(place)), reverse=True):
        if whole and not name.startswith(whole):
            break
        if not name.endswith(".checkpoint.parquet") and name.count(".") > 2 and "-" in name:  # named by a UUID
            return True
        path = os.path.join(place, name)
        try:
            if not _is_spelt_as_read(path, within, identity_of(path)):
                raise ServerError("DELTA_LOG_CORRUPT", f"The checkpoint {path} has columns in another spelling.")
            if says(path, SIDECAR, within):
                return True
        except Impossible as error:  # which the log's reader would believe
            raise ServerError("DELTA_LOG_CORRUPT", f"The checkpoint {path} cannot be read: {error}") from error
        except (OSError, pa.ArrowException):
            continue  # damaged: the log's reader says so
        if name.endswith(".checkpoint.parquet") and (version is None or int(name[:DIGITS]) <= version):
            whole = name[:DIGITS]
    return False


@lru_cache(maxsize=8192)
def _is_spelt_as_read(path: str, within: Within, _: Identity) -> bool:
    """Whether a checkpoint's columns are those that are looked for: some readers mind the case of names."""
    with opened_parquet(path, within) as parquet:
        try:
            _check_spelling(parquet.schema_arrow, _SPELT)
        except ValueError:
            return False
    return True


def check_logged(root: str, within: Within) -> None:
    """Raise PATH_NOT_ALLOWED if a log names a file that does not lie `within` folders."""
    known = _LOOKED.of(root, within)
    here: set[str] = set()
    for folder in _OF_READERS:
        place = os.path.join(root, LOG, folder).rstrip("/")
        try:
            names = [n for n in os.listdir(place) if (folder and n[:1] != ".") or n[:1].isdigit() or n == HINT]
        except (FileNotFoundError, NotADirectoryError):
            continue
        for name in names:
            path = os.path.join(place, name)
            try:
                identity = identity_of(path)
            except FileNotFoundError:
                continue  # cleaned up
            entry = known.get(path)
            if entry is None or entry.identity != identity:
                entry = known[path] = _read(root, path, within, identity)
            here.add(path)
            for other in entry.outside:
                _check(root, other, within)
    for gone in known.keys() - here:
        known.pop(gone, None)


def logged_vectors(root: str, within: Within, version: int) -> dict[str, list[Vector]]:
    """The deletion vectors that the log has, by data file, up to `version`; more than one where it is not clear which counts.

    For a log that `check_logged` has just looked at.
    """
    known = dict(_LOOKED.of(root, within))
    names = sorted(known, key=lambda path: (_version(path) or 0, path))
    found: dict[str, list[Vector]] = {}
    for path in names:
        of = _version(path)
        if of is not None and of > version:
            continue
        for file, vector in known[path].vectors.items():
            # What a version says holds from then on; sidecars have no version.
            found[file] = [vector, *(found.get(file, ()) if of is None else ())]
    return found


def logged_expressions(root: str, within: Within, writes: bool) -> set[str]:
    """The constraints of a table and what its columns are computed from, of whatever version; unless somebody `writes`, only
    what rows have that are older than a column.

    For a log that `check_logged` has just looked at.
    """
    looked = list(_LOOKED.of(root, within).values())
    return {text for read in looked for text in (read.expressions if writes else read.existing)}


def _version(path: str) -> int | None:
    """The version of a commit or checkpoint, the last one of several commits in one file; None of a sidecar."""
    name = os.path.basename(path)
    if ".compacted." in name:
        name = name[DIGITS + 1 :]
    return int(name[:DIGITS]) if is_version(name) else None


def _read(root: str, path: str, within: Within, identity: Identity) -> _Read:
    outside: list[str] = []
    vectors: dict[str, Vector] = {}
    expressions: list[str] = []
    existing: list[str] = []
    for action in _actions(path, within):
        with _damage_told(path):
            _check_followed(root, action)
            outside += _outside(root, action, within)
            for metadata in (action.get("metaData"), action.get("metadata")):  # of a commit, of a checksum
                if metadata is not None:
                    expressions += expressions_of(metadata)
                    existing += existing_of(metadata.get("schemaString"))
                    if dict(metadata.get("configuration") or {}).get(MAPPING, "none").lower() != "none":
                        check_told_apart(metadata.get("schemaString"))
            add = action.get("add") or {}
            vector = add.get(_DELETION_VECTOR) or {}
            file = local_path(root, add["path"]) if vector and add.get("path") is not None else None
        if file is not None:
            vectors[file] = vector
    return _Read(identity, tuple(outside), vectors, tuple(expressions), tuple(existing))


def _outside(root: str, action: dict[str, Any], within: Within) -> Iterator[str]:
    """Paths of an action that lie outside of the table's folder. Raises for those that are nowhere."""
    _check_sidecar(root, action)
    for logged, absolute in _paths(action):
        found = None if _SCHEME.match(logged) and logged[:5].lower() != "file:" else local_path(root, logged)
        relative = logged[:1] != "/" and ":" not in logged
        if found is None or "\0" in found or (absolute and relative):
            raise _elsewhere(root, logged)
        if not is_under(os.path.normpath(found), root):
            _check(root, found, within)
            yield found


def _check(root: str, path: str, within: Within) -> None:
    if not is_within(real_path(path), within):
        raise _elsewhere(root, path)


def _elsewhere(root: str, logged: str) -> UserError:
    return not_allowed(f"The Delta table {root} lists a file outside of its folder ({logged}), which")


def _actions(path: str, within: Within) -> Iterator[dict[str, Any]]:
    """The actions of a file of the log, as far as they may name files."""
    with _damage_told(path):
        if path.endswith(".parquet"):
            with opened_parquet(path, within) as parquet:
                _check_spelling(parquet.schema_arrow, _SPELT)
                for batch in parquet.iter_batches(columns=_COLUMNS):
                    yield from batch.to_pylist()
        elif path.endswith((".json", ".crc", f"/{HINT}")):
            check_size(path)
            with os.fdopen(opened(path, within), encoding="utf-8") as lines:
                if path.endswith(HINT):
                    yield from _hinted(lines.read())
                    return
                for line in filter(str.strip, lines):
                    yield json.loads(line, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of a key that comes twice some readers take the first value and some the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def _hinted(text: str) -> Iterator[dict[str, Any]]:
    """The actions in the hint at the newest checkpoint: Spark takes those that it finds there for the checkpoint's.

    What is no JSON, as a writer that was killed leaves it, or no object is no hint to any reader; some read it as far as it is
    JSON.
    """
    try:
        hint, _ = json.JSONDecoder(object_pairs_hook=_once).raw_decode(text.lstrip())
    except json.JSONDecodeError:
        return
    if not isinstance(hint, dict):
        return
    checkpoint = hint.get("v2Checkpoint") or {}
    name = checkpoint.get("path") or ""
    if os.path.basename(name) != name or ":" in name:
        raise ValueError("a checkpoint elsewhere")
    yield from checkpoint.get("nonFileActions") or ()
    yield from ({"sidecar": sidecar} for sidecar in checkpoint.get("sidecarFiles") or ())


def _tree(columns: Iterable[str]) -> _Spelt:
    """Parts of dotted names by what they are in small letters, each with those below it."""
    found: _Spelt = {}
    for column in columns:
        at = found
        for part in column.split("."):
            at = at.setdefault(part.lower(), (part, {}))[1]
    return found


_SPELT = _tree(_COLUMNS)


def _check_spelling(fields: Iterable[pa.Field], spelt: _Spelt) -> None:
    """Raise ValueError for columns that Spark, which minds no case, takes for what we read, and we do not."""
    seen = set()
    for field in fields:
        exact, below = spelt.get(field.name.lower(), (field.name, None))
        if field.name != exact or (below is not None and exact in seen):
            raise ValueError("a column in another spelling, or twice")
        seen.add(exact)
        if below and pa.types.is_struct(field.type):
            _check_spelling(field.type.fields, below)


@contextmanager
def _damage_told(path: str) -> Iterator[None]:
    try:
        yield
    except GatewayError:
        raise
    except (OSError, ValueError, TypeError, AttributeError, LookupError, RecursionError, pa.ArrowException) as error:
        raise ServerError("DELTA_LOG_CORRUPT", f"The file {path} of a Delta table's log is damaged.") from error


def _check_followed(root: str, action: dict[str, Any]) -> None:
    """Raise UnsupportedError for what names files in ways that are not known here."""
    features = set((action.get("protocol") or {}).get("readerFeatures") or ()) - BY_NAME.keys()
    if action.get("checkpoint") is not None:
        features.add("adaptive metadata")
    if features:
        raise refused(features, root, "read")


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


__all__ = ["check_for_others", "check_log", "check_logged", "logged_expressions", "logged_vectors"]
