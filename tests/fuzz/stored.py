"""Tables that other writers would have stored: a copy of a plain table with mapped names, with deleted rows, with a file for
each row, in partitions, with fewer statistics, or with several of these.

The copies hold the same rows. What is deleted are rows of another file, repeated, so that statistics speak of them too.
"""

from __future__ import annotations

import datetime
import json
import math
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC, _NO_RUNS = 1681511377, 12346


#: What the statistics of files say: all, nothing of some columns, or nothing at all for some files.
ALL, SOME, NONE = TOLD = ("all", "some", "none")


@dataclass(frozen=True, slots=True)
class How:
    """How a copy is stored: partitions need a file for each row, which `apart` makes."""

    mapped: bool = False
    deleting: bool = False
    apart: bool = False
    partitions: tuple[str, ...] = ()
    told: str = ALL


def copy(source: Path, target: Path, how: How, random: Random) -> None:
    """The table of `source`, which has no partitions, below `target`; `random` chooses which statistics are missing."""
    actions = [json.loads(line) for path in sorted((source / "_delta_log").glob("*.json")) for line in path.open()]
    meta = next(a["metaData"] for a in actions if "metaData" in a)
    adds = [a["add"] for a in actions if "add" in a]
    schema = json.loads(meta["schemaString"])
    stored = {f["name"]: f"col-{i}" if how.mapped else f["name"] for i, f in enumerate(schema["fields"])}
    (target / "_delta_log").mkdir(parents=True)
    lines = [{"protocol": _protocol(how)}, {"metaData": _meta(meta, schema, stored, how)}]
    tables = [pq.read_table(source / add["path"], partitioning=None) for add in adds]
    told = [json.loads(add["stats"]) for add in adds]
    if how.apart:
        tables = [table.slice(i, 1) for table in tables for i in range(len(table))]
        told = [_of_row(table.to_pylist()[0]) for table in tables]
    kept = {n: to for n, to in stored.items() if n not in how.partitions}
    for i, rows in enumerate(tables):
        following = (i + 1) % len(tables)
        dead = tables[following] if how.deleting else rows.slice(0, 0)
        whole = pa.concat_tables([dead.slice(0, 1), rows, dead.slice(1)]).select(list(kept))
        gone = [j for j in range(len(whole)) if not min(len(dead), 1) <= j < min(len(dead), 1) + len(rows)]
        path = target / f"part-{i:05}.parquet"
        pq.write_table(whole.rename_columns(list(kept.values())), path)
        values = {stored[n]: _partition(rows[n][0].as_py()) for n in how.partitions}
        statistics = _statistics([told[i], told[following]] if how.deleting else [told[i]], kept)
        lines.append({"add": _add(path, values, gone, _fewer(statistics, how.told, random))})
    (target / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)) + "\n")


def _of_row(row: dict[str, Any]) -> dict[str, Any]:
    """The statistics that Spark writes for one row."""
    told = {name: _bound(value) for name, value in row.items()}
    bounds = {name: value for name, value in told.items() if value is not None}
    nulls = {name: int(value is None) for name, value in row.items()}
    return {"numRecords": 1, "minValues": bounds, "maxValues": dict(bounds), "nullCount": nulls}


def _bound(value: Any) -> Any:
    """A value as a bound, timestamps down to milliseconds; None for what has none."""
    if value is None or isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def _partition(value: Any) -> str | None:
    """A partition's value as a log has it."""
    return None if value is None else str(value).lower()


def _fewer(statistics: dict[str, Any], told: str, random: Random) -> dict[str, Any] | None:
    """What is left of a file's statistics."""
    if told == NONE and random.random() < 0.5:
        return None
    if told == SOME:
        for kind in ("minValues", "maxValues", "nullCount"):
            statistics[kind] = {name: value for name, value in statistics[kind].items() if random.random() < 0.6}
    return statistics


def _protocol(how: How) -> dict[str, Any]:
    if not how.deleting:
        return {"minReaderVersion": 2, "minWriterVersion": 5}
    features = ["deletionVectors", *(["columnMapping"] if how.mapped else [])]
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}


def _meta(meta: dict[str, Any], schema: dict[str, Any], stored: dict[str, str], how: How) -> dict[str, Any]:
    meta = meta | {"id": str(uuid.uuid4()), "partitionColumns": list(how.partitions)}
    if not how.mapped:
        return meta
    for i, field in enumerate(schema["fields"], 1):
        field["metadata"] |= {"delta.columnMapping.id": i, "delta.columnMapping.physicalName": stored[field["name"]]}
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(len(stored))}
    return meta | {"schemaString": json.dumps(schema), "configuration": configuration}


def _statistics(files: list[dict[str, Any]], stored: dict[str, str]) -> dict[str, Any]:
    """Those of the rows of several files, under stored names. What one of them says nothing of is left out."""
    told: dict[str, Any] = {
        "numRecords": sum(f["numRecords"] for f in files),
        "minValues": {},
        "maxValues": {},
        "nullCount": {},
    }
    for name, to in stored.items():
        told["nullCount"][to] = sum(f["nullCount"][name] for f in files)
        valued = [f for f in files if f["nullCount"][name] < f["numRecords"]]
        for kind, which in (("minValues", min), ("maxValues", max)):
            if valued and all(name in f.get(kind, {}) for f in valued):
                told[kind][to] = which(f[kind][name] for f in valued)
    return told


def _add(path: Path, partition: dict[str, Any], gone: list[int], statistics: dict[str, Any] | None) -> dict[str, Any]:
    """The action of a rewritten file."""
    found = path.stat()
    made = {
        "path": path.name,
        "partitionValues": partition,
        "size": found.st_size,
        "modificationTime": int(found.st_mtime * 1000),
        "dataChange": True,
    }
    if statistics is not None:
        made["stats"] = json.dumps(statistics | ({"tightBounds": False} if gone else {}))
    if gone:
        data = _bitmap(gone)
        vector = {"storageType": "i", "pathOrInlineDv": _z85(data), "sizeInBytes": len(data), "cardinality": len(gone)}
        made["deletionVector"] = vector
    return made


def _bitmap(rows: list[int]) -> bytes:
    """A RoaringBitmapArray of small numbers: one bitmap of one container, an array."""
    head = struct.pack("<IQI", _MAGIC, 1, 0)
    body = struct.pack("<IIHHI", _NO_RUNS, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    return head + body


def _z85(data: bytes) -> str:
    """ZeroMQ's base 85, filled up to whole groups of four bytes."""
    return "".join(_digits(data + b"\0" * (-len(data) % 4)))


def _digits(data: bytes) -> Iterator[str]:
    for (number,) in struct.iter_unpack(">I", data):
        for power in range(4, -1, -1):
            yield _Z85[number // 85**power % 85]
