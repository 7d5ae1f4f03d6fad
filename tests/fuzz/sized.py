"""``python -m tests.fuzz.sized``: queries over tables of some 40,000 rows in several files, of both engines.

What is small runs on one partition, in one batch. Here scans, joins, groups, sorts and windows are divided, and tables have
partitions and deletion vectors. Compared are how many rows a query has and what they are, in any order; orders have no ties, so
that their first rows are certain.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

from tests.conformance.session import Session, open_runner
from tests.fuzz.bounds import parser, within
from tests.fuzz.compare import compare
from tests.fuzz.embedded import Embedded
from tests.fuzz.spark import Spark
from tests.fuzz.tree import Case, case, query
from tests.live.spark import missing

_SECONDS = 60.0
_ROWS = 10_000  # of a file
_FACTS = (
    "id, CAST(IF(id % 37 = 0, NULL, id * 7919 % 2003) AS INT) AS k, id * 104729 % 1000003 AS v, "
    "IF(id % 53 = 0, NULL, concat('s', id * 31 % 5003)) AS s, "
    "element_at(array('a', 'b', 'B', '', 'c d', NULL, 'a'), CAST(id % 7 + 1 AS INT)) AS c, "
    "date_add(DATE'2023-01-01', CAST(id DIV 60 + id % 3 AS INT)) AS d, "
    "timestamp_micros(1600000000000000 + id * 86399000001) AS t, CAST(id % 100003 AS DECIMAL(12, 2)) / 4 - 1000 AS n, "
    "CASE id % 401 WHEN 0 THEN NULL WHEN 1 THEN double('NaN') WHEN 2 THEN -0.0D ELSE (id % 1000) / 4D END AS f, "
    "id % 3 = 0 AS b, IF(id % 29 = 0, NULL, array(CAST(id % 5 AS INT), NULL, CAST(id % 3 AS INT))) AS a, "
    "named_struct('x', id % 11, 'y', string(id % 7)) AS r"
)
_COLUMNS = ("id", "k", "v", "s", "c", "d", "t", "n", "f", "b", "a", "r")
#: The tables of facts by how they are stored; all but `deleted` have the same rows.
_STORED = {
    "plain": "",
    "parted": "PARTITIONED BY (c)",
    "twice": "PARTITIONED BY (b, c)",
    "deleted": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
}
_OTHERS = {
    "dim": "SELECT CAST(id AS INT) AS k, concat('n', id % 97) AS name, "
    "element_at(array('a', 'b', 'z', NULL), CAST(id % 4 + 1 AS INT)) AS c, "
    "IF(id % 19 = 0, NULL, date_add(DATE'2023-01-01', CAST(id % 800 AS INT))) AS d FROM range(2000)",
    "tiny": "SELECT CAST(id * 50 AS INT) AS k, concat('s', id * 100) AS s, IF(id = 7, NULL, id * 1000) AS id FROM range(40)",
}  # fmt: skip
# What a row is asked, of `{x}`; the first ones may choose files.
_TESTS = (
    "{x}.d >= DATE'2024-01-01'", "{x}.d BETWEEN DATE'2023-06-01' AND DATE'2023-06-20'", "{x}.id < 12345",
    "{x}.id IN (5, 9999, 10000, 39999, 77)", "{x}.c = 'a'", "{x}.c <> 'b'", "{x}.c IS NULL", "{x}.c IN ('B', '')",
    "{x}.c NOT IN ('a', 'c d')", "{x}.c > 'B'", "{x}.s LIKE 's1%'", "{x}.s = 's100'", "{x}.k = 77", "{x}.k IS NULL",
    "{x}.k > 1500", "{x}.n < -500.25", "{x}.n BETWEEN 0 AND 100", "{x}.f > 200", "{x}.f = 0", "{x}.f <> {x}.f + 1",
    "{x}.b", "NOT {x}.b", "{x}.t < TIMESTAMP'2021-01-01 00:00:00'", "{x}.v % 3 = 0", "year({x}.d) = 2023",
    "{x}.a[0] = 2", "{x}.a IS NULL", "{x}.r.x = 4", "{x}.r.y <=> '3'", "coalesce({x}.k, -1) < 50", "{x}.c <=> NULL",
    "length({x}.s) = 3", "{x}.k + 1 = {x}.v % 100",
)  # fmt: skip
_KEYS = (
    "{x}.k", "{x}.c", "{x}.s", "{x}.d", "{x}.b", "{x}.k % 10", "month({x}.d)", "date_trunc('MONTH', {x}.t)", "{x}.r",
    "{x}.a", "{x}.r.y", "{x}.f", "upper({x}.c)", "CAST({x}.n AS BIGINT)", "coalesce({x}.c, '?')",
    "{x}.d > DATE'2023-12-31'",
)  # fmt: skip
_TOTALS = (
    "count(*)", "count({x}.k)", "sum({x}.v)", "sum({x}.n)", "avg({x}.n)", "min({x}.s)", "max({x}.d)", "max({x}.t)",
    "count(DISTINCT {x}.s)", "count(DISTINCT {x}.k, {x}.c)", "sum({x}.f)", "max({x}.f)", "min({x}.f)",
    "count_if({x}.b)", "bit_xor({x}.v)", "min_by({x}.s, {x}.id)", "max_by({x}.c, {x}.v * 100000 + {x}.id)",
    "sum({x}.k) FILTER (WHERE {x}.b)", "count(*) FILTER (WHERE {x}.c = 'a')", "bool_and({x}.b)",
    "array_sort(collect_set({x}.c))", "size(collect_list({x}.k))", "max({x}.r)", "percentile({x}.v, 0.5)",
    "sum(DISTINCT {x}.k)", "first({x}.r.y) IS NULL", "min({x}.c)", "sum(CASE WHEN {x}.c = 'b' THEN {x}.n ELSE 0 END)",
    "approx_count_distinct({x}.k) > 0",
)  # fmt: skip
_WINDOWS = (
    "row_number() OVER ({p} ORDER BY {o})", "rank() OVER ({p} ORDER BY {x}.d)",
    "dense_rank() OVER ({p} ORDER BY {x}.c, {x}.b)", "sum({x}.v) OVER ({p} ORDER BY {o})", "sum({x}.n) OVER ({p})",
    "count({x}.k) OVER ({p} ORDER BY {x}.d RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING)",
    "max({x}.s) OVER ({p} ORDER BY {o} ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)",
    "lag({x}.s, 2, '-') OVER ({p} ORDER BY {o})", "lead({x}.c) OVER ({p} ORDER BY {o})",
    "first_value({x}.c) OVER ({p} ORDER BY {o})", "ntile(7) OVER ({p} ORDER BY {o})", "min({x}.f) OVER ({p})",
    "count(*) OVER ({p} ORDER BY {x}.c)", "last_value({x}.k) IGNORE NULLS OVER ({p} ORDER BY {o})",
)  # fmt: skip
_JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")


class Queries:
    """Makes one query over the facts; relations have their columns, some of them joined with others by what pairs few rows."""

    def __init__(self, random: Random, folder: Path) -> None:
        self.random = random
        self._folder = folder
        self.ordered = False  # the rows come in an order without ties, by their first column
        self._aliases = 0

    def top(self) -> str:
        """A query whose rows are the same however it is run."""
        random = self.random
        source, x = self._relation(random.choice((0, 1, 1, 2)))
        where = self._where(x)
        shape = random.choice(
            ("rows", "groups", "groups", "windows", "first", "first", "computed", "sides", "distinct", "sets", "back")
        )
        if shape == "groups":
            return self._groups(source, x, where)
        if shape == "windows":
            # Rows that a join adds are all NULL here: the same for one window, but not for two.
            added = "RIGHT JOIN" in source or "FULL JOIN" in source
            calls = ", ".join(f"{self._window(x)} AS w{i}" for i in range(1 if added else random.choice((1, 1, 2))))
            one_each = f" QUALIFY row_number() OVER (PARTITION BY {x}.k ORDER BY {self._order(x)}) = 1"
            chosen = "" if added else random.choice(("", one_each))
            return f"SELECT {x}.id, {x}.c, {calls} FROM {source}{where}{chosen}"
        if shape == "first":
            self.ordered = True
            items = ", ".join(f"{x}.{n}" for n in random.sample(_COLUMNS, 2))
            return f"SELECT {x}.id, {items} FROM {source}{where} ORDER BY {self._sorted(x)}{self._limit()}"
        if shape == "computed":  # of what is sorted
            self.ordered = True
            rows = f"SELECT {x}.* FROM {source}{where} ORDER BY {self._sorted(x)}{random.choice(('', self._limit()))}"
            items = random.choice(("regexp_replace(s, '[0-9]', '#')", "upper(c), n + 1", "v", "date_format(d, 'yyyy')"))
            kept = random.choice(("", "", f" WHERE {random.choice(_TESTS).format(x='q')}"))
            return f"SELECT id, {items} FROM ({rows}) AS q{kept}{random.choice(('', '', ' LIMIT 5000'))}"
        if shape == "sides":
            return self._sides()
        if shape == "distinct":
            keys = random.sample(_KEYS, random.choice((1, 2, 3)))
            return f"SELECT DISTINCT {self._of(keys, x)} FROM {source}{where}"
        if shape == "sets":
            other, y = self._relation(random.choice((0, 1)))
            names = random.sample(_COLUMNS, random.choice((1, 2, 3)))
            word = random.choice(("UNION", "INTERSECT", "EXCEPT", "UNION ALL", "INTERSECT ALL", "EXCEPT ALL"))
            sides = ((source, x, where), (other, y, self._where(y)))
            return f" {word} ".join(f"SELECT {', '.join(f'{a}.{n}' for n in names)} FROM {s}{w}" for s, a, w in sides)
        if shape == "back":
            key = random.choice(("k", "c", "s", "d"))
            total = random.choice(("sum({x}.n)", "count(*)", "max({x}.id)", "avg({x}.k)")).format(x=x)
            word = random.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
            total = f"SELECT {x}.{key} AS g, {total} AS m FROM {source}{where} GROUP BY {x}.{key}"
            joined = f"{self._facts()} AS y {word} g ON y.{key} <=> g.g LEFT JOIN g AS h ON h.g = y.{key} AND h.m > 10"
            return f"WITH g AS ({total}) SELECT y.id, g.m, h.m AS m2 FROM {joined}"
        return f"SELECT {self._items(x)} FROM {source}{where}"

    def _groups(self, source: str, x: str, where: str) -> str:
        random = self.random
        keys = [k.format(x=x) for k in random.sample(_KEYS, random.choice((0, 1, 1, 1, 2, 3)))]
        totals = self._of(random.sample(_TOTALS, random.choice((1, 2, 3, 4))), x)
        if not keys:
            return f"SELECT {totals} FROM {source}{where}"
        names = ", ".join(keys)
        grouped = random.choice(
            (names, names, names, f"ROLLUP ({names})", f"CUBE ({names})", f"GROUPING SETS (({names}), ())")
        )
        having = random.choice(
            ("", "", " HAVING count(*) > 3", f" HAVING max({x}.id) > 20000 AND min({x}.d) < DATE'2023-09-01'")
        )
        return f"SELECT {names}, {totals} FROM {source}{where} GROUP BY {grouped}{having}"

    def _sides(self) -> str:
        """The first rows of a union whose sides have constants."""
        random = self.random
        names = random.sample(_COLUMNS, 2)
        chosen = ", ".join(dict.fromkeys(["id", *names]))
        texts = [
            f"SELECT '{random.choice('xyz')}' AS side, {i} AS i, {chosen} FROM {self._facts()} AS x{self._where('x')}"
            for i in range(random.choice((2, 3)))
        ]
        keys = [*random.sample(["side", *names], random.choice((1, 2))), "id", "i"]
        order = ", ".join(
            f"{k} {random.choice(('', 'DESC', 'DESC NULLS FIRST', 'NULLS LAST'))}" for k in dict.fromkeys(keys)
        )
        self.ordered = True
        return f"SELECT id, side, i, {names[0]} FROM ({' UNION ALL '.join(texts)}) ORDER BY {order}{self._limit()}"

    def _window(self, x: str) -> str:
        by = self.random.choice(("", "{x}.k", "{x}.c", "{x}.s", "{x}.b, {x}.c", "{x}.r", "month({x}.d)"))
        partition = f"PARTITION BY {by}" if by else ""
        return self.random.choice(_WINDOWS).replace("{p}", partition).replace("{o}", self._order("{x}")).format(x=x)

    def _order(self, x: str) -> str:
        first = self.random.choice(("", f"{x}.v DESC, ", f"{x}.c NULLS LAST, ", f"{x}.d, "))
        return f"{first}{x}.id, {x}.v, {x}.c, {x}.b, {x}.d"

    def _sorted(self, x: str) -> str:
        keys = [k.format(x=x) for k in self.random.sample(_KEYS, self.random.choice((0, 1, 2)))]
        ways = ("", " DESC", " DESC NULLS FIRST", " NULLS LAST")
        return ", ".join(
            [
                *(k + self.random.choice(ways) for k in keys),
                f"{x}.id{self.random.choice(ways)}",
                f"{x}.v",
                f"{x}.c",
                f"{x}.b",
            ]
        )

    def _limit(self) -> str:
        offset = self.random.choice(("", "", " OFFSET 7", " OFFSET 10050"))
        return f" LIMIT {self.random.choice((1, 10, 100, 8192, 30000))}{offset}"

    def _items(self, x: str) -> str:
        return ", ".join(f"{x}.{n}" for n in self.random.sample(_COLUMNS, self.random.choice((2, 4, len(_COLUMNS)))))

    def _of(self, texts: list[str], x: str) -> str:
        return ", ".join(t.format(x=x) for t in texts)

    def _where(self, x: str) -> str:
        random = self.random
        tests = [self._test(x) for _ in range(random.choice((0, 1, 1, 2)))]
        return f" WHERE {random.choice((' AND ', ' OR ', ' AND NOT ')).join(tests)}" if tests else ""

    def _test(self, x: str) -> str:
        random = self.random
        if random.random() < 0.75:
            return random.choice(_TESTS).format(x=x)
        y = self._alias()
        inner = random.choice((f"{self._table('dim')} AS {y}", f"{self._facts()} AS {y}"))
        other = random.choice(("true", f"{y}.k > 300", f"{y}.d > DATE'2023-08-01'", f"{y}.c = 'a'")).format(x=y)
        return random.choice((
            f"{x}.k IN (SELECT {y}.k FROM {inner} WHERE {other})",
            f"{x}.k NOT IN (SELECT {y}.k FROM {inner} WHERE {other} AND {y}.k IS NOT NULL)",
            f"{x}.c NOT IN (SELECT {y}.c FROM {inner} WHERE {other})",
            f"EXISTS (SELECT 1 FROM {inner} WHERE {other} AND {y}.k = {x}.k)",
            f"NOT EXISTS (SELECT 1 FROM {inner} WHERE {other} AND {y}.k = {x}.k)",
            f"EXISTS (SELECT 1 FROM {inner} WHERE {other} AND {y}.k = {x}.k AND {y}.d < {x}.d)",
            f"{x}.d > (SELECT min({y}.d) FROM {inner} WHERE {other} AND {y}.k = {x}.k)",
            f"{x}.id > (SELECT count(*) * 10 FROM {inner} WHERE {other} AND {y}.k = {x}.k)",
            f"{x}.k < (SELECT avg({y}.k) FROM {inner} WHERE {other})",
        ))  # fmt: skip

    def _relation(self, depth: int) -> tuple[str, str]:
        """What stands in FROM, and an alias in it that has all columns."""
        random = self.random
        x = self._alias()
        if depth == 0:
            return f"{self._facts()} AS {x}", x
        inner, y = self._relation(depth - 1)
        shape = random.choice(("facts", "dim", "dim", "tiny", "first", "distinct", "filter", "spread", "cte"))
        if shape in ("facts", "dim", "tiny"):
            table = self._facts() if shape == "facts" else self._table(shape)
            on = {
                "facts": (f"{y}.id = {x}.id", f"{y}.v = {x}.v AND {y}.c <=> {x}.c", f"{y}.id = {x}.id + 1 AND {x}.b"),
                "dim": (
                    f"{y}.k = {x}.k", f"{y}.k = {x}.k AND {x}.c = 'a'", f"{y}.k <=> {x}.k AND {y}.d < {x}.d",
                    f"{y}.k = {x}.k AND {y}.c = {x}.c",
                ),
                "tiny": (f"{y}.k = {x}.k", f"{y}.s = {x}.s", f"{y}.id = {x}.id", f"{y}.id < {x}.id AND {y}.k = {x}.k"),
            }[shape]  # fmt: skip
            return f"{inner} {random.choice(_JOINS)} {table} AS {x} ON {random.choice(on)}", y
        if shape == "first":
            text = f"SELECT {y}.* FROM {inner} ORDER BY {self._sorted(y)}{self._limit()}"
        elif shape == "distinct":
            text = f"SELECT DISTINCT {y}.* FROM {inner}"
        elif shape == "spread":
            outer, one = random.choice(("", "OUTER ")), random.choice(("e IS NULL", "e = 4"))  # of an array at most
            text = f"SELECT {y}.* FROM {inner} LATERAL VIEW {outer}explode({y}.a) AS e WHERE {one}"
        elif shape == "cte":
            joined = "c AS one LEFT JOIN c AS two ON one.id = two.id AND two.b"
            text = f"WITH c AS (SELECT {y}.* FROM {inner}) SELECT one.* FROM {joined}"
        else:
            text = f"SELECT {y}.* FROM {inner}{self._where(y)}"
        return f"({text}) AS {x}", x

    def _facts(self) -> str:
        return self._table(self.random.choice(tuple(_STORED)))

    def _table(self, name: str) -> str:
        return f"delta.`{self._folder / name}`"

    def _alias(self) -> str:
        self._aliases += 1
        return f"r{self._aliases}"


def made(folder: Path) -> Path:
    """Below which the tables lie; each commit of facts is a file, or one of each partition."""
    session = Session(open_runner(folder))
    for name, stored in _STORED.items():
        for file in range(4):
            rows = f"SELECT {_FACTS} FROM range({file * _ROWS}, {(file + 1) * _ROWS})"
            session.execute(f"CREATE TABLE {name} {stored} AS {rows}" if file == 0 else f"INSERT INTO {name} {rows}")
    session.execute("DELETE FROM deleted WHERE id % 11 = 3 OR id BETWEEN 10100 AND 12000")
    for name, text in _OTHERS.items():
        session.execute(f"CREATE TABLE {name} AS {text}")
    return next((folder / "warehouse").rglob("plain/_delta_log")).parent.parent


def asked(queries: Queries) -> Case:
    """What is asked: first rows in their order, else how many rows a query has and what they are."""
    text = queries.top()
    if queries.ordered:
        return case("queries", query(text), ordered=(0,))
    whole = f"SELECT count(*) AS rows, sum(CAST(xxhash64(*) AS DECIMAL(38, 0))) AS sum FROM ({text})"
    return case("queries", query(whole))


def run(folder: Path, spark: Spark, seed: int, numbers: range, seconds: float) -> tuple[Counter[str], list[str]]:
    """What became of the statements of some numbers, until so many seconds have passed; those that differ, as JSON."""
    counts: Counter[str] = Counter()
    found: list[str] = []
    tables = made(folder / "made")
    with closing(Embedded(folder / "embedded", (tables,), _SECONDS)) as embedded:
        for number in within(numbers, seconds):
            one = asked(Queries(Random(f"{seed} sized {number}"), tables))
            ours = embedded.ask(one)
            theirs = spark.ask(one) if ours.kind != "refused" else ours
            difference = compare(one, theirs, ours)
            if ours.kind == "refused":
                counts[f"refused: {ours.message[:60]}"] += 1
            elif theirs.condition == "SPARK_JOB_CANCELLED":
                counts["too slow for Spark"] += 1
            elif difference is None:
                counts["the same" if ours.kind == "answer" else "both raise"] += 1
            else:
                counts["differ"] += 1
                told = {"number": number, "difference": difference.kind, "statements": one.statements}
                found.append(json.dumps(told | {"Spark": str(theirs)[:300], "ours": str(ours)[:300]}))
    return counts, found


def main() -> int:
    """The command; 1 if something differs."""
    arguments = parser("sized", __doc__, 200, 600.0)
    arguments.add_argument("--first", type=int, default=0, help="the number of the first one")
    given = arguments.parse_args()
    reason = missing()
    if reason is not None:
        print(f"No Spark here: {reason}", file=sys.stderr)
        return 2
    numbers = range(given.first, given.first + given.statements)
    with tempfile.TemporaryDirectory(prefix="sized-") as name:
        folder = Path(name)
        with Spark.opened(folder / "spark") as spark:
            counts, found = run(folder, spark, given.seed, numbers, given.seconds)
    for outcome, count in sorted(counts.items()):
        print(f"{count:7} {outcome}")
    for text in found:
        print(text)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
