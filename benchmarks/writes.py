"""Changes of Delta tables: a million rows in, single rows in, 1 % merged, one row of ten million, 200 files put together."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks import tables
from benchmarks.measure import Row, Sample, rounds, show
from benchmarks.systems import ANEW, gateway_process
from gateway.protocol.client import Client

SCHEMA = "writes"
ROWS, MERGED = 1_000_000, 10_000
SINGLE, FILES = 50, 200
WRITERS, APPENDS = 8, 1_000  # appends in all
ROUNDS = 3
SECONDS = 90  # behind which no other work is begun
_INTO = "WHEN MATCHED THEN UPDATE SET v = q.v WHEN NOT MATCHED THEN INSERT *"


def _folder(name: str) -> Path:
    return tables.WAREHOUSE / SCHEMA / name


def _theirs(name: str) -> str:
    """A folder for deltalake, outside of the warehouse."""
    folder = tables.CACHE / "deltalake" / name
    shutil.rmtree(folder, ignore_errors=True)
    return str(folder)


def _million() -> pa.Table:
    ids = pa.array(range(ROWS), pa.int64())
    return pa.table({"id": ids, "v": pa.array([i * 7 % 1000 for i in range(ROWS)], pa.int64())})


def _once(action: Callable[[], object], prepare: Callable[[], object]) -> Sample:
    """Seconds of an action that is prepared anew each time."""
    seconds = []
    for _ in range(ROUNDS):
        prepare()
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return Sample(tuple(seconds))


class _Ours:
    """The gateway: statements, and tables made for them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def run(self, sql: str) -> pa.Table:
        """One statement."""
        return self._client.execute(sql).table()

    def count(self, name: str) -> int:
        """The rows of a table."""
        return int(self.run(f"SELECT count(*) AS n FROM {name}").column(0)[0].as_py())

    def made(self, name: str) -> None:
        """An empty table."""
        self.run(f"DROP TABLE IF EXISTS {name}")
        self.run(f"CREATE TABLE {name} (id BIGINT, v BIGINT)")

    def filled(self, name: str) -> None:
        """A table of a million rows."""
        self.made(name)
        self.run(f"INSERT INTO {name} SELECT id, id * 7 % 1000 FROM range({ROWS})")

    def scattered(self, name: str) -> None:
        """A table of many files of one row."""
        self.made(name)
        for i in range(FILES):
            self.run(f"INSERT INTO {name} VALUES ({i}, {i})")


def _row(work: str, ours: Sample, theirs: Sample | None, asked: float | None = None) -> Row:
    figures = {"deltalake": str(theirs)} if theirs is not None else {}
    figures["gateway"] = str(ours)
    ok = None if asked is None else ours.median <= asked
    return Row(work, figures, "" if asked is None else show(asked), ok)


def _inserted(ours: _Ours) -> Row:
    rows = _million()
    sample = _once(
        lambda: ours.run(f"INSERT INTO big SELECT id, id * 7 % 1000 FROM range({ROWS})"), lambda: ours.made("big")
    )
    assert ours.count("big") == ROWS
    path = _theirs("big")
    theirs = _once(lambda: write_deltalake(path, rows), lambda: _theirs("big"))
    return _row("INSERT … SELECT of 1M rows", sample, theirs, 0.34)


def _single(ours: _Ours) -> Row:
    ours.made("single")
    sample = rounds(lambda: ours.run("INSERT INTO single VALUES (1, 1)"), SINGLE, 5, patience=5)
    path, one = _theirs("single"), pa.table({"id": pa.array([1], pa.int64()), "v": pa.array([1], pa.int64())})
    theirs = rounds(lambda: write_deltalake(path, one, mode="append"), SINGLE, 5, patience=5)
    return _row("INSERT of a row", sample, theirs, 0.008)


def _merged(ours: _Ours) -> Row:
    source = f"(SELECT id * 101 AS id, -1L AS v FROM range({MERGED}))"
    text = f"MERGE INTO big AS t USING {source} AS q ON t.id = q.id {_INTO}"
    sample = _once(lambda: ours.run(text), lambda: ours.filled("big"))
    path, rows = _theirs("big"), _million()
    keys = pa.array([i * 101 for i in range(MERGED)], pa.int64())
    changes = pa.table({"id": keys, "v": pa.array([-1] * MERGED, pa.int64())})

    def merge() -> object:
        merger = DeltaTable(path).merge(changes, "t.id = q.id", source_alias="q", target_alias="t")
        return merger.when_matched_update_all().when_not_matched_insert_all().execute()

    theirs = _once(merge, lambda: write_deltalake(_theirs("big"), rows))
    return _row("MERGE of 1 % into 1M rows", sample, theirs, 0.8)


