"""Tables of the warehouse folder as Spark's catalog and a run see them.

A new JVM knows no table: databases are made with a location in the folder and its Delta tables registered by location, so that
Spark continues them where they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from gateway.catalog.local import LocalCatalog
from gateway.catalog.objects import StoredTable, StoredView
from gateway.delta import log
from gateway.errors import ConfigError, GatewayError
from gateway.pipelines.followed import check_followed
from gateway.pipelines.project import local_path
from gateway.pipelines.registry import words
from gateway.sqltypes import quote_part, quoted_text


class Warehouse:
    """The folder of the catalog `main`. Files of its tables may lie in `allowed` folders, too."""

    def __init__(self, root: Path, allowed: Sequence[Path] = ()) -> None:
        self._catalog = LocalCatalog("main", str(root), others=tuple(map(str, allowed)))
        self.root = Path(self._catalog.root)

    def folder(self, schema: str, table: str) -> Path:
        """Where the table is, or where Spark will put it. Raises UserError for a name that no table can have."""
        if not self._catalog.has_schema(schema) or not (self.root / schema).is_dir():
            (self._schema_folder(schema)).mkdir(parents=True, exist_ok=True)
        return Path(self._catalog.table_location(schema, table.lower()))

    def attach(self, session: Any, schemas: Iterable[str]) -> None:
        """Make the databases `schemas` in Spark, each at its folder. Raises ConfigError if one is elsewhere already."""
        for schema in schemas:
            folder = self._schema_folder(schema)
            session.sql(f"CREATE DATABASE IF NOT EXISTS {quote_part(schema)} LOCATION {quoted_text(f'file:{folder}')}")
            where = _location(session, schema)
            if where != folder:
                raise ConfigError(
                    "warehouse",
                    f"Spark has its database {schema} at {where}, not at {folder}: the tables would not be seen",
                )

    def check_followed(self, schema: str, table: str, *, writes: bool) -> None:
        """Raise GatewayError for a table whose log or links lead Spark elsewhere, or have it run code. Nothing is made."""
        folder = self._catalog.table_folder(schema, table)
        if folder is not None:
            check_followed(folder, self._catalog.within, writes=writes)

    @contextlib.contextmanager
    def kept(self, tables: Iterable[tuple[str, str]]) -> Iterator[None]:
        """A block in which nobody drops or renames tables, by schema and name, that a run writes to.

        Raises UserError WRITE_CONFLICT; ConfigError for a name that a view or a table of another format has.
        """
        with contextlib.ExitStack() as stack:
            for schema, table in tables:
                stack.enter_context(self._catalog.written(schema, table))
                for kind, what in ((StoredView, "view"), (StoredTable, "table of another format")):
                    if self._catalog.identity(kind, schema, table) is not None:
                        text = (
                            f"there is a {what} of that name in the warehouse: drop it, or give the table another name"
                        )
                        raise ConfigError(f"{schema}.{table}", text)
            yield

    def register(
        self, session: Any, database: str, names: Collection[str], done: set[tuple[str, str]]
    ) -> Iterator[str]:
        """Make tables on disk known to Spark whose names are among the words `names`; `done` are left out and added to.

        Those that Spark is not to follow are left out, and told.
        """
        for schema in self._catalog.schemas():
            if schema.casefold() != database.casefold() and not words(schema) <= set(names):
                continue
            for table in self._catalog.tables(schema):
                if (schema, table) in done or not words(table) <= set(names):
                    continue
                done.add((schema, table))
                folder = Path(self._catalog.table_location(schema, table))
                try:
                    self.check_followed(schema, table, writes=False)
                except GatewayError as error:
                    yield f"{schema}.{table} cannot be read: {error.message}"
                    continue
                self.attach(session, [schema])
                name = f"{quote_part(schema)}.{quote_part(table)}"
                session.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {quoted_text(f'file:{folder}')}")

    def _schema_folder(self, schema: str) -> Path:
        known = {name.casefold(): name for name in self._catalog.schemas()}
        return self.root / known.get(schema.casefold(), schema.lower())


@dataclass(frozen=True, slots=True)
class Written:
    """What commits between two versions did: rows that they wrote, and whether they took rows out as well."""

    rows: int
    removed: bool


def version(folder: Path) -> int | None:
    """The newest version of the Delta table in `folder`; None if there is none."""
    versions = log.commit_versions(str(folder))
    return versions[-1] if versions else None


def written(folder: Path, before: int | None, after: int) -> Written:
    """What the commits after version `before` (None: all) up to `after` did, by their own metrics."""
    rows, removed = 0, False
    for number in log.commit_versions(str(folder)):
        if not (-1 if before is None else before) < number <= after:
            continue
        for action in log.actions(str(folder), number):
            if "commitInfo" in action:
                rows += _rows(action["commitInfo"])
            gone = action.get("remove")
            removed = removed or (isinstance(gone, dict) and bool(gone.get("dataChange")))
    return Written(rows, removed)


def _rows(info: Any) -> int:
    merges = isinstance(info, dict) and info.get("operation") == "MERGE"
    # Its numOutputRows counts rows that were only copied.
    names = ("numTargetRowsInserted", "numTargetRowsUpdated") if merges else ("numOutputRows",)
    return sum(log.counted(info, name) for name in names)


def _location(session: Any, schema: str) -> Path:
    rows = session.sql(f"DESCRIBE DATABASE {quote_part(schema)}").collect()
    found = {str(row[0]): str(row[1]) for row in rows}.get("Location", "")
    # Told as a URI, unlike all that is given to Spark.
    return Path(unquote(local_path(found) or found))
