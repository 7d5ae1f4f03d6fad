"""Statistics that checkpoints hold as structs: none are lost, and none are read as other values."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway import sqltypes as t
from gateway.delta.commit import checkpoint
from gateway.delta.logged import specs_of
from gateway.delta.parsed_statistics import with_texts
from gateway.delta.predicates import Comparison
from gateway.delta.pruning import prune
from gateway.delta.table import Snapshot, forget, open_snapshot
from gateway.delta.write import append, create_table
from gateway.errors import UnsupportedError

_STRUCTS = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
_INSTANT = pa.timestamp("us", "UTC")
_STILL = datetime(9999, 12, 31, tzinfo=UTC)
_EARLY, _LATE = datetime(1, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)


def _table(path: Path, schema: t.StructType, *files: dict[str, list[Any]]) -> str:
    root = str(path / "t")
    create_table(root, schema, properties=_STRUCTS)
    arrow = pa.schema([pa.field(f.name, f.type.arrow()) for f in schema.fields])
    for rows in files:
        append(root, [pa.RecordBatch.from_pydict(rows, schema=arrow)])
    checkpoint(root, len(files))
    forget(root)
    return root


def _checkpoint(root: str) -> Path:
    (found,) = Path(root, "_delta_log").glob("*.checkpoint.parquet")
    return found


def test_files_keep_their_statistics_as_texts_whatever_checkpoints_hold(tmp_path: Path) -> None:
    types = {"i": t.INT, "d": t.decimal(20, 3), "s": t.STRING, "day": t.DATE, "at": t.TIMESTAMP, "ntz": t.TIMESTAMP_NTZ}
    schema = t.struct(*(t.StructField(name, kind) for name, kind in types.items()))
    plain = datetime(2020, 1, 2, 3, 4, 5, 678901)
    row = {"i": 1, "d": Decimal("12345678901234567.890"), "s": 'ä"\\', "day": date(1, 1, 1), "at": plain, "ntz": plain}
    root = _table(tmp_path, schema, {name: [value, None] for name, value in row.items()})
    logged = json.loads(Path(root, "_delta_log", f"{1:020}.json").read_text().splitlines()[-1])["add"]["stats"]
    assert "stats" not in pq.read_schema(_checkpoint(root)).field("add").type.names
    (spec,) = specs_of(open_snapshot(root))
    assert json.loads(spec["stats"], parse_float=str) == json.loads(logged, parse_float=str)


def test_what_no_json_number_is_stands_as_a_text_and_what_no_text_tells_is_left_out() -> None:
    bounds = {
        "f": pa.array([float("nan"), None, 0.1], pa.float32()),
        "g": pa.array([float("-inf"), 1e300, -0.0]),
        "far": pa.array([2**40, 0, -(10**6)], pa.int64()).cast(pa.int32(), safe=False).cast(pa.date32()),
        "raw": pa.array([b"a", b"b", b"c"]),
        "at": pa.array([_STILL, _LATE, _EARLY], _INSTANT).cast(pa.timestamp("us")),
    }
    low = pa.StructArray.from_arrays(list(bounds.values()), names=list(bounds))
    parsed = pa.StructArray.from_arrays([pa.array([3, 2, None]), low], names=["numRecords", "minValues"])
    add = pa.StructArray.from_arrays([pa.array(["x", "y", "z"]), parsed], names=["path", "stats_parsed"])
    told = with_texts(add, {"add.stats_parsed.minValues.at"})
    assert told.field("stats").to_pylist() == [
        '{"numRecords":3,"minValues":{"f":"NaN","g":"-Infinity","far":"1970-01-01","at":"9999-12-31T00:00:00.000Z"}}',
        '{"numRecords":2,"minValues":{"g":1e+300,"far":"1970-01-01","at":"2020-01-01T00:00:00.000Z"}}',
        '{"minValues":{"f":0.1,"g":-0.0,"at":"0001-01-01T00:00:00.000Z"}}',
    ]


@pytest.fixture
def instants(tmp_path: Path) -> str:
    """A file of each instant, and a checkpoint that holds them in INT96, as Spark writes them."""
    schema = t.struct(t.StructField("id", t.INT), t.StructField("at", t.TIMESTAMP))
    files: list[dict[str, list[Any]]] = [{"id": [i], "at": [at]} for i, at in enumerate((_EARLY, _LATE, _STILL))]
    root = _table(tmp_path, schema, *files)
    path = _checkpoint(root)
    held = pq.read_table(path)
    pq.write_table(held, path, use_deprecated_int96_timestamps=True)
    return root


def _files_behind(snapshot: Snapshot, at: datetime) -> int:
    return int(prune(snapshot, [Comparison("at", ">", pa.scalar(at, _INSTANT))]).sum())


def test_instants_beyond_nanoseconds_leave_out_no_file_with_a_match(instants: str) -> None:
    still, past = datetime(9000, 1, 1, tzinfo=UTC), datetime(1000, 1, 1, tzinfo=UTC)
    assert (_files_behind(open_snapshot(instants), still), _files_behind(open_snapshot(instants), past)) == (1, 2)
    for more in (1, 2):  # behind commits that were not there when the checkpoint was read
        rows = [pa.array([9], pa.int32()), pa.array([_STILL], _INSTANT)]
        append(instants, [pa.RecordBatch.from_arrays(rows, ["id", "at"])])
        newer = open_snapshot(instants)
        assert (_files_behind(newer, still), _files_behind(newer, past)) == (1 + more, 2 + more)


def test_no_checkpoint_is_made_of_instants_that_are_misread(instants: str) -> None:
    append(instants, [])
    with pytest.raises(UnsupportedError, match="INT96"):
        checkpoint(instants, 4)
    assert _checkpoint(instants).name.startswith(f"{3:020}")
