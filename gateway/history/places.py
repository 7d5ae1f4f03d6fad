"""Where a history is: an SQLite file for each kind of records, or a database that several gateways share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.config.values import DatabaseUrl
from gateway.history.files import FileStore
from gateway.history.postgres import PostgresStore
from gateway.history.records import Table
from gateway.history.store import Store

Place = str | DatabaseUrl  # a file's path, or a database; plain values, which can be sent to a worker


def beside(place: Place, table: Table[Any]) -> Place:
    """Where records of another kind are."""
    return str(Path(place).with_name(table.file)) if isinstance(place, str) else place


def store_of(place: Place, table: Table[Any]) -> Store:
    """The store of a kind of records."""
    return FileStore(Path(place), table) if isinstance(place, str) else PostgresStore(place, table)
