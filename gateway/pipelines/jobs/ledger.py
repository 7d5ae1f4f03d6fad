"""What was loaded into a table: numbered batches, each planned in one file before it is written and done in another after.

The tables carry the batch's number as Delta's application transaction, committed together with the rows. A batch that was
killed at any moment is written again with the same plan: Delta ignores what is committed already, even by a Spark that
outlived its parent. So every batch is in the table once. Numbers are never used twice.

The folder is ``DIR/.ingest/<schema>/<table>/``: ``ledger.json`` (its id), ``<n>.plan.json``, ``<n>.done.json``, ``lock``.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gateway.delta import log
from gateway.errors import ServerError, full_disk_told
from gateway.pipelines.jobs.places import Place

FOLDER = ".ingest"
_DIGITS = 10


class Ledger:
    """The batches of one table. One process at a time holds it, see `opened`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = str(_read(folder / "ledger.json").get("id", ""))
        if not self.id:
            self.id = uuid.uuid4().hex
            self._write("ledger.json", {"id": self.id})

    @property
    def application(self) -> str:
        """The application id of its batches in Delta's log."""
        return f"gateway-ingest-{self.id}"

    def plans(self) -> list[dict[str, Any]]:
        """All plans in order; each has its ``batch`` number, and ``done`` (what `finish` was given, or None)."""
        return read_plans(self.folder)

    def plan(self, batch: int, what: dict[str, Any]) -> dict[str, Any]:
        """Write the plan of a new batch; from here on it is repeated until it is done."""
        name = f"{batch:0{_DIGITS}d}.plan.json"
        if (self.folder / name).exists():
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
        draft = self.folder / f".{name}.{os.getpid()}"
        try:
            with full_disk_told("Cannot write the ledger", self.folder), draft.open("w", encoding="utf-8") as file:
                json.dump(what, file, ensure_ascii=False)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.folder / name)
        finally:
            draft.unlink(missing_ok=True)  # unless it is in its place
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ServerError("INTERNAL_ERROR", f"{path} cannot be read: {error}.") from error
    if not isinstance(found, dict):
        raise ServerError("INTERNAL_ERROR", f"{path} is damaged.")
    return found


def read_plans(folder: Path) -> list[dict[str, Any]]:
    """The plans of the ledger in `folder`, see `Ledger.plans`; none if there is no ledger. Nothing is made."""
    names = sorted(p.name for p in folder.glob("*.plan.json"))
    return [{**_read(folder / n), "done": _read(folder / n.replace(".plan.", ".done.")) or None} for n in names]


def is_abandoned(plan: dict[str, Any]) -> bool:
    """Whether the batch of a plan was given up."""
    return bool((plan["done"] or {}).get("abandoned"))


def ledger_folder(warehouse: Path, place: Place) -> Path:
    """Where the ledger of a table lies."""
    return warehouse / FOLDER / place.schema / place.table


@contextmanager
def opened(folder: Path, *, forget: bool = False) -> Iterator[Ledger]:
    """The ledger in `folder`, made if missing, for this process alone; `forget` starts a new one.

    Raises ServerError if another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServerError("WRITE_CONFLICT", f"Another process loads into this table ({folder}).") from None
        if forget:
            for path in folder.iterdir():
                if path.name != "lock":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield Ledger(folder)


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
            metrics = next((a["commitInfo"].get("operationMetrics") or {} for a in actions if "commitInfo" in a), {})
            return Commit(version, int(metrics.get("numOutputRows", 0)))
    return None


def _is_batch(txn: dict[str, Any] | None, application: str, batch: int) -> bool:
    return txn is not None and txn.get("appId") == application and txn.get("version") == batch
