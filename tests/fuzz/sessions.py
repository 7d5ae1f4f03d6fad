"""Short sessions: views, time zones, and tables that are made and filled before they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.fuzz.changing import Changes, properties, value
from tests.fuzz.machine import Judgement, Machine
from tests.fuzz.queries import Queries
from tests.fuzz.relations import Table
from tests.fuzz.tree import Case, Tree, case, listed, optional
from tests.fuzz.values import ZONES

#: The one name of a table that is made, so that it can be dropped whatever became of the session.
TABLE = "fuzz_made"
_STORED = 0.4  # of sessions ask tables that are there already
_CHANGED = 0.4  # change rows of a table of their own
CLEAN = (f"DROP TABLE IF EXISTS {TABLE}",)
_TYPES = ("int", "bigint", "string", "double", "decimal(5,2)", "date", "timestamp", "boolean")
_PARTITIONED = ("int", "string", "date", "boolean", "decimal(5,2)", "timestamp")


def make(seed: int, number: int, tables: Sequence[Table] = ()) -> Case:
    """The session of that number."""
    random = Random(f"{seed} sessions {number}")
    statements: list[str | Tree] = []
    known = random.sample(tables, 2) if len(tables) > 1 and random.random() < _STORED else []
    if random.random() < 0.5:
        statements.append(f"SET TIME ZONE '{random.choice(ZONES)}'")
    used: set[str] = set()
    changed = random.random() < _CHANGED
    if changed or random.random() < 0.3:
        made, table = _table(random)
        statements += made
        known += [table] * 3
        if changed:
            changes = Changes(random, table)
            statements += [optional(changes.one()) for _ in range(random.choice((1, 1, 2, 3)))]
            used |= changes.used
    if changed and random.random() < 0.7:  # what the table holds now
        return case(
            "sessions", *statements, f"SELECT * FROM {TABLE}", functions=frozenset(used), seed=f"{seed}/{number}"
        )
    for i in range(random.choice((0, 1, 1, 2)) if known or statements else 1):
        maker = Queries(random, known, parameters=False)
        tree, columns = maker.select(1, ())
        name = f"view_{i}"
        statements.append(Tree((f"CREATE OR REPLACE TEMPORARY VIEW {name} AS ", tree)))
        known += [Table(name, tuple((c.text, c.type) for c in columns))] * 2
        used |= maker.used
    if random.random() < 0.3:
        statements.append(f"SET TIME ZONE '{random.choice(ZONES)}'")
    last = Queries(random, known, parameters=False)
    tree, ordered = last.top()
    return case(
        "sessions",
        *statements,
        tree,
        ordered=ordered,
        functions=frozenset(used | last.used),
        seed=f"{seed}/{number}",
    )


def _table(random: Random) -> tuple[list[str | Tree], Table]:
    """Statements that make a table, partitioned or not, and fill it in one commit or two."""
    count = random.randint(1, 4)
    columns = [(f"c{i}", random.choice(_TYPES)) for i in range(count)]
    split = [n for n, t in columns[:-1] if t in _PARTITIONED][:1] if random.random() < 0.4 else []
    text = ", ".join(f"{n} {t.upper()}" for n, t in columns)
    tail = f" PARTITIONED BY ({split[0]})" if split else ""
    made: list[str | Tree] = [*CLEAN, f"CREATE TABLE {TABLE} ({text}) USING delta{tail}{properties(random)}"]
    for _ in range(random.choice((1, 1, 2))):
        lines = tuple(
            Tree(("(", listed(tuple(value(random, t) for _, t in columns), ", ", count), ")"))
            for _ in range(random.randint(1, 4))
        )
        made.append(Tree((f"INSERT INTO {TABLE} VALUES ", listed(lines))))
    return made, Table(TABLE, tuple(columns))


def step(machine: Machine, seed: int, number: int) -> Judgement:
    """Ask about the session of that number."""
    return machine.asked(make(seed, number, machine.tables))
