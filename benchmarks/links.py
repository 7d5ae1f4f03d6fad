"""Large results as links: how fast they are downloaded, and how much faster the connector is with them than without."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from benchmarks.measure import Row, resident_bytes, rounds
from benchmarks.systems import ANEW, Connector, gateway_process
from gateway.protocol.client import Client
from gateway.thrift_gen.TCLIService import ttypes

ROWS = 10_000_000
QUERY = f"SELECT id AS a, id * 2 AS b, id + 7 AS c, -id AS d, id % 1000 AS e FROM range({ROWS})"
ROUNDS, WARM_UP = 5, 1
DOWNLOADS = 4


def _links(client: Client) -> tuple[Any, list[Any]]:
    """The handle of the operation, and all links of its result, complete."""
    flags = {"canDownloadResult": True, "canReadArrowResult": True, "runAsync": True}
    request = ttypes.TExecuteStatementReq(sessionHandle=client.session, statement=QUERY, **flags)
    handle = client.call("ExecuteStatement", request).operationHandle
    found: list[Any] = []
    more = True
    while more:
        page = client.call(
            "FetchResults", ttypes.TFetchResultsReq(operationHandle=handle, orientation=0, maxRows=ROWS, maxBytes=0)
        )
        found += page.results.resultLinks
        more = page.hasMoreRows
    return handle, found


def _download(link: str, room: threading.local) -> int:
    """The bytes of one file, received and dropped."""
    where = urlsplit(link)
    if not hasattr(room, "buffer"):
        room.buffer = bytearray(1 << 20)
        room.socket = socket.create_connection((where.hostname or "", where.port or 80))
    peer: socket.socket = room.socket
    peer.sendall(f"GET {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += peer.recv(4096)
    fields, _, rest = head.partition(b"\r\n\r\n")
    assert fields.startswith(b"HTTP/1.1 200"), fields
    size = next(
        int(line.split(b":")[1]) for line in fields.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    left = size - len(rest)
    while left:
        left -= peer.recv_into(room.buffer, min(left, len(room.buffer)))
    return size


class _Peak(threading.Thread):
    """The most resident memory that a process has while this runs."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._end = pid, threading.Event()
        self.bytes = resident_bytes(pid)
        self.start()

    def run(self) -> None:
        """See `threading.Thread`."""
        while not self._end.wait(0.01):
            self.bytes = max(self.bytes, resident_bytes(self._pid))

    def stop(self) -> int:
        """Its bytes."""
        self._end.set()
        self.join()
        return self.bytes


def _raw(url: str, pid: int) -> Row:
    with Client(url).open(ANEW) as client:
        handle, links = _links(client)
        before = resident_bytes(pid)
        peak = _Peak(pid)
        size = 0

        def all_files() -> None:
            nonlocal size
            room = threading.local()
            with ThreadPoolExecutor(DOWNLOADS) as pool:
                size = sum(pool.map(lambda link: _download(link.fileLink, room), links))

        sample = rounds(all_files, ROUNDS, WARM_UP, server=pid)
        grown = (peak.stop() - before) / 2**20
        client.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=handle))
    speed = size / 1e6 / sample.median
    return Row(
        f"links, {size / 1e6:.0f} MB, {DOWNLOADS} downloads",
        {"ours": f"{speed:.0f} MB/s; front +{grown:.0f} MiB"},
        ">= 1,000 MB/s, <= 64 MiB",
        speed >= 1000 and grown <= 64,
    )


def _connector(url: str, pid: int) -> Row:
    def seconds(links: bool) -> float:
        connector = Connector(url, pid, links=links)
        sample = rounds(lambda: connector.query(QUERY), 3, 1, server=pid)
        connector.close()
        return sample.median

    inline, linked = seconds(False), seconds(True)
    return Row(
        "10M rows x 5 bigints, connector, links against inline",
        {"ours": f"{linked:.2f} s against {inline:.2f} s: {inline / linked:.1f}x"},
        ">= 3x",
        inline >= 3 * linked,
    )


def run() -> list[Row]:
    """The raw speed of links, and the connector with and without them."""
    with gateway_process() as (url, pid, _):
        return [_raw(url, pid), _connector(url, pid)]
