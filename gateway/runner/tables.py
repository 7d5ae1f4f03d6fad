"""Names of tables, schemas and catalogs as one statement sees them: resolved once, so that a table has one version in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, TypeVar

from gateway import worker_jobs
from gateway.catalog import audit, query_history
from gateway.catalog.base import AsOf, BoundTable, Catalog, TableName
from gateway.catalog.bound import ChangesTable, DeltaBoundTable, PathTable, bind
from gateway.catalog.information import SYSTEM, InformationCatalog, Relation, information_of
from gateway.catalog.objects import StoredLocation, StoredTable, StoredView
from gateway.catalog.paths import AllowedRoots
from gateway.catalog.recorded import Seen
from gateway.catalog.runtime import running
from gateway.catalog.system import SystemSchema
from gateway.config.session import TIMEZONE
from gateway.delta.changes import Bound, changes_between
from gateway.delta.files import open_files
from gateway.delta.table import witness
from gateway.engine.base import TempView, Witness
from gateway.errors import Span, UserError, unsupported
from gateway.instants import known_zone
from gateway.sql.read.command_nodes import Query
from gateway.sql.read.commands import parse_statement
from gateway.worker_jobs import Runtime

_MOST_TOUCHED = 100
_Found = TypeVar("_Found")


class StatementTables:
    """`sql.bind.resolve.Tables` over the catalogs, under a current catalog and schema."""

    def __init__(
        self,
        catalogs: Mapping[str, Catalog],
        paths: AllowedRoots,
        catalog: str,
        schema: str,
        pinned: dict[Any, BoundTable | StoredView] | None = None,
        settings: Mapping[str, str] | None = None,
        seen: Seen | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        self.catalogs = catalogs
        self.paths = paths
        self.catalog = catalog
        self.schema = schema
        self.pinned: dict[Any, BoundTable | StoredView] = {} if pinned is None else pinned
        self.settings: Mapping[str, str] = settings or {}
        self.seen = seen  # the history
        self.runtime = runtime  # what is open and runs
        self.seconds = 0.0  # spent in catalogs
        self.compute: Callable[[Any, Any], int | None] | None = None  # the value of a query of one row
        self.views: dict[Any, Witness | None] = {}  # what the views of `pinned` were read from
        self.asked: dict[Any, tuple[str, str]] = {}  # schemas and names of `pinned`, as they were spelt

    @property
    def reads_information(self) -> bool:
        """Whether a relation of `system` or of an information schema was named, which only the gateway has."""
        return any(isinstance(found, Relation) for found in self.pinned.values())

    def touched(self) -> list[tuple[str, str, str]]:
        """Catalog, schema and name of the tables and views that were found."""
        names = dict.fromkeys(found.name for found in self.pinned.values())
        known = (name for name in names if name.catalog == SYSTEM or name.catalog in self.catalogs)
        return [(name.catalog, name.schema, name.table) for name in known][:_MOST_TOUCHED]

    def table(self, parts: Sequence[str], as_of: Any, span: Span | None) -> BoundTable | StoredView:
        """What a query can read of the table or view that one to three names stand for.

        Raises UserError TABLE_OR_VIEW_NOT_FOUND with the nearest names, UnsupportedError for what only Spark reads.
        """
        found = self.find(parts, as_of, span)
        if isinstance(found, StoredTable):
            raise found.refused().at(span)
        if isinstance(found, StoredView):
            if found.needs_spark:
                raise unsupported(f"The query of the view `{found.name}`", span)
            for key, value in found.settings.items():
                if self.settings.get(key) != value:
                    raise unsupported(f"The view `{found.name}`, made under {key} = {value}, under another value", span)
        return found

    def find(
        self, parts: Sequence[str], as_of: Any, span: Span | None, *, to_add: bool = False
    ) -> BoundTable | StoredView:
        """The table or view of a name; TABLE_OR_VIEW_NOT_FOUND with the nearest names. `to_add` as for `Catalog.table`."""
        catalog, schema, table = self.qualified(parts)
        key = (catalog.lower(), schema.lower(), table.lower(), as_of)
        found = self.pinned.get(key)
        if found is None:
            known: Any = self.catalogs.get(catalog.lower())
            started = time.perf_counter()
            system = self._system(catalog, schema)
            if system is not None:
                if as_of is not None:
                    raise unsupported(f"time travel on the schema `{system.schemas()[0]}`", span)
                known = system
            if known is not None:
                try:
                    found = known.table(schema, table, _moment(as_of), to_add=to_add)
                    if found is None:
                        self.views[key] = known.identity(StoredView, schema, table)  # before it is read
                        found = known.view(schema, table)
                except UserError as error:
                    raise error.at(span) from None
            self.seconds += time.perf_counter() - started
            if found is None:
                raise self.missing(parts, span)
            found = self._by_our_clock(found)
            self.pinned[key] = found
            self.asked[key] = schema, table
        return found

    def _by_our_clock(self, found: _Found) -> _Found:
        """A table as it is read in the session's time zone: see `Snapshot.in_zone`."""
        if not isinstance(found, DeltaBoundTable) or TIMEZONE not in self.settings:
            return found
        snapshot = found.snapshot.in_zone(known_zone(self.settings[TIMEZONE]))
        return found if snapshot is found.snapshot else replace(found, snapshot=snapshot)

    def pin(self, view: StoredView) -> None:
        """Let a view's name mean this one."""
        name = view.name
        self.pinned[(name.catalog.lower(), name.schema.lower(), name.table.lower(), None)] = view

    def qualified(self, parts: Sequence[str]) -> tuple[str, str, str]:
        """Catalog, schema and table of one to three names."""
        if len(parts) == 1:
            return self.catalog, self.schema, parts[0]
        if len(parts) == 2:
            return self.catalog, parts[0], parts[1]
        return parts[0], parts[1], parts[2]

    def missing(self, parts: Sequence[str], span: Span | None) -> UserError:
        """TABLE_OR_VIEW_NOT_FOUND for names as written."""
        catalog, schema, table = self.qualified(parts)
        shown = ".".join(f"`{p}`" for p in parts)
        known: Any = self._system(catalog, schema) or self.catalogs.get(catalog.lower())
        hint = ""
        if known is not None:
            names = known.tables(schema) + known.other_tables(schema) + known.views(schema)
            near = get_close_matches(table.lower(), [n.lower() for n in names], n=3, cutoff=0.5)
            by_lower = {n.lower(): n for n in names}
            if near:
                hint = " Did you mean " + ", ".join(f"`{by_lower[n]}`" for n in near) + "?"
        return UserError(
            "TABLE_OR_VIEW_NOT_FOUND",
            f"The table or view {shown} cannot be found. Verify the spelling and correctness of the schema and catalog."
            + hint,
            span=span,
        )

    def path(self, format_: str, path: str, as_of: Any, span: Span | None) -> BoundTable:
        """``delta.`/p` `` or ``parquet.`/p` ``."""
        key = (format_, path, as_of)
        found = self.pinned.get(key)
        if found is not None:
            assert not isinstance(found, StoredView)
            return found
        if format_ not in ("delta", "parquet"):
            raise unsupported(f"reading {format_} files by path", span)
        try:
            real = self.paths.resolve(path)
            if format_ == "delta":
                found = self._by_our_clock(bind(TableName("delta", "", path), real, _moment(as_of), self.paths.roots))
            else:
                if as_of is not None:
                    raise unsupported("time travel on Parquet files", span)
                found = PathTable(TableName("parquet", "", path), open_files(real, self.paths.roots))
        except UserError as error:
            raise error.at(span) from None
        self.pinned[key] = found
        return found

    def changes(self, parts: Sequence[str], start: Bound, end: Bound | None, span: Span | None) -> BoundTable:
        """The changes of a table between versions or moments: see `delta.changes.changes_between`."""
        key = ("changes", *parts, start, end)
        found = self.pinned.get(key)
        if found is None:
            table = self.find(parts, None, span)
            if not isinstance(table, DeltaBoundTable):
                if isinstance(table, StoredTable):
                    raise table.refused().at(span)
                raise unsupported(f"table_changes of {table.name}", span)
            try:
                found = ChangesTable(table.name, changes_between(table.snapshot, start, end))
            except UserError as error:
                raise error.at(span) from None
            self.pinned[key] = found
        assert not isinstance(found, StoredView)
        return found

    def view_tree(self, view: TempView) -> Any:
        """The parsed query of a view."""
        return _view_tree(view.query)

    def computed(self, rel: Any, ids: Any) -> Any:
        """The value of a query of one row. Raises what it raises, UnsupportedError where no engine can be asked."""
        if self.compute is None:
            raise unsupported("a constant that would have to be computed here")
        return self.compute(rel, ids)

    def inside(self, view: TempView) -> StatementTables:
        """The same catalogs and pins under the view's names; a view keeps the time zone that it was made under."""
        if view.collation:
            raise unsupported(f"The temporary view `{view.name}` with the default collation {view.collation}")
        if view.settings:
            shown = ", ".join(f"{key} = {value}" for key, value in view.settings)
            raise unsupported(f"The temporary view `{view.name}`, made under {shown},")
        zone = self.settings.get(TIMEZONE)
        if view.time_zone and zone and view.time_zone != zone:
            raise unsupported(
                f"The temporary view `{view.name}`, made in the time zone {view.time_zone} that its text depends on, in the "
                f"time zone {zone}"
            )
        tables = StatementTables(
            self.catalogs, self.paths, view.catalog, view.schema, self.pinned, self.settings, self.seen, self.runtime
        )
        tables.views, tables.asked, tables.compute = self.views, self.asked, self.compute
        return tables

    def witnesses(self) -> tuple[Witness, ...] | None:
        """What shows that all these names mean what they did; None if something cannot be told to."""
        found: list[Witness] = []
        for key, named in self.pinned.items():
            if not isinstance(named, DeltaBoundTable):
                view = self.views.get(key)
                all_seen = [view, *(() if view is None else self._way(key, None))]
            elif key[-1] is not None:  # an older version
                return None
            else:
                all_seen = [witness(named.snapshot), *self._place(key, named)]
            for seen in all_seen:
                if seen is None:
                    return None
                found.append(seen)
        return tuple(found)

    def _place(self, key: Any, table: DeltaBoundTable) -> list[Witness | None]:
        """What shows that a name or path still leads to the folder of a table, where that is not the folder of the name."""
        if key[0] == "delta" and len(key) == 3:
            return [] if key[1] == table.location else [None]  # there may be a link in it
        way = self._way(key, table.location)
        if not table.external:
            return way
        name = table.name
        catalog = self.catalogs[name.catalog.lower()]
        seen = catalog.identity(StoredLocation, name.schema, name.table)  # before it is read
        return [*way, seen if catalog.located(name.schema, name.table) == table.location else None]

    def _way(self, key: Any, folder: str | None) -> list[Witness | None]:
        """What shows that a name still leads to a table's folder, or to that of none."""
        asked = self.asked.get(key)
        return [None] if asked is None else self.catalogs[key[0]].way(*asked, folder)

    def catalog_of(self, name: str, span: Span | None = None) -> Catalog:
        """A catalog by name; NO_SUCH_CATALOG_EXCEPTION."""
        found = self.catalogs.get(name.lower())
        if found is None:
            raise UserError("NO_SUCH_CATALOG_EXCEPTION", f"Catalog `{name}` not found.", span=span)
        return found

    def readable_schema_of(self, parts: Sequence[str], span: Span | None = None) -> tuple[Any, str]:
        """As `schema_of`, with information schemas and the history, which are only read."""
        found = self._system(parts[0] if len(parts) > 1 else self.catalog, parts[-1])
        return self.schema_of(parts, span) if found is None else (found, found.schemas()[0])

    def _system(self, catalog: str, schema: str) -> InformationCatalog | SystemSchema | None:
        """The information schema, the history or what runs, if two names mean it; a catalog called `system` goes first."""
        if catalog.lower() != SYSTEM or SYSTEM in self.catalogs:
            return information_of(catalog, schema, self.catalogs)
        computed = {
            audit.SCHEMA: audit.audited(self.seen),
            query_history.SCHEMA: query_history.recorded(self.seen),
            worker_jobs.RUNTIME: running(self.runtime, self.seen),
        }
        if (found := computed.get(schema.lower())) is not None:
            return found
        return information_of(
            catalog, schema, self.catalogs, [shape for one in computed.values() for shape in one.shapes()]
        )

    def schema_of(self, parts: Sequence[str], span: Span | None = None) -> tuple[Catalog, str]:
        """Catalog and schema of one or two names; SCHEMA_NOT_FOUND."""
        catalog = self.catalog_of(parts[0] if len(parts) > 1 else self.catalog, span)
        if not catalog.has_schema(parts[-1]):
            raise UserError(
                "SCHEMA_NOT_FOUND",
                f"The schema `{catalog.name}`.`{parts[-1]}` cannot be found. Verify the spelling and correctness of the "
                "schema and catalog.",
                span=span,
            )
        spelled = {s.lower(): s for s in catalog.schemas()}
        return catalog, spelled.get(parts[-1].lower(), parts[-1])


def _moment(as_of: Any) -> AsOf | None:
    if as_of is None:
        return None
    kind, value = as_of
    return AsOf(version=value) if kind == "version" else AsOf(timestamp_us=value)


@lru_cache(maxsize=256)
def _view_tree(text: str) -> Any:
    statement = parse_statement(text)
    if not isinstance(statement, Query):
        raise UserError("PARSE_SYNTAX_ERROR", "A view's text must be a query.")
    return statement.tree
