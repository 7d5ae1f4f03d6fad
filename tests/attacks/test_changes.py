"""Changes of tables that are stopped midway or meet others: a table is its old version or its new one."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import answer, begin, cpu_seconds, outcome, put_instead, until, workers
from tests.live.disk import Disk
from tests.live.gateway import Server, start_server
from tests.live.tables import strays

ROWS = 20_000
MADE = (
    "CREATE TABLE {} USING DELTA PARTITIONED BY (p) AS SELECT id, id AS v, CAST(id % 4 AS STRING) AS p FROM range({})"
)
TOTAL = "SELECT count(*) AS n, sum(id) AS i, sum(v) AS v FROM {}"
# Statements that change every row or nearly so, and what TOTAL is then.
SUM = ROWS * (ROWS - 1) // 2
CHANGES = {
    "UPDATE {} SET v = v + 1 WHERE id >= 0": (ROWS, SUM, SUM + ROWS),
    "DELETE FROM {} WHERE id % 2 = 1": (ROWS // 2, SUM // 2 - ROWS // 4, SUM // 2 - ROWS // 4),
    "MERGE INTO {} t USING (SELECT id FROM range(" + str(ROWS) + ")) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 1":
        (ROWS, SUM, SUM + ROWS),
    "INSERT OVERWRITE {} SELECT id, id + 1 AS v, '0' AS p FROM range(" + str(ROWS) + ")": (ROWS, SUM, SUM + ROWS),
    "INSERT INTO {} REPLACE WHERE p >= '0' SELECT id, id + 1 AS v, '0' AS p FROM range(" + str(ROWS) + ")":
        (ROWS, SUM, SUM + ROWS),
    "TRUNCATE TABLE {}": (0, None, None),
}  # fmt: skip
OLD = (ROWS, SUM, SUM)
# Statements about files, which change no row.
CARE = ("VACUUM {}", "OPTIMIZE {}")
# The same, which write many files; RESTORE takes back an UPDATE that was made before.
PLACED, RESTORED = "OPTIMIZE {} ZORDER BY (id, v)", "RESTORE TABLE {} TO VERSION AS OF 0"
RAISED = "UPDATE {} SET v = v + 1 WHERE id >= 0"
VECTORS = MADE.replace("PARTITIONED", "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') PARTITIONED")
# A table of which a commit tells most: vectors, its changes, and the numbers of its rows.
TELLING = MADE.replace(
    "PARTITIONED",
    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true', "
    "'delta.enableRowTracking' = 'true') PARTITIONED",
)


# What else a process may be killed in: rows that come, by themselves and where some go, and files that go.
MORE = f"SELECT id + {ROWS} AS id, id AS v, CAST(id % 4 AS STRING) AS p FROM range({ROWS})"
GROWN = (2 * ROWS, SUM + SUM + ROWS * ROWS, 2 * SUM)
KILLED = CHANGES | {
    f"INSERT INTO {{}} {MORE}": GROWN,
    f"MERGE INTO {{}} t USING ({MORE}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT * "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = t.v": GROWN,
    "DELETE FROM {} WHERE id % 100 = 7": (ROWS - ROWS // 100, SUM - 1_991_400, SUM - 1_991_400),
}
AT_ONCE = "ALTER TABLE {} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')"
SWEPT = "VACUUM {} FULL"  # of files that an UPDATE has left
# How often each is killed.
KILLS = int(os.environ.get("GATEWAY_TEST_KILLS", "4"))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_server(tmp_path_factory.mktemp("changes"), "--slots", "2")
    yield server
    assert server.stop() == 0


@pytest.fixture
def client(own: Server) -> Iterator[Client]:
    with Client(own.thrift_url).open() as one:
        yield one


def total(client: Client, table: str) -> tuple[Any, ...]:
    (row,) = answer(client, TOTAL.format(table))
    return tuple(row.values())


@pytest.mark.heavy
@pytest.mark.parametrize("made", [MADE, VECTORS, TELLING], ids=["plain", "vectors", "telling"])
@pytest.mark.parametrize("change", [*KILLED, *CARE, PLACED, RESTORED, SWEPT])
def test_a_change_whose_process_is_killed_is_there_or_not(own: Server, client: Client, change: str, made: str) -> None:
    rng = random.Random(change + made)
    seconds = 0.0
    for turn in range(KILLS + 1):
        answer(client, made.format("killed", ROWS))
        old: tuple[Any, ...] = OLD
        new: tuple[Any, ...] = KILLED.get(change, OLD)
        if change in (RESTORED, SWEPT):
            answer(client, RAISED.format("killed"))
            old = CHANGES[RAISED]
        if change == SWEPT:
            answer(client, AT_ONCE.format("killed"))
            new = old
        if not turn:  # how long it takes
            start = time.monotonic()
            answer(client, change.format("killed"))
            seconds = time.monotonic() - start
            answer(client, "DROP TABLE killed")
            continue
        found: list[Any] = []
        with Client(own.thrift_url).open() as other:
            thread = threading.Thread(
                target=lambda other=other, found=found: found.append(outcome(other, change.format("killed")))
            )
            thread.start()
            time.sleep(rng.random() * seconds)
            for pid in workers(own):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            thread.join(60)
        ended = total(client, "killed")
        assert ended in (old, new)
        if not isinstance(found[0], RemoteError):
            assert ended == new
        if made is TELLING and change != SWEPT:  # what is told of changes adds up to the rows
            (told,) = answer(
                client,
                "SELECT sum(CASE WHEN _change_type IN ('insert', 'update_postimage') THEN v ELSE -v END) AS v "
                "FROM table_changes('killed', 0)",
            )
            assert (told["v"] or 0) == (ended[2] or 0)
        answer(client, AT_ONCE.format("killed"))
        answer(client, SWEPT.format("killed"))
        assert total(client, "killed") == ended
        assert strays(own.warehouse / "default" / "killed") == set()
        if change != RESTORED or ended == old:  # the files of the other version are gone
            outcome(client, change.format("killed"))  # what was left behind is in nobody's way
        answer(client, "DROP TABLE killed")


@pytest.mark.parametrize("made", [MADE, TELLING], ids=["plain", "telling"])
@pytest.mark.parametrize("change", [*(c for c in CHANGES if "TRUNCATE" not in c), PLACED])
def test_a_full_disk_leaves_the_table_as_it_was(tmp_path: Path, small_disk: Disk, change: str, made: str) -> None:
    small = small_disk(tmp_path / "warehouse" / "small", 8)
    server = start_server(tmp_path, "--slots", "2")
    try:
        with Client(server.thrift_url).open() as client:
            answer(client, made.format("small.t", ROWS))
            for leave in (0, 4096, 20_000):
                small.fill(leave)
                found = outcome(client, change.format("small.t"))
                (small.folder / "ballast").unlink()
                if not isinstance(found, RemoteError):  # it was enough
                    assert leave
                    break
                assert found.sqlstate == "53100", found
                assert total(client, "small.t") == OLD
            else:
                answer(client, change.format("small.t"))
            assert total(client, "small.t") == CHANGES.get(change, OLD)
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("made", [MADE, VECTORS])
def test_changes_beside_each_other_lose_nothing(own: Server, client: Client, made: str) -> None:
    """Each that is told to have happened has happened once, and no other."""
    answer(client, made.format("beside", ROWS))
    changes = [c for c in CHANGES if "v + 1" in c and "SELECT id, id + 1" not in c] + [CARE[1]]
    done: list[str] = []

    def run(seed: int) -> None:
        rng = random.Random(seed)
        with Client(own.thrift_url, user=f"u{seed}").open() as other:
            for _ in range(5):
                change = rng.choice(changes)
                found = outcome(other, change.format("beside"))
                if isinstance(found, RemoteError):
                    assert "CONCURRENT" in str(found), found
                elif change not in CARE:
                    done.append("v")

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert done
    assert total(client, "beside") == (ROWS, SUM, SUM + len(done) * ROWS)
    answer(client, "DROP TABLE beside")


@pytest.mark.parametrize("kind", ["link", "pipe"])
@pytest.mark.parametrize("change", [*CHANGES, *CARE])
def test_changes_go_through_no_link(own: Server, client: Client, tmp_path: Path, change: str, kind: str) -> None:
    """A data file, a partition's folder or the log in whose place something else stands."""
    for place in ("p=1", "_delta_log"):
        answer(client, MADE.format("linked", ROWS))
        folder = own.warehouse / "default" / "linked"
        kept, outside = tmp_path / f"kept{place}", tmp_path / f"outside{place}"
        outside.mkdir()
        (outside / "x").write_text("x")
        (folder / place).rename(kept)
        put_instead(folder / place, kind, outside)
        outcome(client, change.format("linked"), timeout_seconds=30)
        assert sorted(os.listdir(outside)) == ["x"]
        if kind == "folder":
            for path in sorted((folder / place).rglob("*"), reverse=True):
                path.unlink() if path.is_file() else path.rmdir()
            (folder / place).rmdir()
        else:
            (folder / place).unlink()
        kept.rename(folder / place)
        found = outcome(client, TOTAL.format("linked"))
        assert isinstance(found, RemoteError) or tuple(found[0].values()) in (OLD, CHANGES.get(change, OLD))
        outcome(client, "DROP TABLE linked")


