"""Where files may lie: under the folders that statements may use, links followed to their end.

A folder is found and resolved once, by the catalog or by `catalog.paths`; here is what its own files are asked: whether a link
among them leads elsewhere, and whether they are files at all (opening a pipe would wait for ever). What fails is
PATH_NOT_ALLOWED, no UnsupportedError: no other engine is to read it instead.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from gateway.errors import ServerError, UserError

#: The folders that statements may use, as real paths.
Within = tuple[str, ...]
_SAFE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_under(path: str, root: str) -> bool:
    """Whether the real path `path` is `root` or lies under it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def is_within(path: str, within: Within) -> bool:
    """Whether the real path `path` is or lies under one of `within`."""
    return any(is_under(path, root) for root in within)


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
    real = os.path.realpath(path)
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
    """Raise PATH_NOT_ALLOWED if a folder between `root` and one of the files below it is a link to elsewhere."""
    seen = {root}
    for folder in {path.rpartition("/")[0] for path in paths}:
        while folder not in seen and is_under(folder, root):
            seen.add(folder)
            if os.path.islink(folder):
                end_of_link(folder, within)
            folder = folder.rpartition("/")[0]


def check_no_links(folder: str, root: str) -> None:
    """Raise PATH_NOT_ALLOWED if a folder below `root` that is to be written to, or one above it there, is a link."""
    while folder != root and is_under(folder, root):
        if os.path.islink(folder):
            raise UserError("PATH_NOT_ALLOWED", f"The folder {folder} is a link: it is not written through.")
        folder = folder.rpartition("/")[0]


def opened(path: str, within: Within) -> int:
    """A descriptor of a file, to be closed. Raises as `look` does; never waits."""
    try:
        descriptor = os.open(path, _SAFE)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK):
            raise no_file(path) if error.errno == errno.ENXIO else error from None
        descriptor = os.open(end_of_link(path, within), _SAFE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise no_file(path)
    return descriptor


@contextmanager
def held_folder(folder: str, root: str) -> Iterator[int]:
    """A descriptor of a real folder under `root`, for what removes things in it: no link in its place leads elsewhere."""
    if not is_under(folder, root):
        raise not_allowed(f"The folder {folder}")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        check_still_there(folder)
        yield descriptor
    finally:
        os.close(descriptor)


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
