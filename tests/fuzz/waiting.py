"""``python -m tests.fuzz.waiting``: plain statements that must end: joins of joins over tables of many files.

An operator that asks its inputs in an order of its own can wait for one that waits for it. Nothing is compared here: a
statement that takes longer than its limit, twice, is what is looked for, and one that the engine fails at. Each is run with
joins that collect one side and with joins that repartition both, on two to seven partitions.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from gateway.engine.datafusion import DataFusionEngine
from tests.conformance.session import Session, open_runner
from tests.fuzz.bounds import parser
from tests.fuzz.served import Served, planned

SECONDS = 10.0
#: Tables by their files: how many, and rows of each.
_TABLES = {"many": (16, 12), "few": (3, 4), "one": (1, 1), "none": (0, 0), "wide": (6, 50)}
_PARTITIONED = (
    "SET datafusion.optimizer.hash_join_single_partition_threshold = 0",
    "SET datafusion.optimizer.hash_join_single_partition_threshold_rows = 0",
)
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement and how it is run."""

    text: str
    partitions: int
    repartitions: bool


class Statements:
    """Makes one statement."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._aliases = 0

    def top(self) -> str:
        """A query over a relation."""
        random = self.random
        source, alias = self.relation(random.choice((2, 3, 3)))
        tests = [self._test(alias) for _ in range(random.choice((0, 0, 1, 1, 2)))]
        where = f" WHERE {random.choice((' AND ', ' OR ')).join(tests)}" if tests else ""
        shape = random.random()
        if shape < 0.25:
            return f"SELECT count(*), sum({alias}.v) FROM {source}{where}"
        if shape < 0.4:
            return f"SELECT {alias}.k, count(*) FROM {source}{where} GROUP BY {alias}.k{self._limit()}"
        if shape < 0.5:
            return f"SELECT DISTINCT {alias}.k FROM {source}{where}{self._limit()}"
        if shape < 0.6:
            other, name = self.relation(1)
            rest = f" UNION ALL SELECT {name}.k, {name}.v FROM {other}"
            return f"SELECT {alias}.k, {alias}.v FROM {source}{where}{rest}{self._limit()}"
        if shape < 0.7:
            over = f"row_number() OVER (PARTITION BY {alias}.k ORDER BY {alias}.v) AS n"
            return f"SELECT {alias}.k, {over} FROM {source}{where}{self._limit()}"
        return f"SELECT {alias}.k, {alias}.v FROM {source}{where}{random.choice(('', ' ORDER BY 1, 2'))}{self._limit()}"

    def relation(self, depth: int) -> tuple[str, str]:
        """What stands in FROM, and an alias in it that has the columns k and v."""
        random = self.random
        if depth == 0 or random.random() < 0.1:
            alias = self._alias()
            return f"{random.choice(tuple(_TABLES))} AS {alias}", alias
        shape = random.random()
        if shape < 0.55:
            return self._joined(depth)
        alias = self._alias()
        inner, name = self.relation(depth - 1)
        if shape < 0.65:
            return f"(SELECT {name}.k, max({name}.v) AS v FROM {inner} GROUP BY {name}.k) AS {alias}", alias
        if shape < 0.72:
            return f"(SELECT DISTINCT {name}.k, {name}.v FROM {inner}) AS {alias}", alias
        if shape < 0.82:
            order = random.choice(("", " ORDER BY 1, 2"))
            return f"(SELECT {name}.k, {name}.v FROM {inner}{order} LIMIT {random.choice((0, 1, 7))}) AS {alias}", alias
        if shape < 0.92:
            other, second = self.relation(depth - 1)
            word = random.choice(("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"))
            text = f"(SELECT {name}.k, {name}.v FROM {inner} {word} SELECT {second}.k, {second}.v FROM {other})"
            return f"{text} AS {alias}", alias
        return f"(SELECT {name}.k, {name}.v FROM {inner} WHERE {self._test(name)}) AS {alias}", alias

    def _joined(self, depth: int) -> tuple[str, str]:
        random = self.random
        left, a = self.relation(depth - 1)
        right, b = self.relation(depth - 1)
        kind = random.choice(_JOINS)
        on = random.choice((f"{a}.k = {b}.k", f"{a}.k = {b}.k", f"{a}.k = {b}.k AND {a}.v = {b}.v", f"{a}.k = {b}.v"))
        on += random.choice(("", "", "", f" AND {a}.v < {b}.v", f" AND {b}.v > 5"))
        brackets = f"({right})" if " JOIN " in right else right
        return f"{left} {kind} {brackets} ON {on}", b if kind == "RIGHT JOIN" else a

    def _test(self, alias: str) -> str:
        random = self.random
        other = random.choice(tuple(_TABLES))
        if random.random() < 0.4:
            plain = ("k > 3", "v < 100", "k = 1", "k IS NOT NULL", "k IN (1, 2, 9)", "v > 100000", "k = v")
            return " ".join(f"{alias}.{w}" if w in ("k", "v") else w for w in random.choice(plain).split())
        word = random.choice(("EXISTS", "NOT EXISTS", "IN", "NOT IN", "=", "<"))
        x = self._alias()
        if word == "<":  # of each combination of outer values
            more = random.choice(("", f" GROUP BY {x}.k", f" AND {x}.k = {alias}.k"))
            if "GROUP" in more:
                return f"EXISTS (SELECT {x}.k FROM {other} AS {x} WHERE {x}.v < {alias}.v{more} HAVING count(*) > 2)"
            return f"(SELECT count(*) FROM {other} AS {x} WHERE {x}.v < {alias}.v{more}) > 1"
        if word in ("EXISTS", "NOT EXISTS"):
            return (
                f"{word} (SELECT 1 FROM {other} AS {x} WHERE {x}.k = {alias}.k{random.choice(('', f' AND {x}.v > 5'))})"
            )
        if word == "=":
            return f"{alias}.v = (SELECT max({x}.v) FROM {other} AS {x} WHERE {x}.k = {alias}.k)"
        return f"{alias}.k {word} (SELECT {x}.v FROM {other} AS {x}{random.choice(('', f' WHERE {x}.v IS NOT NULL'))})"

    def _limit(self) -> str:
        return self.random.choice(("", "", " LIMIT 1", " LIMIT 5", " LIMIT 0", " LIMIT 3 OFFSET 2"))

    def _alias(self) -> str:
        self._aliases += 1
        return f"r{self._aliases}"


class _Repartitioning(DataFusionEngine):
    """Joins of which no side is collected, however small."""

    def context(self, *kind: Any, **more: Any) -> Any:
        known = len(self._contexts)
        ctx = super().context(*kind, **more)
        if len(self._contexts) > known:
            for text in _PARTITIONED:
                ctx.sql(text).collect()
        return ctx


def make_tables(session: Session) -> None:
    """The tables, each commit of one file."""
    for name, (files, rows) in _TABLES.items():
        session.execute(f"CREATE TABLE {name} (k INT, v INT)")
        for file in range(files):
            key = f"CAST(nullif((id * 7 + {file}) % 29, 28) AS INT)"
            session.execute(f"INSERT INTO {name} SELECT {key}, CAST(id + {file} AS INT) FROM range({rows})")


class _Runs:
    """What the process does that may be ended: tables of its own, engines by how they run."""

    def __init__(self, folder: Path) -> None:
        self.session = Session(open_runner(folder))
        self._spill = str(folder / "spill")
        self._engines: dict[tuple[int, bool], DataFusionEngine] = {}
        if not list((folder / "warehouse").rglob("_delta_log")):
            make_tables(self.session)

    def __call__(self, asked: Asked) -> int:
        """How many rows the statement has."""
        engine = self._engines.get((asked.partitions, asked.repartitions))
        if engine is None:
            made = _Repartitioning if asked.repartitions else DataFusionEngine
            engine = made(1 << 30, self._spill, asked.partitions)
            self._engines[asked.partitions, asked.repartitions] = engine
        execution = engine.run(planned(self.session, asked.text))
        try:
            execution.start()
            return sum(batch.num_rows for batch in execution.batches())
        finally:
            execution.close()


class Waiting:
    """Asks statements in a process of its own, which is ended with what does not end."""

    def __init__(self, folder: Path, seconds: float = SECONDS) -> None:
        self._served: Served[Asked, int] = Served(_Runs, folder, seconds)
        self.ended = 0
        self.refused = 0
        self.slow = 0  # that still compute once their time is over
        self.found: list[tuple[Asked, str]] = []

    def ask(self, asked: Asked) -> None:
        """Note whether a statement ends; one that does not is tried once more, alone."""
        if not self._ends(asked) and not self._ends(asked):
            self.found.append((asked, "waits for ever"))

    def close(self) -> None:
        """End the process."""
        self._served.close()

    def _ends(self, asked: Asked) -> bool:
        """Whether a statement ends, or computes at least."""
        told = self._served.ask(asked)
        self.ended += told.ended
        self.refused += told.error is not None
        self.slow += told.works
        if told.error is not None and told.error.startswith("INTERNAL_ERROR"):
            self.found.append((asked, told.error))
        return told.ended or told.works


def made(seed: int) -> Iterator[Asked]:
    """Statements without end, each with a way to run it."""
    number = 0
    while True:
        random = Random(f"{seed} waiting {number}")
        text = Statements(random).top()
        for partitions in random.sample((2, 3, 4, 7), 2):
            yield Asked(text, partitions, random.random() < 0.5)
        number += 1


def run(folder: Path, seed: int, statements: int, seconds: float) -> Waiting:
    """Ask until one of the bounds is reached."""
    waiting = Waiting(folder)
    begun = time.monotonic()
    try:
        for asked in made(seed):
            if waiting.ended >= statements or time.monotonic() - begun >= seconds:
                break
            waiting.ask(asked)
    finally:
        waiting.close()
    return waiting


def main() -> int:
    """The command; 1 if a statement did not end."""
    given = parser("waiting", __doc__, 5_000, 300.0).parse_args()
    with tempfile.TemporaryDirectory(prefix="waiting-") as folder:
        waiting = run(Path(folder), given.seed, given.statements, given.seconds)
    print(f"{waiting.ended} ended, {waiting.refused} of them with an error; {waiting.slow} took too long")
    for asked, what in waiting.found:
        print(f"{what}: {asked}")
    return 1 if waiting.found else 0


if __name__ == "__main__":
    sys.exit(main())
