"""VACUUM: files in a table's folder that are no part of it, nor were lately, are removed.

What is kept is Delta's: all that the newest version holds, what was taken out of it within the retention, what is younger than
that, what is hidden (names that begin with ``_`` or ``.``, the log among them, but for partitions and change data). Links are
neither followed nor removed, nor is anything of a table that lies inside of this one. Otherwise than with Delta files that no
version has told of stay for a day, whatever the retention, while a statement writes into the table: they may be its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gateway.delta import at_work, commit, log
from gateway.delta.containment import check_still_there, held_folder, is_under, local_path, opened
from gateway.delta.features import Kept
from gateway.delta.logged import agreed_state, state_of
from gateway.delta.replay import Fields, State, check_file
from gateway.delta.retention import deleted_files_ms
from gateway.delta.table import Snapshot, of_this_table
from gateway.delta.vectors import file_of
from gateway.delta.write import ATTEMPTS, check_own, check_snapshot_writable, conflict, open_again, storage_errors
from gateway.errors import UserError, unsupported
from gateway.worker_jobs import marker_of

_NOT_HIDDEN = ("_delta_index", "_change_data")
_LAST = "_last_vacuum_info"
_UNTIL = "latestCommitVersionOutsideOfRetentionWindow"
_HOUR = 3_600_000
_LONGEST = 24 * _HOUR  # a statement ends in that time
_MOST_NOTED = 1 << 20  # characters


@dataclass(frozen=True, slots=True)
class Swept:
    """What can go: paths of files and of empty folders, with their bytes; how many folders were looked at."""

    paths: Mapping[str, int]
    folders: int
    retention_ms: int
    specified_ms: int | None
    until: int | None  # of LITE: the newest version whose removals were looked at
    before_ms: int  # what was taken out later stays


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    bytes: int
    modified_ms: int
    is_folder: bool = False


def sweep(snapshot: Snapshot, hours: float | None, lite: bool) -> Swept:
    """What may be removed. Raises UserError DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT, DELTA_CANNOT_VACUUM_LITE.

    Of `hours` Delta heeds only 0: how long files are kept is a property of the table.
    """
    check_vacuumable(snapshot)
    root, now = snapshot.root, commit.now_ms()
    retention = deleted_files_ms(snapshot)
    specified = 0 if hours is not None and int(hours + 0.5) == 0 else None
    if specified is not None and specified < retention:
        raise _too_short(retention)
    before = now - (retention if specified is None else specified)
    state = agreed_state(snapshot)
    kept, told = _kept(root, state, before), {path for spec in state.removed.values() for path in _paths(root, spec)}
    untold = min(before, now - _LONGEST) if at_work.is_anybody(root) else before
    until = _commit_before(snapshot, before) if lite else None
    with of_this_table(snapshot):
        found = list(_logged(snapshot, until) if lite else _listed(snapshot, root))
    counts: Counter[str] = Counter()
    sizes: dict[str, int] = {}
    for file in found:
        known = lite or file.path in told
        if file.is_folder or file.modified_ms < (before if known else untold):
            sizes[file.path] = max(sizes.get(file.path, 0), file.bytes)
            counts.update([file.path] if file.is_folder else [file.path, *_folders(root, file.path)])
    others: dict[str, bool] = {}
    gone = {
        path: sizes.get(path, 0)
        for path, count in counts.items()
        if count == 1 and path not in kept and not _is_of_another(root, path, others)
    }
    folders = 1 + sum(file.is_folder for file in found)
    return Swept(dict(sorted(gone.items())), folders, retention, specified, until, before)


def _kept(root: str, state: State, before: int) -> set[str]:
    """Files and folders of what a version holds, and of what was not taken out `before`."""
    live = [*state.files.values(), *(r for r in state.removed.values() if (r.get("deletionTimestamp") or 0) >= before)]
    kept: set[str] = set()
    for spec in live:
        for path in _paths(root, spec):
            kept.add(path)
            kept.update(_folders(root, path))
    return kept


def check_vacuumable(snapshot: Snapshot) -> None:
    """Raise what keeps files from being removed from a table's folder."""
    check_own(snapshot.root)
    check_snapshot_writable(snapshot, kept=Kept.BY_STATEMENT)
    if any(key.startswith("delta.universalFormat.") for key in snapshot.properties):
        raise unsupported("VACUUM of a table that is kept for readers of other formats")


