"""The read-only catalog `samples`, made on first start without network: the names that Databricks users know.

`samples.tpch.*` follows the TPC-H schema and value rules (keys, prices, dates, word lists) at a small scale but is not the
official data; `samples.nyctaxi.trips` has the columns of the real one; `samples.delta_types.all_types` has a column of every
type with NULLs and extremes. Everything comes from fixed seeds: the same rows on every machine. The folder is built beside its
place and renamed, so that readers never see half of it and concurrent starts do not disturb each other.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway import sqltypes as t
from gateway.catalog.local import LocalCatalog
from gateway.delta.write import create_table

# Raise it when the data changes: an old folder is then left alone and a new one built.
_EDITION = "samples-1"
_SCALE = 0.01
Ints = npt.NDArray[np.int64]

_REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
_NATIONS = (
    "ALGERIA:0 ARGENTINA:1 BRAZIL:1 CANADA:1 EGYPT:4 ETHIOPIA:0 FRANCE:3 GERMANY:3 INDIA:2 INDONESIA:2 IRAN:4 IRAQ:4 JAPAN:2 "
    "JORDAN:4 KENYA:0 MOROCCO:0 MOZAMBIQUE:0 PERU:1 CHINA:2 ROMANIA:3 SAUDI_ARABIA:4 VIETNAM:2 RUSSIA:3 UNITED_KINGDOM:3 "
    "UNITED_STATES:1"
)
_SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"]
_PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
_INSTRUCTIONS = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
_MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
_COLOR_WORDS = (
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon "
    "chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost "
    "goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium "
    "metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple "
    "red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise "
    "violet wheat white yellow"
)
_COLORS = _COLOR_WORDS.split()
_TYPES = [
    f"{a} {b} {c}"
    for a in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for b in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for c in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
]
_CONTAINERS = [
    f"{a} {b}"
    for a in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for b in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
]
_COMMENT_WORDS = (
    "furiously quickly carefully blithely slyly ironic final bold regular express special pending unusual even silent deposits "
    "packages requests accounts theodolites pinto beans instructions foxes dependencies asymptotes sleep haggle nag use wake "
    "cajole detect integrate among above against along beneath"
)
_WORDS = _COMMENT_WORDS.split()
_FIRST_DAY = (date(1992, 1, 1) - date(1970, 1, 1)).days
_LAST_ORDER_DAY = (date(1998, 8, 2) - date(1970, 1, 1)).days
_CURRENT_DAY = (date(1995, 6, 17) - date(1970, 1, 1)).days

MONEY = t.decimal(18, 2)
Columns = Mapping[str, tuple[t.DataType, pa.Array]]


def open_samples(state: str) -> LocalCatalog:
    """The catalog, built under the folder `state` if it is not there yet."""
    folder = os.path.join(os.path.realpath(state), _EDITION)
    if not os.path.isdir(folder):
        _build(folder)
    return LocalCatalog("samples", folder, read_only=True)


def _build(folder: str) -> None:
    draft = f"{folder}.{uuid.uuid4().hex}"
    os.makedirs(draft)
    try:
        for name, columns in _tables().items():
            _write(os.path.join(draft, *name.split(".")), columns)
        os.rename(draft, folder)
    except OSError:
        if not os.path.isdir(folder):  # else another start was faster, and its rows are the same
            raise
    finally:
        if os.path.isdir(draft):
            shutil.rmtree(draft)


def _write(path: str, columns: Columns) -> None:
    schema = t.struct(*(t.StructField(name, kind) for name, (kind, _) in columns.items()))
    batch = pa.RecordBatch.from_arrays([values for _, values in columns.values()], names=list(columns))
    create_table(path, schema, batches=[batch])


def _tables() -> dict[str, Columns]:
    tables = {f"tpch.{name}": columns for name, columns in tpch(_SCALE).items()}
    tables["nyctaxi.trips"] = _trips()
    tables["delta_types.all_types"] = all_types()
    return tables


# ---- pieces


def _money(cents: Ints) -> pa.Array:
    """DECIMAL(18,2) from hundredths: the 128-bit little-endian values, sign extended."""
    wide = np.empty((len(cents), 2), dtype="<i8")
    wide[:, 0] = cents
    wide[:, 1] = cents >> 63
    return pa.Array.from_buffers(MONEY.arrow(), len(cents), [None, pa.py_buffer(wide.tobytes())])


def _dates(days: Ints) -> pa.Array:
    return pa.array(days.astype(np.int32), pa.int32()).cast(pa.date32())


def _instants(seconds: Ints) -> pa.Array:
    return pa.array(seconds * 1_000_000).cast(t.TIMESTAMP.arrow())


def _pick(rng: np.random.Generator, words: Sequence[str], rows: int) -> pa.Array:
    return pa.array(list(words)).take(pa.array(rng.integers(0, len(words), rows)))


def _phrase(rng: np.random.Generator, words: Sequence[str], rows: int, count: int) -> pa.Array:
    return pc.binary_join_element_wise(*(_pick(rng, words, rows) for _ in range(count)), " ")


def _label(prefix: str, numbers: Ints, width: int = 9) -> pa.Array:
    return pc.binary_join_element_wise(prefix, _digits(numbers, width), "")


def _digits(numbers: Ints, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _phones(rng: np.random.Generator, nations: Ints) -> pa.Array:
    rows = len(nations)
    parts = [pa.array(nations + 10).cast(pa.string())]
    parts += [_digits(rng.integers(10 ** (n - 1), 10**n, rows), n) for n in (3, 3, 4)]
    return pc.binary_join_element_wise(*parts, "-")


def _sprinkled(rng: np.random.Generator, comments: pa.Array, text: str, every: int) -> pa.Array:
    """Comments with `text` in about one of `every`, for the queries that look for it."""
    return pc.if_else(pa.array(rng.integers(0, every, len(comments)) == 0), pa.scalar(text), comments)


def _retail_cents(part: Ints) -> Ints:
    return 90000 + (part // 10) % 20001 + 100 * (part % 1000)


def _supplier_of(part: Ints, corner: Ints | int, suppliers: int) -> Ints:
    return (part + corner * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1


# ---- TPC-H


def tpch(scale: float) -> dict[str, Columns]:
    """The eight tables at `scale` (1.0: 6 million line items)."""
    rng = np.random.default_rng(19920101)
    suppliers, customers = max(int(10_000 * scale), 10), max(int(150_000 * scale), 30)
    parts, orders = max(int(200_000 * scale), 40), max(int(1_500_000 * scale), 100)
    nations = [n.replace("_", " ").split(":") for n in _NATIONS.split()]
    tables: dict[str, Columns] = {
        "region": {
            "r_regionkey": (t.BIGINT, pa.array(range(5), pa.int64())),
            "r_name": (t.STRING, pa.array(_REGIONS)),
            "r_comment": (t.STRING, _phrase(rng, _WORDS, 5, 6)),
        },
        "nation": {
            "n_nationkey": (t.BIGINT, pa.array(range(25), pa.int64())),
            "n_name": (t.STRING, pa.array([n for n, _ in nations])),
            "n_regionkey": (t.BIGINT, pa.array([int(r) for _, r in nations], pa.int64())),
            "n_comment": (t.STRING, _phrase(rng, _WORDS, 25, 6)),
        },
        "supplier": _supplier(rng, suppliers),
        "customer": _customer(rng, customers),
        "part": _part(rng, parts),
        "partsupp": _partsupp(rng, parts, suppliers),
    }
    tables["orders"], tables["lineitem"] = _orders(rng, orders, customers, parts, suppliers)
    return tables


def _supplier(rng: np.random.Generator, rows: int) -> Columns:
    key = np.arange(1, rows + 1)
    nation = rng.integers(0, 25, rows)
    return {
        "s_suppkey": (t.BIGINT, pa.array(key)),
        "s_name": (t.STRING, _label("Supplier#", key)),
        "s_address": (t.STRING, _phrase(rng, _WORDS, rows, 2)),
        "s_nationkey": (t.BIGINT, pa.array(nation)),
        "s_phone": (t.STRING, _phones(rng, nation)),
        "s_acctbal": (MONEY, _money(rng.integers(-99_999, 1_000_000, rows))),
        "s_comment": (t.STRING, _sprinkled(rng, _phrase(rng, _WORDS, rows, 8), "slyly Customer even Complaints", 40)),
    }


def _customer(rng: np.random.Generator, rows: int) -> Columns:
    key = np.arange(1, rows + 1)
    nation = rng.integers(0, 25, rows)
    return {
        "c_custkey": (t.BIGINT, pa.array(key)),
        "c_name": (t.STRING, _label("Customer#", key)),
        "c_address": (t.STRING, _phrase(rng, _WORDS, rows, 2)),
        "c_nationkey": (t.BIGINT, pa.array(nation)),
        "c_phone": (t.STRING, _phones(rng, nation)),
        "c_acctbal": (MONEY, _money(rng.integers(-99_999, 1_000_000, rows))),
        "c_mktsegment": (t.STRING, _pick(rng, _SEGMENTS, rows)),
        "c_comment": (t.STRING, _phrase(rng, _WORDS, rows, 9)),
    }


def _part(rng: np.random.Generator, rows: int) -> Columns:
    key = np.arange(1, rows + 1)
    maker = rng.integers(1, 6, rows)
    return {
        "p_partkey": (t.BIGINT, pa.array(key)),
        "p_name": (t.STRING, _phrase(rng, _COLORS, rows, 5)),
        "p_mfgr": (t.STRING, _label("Manufacturer#", maker, 1)),
        "p_brand": (t.STRING, _label("Brand#", maker * 10 + rng.integers(1, 6, rows), 2)),
        "p_type": (t.STRING, _pick(rng, _TYPES, rows)),
        "p_size": (t.INT, pa.array(rng.integers(1, 51, rows).astype(np.int32))),
        "p_container": (t.STRING, _pick(rng, _CONTAINERS, rows)),
        "p_retailprice": (MONEY, _money(_retail_cents(key))),
        "p_comment": (t.STRING, _phrase(rng, _WORDS, rows, 3)),
    }


def _partsupp(rng: np.random.Generator, parts: int, suppliers: int) -> Columns:
    part = np.repeat(np.arange(1, parts + 1), 4)
    rows = len(part)
    return {
        "ps_partkey": (t.BIGINT, pa.array(part)),
        "ps_suppkey": (t.BIGINT, pa.array(_supplier_of(part, np.tile(np.arange(4), parts), suppliers))),
        "ps_availqty": (t.INT, pa.array(rng.integers(1, 10_000, rows).astype(np.int32))),
        "ps_supplycost": (MONEY, _money(rng.integers(100, 100_001, rows))),
        "ps_comment": (t.STRING, _phrase(rng, _WORDS, rows, 10)),
    }


def _orders(rng: np.random.Generator, rows: int, customers: int, parts: int, suppliers: int) -> tuple[Columns, Columns]:
    index = np.arange(rows)
    key = index // 8 * 32 + index % 8 + 1  # a quarter of the key range is used, as in TPC-H
    customer = rng.integers(0, customers // 3, rows) * 3 + rng.integers(1, 3, rows)  # a third never orders
    day = rng.integers(_FIRST_DAY, _LAST_ORDER_DAY + 1, rows)
    lines = rng.integers(1, 8, rows)
    first = np.cumsum(lines) - lines
    order = np.repeat(index, lines)
    count = len(order)
    part = rng.integers(1, parts + 1, count)
    quantity = rng.integers(1, 51, count)
    price = quantity * _retail_cents(part)
    discount, tax = rng.integers(0, 11, count), rng.integers(0, 9, count)
    shipped = day[order] + rng.integers(1, 122, count)
    received = shipped + rng.integers(1, 31, count)
    is_open = shipped > _CURRENT_DAY
    returned = np.where(rng.integers(0, 2, count) == 0, 0, 1)
    flags = pa.array(["R", "A", "N"]).take(pa.array(np.where(received <= _CURRENT_DAY, returned, 2)))
    still_open = np.add.reduceat(is_open.astype(np.int64), first)
    status = np.where(still_open == 0, 0, np.where(still_open == lines, 1, 2))
    # Rounded half up to cents: price in cents x percent x percent.
    charged = (price * (100 + tax) * (100 - discount) + 5_000) // 10_000
    orders: Columns = {
        "o_orderkey": (t.BIGINT, pa.array(key)),
        "o_custkey": (t.BIGINT, pa.array(customer)),
        "o_orderstatus": (t.STRING, pa.array(["F", "O", "P"]).take(pa.array(status))),
        "o_totalprice": (MONEY, _money(np.add.reduceat(charged, first))),
        "o_orderdate": (t.DATE, _dates(day)),
        "o_orderpriority": (t.STRING, _pick(rng, _PRIORITIES, rows)),
        "o_clerk": (t.STRING, _label("Clerk#", rng.integers(1, max(rows // 1500, 2), rows))),
        "o_shippriority": (t.INT, pa.array(np.zeros(rows, np.int32))),
        "o_comment": (t.STRING, _phrase(rng, _WORDS, rows, 6)),
    }
    lineitem: Columns = {
        "l_orderkey": (t.BIGINT, pa.array(key[order])),
        "l_partkey": (t.BIGINT, pa.array(part)),
        "l_suppkey": (t.BIGINT, pa.array(_supplier_of(part, rng.integers(0, 4, count), suppliers))),
        "l_linenumber": (t.INT, pa.array((np.arange(count) - first[order] + 1).astype(np.int32))),
        "l_quantity": (MONEY, _money(quantity * 100)),
        "l_extendedprice": (MONEY, _money(price)),
        "l_discount": (MONEY, _money(discount)),
        "l_tax": (MONEY, _money(tax)),
        "l_returnflag": (t.STRING, flags),
        "l_linestatus": (t.STRING, pa.array(["F", "O"]).take(pa.array(is_open.astype(np.int64)))),
        "l_shipdate": (t.DATE, _dates(shipped)),
        "l_commitdate": (t.DATE, _dates(day[order] + rng.integers(30, 91, count))),
        "l_receiptdate": (t.DATE, _dates(received)),
        "l_shipinstruct": (t.STRING, _pick(rng, _INSTRUCTIONS, count)),
        "l_shipmode": (t.STRING, _pick(rng, _MODES, count)),
        "l_comment": (t.STRING, _phrase(rng, _WORDS, count, 4)),
    }
    return orders, lineitem


# ---- the others


def _trips(rows: int = 21_932) -> Columns:
    rng = np.random.default_rng(20160101)
    start = int(datetime(2016, 1, 1, tzinfo=UTC).timestamp())
    pickup = np.sort(start + rng.integers(0, 60 * 86_400, rows))
    distance = np.round(rng.gamma(1.6, 1.8, rows), 2)
    seconds = (120 + distance * rng.integers(150, 330, rows)).astype(np.int64)
    fare = np.round((2.5 + 2.5 * distance) * 2) / 2
    zips = np.array(
        [10001, 10003, 10011, 10012, 10016, 10019, 10021, 10022, 10023, 10028, 10036, 10110, 10171, 11101, 11201, 11422]
    )
    return {
        "tpep_pickup_datetime": (t.TIMESTAMP, _instants(pickup)),
        "tpep_dropoff_datetime": (t.TIMESTAMP, _instants(pickup + seconds)),
        "trip_distance": (t.DOUBLE, pa.array(distance)),
        "fare_amount": (t.DOUBLE, pa.array(fare)),
        "pickup_zip": (t.INT, pa.array(rng.choice(zips, rows).astype(np.int32))),
        "dropoff_zip": (t.INT, pa.array(rng.choice(zips, rows).astype(np.int32))),
    }


def all_types() -> Columns:
    """Rows: ordinary values, the smallest, the largest, odd ones, all NULL."""
    item = t.struct(t.StructField("name", t.STRING), t.StructField("prices", t.array(t.decimal(10, 2))))
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    usual = datetime(2024, 2, 29, 12, 34, 56, 789012, tzinfo=UTC)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    nines = "9" * 38
    nan, infinity = float("nan"), float("inf")
    bag = {"name": "pen", "prices": [Decimal("1.20"), None]}
    rows: list[tuple[str, t.DataType, list[Any]]] = [
        ("id", t.INT, [1, 2, 3, 4, 5]),
        ("c_boolean", t.BOOLEAN, [True, False, True, False, None]),
        ("c_tinyint", t.TINYINT, [1, -128, 127, 0, None]),
        ("c_smallint", t.SMALLINT, [1, -32768, 32767, 0, None]),
        ("c_int", t.INT, [1, -(2**31), 2**31 - 1, 0, None]),
        ("c_bigint", t.BIGINT, [1, -(2**63), 2**63 - 1, 0, None]),
        ("c_float", t.FLOAT, [1.5, -3.4028234663852886e38, infinity, nan, None]),
        ("c_double", t.DOUBLE, [1.5, -1.7976931348623157e308, infinity, nan, None]),
        (
            "c_decimal",
            t.decimal(10, 2),
            [Decimal("12.34"), Decimal("-99999999.99"), Decimal("99999999.99"), Decimal(0), None],
        ),
        ("c_decimal_max", t.decimal(38, 0), [Decimal(1), Decimal(f"-{nines}"), Decimal(nines), Decimal(0), None]),
        (
            "c_decimal_scale",
            t.decimal(38, 18),
            [Decimal("1.23"), Decimal("-1E-18"), Decimal("1" + "0" * 19), Decimal(0), None],
        ),
        ("c_string", t.STRING, ["text", "", "ünïcödé 日本語 🎵", "line\nbreak\t\"quoted\" \\ 'x'", None]),
        ("c_varchar", t.varchar(10), ["text", "", "0123456789", " x ", None]),
        ("c_char", t.char(3), ["ab ", "   ", "abc", "ü  ", None]),
        ("c_binary", t.BINARY, [b"bytes", b"", b"\x00\xff\xde\xad", b"\n", None]),
        ("c_date", t.DATE, [usual.date(), first.date(), last.date(), epoch.date(), None]),
        ("c_timestamp", t.TIMESTAMP, [usual, first, last, epoch, None]),
        ("c_timestamp_ntz", t.TIMESTAMP_NTZ, [*(d.replace(tzinfo=None) for d in (usual, first, last, epoch)), None]),
        ("c_array", t.array(t.INT), [[1, 2, 3], [], [None], [2**31 - 1], None]),
        ("c_map", t.map_of(t.STRING, t.INT), [[("b", 2), ("a", 1)], [], [("k", None)], [("", 0)], None]),
        ("c_struct", item, [bag, {"name": "", "prices": []}, {"name": None, "prices": None}, bag, None]),
        ("c_array_of_struct", t.array(item), [[bag, None], [], [bag], [bag, bag], None]),
        ("c_map_of_array", t.map_of(t.INT, t.array(t.STRING)), [[(1, ["x", None])], [], [(2, [])], [(3, None)], None]),
    ]
    return {name: (kind, pa.array(values, kind.arrow())) for name, kind, values in rows}
