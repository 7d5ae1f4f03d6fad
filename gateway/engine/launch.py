"""Starting a worker process: imports nothing of weight, so that a server can do it before its own imports."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[2])
# Not -m: the module would exist twice, as __main__ and under its name. Not the working directory (-P): it may hold anything.
_ENTRY = f"import sys; sys.path.append({_ROOT!r}); from gateway.engine.worker import main; main()"
# Stacks of the engine's own threads (Rust reads it once): plans are run by recursion, 500 set operations overflow the usual
# 2 MiB. Address space only.
_ENGINE_STACK = {"RUST_MIN_STACK": str(128 * 1024 * 1024)}
# The engine's allocator asks for huge pages: each of its many threads then clears 2 MiB for a small read, which costs more
# than it gives. What is free for a fifth of a second is given back to the system: a grouping that waits 10 ms only, as
# it comes, spends a quarter of its time on pages that it has just returned.
_ENGINE_HEAP = {"MIMALLOC_ALLOW_THP": "0", "MIMALLOC_PURGE_DELAY": "200"}
# Linear algebra, of which nothing is asked, would keep threads, and a process is forked more safely without.
_ENGINE_THREADS = {"OPENBLAS_NUM_THREADS": "1"}
_SECRETS = ("GATEWAY_HISTORY",)  # an address with a password, which the second engine has no use for


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _SECRETS}


class Launched:
    """A process that imports and then waits for its `Start` message at the other end of `socket`.

    Leader of its own process group. The thread that makes it must outlive it (see `worker`); it ends when `socket` is closed.
    """

    def __init__(self) -> None:
        """Raises OSError."""
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _ENTRY, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                env=_ENGINE_HEAP | _ENGINE_THREADS | _inherited() | _ENGINE_STACK,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C is for the front; a kill takes whatever the worker started
            )
        except BaseException:
            self.socket.close()
            raise
        finally:
            theirs.close()

    def end(self) -> None:
        """Kill and reap it; for whoever made it and then has no use for it."""
        self.socket.close()
        self.process.kill()
        self.process.wait()
