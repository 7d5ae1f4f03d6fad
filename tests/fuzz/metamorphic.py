"""What must hold between answers of the embedded engine alone: other ways to ask the same, other ways to run the same.

Relations (ternary logic partitioning and non-optimising rewrites are SQLancer's): rows where p, where not p and where p is
NULL are all rows; the rows of WHERE p are as many as p is true for; a view is its text, a parameter its literal, LIMIT a part.
Ways: without pruning, by the other reader, on one partition and on many, with little memory, in small batches.
"""

from __future__ import annotations

import functools
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from gateway.delta import scan
from gateway.delta.scan import DATASET, MIXED, NATIVE, ScanPlan
from gateway.engine import datafusion
from gateway.engine.base import Query
from gateway.engine.datafusion import DataFusionEngine
from gateway.errors import GatewayError, ResourceError, ServerError
from gateway.planner import plan
from gateway.runner.handler import Runner
from gateway.sql.compile import Compiled, compile_query
from gateway.sql.read.command_nodes import Query as QueryCommand
from gateway.sql.read.commands import parse_command
from gateway.sql.read.statement import read_statement
from gateway.worker_jobs import Parameter
from tests.conformance.session import Result, Session, open_runner
from tests.conformance.shared import unpacked
from tests.fuzz.bounds import parser, within
from tests.fuzz.compare import same_multiset
from tests.fuzz.embedded import answered
from tests.fuzz.expressions import Expressions
from tests.fuzz.queries import Queries
from tests.fuzz.relations import Table
from tests.fuzz.scope import Column, Scope
from tests.fuzz.tables import readable
from tests.fuzz.tempting import COLUMNS, JOINED, copies, make_tables

Rows = list[list[Any]]
_TRIES = 8
OF_OTHERS = "tables of others"
_M1 = re.compile(r"\bm1\b")
_SMALL = 4 << 20  # bytes of memory with which nothing large stays in it


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Answers that must be the same and are not."""

    relation: str
    statements: tuple[str, ...]
    detail: str

    def __str__(self) -> str:
        return f"{self.relation}: {self.detail}\n  " + "\n  ".join(self.statements)


class RefusedError(Exception):
    """A statement is refused or fails: nothing can be said of it."""


class _Unpruned(Compiled):
    """A compiled query that tells its scans nothing."""

    def predicates(self, use: Any) -> list[Any]:
        return []


def _unpruned(runner: Runner, compiled: Compiled) -> Iterator[Any]:
    query = plan(_Unpruned(compiled.schema, compiled.rel, compiled.generated, compiled.hints)).query
    sources = {n: replace(s, _pruning=False) if isinstance(s, ScanPlan) else s for n, s in query.sources.items()}
    yield from _batches(runner.engine, replace(query, sources=sources))


def _at_once(runner: Runner, compiled: Compiled) -> Iterator[Any]:
    query = plan(compiled).query
    sources = {n: s.at_once() if isinstance(s, ScanPlan) else s for n, s in query.sources.items()}
    yield from _batches(runner.engine, replace(query, sources=sources))


def _by_dataset(runner: Runner, compiled: Compiled) -> Iterator[Any]:
    query = plan(compiled).query
    yield from _batches(runner.engine, replace(query, sources={n: _other(s) for n, s in query.sources.items()}))


def _numbered(runner: Runner, compiled: Compiled) -> Iterator[Any]:
    """As if files with deletion vectors were large: the engine's own scan numbers their rows."""
    with patch.object(scan, "_LARGE_NUMBERED", 0):
        yield from _batches(runner.engine, plan(compiled).query)


def _other(source: Any) -> Any:
    native = isinstance(source, ScanPlan) and source.reader in (NATIVE, MIXED)
    return replace(source, reader=DATASET) if native else source


