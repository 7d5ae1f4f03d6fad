"""Snapshots: time travel, damaged logs, plan messages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.exceptions import DeltaError

from gateway import sqltypes as t
from gateway.delta import history, log_paths, plan_message
from gateway.delta.commit import checkpoint
from gateway.delta.files import open_files
from gateway.delta.history import versions as versions_of
from gateway.delta.log import commit_path
from gateway.delta.scan import NATIVE, plan_scan
from gateway.delta.table import open_snapshot
from gateway.delta.write import append, create_table
from gateway.errors import GatewayError, ServerError, UnsupportedError, UserError

ONE = t.struct(t.StructField("id", t.BIGINT))


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(values)})


@pytest.fixture
def versions(tmp_path: Path) -> str:
    """Versions 0 to 3 with as many rows, committed at seconds 1000 to 1003 (in-commit times off)."""
    root = str(tmp_path / "t")
    create_table(root, ONE)
    for i in range(3):
        append(root, [batch(i)])
    for version in range(4):
        os.utime(commit_path(root, version), (1000 + version, 1000 + version))
    return root


@pytest.mark.parametrize(("seconds", "version"), [(1000.0, 0), (1000.5, 0), (1001.0, 1), (1002.999, 2), (1003.0, 3)])
def test_time_travel_by_timestamp(versions: str, seconds: float, version: int) -> None:
    assert open_snapshot(versions, timestamp_us=int(seconds * 1e6)).version == version
    assert open_snapshot(versions, version).num_rows == version


@pytest.mark.parametrize(
    ("seconds", "condition"),
    [
        (999.999, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
        (1003.001, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        (1e9, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
    ],
)
def test_timestamps_outside_of_the_log(versions: str, seconds: float, condition: str) -> None:
    with pytest.raises(UserError) as caught:
        open_snapshot(versions, timestamp_us=int(seconds * 1e6))
    assert caught.value.condition == condition


def test_in_commit_timestamps_win_over_file_times(versions: str) -> None:
    for version in range(4):
        path = Path(commit_path(versions, version))
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["inCommitTimestamp"] = 5_000_000 + version
            if "metaData" in action:
                action["metaData"]["configuration"] = {"delta.enableInCommitTimestamps": "true"}
            if "protocol" in action:
                features = ["inCommitTimestamp"]
                action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
        path.write_text("\n".join(map(json.dumps, actions)))
    assert open_snapshot(versions, timestamp_us=5_000_002_000).version == 2
    with pytest.raises(UserError):
        open_snapshot(versions, timestamp_us=1_002_000_000)


def _with_times_from(root: str, enabled: int, times: dict[int, int]) -> None:
    """In-commit timestamps of the versions from `enabled` on."""
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    since = {"Version": str(enabled), "Timestamp": str(times[enabled])}
    properties = {f"delta.inCommitTimestampEnablement{key}": value for key, value in since.items()}
    (metadata,) = [
        action["metaData"]
        for action in map(json.loads, Path(commit_path(root, 0)).read_text().splitlines())
        if "metaData" in action
    ]
    metadata["configuration"] = {"delta.enableInCommitTimestamps": "true", **properties}
    for version, moment in times.items():
        path = Path(commit_path(root, version))
        info = {"commitInfo": {"inCommitTimestamp": moment, "timestamp": moment}}
        others = [json.loads(line) for line in path.read_text().splitlines()]
        actions = [info, *(a for a in others if "commitInfo" not in a)]
        actions += [{"protocol": features}, {"metaData": metadata}] if version == enabled else []
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_files_younger_than_the_first_in_commit_timestamp_hide_no_version(versions: str) -> None:
    """As of a copied log; Delta seeks among the versions that have such a timestamp, from it on."""
    _with_times_from(versions, 2, {2: 900_000, 3: 950_000})
    for version, seconds in enumerate((100, 1001)):
        os.utime(commit_path(versions, version), (seconds, seconds))

    def at(moment_ms: int) -> int:
        return open_snapshot(versions, timestamp_us=moment_ms * 1000).version

    assert [at(moment) for moment in (100_000, 899_999, 900_000, 949_999, 950_000)] == [0, 0, 2, 2, 3]
    os.utime(commit_path(versions, 0), (1000, 1000))
    assert [at(moment) for moment in (900_000, 949_999, 950_000)] == [2, 2, 3]
    with pytest.raises(UserError) as caught:
        at(899_999)
    assert caught.value.condition == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    assert [found.time_ms for found in versions_of(open_snapshot(versions), None)] == [
        950_000,
        900_000,
        1_001_000,
        1_000_000,
    ]


@pytest.mark.parametrize("times", [{1: 2000, 2: 1000, 3: 3000}, {1: 1000, 2: 2000, 3: 2000}])
def test_in_commit_timestamps_that_do_not_increase_are_told(versions: str, times: dict[int, int]) -> None:
    """Which version was current then is found by halves, by each reader in its own way; histories are told as they stand."""
    _with_times_from(versions, 1, times)
    os.utime(commit_path(versions, 0), (0, 0))
    for moment in (500, 1000, 2500):
        with pytest.raises(ServerError) as caught:
            open_snapshot(versions, timestamp_us=moment * 1000)
        assert caught.value.condition == "DELTA_LOG_CORRUPT"
    assert [found.time_ms for found in versions_of(open_snapshot(versions), None)][:3] == [times[i] for i in (3, 2, 1)]


@pytest.mark.parametrize("since", ["x", "-1", "1.5", "", "9" * 5000])
def test_a_first_version_with_timestamps_that_is_none_is_told(versions: str, since: str) -> None:
    _with_times_from(versions, 1, {1: 1000, 2: 2000, 3: 3000})
    path = Path(commit_path(versions, 1))
    path.write_text(path.read_text().replace('EnablementVersion": "1"', f'EnablementVersion": "{since}"'))
    for ask in (lambda: open_snapshot(versions, timestamp_us=1), lambda: versions_of(open_snapshot(versions), None)):
        with pytest.raises(ServerError, match="inCommitTimestampEnablementVersion") as caught:
            ask()
        assert caught.value.condition == "DELTA_LOG_CORRUPT"


@pytest.mark.parametrize("version", [-1, 4, 10**12])
def test_versions_outside_of_the_log(versions: str, version: int) -> None:
    with pytest.raises(UserError, match=r"\[0, 3\]") as caught:
        open_snapshot(versions, version)
    assert caught.value.condition == "DELTA_VERSION_NOT_FOUND"


def test_version_cleaned_away(versions: str) -> None:
    from deltalake import DeltaTable

    DeltaTable(versions).create_checkpoint()
    for version in (0, 1):
        os.unlink(commit_path(versions, version))
    assert open_snapshot(versions).num_rows == 3
    with pytest.raises(UserError) as caught:
        open_snapshot(versions, 1)
    assert caught.value.condition == "DELTA_VERSION_NOT_FOUND"


def test_gap_and_damage_are_errors(versions: str, tmp_path: Path) -> None:
    os.unlink(commit_path(versions, 1))
    with pytest.raises(GatewayError) as caught:
        open_snapshot(versions)
    assert caught.value.condition == "DELTA_LOG_CORRUPT"
    create_table(str(tmp_path / "u"), ONE)
    Path(commit_path(str(tmp_path / "u"), 1)).write_text('{"add": {"path"')
    with pytest.raises(ServerError, match="cannot be read"):
        open_snapshot(str(tmp_path / "u"))


def test_a_log_that_the_system_does_not_let_us_read_is_no_damaged_one(
    versions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object) -> None:
        raise DeltaError(f"Kernel error -> LocalFileSystem\n Unable to open file {versions}/x: Too many (os error 24)")

    monkeypatch.setattr("gateway.delta.table.opened", opened)
    with pytest.raises(ServerError, match=r"of the log of .* cannot be used: Too many open files\.") as caught:
        open_snapshot(versions)
    assert caught.value.condition == "FAILED_READ_FILE"


def test_damaged_refresh_recovers(versions: str) -> None:
    assert open_snapshot(versions).version == 3
    bad = Path(commit_path(versions, 4))
    bad.write_text("{")
    with pytest.raises(ServerError):
        open_snapshot(versions)
    bad.unlink()
    assert open_snapshot(versions).version == 3


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("exchanged", [False, True])
def test_damage_while_a_folder_is_exchanged_is_to_be_tried_again(
    versions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanged: bool, opened: bool
) -> None:
    """What is read then may be half of one table and half of another; of one that stays it is damage."""
    within = (str(tmp_path),)
    if opened:
        assert open_snapshot(versions, within=within).version == 3
    Path(commit_path(versions, 4)).write_text("{")
    checked = log_paths.check_log

    def meanwhile(*arguments: Any) -> None:
        checked(*arguments)
        if exchanged:
            os.rename(versions, tmp_path / "aside")
            os.rename(tmp_path / "aside", versions)

    monkeypatch.setattr("gateway.delta.table.check_log", meanwhile)
    with pytest.raises(ServerError) as caught:
        open_snapshot(versions, within=within)
    assert caught.value.retryable == exchanged
    assert caught.value.condition == ("DELTA_FILE_NOT_FOUND" if exchanged else "DELTA_LOG_CORRUPT")


def test_percent_in_a_path_is_refused(tmp_path: Path) -> None:
    create_table(str(tmp_path / "a b"), ONE)
    os.makedirs(tmp_path / "a%20b/_delta_log")
    with pytest.raises(UnsupportedError, match="%"):
        open_snapshot(str(tmp_path / "a%20b"))


@pytest.mark.parametrize("name", ["plain", "a b", "a,b", "a+b", "a#b?c", "a*b", "[a]", "p=1", "ünïcode", "a%20b"])
def test_exact_files_by_url(tmp_path: Path, name: str) -> None:
    paths = [str(tmp_path / f"{name}{i}.parquet") for i in range(3)]
    for i, path in enumerate(paths):
        pq.write_table(pa.table({"id": [i]}), path)
    ctx = datafusion.SessionContext()
    frame = plan_message.read_files(ctx, paths[::2], pa.schema([("id", pa.int64())]), pruning=True)
    assert sorted(frame.to_pydict()["id"]) == [0, 2]
    again = plan_message.read_files(ctx, paths[1:2], pa.schema([("id", pa.int64())]), pruning=True)
    assert again.to_pydict()["id"] == [1]


def test_plan_message_of_another_layout() -> None:
    with pytest.raises(ServerError, match="unknown layout"):
        plan_message.around_paths(b"\x12\x00")
    with pytest.raises(ServerError, match="no single path"):
        plan_message.around_paths(b"\x0a\x02\x1a\x00")


def test_the_pinned_version_is_installed() -> None:
    assert datafusion.__version__ == plan_message.DATAFUSION


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.table(columns), path)


def rows(path: str) -> list[dict[str, Any]]:
    snapshot = open_files(path)
    plan = plan_scan(snapshot, [c.name for c in snapshot.columns])
    assert plan.reader == NATIVE
    ctx = datafusion.SessionContext(datafusion.SessionConfig({"datafusion.execution.collect_statistics": "false"}))
    plan.register(ctx, "t")
    found: list[dict[str, Any]] = ctx.sql("select * from t order by 1").to_arrow_table().to_pylist()
    return found


def test_parquet_folder_and_file(tmp_path: Path) -> None:
    write(tmp_path / "p/a.parquet", Id=[1], d=[float("nan")])
    write(tmp_path / "p/b.parquet", Id=[2], d=[1.0])
    (tmp_path / "p/_SUCCESS").write_text("")
    assert [r["Id"] for r in rows(str(tmp_path / "p"))] == [1, 2]
    assert [r["Id"] for r in rows(str(tmp_path / "p/a.parquet"))] == [1]
    assert open_files(str(tmp_path / "p")).num_rows == 2


def test_parquet_types(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", u8=pa.array([255], pa.uint8()), u32=pa.array([2**32 - 1], pa.uint32()),
          u64=pa.array([2**64 - 1], pa.uint64()), di=pa.array(["x"]).dictionary_encode(), fb=pa.array([b"ab"], pa.binary(2)),
          ll=pa.array([[1]], pa.large_list(pa.uint16())), ns=pa.array([1], pa.timestamp("ns")))  # fmt: skip
    snapshot = open_files(str(tmp_path / "a.parquet"))
    kinds = {f.name: f.type.name for f in snapshot.schema.fields}
    assert kinds == {"u8": "SMALLINT", "u32": "BIGINT", "u64": "DECIMAL", "di": "STRING", "fb": "BINARY", "ll": "ARRAY",
                     "ns": "TIMESTAMP[NS]"}  # fmt: skip
    with pytest.raises(UnsupportedError, match="column ns"):
        plan_scan(snapshot, ["ns"])
    plan = plan_scan(snapshot, ["u8", "u32", "u64", "di", "fb", "ll"])
    ctx = datafusion.SessionContext()
    plan.register(ctx, "t")
    assert ctx.sql("select * from t").to_arrow_table().to_pylist() == [
        {"u8": 255, "u32": 2**32 - 1, "u64": 2**64 - 1, "di": "x", "fb": b"ab", "ll": [1]}
    ]


def test_parquet_that_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "differ/a.parquet", a=[1])
    write(tmp_path / "differ/b.parquet", b=[1])
    write(tmp_path / "parts/p=1/a.parquet", a=[1])
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.parquet").write_text("no parquet")
    create_table(str(tmp_path / "delta"), ONE)
    for name, condition in {
        "differ": "UNSUPPORTED_FEATURE",
        "parts": "UNSUPPORTED_FEATURE",
        "empty": "UNABLE_TO_INFER_SCHEMA",
        "bad.parquet": "FAILED_READ_FILE",
        "delta": "DELTA_INVALID_FORMAT",
        "nothing": "PATH_NOT_FOUND",
    }.items():
        with pytest.raises(GatewayError) as caught:
            open_files(str(tmp_path / name))
        assert caught.value.condition == condition


def test_parquet_file_that_changes_is_read_again(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", a=[1])
    assert open_files(str(tmp_path / "a.parquet")).schema.fields[0].type == t.BIGINT
    write(tmp_path / "a.parquet", a=["text"])
    os.utime(tmp_path / "a.parquet", (1, 1))
    assert open_files(str(tmp_path / "a.parquet")).schema.fields[0].type == t.STRING


def test_facts_about_files_outlive_their_version(tmp_path: Path) -> None:
    root = str(tmp_path / "t")
    schema = t.struct(t.StructField("l", t.array(t.INT)))
    lists = pa.RecordBatch.from_arrays([pa.array([[1]], pa.list_(pa.int32()))], names=["l"])
    create_table(root, schema, batches=[lists])
    plan_scan(open_snapshot(root), ["l"])
    append(root, [lists])
    newest = open_snapshot(root)
    assert len(newest.contents) == 1
    plan_scan(newest, ["l"])
    assert len(newest.contents) == 2


def test_a_log_that_was_away_for_a_moment_is_no_damaged_one(versions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user may have dropped the table, and made one of its name, while it was read."""

    def away(root: str, last: int) -> set[str]:
        raise FileNotFoundError(2, "No such file or directory", f"{root}/_delta_log")

    monkeypatch.setattr("gateway.delta.log.removed_paths", away)
    with pytest.raises(ServerError) as caught:
        open_snapshot(versions)
    assert (caught.value.condition, caught.value.retryable) == ("DELTA_FILE_NOT_FOUND", True)


def test_half_a_character_in_a_commit_behind_a_checkpoint_is_told(versions: str) -> None:
    checkpoint(versions, 3)
    commit = Path(commit_path(versions, 1))
    commit.write_text(commit.read_text().replace('"WRITE"', '"\\ud800"'))
    snapshot = open_snapshot(versions)
    assert snapshot.num_rows == 3
    with pytest.raises(ServerError) as caught:
        history.versions(snapshot, None)
    assert caught.value.condition == "DELTA_LOG_CORRUPT"