def remove(snapshot: Snapshot, swept: Swept, alive: Callable[[], None]) -> int:
    """Remove what was found, told in the log before and after; how many files and folders went.

    It goes from the folder that was looked at, whatever its name means by now. Raises UserError WRITE_CONFLICT.
    """
    root = snapshot.root
    parameters: dict[str, str | bool | int | None] = {"retentionCheckEnabled": True}
    if swept.specified_ms is not None:
        parameters["specifiedRetentionMillis"] = swept.specified_ms
    parameters["defaultRetentionMillis"] = swept.retention_ms
    metrics = {"numFilesToDelete": len(swept.paths), "sizeOfDataToDelete": sum(swept.paths.values())}
    removing = at_work.removing(os.path.join(root, log.LOG))
    # Before it is told: a RESTORE comes before that, or sees it.
    with storage_errors(root), held_folder(root, root) as held, removing:
        _check_held(snapshot, held)
        begun = _tell(root, held, "VACUUM START", parameters, metrics)
        try:
            # What others have added since it was looked at, or put back, stays.
            others = begun > snapshot.version + 1
            newest = replace(snapshot, version=begun, marker=None)
            kept = _kept(root, state_of(newest), swept.before_ms) if others else set()
            count = _removed(root, held, [path for path in swept.paths if path not in kept], alive)
        except BaseException:
            _tell(root, held, "VACUUM END", {"status": "FAILED"}, {}, owed=True)
            raise
        told = {"numDeletedFiles": count, "numVacuumedDirectories": swept.folders}
        version = _tell(root, held, "VACUUM END", {"status": "COMPLETED"}, told, owed=True)
        _note(root, {} if swept.until is None else {_UNTIL: swept.until})
    commit.checkpoint_if_due(root, version, snapshot.properties)
    return count


def _check_held(snapshot: Snapshot, held: int) -> None:
    """Raise WRITE_CONFLICT unless the folder that is held is that of a snapshot: another table may have come to its name."""
    place = os.path.relpath(log.commit_path(snapshot.root, snapshot.version), snapshot.root)
    if marker_of(place, held) != snapshot.marker:
        raise conflict(snapshot.root)


def _removed(root: str, held_root: int, paths: Iterable[str], alive: Callable[[], None]) -> int:
    count = 0
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        by_folder.setdefault(os.path.dirname(path), []).append(os.path.basename(path))
    for folder in sorted(by_folder, key=len, reverse=True):  # what is in a folder goes before the folder
        alive()
        try:
            with held_folder(folder, root, held_root=held_root) as held:
                count += sum(_gone(name, held) for name in by_folder[folder])
        except FileNotFoundError:
            continue  # somebody else has removed it
    return count


def _gone(name: str, folder: int) -> bool:
    """Remove one file, or one folder if it is empty."""
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except OSError:
        return False  # gone already, or filled meanwhile
    return True


def _tell(
    root: str,
    held: int,
    operation: str,
    parameters: commit.Parameters,
    metrics: Mapping[str, int],
    *,
    owed: bool = False,
) -> int:
    """A commit of the table whose folder is held that says something and changes nothing, behind all others."""
    for _ in range(ATTEMPTS):
        seen = open_again(root)
        _check_held(seen, held)
        info = commit.info_action(operation, parameters, metrics, True, seen.version, commit.SNAPSHOT_ISOLATION)
        try:
            made = commit.stamped(root, seen.version, seen.properties, [info])
            commit.publish(root, seen.version + 1, made, None, seen.marker, owed=owed)
            return seen.version + 1
        except FileExistsError:
            continue
        except FileNotFoundError as error:
            raise conflict(root) from error
    raise conflict(root)


def _paths(root: str, spec: Fields) -> Iterator[str]:
    """The files of an ``add`` or ``remove``: its own, and that of its deletion vector."""
    vector = spec.get("deletionVector")
    for path in (local_path(root, spec["path"]), None if vector is None else file_of(root, vector)):
        if path is not None:
            yield os.path.normpath(path)