def test_a_wide_merge_that_is_being_planned_ends_when_it_is_cancelled(own: Server, client: Client) -> None:
    columns = ", ".join(f"c{i} INT" for i in range(1200))
    answer(client, f"CREATE TABLE wide_merge ({columns}) USING DELTA")
    answer(client, f"INSERT INTO wide_merge VALUES ({', '.join('1' * 1200)})")
    merge = "MERGE INTO wide_merge t USING wide_merge s ON t.c0 = s.c0 WHEN MATCHED THEN UPDATE SET *"
    merge += " WHEN NOT MATCHED THEN INSERT *"
    operation = begin(client, merge)
    with Client(own.thrift_url).open() as other:
        running = (
            "SELECT engine FROM system.runtime.operations WHERE state = 'RUNNING' AND statement_text LIKE 'MERGE%'"
        )
        until(lambda: answer(other, running) == [{"engine": "datafusion"}], "it is being planned once more")
        busy = workers(own)
        client.call("CancelOperation", ttypes.TCancelOperationReq(operationHandle=operation))

        def computes() -> bool:
            before = {pid: cpu_seconds(pid) for pid in busy}
            time.sleep(0.5)
            return any((cpu_seconds(pid) or 0) - (seconds or 0) > 0.1 for pid, seconds in before.items())

        until(lambda: not computes(), "nobody goes on with it", 10)
        assert answer(other, "DESCRIBE HISTORY wide_merge")[0]["version"] == 1
