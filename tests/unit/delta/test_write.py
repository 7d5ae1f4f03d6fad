"""Writing tables: what other readers see, atomicity, conflicts, and refusals by name."""

from __future__ import annotations

import datetime as dt
import errno
import json
import os
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from gateway import sqltypes as t
from gateway.delta.log import commit_versions
from gateway.delta.metadata import Alteration, alter, logged_metadata
from gateway.delta.table import open_snapshot
from gateway.delta.write import append, create_table
from gateway.errors import GatewayError, ResourceError, ServerError, UnsupportedError, UserError
from tests.live.tables import overwrite

NAN = float("nan")


def schema_of(**columns: t.DataType) -> t.StructType:
    return t.struct(*(t.StructField(name, kind) for name, kind in columns.items()))


def batch_of(schema: t.StructType, *rows: Any) -> pa.RecordBatch:
    columns = [[row[i] for row in rows] for i in range(len(schema.fields))]
    arrays = [pa.array(values, f.type.arrow()) for f, values in zip(schema.fields, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[f.name for f in schema.fields])


def read_by_deltalake(root: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(DeltaTable(root).scan()).read_all().to_pylist()
    return rows


def files_in(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*") if p.is_file())


SIMPLE = schema_of(id=t.BIGINT, s=t.STRING)


def test_create_append_overwrite(tmp_path: Path) -> None:
    root = tmp_path / "t"
    created = create_table(str(root), SIMPLE, comment="hello", properties={"owner": "me"})
    assert (created.version, created.rows, created.files) == (0, 0, 0)
    assert append(str(root), [batch_of(SIMPLE, [1, "a"], [2, None])]).version == 1
    assert append(str(root), [batch_of(SIMPLE, [3, "c"])]).rows == 1
    assert sorted(r["id"] for r in read_by_deltalake(root)) == [1, 2, 3]
    assert overwrite(str(root), [batch_of(SIMPLE, [9, "z"])]).version == 3
    assert read_by_deltalake(root) == [{"id": 9, "s": "z"}]
    snapshot = open_snapshot(str(root))
    assert (snapshot.comment, snapshot.properties, snapshot.schema) == ("hello", {"owner": "me"}, SIMPLE)
    assert open_snapshot(str(root), 2).num_rows == 3


def test_all_types_come_back(tmp_path: Path) -> None:
    schema = schema_of(
        b=t.BOOLEAN, i8=t.TINYINT, i16=t.SMALLINT, i32=t.INT, i64=t.BIGINT, f=t.FLOAT, d=t.DOUBLE, dec=t.decimal(38, 2),
        s=t.STRING, c=t.char(3), v=t.varchar(5), bin=t.BINARY, day=t.DATE, ts=t.TIMESTAMP, ntz=t.TIMESTAMP_NTZ,
        a=t.array(t.INT), m=t.map_of(t.STRING, t.DOUBLE), st=t.struct(t.StructField("x y", t.array(t.STRING))),
    )  # fmt: skip
    utc = dt.UTC
    first = [
        True,
        -128,
        -1,
        2**31 - 1,
        -(2**63),
        1.5,
        NAN,
        Decimal("123456789012345678901234567890123456.78"),
        "é" * 40,
    ]
    first += ["ab", "abc  ", b"\0\xff", dt.date(1, 1, 1), dt.datetime(1, 1, 1, tzinfo=utc), dt.datetime(9999, 12, 31)]
    first += [[1, None], [("k", 1.0)], {"x y": ["ab"]}]
    with pytest.raises(UserError, match="x y"):
        create_table(str(tmp_path / "bad"), schema, batches=[batch_of(schema, first)])
    fields = (*schema.fields[:-1], t.StructField("st", t.struct(t.StructField("xy", t.array(t.STRING)))))
    schema, first[-1] = t.StructType("STRUCT", fields), {"xy": ["ab"]}
    nulls: list[Any] = [None] * len(first)
    create_table(str(tmp_path / "t"), schema, batches=[batch_of(schema, first, nulls)])
    snapshot = open_snapshot(str(tmp_path / "t"))
    kinds = {f.name: f.type for f in snapshot.schema.fields}
    assert (kinds["c"], kinds["v"], kinds["ntz"]) == (t.char(3), t.varchar(5), t.TIMESTAMP_NTZ)
    assert (snapshot.protocol.reader, snapshot.protocol.reader_features) == (3, frozenset({"timestampNtz"}))
    rows = read_by_deltalake(tmp_path / "t")
    wanted = {**dict(zip(kinds, first, strict=True)), "c": "ab "}
    assert repr(rows[0]).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") == repr(wanted)
    assert all(v is None for v in rows[1].values())


def test_statistics(tmp_path: Path) -> None:
    """No minimum or maximum of floats, neither in the log nor in the footer; long texts cut; decimals exact."""
    schema = schema_of(
        d=t.DOUBLE, dec=t.decimal(38, 2), s=t.STRING, ts=t.TIMESTAMP, st=t.struct(t.StructField("x", t.FLOAT))
    )
    exact = Decimal("-123456789012345678901234567890123456.78")
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)
    create_table(str(tmp_path / "t"), schema, batches=[batch_of(schema, [NAN, exact, "z" * 40, moment, {"x": NAN}])])
    log = (tmp_path / "t/_delta_log" / f"{0:020d}.json").read_text().splitlines()
    add = next(json.loads(line)["add"] for line in log if '"add"' in line)
    stats = json.loads(add["stats"], parse_float=Decimal)
    assert stats["minValues"] == {"dec": exact, "s": "z" * 32, "ts": "1969-12-31T23:59:59.999999Z"}
    assert stats["maxValues"]["s"] == "z" * 32 + "\x7f"
    assert stats["nullCount"] == {"d": 0, "dec": 0, "s": 0, "ts": 0, "st": {"x": 0}}
    group = pq.read_metadata(tmp_path / "t" / add["path"]).row_group(0)
    has = {group.column(i).path_in_schema: group.column(i).statistics is not None for i in range(group.num_columns)}
    assert has == {"d": False, "dec": True, "s": True, "ts": True, "st.x": False}


def test_partitions_as_spark_spells_them(tmp_path: Path) -> None:
    schema = schema_of(v=t.INT, s=t.STRING, d=t.DOUBLE, dec=t.decimal(38, 18))
    rows = [[1, "a b/é", 1e7, Decimal("-1.23")], [2, None, -0.0, Decimal(0)], [3, "", 0.0, Decimal(0)]]
    create_table(str(tmp_path / "t"), schema, partition_by=["S", "d", "dec"], batches=[batch_of(schema, *rows)])
    assert open_snapshot(str(tmp_path / "t")).partition_columns == ("s", "d", "dec")
    folders = {str(p.parent.relative_to(tmp_path / "t")) for p in files_in(tmp_path / "t") if p.suffix == ".parquet"}
    assert folders == {
        "s=a b%2Fé/d=1.0E7/dec=-1.230000000000000000",
        "s=__HIVE_DEFAULT_PARTITION__/d=0.0/dec=0.000000000000000000",
    }
    found = sorted(read_by_deltalake(tmp_path / "t"), key=lambda r: int(r["v"]))
    assert [(r["s"], r["d"], r["dec"]) for r in found] == [
        ("a b/é", 1e7, Decimal("-1.230000000000000000")),
        (None, 0.0, 0),
        (None, 0.0, 0),
    ]


def test_overwrite_of_a_foreign_table_removes_its_files(tmp_path: Path) -> None:
    """The remove must repeat the path as the other writer spelt it."""
    table = pa.table({"p": ["a b", "é/%"], "v": [1, 2]})
    write_deltalake(tmp_path / "t", table, partition_by=["p"])
    schema = open_snapshot(str(tmp_path / "t")).schema
    overwrite(str(tmp_path / "t"), [batch_of(schema, ["x", 3])])
    assert read_by_deltalake(tmp_path / "t") == [{"p": "x", "v": 3}]


def test_create_refuses_what_exists(tmp_path: Path) -> None:
    create_table(str(tmp_path / "t"), SIMPLE)
    with pytest.raises(UserError) as caught:
        create_table(str(tmp_path / "t"), SIMPLE)
    assert caught.value.condition == "TABLE_OR_VIEW_ALREADY_EXISTS"
    (tmp_path / "u").mkdir()
    (tmp_path / "u/file").write_text("x")
    with pytest.raises(UserError) as caught:
        create_table(str(tmp_path / "u"), SIMPLE)
    assert caught.value.condition == "LOCATION_ALREADY_EXISTS"


def test_replace_keeps_the_past(tmp_path: Path) -> None:
    root = str(tmp_path / "t")
    create_table(root, SIMPLE, batches=[batch_of(SIMPLE, [1, "a"])])
    other = schema_of(n=t.TIMESTAMP_NTZ)
    result = create_table(root, other, replace=True, batches=[batch_of(other, [dt.datetime(2020, 1, 1)])])
    assert (result.version, open_snapshot(root).schema) == (1, other)
    assert open_snapshot(root, 0).schema == SIMPLE
    assert read_by_deltalake(tmp_path / "t") == [{"n": dt.datetime(2020, 1, 1)}]


def failing(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    yield batch
    raise UserError("DIVIDE_BY_ZERO", "Division by zero.")


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    schema = schema_of(p=t.INT, v=t.INT)
    batch = batch_of(schema, *[[i % 3, i] for i in range(1000)])
    with pytest.raises(UserError, match="Division"):
        create_table(str(tmp_path / "new"), schema, partition_by=["p"], batches=failing(batch))
    assert list(tmp_path.iterdir()) == []
    create_table(str(tmp_path / "t"), schema, partition_by=["p"], batches=[batch])
    before = files_in(tmp_path / "t")
    for write in (append, overwrite):
        with pytest.raises(UserError, match="Division"):
            write(str(tmp_path / "t"), failing(batch))
    assert files_in(tmp_path / "t") == before


def test_not_null_and_lengths(tmp_path: Path) -> None:
    schema = t.struct(t.StructField("id", t.INT, nullable=False), t.StructField("v", t.varchar(3)))
    create_table(str(tmp_path / "t"), schema)
    long = "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    for row, condition in (
        ([None, "a"], "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
        ([1, "abcd"], long),
        ([1, "abc "], long),
    ):
        with pytest.raises(UserError) as caught:
            append(str(tmp_path / "t"), [batch_of(schema, row)])
        assert caught.value.condition == condition
    append(str(tmp_path / "t"), [batch_of(schema, [1, "ab "])])
    assert read_by_deltalake(tmp_path / "t") == [{"id": 1, "v": "ab "}]


def test_concurrent_appends_lose_nothing(tmp_path: Path) -> None:
    create_table(str(tmp_path / "t"), SIMPLE)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(5):
                append(str(tmp_path / "t"), [batch_of(SIMPLE, [number * 10 + i, "x"])])
        except BaseException as error:  # noqa: BLE001 (shown by the assertion below)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(r["id"] for r in read_by_deltalake(tmp_path / "t")) == sorted(
        n * 10 + i for n in range(6) for i in range(5)
    )
    assert commit_versions(str(tmp_path / "t")) == list(range(31))
    assert any(p.name.endswith(".checkpoint.parquet") for p in files_in(tmp_path / "t"))


def test_of_two_creations_one_wins(tmp_path: Path) -> None:
    def slow() -> Iterator[pa.RecordBatch]:
        create_table(str(tmp_path / "t"), SIMPLE)
        yield batch_of(SIMPLE, [1, "a"])

    with pytest.raises(UserError) as caught:
        create_table(str(tmp_path / "t"), SIMPLE, batches=slow())
    assert caught.value.condition == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert read_by_deltalake(tmp_path / "t") == []
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


def test_append_behind_a_schema_change_is_a_conflict(tmp_path: Path) -> None:
    root = str(tmp_path / "t")
    create_table(root, SIMPLE)
    before = files_in(tmp_path / "t")

    def changing() -> Iterator[pa.RecordBatch]:
        create_table(root, schema_of(other=t.INT), replace=True)
        yield batch_of(SIMPLE, [1, "a"])

    with pytest.raises(UserError) as caught:
        append(root, changing())
    assert caught.value.condition == "WRITE_CONFLICT"
    assert caught.value.retryable
    assert len(files_in(tmp_path / "t")) == len(before) + 1


def test_what_says_anew_what_a_table_is_undoes_no_comment(tmp_path: Path) -> None:
    root = str(tmp_path / "t")
    create_table(root, SIMPLE)
    seen = open_snapshot(root)
    commented = Alteration("SET TBLPROPERTIES", {}, lambda action: action.update(description="kept"))

    def changing() -> Iterator[pa.RecordBatch]:
        alter(seen, commented)
        yield batch_of(SIMPLE, [1, "a"])

    with pytest.raises(UserError) as caught:
        append(root, changing(), seen, also=lambda: [{"metaData": logged_metadata(seen)}])
    assert caught.value.condition == "WRITE_CONFLICT"
    assert open_snapshot(root).comment == "kept"
    append(root, [batch_of(SIMPLE, [1, "a"])], open_snapshot(root))
    assert open_snapshot(root).comment == "kept"


def test_overwrite_behind_an_append_is_a_conflict(tmp_path: Path) -> None:
    root = str(tmp_path / "t")
    create_table(root, SIMPLE)

    def changing() -> Iterator[pa.RecordBatch]:
        append(root, [batch_of(SIMPLE, [1, "a"])])
        yield batch_of(SIMPLE, [2, "b"])

    with pytest.raises(UserError, match="by another writer"):
        overwrite(root, changing())
    assert [r["id"] for r in read_by_deltalake(tmp_path / "t")] == [1]


@pytest.mark.parametrize(
    "change",
    [
        {"configuration": {"delta.enableIcebergCompatV2": "true"}},
        {"configuration": {"delta.constraints.c": "id > 0"}},
        {"metadata": {"EXISTS_DEFAULT": "1"}},
        {"metadata": {"delta.identity.start": 1}},
        {"metadata": {"__COLLATIONS": {}}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["materializePartitionColumns"]}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["teleport"]}},
    ],
)
def test_special_tables_are_not_written(tmp_path: Path, change: dict[str, Any]) -> None:
    root = tmp_path / "t"
    create_table(str(root), SIMPLE)
    log = root / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = change.get("configuration", {})
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] = change.get("metadata", {})
            action["metaData"]["schemaString"] = json.dumps(schema)
        if "protocol" in action and "protocol" in change:
            action["protocol"] = change["protocol"]
    log.write_text("\n".join(map(json.dumps, actions)))
    kept = {**change.get("configuration", {}), **change.get("metadata", {})}
    by_statements = bool(
        kept.keys() & {"delta.constraints.c", "delta.identity.start"}
    )  # which look at the rows that change
    for write in (append,) if by_statements else (append, overwrite):
        with pytest.raises(UnsupportedError) as caught:
            write(str(root), [batch_of(SIMPLE, [1, "a"])])
        assert caught.value.condition == "UNSUPPORTED_TABLE_FEATURE"
    assert len([p for p in files_in(root) if p.suffix == ".parquet"]) == 0


