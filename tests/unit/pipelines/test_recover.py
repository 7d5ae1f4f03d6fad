"""Tables that a run emptied and did not fill: told by their logs, and given back with the checkpoints that belong to them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest

from gateway import sqltypes as t
from gateway.delta import log, write
from gateway.delta.table import open_snapshot
from gateway.pipelines import checkpoints
from gateway.pipelines.checkpoints import encoded
from gateway.pipelines.lock import Holder, held, sealed
from gateway.pipelines.recover import Before, forget, give_back
from gateway.pipelines.warehouse import version

SCHEMA = t.struct(t.StructField("x", t.BIGINT))
KEY = b"k" * 32
RUN = "run-1"


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["x"])


@pytest.fixture
def view(tmp_path: Path) -> Path:
    """A table with two rows at version 1."""
    folder = tmp_path / "view"
    write.create_table(str(folder), SCHEMA)
    write.append(str(folder), [batch(1, 2)])
    return folder


def commit(folder: Path, operation: str, *actions: dict[str, dict[str, object]]) -> None:
    """A commit as Spark writes it."""
    number = log.commit_versions(str(folder))[-1] + 1
    info: dict[str, dict[str, object]] = {
        "commitInfo": {"timestamp": 1, "operation": operation, "operationParameters": {}}
    }
    lines = [json.dumps(action) for action in (info, *actions)]
    Path(log.commit_path(str(folder), number)).write_text("\n".join(lines) + "\n")


def truncate(folder: Path) -> None:
    """What Spark does to a view when a run begins."""
    paths = [Path(path).name for path in open_snapshot(str(folder)).files.paths]
    commit(folder, "TRUNCATE", *({"remove": {"path": p, "dataChange": True, "deletionTimestamp": 1}} for p in paths))
    commit(folder, "SET TBLPROPERTIES")


def rows(folder: Path) -> int | None:
    return open_snapshot(str(folder)).num_rows


def test_view_that_is_emptied_gets_its_rows_back_once(view: Path) -> None:
    before = Before("s.v", str(view), 1, RUN)
    assert give_back(before) is None
    truncate(view)
    assert rows(view) == 0
    assert give_back(before) == "s.v has its rows of before the run again (version 1)"
    assert rows(view) == 2
    after = version(view)
    assert give_back(before) is None and version(view) == after


def test_view_that_is_filled_is_left_alone_also_if_it_is_empty(view: Path) -> None:
    before = Before("s.v", str(view), 1, RUN)
    truncate(view)
    commit(view, "WRITE")
    assert give_back(before) is None
    assert rows(view) == 0


def test_rows_survive_crashes_one_after_the_other(view: Path, tmp_path: Path) -> None:
    """Each run takes over a dead one's lock file; the second dies before it has given anything back."""
    path = tmp_path / "shop.lock"

    def crashed(run: str, before: list[Before]) -> None:
        path.write_bytes(sealed(path, Holder(run, "shop", 1.0, before=[asdict(b) for b in before]), KEY))

    truncate(view)
    crashed("run-1", [Before("s.v", str(view), 1, "run-1")])
    taking_over = Holder("run-2", "shop", 2.0)
    with held(path, taking_over, KEY):
        written = path.read_text()  # as the second run leaves it when it is killed here
    path.write_text(written)
    third = Holder("run-3", "shop", 3.0)
    with held(path, third, KEY) as lock:
        assert lock.left is not None and lock.left.run == "run-2"
        assert [give_back(Before(**b)) for b in third.before] == [
            "s.v has its rows of before the run again (version 1)"
        ]
    assert rows(view) == 2


def test_lock_file_is_rewritten_in_place(tmp_path: Path) -> None:
    path = tmp_path / "shop.lock"
    holder = Holder("run-1", "shop", 1.0, before=[asdict(Before("s.v", "/v", 1, RUN))] * 1000)
    with held(path, holder, KEY) as lock:
        size = path.stat().st_size
        holder.before = []
        lock.write(holder)
        assert path.stat().st_size == size and json.loads(path.read_text())["before"] == []


