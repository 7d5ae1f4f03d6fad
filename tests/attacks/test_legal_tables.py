"""Tables as the protocol allows them and few write them: their rows are found, whichever reader comes to read them."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks import compact, packed
from tests.attacks.attacker import add_action, answer, log_action, outcome
from tests.live.gateway import Server

Make = Callable[..., Path]
SIZES = {"small": 1, "large": 40_000}
READERS = {"the engine's": "a.parquet", "our own": "a.data"}  # which of them reads a file, by its name


@pytest.fixture
def make(server: Server) -> Iterator[Make]:
    """Makes the table `legal` of one file."""
    folder = server.warehouse / "default" / "legal"

    def made(
        fields: list[dict[str, Any]], rows: pa.Table, mode: str = "", change: Any = None, file: str = "a.parquet"
    ) -> Path:
        (folder / "_delta_log").mkdir(parents=True)
        pq.write_table(rows, folder / file)
        if change is not None:
            change(folder / file)
        properties = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "9"} if mode else {}
        metadata = {
            "id": "00000000-0000-0000-0000-000000000001",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": properties,
        }
        protocol = (
            {"minReaderVersion": 2, "minWriterVersion": 5} if mode else {"minReaderVersion": 1, "minWriterVersion": 2}
        )
        add = add_action(file, (folder / file).stat().st_size)
        log_action(folder, 0, protocol=protocol, metaData=metadata, add=add)
        return folder

    yield made
    shutil.rmtree(folder)


def as_folder(server: Server, table: Path, name: str) -> str:
    """The file of a table in a folder of its own, as a statement reads it."""
    folder = server.warehouse.parent / "files" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(table / "a.parquet", folder)
    return f"parquet.`{folder}`"


def field(name: str, of: Any = "long", number: int | None = None) -> dict[str, Any]:
    """A field of a table's schema, with a number in files or without."""
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
    return {"name": name, "type": of, "nullable": True, "metadata": {} if number is None else mapping}


def numbered(name: str, arrow: pa.DataType, number: int) -> pa.Field:
    """A field of a file."""
    return pa.field(name, arrow, metadata={"PARQUET:field_id": str(number)})


@pytest.mark.parametrize("file", READERS.values(), ids=READERS)
@pytest.mark.parametrize(("mode", "expected"), [("name", (1, 10)), ("id", (10, 1))], ids=["name", "id"])
def test_the_mapping_says_whether_names_or_numbers_count(
    make: Make, client: Client, mode: str, expected: tuple[int, int], file: str
) -> None:
    """In a file whose numbers are those of other columns than its names."""
    inner = pa.struct([numbered("a", pa.int64(), 4), numbered("b", pa.int64(), 3)])
    schema = pa.schema([numbered("a", pa.int64(), 2), numbered("b", pa.int64(), 1), numbered("s", inner, 5)])
    held = [pa.array([1]), pa.array([10]), pa.array([{"a": 1, "b": 10}], inner)]
    nested = {"type": "struct", "fields": [field("a", number=3), field("b", number=4)]}
    make(
        [field("a", number=1), field("b", number=2), field("s", nested, 5)],
        pa.Table.from_arrays(held, schema=schema),
        mode,
        file=file,
    )
    found = answer(client, "SELECT DISTINCT a, b, s.a AS sa, s.b AS sb FROM legal")
    assert found == [{"a": expected[0], "b": expected[1], "sa": expected[0], "sb": expected[1]}]
    assert answer(client, f"SELECT b FROM legal WHERE a = {expected[0]}") == [{"b": expected[1]}]