def _with_engine(memory: int, partitions: int, **settings: str) -> Callable[[Runner, Compiled], Iterator[Any]]:
    engines: dict[str, DataFusionEngine] = {}
    told = {f"datafusion.execution.{name}": value for name, value in settings.items()}

    def run(runner: Runner, compiled: Compiled) -> Iterator[Any]:
        spill = runner.engine.spill
        if spill not in engines:
            engines[spill] = DataFusionEngine(memory, spill, partitions)
        with patch.dict(datafusion._SETTINGS, told):
            yield from _batches(engines[spill], replace(plan(compiled).query, small=False))

    return run


def _batches(engine: DataFusionEngine, query: Query) -> Iterator[Any]:
    execution = engine.run(query)
    try:
        execution.start()
        yield from execution.batches()
    finally:
        execution.close()


#: Other ways to run a compiled query than the one that the planner chooses.
WAYS: dict[str, Callable[[Runner, Compiled], Iterator[Any]]] = {
    "without pruning": _unpruned,
    "with all columns read at once": _at_once,
    "by the dataset reader": _by_dataset,
    "with rows numbered by scans": _numbered,
    "on one partition": _with_engine(1 << 30, 1),
    "on seven partitions": _with_engine(1 << 30, 7),
    "with little memory": _with_engine(_SMALL, 2),
    "in batches of two rows": _with_engine(1 << 30, 2, batch_size="2"),
}


@dataclass(slots=True)
class Checks:
    """Runs relations over one session's tables and counts what they said."""

    session: Session
    tables: tuple[Table, ...]
    copies: tuple[str, ...]
    others: tuple[Table, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)
    found: list[Disagreement] = field(default_factory=list)

    def step(self, seed: int, number: int) -> None:
        """Check the relation of that number."""
        random = Random(f"{seed} metamorphic {number}")
        name = random.choice(tuple(RELATIONS))
        try:
            disagreement = RELATIONS[name](self, random)
        except RefusedError:
            self.counts[f"{name}: not answered"] += 1
            return
        self.counts[name] += 1
        if disagreement is not None:
            self.found.append(replace(disagreement, relation=f"{name} [{seed}/{number}]"))

    def rows(self, text: str, parameters: Sequence[Parameter] = ()) -> Rows:
        """The rows of a statement. Raises RefusedError."""
        try:
            return self.session.execute(text, parameters).rows()
        except GatewayError as error:
            if error.condition.startswith("INTERNAL_ERROR"):
                raise
            raise RefusedError(str(error)) from error

    def same(self, first: tuple[str, Rows], second: tuple[str, Rows]) -> Disagreement | None:
        """Whether two statements have the same rows, in any order."""
        if same_multiset(first[1], second[1]):
            return None
        return Disagreement("", (first[0], second[0]), f"{_shown(first[1])}\n  other than {_shown(second[1])}")

    def source(self, random: Random) -> tuple[str, list[Column]]:
        """A FROM clause over the tables, and its columns."""
        one = [Column(f"a.{n}", t) for n, t in COLUMNS]
        if random.random() < 0.5:
            return f"{random.choice(self.tables).text} AS a", one
        name, _ = random.choice(COLUMNS)
        word = random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        both = [*one, *(Column(f"b.{n}", t) for n, t in COLUMNS)]
        left, right = random.choice(JOINED)
        return f"{left} AS a {word} {right} AS b ON a.{name} = b.{name}", both

    def predicate(self, random: Random, columns: list[Column]) -> str:
        """A condition that raises for no row."""
        maker = Expressions(random, Scope(list(columns)), edge=0.1)
        maker.tame = True
        return str(maker.predicate(2))

    def membership(self, random: Random, columns: list[Column]) -> str:
        """A condition that asks another table; it is no term of others, in which Spark's IN of a query is never NULL."""
        table, column = random.choice(self.tables).text, random.choice(columns)
        name = column.text.rpartition(".")[2]
        maker = Expressions(random, Scope([Column(f"x.{n}", t) for n, t in COLUMNS]), edge=0.1)
        maker.tame = True
        test = f" WHERE {maker.predicate(1)}" if random.random() < 0.6 else ""
        if random.random() < 0.7:
            return (
                f"{column.text} {random.choice(('IN', 'NOT IN', 'NOT IN'))} (SELECT x.{name} FROM {table} AS x{test})"
            )
        word, same = random.choice(("EXISTS", "NOT EXISTS")), random.choice(("=", "=", "<=>", "<", "<>"))
        joined = f"{'WHERE' if not test else ' AND'} x.{name} {same} {column.text}"
        return f"{word} (SELECT 1 FROM {table} AS x{test} {joined})"


