"""A live `gateway serve` and connections to it by the databricks-sql-connector."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS = 120.0
HTTP_PATH = "/sql/1.0/warehouses/test"


@dataclass
class Server:
    """A running gateway process."""

    process: subprocess.Popen[bytes]
    url: str
    warehouse: Path
    log: Path
    tcp: str | None = None
    https: str | None = None

    @property
    def tcp_address(self) -> tuple[str, int]:
        """Host and port of Thrift over TCP."""
        host, _, port = (self.tcp or "").rpartition(":")
        return host, int(port)

    @property
    def thrift_url(self) -> str:
        return self.url + HTTP_PATH

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


_STARTED: list[subprocess.Popen[bytes]] = []


@atexit.register
def _kill_what_is_left() -> None:
    """Servers of tests that failed before they stopped them."""
    for process in _STARTED:
        if process.poll() is None:
            process.kill()


def clean_environment() -> dict[str, str]:
    """The environment without settings of a gateway."""
    return {k: v for k, v in os.environ.items() if not k.startswith("GATEWAY_")}


def start_server(folder: Path, *flags: str, environment: dict[str, str] | None = None) -> Server:
    """Start `gateway serve` on a free port with its warehouse and state inside `folder`; returns once it is ready."""
    folder.mkdir(parents=True, exist_ok=True)
    warehouse, ready, log = folder / "warehouse", folder / "ready.json", folder / "server.log"
    warehouse.mkdir(exist_ok=True)
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "gateway", "serve", "--warehouse", str(warehouse), "--port", "0"]
    command += ["--state", str(folder / "state"), "--ready-file", str(ready), *flags]
    with log.open("ab") as stream:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=(environment or clean_environment())
        )
    _STARTED.append(process)
    end = time.monotonic() + START_SECONDS
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise RuntimeError(f"gateway serve did not start (exit {process.poll()}):\n{log.read_text()[-4000:]}")
        time.sleep(0.02)
    facts = json.loads(ready.read_text())
    return Server(process, facts["http"], warehouse, log, facts["tcp"], facts["https"])


Connect = Callable[..., Any]


def connect_to(server: Server, **arguments: Any) -> Any:
    """A connection of the databricks-sql-connector; `arguments` override the defaults."""
    from databricks import sql

    settings: dict[str, Any] = {
        "server_hostname": "localhost",
        "http_path": HTTP_PATH,
        "_connection_uri": server.thrift_url,
        "access_token": "none-needed",
        "enable_telemetry": False,
    }
    return sql.connect(**{**settings, **arguments})


def connections(server: Server) -> Iterator[Connect]:
    """Opens connections to `server` that are closed when the generator is."""
    opened: list[Any] = []

    def open_one(**arguments: Any) -> Any:
        opened.append(connect_to(server, **arguments))
        return opened[-1]

    yield open_one
    for connection in opened:
        connection.close()
