"""Scans read columns late where few rows are likely to be left, and all at once elsewhere; rows are the same either way."""

from __future__ import annotations

import pytest

from gateway import planner
from tests.conformance.session import Session, open_runner

_SETUP = (
    "CREATE TABLE sales AS SELECT id, id % 30 AS shop, id % 7 AS day, id * 2 AS price, id % 5 AS tax, id % 3 AS w, "
    "id % 11 AS e, id % 13 AS f FROM range(900)",
    "CREATE TABLE shops AS SELECT id AS shop, concat('s', id % 6) AS town, id % 4 AS size FROM range(30)",
    "CREATE TABLE days AS SELECT id AS day, id % 2 AS odd, concat('d', id) AS name FROM range(7)",
    "CREATE TABLE regions AS SELECT id AS shop, concat('r', id) AS region FROM range(4)",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    made = Session(open_runner(tmp_path_factory.mktemp("late")))
    for statement in _SETUP:
        made.execute(statement)
    return made


def late(session: Session, sql: str) -> list[str]:
    """The tables of which columns are read late, one for each scan."""
    compiled = session.compiled(sql)
    columns = compiled.late_columns()
    uses = compiled.generated.scans.values()
    return sorted(u.scan.table.name.table for u in uses if columns.reads_late(u.scan, len(u.sources)))


CASES: list[tuple[str, list[str]]] = [
    # alone: a value that a column must have, or many columns beside those of conditions
    ("SELECT sum(price) FROM sales WHERE id = 7", ["sales"]),
    ("SELECT sum(price) FROM sales WHERE id IN (7, 8)", ["sales"]),
    ("SELECT count(*) FROM shops WHERE town LIKE 's1%'", []),
    ("SELECT max(size) FROM shops WHERE town LIKE 's1%'", ["shops"]),
    ("SELECT count(*) FROM sales WHERE id = 7", []),
    ("SELECT sum(price) FROM sales WHERE id = 7 AND day > 1", ["sales"]),
    ("SELECT sum(price) FROM sales WHERE id = 7 AND day > 1 AND tax < 3", []),
    ("SELECT sum(price + w + e) FROM sales WHERE id = 7 AND day > 1 AND tax < 3", ["sales"]),
    ("SELECT sum(price) FROM sales WHERE id > 7", []),
    ("SELECT sum(price) FROM sales WHERE price > tax", []),
    ("SELECT sum(price + tax + w + e + f) FROM sales WHERE id > 7", ["sales"]),
    ("SELECT * FROM sales", []),
    # facts of a star that several others pick from
    (
        "SELECT sum(price) FROM sales JOIN shops USING (shop) JOIN days USING (day) WHERE town = 's1' AND odd = 1",
        ["days", "shops"],
    ),
    (
        "SELECT sum(price) FROM sales JOIN shops USING (shop) JOIN days USING (day) WHERE town = 's1'",
        ["days", "sales", "shops"],
    ),
    (
        "SELECT sum(price) FROM shops JOIN sales USING (shop) JOIN days USING (day) WHERE town = 's1' AND odd = 1",
        ["days", "sales", "shops"],
    ),
    # joined with what is picked
    ("SELECT sum(price) FROM sales JOIN shops USING (shop) WHERE town = 's1'", ["sales", "shops"]),
    ("SELECT sum(price) FROM sales JOIN shops USING (shop) WHERE town = 's1' AND day > 1 AND tax < 3", ["shops"]),
    (
        "SELECT sum(price) FROM sales JOIN shops USING (shop) WHERE town = 's1' AND day > 1 AND tax = 3",
        ["sales", "shops"],
    ),
    (
        "SELECT sum(price + w) FROM sales JOIN shops USING (shop) WHERE town = 's1' AND day > 1 AND tax < 3",
        ["sales", "shops"],
    ),
    ("SELECT sum(price) FROM sales JOIN shops USING (shop)", []),
    ("SELECT sum(price) FROM sales JOIN shops USING (shop) WHERE size > 1", []),
    ("SELECT sum(price) FROM sales, regions WHERE sales.shop = regions.shop AND region = 'r1'", ["regions"]),
    ("SELECT sum(price) FROM sales WHERE shop IN (SELECT shop FROM shops WHERE town = 's1')", ["sales", "shops"]),
    ("SELECT sum(price) FROM sales LEFT JOIN shops USING (shop) WHERE day IN (1, 2)", ["sales"]),
    (
        "SELECT sum(price) FROM sales JOIN shops USING (shop) WHERE (town = 's1' AND day = 1) OR (town = 's2' AND day = 2)",
        ["sales", "shops"],
    ),
    (
        "SELECT sum(price) FROM sales, shops WHERE sales.shop = shops.shop AND town = 's1' "
        "AND price < (SELECT avg(price) FROM sales AS others WHERE others.shop = shops.shop)",
        ["sales", "sales", "shops"],
    ),
    (
        "SELECT sum(price) FROM sales WHERE shop IN (SELECT shop FROM sales GROUP BY shop HAVING sum(price) > 50000)",
        ["sales"],
    ),
]


@pytest.mark.parametrize(("sql", "tables"), CASES)
def test_columns_are_read_late_where_few_rows_are_left(session: Session, sql: str, tables: list[str]) -> None:
    assert late(session, sql) == tables


def test_rows_are_the_same_either_way(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for sql, _ in CASES:
        rows = sorted(map(repr, session.execute(sql).rows()))
        with monkeypatch.context() as patched:
            patched.setattr(planner, "_SMALL_BYTES", 0)
            assert sorted(map(repr, session.execute(sql).rows())) == rows, sql


def test_files_are_chosen_by_what_each_side_of_an_or_says_of_them(session: Session) -> None:
    session.execute("CREATE TABLE split AS SELECT id, 0 AS part FROM range(10)")
    session.execute("INSERT INTO split SELECT id, 1 FROM range(10, 20)")
    text = "JOIN shops ON split.id = shop WHERE (split.part = 1 AND town = 's1') OR (split.part = 1 AND town = 's2')"
    told = session.execute(f"EXPLAIN SELECT count(*) FROM split {text}").rows()
    assert any("split" in str(line) and "files 1 of 2" in str(line) for line in told)
    assert session.execute(f"SELECT count(*) FROM split {text}").rows() == [[3]]
