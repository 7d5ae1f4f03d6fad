"""The Star Schema Benchmark at scale 1 over Delta: 13 statements in 4 flights, by turns with the floor and Sail."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.measure import Row
from benchmarks.star import star
from benchmarks.suite import geomean, measure, report, systems

ASKED = 0.83  # times the floor

_BY_DAY = "FROM lineorder JOIN dates ON lo_orderdate = d_datekey"
_OF_PARTS = f"{_BY_DAY} JOIN part ON lo_partkey = p_partkey JOIN supplier ON lo_suppkey = s_suppkey"
_OF_CUSTOMERS = f"{_BY_DAY} JOIN customer ON lo_custkey = c_custkey JOIN supplier ON lo_suppkey = s_suppkey"
_OF_ALL = f"{_OF_CUSTOMERS} JOIN part ON lo_partkey = p_partkey"


def _discounts(where: str) -> str:
    """What dropping a discount would have brought in."""
    return f"SELECT sum(lo_extendedprice * lo_discount) AS gain {_BY_DAY} WHERE {where}"


def _brands(where: str) -> str:
    """Revenue by year and brand."""
    head = f"SELECT d_year, p_brand1, sum(lo_revenue) AS revenue {_OF_PARTS} WHERE {where}"
    return f"{head} GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1"


def _trade(by: str, where: str) -> str:
    """Revenue by where it was bought and sold, and year."""
    keys = f"c_{by}, s_{by}, d_year"
    head = f"SELECT {keys}, sum(lo_revenue) AS revenue {_OF_CUSTOMERS} WHERE {where}"
    return f"{head} GROUP BY {keys} ORDER BY d_year, revenue DESC, c_{by}, s_{by}"


def _profit(keys: str, where: str) -> str:
    """Profit by what one looks into next."""
    head = f"SELECT {keys}, sum(lo_revenue - lo_supplycost) AS profit {_OF_ALL} WHERE {where}"
    return f"{head} GROUP BY {keys} ORDER BY {keys}"


_AMERICA = "c_region = 'AMERICA' AND s_region = 'AMERICA'"
_TWO_YEARS = "d_year IN (1997, 1998)"
_TWO_CITIES = "c_city IN ('UNITED KI1', 'UNITED KI5') AND s_city IN ('UNITED KI1', 'UNITED KI5')"

STATEMENTS: Mapping[str, str] = {
    "1.1": _discounts("d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25"),
    "1.2": _discounts("d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35"),
    "1.3": _discounts(
        "d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7 AND lo_quantity BETWEEN 26 AND 35"
    ),
    "2.1": _brands("p_category = 'MFGR#12' AND s_region = 'AMERICA'"),
    "2.2": _brands("p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228' AND s_region = 'ASIA'"),
    "2.3": _brands("p_brand1 = 'MFGR#2239' AND s_region = 'EUROPE'"),
    "3.1": _trade("nation", "c_region = 'ASIA' AND s_region = 'ASIA' AND d_year BETWEEN 1992 AND 1997"),
    "3.2": _trade("city", "c_nation = 'UNITED STATES' AND s_nation = 'UNITED STATES' AND d_year BETWEEN 1992 AND 1997"),
    "3.3": _trade("city", f"{_TWO_CITIES} AND d_year BETWEEN 1992 AND 1997"),
    "3.4": _trade("city", f"{_TWO_CITIES} AND d_yearmonth = 'Dec1997'"),
    "4.1": _profit("d_year, c_nation", f"{_AMERICA} AND p_mfgr IN ('MFGR#1', 'MFGR#2')"),
    "4.2": _profit("d_year, s_nation, p_category", f"{_AMERICA} AND {_TWO_YEARS} AND p_mfgr IN ('MFGR#1', 'MFGR#2')"),
    "4.3": _profit(
        "d_year, s_city, p_brand1",
        f"c_region = 'AMERICA' AND s_nation = 'UNITED STATES' AND {_TWO_YEARS} AND p_category = 'MFGR#14'",
    ),
}


def run() -> list[Row]:
    """A row per statement, and the geometric mean."""
    folders = star()
    with systems() as found:
        results = measure(found, folders, STATEMENTS)
    return report("SSB SF1", STATEMENTS, results, [geomean(f"SSB SF1, {len(STATEMENTS)} statements", ASKED)])