def _where(checks: Checks, random: Random) -> Disagreement | None:
    source, columns = checks.source(random)
    chosen = ", ".join(f"{c.text} AS c{i}" for i, c in enumerate(random.sample(columns, random.randint(1, 4))))
    p = checks.predicate(random, columns)
    whole = f"SELECT {chosen} FROM {source}"
    parts = [f"{whole} WHERE {test}" for test in (f"({p})", f"NOT ({p})", f"({p}) IS NULL")]
    texts = " UNION ALL ".join(parts)
    apart = [row for part in parts for row in checks.rows(part)] if random.random() < 0.5 else checks.rows(texts)
    return checks.same((whole, checks.rows(whole)), (texts, apart))


def _having(checks: Checks, random: Random) -> Disagreement | None:
    source, columns = checks.source(random)
    key = random.choice([c for c in columns if c.type != "double"])
    counted = random.choice(columns).text
    whole = f"SELECT {key.text} AS g, count({counted}) AS n, max({counted}) AS m FROM {source} GROUP BY {key.text}"
    p = random.choice(
        (
            f"count({counted}) > 1",
            f"max({counted}) = min({counted})",
            f"{key.text} IS NOT NULL",
            f"max({counted}) IS NULL",
        )
    )
    parts = [f"{whole} HAVING {test}" for test in (f"({p})", f"NOT ({p})", f"({p}) IS NULL")]
    apart = [row for part in parts for row in checks.rows(part)]
    return checks.same((whole, checks.rows(whole)), (" / ".join(parts), apart))


def _counted(checks: Checks, random: Random) -> Disagreement | None:
    source, columns = checks.source(random)
    p = checks.predicate(random, columns)
    filtered = f"SELECT count(*) FROM {source} WHERE {p}"
    asked = f"SELECT ({p}) AS c FROM {source}"
    true = sum(row[0] is True for row in checks.rows(asked))
    return checks.same((filtered, checks.rows(filtered)), (asked, [[true]]))


def _viewed(checks: Checks, random: Random) -> Disagreement | None:
    text, names = _query(checks, random)
    checks.rows(f"CREATE OR REPLACE TEMPORARY VIEW seen AS {text}")
    for items in ("*", f"count(*) AS n, count({names[0]}) AS m"):
        texts = [f"SELECT {items} FROM {source}" for source in ("seen", f"({text})")]
        found = checks.same((texts[0], checks.rows(texts[0])), (texts[1], checks.rows(texts[1])))
        if found is not None:
            return found
    return None


#: A constant of each type as a literal, and as a parameter's type and value.
_LITERALS = {
    "int": ("1", "INT", "1"),
    "bigint": ("10L", "BIGINT", "10"),
    "string": ("'a'", "STRING", "a"),
    "double": ("1.5D", "DOUBLE", "1.5"),
    "date": ("DATE'2024-02-29'", "DATE", "2024-02-29"),
}


def _parametrised(checks: Checks, random: Random) -> Disagreement | None:
    source, columns = checks.source(random)
    column = random.choice([c for c in columns if c.type in _LITERALS])
    literal, type_, value = _LITERALS[column.type]
    word = random.choice(("=", "<", ">=", "<>", "<=>"))
    texts = [
        f"SELECT {column.text} AS c, count(*) AS n FROM {source} WHERE {column.text} {word} {given} GROUP BY ALL"
        for given in (literal, ":v")
    ]
    given = checks.rows(texts[1], [Parameter("v", type_, value)])
    return checks.same((texts[0], checks.rows(texts[0])), (texts[1], given))