def _folders(root: str, path: str) -> Iterator[str]:
    """The folders between a table's and a file of it."""
    folder = os.path.dirname(path)
    while len(folder) > len(root):
        yield folder
        folder = os.path.dirname(folder)


def _is_of_another(root: str, path: str, known: dict[str, bool]) -> bool:
    """Whether a file or folder is, or lies in, a table of its own: it has a log. Delta would remove its files."""
    for folder in (path, *_folders(root, path)):
        if folder not in known:
            known[folder] = os.path.lexists(f"{folder}/{log.LOG}")
        if known[folder]:
            return True
    return False


def _listed(snapshot: Snapshot, folder: str) -> Iterator[_File]:
    check_still_there(folder)
    shown = _shown(snapshot)
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if _is_hidden(entry.name, shown) or entry.is_symlink():
                continue
            # A file or folder that is gone by now somebody else has removed.
            with contextlib.suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    yield _File(entry.path, 0, 0, True)
                    yield from _listed(snapshot, entry.path)
                elif entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    yield _File(entry.path, found.st_size, found.st_mtime_ns // 1_000_000)


def _shown(snapshot: Snapshot) -> tuple[str, ...]:
    """What names begin with that are not hidden whatever their first character is."""
    columns = [snapshot.by_name[name] for name in snapshot.partition_columns]
    return (*_NOT_HIDDEN, *(f"{column.name}=" for column in columns), *(f"{column.physical}=" for column in columns))


def _is_hidden(name: str, shown: tuple[str, ...]) -> bool:
    return name[:1] in "._" and not name.startswith(shown)


# ---- LITE: what commits have removed


def _commit_before(snapshot: Snapshot, moment_ms: int) -> int | None:
    versions = [n for n in log.commit_versions(snapshot.root) if n <= snapshot.version]
    times = log.moments_sought(snapshot.root, versions, snapshot.properties)
    return max((n for n, time in zip(versions, times, strict=True) if time <= moment_ms), default=None)


def _logged(snapshot: Snapshot, until: int | None) -> Iterator[_File]:
    """The files that commits up to one have taken out of the table, as far as no VACUUM has looked at them."""
    root, shown = snapshot.root, _shown(snapshot)
    if until is None:
        return
    first, last = log.commit_versions(root)[0], _noted(root)
    if first != 0 and (last is None or last < first):
        text = (
            "VACUUM LITE cannot delete all eligible files as some files are not referenced by the Delta log. Please run "
            "VACUUM FULL."
        )
        raise UserError("DELTA_CANNOT_VACUUM_LITE", text)
    for version in range(first if last is None else last + 1, until + 1):
        for action in log.actions(root, version):
            spec = action.get("remove") or action.get("cdc")
            if spec is None:
                continue
            check_file(root, spec)
            moment = spec.get("deletionTimestamp") or 0
            for path in _paths(root, spec):
                parts = path.removeprefix(f"{root}/").split("/")
                # The log, and whatever else is no part of tables, goes by no log's word.
                if is_under(path, root) and path != root and not any(_is_hidden(part, shown) for part in parts):
                    yield _File(path, int(spec.get("size") or 0), moment)


def _noted(root: str) -> int | None:
    """Up to which version an earlier VACUUM has looked."""
    try:
        with os.fdopen(opened(f"{root}/{log.LOG}/{_LAST}", (root,)), encoding="utf-8") as file:
            found = json.loads(file.read(_MOST_NOTED)).get(_UNTIL)
    except (FileNotFoundError, ValueError, AttributeError):
        return None
    return found if isinstance(found, int) else None


def _note(root: str, facts: Mapping[str, int]) -> None:
    commit.put(root, _LAST, commit.compact_json(facts))


def _too_short(retention_ms: int) -> UserError:
    text = (
        "The specified VACUUM retention period is too low and may corrupt this Delta table if any writes are in progress. "
        f"Use a retention period of at least {-(-retention_ms // _HOUR)} hours."
    )
    return UserError("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", text)