@pytest.mark.parametrize(
    ("schema", "condition"),
    [
        (schema_of(**{"a b": t.INT}), "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (schema_of(a=t.INT, A=t.INT), "COLUMN_ALREADY_EXISTS"),
        (schema_of(a=t.array(t.char(3))), "UNSUPPORTED_FEATURE"),
        (t.struct(t.StructField("a", t.array(t.INT, contains_null=False))), "UNSUPPORTED_FEATURE"),
        (schema_of(a=t.VOID), "UNSUPPORTED_DATATYPE"),
        (schema_of(a=t.YEAR_MONTH), "DELTA_UNSUPPORTED_DATA_TYPES"),
        (schema_of(a=t.array(t.struct(t.StructField("x", t.VOID)))), "UNSUPPORTED_DATATYPE"),
        (schema_of(), "UNSUPPORTED_FEATURE"),
    ],
)
def test_schemas_that_delta_does_not_hold(tmp_path: Path, schema: t.StructType, condition: str) -> None:
    with pytest.raises(GatewayError) as caught:
        create_table(str(tmp_path / "t"), schema)
    assert caught.value.condition == condition
    assert not (tmp_path / "t").exists()


def test_intervals_are_told_with_their_places(tmp_path: Path) -> None:
    inner = t.struct(t.StructField("a", t.interval("hour", "second")))
    schema = schema_of(i=t.interval("day", "day"), ok=t.INT, m=t.map_of(t.YEAR_MONTH, inner), s=t.array(inner))
    with pytest.raises(UserError) as caught:
        create_table(str(tmp_path / "t"), schema)
    told = ["i: DayTimeIntervalType(0,0)", "m[key]: YearMonthIntervalType(0,1)"]
    told += ["m[value].a: DayTimeIntervalType(1,3)", "s[].a: DayTimeIntervalType(1,3)"]
    assert caught.value.message == f"Found columns using unsupported data types: [{', '.join(told)}]."


def test_disk_errors_have_one_shape(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerError, match="Not a directory") as caught:
        create_table(str(tmp_path / "file/t"), SIMPLE)
    assert (caught.value.condition, caught.value.sqlstate) == ("WRITE_FAILED", "58030")


@pytest.mark.parametrize("at", ["data", "log"])
def test_a_full_disk_leaves_the_table_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    create_table(str(old), SIMPLE)
    before = sorted(p.name for p in old.rglob("*"))
    batch = batch_of(SIMPLE, [None] * len(SIMPLE.fields))
    writes: list[Callable[[], object]] = [
        lambda: append(str(old), [batch]),
        lambda: overwrite(str(old), [batch]),
        lambda: create_table(str(old), SIMPLE, batches=[batch], replace=True),
        lambda: create_table(str(new), SIMPLE, batches=[batch]),
    ]

    def fsync(descriptor: int) -> None:
        if (".json" in os.readlink(f"/proc/self/fd/{descriptor}")) == (at == "log"):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    for write in writes:
        with pytest.raises(ResourceError, match="no space left") as caught:
            write()
        assert (caught.value.condition, caught.value.sqlstate) == ("RESOURCE_EXHAUSTED", "53100")
        assert sorted(p.name for p in old.rglob("*")) == before
        assert os.listdir(tmp_path) == ["old"]
    monkeypatch.undo()
    append(str(old), [batch])
    assert open_snapshot(str(old)).num_rows == 1


@pytest.mark.parametrize("at", ["unlink", "fsync"])
def test_what_fails_behind_a_commit_does_not_undo_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at: str
) -> None:
    root = tmp_path / "t"
    create_table(str(root), SIMPLE)
    whole = getattr(os, at)

    def failing(what: Any, **more: Any) -> Any:
        if at == "unlink" or os.path.isdir(f"/proc/self/fd/{what}"):
            raise OSError(errno.EIO, "Input/output error")
        return whole(what, **more)

    monkeypatch.setattr(os, at, failing)
    assert append(str(root), [batch_of(SIMPLE, [1, "a"])]).version == 1
    monkeypatch.undo()
    assert read_by_deltalake(root) == [{"id": 1, "s": "a"}]
    assert "cannot be written" in caplog.text


