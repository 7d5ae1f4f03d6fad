"""What a template does: it forks a worker whenever it is asked for one (`template` is the front's side)."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import os
import signal
import socket
from typing import Any

from gateway.engine.channel import Channel, Fork, Forked, Reap, Reaped

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` dies, also if it has died already."""
    libc: Any = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def fork_for(channel: Channel) -> Channel:
    """Fork until the front hangs up; returns in each worker, with its own way to the front.

    Called by the only thread that there is.
    """
    template = os.getpid()
    gc.collect()
    gc.freeze()  # what is imported stays as it is, in memory that all have in common
    while (message := channel.receive()) is not None:
        if isinstance(message, Reap):
            _, status = os.waitpid(message.pid, 0)
            channel.send(Reaped(os.waitstatus_to_exitcode(status)))
            continue
        assert isinstance(message, Fork)
        descriptor = channel.take_descriptor()
        try:
            pid = os.fork()
        except OSError as error:  # no room for one more; those that are there go on
            os.close(descriptor)
            channel.send(Forked(0, error.errno or errno.EAGAIN))
            continue
        if pid == 0:
            os.setpgid(0, 0)
            die_with_parent(template)
            channel.drop()
            return Channel(socket.socket(fileno=descriptor))
        os.close(descriptor)
        with contextlib.suppress(PermissionError, ProcessLookupError):  # by itself, or gone again
            os.setpgid(pid, pid)
        channel.send(Forked(pid))
    os._exit(0)
