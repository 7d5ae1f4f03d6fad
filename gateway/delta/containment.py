"""Where files may lie: under the folders that statements may use, links followed to their end.

A folder is found and resolved once, by the catalog or by `catalog.paths`; here is what its own files are asked: whether a link
among them leads elsewhere, and whether they are files at all (opening a pipe would wait for ever). What fails is
PATH_NOT_ALLOWED, no UnsupportedError: no other engine is to read it instead.
"""

from __future__ import annotations

import errno
import math
import os
import stat
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from gateway.errors import ServerError, UserError

#: The folders that statements may use, as real paths.
Within = tuple[str, ...]
_SAFE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# On the way to a folder those above need not be readable.
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_under(path: str, root: str) -> bool:
    """Whether the real path `path` is `root` or lies under it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def real_path(path: str) -> str:
    """Where a name leads in the end; where nobody may follow it (``/proc/1/root``), to ``/``, which is no place of ours."""
    try:
        return os.path.realpath(path)
    except OSError:
        return "/"


def is_within(path: str, within: Within) -> bool:
    """Whether the real path `path` is or lies under one of `within`."""
    return any(is_under(path, root) for root in within)


def is_text(name: str) -> bool:
    """Whether the name of a file is one that can be told: to the system names are bytes, which need not be UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(path: str) -> str:
    """A path with question marks for what `is_text` is false of."""
    return path.encode(errors="replace").decode()


def not_allowed(what: str) -> UserError:
    """PATH_NOT_ALLOWED; `what` begins the sentence."""
    return UserError("PATH_NOT_ALLOWED", f"{what} leads out of the folders that this server may use.")


def no_file(path: str) -> ServerError:
    """The error for a pipe, a device or a folder in the place of a file."""
    return ServerError("FAILED_READ_FILE", f"{path} is no file.")


def check_still_there(folder: str, within: Within = ()) -> None:
    """Raise PATH_NOT_ALLOWED if a folder that was resolved has been put elsewhere by a link since.

    With `within`, real paths that nobody who is guarded against can exchange, only what is below one of them is looked at.
    """
    root = next((r for r in within if is_under(folder, r)), None)
    if os.path.realpath(folder) != folder if root is None else _has_link(folder, root):
        raise not_allowed(f"The folder {folder}, in whose place there is a link by now,")


def _has_link(folder: str, root: str) -> bool:
    """Whether `folder`, or one between it and `root`, is a link."""
    while len(folder) > len(root):
        try:
            if stat.S_ISLNK(os.lstat(folder).st_mode):
                return True
        except OSError:
            return False  # gone, which whoever opens it will tell
        folder = os.path.dirname(folder)
    return False


def end_of_link(path: str, within: Within) -> str:
    """Where a link leads in the end. Raises PATH_NOT_ALLOWED for elsewhere."""
    real = real_path(path)
    if not is_within(real, within):
        raise not_allowed(f"The link {path}")
    return real


def look(path: str, within: Within) -> os.stat_result:
    """What `os.stat` says of a file. Raises OSError, PATH_NOT_ALLOWED for a link to elsewhere, FAILED_READ_FILE for no file."""
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        found = os.lstat(end_of_link(path, within))
    if not stat.S_ISREG(found.st_mode):
        raise no_file(path)
    return found


def check_folders(paths: Iterable[str], root: str, within: Within) -> None:
    """Raise PATH_NOT_ALLOWED if a folder between `root` and one of the files below it is a link to elsewhere.

    Files of other tables, as those of a shallow clone, have to lie `within` as well.
    """
    seen = {root}
    for folder in {path.rpartition("/")[0] for path in paths if path != root}:
        if not is_under(folder, root):
            end_of_link(folder, within)
        while folder not in seen and is_under(folder, root):
            seen.add(folder)
            if os.path.islink(folder):
                end_of_link(folder, within)
            folder = folder.rpartition("/")[0]


