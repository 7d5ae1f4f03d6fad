"""Texts: filters, groups, sorts, joins and regular expressions over 2M page views, in the manner of ClickBench."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import tables
from benchmarks.measure import Row
from benchmarks.suite import geomean, measure, report, systems

HOST = "^https?://(?:www[.])?([^/]+)/.*$"

# Each means the same in Spark and in DataFusion, and has one answer.
STATEMENTS: Mapping[str, str] = {
    "count, text not empty": "SELECT count(*) FROM hits WHERE phrase <> ''",
    "min and max of texts": "SELECT min(url), max(title), min(phrase) FROM hits",
    "distinct texts": "SELECT count(DISTINCT phrase) FROM hits",
    "text = constant": "SELECT count(*), min(day) FROM hits WHERE url = 'https://www.shop17.example/item/1234?from=mail'",
    "text IN constants": (
        "SELECT region, count(*) FROM hits WHERE phrase IN ('buy red shoes 17', 'buy red shoes 4100', 'none') GROUP BY region"
    ),
    "LIKE, inside": "SELECT count(*) FROM hits WHERE url LIKE '%shop17%'",
    "LIKE, prefix": "SELECT count(*), min(user_id) FROM hits WHERE url LIKE 'https://www.shop17.%'",
    "LIKE and groups": (
        "SELECT phrase, min(url), count(*) AS c FROM hits WHERE url LIKE '%item/12%' AND phrase <> '' "
        "GROUP BY phrase ORDER BY c DESC, phrase LIMIT 10"
    ),
    "few groups of texts": "SELECT browser, count(*) AS c, sum(width) FROM hits GROUP BY browser ORDER BY c DESC, browser",
    "many groups of texts": (
        "SELECT phrase, count(*) AS c FROM hits WHERE phrase <> '' GROUP BY phrase ORDER BY c DESC, phrase LIMIT 10"
    ),
    "very many groups of texts": "SELECT url, count(*) AS c FROM hits GROUP BY url ORDER BY c DESC, url LIMIT 10",
    "groups by number and text": (
        "SELECT region, phrase, count(*) AS c FROM hits WHERE phrase <> '' GROUP BY region, phrase "
        "ORDER BY c DESC, region, phrase LIMIT 10"
    ),
    "sort by text, 10 rows": "SELECT phrase, user_id, url FROM hits WHERE phrase <> '' ORDER BY phrase, user_id, url LIMIT 10",
    "sort by time, all columns": "SELECT * FROM hits WHERE url LIKE '%shop17.%' ORDER BY moment, user_id LIMIT 10",
    "sort of texts": "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY title, user_id) AS r, title FROM hits) AS t",
    "join on text": (
        "SELECT topics.topic, count(*) AS c FROM hits JOIN topics ON hits.phrase = topics.phrase "
        "GROUP BY topics.topic ORDER BY c DESC"
    ),
    "length of texts": "SELECT avg(length(url)), sum(octet_length(title)) FROM hits",
    "pieces of texts": (
        "SELECT substr(url, 1, 25) AS head, upper(browser) AS b, count(*) AS c FROM hits GROUP BY substr(url, 1, 25), "
        "upper(browser) ORDER BY c DESC, head, b LIMIT 10"
    ),
    "CASE and joined texts": (
        "SELECT CASE WHEN referer = '' THEN browser ELSE concat(browser, ': ', phrase) END AS k, count(*) AS c FROM hits "
        "GROUP BY CASE WHEN referer = '' THEN browser ELSE concat(browser, ': ', phrase) END ORDER BY c DESC, k LIMIT 10"
    ),
    "regexp_replace and groups": (
        f"SELECT regexp_replace(referer, '{HOST}', '$1') AS host, count(*) AS c, avg(length(referer)) AS n FROM hits "
        f"WHERE referer <> '' GROUP BY regexp_replace(referer, '{HOST}', '$1') ORDER BY c DESC, host LIMIT 10"
    ),
    "regexp_like": "SELECT count(*) FROM hits WHERE regexp_like(url, 'item/[0-9]+[?]from=(mail|news)')",
    "texts as they are": "SELECT user_id, url, title FROM hits WHERE region = 7",
}


def run() -> list[Row]:
    """A row per statement, and the geometric mean."""
    folders = {name: tables.table(name) for name in ("hits", "topics")}
    with systems() as found:
        results = measure(found, folders, STATEMENTS)
    return report("texts", STATEMENTS, results, [geomean(f"texts, {len(STATEMENTS)} statements", 2)])
