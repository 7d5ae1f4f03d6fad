"""Joins of a chain begin with what leaves few rows, and only there where no row can tell; rows are the same either way."""

from __future__ import annotations

import itertools
import re

import pytest

from tests.conformance.session import Session, open_runner

_SETUP = (
    "CREATE TABLE sales AS SELECT id, if(id % 50 = 0, NULL, id % 40) AS shop, CAST(id % 7 AS INT) AS day, id % 12 AS item, "
    "id * 2 AS price, concat('s', id % 40) AS code FROM range(900)",
    "CREATE TABLE shops AS SELECT id AS shop, concat('t', id % 6) AS town, id % 4 AS size, id % 3 AS land, "
    "concat('s', id) AS code FROM range(30)",
    "CREATE TABLE days AS SELECT id AS day, concat('d', id) AS name, 2000 + id % 2 AS year FROM range(7)",
    "CREATE TABLE items AS SELECT id AS item, id % 5 AS kind, concat('i', id) AS label FROM range(12)",
    "CREATE TABLE lands AS SELECT id AS land, concat('l', id) AS name FROM range(3)",
    "CREATE TABLE twice AS SELECT id % 15 AS shop, id % 4 AS size FROM range(30)",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    made = Session(open_runner(tmp_path_factory.mktemp("stars")))
    for statement in _SETUP:
        made.execute(statement)
    return made


def order(session: Session, sql: str) -> str:
    """The tables in the order in which the engine is told to join them."""
    compiled = session.compiled(sql)
    scans = compiled.generated.scans
    read = re.findall(r"(?:FROM|JOIN) (\w+)\b", compiled.generated.text)
    return " ".join(scans[name].scan.table.name.table for name in read if name in scans)


_DAYS, _SHOPS = "JOIN days ON sales.day = days.day", "JOIN shops ON sales.shop = shops.shop"
_ITEMS, _LANDS = "JOIN items ON sales.item = items.item", "JOIN lands ON shops.land = lands.land"
_ALL = f"FROM sales {_DAYS} {_ITEMS} {_SHOPS} {_LANDS}"
_COMMAS = (
    "FROM sales, days, items, shops WHERE sales.day = days.day AND sales.item = items.item AND sales.shop = shops.shop"
)
MOVED: list[tuple[str, str]] = [
    (f"{_ALL} WHERE town = 't1'", "sales shops days items lands"),
    (f"{_ALL} WHERE town = 't1' AND kind = 2", "sales shops items days lands"),
    (f"{_ALL} WHERE shops.size = 1 AND kind = 2", "sales items shops days lands"),  # of 5 and of 4 values
    (f"{_ALL} WHERE town LIKE 't1%' AND days.day = 3", "sales shops days items lands"),
    (f"{_ALL} WHERE days.day BETWEEN 1 AND 5 AND kind IN (1, 2)", "sales items days shops lands"),
    (f"{_ALL} WHERE lands.name = 'l1'", "sales days items shops lands"),  # which only shops lead to
    (f"{_ALL} WHERE lands.name = 'l1' AND town IN ('t1', 't2')", "sales shops lands days items"),
    (f"{_COMMAS} AND town = 't1'", "sales shops days items"),
    (f"{_COMMAS} AND kind < 1 AND shops.size >= 1", "sales items days shops"),
    (f"{_ALL} AND days.year <> shops.size WHERE town = 't1'", "sales shops days items lands"),
    (f"FROM sales {_DAYS} JOIN (SELECT shop, town AS t FROM shops WHERE size = 1) s ON sales.shop = s.shop WHERE t > 't2'",
     "sales shops days"),
]  # fmt: skip
STAY: list[tuple[str, str]] = [
    (f"{_ALL} WHERE days.day < 6", "sales days items shops lands"),  # which leaves most
    (f"{_ALL}", "sales days items shops lands"),
    (f"FROM shops JOIN sales ON sales.shop = shops.shop {_DAYS} {_ITEMS} WHERE kind = 1", "shops sales days items"),
    (f"FROM sales {_DAYS} LEFT {_SHOPS} WHERE town = 't1'", "sales days shops"),
    (f"FROM sales {_DAYS} JOIN twice ON sales.shop = twice.shop WHERE size = 1", "sales days twice"),  # no key
    ("FROM days JOIN lands ON days.year > lands.land JOIN sales ON sales.day = days.day WHERE price = 4",
     "days lands sales"),  # larger than what it meets
    (f"FROM sales {_DAYS} JOIN shops ON sales.code = shops.code WHERE town = 't1'", "sales days shops"),  # texts
    (f"FROM sales {_DAYS} JOIN shops ON sales.shop = shops.shop AND 10 / days.day > 1 WHERE town = 't1'",
     "sales days shops"),  # may fail
    (f"FROM sales {_DAYS} JOIN (SELECT shop, 1 / size AS x FROM shops WHERE town = 't1') s ON sales.shop = s.shop",
     "sales days shops"),
    ("FROM days, shops, sales WHERE sales.day = days.day AND sales.shop = shops.shop AND town = 't1'",
     "days shops sales"),  # the engine finds its own
]  # fmt: skip


@pytest.mark.parametrize(("text", "tables"), MOVED + STAY)
def test_what_leaves_few_rows_comes_first(session: Session, text: str, tables: str) -> None:
    assert order(session, f"SELECT sum(price), count(*) {text}") == tables


@pytest.mark.parametrize(
    "head", ["SELECT price", "SELECT first(price)", "SELECT collect_list(price)", "SELECT DISTINCT price"]
)
def test_not_where_the_order_of_rows_may_be_seen(session: Session, head: str) -> None:
    assert order(session, f"{head} {_ALL} WHERE town = 't1'") == "sales days items shops lands"


@pytest.mark.parametrize("text", [text for text, _ in MOVED])
def test_rows_are_the_same(session: Session, text: str) -> None:
    counted = "sum(price) AS p, count(*) AS n, min(sales.id) AS a, max(sales.day) AS b, count(DISTINCT sales.item) AS c"
    found = session.execute(f"SELECT sales.day % 3 AS k, {counted} {text} GROUP BY 1 ORDER BY 1").rows()
    as_written = f"SELECT sales.* {text} ORDER BY sales.id"
    again = counted.replace("sales.", "")
    assert found == session.execute(f"SELECT day % 3 AS k, {again} FROM ({as_written}) GROUP BY 1 ORDER BY 1").rows()


def test_rows_are_the_same_whatever_is_asked(session: Session) -> None:
    conditions = {
        "days": ("", "days.year = 2001", "days.name > 'd4'"),
        "items": ("", "kind = 3", "label IN ('i1', 'i7')"),
        "shops": ("", "town = 't2'", "shops.size IS NULL", "shops.shop BETWEEN 3 AND 9"),
        "lands": ("", "lands.name <> 'l0'", "lands.land = 1"),
    }
    moved = 0
    for chosen in itertools.product(*conditions.values()):
        where = " AND ".join(filter(None, chosen)) or "true"
        text = f"{_ALL} WHERE {where}"
        moved += order(session, f"SELECT sum(price) {text}") != "sales days items shops lands"
        found = session.execute(f"SELECT sum(price), count(*), max(lands.name) {text}").rows()
        rows = f"SELECT price, lands.name AS l {text} ORDER BY sales.id"
        assert found == session.execute(f"SELECT sum(price), count(*), max(l) FROM ({rows})").rows(), where
    assert moved > 60
