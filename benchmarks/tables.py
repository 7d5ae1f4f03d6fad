"""The tables that the benchmarks read: made once into .bench/, as Delta tables of one commit with statistics.

Every table is a folder of Parquet files with a log beside them, so that DataFusion reads the folder, and the gateway and Sail
the Delta table.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
import sys
import uuid
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.delta.datafiles import leaves_that_repeat

CACHE = Path(__file__).resolve().parents[1] / ".bench"
WAREHOUSE = CACHE / "tables"
LOOKUP_ROWS, LOOKUP_FILES = 10_000_000, 100
TRANSFER_ROWS = 1_000_000
WIDTH = 324  # bytes of a long text
HITS_ROWS = 2_000_000
KINDS_ROWS = 60_000
_FILE_BATCHES = 8  # of 1M rows: one file a table at scale 1

_DELTA_NAMES = {
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}


def _delta_type(type_: pa.DataType) -> Any:
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_list(type_):
        return {"type": "array", "elementType": _delta_type(type_.value_type), "containsNull": True}
    if pa.types.is_map(type_):
        inner = {"keyType": _delta_type(type_.key_type), "valueType": _delta_type(type_.item_type)}
        return {"type": "map", **inner, "valueContainsNull": True}
    if pa.types.is_struct(type_):
        return _delta_struct(pa.schema(list(type_)))
    return _DELTA_NAMES[type_]


def _delta_struct(schema: pa.Schema) -> dict[str, Any]:
    fields = [{"name": f.name, "type": _delta_type(f.type), "nullable": True, "metadata": {}} for f in schema]
    return {"type": "struct", "fields": fields}


def _json_value(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return value


def _statistics(table: pa.Table) -> str:
    """Delta's statistics of one file, as Spark writes them: bounds of integers, decimals and dates."""
    minimum, maximum, nulls = {}, {}, {}
    for name in table.column_names:
        column = table.column(name)
        nulls[name] = column.null_count
        if pa.types.is_integer(column.type) or pa.types.is_date(column.type) or pa.types.is_decimal(column.type):
            bounds = pc.min_max(column).as_py()
            if bounds["min"] is not None:
                minimum[name], maximum[name] = _json_value(bounds["min"]), _json_value(bounds["max"])
    stats = {"numRecords": table.num_rows, "minValues": minimum, "maxValues": maximum, "nullCount": nulls}
    return json.dumps(stats, separators=(",", ":"))


def write_delta(folder: Path, files: Iterator[pa.Table]) -> None:
    """Write `files`, one Parquet file each, and the commit that makes the folder a Delta table; atomic by rename."""
    draft = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    (draft / "_delta_log").mkdir(parents=True)
    actions: list[dict[str, Any]] = []
    schema: pa.Schema | None = None
    for number, table in enumerate(files):
        schema = schema or table.schema
        path = draft / f"part-{number:05}.parquet"
        # As the gateway writes, and Spark: with page indexes, and no dictionary of what does not repeat.
        repeated = leaves_that_repeat(table)
        pq.write_table(
            table, path, compression="snappy", row_group_size=1 << 17, use_dictionary=repeated, write_page_index=True
        )
        add = {"path": path.name, "partitionValues": {}, "size": path.stat().st_size, "modificationTime": 0}
        actions.append({"add": {**add, "dataChange": True, "stats": _statistics(table)}})
    assert schema is not None
    head = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(_delta_struct(schema)),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 0,
            }
        },
    ]
    text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in head + actions)
    (draft / "_delta_log" / f"{0:020}.json").write_text(text)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)


def _lookup() -> Iterator[pa.Table]:
    per_file = LOOKUP_ROWS // LOOKUP_FILES
    for number in range(LOOKUP_FILES):
        ids = np.arange(number * per_file, (number + 1) * per_file)
        yield pa.table(
            {
                "id": ids,
                "amount": (ids * 7919 % 1_000_003) / 8.0,
                "name": pc.binary_join_element_wise("name", pa.array(ids).cast(pa.string()), " "),
            }
        )


def _ints() -> Iterator[pa.Table]:
    ids = np.arange(TRANSFER_ROWS)
    yield pa.table({f"c{i}": ids * (i * 2 + 1) * 104_729 % 1_000_000_007 for i in range(5)})


