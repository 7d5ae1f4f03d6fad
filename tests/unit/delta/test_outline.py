"""An outline says what opening a table says, and there is none where only that tells."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gateway import sqltypes as t
from gateway.delta.outline import kept_of, outline_of
from gateway.delta.table import forget, open_snapshot
from gateway.delta.write import append, create_table
from gateway.errors import ServerError
from tests.unit.delta.test_write import SIMPLE, batch_of, schema_of


def commit(root: Path, version: int) -> Path:
    return root / "_delta_log" / f"{version:020}.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "t"
    create_table(str(made), SIMPLE, comment="what it is for")
    return made


def test_it_says_what_the_table_says(root: Path) -> None:
    found = outline_of(str(root), (str(root.parent),))
    opened = open_snapshot(str(root))
    assert found is not None
    assert (found.schema, found.comment) == (opened.schema, opened.comment)
    assert found.comment == "what it is for"


def test_types_and_comments_are_those_of_the_table(tmp_path: Path) -> None:
    root = os.path.realpath(tmp_path) + "/all"
    kinds = {"i": t.INT, "d": t.decimal(12, 3), "c": t.char(3), "v": t.varchar(4), "n": t.TIMESTAMP_NTZ}
    nested = {"a": t.array(t.map_of(t.STRING, t.DATE)), "s": t.struct(t.StructField("x", t.BINARY, True, "note"))}
    create_table(root, schema_of(**kinds, **nested))
    found = outline_of(root, (root,))
    assert found is not None and found.schema == open_snapshot(root).schema


def test_a_new_version_is_seen(root: Path) -> None:
    within = (str(root.parent),)
    first = outline_of(str(root), within)
    append(str(root), [batch_of(SIMPLE, [1, "a"])])
    assert kept_of(str(root)) is None
    second = outline_of(str(root), within)
    assert second is not None and second is not first and kept_of(str(root)) is second
    shutil.rmtree(root)
    forget(str(root))
    assert kept_of(str(root)) is None and outline_of(str(root), within) is None
    time.sleep(0.02)
    create_table(str(root), schema_of(other=t.DATE))
    found = outline_of(str(root), within)
    assert found is not None and [f.name for f in found.schema.fields] == ["other"]


@pytest.fixture
def pointed(tmp_path: Path) -> Path:
    """A table with checkpoints of its versions 2 and 4, and a commit behind them."""
    made = Path(os.path.realpath(tmp_path)) / "t"
    create_table(str(made), SIMPLE, comment="long kept", properties={"delta.checkpointInterval": "2"})
    for i in range(5):
        append(str(made), [batch_of(SIMPLE, [i, "a"])])
    assert sorted(p.name for p in made.glob("_delta_log/*.parquet")) == [f"{v:020}.checkpoint.parquet" for v in (2, 4)]
    return made


def gone(*paths: Path) -> None:
    for path in paths:
        path.unlink()


def checkpoint(root: Path, version: int = 4) -> Path:
    return root / "_delta_log" / f"{version:020}.checkpoint.parquet"


@pytest.mark.parametrize(
    "since",
    [
        lambda root: None,
        lambda root: gone(*(commit(root, v) for v in range(4))),  # as a log is cleaned up
        lambda root: (root / "_delta_log" / "_last_checkpoint").unlink(),
        lambda root: commit(root, 5).unlink(),  # nothing behind the checkpoint
        lambda root: checkpoint(root, 2).write_bytes(b""),  # an older one
    ],
)
def test_a_checkpoint_says_it_too(pointed: Path, since: Any) -> None:
    since(pointed)
    found, opened = outline_of(str(pointed), (str(pointed.parent),)), open_snapshot(str(pointed))
    assert found is not None
    assert (found.schema, found.comment) == (opened.schema, "long kept") == (opened.schema, opened.comment)


def test_commits_behind_a_checkpoint_count(pointed: Path) -> None:
    found = next(json.loads(line) for line in commit(pointed, 0).read_text().splitlines() if "metaData" in line)
    found["metaData"]["description"] = "anew"
    commit(pointed, 6).write_text(json.dumps(found))
    outline = outline_of(str(pointed), (str(pointed.parent),))
    assert outline is not None and outline.comment == "anew" == open_snapshot(str(pointed)).comment


def test_nothing_else_of_a_checkpoint_is_read(pointed: Path) -> None:
    path = checkpoint(pointed)
    group = pq.read_metadata(path).row_group(0)
    added = [group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema.startswith("add.")]
    data = bytearray(path.read_bytes())
    for column in added:
        start = column.dictionary_page_offset or column.data_page_offset
        data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(data)
    found = outline_of(str(pointed), (str(pointed.parent),))
    assert found is not None and found.comment == "long kept"
    with pytest.raises(ServerError):
        open_snapshot(str(pointed))


@pytest.mark.parametrize(
    "harm",
    [
        lambda root: checkpoint(root).write_bytes(b"PAR1"),
        lambda root: checkpoint(root).rename(root / "_delta_log" / f"{4:020}.checkpoint.x.json"),
        lambda root: checkpoint(root).rename(checkpoint(root, 7)),  # the newest version has no commit
        lambda root: gone(commit(root, 4), commit(root, 5)),
        lambda root: commit(root, 5).rename(commit(root, 6)),
        lambda root: (root / "_delta_log" / "_last_checkpoint").write_text('{"version": 3}'),
        lambda root: (root / "_delta_log" / "_sidecars").mkdir(),
        lambda root: (root / "_delta_log" / f"{0:020}.{3:020}.compacted.json").write_text(""),
        lambda root: checkpoint(root, 8).symlink_to(checkpoint(root)),
        lambda root: gone(checkpoint(root, 2), checkpoint(root)),
    ],
)
def test_there_is_none_behind_a_checkpoint_where_only_the_table_tells(pointed: Path, harm: Any) -> None:
    harm(pointed)
    assert outline_of(str(pointed), (str(pointed.parent),)) is None


def edited(root: Path, **actions: Any) -> None:
    """Replace actions of the first commit."""
    path = commit(root, 0)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("\n".join(json.dumps({k: actions.get(k, v) for k, v in line.items()}) for line in lines))


@pytest.mark.parametrize(
    "harm",
    [
        lambda root: commit(root, 0).write_text('{"metaData": {"id"'),
        lambda root: commit(root, 0).write_text(""),
        lambda root: commit(root, 0).write_text("[]\n"),
        lambda root: commit(root, 0).write_text('{"commitInfo": {}}'),
        lambda root: commit(root, 2).write_text('{"commitInfo": {}}'),
        lambda root: (root / "_delta_log" / f"{0:020}.checkpoint.parquet").write_bytes(b""),
        lambda root: (root / "_delta_log" / "_last_checkpoint").write_text("{}"),
        lambda root: commit(root, 0).rename(commit(root, 1)),
        lambda root: edited(root, protocol={"minReaderVersion": 99, "minWriterVersion": 99}),
        lambda root: edited(root, protocol={"minReaderVersion": "1", "minWriterVersion": 2}),
        lambda root: edited(root, metaData={"id": "x", "schemaString": "{}"}),
        lambda root: edited(root, metaData={"id": "x", "schemaString": 3}),
        lambda root: edited(root, metaData=[]),
        lambda root: [commit(root, v).write_text('{"commitInfo": {}}') for v in range(1, 12)],
        lambda root: commit(root, 1).write_text(json.dumps({"commitInfo": "x" * 300_000})),
        lambda root: shutil.rmtree(root),
    ],
)
def test_there_is_none_where_only_the_table_tells(root: Path, harm: Any) -> None:
    harm(root)
    assert outline_of(str(root), (str(root.parent),)) is None


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    log = root / "_delta_log"
    shutil.copytree(log, elsewhere / "log")
    assert outline_of(str(root), (str(elsewhere),)) is None  # it lies outside of the folders that may be used
    commit(root, 0).unlink()
    commit(root, 0).symlink_to(elsewhere / "log" / f"{0:020}.json")
    assert outline_of(str(root), (str(root.parent),)) is None
    shutil.rmtree(log)
    log.symlink_to(elsewhere / "log")
    assert outline_of(str(root), (str(root.parent),)) is None
