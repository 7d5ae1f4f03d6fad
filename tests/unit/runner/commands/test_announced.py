"""What a statement will write is announced before it does: if its process is lost, others are run once more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.base import Planned, Statement
from gateway.runner.commands import _RULES, _WITHOUT_TRACE
from gateway.sql.read.commands import parse_statement
from tests.unit.runner.session import Events, Session

MADE = (
    "DROP SCHEMA IF EXISTS s",
    "DROP SCHEMA IF EXISTS old",
    "CREATE TABLE t (p INT, n BIGINT) PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "INSERT INTO t VALUES (1, 1), (1, 5), (2, 2)",
    "INSERT INTO t VALUES (2, 4)",
    "DELETE FROM t WHERE n = 1",
    "CREATE TABLE u (p INT NOT NULL)",
    "CREATE VIEW v AS SELECT * FROM t",
    "CREATE SCHEMA old",
    "CREATE VOLUME files",
)
WRITING = (
    "CREATE SCHEMA s",
    "DROP SCHEMA old",
    "DROP SCHEMA shop CASCADE",
    "CREATE TABLE a (n INT)",
    "CREATE TABLE a (n INT NOT NULL PRIMARY KEY)",
    "CREATE TABLE a AS SELECT 1 AS n",
    "CREATE TABLE a LIKE t",
    "CREATE TABLE a DEEP CLONE t",
    "CREATE TABLE a SHALLOW CLONE t",
    "CREATE OR REPLACE TABLE t AS SELECT 1 AS n",
    "DROP TABLE t",
    "INSERT INTO t VALUES (3, 3)",
    "INSERT OVERWRITE t VALUES (3, 3)",
    "INSERT INTO t REPLACE USING (p) SELECT 2 AS p, 5L AS n",
    "DELETE FROM t",
    "UPDATE t SET n = 7",
    "MERGE INTO t USING (SELECT 2 AS p) AS s ON t.p = s.p WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE t",
    "OPTIMIZE t",
    "REORG TABLE t APPLY (PURGE)",
    "RESTORE TABLE t TO VERSION AS OF 0",
    "ALTER TABLE t ADD COLUMN more INT",
    "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
    "ALTER TABLE u ADD CONSTRAINT k PRIMARY KEY (p)",
    "ALTER TABLE u ADD CONSTRAINT c CHECK (p > 0)",
    "ALTER TABLE t RENAME TO w",
    "ALTER VIEW v AS SELECT 1 AS n",
    "ALTER VIEW v RENAME TO w",
    "ALTER VIEW v SET TBLPROPERTIES ('a' = 'b')",
    "COMMENT ON TABLE t IS 'x'",
    "COMMENT ON SCHEMA shop IS 'x'",
    "COMMENT ON VIEW v IS 'x'",
    "CREATE VIEW w AS SELECT 1 AS n",
    "DROP VIEW v",
    "CREATE VOLUME more",
    "DROP VOLUME files",
)


class _Watching(Events):
    """Events, and what was in the warehouse when something was announced."""

    def __init__(self, warehouse: Path) -> None:
        super().__init__()
        self._warehouse = warehouse
        self.before: dict[str, tuple[int, int]] | None = None
        self.writes = False

    def __call__(self, event: Any) -> None:
        if isinstance(event, Planned):
            self.before, self.writes = seen(self._warehouse), event.writes
        super().__call__(event)


def seen(warehouse: Path) -> dict[str, tuple[int, int]]:
    """What is in a folder, with what shows whether it was changed."""
    found = {}
    for folder, folders, files in os.walk(warehouse):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            stat = os.stat(path)
            found[path] = (stat.st_ino, stat.st_mtime_ns if os.path.isfile(path) else 0)
    return found


@pytest.mark.parametrize("statement", WRITING)
def test_nothing_is_written_before_it_is_announced(session: Session, statement: str) -> None:
    for made in MADE:
        session.run(made)
    warehouse = Path(session.runner.catalogs["main"].table_location("shop", "t")).parents[1]
    before, events = seen(warehouse), _Watching(warehouse)
    session.runner.run(Statement("s", statement, session.state), events)
    assert seen(warehouse) != before, "it has written nothing"
    assert events.writes
    assert events.before == before


def test_every_command_that_writes_is_one_of_these() -> None:
    with_files = {"CopyInto", "PutFile", "GetFile", "RemoveFile", "Vacuum", "Explain"}
    repeatable = {"Analyze", "AnalyzeTables"}  # what they keep of a table says which it was
    asked = {type(parse_statement(statement)).__name__ for statement in WRITING}
    writing = {kind.__name__ for kind in _RULES if kind not in _WITHOUT_TRACE}
    assert writing - asked == with_files | repeatable