def _limited(checks: Checks, random: Random) -> Disagreement | None:
    text, _ = _query(checks, random)
    count = random.choice((0, 1, 2, 5))
    part = f"SELECT * FROM ({text}) LIMIT {count}"
    rows, some = checks.rows(text), checks.rows(part)
    rest = list(rows)
    for row in some:
        if not any(same_multiset([row], [other]) for other in rest):
            return Disagreement("", (text, part), f"{row} is none of {_shown(rows)}")
        rest.pop(next(i for i, other in enumerate(rest) if same_multiset([row], [other])))
    if len(some) != min(count, len(rows)):
        return Disagreement("", (text, part), f"{len(some)} rows of {len(rows)}")
    return None


def _first(checks: Checks, random: Random) -> Disagreement | None:
    """The first rows by all columns, of a table or a union whose sides have constants, as partitions of a table have."""
    chosen = random.sample([name for name, type_ in COLUMNS if type_ != "double"], random.randint(1, 3))
    items, sides = ", ".join(chosen), random.choice((1, 1, 2, 3))
    names = [t.text for t in checks.tables] + list(checks.copies)
    texts = [f"SELECT '{random.choice('abc')}' AS side, {items} FROM {random.choice(names)}" for _ in range(sides)]
    keys = random.sample(["side", *chosen], len(chosen) + 1)
    shown = [f"{k} || ''" if k in ("side", "s") and random.random() < 0.3 else k for k in keys]
    order = ", ".join(f"{k} {random.choice(('', 'DESC', 'DESC NULLS FIRST', 'ASC NULLS LAST'))}" for k in shown)
    whole = f"SELECT * FROM ({' UNION ALL '.join(texts)}) ORDER BY {order}"
    count, offset = random.randint(1, 4), random.choice((0, 0, 1, 5))
    limit = f"LIMIT {count} OFFSET {offset}"
    part = random.choice(
        (f"{whole} {limit}", f"SELECT * FROM ({whole}) {limit}", f"SELECT * FROM (SELECT * FROM ({whole})) {limit}")
    )
    rows = checks.rows(whole)[offset : offset + count]
    for name, way in (("", None), *random.sample(tuple(WAYS.items()), 3)):
        some = checks.rows(part) if way is None else Result(*_run(checks.session, part, way)).rows()
        if some != rows:
            return Disagreement("", (whole, f"{part} -- {name}"), f"{_shown(some)}\n  other than {_shown(rows)}")
    return None


def _distinct(checks: Checks, random: Random) -> Disagreement | None:
    source, columns = checks.source(random)
    chosen = random.sample(columns, random.randint(1, 3))
    items = ", ".join(f"{c.text} AS c{i}" for i, c in enumerate(chosen))
    texts = (
        f"SELECT DISTINCT {items} FROM {source}",
        f"SELECT {items} FROM {source} GROUP BY {', '.join(c.text for c in chosen)}",
    )
    return checks.same((texts[0], checks.rows(texts[0])), (texts[1], checks.rows(texts[1])))


def _another_way(checks: Checks, random: Random) -> Disagreement | None:
    return _ways(checks, _query(checks, random)[0], random)


def _ways(checks: Checks, text: str, random: Random) -> Disagreement | None:
    rows = checks.rows(text)
    for name in random.sample(tuple(WAYS), 2):
        try:
            other = Result(*_run(checks.session, text, WAYS[name])).rows()
        except ResourceError:
            continue  # too little memory is told, which is right
        except ServerError as error:
            return Disagreement("", (text, f"{text} -- {name}"), f"{_shown(rows)}\n  other than {error}")
        found = checks.same((text, rows), (f"{text} -- {name}", other))
        if found is not None:
            return found
    return None


def _stored_otherwise(checks: Checks, random: Random) -> Disagreement | None:
    columns = [Column(f"a.{n}", t) for n, t in COLUMNS]
    tested = checks.membership if random.random() < 0.3 else checks.predicate
    plain = f"SELECT * FROM m1 AS a WHERE {tested(random, columns)}"
    texts = (_query(checks, random)[0] for _ in range(_TRIES))
    text = next((t for t in texts if _M1.search(t)), plain)
    other = _M1.sub(random.choice(checks.copies), text)
    return checks.same((text, checks.rows(text)), (other, checks.rows(other)))


