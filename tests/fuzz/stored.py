"""Tables that other writers would have stored: a copy of a plain table with mapped names, with deleted rows, or with both.

The copies hold the same rows. What is deleted are rows of another file, repeated, so that statistics speak of them too.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC, _NO_RUNS = 1681511377, 12346


def copy(source: Path, target: Path, *, mapped: bool, deleting: bool) -> None:
    """The table of `source`, which has no partitions, below `target`: with mapped names, with deletion vectors."""
    actions = [json.loads(line) for path in sorted((source / "_delta_log").glob("*.json")) for line in path.open()]
    meta = next(a["metaData"] for a in actions if "metaData" in a)
    adds = [a["add"] for a in actions if "add" in a]
    schema = json.loads(meta["schemaString"])
    stored = {f["name"]: f"col-{i}" if mapped else f["name"] for i, f in enumerate(schema["fields"])}
    (target / "_delta_log").mkdir(parents=True)
    lines = [{"protocol": _protocol(mapped, deleting)}, {"metaData": _meta(meta, schema, stored, mapped)}]
    tables = [pq.read_table(source / add["path"], partitioning=None) for add in adds]
    for i, (add, rows) in enumerate(zip(adds, tables, strict=True)):
        following = (i + 1) % len(tables)
        dead = tables[following] if deleting else rows.slice(0, 0)
        whole = pa.concat_tables([dead.slice(0, 1), rows, dead.slice(1)])
        gone = [j for j in range(len(whole)) if not min(len(dead), 1) <= j < min(len(dead), 1) + len(rows)]
        name = f"part-{i:05}.parquet"
        pq.write_table(whole.rename_columns([stored[n] for n in whole.column_names]), target / name)
        told = [json.loads(a["stats"]) for a in ((add, adds[following]) if deleting else (add,))]
        lines.append({"add": _add(add, target / name, gone, _statistics(told, stored))})
    (target / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)) + "\n")


def _protocol(mapped: bool, deleting: bool) -> dict[str, Any]:
    if not deleting:
        return {"minReaderVersion": 2, "minWriterVersion": 5}
    features = ["deletionVectors", *(["columnMapping"] if mapped else [])]
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}


def _meta(meta: dict[str, Any], schema: dict[str, Any], stored: dict[str, str], mapped: bool) -> dict[str, Any]:
    if not mapped:
        return meta | {"id": str(uuid.uuid4())}
    for i, field in enumerate(schema["fields"], 1):
        field["metadata"] |= {"delta.columnMapping.id": i, "delta.columnMapping.physicalName": stored[field["name"]]}
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(len(stored))}
    return meta | {"id": str(uuid.uuid4()), "schemaString": json.dumps(schema), "configuration": configuration}


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


def _add(add: dict[str, Any], path: Path, gone: list[int], statistics: dict[str, Any]) -> dict[str, Any]:
    """The action of a rewritten file."""
    made = {
        "path": path.name,
        "partitionValues": {},
        "size": path.stat().st_size,
        "modificationTime": add["modificationTime"],
        "dataChange": True,
        "stats": json.dumps(statistics | ({"tightBounds": False} if gone else {})),
    }
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
