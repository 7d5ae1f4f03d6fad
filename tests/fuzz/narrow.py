"""``python -m tests.fuzz.narrow``: statements over more rows than fit into memory have the rows that they have with much of it.

Sorts, groups, joins, windows and set operations spill, are begun anew more sparingly, and share what memory there is with each
other. What is looked for are other rows, statements that do not end, and errors other than that the memory does not do.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa

from gateway.engine.datafusion import DataFusionEngine
from tests.conformance.session import Session, open_runner
from tests.fuzz.bounds import parser, within
from tests.fuzz.served import Served, planned

SECONDS = 60.0
AMPLE = 1 << 30
_LIMITS = (2 << 20, 4 << 20, 8 << 20, 16 << 20)
_PARTITIONS = (2, 2, 3)
#: Tables by their files and rows of each; texts of some 60 bytes, a few of kilobytes.
_TABLES = {"large": (3, 25_000), "middle": (2, 9_000), "small": (1, 40)}
_COLUMNS = (
    "CAST(id * 7919 % {keys} AS INT) AS k, id * 104729 % 1000003 AS v, "
    "nullif(repeat(string(id * 31 % 5003), 1 + CAST(id % 23 AS INT) + IF(id % 997 = 0, 900, 0)), '77') AS s, "
    "CAST(id % 1000 AS DECIMAL(20, 2)) / 4 AS d, array(CAST(id % 5 AS INT), NULL, CAST(id % 3 AS INT)) AS a, "
    "named_struct('x', id % 11, 'y', string(id % 7)) AS r, timestamp_seconds(id * 86399 % 1000000007) AS t"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement and how it is run; `limit`: bytes of memory."""

    text: str
    partitions: int
    limit: int


