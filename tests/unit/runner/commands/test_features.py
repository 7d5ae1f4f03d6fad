"""Tables with features of Delta, made, filled and changed here: their files and logs are what the features ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from gateway.delta import commit, log
from gateway.delta.table import forget
from gateway.errors import UnsupportedError
from tests.live.tables import alter
from tests.unit.runner.session import Session, refused


def _folder(session: Session) -> str:
    return session.runner.catalogs["main"].table_location("shop", "t")


def _actions(session: Session, kind: str, version: int | None = None) -> list[dict[str, Any]]:
    folder = _folder(session)
    number = log.commit_versions(folder)[-1] if version is None else version
    return [action[kind] for action in log.actions(folder, number) if kind in action]


@pytest.mark.rewrites
@pytest.mark.parametrize(
    ("properties", "protocol"),
    [
        ("'delta.enableDeletionVectors' = 'true'", (3, 7, ["deletionVectors"], ["deletionVectors"])),
        ("'delta.enableInCommitTimestamps' = 'true'", (1, 7, None, ["inCommitTimestamp"])),
        ("'delta.columnMapping.mode' = 'name'", (2, 7, None, ["columnMapping"])),
        (
            "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'",
            (3, 7, ["columnMapping", "deletionVectors"], ["columnMapping", "deletionVectors"]),
        ),
        ("'delta.enableDeletionVectors' = 'false', 'delta.columnMapping.mode' = 'none'", (1, 2, None, None)),
        ("'delta.constraints.c' = 'id > 0'", (1, 3, None, None)),
        ("'delta.feature.checkConstraints' = 'supported'", (1, 3, None, None)),
        ("'delta.checkpointPolicy' = 'v2'", (3, 7, ["v2Checkpoint"], ["v2Checkpoint"])),
        ("'delta.feature.domainMetadata' = 'supported'", (1, 7, None, ["domainMetadata"])),
        ("'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'", (2, 5, None, None)),
        ("'delta.minWriterVersion' = '5', 'delta.appendOnly' = 'FALSE'", (1, 4, None, None)),
    ],
)
def test_the_protocol_of_a_new_table(session: Session, properties: str, protocol: tuple[Any, ...]) -> None:
    session.run(f"CREATE TABLE t (id INT) TBLPROPERTIES ({properties})")
    (spec,) = _actions(session, "protocol")
    reader, writer, readers, writers = protocol
    assert (spec["minReaderVersion"], spec["minWriterVersion"]) == (reader, writer)
    assert spec.get("readerFeatures") == readers
    assert spec.get("writerFeatures") == (writers and sorted([*writers, "appendOnly", "invariants"]))
    session.run("INSERT INTO t VALUES (1), (2)")
    session.run("UPDATE t SET id = 3 WHERE id = 1")
    assert sorted(session.rows("SELECT * FROM t")) == [(2,), (3,)]


@pytest.fixture(params=["name", "id"])
def mapped(session: Session, request: pytest.FixtureRequest) -> Session:
    """``t`` whose columns have other names in files."""
    session.run(
        "CREATE TABLE t (id INT, `a b` STRUCT<x: INT, y: ARRAY<STRUCT<z: INT>>, m: MAP<STRING, STRUCT<w: DATE>>>, p STRING) "
        f"PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = '{request.param}')"
    )
    session.run(
        "INSERT INTO t VALUES (1, named_struct('x', 1, 'y', array(named_struct('z', 2), NULL), "
        "'m', map('k', named_struct('w', DATE'2020-01-02'))), 'p q'), (2, NULL, NULL), (3, named_struct('x', NULL, 'y', NULL, "
        "'m', NULL), 'r')"
    )
    return session


def test_columns_have_their_names_and_ids_in_files(mapped: Session) -> None:
    (metadata,) = _actions(mapped, "metaData", 0)
    fields = json.loads(metadata["schemaString"])["fields"]
    physical = {f["name"]: f["metadata"]["delta.columnMapping.physicalName"] for f in fields}
    assert [f["metadata"]["delta.columnMapping.id"] for f in fields] == [1, 2, 8]
    assert metadata["configuration"]["delta.columnMapping.maxColumnId"] == "8"
    assert all(name.startswith("col-") for name in physical.values())
    for add in _actions(mapped, "add"):
        assert set(add["partitionValues"]) == {physical["p"]}
        stats = json.loads(add["stats"])
        assert {physical["id"]} <= stats["minValues"].keys() <= {physical["id"], physical["a b"]}
        inside = {f["metadata"]["delta.columnMapping.physicalName"] for f in fields[1]["type"]["fields"]}
        assert stats["nullCount"][physical["a b"]].keys() <= inside
        assert stats["minValues"].get(physical["a b"], {}).keys() <= inside
        schema = pq.read_schema(next(Path(_folder(mapped)).rglob("*" + add["path"].rsplit("/", 1)[-1])))
        assert schema.names == [physical["id"], physical["a b"]]
        assert [int(f.metadata[b"PARQUET:field_id"]) for f in schema] == [1, 2]
        assert [int(f.metadata[b"PARQUET:field_id"]) for f in schema.field(1).type] == [3, 4, 6]


@pytest.mark.parametrize(
    ("statement", "ids"),
    [
        ("UPDATE t SET id = id + 10 WHERE `a b`.x = 1", [2, 3, 11]),
        ("UPDATE t SET p = 'new'", [1, 2, 3]),
        ("DELETE FROM t WHERE `a b`.m['k'].w > DATE'2020-01-01'", [2, 3]),
        ("DELETE FROM t WHERE p IS NULL", [1, 3]),
        ("INSERT OVERWRITE t SELECT id + 1, `a b`, p FROM t WHERE id < 3", [2, 3]),
        ("INSERT INTO t REPLACE WHERE p = 'r' SELECT 9, NULL, 'r'", [1, 2, 9]),
        ("INSERT INTO t SELECT id + 10, `a b`, p FROM t", [1, 2, 3, 11, 12, 13]),
        ("MERGE INTO t USING (SELECT 2 AS id) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET p = 'z'", [1, 2, 3]),
        ("OPTIMIZE t", [1, 2, 3]),
        ("VACUUM t", [1, 2, 3]),
        ("RESTORE t TO VERSION AS OF 0", []),
    ],
)
def test_mapped_tables_are_changed(mapped: Session, statement: str, ids: list[int]) -> None:
    before = dict(mapped.rows("SELECT id % 10, to_json(`a b`) FROM t"))
    mapped.run("INSERT INTO t SELECT * FROM t WHERE id = 1")
    mapped.run("DELETE FROM t WHERE id = 1")
    mapped.run("RESTORE t TO VERSION AS OF 1")
    mapped.run(statement)
    assert sorted(row[0] for row in mapped.rows("SELECT id FROM t")) == ids
    if statement[:6] in ("UPDATE", "DELETE", "OPTIMI", "VACUUM", "MERGE "):
        after = dict(mapped.rows("SELECT id % 10, to_json(`a b`) FROM t"))
        assert after == {i % 10: before[i % 10] for i in ids}
    assert len(DeltaTable(_folder(mapped)).file_uris()) == len(set(DeltaTable(_folder(mapped)).file_uris()))


def test_no_id_of_a_column_is_given_again(mapped: Session) -> None:
    folder = _folder(mapped)
    (metadata,) = _actions(mapped, "metaData", 0)
    later = {**metadata["configuration"], "delta.columnMapping.maxColumnId": "12"}
    commit.publish(
        folder, 2, [commit.info_action("X", {}, {}, False), {"metaData": {**metadata, "configuration": later}}]
    )
    mapped.run("RESTORE t TO VERSION AS OF 1")
    assert _actions(mapped, "metaData")[0]["configuration"]["delta.columnMapping.maxColumnId"] == "12"


def test_a_table_as_select_with_all_of_them(session: Session) -> None:
    session.run(
        "CREATE TABLE t TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true', "
        "'delta.enableInCommitTimestamps' = 'true') AS SELECT id, id * 2 AS `twice, or so` FROM range(10)"
    )
    session.run("DELETE FROM t WHERE `twice, or so` = 4")
    assert session.rows("SELECT count(*), sum(id) FROM t WHERE `twice, or so` >= 0") == [(9, 43)]
    assert [_actions(session, "commitInfo", i)[0]["inCommitTimestamp"] > 0 for i in (0, 1)] == [True, True]
    assert "deletionVector" in _actions(session, "add")[0]


def test_a_table_with_a_feed_of_its_changes_is_appended_to(session: Session) -> None:
    session.run("CREATE TABLE t (id INT)")
    alter(_folder(session), {"delta.enableChangeDataFeed": "true"}, {"minReaderVersion": 1, "minWriterVersion": 4})
    for i in range(3):
        session.run(f"INSERT INTO t VALUES ({i})")
    session.run("OPTIMIZE t")
    session.run("VACUUM t")
    assert sorted(session.rows("SELECT * FROM t")) == [(0,), (1,), (2,)]
    feed = DeltaTable(_folder(session)).load_cdf(starting_version=2).read_all()
    assert sorted(feed.column("_change_type").to_pylist()) == ["insert"] * 3


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE u (id INT, _Change_type INT) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "CREATE TABLE u (id INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'TRUE ')",
        "CREATE TABLE u (id INT) TBLPROPERTIES ('delta.columnMapping.mode' = 'other')",
        "CREATE TABLE u (id INT) TBLPROPERTIES ('delta.constraints.c' = 'rand() > 0')",
        "CREATE OR REPLACE TABLE t (id INT) TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        "CREATE TABLE u (id INT) TBLPROPERTIES ('delta.minWriterVersion' = '7')",
        "CREATE TABLE u (id INT) TBLPROPERTIES ('delta.nothing' = '7')",
        "CREATE TABLE u (id INT) TBLPROPERTIES ('delta.isolationLevel' = 'WriteSerializable')",
        "ALTER TABLE t SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
    ],
)
def test_what_is_not_kept_is_refused_by_name(session: Session, statement: str) -> None:
    session.run("CREATE TABLE t (id INT)")
    assert isinstance(refused(session, statement), UnsupportedError)


def test_tables_of_v2_checkpoints_have_them(session: Session) -> None:
    session.run(
        "CREATE TABLE t (id INT) TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3')"
    )
    for i in range(4):
        session.run(f"INSERT INTO t VALUES ({i})")
    place = Path(_folder(session)) / "_delta_log"
    (file,) = place.glob("*.checkpoint*")
    assert file.name == f"{3:020}.checkpoint.parquet"
    kinds = pq.read_table(file).to_pylist()
    assert [row["checkpointMetadata"] for row in kinds if row["checkpointMetadata"]] == [{"version": 3}]
    assert not any(row["sidecar"] for row in kinds)
    for version in range(4):
        (place / f"{version:020}.json").unlink()
    forget(_folder(session))
    assert sorted(session.rows("SELECT * FROM t")) == [(0,), (1,), (2,), (3,)]
    session.run(
        "ALTER TABLE t ALTER COLUMN id COMMENT 'c'"
    )  # what the log says of the table is in the checkpoint alone
    assert DeltaTable(_folder(session)).version() == 5


def test_a_v2_checkpoint_of_another_writer_tells_of_the_table(session: Session) -> None:
    session.run("CREATE TABLE t (id INT) TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')")
    session.run("INSERT INTO t VALUES (1)")
    folder = _folder(session)
    actions = [a for version in (0, 1) for a in log.actions(folder, version) if "commitInfo" not in a]
    lines = [{"checkpointMetadata": {"version": 1}}, *actions]
    place = Path(folder) / "_delta_log"
    name = f"{1:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    (place / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    for version in (0, 1):
        (place / f"{version:020}.json").unlink()
    forget(folder)
    session.run("ALTER TABLE t ALTER COLUMN id COMMENT 'c'")
    assert session.rows("SELECT * FROM t") == [(1,)]