def test_table_that_is_gone_or_made_anew_is_left_alone(view: Path, tmp_path: Path) -> None:
    assert give_back(Before("s.v", str(tmp_path / "gone"), 1, RUN)) is None
    assert give_back(Before("s.v", str(view), 7, RUN)) is None


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Checkpoints of a table with two flows, one of which was computed anew before."""
    folder = tmp_path / "storage" / "table"
    for name in ("a/0", "a/1", "b/0"):
        (folder / name / "offsets").mkdir(parents=True)
    return folder


def test_streaming_table_gets_its_checkpoints_back(view: Path, place: Path) -> None:
    before = Before("s.t", str(view), 1, RUN, str(place), checkpoints.numbers(place))
    assert before.checkpoints == ["a/0", "a/1", "b/0"]
    (place / "a" / "2").mkdir()  # Spark has begun to compute it anew, and was killed before it emptied the table
    assert give_back(before) is None
    assert checkpoints.numbers(place) == ["a/0", "a/1", "b/0"] and rows(view) == 2
    (place / "b" / "1").mkdir()
    truncate(view)
    assert give_back(before) is not None
    assert checkpoints.numbers(place) == ["a/0", "a/1", "b/0"] and rows(view) == 2


def test_streaming_table_that_has_new_rows_keeps_its_new_checkpoints(view: Path, place: Path) -> None:
    before = Before("s.t", str(view), 1, RUN, str(place), checkpoints.numbers(place))
    (place / "a" / "2").mkdir()
    truncate(view)
    write.append(str(view), [batch(3)])
    assert give_back(before) is None
    assert checkpoints.numbers(place) == ["a/0", "a/1", "a/2", "b/0"] and rows(view) == 1


def test_streaming_table_that_cannot_be_given_back_reads_everything_again(view: Path, place: Path) -> None:
    before = Before("s.t", str(view), 1, RUN, str(place), checkpoints.numbers(place))
    files = open_snapshot(str(view)).files.paths
    truncate(view)
    for path in files:
        Path(path).unlink()
    said = give_back(before)
    assert said is not None and said.startswith("warning: s.t is empty until the next run: ")
    assert checkpoints.numbers(place) == [] and rows(view) == 0


def test_checkpoints_under_an_encoded_path_are_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / "my%20shop" / "t"
    (folder / "a" / "0" / "offsets").mkdir(parents=True)
    kept = checkpoints.numbers(folder)
    checkpoints.set_aside(folder, RUN)
    assert checkpoints.numbers(folder) == []
    (folder / "a" / "0" / "sources").mkdir(parents=True)
    checkpoints.put_back(folder, kept, RUN)
    checkpoints.put_back(folder, kept, RUN)
    assert [p.name for p in (folder / "a").iterdir()] == ["0"]
    assert [p.name for p in (folder / "a" / "0").iterdir()] == ["offsets"]
    checkpoints.set_aside(folder, RUN)
    (folder / "a" / "0" / "sources").mkdir(parents=True)
    forget(Before("s.t", str(tmp_path / "t"), 1, RUN, str(folder), kept))
    assert [str(p.relative_to(folder)) for p in folder.glob("*/*/*")] == ["a/0/sources"]


def test_other_checkpoints_are_not_set_aside(place: Path) -> None:
    checkpoints.set_aside(place, RUN)
    assert checkpoints.numbers(place) == ["a/0", "a/1", "b/0"]


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/a b/c", "/a%20b/c"),
        ("/100%/#1?", "/100%25/%231%3F"),
        ('/[x]{y}<z>|\\^`"', "/%5Bx%5D%7By%7D%3Cz%3E%7C%5C%5E%60%22"),
        ("/it's-(a)~*!;:@&=+$,._", "/it's-(a)~*!;:@&=+$,._"),
        ("/größe/日本\U0001f600\u200b", "/größe/日本\U0001f600\u200b"),
        ("/a\u00a0b\u3000c\td\x7f", "/a%C2%A0b%E3%80%80c%09d%7F"),
    ],
)
def test_paths_are_encoded_as_hadoop_does(path: str, there: str) -> None:
    """As recorded from `new Path(path).toUri().toString()` of Spark 4.2.0."""
    assert encoded(path) == there
