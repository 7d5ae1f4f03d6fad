"""Histories of a table: random statements, and the rows that a plain model of them gives."""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable

from tests.live.tables import VECTORS, alter

Row = tuple[int | None, str | None, float | None, str | None]
Truth = bool | None
_CARE = 0.3  # how often something is done between statements that changes no row
_NAMES = ("k", "s", "d", "p")
# Tables that ask more of their writers.
_PROPERTIES = {
    "vectors": {"delta.enableDeletionVectors": "true"},
    "checks": {"delta.constraints.few": "k IS NULL OR k < 1000", "delta.constraints.text": "s <> '?' OR s IS NULL"},
}
_PROTOCOLS = {"vectors": VECTORS, "checks": {"minReaderVersion": 1, "minWriterVersion": 3}}
_LITERALS: dict[str, tuple[Any, ...]] = {
    "k": (0, 1, 2, 3, 5, 8, 13),
    "s": ("a", "b", "é", "", "a long text that does not fit into thirty-two characters"),
    "d": (0.0, -0.0, 1.5, math.nan, -math.inf),
    "p": ("x", "y z", "q=1/2"),
}


def seeds(first: int, count: int) -> range:
    """Seeds of histories: those of GATEWAY_TEST_HISTORIES (how many, or `first-last`), or `count` of them."""
    chosen = os.environ.get("GATEWAY_TEST_HISTORIES", str(count))
    if "-" not in chosen:
        return range(first, first + int(chosen))
    start, last = chosen.split("-")
    return range(int(start), int(last) + 1)


def literal(value: Any) -> str:
    """A value as SQL has it."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"double('{value}')"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _order(value: Any) -> Any:
    """Doubles as Spark orders them: NaN is the greatest and equals itself, zeros are equal."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value


@dataclass(frozen=True)
class Condition:
    """A condition as text, over the names of one relation, and as what it is for a row."""

    text: Callable[[str], str]
    of: Callable[[Row], Truth]


def _condition(random_: random.Random, depth: int = 2) -> Condition:
    kind = random_.choice(("=", "<", ">=", "null", "and", "or", "not") if depth else ("=", "<", ">=", "null"))
    if kind == "not":
        inner = _condition(random_, depth - 1)
        return Condition(lambda q: f"NOT ({inner.text(q)})", lambda r: None if (x := inner.of(r)) is None else not x)
    if kind in ("and", "or"):
        one, two = _condition(random_, depth - 1), _condition(random_, depth - 1)

        def both(row: Row) -> Truth:
            found = (one.of(row), two.of(row))
            decisive = kind == "or"
            return decisive if decisive in found else None if None in found else not decisive

        return Condition(lambda q: f"({one.text(q)} {kind.upper()} {two.text(q)})", both)
    at = random_.randrange(4)
    name = _NAMES[at]
    if kind == "null":
        return Condition(lambda q: f"{q}{name} IS NULL", lambda r: r[at] is None)
    value = random_.choice(_LITERALS[name])

    def compared(row: Row) -> Truth:
        left = row[at]
        if left is None:
            return None
        a, b = _order(left), _order(value)
        return bool({"=": a == b, "<": a < b, ">=": a >= b}[kind])

    return Condition(lambda q: f"{q}{name} {kind} {literal(value)}", compared)


def new_row(random_: random.Random) -> Row:
    """A random row."""
    values = [None if random_.random() < 0.15 else random_.choice(_LITERALS[name]) for name in _NAMES]
    return (values[0], values[1], values[2], values[3])


def _changed(random_: random.Random) -> tuple[str, Callable[[Row], Row]]:
    """A SET list, and what it makes of a row."""
    step, text, part = random_.randrange(1, 9), random_.choice(_LITERALS["s"]), random_.choice(_LITERALS["p"])
    return random_.choice(
        [
            (f"k = k + {step}", lambda r: (None if r[0] is None else r[0] + step, *r[1:])),
            (f"s = concat(s, {literal(text)})", lambda r: (r[0], None if r[1] is None else r[1] + text, *r[2:])),
            (f"p = {literal(part)}, d = k", lambda r: (*r[:2], None if r[0] is None else float(r[0]), part)),
            ("s = p, p = NULL", lambda r: (r[0], r[3], r[2], None)),
        ]
    )


