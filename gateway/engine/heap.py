"""What the allocators of a worker give back to the system is given back at once.

The engine's allocator gives large blocks back with MADV_FREE: the kernel takes them when it wants memory, and counts them
until then, so that a worker that has read a gigabyte seems to hold it. Where MADV_FREE is refused, it takes MADV_DONTNEED.
It has no option for that (mimalloc 2, in datafusion 55), so the system call itself is made to refuse.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from typing import Any

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_SECCOMP_MODE_FILTER = 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _ARCHITECTURE, _THIRD_ARGUMENT = 0, 4, 32  # places in what a filter is shown of a call
_MADV_FREE = 8
# Machine: what filters call it, and the number of madvise.
_MACHINES = {"x86_64": (0xC000003E, 28), "aarch64": (0xC00000B7, 233)}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def _filter(architecture: int, madvise: int) -> bytes:
    """A filter that lets all calls through but madvise(…, MADV_FREE), which is told EINVAL."""
    steps = (
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_IF_EQUAL, 0, 5, architecture),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_IF_EQUAL, 0, 3, madvise),
        (_LOAD, 0, 0, _THIRD_ARGUMENT),
        (_JUMP_IF_EQUAL, 0, 1, _MADV_FREE),
        (_RETURN, 0, 0, _ERRNO | errno.EINVAL),
        (_RETURN, 0, 0, _ALLOW),
    )
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def refuse_lazy_free() -> bool:
    """Refuse MADV_FREE to this thread and those that it starts, for good; whether this system lets us."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return False
    code = _filter(*machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    libc: Any = ctypes.CDLL(None)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0)
