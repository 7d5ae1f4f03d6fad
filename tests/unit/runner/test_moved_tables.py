"""A table that is removed or exchanged for another while a statement uses it, before each look that Python takes below it."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import GatewayError
from tests.unit.runner.session import Session

_LOOKS = ("open", "os.listdir", "os.scandir", "os.rename", "os.link", "os.mkdir", "os.remove")
# What there is of the table by then: nothing, none of its files, or another one, which lacks its columns and versions; a file
# that was open lies elsewhere.
_GONE = {
    "DELTA_FILE_NOT_FOUND",
    "WRITE_CONFLICT",
    "PATH_NOT_ALLOWED",
}
_OTHERS = {
    *("UNRESOLVED_COLUMN.WITH_SUGGESTION", "DELTA_MERGE_UNRESOLVED_EXPRESSION", "DELTA_METADATA_MISMATCH"),
    *("DELTA_VERSION_NOT_FOUND", "DELTA_CANNOT_RESTORE_TABLE_VERSION", "DELTA_MISSING_CHANGE_DATA"),
    *("DELTA_UNSUPPORTED_RENAME_COLUMN", "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
}
_PROPERTIES = (
    "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"
)
_STATEMENTS = (
    "SELECT * FROM table_changes('t', 0)",
    "DESCRIBE HISTORY t",
    "RESTORE TABLE t TO VERSION AS OF 0",
    "COMMENT ON TABLE t IS 'x'",
)
_FURTHER = (
    "SELECT * FROM t VERSION AS OF 1",
    "VACUUM t",
    "SELECT count(*), sum(id) FROM t",
    "SELECT *, _metadata.row_index FROM t",
    "DESCRIBE DETAIL t",
    "DESCRIBE EXTENDED t",
    "SHOW CREATE TABLE t",
    "OPTIMIZE t ZORDER BY (id)",
    "DELETE FROM t WHERE id = 3",
    "UPDATE t SET v = 1 WHERE id = 3",
    "MERGE INTO t USING (SELECT 3 AS id, 2 AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
    "INSERT INTO t VALUES (1, 2)",
    "INSERT OVERWRITE t VALUES (1, 2)",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    "ALTER TABLE t RENAME COLUMN v TO w",
    "ALTER TABLE t ADD CONSTRAINT c CHECK (id >= 0)",
    "ANALYZE TABLE t COMPUTE STATISTICS",
    "TRUNCATE TABLE t",
    "CREATE TABLE u SHALLOW CLONE t",
    "CREATE TABLE u DEEP CLONE t",
    "CREATE OR REPLACE TABLE t AS SELECT 1 AS id",
    "REORG TABLE t APPLY (PURGE)",
)


class _Looks:
    """Calls something once, before the look of a number that is taken below a folder; there is no end to an audit hook."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._left = 0
        self._then: Callable[[], object] = int
        self._over = threading.Event()
        sys.addaudithook(self._seen)

    def _seen(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._folder is None or event not in _LOOKS or not str(arguments[0]).startswith(self._folder):
            return
        self._left -= 1
        if self._left < 0:
            self._folder = None
            self._then()
            self._over.set()

    @contextmanager
    def at(self, folder: Path, number: int, then: Callable[[], object]) -> Iterator[None]:
        """Within it. Raises IndexError at its end if fewer looks are taken."""
        self._folder, self._left, self._then = str(folder), number, then
        self._over.clear()
        try:
            yield
        finally:
            few, self._folder = self._folder is not None, None
        if few:
            raise IndexError(number)
        assert self._over.wait(10)  # a thread of the engine's may have looked


@pytest.fixture(scope="module")
def looks() -> _Looks:
    return _Looks()


@pytest.mark.parametrize("other", [False, True], ids=["removed", "exchanged"])
@pytest.mark.parametrize("text", [*_STATEMENTS, *(pytest.param(text, marks=pytest.mark.heavy) for text in _FURTHER)])
def test_a_table_that_goes_is_not_called_damaged(
    session: Session, looks: _Looks, tmp_path: Path, text: str, other: bool
) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS b")
    folder = Path(str(session.rows("DESCRIBE DETAIL t")[0][4]).removeprefix("file:"))
    os.rename(folder, tmp_path / "other")
    found = set()
    for number in itertools.count():
        shutil.rmtree(folder, ignore_errors=True)
        _make(session)
        shutil.copytree(tmp_path / "other", tmp_path / "next", dirs_exist_ok=True)

        def go(away: Path = tmp_path / f"away{number}") -> None:
            os.rename(folder, away)
            if other:
                os.rename(tmp_path / "next", folder)

        try:
            with looks.at(folder, number, go):
                try:
                    session.run(text)
                except GatewayError as error:
                    found.add(error.condition)
        except IndexError:
            break
    assert number > 0
    assert found <= (_GONE | _OTHERS if other else _GONE)


def _make(session: Session) -> None:
    session.run("DROP TABLE IF EXISTS u")
    session.run(f"CREATE TABLE t (id BIGINT, v BIGINT) TBLPROPERTIES ({_PROPERTIES})")
    session.run("INSERT INTO t SELECT id, id FROM range(10)")
    session.run("DELETE FROM t WHERE id = 5")
