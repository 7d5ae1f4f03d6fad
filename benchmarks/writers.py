"""The systems that change Delta tables, each in a folder of its own: the gateway, deltalake, Sail and plain Spark."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks import tables
from benchmarks.systems import ANEW, PlainSpark, Sail, gateway_process, sail_process, spark_jars
from gateway.protocol.client import Client

SCHEMA = "writes"
PEERS = tables.CACHE / "writers"


class Writer(Protocol):
    """Something that makes and changes Delta tables by SQL."""

    name: str

    def run(self, sql: str) -> None:
        """One statement. Raises an exception of the system's own for what it does not do."""

    def folder(self, table: str) -> Path:
        """Where a table is, or is made."""

    def placed(self, table: str, source: Path) -> None:
        """A table that is a copy of another, whatever was there."""

    def made(self, table: str) -> None:
        """An empty table ``(id BIGINT, v BIGINT)``, whatever was there."""


class Gateway:
    """The gateway, asked by the raw client; its tables are in its catalog."""

    name = "gateway"

    def __init__(self, client: Client, url: str) -> None:
        self._client = client
        self.url = url

    def run(self, sql: str) -> None:
        """See `Writer`."""
        self._client.execute(sql).table()

    def number(self, sql: str) -> int:
        """The one number that a query gives."""
        return int(self._client.execute(sql).table().column(0)[0].as_py())

    def folder(self, table: str) -> Path:
        """See `Writer`."""
        return tables.WAREHOUSE / SCHEMA / table

    def placed(self, table: str, source: Path) -> None:
        """See `Writer`."""
        _copied(source, self.folder(table))

    def made(self, table: str) -> None:
        """See `Writer`."""
        self.run(f"DROP TABLE IF EXISTS {table}")
        self.run(f"CREATE TABLE {table} (id BIGINT, v BIGINT)")


class Peer:
    """Sail or Spark: its tables are at places that CREATE TABLE names."""

    def __init__(self, system: Sail | PlainSpark) -> None:
        self.name = system.name
        self._system = system

    def run(self, sql: str) -> None:
        """See `Writer`."""
        if isinstance(self._system, Sail):
            self._system.change(sql)
        else:
            self._system.seconds(sql, "rows")

    def folder(self, table: str) -> Path:
        """See `Writer`."""
        return PEERS / self.name.split()[0].lower() / table

    def placed(self, table: str, source: Path) -> None:
        """See `Writer`."""
        self.run(f"DROP TABLE IF EXISTS {table}")
        _copied(source, self.folder(table))
        self.run(f"CREATE TABLE {table} USING delta LOCATION '{self.folder(table)}'")

    def made(self, table: str) -> None:
        """See `Writer`."""
        self.run(f"DROP TABLE IF EXISTS {table}")
        shutil.rmtree(self.folder(table), ignore_errors=True)
        self.run(f"CREATE TABLE {table} (id BIGINT, v BIGINT) USING delta LOCATION '{self.folder(table)}'")


def _copied(source: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)


@contextlib.contextmanager
def writers() -> Iterator[tuple[Gateway, Sequence[Peer]]]:
    """The gateway and its peers, those that are installed; the gateway's schema is empty before and gone afterwards."""
    shutil.rmtree(PEERS, ignore_errors=True)
    shutil.rmtree(tables.WAREHOUSE / SCHEMA, ignore_errors=True)
    with contextlib.ExitStack() as stack:
        peers: list[Peer] = []
        sail = stack.enter_context(sail_process())
        if sail is not None:
            peers.append(Peer(sail))
        if spark_jars().is_dir():
            peers.append(Peer(stack.enter_context(PlainSpark())))
        else:
            print("... without Spark: `make .venv/.jars` brings it", file=sys.stderr)
        url, _, _ = stack.enter_context(gateway_process())
        gateway = Gateway(stack.enter_context(Client(url).open(ANEW)), url)
        gateway.run(f"CREATE SCHEMA main.{SCHEMA}")
        gateway.run(f"USE main.{SCHEMA}")
        try:
            yield gateway, peers
        finally:
            gateway.run(f"DROP SCHEMA main.{SCHEMA} CASCADE")
            shutil.rmtree(PEERS, ignore_errors=True)
