"""Counts, sums, distinct values and groups over 2M page views: 43 statements in the manner of ClickBench."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import tables
from benchmarks.hits import HOST
from benchmarks.measure import Row
from benchmarks.suite import geomean, measure, report, systems, total

MEAN_ASKED, TOTAL_ASKED = 1.07, 1.0  # times the floor
SUMS = ", ".join(f"sum(width + {number}) AS s{number}" for number in range(90))

_TOP = "ORDER BY c DESC"
_VISIT = "count(*) AS c, sum(is_refresh) AS again, avg(width) AS w"
_COUNTED = "counter_id = 62 AND day BETWEEN DATE '2023-11-14' AND DATE '2023-11-19' AND is_refresh = 0"
_SHOWN = f"{_COUNTED} AND dont_count = 0"
_SOURCE = "CASE WHEN search_engine = 0 AND adv_engine = 0 THEN referer ELSE '' END"


def _top(keys: str, where: str = "", what: str = "count(*) AS c", limit: str = "10") -> str:
    """The groups with the highest count; of two with the same, the one whose keys come first."""
    chosen = f" WHERE {where}" if where else ""
    return f"SELECT {keys}, {what} FROM clicks{chosen} GROUP BY {keys} {_TOP}, {keys} LIMIT {limit}"


def _users(keys: str, where: str = "") -> str:
    """The groups with the most users."""
    return _top(keys, where, "count(DISTINCT user_id) AS c")


# Each means the same in Spark and in DataFusion, and has one answer.
STATEMENTS: Mapping[str, str] = {
    "01 count": "SELECT count(*) FROM clicks",
    "02 count, number not zero": "SELECT count(*) FROM clicks WHERE adv_engine <> 0",
    "03 sum, count and mean": "SELECT sum(adv_engine), count(*), avg(width) FROM clicks",
    "04 mean of large numbers": "SELECT avg(user_id) FROM clicks",
    "05 distinct numbers": "SELECT count(DISTINCT user_id) FROM clicks",
    "06 distinct texts": "SELECT count(DISTINCT phrase) FROM clicks",
    "07 bounds of dates": "SELECT min(day), max(day) FROM clicks",
    "08 few groups": _top("adv_engine", "adv_engine <> 0", limit="100"),
    "09 users by region": _users("region"),
    "10 four figures by region": _top(
        "region", what="sum(adv_engine) AS a, count(*) AS c, avg(width) AS w, count(DISTINCT user_id) AS u"
    ),
    "11 users by text": _users("model", "model <> ''"),
    "12 users by number and text": _users("phone, model", "model <> ''"),
    "13 texts": _top("phrase", "phrase <> ''"),
    "14 users by many texts": _users("phrase", "phrase <> ''"),
    "15 number and text": _top("search_engine, phrase", "phrase <> ''"),
    "16 many numbers": _top("user_id"),
    "17 many numbers and texts": _top("user_id, phrase"),
    "18 many numbers and texts, first ones": (
        "SELECT user_id, phrase, count(*) AS c FROM clicks GROUP BY user_id, phrase ORDER BY user_id, phrase LIMIT 10"
    ),
    "19 number, minute and text": (
        "SELECT user_id, extract(MINUTE FROM moment) AS m, phrase, count(*) AS c FROM clicks "
        "GROUP BY user_id, extract(MINUTE FROM moment), phrase ORDER BY c DESC, user_id, m, phrase LIMIT 10"
    ),
    "20 one number": "SELECT user_id FROM clicks WHERE user_id = 1077565181538977585",
    "21 LIKE": "SELECT count(*) FROM clicks WHERE url LIKE '%shop17%'",
    "22 LIKE and groups": _top("phrase", "url LIKE '%shop17%' AND phrase <> ''", "min(url) AS u, count(*) AS c"),
    "23 LIKE, NOT LIKE and groups": _top(
        "phrase",
        "title LIKE '%price 17%' AND url NOT LIKE '%.shop1%' AND phrase <> ''",
        "min(url) AS u, min(title) AS t, count(*) AS c, count(DISTINCT user_id) AS n",
    ),
    "24 LIKE, all columns by time": "SELECT * FROM clicks WHERE url LIKE '%shop17%' ORDER BY moment LIMIT 10",
    "25 texts by time": "SELECT phrase FROM clicks WHERE phrase <> '' ORDER BY moment LIMIT 10",
    "26 texts by themselves": "SELECT phrase FROM clicks WHERE phrase <> '' ORDER BY phrase LIMIT 10",
    "27 texts by time and themselves": "SELECT phrase FROM clicks WHERE phrase <> '' ORDER BY moment, phrase LIMIT 10",
    "28 lengths, HAVING": (
        "SELECT counter_id, avg(length(url)) AS l, count(*) AS c FROM clicks WHERE url <> '' GROUP BY counter_id "
        "HAVING count(*) > 2000 ORDER BY l DESC, counter_id LIMIT 25"
    ),
    "29 hosts by regexp_replace": (
        f"SELECT regexp_replace(referer, '{HOST}', '$1') AS host, avg(length(referer)) AS l, count(*) AS c, "
        f"min(referer) AS r FROM clicks WHERE referer <> '' GROUP BY regexp_replace(referer, '{HOST}', '$1') "
        "HAVING count(*) > 1000 ORDER BY l DESC, host LIMIT 25"
    ),
    "30 ninety sums": f"SELECT {SUMS} FROM clicks",
    "31 engine and address": _top("search_engine, client_ip", "phrase <> ''", _VISIT),
    "32 visit and address, of some": _top("watch_id, client_ip", "phrase <> ''", _VISIT),
    "33 visit and address": _top("watch_id, client_ip", what=_VISIT),
    "34 long texts": _top("url"),
    "35 constant and long texts": (
        "SELECT 1 AS one, url, count(*) AS c FROM clicks GROUP BY 1, url ORDER BY c DESC, url LIMIT 10"
    ),
    "36 four keys of one": _top("client_ip, client_ip - 1, client_ip - 2, client_ip - 3"),
    "37 pages of a counter": _top("url", f"{_SHOWN} AND url <> ''"),
    "38 titles of a counter": _top("title", f"{_SHOWN} AND title <> ''"),
    "39 links of a counter, later ones": _top(
        "url", f"{_COUNTED} AND is_link <> 0 AND is_download = 0", limit="10 OFFSET 1000"
    ),
    "40 sources of a counter, later ones": (
        f"SELECT traffic_source, search_engine, adv_engine, {_SOURCE} AS src, url AS dst, count(*) AS c FROM clicks "
        f"WHERE {_COUNTED} GROUP BY traffic_source, search_engine, adv_engine, {_SOURCE}, url "
        "ORDER BY c DESC, traffic_source, search_engine, adv_engine, src, dst LIMIT 10 OFFSET 1000"
    ),
    "41 days of one referer": _top(
        "url_hash, day",
        f"{_COUNTED} AND traffic_source IN (-1, 6) AND referer_hash = 1775921099431447609",
        limit="10 OFFSET 50",
    ),
    "42 windows of one page": _top(
        "window_width, window_height", f"{_SHOWN} AND url_hash = 3612884234290189463", limit="10 OFFSET 100"
    ),
    "43 minutes of a counter, later ones": (
        f"SELECT date_trunc('minute', moment) AS m, count(*) AS c FROM clicks WHERE {_SHOWN} "
        "GROUP BY date_trunc('minute', moment) ORDER BY m LIMIT 10 OFFSET 1000"
    ),
}


def run() -> list[Row]:
    """A row per statement, the geometric mean and the total."""
    folders = {"clicks": tables.table("clicks")}
    with systems() as found:
        results = measure(found, folders, STATEMENTS)
    head = f"clicks, {len(STATEMENTS)} statements"
    return report("clicks", STATEMENTS, results, [geomean(head, MEAN_ASKED), total(head, TOTAL_ASKED)])
