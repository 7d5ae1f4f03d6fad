"""A PostgreSQL server of its own for tests, with what may be done to one: stopped, started again, held up."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

_PROGRAMS = ("initdb", "postgres", "pg_ctl")
_USERS = ("postgres", "nobody")  # the server does not run as root
PASSWORD = "s3cret%2Fpw"  # as in an address; the password itself has a slash


def problem() -> str | None:
    """Why there is no server on this machine."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"no {', '.join(missing)} on the PATH: apt-get install postgresql, and put its bin folder there"
    if os.getuid() == 0 and _owner() is None:
        return f"PostgreSQL does not run as root, and there is no user {' or '.join(_USERS)}"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "no psycopg: pip install '.[postgresql]'"
    return None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _owner() -> str | None:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in _USERS if name in names), None)


class Postgres:
    """A server with a user `ann`, who needs a password; make it, `start` it, `close` it."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # the path of a socket is short
        self._data = self._root / "data"
        self._as: dict[str, Any] = {}
        owner = _owner() if os.getuid() == 0 else None
        if owner is not None:
            entry = pwd.getpwnam(owner)
            os.chown(self._root, entry.pw_uid, entry.pw_gid)
            self._as = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        self.port = _free_port()
        secret = self._root / "password"
        secret.write_text("s3cret/pw\n")
        secret.chmod(0o644)
        self._run("initdb", "-D", str(self._data), "-U", "ann", "-A", "scram-sha-256", f"--pwfile={secret}",
                  "-E", "UTF8", "--locale=C.UTF-8", "-N")  # fmt: skip

    def _run(self, *command: str) -> None:
        environment = {**os.environ, "HOME": str(self._root)}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, cwd=self._root, env=environment, **self._as
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Returns when it answers."""
        options = (
            f"-p {self.port} -k {self._root} -c listen_addresses=127.0.0.1 -c fsync=off -c shared_buffers=16MB "
            "-c max_connections=30 -c max_wal_size=64MB"
        )
        log = str(self._root / "log")
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "60", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """End it at once."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")

    def hold(self, *, on: bool) -> None:
        """Let none of its processes do anything, or go on."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True, text=True, check=True
        )
        for pid in (first, *map(int, children.stdout.split())):
            os.kill(pid, signal.SIGSTOP if on else signal.SIGCONT)

    def own(self, folder: Path) -> None:
        """Let it write into a folder."""
        if self._as:
            os.chown(folder, self._as["user"], self._as["group"])

    def url(self, database: str = "postgres") -> str:
        """The address of a database of it."""
        return f"postgresql://ann:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> Any:
        """A connection of somebody else's."""
        import psycopg

        return psycopg.connect(self.url(database), autocommit=True)

    def make(self, database: str) -> str:
        """The address of a new database."""
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def close(self) -> None:
        """End it and remove what it has kept."""
        if (self._data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self._root, ignore_errors=True)