def _one_of_many(ours: _Ours) -> list[Row]:
    place = _folder("lookup")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(tables.table("lookup"), place)
    copy = _theirs("lookup")
    shutil.copytree(tables.table("lookup"), copy)
    keys = iter(range(5_000_000, tables.LOOKUP_ROWS, 1_000_003))
    deleted = rounds(lambda: ours.run(f"DELETE FROM lookup WHERE id = {next(keys)}"), ROUNDS, 0)
    updated = rounds(lambda: ours.run(f"UPDATE lookup SET amount = 0 WHERE id = {next(keys) - 7}"), 1, 0)
    others = iter(range(1_000_000, tables.LOOKUP_ROWS, 1_000_003))
    theirs = rounds(lambda: DeltaTable(copy).delete(f"id = {next(others)}"), ROUNDS, 0)
    changed = rounds(lambda: DeltaTable(copy).update({"amount": "0"}, predicate=f"id = {next(others) - 7}"), 1, 0)
    return [
        _row("DELETE of a row of 10M", deleted, theirs, 0.06),
        _row("UPDATE of a row of 10M", updated, changed, 0.06),
    ]


def _compacted(ours: _Ours) -> Row:
    ours.scattered("scattered")
    mine = _copies(_folder("scattered"))
    sample = _once(lambda: ours.run(f"OPTIMIZE {mine[-1].name}"), lambda: mine.append(_copied(mine)))
    assert all(ours.count(copy.name) == FILES for copy in mine[1:])
    theirs_of = _copies(_folder("scattered"), Path(_theirs("scattered")).parent)
    theirs = _once(
        lambda: DeltaTable(str(theirs_of[-1])).optimize.compact(), lambda: theirs_of.append(_copied(theirs_of))
    )
    return _row(f"OPTIMIZE of {FILES} files of a row", sample, theirs, 0.1)


def _copies(folder: Path, parent: Path | None = None) -> list[Path]:
    """A table of which `_copied` makes others, beside it or in another folder."""
    if parent is None:
        return [folder]
    shutil.copytree(folder, parent / folder.name)
    return [parent / folder.name]


def _copied(made: list[Path]) -> Path:
    """One more table like the first."""
    place = made[0].with_name(f"{made[0].name}_{len(made)}")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(made[0], place)
    return place


def _appended(ours: _Ours, url: str) -> Row:
    """Many writers of one table, none of whose rows may be lost."""
    ours.made("shared")
    failures: list[Exception] = []

    def append(writer: int) -> None:
        try:
            with Client(url).open(ANEW) as client:
                for i in range(APPENDS // WRITERS):
                    client.execute(f"INSERT INTO main.{SCHEMA}.shared VALUES ({writer}, {i})").table()
        except Exception as error:  # noqa: BLE001 - failures are what is counted
            failures.append(error)

    start = time.perf_counter()
    threads = [threading.Thread(target=append, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    rows = ours.run("SELECT count(DISTINCT id, v) AS n FROM shared").column(0)[0].as_py()
    lost = APPENDS - rows
    figures = {"gateway": f"{show(seconds)}, {rows / seconds:.0f}/s, {lost} lost" + ("" if not failures else " FAILED")}
    kept = not lost and not failures
    return Row(f"{WRITERS} writers, {APPENDS} appends", figures, "none lost, 60/s", kept and rows >= 60 * seconds)


def run() -> list[Row]:
    """Medians of each change, beside deltalake's where it has the same; what there is no time for is left out by name."""
    tables.table("lookup")
    shutil.rmtree(_folder(""), ignore_errors=True)
    with gateway_process() as (url, _, _), Client(url).open(ANEW) as client:
        ours = _Ours(client)
        ours.run(f"CREATE SCHEMA IF NOT EXISTS main.{SCHEMA}")
        ours.run(f"USE main.{SCHEMA}")
        works: dict[str, Callable[[], list[Row]]] = {
            "INSERT of a row": lambda: [_single(ours)],
            "DELETE and UPDATE of a row of 10M": lambda: _one_of_many(ours),
            f"{WRITERS} writers": lambda: [_appended(ours, url)],
            "INSERT … SELECT of 1M rows": lambda: [_inserted(ours)],
            "MERGE of 1 % into 1M rows": lambda: [_merged(ours)],
            f"OPTIMIZE of {FILES} files of a row": lambda: [_compacted(ours)],
        }
        found: list[Row] = []
        end = time.perf_counter() + SECONDS
        try:
            for name, work in works.items():
                if time.perf_counter() > end:
                    found.append(Row(name, {"gateway": f"left out behind {SECONDS} s"}, "", None))
                    continue
                print(f"... {name}", file=sys.stderr, flush=True)
                found += work()
        finally:
            ours.run(f"DROP SCHEMA main.{SCHEMA} CASCADE")
        return found
