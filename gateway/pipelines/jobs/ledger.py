"""What was loaded into a table: numbered batches, each planned in one file before it is written and done in another after.

The tables carry the batch's number as Delta's application transaction, committed together with the rows. A batch that was
killed at any moment is written again with the same plan: Delta ignores what is committed already, even by a Spark that
outlived its parent. So every batch is in the table once. Numbers are never used twice.

The folder is ``DIR/.ingest/<schema>/<table>/``: ``ledger.json`` (its id), ``<n>.plan.json``, ``<n>.done.json``, ``lock``.
Others may write there: it is reached through no link, nor are its files, and what they say is looked at (`plans`).
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from gateway.delta import log
from gateway.delta.containment import held_folder, remove_tree
from gateway.errors import ServerError, full_disk_told
from gateway.pipelines.jobs.places import Place
from gateway.pipelines.jobs.plans import checked, checked_end, damaged

FOLDER = ".ingest"
_DIGITS = 10
_LOCK, _ID = "lock", "ledger.json"
_LARGEST = 1 << 30  # bytes of a file: a batch may have thousands of files
_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Ledger:
    """The batches of one table, in a folder that is held open. One process at a time holds it, see `opened`."""

    def __init__(self, folder: Path, held: int) -> None:
        self.folder = folder
        self._held = held
        self.id = str(_read(_ID, folder, held).get("id", ""))
        if not self.id:
            self.id = uuid.uuid4().hex
            self._write(_ID, {"id": self.id})

    @property
    def application(self) -> str:
        """The application id of its batches in Delta's log."""
        return f"gateway-ingest-{self.id}"

    def plans(self) -> list[dict[str, Any]]:
        """All plans in order; each has its ``batch`` number, and ``done`` (what `finish` was given, or None)."""
        return _plans(self.folder, self._held)

    def plan(self, batch: int, what: dict[str, Any]) -> dict[str, Any]:
        """Write the plan of a new batch; from here on it is repeated until it is done."""
        name = _name(batch)
        if name in os.listdir(self._held):
            raise ServerError("INTERNAL_ERROR", f"The batch {self.folder / name} is planned already.")
        self._write(name, {**what, "batch": batch})
        return {**what, "batch": batch, "done": None}

    def finish(self, batch: int, what: dict[str, Any]) -> None:
        """Note that a batch is in its tables."""
        self._write(f"{batch:0{_DIGITS}d}.done.json", {**what, "finished": True})

    def abandon(self, batch: int) -> None:
        """Note that a batch is in no table and never will be; its number stays used."""
        self._write(f"{batch:0{_DIGITS}d}.done.json", {"abandoned": True})

    def _write(self, name: str, what: dict[str, Any]) -> None:
        draft = f".{name}.{uuid.uuid4().hex}"
        try:
            with full_disk_told("Cannot write the ledger", self.folder):
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o666, dir_fd=self._held)
                with open(descriptor, "w", encoding="utf-8") as file:
                    json.dump(what, file, ensure_ascii=False)
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(draft, name, src_dir_fd=self._held, dst_dir_fd=self._held)
        finally:
            with suppress(FileNotFoundError):  # it is in its place
                os.unlink(draft, dir_fd=self._held)
        os.fsync(self._held)


def _read(name: str, folder: Path, held: int) -> dict[str, Any]:
    """The object in a file of a ledger, {} without it. Raises ServerError CATALOG_FILE_CORRUPT."""
    path = f"{folder}/{name}"
    try:
        descriptor = os.open(name, os.O_RDONLY | _SAFE, dir_fd=held)
        with open(descriptor, encoding="utf-8") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
                raise damaged(path, "it is no file, or too large")
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(path, "it cannot be read") from error
    if not isinstance(found, dict):
        raise damaged(path, "it holds no object")
    return found


def read_plans(folder: Path) -> list[dict[str, Any]]:
    """The plans of the ledger in `folder`, see `Ledger.plans`; none if there is no ledger. Nothing is made.

    Raises ServerError CATALOG_FILE_CORRUPT, UserError PATH_NOT_ALLOWED for a link on the way.
    """
    try:
        with held_folder(*_place(folder)) as held:
            return _plans(folder, held)
    except FileNotFoundError:
        return []


def _plans(folder: Path, held: int) -> list[dict[str, Any]]:
    found = []
    for name in sorted(n for n in os.listdir(held) if n.endswith(".plan.json") and n[0] != "."):
        plan = checked(_read(name, folder, held), f"{folder}/{name}")
        end = name.replace(".plan.", ".done.")
        found.append({**plan, "done": checked_end(_read(end, folder, held), f"{folder}/{end}", plan) or None})
        if name != _name(plan.get("batch", -1)):
            raise damaged(f"{folder}/{name}", "it is of another batch")
    return found


def _name(batch: int) -> str:
    return f"{batch:0{_DIGITS}d}.plan.json"


def is_abandoned(plan: dict[str, Any]) -> bool:
    """Whether the batch of a plan was given up."""
    return bool((plan["done"] or {}).get("abandoned"))


def ledger_folder(warehouse: Path, place: Place) -> Path:
    """Where the ledger of a table lies."""
    return warehouse / FOLDER / place.schema / place.table


def _place(folder: Path) -> tuple[str, str]:
    """A ledger's folder, and the one above all ledgers below which no link is followed."""
    root = os.path.realpath(folder.parents[2])
    return os.path.join(root, *folder.parts[-3:]), root


@contextmanager
def opened(folder: Path, *, forget: bool = False) -> Iterator[Ledger]:
    """The ledger in `folder`, made if missing, for this process alone; `forget` starts a new one.

    Raises ServerError if another process holds it, and as `read_plans`.
    """
    place, root = _place(folder)
    os.makedirs(root, exist_ok=True)
    with held_folder(place, root, []) as held:
        lock = _lock(folder, held)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ServerError("WRITE_CONFLICT", f"Another process loads into this table ({folder}).") from None
            if forget:
                _clear(held)
            yield Ledger(folder, held)
        finally:
            os.close(lock)


def _lock(folder: Path, held: int) -> int:
    try:
        lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | _SAFE, 0o666, dir_fd=held)
    except OSError as error:
        raise damaged(f"{folder}/{_LOCK}", "it cannot be opened") from error
    if not stat.S_ISREG(os.fstat(lock).st_mode):
        os.close(lock)
        raise damaged(f"{folder}/{_LOCK}", "it is no file")
    return lock


def _clear(held: int) -> None:
    """Remove all but the lock, through no link.

    The id goes first, for good: with it and without some plans, numbers would be used twice, and Delta would ignore rows.
    """
    with os.scandir(held) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name != _LOCK]
    for name, is_folder in sorted(found, key=lambda each: each[0] != _ID):
        if is_folder:
            remove_tree(name, held)
        else:
            os.unlink(name, dir_fd=held)
        if name == _ID:
            os.fsync(held)


class Commit(NamedTuple):
    """The commit of a batch: the table's version, and how many rows it wrote."""

    version: int
    rows: int


def committed(place: Place, application: str, batch: int) -> Commit | None:
    """The commit of a batch in a table; None if no commit file tells of it."""
    root = str(place.folder)
    for version in reversed(log.commit_versions(root)):
        actions = log.actions(root, version)
        if any(_is_batch(a.get("txn"), application, batch) for a in actions):
            info = next((a["commitInfo"] for a in actions if "commitInfo" in a), None)
            return Commit(version, log.counted(info, "numOutputRows"))
    return None


def _is_batch(txn: Any, application: str, batch: int) -> bool:
    return isinstance(txn, dict) and txn.get("appId") == application and txn.get("version") == batch