class Statements:
    """Makes one statement."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._aliases = 0

    def top(self) -> str:
        """A query whose rows are the same however it is run."""
        random = self.random
        source, alias = self._relation(random.choice((0, 1, 1, 2)))
        shape = random.choice(("rows", "rows", "groups", "groups", "windows", "distinct", "sets", "sets"))
        if shape == "groups":
            return self._groups(source, alias)
        if shape == "windows":
            return self._windows(source, alias)
        if shape == "distinct":
            some = random.sample("kvsdart", random.choice((1, 2, 3)))
            return f"SELECT DISTINCT {', '.join(f'{alias}.{c}' for c in some)} FROM {source}"
        if shape == "sets":
            other, second = self._relation(random.choice((0, 1)))
            columns = random.choice(("kv", "s", "ksd", "ra", "vst"))
            word = random.choice(("UNION", "INTERSECT", "EXCEPT", "UNION ALL", "INTERSECT ALL", "EXCEPT ALL"))
            sides = (
                f"SELECT {', '.join(f'{n}.{c}' for c in columns)} FROM {f}"
                for f, n in ((source, alias), (other, second))
            )
            return f" {word} ".join(sides)
        order = random.choice(
            ("", f" ORDER BY {alias}.s, {alias}.v, {alias}.k", f" ORDER BY {alias}.v DESC, {alias}.s")
        )
        limit = f" LIMIT {random.choice((10, 3000, 20000))}" if order and random.random() < 0.3 else ""
        if limit:  # the same rows whatever the order of ties
            return f"SELECT {alias}.s, {alias}.v FROM {source} ORDER BY {alias}.s, {alias}.v{limit}"
        return f"SELECT {alias}.k, {alias}.v, {alias}.s, {alias}.a, {alias}.r FROM {source}{order}"

    def _groups(self, source: str, alias: str) -> str:
        random = self.random
        x = alias
        aggregates = (
            "count(*)", f"sum({x}.v)", f"max({x}.s)", f"min({x}.s)", f"count(DISTINCT {x}.s)", f"avg({x}.d)", f"sum({x}.d)",
            f"array_sort(collect_set({x}.k))", f"array_sort(collect_list({x}.s))", f"max({x}.t)", f"min({x}.d)",
            f"count(DISTINCT {x}.k, {x}.d)", f"count_if({x}.v > 500000)", f"bit_xor({x}.v)", f"sum(DISTINCT {x}.v)",
            f"listagg({x}.s, ',') WITHIN GROUP (ORDER BY {x}.s)", f"percentile({x}.v, 0.5)", f"median({x}.k)",
            f"approx_count_distinct({x}.k) > 0", f"mode({x}.k) IS NULL",
        )  # fmt: skip
        keys = random.sample("ksdratv", random.choice((0, 1, 1, 1, 2, 3)))
        chosen = random.sample(aggregates, random.choice((1, 2, 3)))
        columns = ", ".join([f"{x}.{key}" for key in keys] + chosen)
        if not keys:
            return f"SELECT {columns} FROM {source}"
        names = ", ".join(f"{x}.{key}" for key in keys)
        grouped = f"ROLLUP ({names})" if random.random() < 0.15 else names
        having = random.choice(("", "", "", f" HAVING max({x}.v) > 900000"))
        return f"SELECT {columns} FROM {source} GROUP BY {grouped}{having}"

    def _windows(self, source: str, alias: str) -> str:
        random = self.random
        x = alias
        by = random.choice(("", f"PARTITION BY {x}.k ", f"PARTITION BY {x}.s ", f"PARTITION BY {x}.d, {x}.r "))
        order = f"ORDER BY {x}.v, {x}.s, {x}.k, {x}.t"
        calls = (
            f"sum({x}.v) OVER ({by}{order})", f"rank() OVER ({by}ORDER BY {x}.s)", f"dense_rank() OVER ({by}ORDER BY {x}.d)",
            f"max({x}.s) OVER ({by}{order} ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING)", f"count({x}.s) OVER ({by})",
            f"sum({x}.d) OVER ({by}ORDER BY {x}.v RANGE BETWEEN 1000 PRECEDING AND CURRENT ROW)",
            f"lag({x}.v) OVER ({by}{order})", f"last({x}.v) OVER ({by}ORDER BY {x}.v)",
        )  # fmt: skip
        chosen = random.sample(calls, random.choice((1, 1, 2)))
        return f"SELECT {x}.k, {x}.v, {x}.s, {', '.join(chosen)} FROM {source}"

    def _relation(self, depth: int) -> tuple[str, str]:
        """What stands in FROM, and an alias in it that has all columns."""
        random = self.random
        if depth == 0:
            alias = self._alias()
            return f"{random.choice(('large', 'large', 'middle'))} AS {alias}", alias
        inner, name = self._relation(depth - 1)
        alias = self._alias()
        shape = random.choice(("join", "join", "join", "sorted", "distinct", "filter", "explode"))
        if shape == "join":
            other = random.choice(("large", "middle", "small"))
            kind = random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
            on = random.choice(
                (f"{name}.v = {alias}.v", f"{name}.s = {alias}.s AND {name}.v = {alias}.v", f"{name}.t = {alias}.t")
            )
            more = random.choice(("", "", f" AND {name}.k < {alias}.k"))
            return f"{inner} {kind} {other} AS {alias} ON {on}{more}", name
        if shape == "sorted":
            text = f"SELECT {name}.* FROM {inner} ORDER BY {name}.s, {name}.v, {name}.k, {name}.t LIMIT 15000"
        elif shape == "distinct":
            text = f"SELECT DISTINCT {name}.* FROM {inner}"
        elif shape == "explode":
            text = f"SELECT {name}.*, e FROM {inner} LATERAL VIEW explode({name}.a) AS e"
        else:
            where = random.choice((f"{name}.v % 3 = 0", f"{name}.k IN (SELECT k FROM small)", f"{name}.s LIKE '%7%'"))
            text = f"SELECT {name}.* FROM {inner} WHERE {where}"
        return f"({text}) AS {alias}", alias

    def _alias(self) -> str:
        self._aliases += 1
        return f"r{self._aliases}"


def make_tables(session: Session) -> None:
    """The tables, each commit of one file."""
    for name, (files, rows) in _TABLES.items():
        columns = _COLUMNS.format(keys=max(rows // 10, 5))
        session.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM range({rows})")
        for file in range(1, files):
            session.execute(f"INSERT INTO {name} SELECT {columns} FROM range({file * rows}, {(file + 1) * rows})")


class Runs:
    """What the process does that may be ended: tables of its own, engines by how they run."""

    def __init__(self, folder: Path) -> None:
        self.session = Session(open_runner(folder))
        self._spill = str(folder / "spill")
        self._engines: dict[tuple[int, int], DataFusionEngine] = {}
        if not list((folder / "warehouse").rglob("_delta_log")):
            make_tables(self.session)

    def __call__(self, asked: Asked) -> str:
        """How many rows the statement has and what they are, in any order."""
        engine = self._engines.get((asked.partitions, asked.limit))
        if engine is None:
            engine = DataFusionEngine(asked.limit, self._spill, asked.partitions)
            self._engines[asked.partitions, asked.limit] = engine
        execution = engine.run(planned(self.session, asked.text))
        try:
            execution.start()
            return _digest(execution.batches())
        finally:
            execution.close()


def _digest(batches: Iterator[pa.RecordBatch]) -> str:
    count = total = 0
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            count += 1
            total += int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=8).digest())
    return f"{count} rows, {total % (1 << 64):x}"


@dataclass(slots=True)
class Tally:
    """What came of the statements."""

    alike: int = 0
    short: int = 0  # of memory, also in each sparing way
    refused: int = 0  # with much memory, too
    slow: int = 0


def judge(served: Served[Asked, str], text: str, ways: Sequence[tuple[int, int]], tally: Tally) -> list[str]:
    """What is wrong with a statement's answers, by partitions and bytes of memory."""
    wanted = served.ask(Asked(text, 2, AMPLE))
    found = []
    if wanted.ended is False:
        return [f"waits for ever: {text}"] if not wanted.works else []
    if wanted.answer is None:
        tally.refused += 1
        return [f"{wanted.error}: {text}"] if str(wanted.error).startswith("INTERNAL_ERROR") else []
    for partitions, limit in ways:
        got = served.ask(Asked(text, partitions, limit))
        where = f"{partitions} partitions, {limit >> 20} MiB: {text}"
        if not got.ended:
            tally.slow += got.works
            if not got.works:
                found.append(f"waits for ever, {where}")
        elif got.error is not None:
            tally.short += 1
            if not got.error.startswith("RESOURCE_EXHAUSTED"):
                found.append(f"{got.error}, {where}")
        elif got.answer != wanted.answer:
            found.append(f"{got.answer}, not {wanted.answer}, {where}")
        else:
            tally.alike += 1
    return found


def run(folder: Path, seed: int, statements: int, seconds: float) -> tuple[Tally, list[str]]:
    """Ask until one of the bounds is reached."""
    tally, found = Tally(), []
    served: Served[Asked, str] = Served(Runs, folder, SECONDS)
    try:
        for number in within(range(statements), seconds):
            random = Random(f"{seed} narrow {number}")
            text = Statements(random).top()
            ways = [(random.choice(_PARTITIONS), limit) for limit in random.sample(_LIMITS, 2)]
            found += judge(served, text, ways, tally)
    finally:
        served.close()
    return tally, found


def main() -> int:
    """The command; 1 if something is wrong."""
    given = parser("narrow", __doc__, 1_000, 300.0).parse_args()
    with tempfile.TemporaryDirectory(prefix="narrow-") as folder:
        tally, found = run(Path(folder), given.seed, given.statements, given.seconds)
    print(tally)
    for text in found:
        print(text)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
