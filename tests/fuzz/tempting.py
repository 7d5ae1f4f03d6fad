"""The tables of the metamorphic checks: few rows with statistics that tempt, stored in several ways."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.conformance.session import Session
from tests.fuzz import stored
from tests.fuzz.relations import Table
from tests.fuzz.stored import How

COLUMNS = (
    ("k", "int"),
    ("n", "bigint"),
    ("s", "string"),
    ("d", "double"),
    ("p", "decimal(5,2)"),
    ("dt", "date"),
    ("ts", "timestamp"),
    ("f", "boolean"),
)
# One file each, with statistics that tempt: ranges that meet, NULLs alone, NaN, both zeros, ends of types.
_ROWS = """
0, 0L, '', -0.0D, 0.00, DATE'1999-12-31', TIMESTAMP'1999-12-31 23:59:59.5', true
1, 1L, 'a', 0.0D, 1.50, DATE'2024-02-29', TIMESTAMP'2024-02-29 13:00:00', false

1, NULL, 'b', 1.5D, 2.00, DATE'2024-03-01', TIMESTAMP'2024-03-10 02:30:00', NULL
2, 2L, 'B', 1.0D, NULL, NULL, NULL, true

NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL

3, 10L, '1', double('NaN'), 2.00, DATE'2024-03-01', TIMESTAMP'2050-07-01 12:00:00', false
-1, 10L, 'a', double('NaN'), 0.00, DATE'0001-01-01', NULL, true

2147483647, 9223372036854775807L, 'zzz', double('Infinity'), 999.99, DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59', true

-2147483648, -9223372036854775808L, NULL, double('-Infinity'), -999.99, NULL, TIMESTAMP'0001-01-01 00:00:00', false
2, 1L, 'a', -2.25D, 1.50, DATE'2024-02-29', TIMESTAMP'2024-02-29 13:00:00', NULL
"""
_FILES = tuple(tuple(file.splitlines()) for file in _ROWS.strip().split("\n\n"))
_PARTITIONED = ((), ("k",), ("n",), ("f",), ("dt",), ("p",), ("f", "k"), ("dt", "n", "p"))

#: Pairs of tables that are joined.
JOINED = (
    ("m1", "m2"),
    ("m1", "m3"),
    ("m3", "m2"),
    ("m3", "m3"),
    ("m4", "m2"),
    ("m5", "m6"),
    ("m6", "m3"),
    ("m7", "m1"),
    ("m8", "m7"),
    ("m2", "m9"),
)


def copies(seed: int) -> dict[str, How]:
    """Copies of `m1` by how they are stored; those with a file for each row by the seed."""
    random = Random(f"{seed} copies")
    mapped, deleting = random.choice((True, False)), random.choice((True, False))
    return {
        "m4": How(mapped=True),
        "m5": How(deleting=True),
        "m6": How(mapped=True, deleting=True),
        "m7": How(apart=True),
        "m8": How(apart=True, partitions=random.choice(_PARTITIONED[1:]), told=stored.SOME),
        "m9": How(mapped, deleting, True, random.choice(_PARTITIONED), random.choice(stored.TOLD)),
    }


def make_tables(session: Session, folder: Path, seed: int) -> tuple[Table, ...]:
    """`m1` of several files, `m2` of two, `m3` in partitions, and the copies of `m1`, with the same columns."""
    text = ", ".join(f"{name} {type_.upper()}" for name, type_ in COLUMNS)
    for name, files, clause in (
        ("m1", _FILES, ""),
        ("m2", _FILES[:2], ""),
        ("m3", _FILES, " PARTITIONED BY (f, dt, n)"),
    ):
        session.execute(f"CREATE TABLE {name} ({text}){clause}")
        for rows in files:
            # CAST of what VALUES makes NULL and of decimals: the columns' types, whatever the row.
            cells = ", ".join(f"CAST(c{i} AS {type_.upper()})" for i, (_, type_) in enumerate(COLUMNS))
            names = ", ".join(f"c{i}" for i in range(len(COLUMNS)))
            values = ", ".join(f"({row})" for row in rows)
            session.execute(f"INSERT INTO {name} SELECT {cells} FROM VALUES {values} AS v({names})")
    made = next(log.parent for log in folder.rglob("_delta_log") if log.parent.name == "m1")
    for name, how in copies(seed).items():
        stored.copy(made, made.with_name(name), how, Random(f"{seed} {name}"))
    return tuple(Table(name, COLUMNS) for name in ("m1", "m2", "m3", *copies(seed)))
