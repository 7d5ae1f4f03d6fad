"""Checkpoints that say two things: nobody removes, copies or puts back by one of them what is read by the other."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.protocol.client import Client
from tests.attacks.attacker import answer, outcome
from tests.live.gateway import Server

FEATURES = ["v2Checkpoint", "appendOnly", "invariants"]
PROTOCOL = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": FEATURES[:1], "writerFeatures": FEATURES}
ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)
REMOVE = pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
RETENTION = "'delta.deletedFileRetentionDuration' = 'interval 1 hours'"


class Checkpointed:
    """A table of two rows whose log begins with a checkpoint of version 1 and a sidecar."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "_delta_log"
        commits = sorted(self.log.glob("*.json"))
        actions = [json.loads(line) for path in commits for line in path.read_text().splitlines()]
        self.add = next(a["add"] for a in actions if "add" in a)
        self._metadata = next(a["metaData"] for a in actions if "metaData" in a)
        self._begun = len(commits) - 1

    def write(self, removes: bool, more: Mapping[str, Any], above: bool, sidecar: str = "s.parquet") -> None:
        """The checkpoint: the file is in it, and `removes` as well; `more` is in the sidecar, too, whose path is given."""
        gone = {"path": self.add["path"], "deletionTimestamp": 1, "dataChange": True}
        below = removes and not above
        rows = [self.add | {"partitionValues": []}, *[None] * below]
        columns = {"add": pa.array(rows, ADD), "remove": pa.array([None, gone] if below else [None], REMOVE)}
        columns |= {name: pa.array([value, *[None] * below]) for name, value in more.items()}
        side = self.log / "_sidecars" / unquote(sidecar.rpartition("/")[2])
        side.parent.mkdir()
        pq.write_table(pa.table(columns), side)
        told = {"path": sidecar, "sizeInBytes": side.stat().st_size, "modificationTime": 1}
        lines = [{"checkpointMetadata": {"version": self._begun}}, {"protocol": PROTOCOL}, {"metaData": self._metadata}]
        lines += [{"sidecar": told}, *[{"remove": gone}] * (removes and above)]
        for path in self.log.iterdir():
            if path.is_file():
                path.unlink()
        name = f"{self._begun:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
        (self.log / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        info = {"timestamp": int(time.time() * 1000), "operation": "WRITE"}
        (self.log / f"{self._begun:020d}.json").write_text(json.dumps({"commitInfo": info}) + "\n")
        for path in self.folder.glob("*.parquet"):  # old enough for VACUUM
            os.utime(path, (1, 1))


@pytest.fixture
def table(client: Client, server: Server) -> Iterator[Checkpointed]:
    answer(client, f"CREATE OR REPLACE TABLE twofold (id BIGINT) TBLPROPERTIES ({RETENTION})")
    answer(client, "INSERT INTO twofold VALUES (1), (2)")
    yield Checkpointed(server.warehouse / "default" / "twofold")
    for name in ("twofold", "copied"):
        answer(client, f"DROP TABLE IF EXISTS {name}")


ACTS = (
    "VACUUM twofold",
    "CREATE TABLE copied DEEP CLONE twofold",
    "CREATE TABLE copied SHALLOW CLONE twofold",
    "RESTORE TABLE twofold TO VERSION AS OF 1",
)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("above", [True, False])
def test_a_file_that_is_there_and_gone(client: Client, table: Checkpointed, above: bool, act: str) -> None:
    """Its rows are read; by the removal they would go with VACUUM, and be lost by whoever copies the table."""
    table.write(True, {}, above)
    read = outcome(client, "SELECT id FROM twofold ORDER BY id")
    if act.startswith("RESTORE"):
        answer(client, "INSERT INTO twofold VALUES (3)")
    told = str(outcome(client, act))
    assert "DELTA_LOG_CORRUPT" in told and table.add["path"] in told
    assert read == [{"id": 1}, {"id": 2}]
    assert (table.folder / table.add["path"]).exists()


@pytest.mark.parametrize("kind", ["protocol", "metaData"])
def test_what_is_no_file_in_a_sidecar(client: Client, table: Checkpointed, kind: str) -> None:
    """A clone would be made with it, although nobody reads the table by it."""
    table.write(False, {kind: {"minReaderVersion": 9, "minWriterVersion": 9, "id": "x"}}, False)
    told = str(outcome(client, "CREATE TABLE copied DEEP CLONE twofold"))
    assert "DELTA_LOG_CORRUPT" in told and kind in told


def test_a_checkpoint_that_says_one_thing(client: Client, table: Checkpointed) -> None:
    table.write(False, {}, False)
    answer(client, ACTS[1])
    assert answer(client, "SELECT count(*) AS n FROM copied") == [{"n": 2}]
    answer(client, ACTS[0])
    assert answer(client, "SELECT count(*) AS n FROM twofold") == [{"n": 2}]


SPELT = ("a%20b.parquet", "x%25y.parquet", "%C3%BC.parquet", "absolute")


@pytest.mark.parametrize("spelt", SPELT)
@pytest.mark.parametrize("act", [*ACTS, "DELETE FROM twofold WHERE id = 3", "UPDATE twofold SET id = 4 WHERE id = 3"])
def test_a_sidecar_is_found_by_its_path_as_logs_spell_it(
    client: Client, table: Checkpointed, spelt: str, act: str
) -> None:
    """URI-encoded, and maybe with the folders above; whoever changes the table finds what whoever reads it finds."""
    table.write(
        False, {}, False, f"file://{quote(str(table.log))}/_sidecars/s.parquet" if spelt == "absolute" else spelt
    )
    assert answer(client, "SELECT id FROM twofold ORDER BY id") == [{"id": 1}, {"id": 2}]
    answer(client, "INSERT INTO twofold VALUES (3)")
    answer(client, act)
    ids = {"UPDATE": [1, 2, 4], "DELETE": [1, 2], "RESTOR": [1, 2]}.get(act[:6], [1, 2, 3])
    named = "copied" if "CLONE" in act else "twofold"
    assert answer(client, f"SELECT id FROM {named} ORDER BY id") == [{"id": number} for number in ids]