def _mixed() -> Iterator[pa.Table]:
    ids = np.arange(TRANSFER_ROWS)
    odd = pa.array(ids % 10 == 3)
    cents = pa.array(ids * 31 % 10_000_019).cast(pa.decimal128(19, 0))
    columns: dict[str, Any] = {
        "big": ids,
        "small": (ids % 100_000).astype(np.int32),
        "flag": pa.array(ids % 2 == 0),
        "ratio": (ids * 7919 % 1_000_003) / 7.0,
        "price": pc.multiply(cents, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(18, 2)),
        "word": pc.binary_join_element_wise("w", pa.array(ids * 13 % 5003).cast(pa.string()), "-"),
        "line": pc.binary_join_element_wise("a longer text with number", pa.array(ids).cast(pa.string()), " "),
        "day": pa.array((ids % 20_000).astype(np.int32)).cast(pa.date32()),
        "moment": pa.array(ids * 86_400_123_457 % 2_000_000_000_000_000).cast(pa.timestamp("us", "UTC")),
        "raw": pc.cast(pa.array(ids % 4001).cast(pa.string()), pa.binary()),
    }
    table = pa.table(columns)
    yield pa.table({n: pc.if_else(odd, pa.scalar(None, c.type), c) if n != "big" else c for n, c in _items(table)})


def _wide() -> Iterator[pa.Table]:
    letters = np.random.default_rng(1).integers(97, 123, TRANSFER_ROWS * WIDTH, dtype=np.uint8)
    offsets = np.arange(TRANSFER_ROWS + 1, dtype=np.int32) * WIDTH
    texts = pa.StringArray.from_buffers(TRANSFER_ROWS, pa.py_buffer(offsets), pa.py_buffer(letters))
    yield pa.table({"id": np.arange(TRANSFER_ROWS), "text": texts})


def _items(table: pa.Table) -> list[tuple[str, Any]]:
    return [(name, table.column(name)) for name in table.column_names]


def _nested() -> Iterator[pa.Table]:
    ids = np.arange(TRANSFER_ROWS)
    lengths = ids % 4
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    numbers = pa.array(np.arange(offsets[-1]) * 17 % 1009)
    keys = pc.binary_join_element_wise(
        "k", pa.array(np.arange(offsets[-1]) - offsets[:-1].repeat(lengths)).cast(pa.string()), ""
    )
    struct = pa.StructArray.from_arrays(
        [pa.array(ids), pc.binary_join_element_wise("n", pa.array(ids % 97).cast(pa.string()), "")],
        names=["id", "name"],
    )
    yield pa.table(
        {
            "id": ids,
            "list": pa.ListArray.from_arrays(pa.array(offsets), numbers),
            "pairs": pa.MapArray.from_arrays(pa.array(offsets), keys, numbers),
            "record": struct,
        }
    )


def _made(numbers: Any, pattern: str) -> pa.Array:
    """Texts by number, each distinct one made once."""
    distinct, index = np.unique(numbers, return_inverse=True)
    return pa.array([pattern.format(n, m=n % 89) for n in distinct.tolist()]).take(pa.array(index))


_BROWSERS = pa.array(
    ["Chrome", "Chrome Mobile", "Firefox", "Safari", "Mobile Safari", "Opera", "Edge", "", "Samsung Internet"]
)