def opened(path: str, within: Within) -> int:
    """A descriptor of a file, to be closed. Raises as `look` does; never waits."""
    try:
        descriptor = os.open(path, _SAFE)
    except PermissionError:  # a worker's kernel looks where a file lies before we can
        _check_place(path, os.path.realpath(path), within)
        raise
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK):
            raise no_file(path) if error.errno == errno.ENXIO else error from None
        descriptor = os.open(end_of_link(path, within), _SAFE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise no_file(path)
        _check_opened(path, descriptor, within)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_opened(path: str, descriptor: int, within: Within) -> None:
    """Raise PATH_NOT_ALLOWED for a file that lies elsewhere: one of the folders above may be a link by now."""
    with suppress(OSError):  # no Linux
        _check_place(path, os.readlink(f"/proc/self/fd/{descriptor}"), within)


def _check_place(path: str, real: str, within: Within) -> None:
    if within and not is_within(real, within) and not is_within(real, tuple(map(os.path.realpath, within))):
        raise not_allowed(f"The file {path}, whose folder was moved or is a link by now,")


@contextmanager
def held_folder(
    folder: str, root: str, made: list[str] | None = None, *, held_root: int | None = None
) -> Iterator[int]:
    """A descriptor of a real folder under `root`, for what makes or removes things in it.

    It is gone to step by step, through no link, so that whatever is put in its place meanwhile leads nowhere; from `held_root`,
    a descriptor of `root`, whatever lies there by now. With `made` what is missing below `root` is made, and told there. Raises
    PATH_NOT_ALLOWED.
    """
    if not is_under(folder, root):
        raise not_allowed(f"The folder {folder}")
    done = "" if held_root is None else root
    at = os.open("/", _STEP) if held_root is None else os.open(".", _STEP, dir_fd=held_root)
    try:
        for part in filter(None, folder[len(done) :].split("/")):
            done = f"{done}/{part}"
            below = _step(part, at, done, made if len(done) > len(root) else None)
            os.close(at)
            at = below
        # By now it is a place to go on from; to list, it has to be opened.
        held = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)
    try:
        yield held
    finally:
        os.close(held)


def _step(name: str, at: int, path: str, made: list[str] | None) -> int:
    """A descriptor of the folder `name` in the folder `at`."""
    try:
        return os.open(name, _STEP, dir_fd=at)
    except FileNotFoundError:
        if made is None:
            raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=at)
            made.append(path)
        return _step(name, at, path, None)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR) and _is_link(name, at):
            text = f"There is a link in the place of the folder {path}: it is not written through."
            raise UserError("PATH_NOT_ALLOWED", text) from error
        raise


def _is_link(name: str, at: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except OSError:
        return True  # it was exchanged a moment ago


def remove_file(path: str, root: str) -> None:
    """Remove a file of a folder under `root`, if it is there. Raises PATH_NOT_ALLOWED."""
    folder, name = os.path.split(path)
    with suppress(FileNotFoundError), held_folder(folder, root) as held:
        os.unlink(name, dir_fd=held)


def remove_tree(name: str, folder: int, until: float = math.inf) -> None:
    """Remove a folder in the open `folder` with all that is in it, however deep; through no link. What cannot be is left.

    So is what there is no time for `until` a moment of the monotonic clock; less than before, so that the next one comes to it.
    What lies deeper is moved up first: neither calls nor descriptors grow with the depth, which has no end in a file system.
    """
    with suppress(OSError):
        top = os.open(name, _LISTED, dir_fd=folder)
        try:
            seen: set[str] = set()
            while below := _cleared(top, until) - seen:
                for one in below:
                    if time.monotonic() > until:
                        return
                    seen.add(one)
                    with suppress(OSError):
                        _lifted(one, top, until)
        finally:
            os.close(top)
        os.rmdir(name, dir_fd=folder)


def _cleared(folder: int, until: float) -> set[str]:
    """The folders in an open folder, of which all else is removed, if there is time."""
    with os.scandir(folder) as entries:
        is_folder = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    for name in (name for name, there in is_folder.items() if not there):
        if time.monotonic() > until:
            break
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
    return {name for name, there in is_folder.items() if there}


def _lifted(name: str, top: int, until: float) -> None:
    """Remove a folder of the open `top`; the folders in it are in `top` then, under other names."""
    folder = os.open(name, _LISTED, dir_fd=top)
    try:
        for below in _cleared(folder, until):
            os.rename(below, uuid.uuid4().hex, src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def source(path: str, within: Within) -> pa.NativeFile:
    """A file for Arrow's readers, which is the one that was checked whatever its name means by now."""
    descriptor = opened(path, within)
    try:
        return pa.OSFile(f"/dev/fd/{descriptor}")
    finally:
        os.close(descriptor)


def check_tree(folder: str, within: Within) -> None:
    """Raise unless all below `folder` are folders and files, and no link there leads elsewhere."""
    todo = [folder]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    end_of_link(entry.path, within)
                elif entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    raise no_file(entry.path)


def local_path(root: str, logged: str) -> str | None:
    """Where a path as a log spells it (URI-encoded, maybe a ``file:`` URL) lies on disk; None for one that is not local."""
    if "://" in logged or logged[:5].lower() == "file:":
        try:
            parsed = urlsplit(logged)
        except ValueError:
            return None
        local = parsed.scheme == "file" and parsed.netloc in ("", "localhost")
        path = unquote(parsed.path) if local else ""
        return path if path.startswith("/") else None
    return os.path.join(root, unquote(logged) if "%" in logged else logged)
