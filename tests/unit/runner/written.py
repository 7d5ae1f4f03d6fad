"""What statements have written: the table ``shop.t`` as its log says, and as another reader sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from gateway.delta import log
from tests.unit.runner.session import Session


def folder_of(session: Session, table: str = "t") -> Path:
    """The folder of a table."""
    return Path(session.runner.catalogs["main"].table_location("shop", table))


def newest_commit(session: Session, table: str = "t") -> list[dict[str, Any]]:
    """The actions of the newest commit."""
    folder = str(folder_of(session, table))
    return log.actions(folder, log.commit_versions(folder)[-1])


def newest_info(session: Session) -> dict[str, Any]:
    """What the newest commit says of itself."""
    found: dict[str, Any] = next(a["commitInfo"] for a in newest_commit(session) if "commitInfo" in a)
    return found


def count_versions(session: Session) -> int:
    """How many commits there are."""
    return len(log.commit_versions(str(folder_of(session))))


def rows_elsewhere(session: Session, table: str = "t") -> list[tuple[Any, ...]]:
    """The rows as another reader of Delta tables sees them."""
    found = pa.table(DeltaTable(str(folder_of(session, table))).scan())
    return sorted(zip(*(c.to_pylist() for c in found.columns), strict=True), key=repr)


def rows_here_and_there(session: Session) -> list[tuple[Any, ...]]:
    """The table's rows, which another reader of Delta tables must see as well."""
    rows = session.rows("SELECT * FROM t ORDER BY ALL")
    assert rows_elsewhere(session) == sorted(rows, key=repr)
    return rows
