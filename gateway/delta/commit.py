"""Commits of our own: JSON actions in a new log file that appears at once and never replaces another."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from gateway.delta import log, wanted
from gateway.delta.checkpoint_instants import misread_parts
from gateway.delta.containment import held_folder, is_under, local_path
from gateway.delta.features import Protocol
from gateway.delta.vectors import file_of
from gateway.errors import GatewayError, UserError, unsupported
from gateway.worker_jobs import marker_of

ENGINE = "delta-sql-gateway"
Action = Mapping[str, Any]
Parameters = Mapping[str, str | bool | int | None]
#: Delta's isolation levels: of what changes rows, and of what does not.
SERIALIZABLE, SNAPSHOT_ISOLATION = "Serializable", "SnapshotIsolation"
_CHECKPOINT_EVERY = 10
_log = logging.getLogger(__name__)


def now_ms() -> int:
    """Epoch milliseconds, as the log's actions carry them."""
    return time.time_ns() // 1_000_000


def protocol_action(protocol: Protocol) -> Action:
    """The protocol as an action."""
    spec: dict[str, Any] = {"minReaderVersion": protocol.reader, "minWriterVersion": protocol.writer}
    if protocol.reader >= 3:
        spec["readerFeatures"] = sorted(protocol.reader_features)
    if protocol.writer >= 7:
        spec["writerFeatures"] = sorted(protocol.writer_features)
    return {"protocol": spec}


def info_action(
    operation: str,
    parameters: Parameters,
    metrics: Mapping[str, int],
    blind: bool,
    read: int | None = None,
    isolation: str = SERIALIZABLE,
) -> Action:
    """commitInfo as Spark writes it: what DESCRIBE HISTORY shows. `read` is the version that was read."""
    return {
        "commitInfo": {
            "timestamp": now_ms(),
            "operation": operation,
            "operationParameters": dict(parameters),
            **({} if read is None else {"readVersion": read}),
            "operationMetrics": {k: str(v) for k, v in metrics.items()},
            "isolationLevel": isolation,
            "isBlindAppend": blind,
            "engineInfo": ENGINE,
            "txnId": str(uuid.uuid4()),
        }
    }


def stamped(
    root: str, read: int, properties: Mapping[str, str], actions: Sequence[Action], at: int | None = None
) -> Sequence[Action]:
    """The actions of the commit behind version `read`, with its in-commit timestamp where the table has them: `at` if given."""
    if properties.get(log.IN_COMMIT, "").lower() != "true":
        return actions
    moment = {"inCommitTimestamp": moment_behind(root, read, properties) if at is None else at}
    return [{"commitInfo": {**moment, **a["commitInfo"]}} if "commitInfo" in a else a for a in actions]


def moment_behind(root: str, read: int, properties: Mapping[str, str]) -> int:
    """Now, or just after version `read` where that is later."""
    (last,) = log.commit_times(root, [read], properties) if read >= 0 else (0,)
    return max(now_ms(), last + 1)


def compact_json(value: Any) -> str:
    """JSON without spaces, as Spark writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def publish(
    root: str,
    version: int,
    actions: Iterable[Action],
    settle: Callable[[], None] | None = None,
    behind: tuple[int, ...] | None = None,
    *,
    owed: bool = False,
) -> None:
    """Make `actions` the commit `version`, once `settle` has seen to it that the files they name are on the disk.

    `behind` shows that the commit before it still is the one that was read (`Snapshot.marker`); None: that is not known.
    Of what is `owed` it does not matter whether the statement is still wanted: it tells what has been done already.
    Raises FileExistsError if another writer has made it already, or another table is there; FileNotFoundError if the table was
    dropped, or files that were written for it were removed (a VACUUM of tables that keep none); and UserError PATH_NOT_ALLOWED
    if there is a link in the place of the log's folder.
    """
    actions = list(actions)
    draft = f"_commit_{uuid.uuid4()}.json.tmp"
    with _log_folder(root) as folder:
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.writelines(compact_json(action) + "\n" for action in actions)
                file.flush()
                os.fsync(file.fileno())
            if settle is not None:
                settle()
                _check_files(root, actions)
            if behind is not None:
                _check_behind(folder, log.commit_path(root, version - 1), behind)
            if not owed:
                wanted.check()
            # A hard link fails if the name is taken: the same put-if-absent as delta-rs and Spark use on local disks.
            os.link(draft, os.path.basename(log.commit_path(root, version)), src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
            raise
        # The commit stands: whoever was told of a failure from here on would remove the files that it names.
        try:
            os.unlink(draft, dir_fd=folder)
            os.fsync(folder)
        except OSError as error:
            _log.warning("version %d of %s is made, but its log's folder cannot be written: %s", version, root, error)


def _check_behind(folder: int, path: str, behind: tuple[int, ...]) -> None:
    """Raise unless a commit in the log's held folder is what it was: the table may have been dropped and made anew."""
    now = marker_of(os.path.basename(path), folder)
    if not now and behind:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if now != behind:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)


