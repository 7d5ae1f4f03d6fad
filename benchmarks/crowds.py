"""Many at once: what idle sessions hold, and what is left of a crowd of clients."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.measure import Row, resident_bytes, settle
from benchmarks.systems import gateway_process
from gateway.protocol import codec
from gateway.protocol.client import Client
from gateway.thrift_gen.TCLIService import ttypes

SESSIONS, MOST_BYTES = 1000, 64 * 1024
CLIENTS, STATEMENTS, BACK_SECONDS = 256, 4, 30.0


def _idle(url: str, pid: int) -> Row:
    """Resident memory of the front process for each session that does nothing."""
    opening = codec.encode_call("OpenSession", 0, ttypes.TOpenSessionReq(client_protocol_i64=0xA508))
    with Client(url).open() as client:
        client.execute("SELECT 1").table()
        settle(pid)
        before = resident_bytes(pid)
        for _ in range(SESSIONS):
            status, _ = client._connection.post(opening)  # noqa: SLF001
            assert status == 200
        each = (resident_bytes(pid) - before) / SESSIONS
    return Row(
        f"{SESSIONS} idle sessions",
        {"ours": f"{each / 1024:.1f} KiB each"},
        f"< {MOST_BYTES // 1024} KiB each",
        each < MOST_BYTES,
    )


def _open_now(pid: int) -> tuple[int, int]:
    """Threads and open files of a process."""
    return len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))


def _crowd(url: str, pid: int) -> Row:
    """Clients that come at once, each with a session and statements; then how long threads and files are more than before."""
    before = _open_now(pid)
    together = threading.Barrier(CLIENTS)
    failed: list[str] = []

    def work(_: int) -> None:
        together.wait()
        try:
            with Client(url).open() as client:
                for _ in range(STATEMENTS):
                    assert client.execute("SELECT count(*) AS n FROM range(1000)").table().to_pylist() == [{"n": 1000}]
        except Exception as error:  # noqa: BLE001 - counted
            failed.append(repr(error)[:200])

    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(work, range(CLIENTS)))
    served = time.perf_counter() - start
    end = time.perf_counter() + 4 * BACK_SECONDS
    start = time.perf_counter()
    while any(now > old + 4 for now, old in zip(_open_now(pid), before, strict=True)) and time.perf_counter() < end:
        time.sleep(0.2)
    back = time.perf_counter() - start
    shown = f"{len(failed)} errors in {served:.1f} s; threads and files back after {back:.1f} s"
    return Row(
        f"{CLIENTS} clients at once, {STATEMENTS} statements each",
        {"ours": shown + (f" ({failed[0]})" if failed else "")},
        f"no error, <= {BACK_SECONDS:.0f} s",
        not failed and back <= BACK_SECONDS,
    )


def run() -> list[Row]:
    """Idle sessions, and a crowd."""
    with gateway_process() as (url, pid, _):
        return [_idle(url, pid), _crowd(url, pid)]
