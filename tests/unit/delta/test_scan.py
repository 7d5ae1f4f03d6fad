"""Reading tables through DataFusion: readers, new versions, and the hazards that would give wrong rows silently."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from gateway import sqltypes as t
from gateway.delta.predicates import Comparison, NullTest, Predicate
from gateway.delta.scan import DATASET, EMPTY, MIXED, NATIVE, ScanPlan, plan_scan
from gateway.delta.table import open_snapshot
from gateway.delta.write import create_table
from gateway.errors import ServerError, UnsupportedError, UserError

NAN = float("nan")


def context() -> datafusion.SessionContext:
    """As the engine makes it when floats are read."""
    settings = {
        "datafusion.execution.collect_statistics": "false",
        "datafusion.execution.parquet.schema_force_view_types": "false",
    }
    return datafusion.SessionContext(datafusion.SessionConfig(settings))


def run(plan: ScanPlan, sql: str = "select * from t order by 1") -> list[dict[str, Any]]:
    ctx = context()
    plan.register(ctx, "t")
    rows: list[dict[str, Any]] = ctx.sql(sql).to_arrow_table().to_pylist()
    return rows


def scan(root: Path | str, columns: Sequence[str], predicates: Sequence[Predicate] = ()) -> ScanPlan:
    return plan_scan(open_snapshot(str(root)), columns, predicates)


def hand_made(
    root: Path, fields: list[dict[str, Any]], files: Sequence[tuple[str, pa.Table, dict[str, Any]]], **metadata: Any
) -> Path:
    """A table from raw log actions: what foreign writers leave behind."""
    (root / "_delta_log").mkdir(parents=True)
    protocol = metadata.pop("protocol", {"minReaderVersion": 1, "minWriterVersion": 2})
    meta = {
        "id": "x",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": metadata.pop("partition_by", []),
        "configuration": metadata.pop("configuration", {}),
        "createdTime": 0,
    }
    actions: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": meta}]
    for name, table, extra in files:
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(table, root / name)
        add = {"path": name, "partitionValues": {}, "size": (root / name).stat().st_size, "modificationTime": 0}
        actions.append({"add": {**add, "dataChange": True, **extra}})
    (root / "_delta_log" / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    return root


def field(name: str, kind: Any = "long", **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def mapped_to(number: int, physical: str) -> dict[str, Any]:
    """The metadata of a field under column mapping."""
    return {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    for start in (0, 10, 20):
        table = pa.table({"Id": range(start, start + 10), "s": [f"k{i}" for i in range(start, start + 10)]})
        write_deltalake(tmp_path / "t", table, mode="append")
    return tmp_path / "t"


def test_reads_and_prunes(plain: Path) -> None:
    plan = scan(plain, ["s", "Id"], [Comparison("Id", "=", pa.scalar(15, pa.int64()))])
    assert (plan.reader, plan.files_kept, plan.files_total, plan.num_rows) == (NATIVE, 1, 3, 10)
    assert not plan.reads_floats
    assert run(plan, 'select * from t where "Id" = 15') == [{"s": "k15", "Id": 15}]


def test_no_file_left_is_an_empty_table(plain: Path) -> None:
    plan = scan(plain, ["Id"], [Comparison("Id", ">", pa.scalar(99, pa.int64()))])
    assert plan.reader == EMPTY
    assert run(plan) == []


def test_no_columns_still_counts(plain: Path) -> None:
    assert run(scan(plain, []), "select count(*) as n from t") == [{"n": 30}]


def test_new_version_is_seen_and_old_snapshot_stays(plain: Path) -> None:
    old = open_snapshot(str(plain))
    assert open_snapshot(str(plain)) is old
    write_deltalake(plain, pa.table({"Id": [99], "s": ["z"]}), mode="append")
    assert (old.num_rows, open_snapshot(str(plain)).num_rows) == (30, 31)
    assert open_snapshot(str(plain), 1).num_rows == 20


def test_table_made_anew_in_the_same_folder_is_seen(plain: Path) -> None:
    import shutil

    assert open_snapshot(str(plain)).num_rows == 30
    shutil.rmtree(plain)
    for _ in range(3):
        write_deltalake(plain, pa.table({"other": [1]}), mode="append")
    assert open_snapshot(str(plain)).schema.fields[0].name == "other"


def test_vanished_file_is_named(plain: Path) -> None:
    snapshot = open_snapshot(str(plain))
    plan = plan_scan(snapshot, ["Id"])
    os.unlink(snapshot.files.paths[0])
    with pytest.raises(ServerError, match=os.path.basename(snapshot.files.paths[0])) as caught:
        plan_scan(snapshot, ["Id"])
    assert caught.value.condition == "DELTA_FILE_NOT_FOUND"
    with pytest.raises(ServerError, match="is missing"):
        plan.verify()


def test_truncated_file_is_named(plain: Path) -> None:
    snapshot = open_snapshot(str(plain))
    with open(snapshot.files.paths[0], "r+b") as file:
        file.truncate(100)
    with pytest.raises(ServerError, match="has 100 bytes instead of"):
        plan_scan(snapshot, ["Id"])


@pytest.mark.parametrize("reader", [NATIVE, DATASET])
@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("true", [1.0, 2.0, NAN, NAN]),
        ("d > 5", [NAN, NAN]),
        ("d <= 5", [1.0, 2.0]),
        ("d <> 1", [2.0, NAN, NAN]),
        ("d = 1", [1.0]),
        ("d not in (1.0, 3.0, 4.0, 5.0, 6.0)", [2.0, NAN, NAN]),
        ("not (d <= 5)", [NAN, NAN]),
        ("d is null", [None]),
        ("d = 'NaN'::double", [NAN, NAN]),
    ],
)
def test_nan_is_the_largest_value(tmp_path: Path, reader: str, where: str, wanted: list[float]) -> None:
    """Parquet's and Delta's statistics skip NaN: files with min = max = 1.0 that hold NaN too."""
    for values in ([1.0, NAN], [2.0, NAN, None]):
        write_deltalake(tmp_path / "t", pa.table({"d": values}), mode="append")
    plan = scan(tmp_path / "t", ["d"], [Comparison("d", ">", pa.scalar(5.0))])
    assert plan.reader == NATIVE
    assert plan.reads_floats
    found = [r["d"] for r in run(dataclasses.replace(plan, reader=reader), f"select d from t where {where} order by d")]
    if where == "true":
        found = found[:-1]  # NULL, the last
    assert [repr(x) for x in found] == [repr(x) for x in wanted]


def test_nan_in_a_join(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"d": [1.0, NAN]}))
    ctx = context()
    scan(tmp_path / "t", ["d"]).register(ctx, "a")
    scan(tmp_path / "t", ["d"]).register(ctx, "b")
    assert ctx.sql("select count(*) as n from a join b on a.d = b.d").to_arrow_table().to_pylist() == [{"n": 2}]


@pytest.mark.parametrize("nested", [False, True])
def test_file_column_differing_in_case(tmp_path: Path, nested: bool) -> None:
    """A native scan would give NULLs."""
    if nested:
        kind = {"type": "struct", "fields": [field("Inner")]}
        table = pa.table({"c": [{"INNER": 7}]})
        root = hand_made(tmp_path / "t", [field("c", kind)], [("a.parquet", table, {})])
        wanted: Any = {"Inner": 7}
    else:
        root = hand_made(tmp_path / "t", [field("c")], [("a.parquet", pa.table({"C": [7]}), {})])
        wanted = 7
    plan = scan(root, ["c"])
    assert plan.reader == DATASET
    assert run(plan) == [{"c": wanted}]


def test_columns_added_later_are_null(tmp_path: Path) -> None:
    old, new = pa.table({"a": [1]}), pa.table({"a": [2], "b": ["x"]})
    write_deltalake(tmp_path / "t", old)
    write_deltalake(tmp_path / "t", new, mode="append", schema_mode="merge")
    plan = scan(tmp_path / "t", ["a", "b"])
    assert plan.reader == NATIVE
    assert run(plan) == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


def test_id_mapping_goes_by_field_id(tmp_path: Path) -> None:
    """Names in the file are swapped: by name the values would change places."""

    def stored(name: str, number: str) -> Any:
        return pa.field(name, pa.int64(), metadata={"PARQUET:field_id": number})

    mapped = [
        field("x", **{"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "p1"}),
        field("y", **{"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "p2"}),
    ]
    table = pa.table([pa.array([10]), pa.array([20])], schema=pa.schema([stored("p2", "1"), stored("p1", "2")]))
    root = hand_made(
        tmp_path / "t",
        mapped,
        [("a.parquet", table, {})],
        protocol={"minReaderVersion": 2, "minWriterVersion": 5},
        configuration={"delta.columnMapping.mode": "id"},
    )
    plan = scan(root, ["y", "x"])
    assert plan.reader == DATASET
    assert run(plan) == [{"y": 20, "x": 10}]


@pytest.mark.parametrize(
    ("kind", "told"),
    [("none", "no field ids"), ("twice", "more than once"), ("inside", [{"x": 10, "s": {"z": None}}])],
)
def test_id_mapping_goes_by_no_name(tmp_path: Path, kind: str, told: Any) -> None:
    """A file without ids is refused, as the protocol allows; of a struct whose fields have none they are NULL."""
    ids = {"none": (None, None), "twice": ("1", "1"), "inside": ("1", "2")}[kind]
    nested = {"type": "struct", "fields": [field("z", **mapped_to(3, "p3"))]}
    fields = [
        pa.field("p1", pa.int64(), metadata=ids[0] and {"PARQUET:field_id": ids[0]}),
        pa.field("p2", pa.struct([("p3", pa.int64())]), metadata=ids[1] and {"PARQUET:field_id": ids[1]}),
    ]
    table = pa.table([pa.array([10]), pa.array([{"p3": 5}], fields[1].type)], schema=pa.schema(fields))
    root = hand_made(
        tmp_path / "t",
        [field("x", **mapped_to(1, "p1")), field("s", nested, **mapped_to(2, "p2"))],
        [("a.parquet", table, {})],
        protocol={"minReaderVersion": 2, "minWriterVersion": 5},
        configuration={"delta.columnMapping.mode": "id"},
    )
    if isinstance(told, str):
        with pytest.raises(Exception, match=told):
            run(scan(root, ["x", "s"]))
    else:
        assert run(scan(root, ["x", "s"])) == told


@pytest.mark.parametrize("default", ["42", "NULL", "null"])
def test_a_column_with_a_value_in_older_rows(tmp_path: Path, default: str) -> None:
    """Spark reads it where a file lacks the column; NULL is what there is anyway."""
    fields = [field("x"), field("d", "integer", EXISTS_DEFAULT=default)]
    held = {"a.parquet": pa.table({"x": [1]}), "b.parquet": pa.table({"x": [2], "d": pa.array([3], pa.int32())})}
    root = hand_made(tmp_path / "t", fields, [(name, rows, {}) for name, rows in held.items()])
    assert run(scan(root, ["x"])) == [{"x": 1}, {"x": 2}]
    if default == "42":
        with pytest.raises(Exception, match="EXISTS_DEFAULT"):
            run(scan(root, ["x", "d"]))
    else:
        assert run(scan(root, ["x", "d"])) == [{"x": 1, "d": None}, {"x": 2, "d": 3}]


def test_name_mapping_is_native(tmp_path: Path) -> None:
    mapped = [
        field("a.b", **{"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}),
        field('q"x', **{"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "a.b"}),
    ]
    root = hand_made(
        tmp_path / "t",
        mapped,
        [("a.parquet", pa.table({"col-1": [1], "a.b": [2]}), {})],
        protocol={"minReaderVersion": 2, "minWriterVersion": 5},
        configuration={"delta.columnMapping.mode": "name"},
    )
    plan = scan(root, ['q"x', "a.b"])
    assert plan.reader == NATIVE
    assert run(plan) == [{'q"x': 2, "a.b": 1}]


def test_int96_outside_of_nanoseconds(tmp_path: Path) -> None:
    values = pa.array([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)], pa.timestamp("us"))
    root = tmp_path / "t"
    hand_made(root, [field("ts", "timestamp")], [])
    pq.write_table(pa.table({"ts": values}), root / "a.parquet", use_deprecated_int96_timestamps=True)
    size = (root / "a.parquet").stat().st_size
    add = {"path": "a.parquet", "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    (root / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"add": add}))
    plan = scan(root, ["ts"])
    assert plan.reader == NATIVE
    assert [r["ts"].year for r in run(plan)] == [1, 9999]


@pytest.mark.parametrize("reader", [NATIVE, DATASET])
@pytest.mark.parametrize(
    ("stored", "declared", "value"),
    [
        (pa.array([7], pa.int8()), "long", 7),
        (pa.array([7], pa.int32()), "double", 7.0),
        (pa.array([1.5], pa.float32()), "double", 1.5),
        (pa.array([7], pa.int32()), "decimal(12,2)", 7),
        (pa.array([dt.date(2024, 1, 1)]), "timestamp_ntz", dt.datetime(2024, 1, 1)),
    ],
)
def test_widened_types(tmp_path: Path, reader: str, stored: pa.Array, declared: str, value: Any) -> None:
    features = ["typeWidening", "timestampNtz"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    files: list[tuple[str, pa.Table, dict[str, Any]]] = [("a.parquet", pa.table({"c": stored}), {})]
    root = hand_made(tmp_path / "t", [field("c", declared)], files, protocol=protocol)
    plan = scan(root, ["c"])
    assert plan.reader == NATIVE
    assert run(dataclasses.replace(plan, reader=reader)) == [{"c": value}]


@pytest.mark.parametrize("partitioned", [False, True])
def test_char_is_padded_on_reading(tmp_path: Path, partitioned: bool) -> None:
    """Writers other than Spark do not pad; longer texts stay as they are."""
    fields = [field("c", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)"), field("v")]
    kind = {"type": "array", "elementType": {"type": "struct", "fields": [field("x", "string")]}, "containsNull": True}
    fields.append(field("n", kind, __CHAR_VARCHAR_TYPE_STRING="array<struct<x:char(2)>>"))
    nested = pa.array([[{"x": "a"}]] * 3, pa.list_(pa.struct([("x", pa.string())])))
    columns = {"v": [1, 2, 3], "n": nested}
    if partitioned:
        table, extra = pa.table(columns), {"partitionValues": {"c": "a"}}
        root = hand_made(tmp_path / "t", fields, [("a.parquet", table, extra)], partition_by=["c"])
        wanted: list[Any] = ["a  "] * 3
    else:
        table = pa.table({"c": ["a", "éé", "abcd"], **columns})
        root = hand_made(tmp_path / "t", fields, [("a.parquet", table, {})])
        wanted = ["a  ", "éé ", "abcd"]
    plan = scan(root, ["c", "v"])
    assert plan.reader == NATIVE
    for reader in (NATIVE, DATASET):
        found = run(dataclasses.replace(plan, reader=reader), "select c from t order by v")
        assert [r["c"] for r in found] == wanted
    deep = scan(root, ["n"])
    assert open_snapshot(str(root)).schema.fields[2].type.sql == "ARRAY<STRUCT<x: CHAR(2)>>"
    assert run(deep, "select n from t limit 1") == [{"n": [{"x": "a "}]}]


def test_narrowing_is_refused_by_the_dataset(tmp_path: Path) -> None:
    root = hand_made(tmp_path / "t", [field("c", "integer")], [("a.parquet", pa.table({"C": [2**40]}), {})])
    with pytest.raises(Exception, match="A file holds the column c as int64, the table as INT"):
        run(scan(root, ["c"]))


def test_unreadable_column_is_refused_only_when_read(tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    nested = {"type": "struct", "fields": [field("s", "string", __COLLATIONS={"s": "icu.UNICODE_CI"})]}
    root = hand_made(tmp_path / "t", [field("a"), field("v", nested)], [("a.parquet", table, {})])
    assert run(scan(root, ["a"])) == [{"a": 1}]
    with pytest.raises(UnsupportedError, match="Column v has a collation"):
        scan(root, ["v"])


def test_unknown_reader_feature_is_named(tmp_path: Path) -> None:
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["teleport"],
        "writerFeatures": ["teleport"],
    }
    root = hand_made(tmp_path / "t", [field("a")], [], protocol=protocol)
    with pytest.raises(UnsupportedError, match="teleport") as caught:
        scan(root, ["a"])
    assert caught.value.condition == "UNSUPPORTED_TABLE_FEATURE"


def test_file_outside_of_the_table_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"a": [1]}), secret)
    for path in (f"file://{secret}", str(secret), "../secret.parquet", "x/../../secret.parquet"):
        root = hand_made(tmp_path / f"t{abs(hash(path))}", [field("a")], [])
        add = {
            "path": path,
            "partitionValues": {},
            "size": secret.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
        }
        (root / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"add": add}))
        with pytest.raises(UserError, match="outside of its folder") as caught:
            scan(root, ["a"])
        assert caught.value.condition == "PATH_NOT_ALLOWED"
        if ".." in path:
            with pytest.raises(UnsupportedError, match="outside of its folder"):
                open_snapshot(str(root), within=(str(tmp_path),))
        else:  # as of a shallow clone
            assert open_snapshot(str(root), within=(str(tmp_path),)).files.paths == [str(secret)]


def test_partition_columns_of_all_types(tmp_path: Path) -> None:
    utc = dt.UTC
    values: dict[str, tuple[t.DataType, Any]] = {
        "p_int": (t.INT, -1),
        "p_double": (t.DOUBLE, 1e300),
        "p_bool": (t.BOOLEAN, True),
        "p_date": (t.DATE, dt.date(1, 1, 1)),
        "p_ts": (t.TIMESTAMP, dt.datetime(2024, 6, 15, 12, 30, 45, 123456, tzinfo=utc)),
        "p_ntz": (t.TIMESTAMP_NTZ, dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
        "p_dec": (t.decimal(38, 18), -1),
        "p_str": (t.STRING, "a/b=c %25 é {}"),
    }
    schema = t.struct(t.StructField("v", t.INT), *(t.StructField(n, kind) for n, (kind, _) in values.items()))
    rows = [[1, *(v for _, v in values.values())], [2, *(None for _ in values)]]
    arrays = [
        pa.array(column, f.type.arrow()) for f, column in zip(schema.fields, zip(*rows, strict=True), strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=[f.name for f in schema.fields])
    create_table(str(tmp_path / "t"), schema, partition_by=list(values), batches=[batch])
    plan = scan(tmp_path / "t", [f.name for f in schema.fields])
    wanted = batch.to_pylist()
    for reader in (NATIVE, DATASET):
        assert run(dataclasses.replace(plan, reader=reader)) == wanted
    kept = scan(tmp_path / "t", ["v"], [NullTest("p_ts", negated=False)])
    assert (kept.files_kept, run(kept)) == (1, [{"v": 2}])


def test_many_partition_values_use_the_dataset(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"p": range(70), "v": range(70)}), partition_by=["p"])
    plan = scan(tmp_path / "t", ["p", "v"])
    assert plan.reader == DATASET
    assert run(plan) == [{"p": i, "v": i} for i in range(70)]
    assert scan(tmp_path / "t", ["v"]).reader == NATIVE  # the partition column is not read
    assert run(scan(tmp_path / "t", ["p"]), "select count(p) as n from t") == [{"n": 70}]


def test_empty_text_as_partition_value_is_null(tmp_path: Path) -> None:
    """The protocol reads "" as NULL; deltalake reads it as ''."""
    fields = [field("p", "string"), field("v")]
    add = {"partitionValues": {"p": ""}}
    root = hand_made(tmp_path / "t", fields, [("p=/a.parquet", pa.table({"v": [1]}), add)], partition_by=["p"])
    assert run(scan(root, ["p", "v"])) == [{"p": None, "v": 1}]


def test_nested_columns_keep_their_nulls(tmp_path: Path) -> None:
    """The dataset reader rebuilds nested values; offsets and validity must survive slices."""
    kind = pa.struct([("a", pa.int32()), ("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32()))])
    rows = [
        None if i % 3 == 0 else {"a": None if i % 5 == 0 else i, "l": [i, None] * (i % 4), "m": [("k", i)] * (i % 2)}
        for i in range(100)
    ]
    table = pa.table({"ID": range(100), "s": pa.array(rows, kind)})
    schema = [
        field("id"),
        field(
            "s",
            {
                "type": "struct",
                "fields": [
                    field("m", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}),
                    field("added", "string"),
                    field("l", {"type": "array", "elementType": "long", "containsNull": True}),
                    field("a"),
                ],
            },
        ),
    ]
    plan = scan(hand_made(tmp_path / "t", schema, [("a.parquet", table, {})]), ["id", "s"])
    assert plan.reader == DATASET
    wanted = [r and {"m": r["m"], "added": None, "l": r["l"], "a": r["a"]} for r in rows]
    assert [r["s"] for r in run(plan)] == wanted
    late = run(plan, "select s from t where id >= 50 order by id")
    assert [r["s"] for r in late] == wanted[50:]


def test_nan_at_the_top(tmp_path: Path) -> None:
    """ORDER BY ... LIMIT makes a filter while it runs, which prunes by statistics too."""
    for values in ([5.0, 6.0], [1.0, NAN]):
        write_deltalake(tmp_path / "t", pa.table({"d": values}), mode="append")
    top = run(scan(tmp_path / "t", ["d"]), "select d from t order by d desc nulls last limit 1")
    assert math.isnan(top[0]["d"])


def test_floats_in_statistics_never_prune(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"d": [1.0, NAN]}))
    for op in ("=", "<", "<=", ">", ">="):
        assert scan(tmp_path / "t", ["d"], [Comparison("d", op, pa.scalar(7.0))]).files_kept == 1
    assert math.isnan(run(scan(tmp_path / "t", ["d"]), "select max(d) as d from t")[0]["d"])


def test_texts_are_views_from_every_reader(tmp_path: Path) -> None:
    rows = pa.table(
        {"s": ["one", "a text of more than twelve bytes", None], "p": ["x", "x", "y"], "b": [b"1", None, b""]}
    )
    write_deltalake(str(tmp_path), rows, partition_by=["p"])
    native = scan(tmp_path, ["s", "p", "b"])
    assert native.reader == NATIVE
    nothing = scan(tmp_path, ["s", "p", "b"], [Comparison("p", "=", pa.scalar("z"))])
    assert nothing.reader == EMPTY
    for plan in (native, native.one_by_one(), nothing):
        for given, text in ((plan, pa.string_view()), (plan.plain(), pa.string())):
            ctx = context()
            given.register(ctx, "t")
            assert ctx.table("t").schema().types == [text, text, pa.binary()] == given.schema.types
            assert {r["s"] for r in run(given)} == (set() if plan is nothing else set(rows["s"].to_pylist()))


def test_deletion_vectors(shared: Path, tmp_path: Path) -> None:
    """Deleted rows stay deleted under filters, limits and counts."""
    import tarfile

    archive = shared / "delta-tables.tar.gz"
    with tarfile.open(archive) as tar:
        members = [m for m in tar.getmembers() if "crafted/dv-many-files-some-dv/" in m.name]
        tar.extractall(tmp_path, members=members, filter="data")
    root = next(tmp_path.rglob("_delta_log")).parent
    plan = scan(root, ["id"])
    assert plan.reader == MIXED
    assert run(dataclasses.replace(plan, reader=DATASET)) == run(plan)
    wanted = pa.RecordBatchReader.from_stream(DeltaTable(root).scan(columns=["id"])).read_all()["id"].to_pylist()
    assert [r["id"] for r in run(plan)] == sorted(wanted)
    assert open_snapshot(str(root)).num_rows == len(wanted) == plan.num_rows
    assert run(plan, "select count(*) as n from t") == [{"n": len(wanted)}]
    assert {r["id"] for r in run(plan, "select id from t where id < 20 limit 30")} == {i for i in wanted if i < 20}


def test_conditions_are_looked_at_while_rows_are_read_or_once_they_are(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": range(100), "b": range(100)}))
    plan = scan(tmp_path / "t", ["a", "b"])
    for each, kept in ((plan, False), (plan.at_once(), True)):
        ctx = context()
        each.register(ctx, "t")
        frame = ctx.sql("select b from t where a = 7")
        assert ("FilterExec" in frame.execution_plan().display_indent()) is kept
        assert frame.to_arrow_table().to_pylist() == [{"b": 7}]