def test_properties_that_ask_for_more_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"delta\.enableIcebergCompatV2"):
        create_table(str(tmp_path / "t"), SIMPLE, properties={"delta.enableIcebergCompatV2": "true"})
    create_table(str(tmp_path / "t"), SIMPLE, properties={"delta.appendOnly": "true"})
    with pytest.raises(UserError, match="append-only"):
        overwrite(str(tmp_path / "t"), [])
    assert os.path.exists(tmp_path / "t")


def test_dictionaries_are_for_what_repeats(tmp_path: Path) -> None:
    items = t.array(t.INT)
    schema = schema_of(id=t.BIGINT, name=t.STRING, price=t.decimal(10, 2), kind=t.STRING, part=t.INT, items=items)
    rows = [(i, f"name {i}", Decimal(i) / 100, f"kind {i % 7}", i // 5000, [i % 3]) for i in range(40_000)]
    create_table(str(tmp_path / "t"), schema)
    append(str(tmp_path / "t"), iter([batch_of(schema, *rows)]))
    (path,) = [p for p in files_in(tmp_path / "t") if p.suffix == ".parquet"]
    group = pq.read_metadata(path).row_group(0)
    with_dictionary = [group.column(i).has_dictionary_page for i in range(group.num_columns)]
    assert with_dictionary == [False, False, False, True, True, True]
    assert all(group.column(i).has_column_index and group.column(i).has_offset_index for i in range(group.num_columns))
    read = read_by_deltalake(tmp_path / "t")
    assert sorted(tuple(row.values()) for row in read) == rows
    append(str(tmp_path / "t"), iter([batch_of(schema, rows[0])]))
    small = next(p for p in files_in(tmp_path / "t") if p.suffix == ".parquet" and p != path)
    assert not pq.read_metadata(small).row_group(0).column(0).has_dictionary_page


@pytest.mark.parametrize(
    ("text", "maximum"),
    [
        ("é" * 32, "é" * 32),
        ("é" * 33, "é" * 32 + "\U0010ffff"),
        ("a" * 31 + "\U0001f600b", "a" * 31 + "\U0001f600\x7f"),
        ("a" * 31 + "\U0001f600", "a" * 31 + "\U0001f600"),
        ("a" * 32 + "\U0010ffffb", "a" * 32 + "\U0010ffff\x7f"),
        ("\U0010ffff" * 50, None),
    ],
)
def test_long_texts_stay_below_their_maximum(tmp_path: Path, text: str, maximum: str | None) -> None:
    schema = schema_of(s=t.STRING)
    create_table(str(tmp_path / "t"), schema, batches=[batch_of(schema, [text])])
    log = (tmp_path / "t/_delta_log" / f"{0:020d}.json").read_text().splitlines()
    add = next(json.loads(line)["add"] for line in log if '"add"' in line)
    assert json.loads(add["stats"])["maxValues"].get("s") == maximum
    assert maximum is None or maximum >= text
