"""A worker can open files of some folders only, whatever names lead to: the kernel sees to it (Landlock), per thread.

A file that is looked at and then opened by its name may have been exchanged for a link between the two, and neither DataFusion
nor deltalake opens what we have opened. The kernel judges each file as it is opened, by where it lies, and so leaves no moment
between. Beside the folders that statements may use, a worker reads its own code and what the system has for all programs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gateway

# The same on all machines.
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_WHICH_VERSION, _BENEATH = 1, 1
_LEAST_VERSION = 2  # the first one forbids all moves from folder to folder
_READ_FILE, _READ_FOLDER, _MOVE = 1 << 2, 1 << 3, 1 << 13
_PR_SET_NO_NEW_PRIVS = 38
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC
_SYSTEM_FOLDERS = (
    "bin",
    "dev",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "nix",
    "opt",
    "proc",
    "run",
    "sbin",
    "snap",
    "sys",
    "usr",
)
_OF_SYSTEM = tuple(f"/{name}" for name in _SYSTEM_FOLDERS)

#: The exit code of a worker that is given a job which it may not be able to read for: another one is to run it.
OUTDATED = 75

#: A folder as it was: its device and its number, None where it was not there.
Identity = tuple[int, int] | None


@dataclass(frozen=True)
class Folders:
    """What a worker may read: `named` folders, and one of these for its own drafts; and files `beside` them."""

    named: tuple[str, ...]
    drafts: str
    beside: tuple[str, ...] = ()


@dataclass
class Confinement:
    """One that holds for this thread and those that it starts, for the folders that have been in their places."""

    _folders: dict[str, Identity] = field(default_factory=dict)

    def fits(self) -> bool:
        """Whether the folders are those that they were; others in their places cannot be opened."""
        return all(now is None or now == self._folders[path] for path in self._folders for now in (_identity(path),))


def version() -> int:
    """Of what the kernel offers; 0 for nothing that serves here."""
    if sys.platform != "linux":
        return 0
    found = int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_WHICH_VERSION)))
    return found if found >= _LEAST_VERSION else 0


def confine(folders: Folders) -> Confinement | None:
    """Confine this thread and all that it starts from now on; None where the kernel cannot."""
    if not version():
        return None
    libc = _libc()
    handled = struct.pack("=Q", _READ_FILE | _READ_FOLDER | _MOVE)
    with contextlib.suppress(OSError):  # one that somebody has removed: made later, it could not be read
        os.makedirs(folders.drafts, exist_ok=True)
    rules = int(libc.syscall(_CREATE, handled, ctypes.c_size_t(len(handled)), ctypes.c_uint32(0)))
    if rules < 0:
        return None
    try:
        _allow(rules, "/", _MOVE)
        for path in (*folders.beside, *_own(), *_OF_SYSTEM):
            _allow(rules, path, _READ_FILE | _READ_FOLDER)
        seen = {path: _allow(rules, path, _READ_FILE | _READ_FOLDER) for path in (*folders.named, folders.drafts)}
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(_RESTRICT, rules, ctypes.c_uint32(0)):
            return None
    finally:
        os.close(rules)
    tempfile.tempdir = folders.drafts  # what is written elsewhere could not be read again
    return Confinement(seen)


def _own() -> Iterator[str]:
    """Where this program and its libraries are."""
    package = Path(gateway.__file__).resolve().parent
    yield str(package)
    yield from {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, os.path.dirname(os.__file__)} - {
        "/"
    }
    # The last one is that of the package (see `launch`), which may hold other things too, where it is not installed.
    yield from (path for path in sys.path[:-1] if path not in ("", "/"))


def _allow(rules: int, path: str, rights: int) -> Identity:
    """Allow something below a folder, or a file, if it is there: which it is."""
    try:
        place = os.open(path, _PLACE)
    except OSError:
        return None
    try:
        found = os.fstat(place)
        rights &= ~0 if stat.S_ISDIR(found.st_mode) else _READ_FILE
        rule = struct.pack("=Qi", rights, place)
        if _libc().syscall(_ADD, rules, ctypes.c_int(_BENEATH), rule, ctypes.c_uint32(0)):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
        return found.st_dev, found.st_ino
    finally:
        os.close(place)


def _identity(path: str) -> Identity:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
