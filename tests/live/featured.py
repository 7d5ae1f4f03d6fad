"""Histories of tables with many features at once: what the features promise holds after each statement, too."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from gateway.delta import log
from gateway.delta.replay import replayed
from tests.live.histories import History, Row, Statements, bag, literal, new_row

_OFTEN = 0.4  # that a table has a feature
# Columns beside those of the model, and the queries that have to give 0 for as long as they are kept.
_COLUMNS: dict[str, tuple[str, str]] = {
    "generated": (
        "g BIGINT GENERATED ALWAYS AS (CAST(k AS BIGINT) * 2)",
        "SELECT count(*) FROM t WHERE NOT (g <=> CAST(k AS BIGINT) * 2)",
    ),
    "identity": ("id BIGINT GENERATED ALWAYS AS IDENTITY", "SELECT count(*) - count(DISTINCT id) FROM t"),
    "defaults": ("e STRING DEFAULT 'none'", "SELECT count(*) FROM t WHERE e IS DISTINCT FROM 'none'"),
    "mapped": ("x0 INT", "SELECT 0"),
}
_PROPERTIES: dict[str, tuple[str, ...]] = {
    "defaults": ("'delta.feature.allowColumnDefaults' = 'supported'",),
    "mapped": ("'delta.columnMapping.mode' = 'name'",),
    "feed": ("'delta.enableChangeDataFeed' = 'true'",),
    "tracked": ("'delta.enableRowTracking' = 'true'",),
    "vectors": ("'delta.enableDeletionVectors' = 'true'",),
    "widened": ("'delta.enableTypeWidening' = 'true'",),
    "times": ("'delta.enableInCommitTimestamps' = 'true'",),
    "checks": ("'delta.constraints.few' = 'k IS NULL OR k < 1000'",),
    "often": ("'delta.checkpointInterval' = '3'",),
    "newer": ("'delta.checkpointPolicy' = 'v2'",),
}
# What the statement calls the features that a table may lose.
_LOST = {
    "tracked": "rowTracking",
    "vectors": "deletionVectors",
    "widened": "typeWidening",
    "times": "inCommitTimestamp",
    "newer": "v2Checkpoint",
}
_RARELY = 0.3
_PLACES = ("", "PARTITIONED BY (p)", "CLUSTER BY (k, s)")
_MODEL = "k INT, s STRING, d DOUBLE, p STRING"
_ASK = "SELECT k, s, d, p FROM t"


class FeaturedHistory(History):
    """A table with features by chance, and the model of it; `files` is a folder that statements may read."""

    def __init__(self, session: Statements, seed: int, folder: Path, files: Path) -> None:
        self.session, self.random, self.folder, self.files = session, random.Random(seed), folder, files
        choice = self.random.random
        self.features = sorted(name for name in {**_COLUMNS, **_PROPERTIES} if choice() < _OFTEN)
        if {"generated", "checks"} & set(self.features) and "widened" in self.features:  # which look at the column
            self.features.remove("widened")
        self.place = self.random.choice(_PLACES)
        columns = [_COLUMNS[name][0] for name in self.features if name in _COLUMNS]
        self.all_columns = not columns
        self.extra, self.counter = "x0" if "mapped" in self.features else "", 0
        self.wide = self.is_clone = False
        properties = ", ".join(one for name in self.features for one in _PROPERTIES.get(name, ()))
        given = f" TBLPROPERTIES ({properties})" if properties else ""
        session.run(f"CREATE TABLE t ({', '.join([_MODEL, *columns])}) {self.place}{given}")
        self.rows: list[Row] = []
        self.versions: list[list[Row]] = [[]]
        self.steps = {
            "insert": self.insert,
            "delete": self.delete,
            "update": self.update,
            "merge": self.merge,
            "overwrite": self.overwrite,
        }
        self.care: dict[str, Callable[[], None]] = {
            "optimize": self.optimized,
            "vacuum": self.vacuumed,
            "copy": self.copied,
        }
        self.care["clone"] = self.cloned
        if self.place != _PLACES[2]:
            self.care["reorg"] = self.reorganized
        if self.place == _PLACES[1]:
            self.care["partitions"] = self.partitions_overwritten
        if self.features:
            self.care["evolve"] = self.evolved
        if "identity" not in self.features:  # which has to be given beside a condition
            self.steps["replace"] = self.replaced
        if _LOST.keys() & set(self.features):
            self.care["drop"] = self.lost
        # A feed is not told over versions whose columns have other types.
        if not {"feed", "widened"} <= set(self.features):
            self.care["restore"] = self.restored
        if "mapped" in self.features:
            self.care["columns"] = self.columns
        if "widened" in self.features:
            self.care["widen"] = self.widen
        if not self.features and self.place != _PLACES[2]:
            self.care["elsewhere"] = self.elsewhere

    def step(self) -> None:
        """One statement; the table is as the model afterwards."""
        if self.random.random() < _OFTEN:
            self.care[self.random.choice(sorted(self.care))]()
        kind = self.random.choice(("insert", "delete", "update", "update", "merge", "merge", "overwrite", "replace"))
        kind = kind if kind in self.steps else "insert"
        text, counts, rows = self.steps[kind if self.rows else "insert"]()
        self.ran(text, self.session.rows(text), counts)
        self.settle(text, rows)

    def ran(self, text: str, answer: list[tuple[Any, ...]], counts: tuple[int, ...]) -> None:
        """What a statement has answered."""
        assert answer == [counts], (self.features, text)

    def settle(self, text: str, rows: list[Row]) -> None:
        """The rows are these; each version since the last one has them."""
        before, self.rows = self.rows, rows
        newest = log.commit_versions(str(self.folder))[-1]
        first = len(self.versions)
        self.versions += [rows] * (newest + 1 - first)
        told = f"{self.features} {self.place}: {text}"
        self.compare(_ASK, rows, told)
        for name in self.features:
            if name in _COLUMNS:
                assert self.session.rows(_COLUMNS[name][1]) == [(0,)], (name, told)
        if "tracked" in self.features:
            self.check_numbers(told)
        if "feed" in self.features and first <= newest and first > 0:
            self.check_feed(before, first, newest, told)

    def check_numbers(self, told: str) -> None:
        """The log gives each file numbers of its rows that no other has."""
        state = replayed(str(self.folder), len(self.versions) - 1, (str(self.folder),))
        taken = sorted((spec["baseRowId"], json.loads(spec["stats"])["numRecords"]) for spec in state.files.values())
        assert all(base + count <= after for (base, count), (after, _) in pairwise(taken)), told
        newest = (
            sys.maxsize if self.is_clone else len(self.versions)
        )  # of rows that were copied those of their source count
        twice = "SELECT count(*) - count(DISTINCT _metadata.row_id), max(_metadata.row_commit_version) < "
        answer = self.session.rows(f"{twice}{newest} FROM t")
        assert answer in ([(0, True)], [(0, None)]), (answer, told)

    def check_feed(self, before: list[Row], first: int, newest: int, told: str) -> None:
        """The changes make the new rows of those before."""
        found = self.session.rows(f"SELECT k, s, d, p, _change_type FROM table_changes('t', {first}, {newest})")
        kinds = {kind: [row[:4] for row in found if row[4] == kind] for kind in {row[4] for row in found}}
        gone = bag(kinds.get("delete", []) + kinds.get("update_preimage", []))
        come = bag(kinds.get("insert", []) + kinds.get("update_postimage", []))
        left = bag(before) + come
        left.subtract(gone)
        assert +left == bag(self.rows) and min(left.values(), default=0) >= 0, told

    def done(self, text: str, rows: list[Row] | None = None) -> None:
        """A statement that answers nothing of the model's."""
        self.session.run(text)
        self.settle(text, self.rows if rows is None else rows)

    # ---- statements

    def overwrite(self) -> tuple[str, tuple[int, ...], list[Row]]:
        """Other rows in the place of all."""
        before, self.rows = self.rows, []
        text, counts, rows = self.insert()
        self.rows = before
        return text.replace("INSERT INTO", "INSERT OVERWRITE"), counts, rows

    def replaced(self) -> tuple[str, tuple[int, ...], list[Row]]:
        """Rows in the place of those with their keys."""
        new = [new_row(self.random) for _ in range(self.random.randrange(1, 4))]
        keys = {row[0] for row in new} - {None}
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in new)
        text = f"INSERT INTO t BY NAME REPLACE USING (k) SELECT * FROM VALUES {values} AS v(k, s, d, p)"
        return text, (len(new), len(new)), [row for row in self.rows if row[0] not in keys] + new

    def lost(self) -> None:
        """A feature less."""
        left = [name for name in self.features if name in _LOST]
        if left and self.random.random() < _RARELY:
            name = self.random.choice(left)
            self.features.remove(name)
            self.care.pop("widen" if name == "widened" else "", None)
            self.done(f"ALTER TABLE t DROP FEATURE {_LOST[name]}")

    def optimized(self) -> None:
        """Other files, the same rows."""
        by = " ZORDER BY (k)" if self.place != _PLACES[2] and self.random.random() < _OFTEN else ""
        self.done(f"OPTIMIZE t{by}")

    def reorganized(self) -> None:
        """Other files, the same rows."""
        self.done("REORG TABLE t APPLY (PURGE)")

    def partitions_overwritten(self) -> None:
        """Other rows in the place of those in their partitions."""
        before, self.rows = self.rows, []
        text, _, rows = self.insert()
        self.rows, parts = before, {row[3] for row in rows}
        self.session.run("SET spark.sql.sources.partitionOverwriteMode = dynamic")
        kept = [row for row in before if row[3] not in parts]
        self.done(text.replace("INSERT INTO", "INSERT OVERWRITE"), kept + rows)
        self.session.run("SET spark.sql.sources.partitionOverwriteMode = static")

    def evolved(self) -> None:
        """A column beside the model's comes with values for some rows."""
        if self.extra:
            return
        self.counter += 1
        self.extra, self.all_columns = f"x{self.counter}", False
        self.done(
            f"MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS k, 5 AS {self.extra}) AS q ON t.k = q.k "
            f"WHEN MATCHED THEN UPDATE SET {self.extra} = q.{self.extra}"
        )

    def vacuumed(self) -> None:
        """Nothing of the table goes."""
        self.done("VACUUM t" + self.random.choice(("", " FULL")))

    def restored(self) -> None:
        """The rows of an earlier version."""
        version = self.random.randrange(len(self.versions))
        if version < len(self.versions) - 1:
            self.done(f"RESTORE TABLE t TO VERSION AS OF {version}", self.versions[version])
            (names,) = zip(*self.session.rows("SHOW COLUMNS IN t"), strict=True)
            self.extra = next((name for name in names if name.startswith("x")), "")

    def columns(self) -> None:
        """A column beside the model's gets another name, goes or comes."""
        self.counter += 1
        name = f"x{self.counter}"
        if self.extra and self.random.random() < _OFTEN:
            text, self.extra = f"ALTER TABLE t DROP COLUMN {self.extra}", ""
        elif self.extra:
            text, self.extra = f"ALTER TABLE t RENAME COLUMN {self.extra} TO {name}", name
        else:
            text, self.extra = f"ALTER TABLE t ADD COLUMN {name} INT", name
        self.done(text)

    def widen(self) -> None:
        """A wider type for a column of the model's."""
        self.done("ALTER TABLE t ALTER COLUMN k TYPE BIGINT")

    def copied(self) -> None:
        """The rows of a file, once."""
        if "identity" in self.features:  # which COPY INTO does not number
            return
        new = [new_row(self.random) for _ in range(3)]
        self.counter += 1
        columns = zip(*new, strict=True)
        types = (pa.int32(), pa.string(), pa.float64(), pa.string())
        arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
        pq.write_table(pa.table(arrays, names=list("ksdp")), self.files / f"f{self.counter}.parquet")
        for rows in (self.rows + new, None):
            self.done(f"COPY INTO t FROM '{self.files}' FILEFORMAT = PARQUET", rows)

    def cloned(self) -> None:
        """The table goes on as a clone of itself."""
        kind = self.random.choice(("SHALLOW", "DEEP"))
        self.counter += 1
        self.session.run(f"CREATE TABLE c {kind} CLONE t")
        self.session.run(f"ALTER TABLE t RENAME TO old{self.counter}")
        if kind == "DEEP":
            self.session.run(f"DROP TABLE old{self.counter}")
            self.session.run("ALTER TABLE c RENAME TO t")
        else:  # whose files have to stay where they were
            self.session.run(f"ALTER TABLE old{self.counter} RENAME TO t")
            self.session.run("DROP TABLE c")
            return
        self.versions, self.is_clone = [], True
        self.settle(f"{kind} CLONE", self.rows)

    def elsewhere(self) -> None:
        """Another writer of Delta tables appends."""
        new = [new_row(self.random) for _ in range(2)]
        kinds = (pa.int32(), pa.string(), pa.float64(), pa.string())
        arrays = [pa.array(values, kind) for values, kind in zip(zip(*new, strict=True), kinds, strict=True)]
        write_deltalake(DeltaTable(str(self.folder)), pa.table(arrays, names=list("ksdp")), mode="append")
        self.settle("another writer", self.rows + new)