def _hits() -> Iterator[pa.Table]:
    """Page views in the order of their time: long texts with many and with few values, some of them empty."""
    random = np.random.default_rng(17)
    for number in range(2):
        size = HITS_ROWS // 2
        item = (random.pareto(0.6, size) * 50).astype(np.int64) % 400_000
        shop, query = item % 389, (random.pareto(0.8, size) * 20).astype(np.int64) % 60_000
        host = _made(shop, "https://www.shop{}.example/")
        campaign = pa.array(["mail", "news", "search", "friend"]).take(pa.array(random.integers(0, 4, size)))
        url = pc.binary_join_element_wise(host, "item/", _made(item, "{}"), "?from=", campaign, "")
        comes_from = _made(shop * 31 % 397, "http://www.search{}.example/find?q=things&lang=en")
        searched = pa.array(random.random(size) < 0.4)
        start = number * size
        yield pa.table(
            {
                "moment": pa.array(1_700_000_000_000_000 + np.arange(start, start + size) * 300_007).cast(
                    pa.timestamp("us", "UTC")
                ),
                "day": pa.array((19_675 + np.arange(start, start + size) // 300_000).astype(np.int32)).cast(
                    pa.date32()
                ),
                "user_id": random.integers(0, 1 << 60, size // 5)[random.integers(0, size // 5, size)],
                "region": random.integers(0, 229, size).astype(np.int32),
                "width": random.integers(300, 4000, size).astype(np.int32),
                "browser": _BROWSERS.take(pa.array(random.integers(0, 40, size) % random.integers(1, 10, size) % 9)),
                "url": url,
                "referer": pc.if_else(pa.array(random.random(size) < 0.5), comes_from, ""),
                "title": _made(
                    item // 3,
                    "Item {0}: a thing of \u6771\u4eac or \u041f\u0435\u0440\u043c\u044c, in stock, best price {m}",
                ),
                "phrase": pc.if_else(searched, _made(query, "buy red shoes {}"), ""),
            }
        )


_MODELS = pa.array(
    ["", "", "", "", "iPad", "iPhone 2", "Pixel 9", "Galaxy S", "Nokia 3310", "Lumia", "Redmi", "Xperia"]
)


def _clicks() -> Iterator[pa.Table]:
    """The page views of `hits` with what is counted beside texts: who came, from where, by what, to which counter."""
    random = np.random.default_rng(43)
    start = 0
    for views in _hits():
        size = len(views)
        ids = np.arange(start, start + size)
        address = random.integers(0, 1 << 31, size // 6)[
            (random.pareto(1.1, size) * 3000).astype(np.int64) % (size // 6)
        ]
        model = random.integers(0, len(_MODELS), size) * (random.random(size) < 0.3)
        counter = np.where(random.random(size) < 0.05, 62, (random.pareto(0.7, size) * 100).astype(np.int64) % 6000)
        numbers = {
            "watch_id": ids * 6_364_136_223_846_793 % (1 << 61),
            "counter_id": counter,
            "client_ip": address,
            "adv_engine": random.integers(1, 60, size) % 18 * (random.random(size) < 0.06),
            "search_engine": random.integers(0, 90, size) % random.integers(1, 90, size),
            "traffic_source": random.integers(-1, 10, size),
            "phone": model * 7 % 13,
            "is_refresh": random.random(size) < 0.12,
            "is_link": random.random(size) < 0.2,
            "is_download": random.random(size) < 0.01,
            "dont_count": random.random(size) < 0.05,
            "window_width": random.integers(30, 200, size) * 10,
            "window_height": random.integers(30, 110, size) * 10,
        }
        for name, values in numbers.items():
            views = views.append_column(name, pa.array(values.astype(np.int64 if name == "watch_id" else np.int32)))
        for name in ("url", "referer"):
            texts = views.column(name).combine_chunks().dictionary_encode()
            hashes = [zlib.crc32(text.encode()) * 1_000_000_007 for text in texts.dictionary.to_pylist()]
            views = views.append_column(f"{name}_hash", pa.array(hashes, pa.int64()).take(texts.indices))
        yield views.append_column("model", _MODELS.take(pa.array(model)))
        start += size


def _topics() -> Iterator[pa.Table]:
    ids = np.arange(30_000)
    yield pa.table({"phrase": _made(ids * 2, "buy red shoes {}"), "topic": _made(ids % 40, "topic {}")})


def _kinds() -> Iterator[pa.Table]:
    """A column of each kind, each row another value."""
    ids = np.arange(KINDS_ROWS)
    numbers = pa.array(ids).cast(pa.string())
    moments = pa.array(1_600_000_000_000_000 + ids * 61_000_123).cast(pa.timestamp("us"))
    offsets = pa.array((np.arange(KINDS_ROWS + 1) * 3).astype(np.int32))
    listed = np.arange(KINDS_ROWS * 3) * 17 % 1009

    def joined(*parts: Any) -> Any:
        return pc.binary_join_element_wise(*parts, "")

    yield pa.table(
        {
            "n": ids,
            "i": ids.astype(np.int32),
            "d": ids * 7919 % 1_000_003 / 7.0 + 1,
            "m": pc.multiply(pa.array(ids).cast(pa.decimal128(19, 0)), pa.scalar(Decimal("0.01"))).cast(
                pa.decimal128(18, 2)
            ),
            "s": joined("a text ", numbers, " of words"),
            "word": joined("w", numbers),
            "number": numbers,
            "stamp": pc.strftime(moments.cast(pa.timestamp("s"), safe=False), "%Y-%m-%d %H:%M:%S"),
            "url": joined("https://www.example.org/path/", numbers, "?a=", numbers, "&b=2"),
            "json": joined('{"a": ', numbers, ', "b": "text"}'),
            "day": pa.array((ids % 30_000).astype(np.int32)).cast(pa.date32()),
            "at": moments.cast(pa.timestamp("us", "UTC")),
            "list": pa.ListArray.from_arrays(offsets, pa.array(listed)),
            "words": pa.ListArray.from_arrays(offsets, pa.array(listed).cast(pa.string())),
        }
    )


_MAKERS: dict[str, Callable[[], Iterator[pa.Table]]] = {
    "lookup": _lookup,
    "ints": _ints,
    "mixed": _mixed,
    "nested": _nested,
    "wide": _wide,
    "hits": _hits,
    "clicks": _clicks,
    "topics": _topics,
    "kinds": _kinds,
}


def table(name: str) -> Path:
    """The folder of a table of schema `bench`, made if it is not there yet."""
    folder = WAREHOUSE / "bench" / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        write_delta(folder, _MAKERS[name]())
    return folder


TPCH_TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def tpch(scale: int = 1) -> Path:
    """The schema folder with the eight TPC-H tables at `scale`."""
    schema = WAREHOUSE / f"tpch_sf{scale}"
    missing = [name for name in TPCH_TABLES if not (schema / name).exists()]
    if missing:
        draft = CACHE / f"tpchgen-{scale}"
        schema.mkdir(parents=True, exist_ok=True)
        generator = Path(sys.executable).with_name("tpchgen-cli")
        command = [str(generator), "parquet", "-s", str(scale), f"--output-dir={draft}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for name in missing:
            write_delta(schema / name, _pieces(draft / f"{name}.parquet"))
        shutil.rmtree(draft)
    return schema


TPCDS_NAMES = {"c_last_review_date_sk": "c_last_review_date"}  # dsdgen's to that of Spark's schema


def tpcds(scale: int = 1) -> dict[str, Path]:
    """The folders of the 24 TPC-DS tables at `scale` by name, as DuckDB's extension makes them; integers are INT."""
    import duckdb

    schema = WAREHOUSE / f"tpcds_sf{scale}"
    if not schema.exists():
        extension = util.find_spec("duckdb_extension_tpcds")
        assert extension is not None and extension.origin is not None
        library = Path(extension.origin).parent / "extensions" / f"v{duckdb.__version__}" / "tpcds.duckdb_extension"
        draft = schema.with_name(f".{schema.name}")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        with duckdb.connect(config={"threads": 2}) as generator:
            generator.execute("SET autoinstall_known_extensions = false; SET enable_progress_bar = false")
            generator.execute(f"LOAD '{library}'")
            generator.execute(f"CALL dsdgen(sf = {scale})")
            for (name,) in generator.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
                file = draft / f"{name}.parquet"
                generator.execute(f"COPY {name} TO '{file}' (FORMAT parquet)")
                write_delta(draft / name, map(_as_spark, _pieces(file)))
                file.unlink()
        draft.rename(schema)
    return {folder.name: folder for folder in sorted(schema.iterdir())}


def _as_spark(source: pa.Table) -> pa.Table:
    fields = [
        pa.field(TPCDS_NAMES.get(f.name, f.name), pa.int32() if pa.types.is_integer(f.type) else f.type)
        for f in source.schema
    ]
    return source.rename_columns([f.name for f in fields]).cast(pa.schema(fields))


def _pieces(path: Path) -> Iterator[pa.Table]:
    """The rows of a file in tables of bounded size."""
    with pq.ParquetFile(path) as file:
        batches: list[pa.RecordBatch] = []
        for batch in file.iter_batches(1 << 20):
            batches.append(batch)
            if len(batches) == _FILE_BATCHES:
                yield _plain_strings(pa.Table.from_batches(batches))
                batches = []
        if batches:
            yield _plain_strings(pa.Table.from_batches(batches))


def _plain_strings(source: pa.Table) -> pa.Table:
    views = (pa.string_view(), pa.large_string())
    fields = [pa.field(f.name, pa.string() if f.type in views else f.type) for f in source.schema]
    return source.cast(pa.schema(fields))
