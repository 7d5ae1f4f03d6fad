"""The tables of the Star Schema Benchmark at scale 1, in the shares of its paper: a fact table of 6M rows, four dimensions.

Order lines come in the order of their orders; keys, dates, discounts and quantities are even, as the paper wants them, so that
a filter on a dimension keeps its share of the lines.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import tables

SCHEMA = "ssb"
ORDERS, CUSTOMERS, SUPPLIERS, PARTS = 1_500_000, 30_000, 2_000, 200_000
FIRST, LAST, LAST_ORDER = dt.date(1992, 1, 1), dt.date(1998, 12, 31), dt.date(1998, 8, 2)

NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECI", "5-LOW")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_COLORS = (
    "almond",
    "azure",
    "beige",
    "black",
    "blue",
    "brown",
    "coral",
    "cyan",
    "gold",
    "green",
    "ivory",
    "olive",
    "red",
)
_KINDS = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
_COATS = ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
_METALS = ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
_SIZES = ("SM", "LG", "MED", "JUMBO", "WRAP")
_BOXES = ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
_SEASONS = ("Winter", "Spring", "Summer", "Fall", "Christmas")
_MONTH_SEASONS = (0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4)


def _taken(words: Sequence[str], index: Any) -> pa.Array:
    return pa.array(list(words)).take(pa.array(index))


def _numbered(word: str, numbers: Any, width: int = 9) -> pa.Array:
    return pc.binary_join_element_wise(word, pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0"), "#")


def _i32(numbers: Any) -> pa.Array:
    return pa.array(np.asarray(numbers).astype(np.int32))


def _days() -> list[dt.date]:
    return [FIRST + dt.timedelta(n) for n in range((LAST - FIRST).days + 1)]


def _keys_of(days: Sequence[dt.date]) -> Any:
    return np.array([day.year * 10_000 + day.month * 100 + day.day for day in days], np.int32)


def _dates() -> Iterator[pa.Table]:
    days = _days()
    after = [day + dt.timedelta(1) for day in days]
    yield pa.table(
        {
            "d_datekey": _i32(_keys_of(days)),
            "d_date": [f"{day:%B} {day.day}, {day.year}" for day in days],
            "d_dayofweek": [f"{day:%A}" for day in days],
            "d_month": [f"{day:%B}" for day in days],
            "d_year": _i32([day.year for day in days]),
            "d_yearmonthnum": _i32([day.year * 100 + day.month for day in days]),
            "d_yearmonth": [f"{day:%b%Y}" for day in days],
            "d_daynuminweek": _i32([day.isoweekday() % 7 + 1 for day in days]),
            "d_daynuminmonth": _i32([day.day for day in days]),
            "d_daynuminyear": _i32([day.timetuple().tm_yday for day in days]),
            "d_monthnuminyear": _i32([day.month for day in days]),
            "d_weeknuminyear": _i32([(day.timetuple().tm_yday - 1) // 7 + 1 for day in days]),
            "d_sellingseason": [_SEASONS[_MONTH_SEASONS[day.month - 1]] for day in days],
            "d_lastdayinweekfl": [day.isoweekday() == 6 for day in days],
            "d_lastdayinmonthfl": [next_day.day == 1 for next_day in after],
            "d_holidayfl": [(day.month, day.day) in {(1, 1), (5, 1), (7, 4), (12, 25)} for day in days],
            "d_weekdayfl": [day.isoweekday() <= 5 for day in days],
        }
    )


def _places(prefix: str, random: np.random.Generator, count: int) -> dict[str, Any]:
    """City, nation and region: ten cities a nation, named by its first nine letters and a digit."""
    nations = [nation for some in NATIONS.values() for nation in some]
    regions = [region for region, some in NATIONS.items() for _ in some]
    cities = [f"{nation[:9]:9}{digit}" for nation in nations for digit in range(10)]
    city = random.integers(0, len(cities), count)
    return {
        f"{prefix}_address": _numbered("No.", random.integers(0, 10**9, count), 12),
        f"{prefix}_city": _taken(cities, city),
        f"{prefix}_nation": _taken(nations, city // 10),
        f"{prefix}_region": _taken(regions, city // 10),
        f"{prefix}_phone": _numbered("1", random.integers(0, 10**9, count)),
    }


def _customer() -> Iterator[pa.Table]:
    random = np.random.default_rng(2)
    keys = np.arange(1, CUSTOMERS + 1)
    yield pa.table(
        {
            "c_custkey": _i32(keys),
            "c_name": _numbered("Customer", keys),
            **_places("c", random, CUSTOMERS),
            "c_mktsegment": _taken(_SEGMENTS, random.integers(0, len(_SEGMENTS), CUSTOMERS)),
        }
    )


def _supplier() -> Iterator[pa.Table]:
    random = np.random.default_rng(3)
    keys = np.arange(1, SUPPLIERS + 1)
    yield pa.table({"s_suppkey": _i32(keys), "s_name": _numbered("Supplier", keys), **_places("s", random, SUPPLIERS)})


def _part() -> Iterator[pa.Table]:
    """Five manufacturers of five categories of forty brands: `MFGR#2`, `MFGR#22`, `MFGR#2221`."""
    random = np.random.default_rng(4)
    keys = np.arange(1, PARTS + 1)
    brand = random.integers(0, 1000, PARTS)
    categories = [f"MFGR#{maker}{category}" for maker in range(1, 6) for category in range(1, 6)]
    types = [f"{kind} {coat} {metal}" for kind in _KINDS for coat in _COATS for metal in _METALS]
    containers = [f"{size} {box}" for size in _SIZES for box in _BOXES]
    color, other = random.integers(0, len(_COLORS), (2, PARTS))
    yield pa.table(
        {
            "p_partkey": _i32(keys),
            "p_name": pc.binary_join_element_wise(_taken(_COLORS, color), _taken(_COLORS, other), " "),
            "p_mfgr": _taken([f"MFGR#{maker}" for maker in range(1, 6)], brand // 200),
            "p_category": _taken(categories, brand // 40),
            "p_brand1": _taken([f"{category}{number}" for category in categories for number in range(1, 41)], brand),
            "p_color": _taken(_COLORS, color),
            "p_type": _taken(types, random.integers(0, len(types), PARTS)),
            "p_size": _i32(random.integers(1, 51, PARTS)),
            "p_container": _taken(containers, random.integers(0, len(containers), PARTS)),
        }
    )


def _lineorder() -> Iterator[pa.Table]:
    """One to seven lines an order; prices in cents, as TPC-H makes them of part and quantity."""
    random = np.random.default_rng(5)
    days = _keys_of(_days())
    per_order = random.integers(1, 8, ORDERS)
    order = np.repeat(np.arange(ORDERS), per_order)
    lines = len(order)
    first = np.cumsum(per_order) - per_order
    day = random.integers(0, (LAST_ORDER - FIRST).days + 1, ORDERS)[order]
    part, quantity, discount = (
        random.integers(1, PARTS + 1, lines),
        random.integers(1, 51, lines),
        random.integers(0, 11, lines),
    )
    retail = 90_000 + part // 10 % 20_001 + 100 * (part % 1000)
    price = quantity * retail
    totals = np.add.reduceat(price, first)
    commit = np.minimum(day + random.integers(30, 91, lines), len(days) - 1)
    yield pa.table(
        {
            "lo_orderkey": _i32(order // 8 * 32 + order % 8 + 1),
            "lo_linenumber": _i32(np.arange(lines) - first[order] + 1),
            "lo_custkey": _i32(random.integers(1, CUSTOMERS + 1, ORDERS)[order]),
            "lo_partkey": _i32(part),
            "lo_suppkey": _i32(random.integers(1, SUPPLIERS + 1, lines)),
            "lo_orderdate": _i32(days[day]),
            "lo_orderpriority": _taken(_PRIORITIES, random.integers(0, len(_PRIORITIES), ORDERS)[order]),
            "lo_shippriority": _taken(("0",), np.zeros(lines, np.int32)),
            "lo_quantity": _i32(quantity),
            "lo_extendedprice": _i32(price),
            "lo_ordtotalprice": _i32(totals[order]),
            "lo_discount": _i32(discount),
            "lo_revenue": _i32(price * (100 - discount) // 100),
            "lo_supplycost": _i32(retail * 6 // 10),
            "lo_tax": _i32(random.integers(0, 9, lines)),
            "lo_commitdate": _i32(days[commit]),
            "lo_shipmode": _taken(_MODES, random.integers(0, len(_MODES), lines)),
        }
    )


_MAKERS: dict[str, Callable[[], Iterator[pa.Table]]] = {
    "dates": _dates,
    "customer": _customer,
    "supplier": _supplier,
    "part": _part,
    "lineorder": _lineorder,
}


def star() -> dict[str, Path]:
    """The folders of the five tables by name, made if they are not there yet."""
    folders = {name: tables.WAREHOUSE / SCHEMA / name for name in _MAKERS}
    for name, folder in folders.items():
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            tables.write_delta(folder, _MAKERS[name]())
    return folders