class Statements(Protocol):
    """Where statements of a history run."""

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of one statement."""

    def run(self, text: str) -> Any:
        """One statement."""


class History:
    """The table ``t`` in a folder and the model of it."""

    all_columns = True
    inserted = "(k, s, d, p) VALUES (q.k, q.s, q.d, q.p)"

    def __init__(self, session: Statements, seed: int, folder: Path, partitioned: bool, kind: str) -> None:
        self.session, self.random = session, random.Random(seed)
        session.run(
            "CREATE TABLE t (k INT, s STRING, d DOUBLE, p STRING)" + (" PARTITIONED BY (p)" if partitioned else "")
        )
        self.rows: list[Row] = []
        self.versions: list[list[Row]] = [[]]
        self.folder = folder
        self.kind = kind
        if kind != "plain":
            alter(str(self.folder), _PROPERTIES[kind], _PROTOCOLS[kind])
            self.versions.append([])
        # The empty text is NULL where it is the value of a partition; none of p's is empty but those from s.
        self.steps = {"insert": self.insert, "delete": self.delete, "update": self.update, "merge": self.merge}
        self.care = {"optimize": self.optimize, "restore": self.restore, "vacuum": self.vacuum}

    def step(self) -> None:
        """One statement; the table is as the model afterwards."""
        if self.random.random() < _CARE:
            self.care[self.random.choice(sorted(self.care))]()
        kind = self.random.choice(("insert", "delete", "update", "update", "merge", "merge"))
        text, counts, rows = self.steps[kind if self.rows else "insert"]()
        changed = counts[0] > 0
        assert self.session.rows(text) == [counts], text
        self.rows = rows
        if changed:
            self.versions.append(rows)
        self.check(text)

    def check(self, text: str) -> None:
        """The table is as the model, here and for another reader."""
        rows = self.rows
        self.compare("SELECT k, s, d, p FROM t", rows, text)
        found = pa.table(DeltaTable(str(self.folder)).scan(columns=list(_NAMES)))
        other = list(zip(*(c.to_pylist() for c in found.columns), strict=True))
        assert bag(other) == bag(rows), text

    def compare(self, query: str, rows: list[Row], text: str) -> None:
        assert bag(self.session.rows(query)) == bag(rows), text

    def optimize(self) -> None:
        """Other files, the same rows; a version only where there was something to do."""
        ((_, metrics),) = self.session.rows("OPTIMIZE t")
        if metrics["numFilesRemoved"]:
            self.versions.append(self.rows)
        self.check("OPTIMIZE t")

    def restore(self) -> None:
        """The rows of an earlier version."""
        version = self.random.randrange(len(self.versions))
        if version < len(self.versions) - 1:
            self.session.run(f"RESTORE TABLE t TO VERSION AS OF {version}")
            self.rows = self.versions[version]
            self.versions.append(self.rows)
            self.check(f"RESTORE to {version}")

    def vacuum(self) -> None:
        """What was never part of the table goes; of what was, all is too young."""
        stray = self.folder / "stray.parquet"
        stray.write_bytes(b"")
        os.utime(stray, (0, 0))
        self.session.run("VACUUM t" + self.random.choice(("", " FULL", " RETAIN 1 HOURS")))
        assert not stray.exists()
        self.versions += [self.rows, self.rows]
        self.check("VACUUM t")

    def insert(self) -> tuple[str, tuple[int, ...], list[Row]]:
        new = [new_row(self.random) for _ in range(self.random.randrange(1, 9))]
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in new)
        columns = "" if self.all_columns else " (k, s, d, p)"
        return f"INSERT INTO t{columns} VALUES {values}", (len(new), len(new)), self.rows + new

    def delete(self) -> tuple[str, tuple[int, ...], list[Row]]:
        condition = _condition(self.random)
        kept = [row for row in self.rows if condition.of(row) is not True]
        return f"DELETE FROM t WHERE {condition.text('')}", (len(self.rows) - len(kept),), kept

    def update(self) -> tuple[str, tuple[int, ...], list[Row]]:
        condition, (assignments, change) = _condition(self.random), _changed(self.random)
        taken = [condition.of(row) is True for row in self.rows]
        rows = [change(row) if yes else row for row, yes in zip(self.rows, taken, strict=True)]
        return f"UPDATE t SET {assignments} WHERE {condition.text('')}", (sum(taken),), rows

    def merge(self) -> tuple[str, tuple[int, ...], list[Row]]:
        keys = self.random.sample(_LITERALS["k"], 4)
        source = [(key, *new_row(self.random)[1:]) for key in keys]
        by_key: dict[Any, Row] = {row[0]: row for row in source}
        gone, lonely = _condition(self.random, 1), _condition(self.random, 1)
        new = _condition(self.random, 1)
        matched, rows, counts = set(), [], Counter[str]()
        for row in self.rows:
            partner = by_key.get(row[0]) if row[0] is not None else None
            if partner is None:
                if lonely.of(row) is True:
                    counts["deleted"] += 1
                else:
                    rows.append(row)
                continue
            matched.add(row[0])
            if gone.of(row) is True:
                counts["deleted"] += 1
            else:
                counts["updated"] += 1
                rows.append((row[0], partner[1], row[2], partner[3]))
        for row in source:
            if row[0] not in matched and new.of(row) is True:
                counts["inserted"] += 1
                rows.append(row)
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in source)
        insert = "*" if self.all_columns else self.inserted
        text = (
            f"MERGE INTO t USING (SELECT * FROM VALUES {values} AS v(k, s, d, p)) AS q ON t.k = q.k "
            f"WHEN MATCHED AND {gone.text('t.')} THEN DELETE WHEN MATCHED THEN UPDATE SET s = q.s, p = q.p "
            f"WHEN NOT MATCHED AND {new.text('q.')} THEN INSERT {insert} "
            f"WHEN NOT MATCHED BY SOURCE AND {lonely.text('t.')} THEN DELETE"
        )
        order = ("updated", "deleted", "inserted")
        return text, (counts.total(), *(counts[kind] for kind in order)), rows


def bag(rows: Any) -> Counter[str]:
    """Rows without an order."""
    return Counter(repr(tuple(0.0 if x == 0 and isinstance(x, float) else x for x in row)) for row in rows)
