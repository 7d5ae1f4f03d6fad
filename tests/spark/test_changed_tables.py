"""Tables that others wrote, changed by the embedded engine: Spark reads what the embedded engine reads then.

GATEWAY_TEST_CHANGED: how many tables, by chance, or `all`, each with every change that there is.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from databricks.sql import exc

from tests.live.changes import Change, bag, changes
from tests.live.gateway import Server
from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_A_FEW = 8
_MOST_ROWS = 500


class World:
    """Copies of tables, each in a folder of its own: Spark keeps what it knows of one."""

    def __init__(self, sql: Sql, tables: Path, files: Path) -> None:
        self.sql, self.tables, self.files, self.count = sql, tables, files, 0

    def read(self, call: Any, name: str) -> Any:
        """What an engine reads of a table as a multiset, or what it is refused with."""
        try:
            call("SELECT 1")  # the next statement is the engine's, too
            with self.sql.connection.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {name}")
                # Not by way of pandas, which makes floats of whole numbers beside a NULL.
                return bag([tuple(row.values()) for row in cursor.fetchall_arrow().to_pylist()])
        except exc.Error as error:
            return error

    def copy(self, table: str) -> None:
        """A fresh copy of a table under the name `t`."""
        for name in ("t", "made"):
            self.sql.auto(f"DROP TABLE IF EXISTS {name}")
        self.count += 1
        place = self.files / f"changed-{self.count}"
        shutil.copytree(self.tables / table, place, symlinks=True)
        self.sql.embedded(f"CREATE TABLE t LOCATION '{place}'")

    def changes(self, table: str) -> list[Change]:
        """The changes of a table that both engines read alike; none of others."""
        self.copy(table)
        before = self.read(self.sql.embedded, "t")
        if isinstance(before, Exception) or before != self.read(self.sql.spark, "t"):
            return []
        rows = self.sql.embedded("SELECT * FROM t")
        described = self.sql.embedded("DESCRIBE t")
        columns = [(name, type_, True) for name, type_, *_ in described[: _columns(described)]]
        return list(changes(columns, rows))

    def judge(self, table: str, change: Change) -> str:
        """What became of a change: right, refused, or wrong (with the reason)."""
        self.copy(table)
        version = max(row[0] for row in self.sql.embedded("DESCRIBE HISTORY t"))
        for text in change.statements:
            try:
                self.sql.embedded(text.replace("{version}", str(version)))
            except exc.Error:
                return "refused"
        ours, spark = (self.read(call, change.read) for call in (self.sql.embedded, self.sql.spark))
        if isinstance(ours, Exception) or ours.total() != change.rows.total():
            return f"wrong: {ours}"
        return "right" if ours == spark else f"wrong: Spark reads {str(spark)[:300]} for {str(ours)[:300]}"


def _columns(described: list[tuple[Any, ...]]) -> int:
    """How many of the rows of DESCRIBE are columns; partitions are told behind them."""
    return next((at for at, row in enumerate(described) if not row[0] or row[0].startswith("#")), len(described))


def _chosen(tables: Path) -> Iterator[tuple[str, bool]]:
    """Tables, and whether they get every change."""
    listed = [
        e["table"] for e in json.loads((tables / "manifest.json").read_text()) if 0 < (e.get("rows") or 0) <= _MOST_ROWS
    ]
    wanted = os.environ.get("GATEWAY_TEST_CHANGED", str(_A_FEW))
    if wanted == "all":
        yield from ((table, True) for table in listed)
    else:
        yield from ((table, False) for table in random.Random(0).sample(listed, int(wanted)))


def test_spark_reads_what_was_changed(
    sql: Sql, spark_server: Server, tables_of_others: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world, verdicts = World(sql, tables_of_others, spark_server.log.parent / "files"), dict[tuple[str, str], str]()
    for table, every in _chosen(tables_of_others):
        try:
            todo = world.changes(table)
        except exc.Error:  # the table itself is refused
            continue
        for change in todo if every else random.Random(table).sample(todo, min(2, len(todo))):
            verdicts[table, change.name] = world.judge(table, change)
    wrong = {at: verdict for at, verdict in verdicts.items() if verdict.startswith("wrong")}
    with capsys.disabled():
        right = sum(verdict == "right" for verdict in verdicts.values())
        print(f"\nChanges of tables of others, read by Spark: {right} right, {len(wrong)} wrong of {len(verdicts)}")
    assert wrong == {}
    assert right > len(verdicts) // 2
