"""Locks on names of tables that another engine writes to: it would go on in whatever has the table's place by then.

The embedded engine needs none: it writes into the folder that it has opened, or not at all. A lock is one of a file below the
warehouse, and ends with its process.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator

from gateway.delta.containment import held_folder
from gateway.delta.locks import ALONE, SHARED, locked
from gateway.errors import UserError, storage_told

_FOLDER = ".writers"
# Seconds: who drops keeps a worker meanwhile, and is told; who writes waits for what takes a moment.
_PATIENCE = {ALONE: 0.2, SHARED: 10.0}
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FILE = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def writing(root: str, schema: str, table: str) -> Iterator[None]:
    """A block in which neither the table nor its schema is dropped or renamed. Raises UserError WRITE_CONFLICT."""
    shown = f"`{schema}`.`{table}`"
    with (
        _lock(root, (schema,), SHARED, f"The schema of {shown} is being dropped."),
        _lock(root, (schema, table), SHARED, f"The table {shown} is being dropped or renamed."),
    ):
        yield


@contextlib.contextmanager
def taking(root: str, schema: str, table: str | None = None) -> Iterator[None]:
    """A block that takes a table away, or a schema with all of its tables. Raises UserError WRITE_CONFLICT."""
    names = (schema,) if table is None else (schema, table)
    shown = ".".join(f"`{name}`" for name in names)
    with _lock(root, names, ALONE, f"Statements on Spark, pipelines or jobs write to {shown}; they have to end first."):
        yield


@contextlib.contextmanager
def _lock(root: str, names: tuple[str, ...], kind: int, told: str) -> Iterator[None]:
    """Hold the lock of a name, where the file system has one; its file goes with the last who holds it."""
    file = hashlib.sha256("\0".join(names).casefold().encode(errors="surrogatepass")).hexdigest()
    with contextlib.ExitStack() as held:
        with storage_told("Cannot lock a table", root):
            try:
                with held_folder(os.path.join(root, _FOLDER), root, []) as folder:
                    descriptor = _locked_file(file, folder, kind)
            except OSError as error:
                if kind == SHARED or error.errno not in _FULL:
                    raise
                # Nobody can begin to write either, and what is dropped makes room.
            else:
                if descriptor is None:
                    raise UserError("WRITE_CONFLICT", f"{told} Send the statement again.", retryable=True)
                held.callback(_let_go, descriptor, file, root)
        yield


def _let_go(descriptor: int, file: str, root: str) -> None:
    """End a lock; its file goes with the last one."""
    with contextlib.suppress(OSError), held_folder(os.path.join(root, _FOLDER), root) as folder:
        if locked(descriptor, ALONE, 0) and _is_there(file, folder, descriptor):
            os.unlink(file, dir_fd=folder)
    os.close(descriptor)


def _locked_file(file: str, folder: int, kind: int) -> int | None:
    """A descriptor of a file that is locked; None where others hold it."""
    while True:
        descriptor = os.open(file, _FILE, 0o666, dir_fd=folder)
        if locked(descriptor, kind, _PATIENCE[kind]) is False:
            os.close(descriptor)
            return None
        if _is_there(file, folder, descriptor):
            return descriptor
        os.close(descriptor)  # who held it has removed it


def _is_there(file: str, folder: int, descriptor: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(file, dir_fd=folder, follow_symlinks=False), os.fstat(descriptor))
    return False