def _check_files(root: str, actions: Iterable[Action]) -> None:
    """Raise FileNotFoundError if a file of the table's folder that a commit adds is not there."""
    for action in actions:
        spec = action.get("add") or action.get("cdc")
        vector = None if spec is None else spec.get("deletionVector")
        named = None if spec is None else local_path(root, spec["path"])
        for path in (named, None if vector is None else file_of(root, vector)):
            if path is not None and is_under(path, root):
                os.lstat(path)


def put(root: str, name: str, text: str) -> None:
    """Write a file of the log that is no commit, in the place of the one that was there."""
    draft = f"_{uuid.uuid4()}.tmp"
    with _log_folder(root) as folder:
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)


@contextlib.contextmanager
def _log_folder(root: str) -> Iterator[int]:
    """The folder of the log, held while a commit is made: no link that is put in its place leads the commit elsewhere."""
    with held_folder(f"{root}/{log.LOG}", root) as folder:
        yield folder


def linked_log(root: str) -> UserError:
    """PATH_NOT_ALLOWED: links are read where they stay inside, but nothing is written through them."""
    text = f"The log of the Delta table {root} is a link: it is not written through."
    return UserError("PATH_NOT_ALLOWED", text)


def checkpoint_if_due(root: str, version: int, properties: Mapping[str, str]) -> None:
    """Write a checkpoint every so many versions. It only makes opening faster: a failure is logged, not raised.

    Of a table with the feature for them it is a v2 checkpoint under the classic name, as `delta.checkpointPolicy` allows.
    """
    every = properties.get("delta.checkpointInterval", "")
    interval = int(every) if every.isascii() and every.isdecimal() and int(every) > 0 else _CHECKPOINT_EVERY
    if version == 0 or version % interval:
        return
    try:
        checkpoint(root, version)
    except (DeltaError, OSError, GatewayError) as error:
        _log.warning("no checkpoint of %s at version %d: %s", root, version, error)


def checkpoint(root: str, version: int) -> None:
    """Write the checkpoint of a version. Raises DeltaError, OSError or GatewayError."""
    if misread_parts(root, version, (root,)):
        raise unsupported(f"a checkpoint behind one with instants that only INT96 holds, of the Delta table {root},")
    if log.escapes_in_statistics(root, version):
        raise unsupported(
            f"a checkpoint of statistics with escaped characters that deltalake misreads, of the Delta table {root},"
        )
    with _log_folder(root) as folder, tempfile.TemporaryDirectory(prefix="gateway-checkpoint-") as place:
        if log.lost_checkpoint(root) is not None:  # deltalake looks for it, and makes none without
            with contextlib.suppress(FileNotFoundError):
                os.unlink(log.HINT, dir_fd=folder)
        # deltalake goes by names: below this one lies the folder that is held, whatever lies at the table's by now.
        held = f"/proc/self/fd/{folder}"
        if os.path.isdir(held):
            os.symlink(held, f"{place}/{log.LOG}")
        DeltaTable(place if os.path.isdir(held) else root, version=version).create_checkpoint()
