"""What attacks share: answers as plain rows, raw requests, processes and their CPU time."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import HTTP_PATH, Server
from tests.live.processes import descendants, parent_of

ENDLESS = "SELECT count(*) FROM range(4000000) a CROSS JOIN range(4000000) b WHERE a.id * b.id % 7 = 1"


def answer(client: Client, text: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of a statement."""
    return [row for batch in client.execute(text, **options).batches() for row in batch.to_pylist()]


def outcome(client: Client, text: str, **options: Any) -> list[dict[str, Any]] | RemoteError:
    """Rows, or the error."""
    try:
        return answer(client, text, **options)
    except RemoteError as error:
        return error


@contextmanager
def again_and_again(step: Callable[[], None]) -> Iterator[None]:
    """`step` is done in a thread, again and again; the last one is done to its end."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            step()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def until(holds: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Wait until something holds that is soon to come."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not seen: {what}"
        time.sleep(0.02)


def begin(client: Client, text: str) -> Any:
    """Starts a statement and does not wait for it."""
    request = ttypes.TExecuteStatementReq(sessionHandle=client._session, statement=text, runAsync=True)
    return client.call("ExecuteStatement", request).operationHandle


def address(server: Server) -> tuple[str, int]:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return host, int(port)


def send(server: Server, data: bytes, hang_up: bool = False, timeout: float = 20.0) -> bytes:
    """What the server answers to raw bytes, until it closes; b"" if it says nothing. `hang_up`: we close our side first."""
    with socket.create_connection(address(server), timeout) as peer:
        received = b""
        try:
            peer.sendall(data)
            if hang_up:
                peer.shutdown(socket.SHUT_WR)
            while chunk := peer.recv(65536):
                received += chunk
        except OSError as error:
            if error.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
                raise
            # cut while we were still sending: what came before counts
        return received


def post(server: Server, body: bytes, **headers: str) -> tuple[int, bytes]:
    """Status and body of a POST on a connection of its own."""
    lines = [f"POST {HTTP_PATH} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head, _, rest = send(server, "\r\n".join(lines).encode() + b"\r\n\r\n" + body).partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]) if head else 0, rest


def workers(server: Server) -> list[int]:
    """Process ids of the server's engine processes; what they are forked from is none."""
    parents = {pid: parent_of(pid) for pid in descendants(server.process.pid)}
    return [pid for pid in parents if pid not in parents.values()]


def cpu_seconds(pid: int) -> float | None:
    """CPU time that a process has used, None once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Resident memory in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def contents(folder: Path) -> dict[str, bytes | str | None]:
    """All below a folder: bytes of files, targets of links, None for folders and others. Links are not followed."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


def log_action(table: Path, version: int, **actions: Any) -> None:
    """Put actions into the log of a Delta table as a commit, as a writer that is not to be trusted would."""
    lines = [json.dumps({kind: action}) for kind, action in actions.items()]
    (table / "_delta_log" / f"{version:020d}.json").write_text("\n".join(lines) + "\n")


def add_action(path: str, size: int) -> dict[str, Any]:
    """An ``add`` of a log."""
    return {"path": path, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}


def put_instead(path: Path, kind: str, target: Path) -> None:
    """Put a link to `target`, a dangling one, one to a device, a pipe, a folder or a file in a place where nothing is."""
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "file":
            path.write_text("x")
        case _:
            os.symlink({"link": target, "dangling": target / "nothing", "device": Path("/dev/zero")}[kind], path)