def _of_others(checks: Checks, random: Random) -> Disagreement | None:
    if not checks.others:
        raise RefusedError("no tables of others")
    table = random.choice(checks.others)
    columns = [Column(f"a.{name}", type_) for name, type_ in table.columns]
    p = checks.predicate(random, columns)
    whole = f"SELECT {random.choice(columns).text} AS c0 FROM {table.text} AS a"
    parts = [f"{whole} WHERE {test}" for test in (f"({p})", f"NOT ({p})", f"({p}) IS NULL")]
    apart = [row for part in parts for row in checks.rows(part)]
    found = checks.same((whole, checks.rows(whole)), (" / ".join(parts), apart))
    return found or _ways(checks, parts[0], random)


def _run(session: Session, text: str, way: Callable[[Runner, Compiled], Iterator[Any]]) -> tuple[Any, list[Any]]:
    command = parse_command(read_statement(text))
    assert isinstance(command, QueryCommand)
    env = session.runner.environment(session.state)
    query, _ = session.runner.bind(command.tree, env)
    compiled = compile_query(query, env.context)
    return compiled.schema, list(way(session.runner, compiled))


def _query(checks: Checks, random: Random) -> tuple[str, list[str]]:
    """A query over the tables, and the names of its columns. The order of its rows does not matter."""
    if random.random() < 0.4:
        source, columns = checks.source(random)
        chosen = random.sample(columns, random.randint(1, 4))
        items = ", ".join(f"{c.text} AS c{i}" for i, c in enumerate(chosen))
        tested = checks.membership if random.random() < 0.5 else checks.predicate
        text = f"SELECT {items} FROM {source} WHERE {tested(random, columns)}"
        return text, [f"c{i}" for i in range(len(chosen))]
    maker = Queries(random, checks.tables * 3)
    tree, made = maker.select(2, ())
    if maker.parameters:
        raise RefusedError("parameters")
    return str(tree), [c.text for c in made]


def _shown(rows: Rows) -> str:
    return f"{len(rows)} rows {rows[:6]}"


RELATIONS: dict[str, Callable[[Checks, Random], Disagreement | None]] = {
    "WHERE in three parts": _where,
    "HAVING in three parts": _having,
    "WHERE counted": _counted,
    "a view is its text": _viewed,
    "a parameter is its literal": _parametrised,
    "LIMIT is a part": _limited,
    "LIMIT of an order is its first rows": _first,
    "DISTINCT is GROUP BY": _distinct,
    "run another way": _another_way,
    "stored another way": _stored_otherwise,
    OF_OTHERS: _of_others,
}


def opened(folder: Path, seed: int, others: bool) -> Checks:
    """A session with its tables in `folder`; with `others`, those of the archive beside the checkout too."""
    archive = unpacked(folder / "others") if others else None
    session = Session(open_runner(folder, (archive,) if archive is not None else ()))
    found = readable(archive, [functools.partial(answered, session)], seed) if archive is not None else []
    return Checks(session, make_tables(session, folder / "warehouse", seed), tuple(copies(seed)), tuple(found))


def run(folder: Path, seed: int, statements: int, seconds: float, others: bool = False) -> Checks:
    """Check relations with tables in `folder`, until one of the bounds is reached."""
    checks = opened(folder, seed, others)
    for number in within(range(statements), seconds):
        checks.step(seed, number)
    return checks


def main() -> int:
    """The command; 1 if something disagrees."""
    given = parser("metamorphic", __doc__, 5_000, 300.0).parse_args()
    with tempfile.TemporaryDirectory(prefix="metamorphic-") as folder:
        checks = run(Path(folder), given.seed, given.statements, given.seconds, others=True)
    if not checks.others:
        print(f"{OF_OTHERS:>24}: skipped, for the archive of tables is not beside the checkout")
    for name, count in sorted(checks.counts.items()):
        print(f"{count:7} {name}")
    for disagreement in checks.found:
        print(disagreement)
    return 1 if checks.found else 0


if __name__ == "__main__":
    sys.exit(main())
