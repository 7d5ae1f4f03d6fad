"""Changes of Delta tables: a million rows in, single rows in, 1 % merged, one row of ten million, 200 files put together.

Each work is done by the gateway, by deltalake in this process, and by Sail and plain Spark where they are installed, one behind
the other in the same run. All are asked once before they are measured.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks import tables
from benchmarks.measure import Row, Sample, prepared, show
from benchmarks.systems import ANEW
from benchmarks.writers import PEERS, SCHEMA, Gateway, Peer, Writer, writers
from gateway.protocol.client import Client

ROWS, MERGED = 1_000_000, 10_000
SINGLE, FILES = 50, 200
WRITERS, APPENDS = 8, 1_000  # appends in all
ROUNDS, PATIENCE = 3, 5.0
_MILLION = f"INSERT INTO big SELECT id, id * 7 % 1000 FROM range({ROWS})"
_MERGE = (
    f"MERGE INTO big AS t USING (SELECT id * 101 AS id, -1L AS v FROM range({MERGED})) AS q ON t.id = q.id "
    "WHEN MATCHED THEN UPDATE SET v = q.v WHEN NOT MATCHED THEN INSERT *"
)


def _filled(writer: Writer, _: int) -> None:
    writer.made("big")
    writer.run(_MILLION)


@dataclass(frozen=True)
class Work:
    """A statement that is measured.

    `text` is the statement of a round by its number; `before` is done before it, unmeasured, `once` before the first one.
    `theirs` are deltalake's rounds.
    """

    name: str
    text: Callable[[int], str]
    asked: float
    theirs: Callable[[Path], Iterator[Callable[[], object]]]
    before: Callable[[Writer, int], None] | None = None
    once: Callable[[Writer], None] | None = None
    rounds: int = ROUNDS

    def by(self, writer: Writer) -> Sample:
        """The seconds of a system."""
        if self.once is not None:
            self.once(writer)
        return _warm(self.rounds, self._rounds(writer))

    def _rounds(self, writer: Writer) -> Iterator[Callable[[], object]]:
        for at in count():
            if self.before is not None:
                self.before(writer, at)
            yield partial(writer.run, self.text(at))

    def by_deltalake(self) -> Sample:
        """The seconds of deltalake, in this process."""
        folder = PEERS / "deltalake" / "table"
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return _warm(self.rounds, self.theirs(folder))


def _warm(wanted: int, rounds: Iterator[Callable[[], object]]) -> Sample:
    """The seconds of rounds, behind one that warms."""
    next(rounds)()
    return prepared(rounds, wanted, PATIENCE)


# ---- deltalake's rounds


def _table() -> pa.Table:
    ids = pa.array(range(ROWS), pa.int64())
    return pa.table({"id": ids, "v": pa.array([i * 7 % 1000 for i in range(ROWS)], pa.int64())})


def _their_inserts(folder: Path) -> Iterator[Callable[[], object]]:
    rows = _table()
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        yield lambda: write_deltalake(str(folder), rows)


def _their_single_rows(folder: Path) -> Iterator[Callable[[], object]]:
    one = pa.table({"id": pa.array([1], pa.int64()), "v": pa.array([1], pa.int64())})
    while True:
        yield lambda: write_deltalake(str(folder), one, mode="append")


def _their_merges(folder: Path) -> Iterator[Callable[[], object]]:
    rows = _table()
    keys = pa.array([i * 101 for i in range(MERGED)], pa.int64())
    changes = pa.table({"id": keys, "v": pa.array([-1] * MERGED, pa.int64())})

    def merge() -> object:
        merger = DeltaTable(folder).merge(changes, "t.id = q.id", source_alias="q", target_alias="t")
        return merger.when_matched_update_all().when_not_matched_insert_all().execute()

    while True:
        shutil.rmtree(folder, ignore_errors=True)
        write_deltalake(str(folder), rows)
        yield merge


def _their_deletes(folder: Path) -> Iterator[Callable[[], object]]:
    shutil.copytree(tables.table("lookup"), folder)
    for at in count():
        yield partial(DeltaTable(folder).delete, f"id = {_key(at)}")


def _their_updates(folder: Path) -> Iterator[Callable[[], object]]:
    shutil.copytree(tables.table("lookup"), folder)
    for at in count():
        yield partial(DeltaTable(folder).update, {"amount": "0"}, predicate=f"id = {_key(at) - 7}")


def _their_compactions(folder: Path) -> Iterator[Callable[[], object]]:
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(_SCATTERED, folder)
        yield lambda: DeltaTable(folder).optimize.compact()


# ---- the works


def _key(at: int) -> int:
    return (5_000_000 + at * 1_000_003) % tables.LOOKUP_ROWS


_SCATTERED = tables.WAREHOUSE / SCHEMA / "scattered"  # made by the gateway once, copied for each round of everybody
_LOOKUP: Callable[[Writer], None] = lambda writer: writer.placed("lookup", tables.table("lookup"))  # noqa: E731
WORKS = (
    Work(
        "INSERT of a row",
        lambda _: "INSERT INTO single VALUES (1, 1)",
        0.008,
        _their_single_rows,
        once=lambda writer: writer.made("single"),
        rounds=SINGLE,
    ),
    Work(
        "DELETE of a row of 10M",
        lambda at: f"DELETE FROM lookup WHERE id = {_key(at)}",
        0.06,
        _their_deletes,
        once=_LOOKUP,
    ),
    Work(
        "UPDATE of a row of 10M",
        lambda at: f"UPDATE lookup SET amount = 0 WHERE id = {_key(at) - 7}",
        0.06,
        _their_updates,
        once=_LOOKUP,
    ),
    Work("INSERT … SELECT of 1M rows", lambda _: _MILLION, 0.34, _their_inserts, lambda writer, _: writer.made("big")),
    Work("MERGE of 1 % into 1M rows", lambda _: _MERGE, 0.8, _their_merges, _filled),
    Work(
        f"OPTIMIZE of {FILES} files of a row",
        lambda at: f"OPTIMIZE files_{at}",
        0.1,
        _their_compactions,
        lambda writer, at: writer.placed(f"files_{at}", _SCATTERED),
    ),
)


def _scattered(gateway: Gateway) -> None:
    """A table of many files of one row."""
    gateway.made(_SCATTERED.name)
    for i in range(FILES):
        gateway.run(f"INSERT INTO {_SCATTERED.name} VALUES ({i}, {i})")


def _figure(work: Work, peer: Peer) -> str:
    try:
        return str(work.by(peer))
    except Exception as error:  # noqa: BLE001 - of another system's own
        return f"refused: {str(error).splitlines()[0][:30]}"


def _row(work: Work, gateway: Gateway, peers: list[Peer]) -> Row:
    figures = {"deltalake": str(work.by_deltalake()), **{peer.name: _figure(work, peer) for peer in peers}}
    ours = work.by(gateway)
    return Row(work.name, {**figures, gateway.name: str(ours)}, show(work.asked), ours.median <= work.asked)


def _appended(gateway: Gateway) -> Row:
    """Many writers of one table, none of whose rows may be lost."""
    gateway.made("shared")
    failures: list[Exception] = []

    def append(writer: int) -> None:
        try:
            with Client(gateway.url).open(ANEW) as client:
                for i in range(APPENDS // WRITERS):
                    client.execute(f"INSERT INTO main.{SCHEMA}.shared VALUES ({writer}, {i})").table()
        except Exception as error:  # noqa: BLE001 - failures are what is counted
            failures.append(error)

    threads = [threading.Thread(target=append, args=(writer,)) for writer in range(WRITERS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    rows = gateway.number("SELECT count(DISTINCT id, v) AS n FROM shared")
    lost = APPENDS - rows
    told = f"{show(seconds)}, {rows / seconds:.0f}/s, {lost} lost" + ("" if not failures else " FAILED")
    kept = not lost and not failures
    return Row(
        f"{WRITERS} writers, {APPENDS} appends", {"gateway": told}, "none lost, 60/s", kept and rows >= 60 * seconds
    )


def run() -> list[Row]:
    """Medians of each change, beside the other systems' where they have the same."""
    tables.table("lookup")
    with writers() as (gateway, peers):
        _scattered(gateway)
        found: list[Row] = []
        for work in WORKS:
            print(f"... {work.name}", file=sys.stderr, flush=True)
            found.append(_row(work, gateway, list(peers)))
        assert gateway.number("SELECT count(*) AS n FROM files_1") == FILES
        return [*found, _appended(gateway)]