@pytest.mark.parametrize("rows", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize(
    ("of", "field_", "value", "read", "expected"),
    [
        (
            "MAP<STRING, STRUCT<x: INT>>",
            "m.value.z STRING",
            "map('k', named_struct('x', 1))",
            "m['k']",
            {"x": 1, "z": None},
        ),
        (
            "MAP<STRUCT<x: INT>, INT>",
            "m.key.z STRING",
            "map(named_struct('x', 1), 2)",
            "map_keys(m)[0]",
            {"x": 1, "z": None},
        ),
        (
            "ARRAY<MAP<STRING, STRUCT<x: INT>>>",
            "m.element.value.z STRING",
            "array(map('k', named_struct('x', 1)))",
            "m[0]['k']",
            {"x": 1, "z": None},
        ),
    ],
    ids=["values", "keys", "in an array"],
)
def test_maps_whose_structs_have_further_fields(
    client: Client, of: str, field_: str, value: str, read: str, expected: Any, rows: int
) -> None:
    try:
        answer(client, f"CREATE TABLE further (m {of})")
        answer(client, f"INSERT INTO further SELECT {value} FROM range({rows})")
        answer(client, f"ALTER TABLE further ADD COLUMNS ({field_})")
        assert answer(client, f"SELECT DISTINCT {read} AS v FROM further") == [{"v": expected}]
        assert answer(client, "SELECT count(m) AS n FROM further") == [{"n": rows}]
    finally:
        answer(client, "DROP TABLE IF EXISTS further")


@pytest.mark.parametrize("rows", SIZES.values(), ids=SIZES)
def test_structs_of_which_a_file_has_no_field(make: Make, client: Client, rows: int) -> None:
    """A struct is there or not by its own, as for Spark."""
    held = pa.struct([("other", pa.int32())])
    values = [{"other": 1}, None, {"other": None}] * rows
    nested = {"type": "struct", "fields": [field("x", "integer"), field("y", "string")]}
    listed = {"type": "array", "elementType": nested, "containsNull": True}
    table = {"s": pa.array(values, held), "a": pa.array([[v] for v in values], pa.list_(held))}
    make([field("s", nested), field("a", listed)], pa.table(table))
    found = answer(
        client, "SELECT count(s) AS s, count(s.x) AS x, count(a) AS a, count(a[0]) AS e, count(a[0].y) AS y FROM legal"
    )
    assert found == [{"s": 2 * rows, "x": 0, "a": 3 * rows, "e": 2 * rows, "y": 0}]


@pytest.mark.parametrize("kind", ["array", "map", "struct"])
def test_types_that_lie_deep_in_each_other(make: Make, client: Client, kind: str) -> None:
    """The engine's own scan has no room for them."""
    of: Any = "integer"
    value: Any = 1
    arrow: pa.DataType = pa.int32()
    for _ in range(30):
        if kind == "array":
            of, value, arrow = {"type": "array", "elementType": of, "containsNull": True}, [value], pa.list_(arrow)
        elif kind == "map":
            of = {"type": "map", "keyType": "string", "valueType": of, "valueContainsNull": True}
            value, arrow = [("k", value)], pa.map_(pa.string(), arrow)
        else:
            of, value, arrow = {"type": "struct", "fields": [field("f", of)]}, {"f": value}, pa.struct([("f", arrow)])
    make([field("i"), field("c", of)], pa.table({"i": [1, 2], "c": pa.array([value, None], arrow)}))
    assert answer(client, "SELECT i, c IS NULL AS v FROM legal ORDER BY i") == [
        {"i": 1, "v": False},
        {"i": 2, "v": True},
    ]
    way = {"array": "[0]", "map": "['k']", "struct": ".f"}[kind] * 30
    assert answer(client, f"SELECT i, c{way} AS v FROM legal ORDER BY i") == [{"i": 1, "v": 1}, {"i": 2, "v": None}]
    answer(client, "UPDATE legal SET i = 3 WHERE c IS NULL")
    assert answer(client, "SELECT i FROM legal WHERE c IS NULL") == [{"i": 3}]


def as_of_old(least: bytes, greatest: bytes) -> Callable[[Path], None]:
    """Has a file tell bounds of its first column as the first version of Parquet did, in which all bytes have a sign."""

    def change(path: Path) -> None:
        data = path.read_bytes()
        told = compact.footer(data)
        for group in told[4][1][1]:
            chunk = group[1][1][1][0][3][1]
            chunk[12] = (compact.STRUCT, {1: (compact.BINARY, greatest), 2: (compact.BINARY, least)})
        told.pop(7)  # the orders of the columns
        path.write_bytes(compact.with_footer(data, told))

    return change


# Type, three values, the bounds that an old writer found, and what is sought.
OLD: dict[str, tuple[str, pa.Array, tuple[bytes, bytes], str]] = {
    "texts": ("string", pa.array(["ac", "aé", "b"]), ("aé".encode(), b"b"), "s = 'ac'"),
    "decimals": (
        "decimal(10,2)",
        pa.array(["-1.00", "2.00", "300.00"]).cast(pa.decimal128(10, 2)),
        (b"\0\0\0\0\xc8", b"\0\0\0\x75\x30"),
        "s < 0",
    ),
}


@pytest.mark.parametrize("rows", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("of_folder", [False, True], ids=["table", "folder"])
@pytest.mark.parametrize("old", OLD)
def test_bounds_of_old_files_hide_no_rows(
    make: Make, server: Server, client: Client, old: str, of_folder: bool, rows: int
) -> None:
    of, values, bounds, sought = OLD[old]
    table = make([field("s", of)], pa.table({"s": pa.chunked_array([values] * rows)}), change=as_of_old(*bounds))
    relation = as_folder(server, table, "old") if of_folder else "legal"
    for _ in range(3):  # the engine keeps what it has seen of a file
        assert answer(client, f"SELECT count(*) AS n FROM {relation} WHERE {sought}") == [{"n": rows}]


def without_null_counts(path: Path) -> None:
    """Has a file tell bounds of its columns, and not how often they are NULL, as some writers do."""
    data = path.read_bytes()
    told = compact.footer(data)
    for group in told[4][1][1]:
        for chunk in group[1][1][1]:
            chunk[3][1][12][1].pop(3)
    path.write_bytes(compact.with_footer(data, told))


@pytest.mark.parametrize("rows", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("of_folder", [False, True], ids=["table", "folder"])
@pytest.mark.parametrize("groups", [1, 3])
def test_nulls_that_files_do_not_count_are_found(
    make: Make, server: Server, client: Client, groups: int, of_folder: bool, rows: int
) -> None:
    values = pa.chunked_array([pa.array([0, 1, 2] * rows + [None, 100, 101] * rows + [200, 201, 202] * rows)])
    columns = pa.table({"k": values, "s": values.cast(pa.string()), "d": values.cast(pa.float64())})

    def change(path: Path) -> None:
        pq.write_table(columns, path, row_group_size=len(values) // groups)
        without_null_counts(path)

    fields = [field("k"), field("s", "string"), field("d", "double")]
    table = make(fields, columns, change=change)
    relation = as_folder(server, table, "uncounted") if of_folder else "legal"
    for _ in range(2):  # the engine keeps what it has seen of a file
        for name in "ksd":
            assert answer(client, f"SELECT count(*) AS n FROM {relation} WHERE {name} IS NULL") == [{"n": rows}]
            assert answer(client, f"SELECT count({name}) AS n FROM {relation}") == [{"n": 8 * rows}]
            assert answer(client, f"SELECT {name} AS n FROM {relation} ORDER BY {name} LIMIT 1") == [{"n": None}]
        assert answer(client, f"SELECT count(*) AS n FROM {relation} WHERE k <=> NULL OR k > 200") == [{"n": 3 * rows}]
        assert answer(client, f"SELECT count(*) AS n FROM {relation} WHERE NOT k IS NOT NULL") == [{"n": rows}]


@pytest.mark.parametrize("of_folder", [False, True], ids=["table", "folder"])
def test_rows_that_are_sorted_within_row_groups_only(
    make: Make, server: Server, client: Client, of_folder: bool
) -> None:
    group = [1] * 1000 + [2] * 1000 + [3] * 1000
    rows = pa.table({"a": group * 2, "b": list(range(6000))})

    def change(path: Path) -> None:
        pq.write_table(rows, path, row_group_size=3000, sorting_columns=[pq.SortingColumn(0)])

    table = make([field("a"), field("b")], rows, change=change)
    relation = as_folder(server, table, "sorted") if of_folder else "legal"
    assert answer(client, f"SELECT count(DISTINCT a) AS n FROM {relation}") == [{"n": 3}]
    assert answer(client, f"SELECT a, count(*) AS n FROM {relation} GROUP BY a ORDER BY a") == [
        {"a": a, "n": 2000} for a in (1, 2, 3)
    ]
    assert answer(client, f"SELECT a FROM {relation} ORDER BY a LIMIT 1 OFFSET 1500") == [{"a": 1}]


def as_hadoop_packs(path: Path) -> None:
    """Packs the only page of a file as Hadoop's LZ4 does: parts, each behind its size and that of what is in it."""
    data = path.read_bytes()
    told = compact.footer(data)
    of_column = told[4][1][1][0][1][1][1][0][3][1]
    start = of_column[9][1]
    page, begin = compact.read(data, start)
    held = data[begin : begin + page[3][1]]
    packed = b""
    for at in range(0, len(held), 200_000):
        whole = held[at : at + 200_000]
        part = pa.compress(whole, codec="lz4_raw", asbytes=True)
        packed += len(whole).to_bytes(4, "big") + len(part).to_bytes(4, "big") + part
    head = compact.written(compact.STRUCT, {**page, 3: (5, len(packed))})
    of_column[4], of_column[7] = (5, 5), (6, len(head) + len(packed))
    kept = data[:start] + head + packed
    path.write_bytes(compact.with_footer(kept + bytes(8), told))


@pytest.mark.parametrize("of_folder", [False, True], ids=["table", "folder"])
def test_large_pages_in_lz4_as_hadoop_packs_them(make: Make, server: Server, client: Client, of_folder: bool) -> None:
    """As Spark writes with `compression.codec=lz4`."""
    rows = pa.table({"s": [f"{i:>50}" for i in range(20_000)]})

    def change(path: Path) -> None:
        pq.write_table(rows, path, compression="none", use_dictionary=False, data_page_size=1 << 30, store_schema=False)
        as_hadoop_packs(path)

    table = make([field("s", "string")], rows, change=change)
    relation = as_folder(server, table, "hadoop") if of_folder else "legal"
    assert answer(client, f"SELECT count(DISTINCT s) AS n, max(trim(s)) AS m FROM {relation}") == [
        {"n": 20_000, "m": "9999"}
    ]


@pytest.mark.parametrize("file", READERS.values(), ids=READERS)
@pytest.mark.parametrize("inside", [False, True], ids=["column", "field"])
@pytest.mark.parametrize(
    ("kind", "own", "told"),
    [
        ("decimal(9,2)", pa.decimal128(9, 2), pa.decimal64(18, 4)),
        ("decimal(9,2)", pa.decimal128(9, 2), pa.decimal256(40, 4)),
        ("timestamp", pa.timestamp("ns"), pa.timestamp("us", "UTC")),
        ("timestamp", pa.timestamp("ns"), pa.timestamp("ms")),
        ("timestamp", pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
        ("string", pa.string(), pa.dictionary(pa.int8(), pa.string())),
    ],
    ids=lambda of: str(of),
)
def test_a_schema_of_arrow_that_says_something_else(
    make: Make, client: Client, kind: str, own: pa.DataType, told: pa.DataType, inside: bool, file: str
) -> None:
    """The file's own schema counts, as it does for who knows nothing of Arrow."""
    numbers = pa.array([123, 456])
    values = numbers.cast(pa.string()) if own == pa.string() else numbers
    if pa.types.is_decimal(own):
        values = pa.array([Decimal("1.23"), Decimal("4.56")], own)
    elif pa.types.is_timestamp(own):
        values = numbers.cast(pa.timestamp("s", own.tz)).cast(own)
    rows = pa.table({"s": pa.StructArray.from_arrays([values], ["f"]) if inside else values})
    lie = pa.schema([pa.field("s", pa.struct([("f", told)]) if inside else told)])

    def change(path: Path) -> None:
        with pq.ParquetWriter(path, rows.schema, store_schema=False) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({b"ARROW:schema": b64encode(lie.serialize().to_pybytes())})

    make(
        [field("s", {"type": "struct", "fields": [field("f", kind)]} if inside else kind)],
        rows,
        change=change,
        file=file,
    )
    expected = [str(v.as_py()) for v in values.cast(pa.timestamp("us", "UTC") if kind == "timestamp" else own)]
    name = "s.f" if inside else "s"
    for _ in range(2):  # the engine keeps what it has seen of a file
        found = answer(client, f"SELECT {name} AS v FROM legal ORDER BY {name}")
        assert [str(row["v"]) for row in found] == expected
        assert len(answer(client, f"SELECT {name} FROM legal WHERE {name} IS NOT NULL")) == 2


@pytest.mark.parametrize("of_folder", [False, True], ids=["table", "folder"])
def test_numbers_packed_in_blocks_as_photon_does(make: Make, server: Server, client: Client, of_folder: bool) -> None:
    count = 20_000
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64(), nullable=False)])
    numbers = [i * 7 + i * i % 13 for i in range(count)]
    rows = pa.table({"a": [i * 37 % count for i in range(count)], "b": numbers}, schema=schema)

    def change(path: Path) -> None:
        packed.write(rows, path, 256, "parquet-mr compatible Photon version 0.2 (build 17.3)")

    table = make([field("a"), field("b")], rows, change=change)
    relation = as_folder(server, table, "packed") if of_folder else "legal"
    assert answer(client, f"SELECT sum(b) AS n FROM {relation}") == [{"n": sum(numbers)}]
    assert answer(client, f"SELECT b FROM {relation} WHERE a = 777") == [{"b": 159}]
    some = sum(b for a, b in zip(rows["a"].to_pylist(), numbers, strict=True) if a % 1000 == 5)
    assert answer(client, f"SELECT sum(b) AS n FROM {relation} WHERE a % 1000 = 5") == [{"n": some}]
    if not of_folder:
        answer(client, "DELETE FROM legal WHERE a = 777")
        assert answer(client, "SELECT count(*) AS n, sum(b) AS s FROM legal") == [
            {"n": count - 1, "s": sum(numbers) - 159}
        ]


def test_columns_that_have_each_others_names_in_files(client: Client) -> None:
    """As two are once they have changed names, of a table that was made without a mapping."""
    try:
        answer(client, "CREATE TABLE legal (a INT, b INT, p STRING, q STRING) PARTITIONED BY (p, q)")
        answer(client, "INSERT INTO legal VALUES (1, 2, 'P', 'Q'), (3, 4, 'PP', 'QQ')")
        mapping = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
        answer(client, f"ALTER TABLE legal SET TBLPROPERTIES ({mapping})")
        for one, other in (("a", "b"), ("p", "q")):
            for old, new in ((one, "free"), (other, one), ("free", other)):
                answer(client, f"ALTER TABLE legal RENAME COLUMN {old} TO {new}")
        assert answer(client, "SELECT * FROM legal ORDER BY a") == [
            {"b": 1, "a": 2, "q": "P", "p": "Q"},
            {"b": 3, "a": 4, "q": "PP", "p": "QQ"},
        ]
        assert answer(client, "SELECT a FROM legal WHERE q = 'P'") == [{"a": 2}]
        answer(client, "UPDATE legal SET a = a + 10 WHERE p = 'Q'")
        answer(client, "DELETE FROM legal WHERE q = 'PP'")
        answer(client, "INSERT INTO legal (a, b, p, q) VALUES (5, 6, 'new p', 'new q')")
        assert answer(client, "SELECT a, b, p, q FROM legal ORDER BY a") == [
            {"a": 5, "b": 6, "p": "new p", "q": "new q"},
            {"a": 12, "b": 1, "p": "Q", "q": "P"},
        ]
        parts = sorted(answer(client, "SHOW PARTITIONS legal"), key=lambda row: str(row["p"]))
        assert parts == [{"p": "Q", "q": "P"}, {"p": "new p", "q": "new q"}]
    finally:
        answer(client, "DROP TABLE IF EXISTS legal")


@pytest.mark.parametrize(
    ("old", "value", "new"), [("DECIMAL(5, 2)", "1.5", "DECIMAL(8, 4)"), ("INT", "1", "DECIMAL(12, 2)")],
    ids=["decimals", "whole numbers"],
)  # fmt: skip
def test_a_partition_column_keeps_a_type_that_its_values_are_read_as(
    server: Server, client: Client, old: str, value: str, new: str
) -> None:
    try:
        answer(
            client,
            f"CREATE TABLE parted (id INT, p {old}) PARTITIONED BY (p) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        )
        answer(client, f"INSERT INTO parted VALUES (1, {value})")
        error = outcome(client, f"ALTER TABLE parted ALTER COLUMN p TYPE {new}")
        assert isinstance(error, RemoteError)
        assert str(error).startswith(
            f"[UNSUPPORTED_FEATURE] {new.replace(', ', ',')} as the type of the partition column p"
        )
        assert answer(client, f"SELECT id FROM parted WHERE p = {value}") == [{"id": 1}]
        # Another writer may do it: it is no damage.
        log = server.warehouse / "default" / "parted" / "_delta_log"
        first = (log / f"{0:020d}.json").read_text().splitlines()
        metadata = next(action["metaData"] for action in map(json.loads, first) if "metaData" in action)
        types = {"DECIMAL(5, 2)": "decimal(5,2)", "INT": "integer", "DECIMAL(8, 4)": "decimal(8,4)"}
        before, after = f'"{types[old]}"', f'"{types.get(new, "decimal(12,2)")}"'
        wider = metadata["schemaString"].rpartition(before)
        log_action(log.parent, 2, metaData={**metadata, "schemaString": wider[0] + after + wider[2]})
        error = outcome(client, "SELECT * FROM parted")
        assert isinstance(error, RemoteError)
        assert str(error).startswith("[UNSUPPORTED_TABLE_FEATURE] The Delta table")
    finally:
        answer(client, "DROP TABLE IF EXISTS parted")


# The values of two files each.
DECIMALS = {
    "decimal(18,4)": ("90071992547409.9301", "90071992547409.9305"),
    "decimal(20,10)": ("1234567890.1234567891", "-1234567890.1234567899"),
    "decimal(17,0)": ("90071992547409931", "-90071992547409929"),
    "decimal(38,0)": ("9" * 38, "-" + "9" * 38),
    "decimal(38,18)": ("1" * 20 + "." + "1" * 18, "0.000000000000000001"),
}


@pytest.mark.parametrize("of", DECIMALS)
def test_bounds_of_decimals_that_were_doubles_hide_no_rows(server: Server, client: Client, of: str) -> None:
    """delta-rs writes bounds of decimals as doubles, and those without a scale as 64 bits."""
    precision, scale = map(int, of.removeprefix("decimal(").removesuffix(")").split(","))
    folder, texts = server.warehouse / "default" / "doubles", DECIMALS[of]
    least, greatest = sorted(texts, key=Decimal)
    try:
        for text in texts:
            rows = pa.table({"d": pa.array([Decimal(text)], pa.decimal128(precision, scale))})
            deltalake.write_deltalake(folder, rows, mode="append")
        for text in texts:
            for sought in (f"d = {text}", f"d <=> {text}", f"d IN ({text}, 5)", f"d BETWEEN {text} AND {text}"):
                found = answer(client, f"SELECT CAST(d AS STRING) AS d FROM doubles WHERE {sought}")
                assert [Decimal(row["d"]) for row in found] == [Decimal(text)]
        for sought in (f"d >= {greatest}", f"d <= {least}", f"d > {least}", f"d < {greatest}"):
            assert answer(client, f"SELECT count(*) AS n FROM doubles WHERE {sought}") == [{"n": 1}]
        (total,) = answer(client, "SELECT CAST(sum(d) AS STRING) AS n FROM doubles")
        with localcontext(prec=40):
            assert Decimal(total["n"]) == sum(map(Decimal, texts))
        merged = (
            f"MERGE INTO doubles USING (SELECT {greatest} AS d) s ON doubles.d = s.d WHEN NOT MATCHED THEN INSERT *"
        )
        answer(client, merged)
        answer(client, f"DELETE FROM doubles WHERE d = {least}")
        assert answer(client, "SELECT count(*) AS n FROM doubles") == [{"n": 1}]
    finally:
        shutil.rmtree(folder)


def test_a_cut_bound_of_texts_with_what_delta_once_put_behind_it(make: Make, client: Client) -> None:
    """U+FFFD, by Java's order of characters behind those that UTF-8 has behind it."""
    head = "x" * 32
    table = make([field("s", "string")], pa.table({"s": [head + "\U0001f600"]}))
    stats = {"numRecords": 1, "minValues": {"s": head}, "maxValues": {"s": head + "\ufffd"}, "nullCount": {"s": 0}}
    size = (table / "a.parquet").stat().st_size
    log_action(table, 1, add={**add_action("a.parquet", size), "stats": json.dumps(stats)})
    for sought in (
        f"= '{head}\U0001f600'",
        f"> '{head}\ufffe'",
        f"LIKE '{head}\U0001f600%'",
        f"IN ('{head}\U0001f600', '')",
    ):
        assert answer(client, f"SELECT count(*) AS n FROM legal WHERE s {sought}") == [{"n": 1}]
    assert answer(client, "SELECT count(*) AS n FROM legal WHERE s > 'y'") == [{"n": 0}]


def test_enums_are_texts(make: Make, server: Server, client: Client) -> None:
    """As writers by way of Avro and Protobuf have them; nothing but the footer tells them from bytes."""
    held = pa.table(
        {"a.b": [b"RED", None, "gr\u00fcn".encode()], "l": [[b"RED"], None, []], "x": [b"\xff", b"a", None]}
    )

    def annotated(path: Path) -> None:
        found = compact.footer(path.read_bytes())
        for at in (1, 4):  # a.b, and the elements of l
            found = compact.changed(compact.STRUCT, found, (2, at), found[2][1][1][at] | {6: (5, 4)})
        path.write_bytes(compact.with_footer(path.read_bytes(), found))

    listed = {"type": "array", "elementType": "string", "containsNull": True}
    table = make([field("a.b", "string"), field("l", listed), field("x", "binary")], held, change=annotated)
    for relation in ("legal", as_folder(server, table, "enums")):
        found = answer(client, f"SELECT `a.b` AS a, l, hex(x) AS x FROM {relation} ORDER BY `a.b` NULLS LAST")
        texts = [("RED", ["RED"], "FF"), ("gr\u00fcn", [], None), (None, None, "61")]
        assert [(row["a"], row["l"], row["x"]) for row in found] == texts
        assert answer(client, f"SELECT l[0] AS v FROM {relation} WHERE `a.b` = 'RED'") == [{"v": "RED"}]
        assert answer(client, f"SELECT max(`a.b`) AS v FROM {relation}") == [{"v": "gr\u00fcn"}]
    kinds = {row["col_name"]: row["data_type"] for row in answer(client, f"DESCRIBE QUERY SELECT * FROM {relation}")}
    assert kinds == {"a.b": "string", "l": "array<string>", "x": "binary"}


SPELT = {
    "decimal(10,3)": (("1.1", "1", "1e2", " 1.1", "1.1234"), ("abc", "99999999", "1e4000")),
    "decimal(5,0)": (("1.5",), ("100000",)),
    "integer": ((" 5", "5 "), ("x", "2147483648")),
    "boolean": (("t", "0", " true"), ("xx",)),
    "double": ((" 1.5",), ("x",)),
    "date": (("2024-01-01 00:00:00", "2024-01"), ("x",)),
    "timestamp": (("2024-01-01T10:00:00", "2024-01-01"), ("x",)),
}


@pytest.mark.parametrize("of", SPELT)
def test_partition_values_that_spark_reads_are_no_damage(make: Make, client: Client, of: str) -> None:
    """The reader of logs takes few spellings of a value; who reads by CAST takes more, of which nobody says they are damage."""
    folder = make([field("id"), field("p", of)], pa.table({"id": [1]}))
    path = folder / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for texts, condition in zip(SPELT[of], ("UNSUPPORTED_TABLE_FEATURE", "DELTA_LOG_CORRUPT"), strict=True):
        for text in texts:
            for action in actions:
                action.get("metaData", {})["partitionColumns"] = ["p"]
                action.get("add", {})["partitionValues"] = {"p": text}
            path.write_text("".join(json.dumps(action) + "\n" for action in actions))
            told = outcome(client, "SELECT * FROM legal")
            assert str(told).startswith(f"[{condition}]") and repr(text) in str(told), (text, told)


def test_bounds_of_booleans_as_texts_are_no_damage(make: Make, client: Client) -> None:
    """Spark does without statistics that it does not read."""
    folder = make([field("id"), field("b", "boolean")], pa.table({"id": [1], "b": [True]}))
    path = folder / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        action.get("add", {})["stats"] = '{"numRecords":1,"minValues":{"b":"true"},"maxValues":{"b":"true"}}'
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert str(outcome(client, "SELECT * FROM legal")).startswith("[UNSUPPORTED_TABLE_FEATURE]")


KINDS = ("protocol", "metaData", "add", "remove", "txn", "domainMetadata", "cdc", "commitInfo")
ACTS = ("VACUUM legal", "ALTER TABLE legal SET TBLPROPERTIES ('a' = 'b')", "RESTORE TABLE legal TO VERSION AS OF 0")


@pytest.mark.parametrize(
    "act", [*ACTS, "CREATE TABLE copied SHALLOW CLONE legal", "UPDATE legal SET id = 1 WHERE id = 2"]
)
def test_actions_spelt_with_the_kinds_that_they_are_not(make: Make, client: Client, act: str) -> None:
    """Some writers write all fields of a line, null where there is nothing."""
    folder = make([field("id")], pa.table({"id": [1]}))
    path = folder / "_delta_log" / f"{0:020d}.json"
    actions = [dict.fromkeys(KINDS) | json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    answer(client, "INSERT INTO legal VALUES (2)")
    try:
        answer(client, act)
        expected = {"R": [1], "U": [1, 1]}.get(act[0], [1, 2])
        named = "copied" if "CLONE" in act else "legal"
        assert answer(client, f"SELECT id FROM {named} ORDER BY id") == [{"id": number} for number in expected]
    finally:
        answer(client, "DROP TABLE IF EXISTS copied")
