"""Logs of Delta tables that two readers might take in two ways: changes of them that a seed chooses.

A change is a function of the folder of a table, of a place outside of it, and of a source of chance; it says what it has done.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LOG = "_delta_log"
Change = Callable[[Path, Path, Random], str]
_COMMIT = re.compile(r"\d{20}\.json")
_UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def elsewhere(other: Path) -> list[str]:
    """Spellings of the path of a file outside of the table, three folders up and down again."""
    up = f"../../../{other.parent.name}/{other.name}"
    encoded = up.replace("..", "%2e%2e")
    return [
        *(
            up,
            encoded,
            up.replace("/", "%2f"),
            encoded.replace("%", "%25"),
            f"./{up}",
            f"x/../{up}",
            up.replace("/", "\\"),
        ),
        *(
            f"{scheme}{other}"
            for scheme in ("", "file:", "file://", "FILE://", "file:///", "file://localhost", "/", "file%3A")
        ),
        *(f"{mark}{up}" for mark in (" ", "\t", "?/../", "#/../")),
    ]


def respelt(path: str) -> list[str]:
    """Spellings that some readers take for `path`."""
    dotted = [f"./{path}", f"x/../{path}", f"//{path}", f"{path}/", path.replace("/", "//"), f"././{path}"]
    encoded = [path.replace(".parquet", "%2Eparquet"), f"%{ord(path[0]):02X}{path[1:]}", path.replace("-", "%2D", 1)]
    return [*dotted, *encoded, f"{path}?a", f"{path}#a", path.upper(), f" {path}", f"{path} ", f"{path}\0"]


def commits(table: Path) -> list[Path]:
    """The commits of a table, the oldest first."""
    return sorted(path for path in (table / LOG).iterdir() if _COMMIT.fullmatch(path.name))


def _with_file(table: Path, chance: Random) -> tuple[Path, list[str], int]:
    """A commit that adds a file, its lines, and which of them does."""
    found = [path for path in commits(table) if '"add"' in path.read_text()]
    path = chance.choice(found)
    lines = path.read_text().splitlines()
    return path, lines, next(i for i, line in enumerate(lines) if '"add"' in line)


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def another_path(table: Path, other: Path, chance: Random) -> str:
    """A file has another path, or is there again under it."""
    path, lines, at = _with_file(table, chance)
    add = json.loads(lines[at])["add"]
    spelt = chance.choice([*elsewhere(other), *respelt(add["path"])])
    changed = json.dumps({"add": {**add, "path": spelt}})
    lines[at:] = [changed, *lines[at + 1 :]] if chance.random() < 0.5 else [lines[at], changed, *lines[at + 1 :]]
    _write(path, lines)
    return spelt


def keys_twice(table: Path, other: Path, chance: Random) -> str:
    """Keys that come twice, in another case, or with an escape."""
    path, lines, at = _with_file(table, chance)
    line, there = lines[at], '"path":' + json.dumps(json.loads(lines[at])["add"]["path"])
    out = json.dumps(str(other))
    forms = {
        "first": line.replace(there, f'"path":{out},{there}'),
        "last": line.replace(there, f'{there},"path":{out}'),
        "upper": line.replace(there, f'"PATH":{out},{there}'),
        "other": line.replace('"path"', '"Path"'),
        "action": line.replace('{"add"', '{"Add"'),
        "escape": line.replace('"path"', '"p\\u0061th"'),
    }
    form = chance.choice(sorted(forms))
    lines[at] = forms[form]
    _write(path, lines)
    return form


def added_and_removed(table: Path, other: Path, chance: Random) -> str:
    """A file is removed by the commit that adds it, or by another one in another spelling."""
    path, lines, at = _with_file(table, chance)
    action = json.loads(lines[at])
    gone = {"path": action["add"]["path"], "deletionTimestamp": 1, "dataChange": True}
    form = chance.choice(("same line", "behind", "before", "respelt", "again"))
    match form:
        case "same line":
            lines[at] = json.dumps({**action, "remove": gone})
        case "behind":
            lines.append(json.dumps({"remove": gone}))
        case "before":
            lines.insert(0, json.dumps({"remove": gone}))
        case "respelt":
            lines.append(json.dumps({"remove": {**gone, "path": chance.choice(respelt(gone["path"]))}}))
        case "again":
            lines.append(lines[at])
    _write(path, lines)
    return form


def other_types(table: Path, other: Path, chance: Random) -> str:
    """A field of a file has a value that it should not have."""
    path, lines, at = _with_file(table, chance)
    action = json.loads(lines[at])
    name = chance.choice(("size", "modificationTime", "dataChange", "partitionValues", "deletionVector", "baseRowId"))
    value: Any = chance.choice((None, "1", 1.0, -1, 2**63, 2**64, True, {}, [], {"a": None}, "x"))
    action["add"][name] = value
    lines[at] = json.dumps(action)
    _write(path, lines)
    return f"{name} = {value!r}"


def other_text(table: Path, other: Path, chance: Random) -> str:
    """A commit's text ends otherwise, or is no text of JSON lines."""
    path = chance.choice(commits(table))
    text = path.read_text().rstrip("\n")
    add = json.dumps(
        {"add": {"path": str(other), "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}
    )
    ends = (
        "\n\n\n",
        "\n{}",
        "\nnull",
        "\n[]",
        "\n//x",
        f"\n \t{add}",
        "\0",
        f"\n{add[:-3]}",
        f"\r{add}",
        f"\u2028{add}",
    )
    forms = {repr(end): (text + end).encode() for end in ends}
    forms |= {
        "mark": f"\ufeff{text}".encode(),
        "lines": text.replace("\n", "\r\n").encode(),
        "wide": text.encode("utf-16"),
    }
    form = chance.choice(sorted(forms))
    path.write_bytes(forms[form])
    return form


def other_files(table: Path, other: Path, chance: Random) -> str:
    """Files beside the commits: names that look like versions, checkpoints and checksums that say something else."""
    log, found = table / LOG, commits(table)
    last = int(found[-1].name[:20])
    add = {"path": chance.choice(elsewhere(other)), "partitionValues": {}, "size": other.stat().st_size}
    line = json.dumps({"add": {**add, "modificationTime": 1, "dataChange": True}}) + "\n"
    versions = {"wide": f"{last + 1:021d}.json", "case": f"{last + 1:020d}.JSON", "draft": f"{last + 1:020d}.json.tmp"}
    versions |= {"gap": f"{last + 2:020d}.json", "checkpoint": f"{last:020d}.checkpoint.json"}
    form = chance.choice(
        (*sorted(versions), "hint", "bad hint", "lost", "again", "checkpoint elsewhen", "named", "staged", "checksum")
    )
    match form:
        case "hint":
            (log / "_last_checkpoint").write_text(json.dumps({"version": chance.choice((0, 3, last)), "size": 1}))
        case "bad hint":
            (log / "_last_checkpoint").write_text(chance.choice(("", "{}", "null", '{"version":"3","size":1}')))
        case "lost":
            chance.choice(found).unlink()
        case "again":
            shutil.copyfile(found[0], log / f"{last + 1:020d}.json")
        case "checkpoint elsewhen":
            for path in list(log.glob("*.checkpoint.*")):
                shutil.copyfile(path, log / f"{chance.choice((1, 2, last)):020d}{path.name[20:]}")
        case "named":
            more = json.dumps({"checkpointMetadata": {"version": last}})
            (log / f"{last:020d}.checkpoint.{_UUID}.json").write_text(f"{found[0].read_text()}{line}{more}\n")
        case "staged":
            (log / "_staged_commits").mkdir(exist_ok=True)
            (log / "_staged_commits" / f"{last + 1:020d}.{_UUID}.json").write_text(line)
        case "checksum":
            path = log / f"{last:020d}.crc"
            told = json.loads(path.read_text()) if path.exists() else {}
            path.write_text(json.dumps({**told, "allFiles": [json.loads(line)["add"]]}))
        case _:
            (log / versions[form]).write_text(line)
    return form


def other_rows(table: Path, other: Path, chance: Random) -> str:
    """A checkpoint or a sidecar lists other files, or has a column in another case."""
    found = sorted((table / LOG).rglob("*.parquet"))
    if not found:
        return another_path(table, other, chance)
    path = chance.choice(found)
    read = pq.read_table(path)
    rows: list[dict[str, Any]] = read.to_pylist()
    adds = [row for row in rows if row.get("add")]
    if not adds or chance.random() < 0.2:
        pq.write_table(
            read.rename_columns([name.upper() if name == "add" else name for name in read.column_names]), path
        )
        return "columns"
    add = chance.choice(adds)
    spelt = chance.choice([*elsewhere(other), *respelt(add["add"]["path"])])
    changed = {**add, "add": {**add["add"], "path": spelt}}
    kept = rows if chance.random() < 0.5 else [row for row in rows if row is not add]
    pq.write_table(pa.Table.from_pylist([*kept, changed], schema=read.schema), path)
    return spelt


def other_vector(table: Path, other: Path, chance: Random) -> str:
    """A deletion vector lies elsewhere, or has another size."""
    found = [path for path in commits(table) if '"deletionVector"' in path.read_text()]
    if not found:
        return other_types(table, other, chance)
    lines = found[0].read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if '"add"' in line and '"deletionVector"' in line)
    action = json.loads(lines[at])
    vector = action["add"]["deletionVector"]
    places = (str(other), "file:///etc/passwd", f"../../{vector['pathOrInlineDv']}", f"ab{vector['pathOrInlineDv']}")
    changes: tuple[dict[str, Any], ...] = (
        *({"storageType": kind, "pathOrInlineDv": place} for kind in "piuPx" for place in places),
        *({"offset": value} for value in (0, -1, 2**31, None, "1")),
        *({"cardinality": value} for value in (0, 2, -1, None)),
        *({"sizeInBytes": value} for value in (0, 10**9, -1)),
    )
    change = chance.choice(changes)
    vector.update(change)
    lines[at] = json.dumps(action)
    _write(found[0], lines)
    return str(change)


CHANGES: tuple[Change, ...] = (
    *(
        another_path,
        keys_twice,
        added_and_removed,
        other_types,
        other_text,
        other_files,
        other_files,
        other_rows,
        other_vector,
    ),
)


def changed(table: Path, other: Path, chance: Random) -> str:
    """Change a table's log once or twice; what was done."""
    said = []
    for _ in range(chance.choice((1, 1, 1, 2))):
        change = chance.choice(CHANGES)
        said.append(f"{change.__name__}: {change(table, other, chance)}")
    for checksum in (table / LOG).rglob(".*.crc"):  # Hadoop's own, of files that are others now
        os.unlink(checksum)
    return "; ".join(said)
