"""What is dropped is gone in one step, whoever has it open; what killed processes left behind is swept."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import time
import uuid
from collections.abc import Iterable, Sequence
from functools import partial

from gateway.catalog import objects, volumes
from gateway.delta.containment import held_folder, real_path, remove_tree
from gateway.delta.write import STAGING
from gateway.errors import ServerError, UserError

_TRASH = ".dropped-"
_TRASHES = ".dropped"  # a folder of its own below the root, which itself does not change then
#: The folder, below the root, of what another engine makes.
DRAFTS = ".drafts"
_STALE_SECONDS = 86_400
_SWEEP_SECONDS = 5.0  # for which a process that starts may be at it
_log = logging.getLogger(__name__)


def remove(folder: str, root: str) -> None:
    """Remove a folder below `root` in one step; a link is only unlinked. Raises ServerError WRITE_FAILED."""
    discard(set_aside(folder, root), root)


def set_aside(folder: str, root: str) -> str:
    """Rename a folder below `root`, or a link, to a hidden name, which is to be discarded. Raises ServerError WRITE_FAILED."""
    try:
        with held_folder(os.path.realpath(os.path.dirname(folder)), root) as parent:
            return _set_aside(os.path.basename(folder), parent, root)
    except OSError as error:
        raise failed("remove", folder, error) from error


def discard(trash: str, root: str) -> None:
    """Remove what was set aside, with all its files. Raises ServerError WRITE_FAILED."""
    try:
        _discard(trash, root)
    except OSError as error:
        raise failed("remove", os.path.join(root, _TRASHES, trash), error) from error


def remove_empty(folder: str, left: Sequence[str], root: str) -> bool:
    """Remove a schema that has nothing but `left`; False if there is more by now, of which nothing is lost."""
    inner = os.path.join(folder, objects.FOLDER)
    try:
        for place in (inner, folder):  # files of volumes go once it is sure that there are none
            for path in left:
                if os.path.dirname(path) == place:
                    with contextlib.suppress(FileNotFoundError), held_folder(place, root) as held:
                        _discard(_set_aside(os.path.basename(path), held, root), root)
            with contextlib.suppress(FileNotFoundError), held_folder(os.path.dirname(place), root) as held:
                os.rmdir(os.path.basename(place), dir_fd=held)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise failed("remove", folder, error) from error
    return True


def sweep(root: str, schemas: Iterable[str]) -> None:
    """Remove what processes that were killed left behind: half-made and half-dropped tables, a day old or more.

    What is gone by now, or cannot be listed or removed, is left: nothing in a warehouse keeps a process from starting. So is
    what takes long, for the processes that start later.
    """
    oldest, until = time.time() - _STALE_SECONDS, time.monotonic() + _SWEEP_SECONDS
    for schema in (_TRASHES, DRAFTS, "", *schemas):
        parent = real_path(os.path.join(root, schema))
        for swept in (
            partial(_sweep_tables, parent, root, oldest, until),
            partial(objects.sweep, os.path.join(parent, objects.FOLDER), root, objects.DRAFT, oldest),
            partial(objects.sweep, os.path.join(parent, volumes.FOLDER, volumes.DRAFTS), root, "", oldest),
        ):
            if time.monotonic() > until:
                return
            try:
                swept()
            except FileNotFoundError:
                continue  # dropped meanwhile
            except (OSError, UserError) as error:
                _log.warning("what killed processes may have left in %s is not removed: %s", parent, error)


def _sweep_tables(parent: str, root: str, oldest: float, until: float) -> None:
    with held_folder(parent, root) as held:
        with os.scandir(held) as entries:
            begun = (e for e in entries if e.name.startswith((_TRASH, STAGING)) and e.is_dir(follow_symlinks=False))
            stale = [e.name for e in begun if e.stat(follow_symlinks=False).st_mtime < oldest]
        for name in stale:
            remove_tree(name, held, until)
            with contextlib.suppress(FileNotFoundError):  # else what is left is as old as it was
                os.utime(name, (oldest, oldest - 1), dir_fd=held, follow_symlinks=False)


def move(folder: str, target: str, root: str) -> None:
    """Rename a folder below `root`, where nothing has the name of `target`. Raises ServerError WRITE_FAILED."""
    try:
        with (
            held_folder(os.path.realpath(os.path.dirname(folder)), root) as old,
            held_folder(os.path.dirname(target), root) as new,
        ):
            os.rename(os.path.basename(folder), os.path.basename(target), src_dir_fd=old, dst_dir_fd=new)
    except OSError as error:
        raise failed("rename", folder, error) from error


def failed(verb: str, folder: str, error: OSError) -> ServerError:
    """The error of what the file system refuses to do with a folder."""
    return ServerError("WRITE_FAILED", f"Cannot {verb} {folder}: {error.strerror}.", retryable=True)


def _set_aside(name: str, folder: int, root: str) -> str:
    trash = f"{_TRASH}{uuid.uuid4().hex}"
    with held_folder(root, root) as held, contextlib.suppress(FileExistsError):
        os.mkdir(_TRASHES, dir_fd=held)
    with held_folder(os.path.join(root, _TRASHES), root) as held:
        os.rename(name, trash, src_dir_fd=folder, dst_dir_fd=held)
    return trash


def _discard(trash: str, root: str) -> None:
    place = os.path.join(root, _TRASHES)
    with held_folder(place, root) as held:
        if not stat.S_ISDIR(os.stat(trash, dir_fd=held, follow_symlinks=False).st_mode):
            os.unlink(trash, dir_fd=held)
            return
        for _ in range(5):  # who had the folder open may go on to make and remove files there
            remove_tree(trash, held)
            if not os.path.lexists(os.path.join(place, trash)):
                return
    _log.warning("What was dropped cannot be removed yet: %s", os.path.join(place, trash))
