"""Names and paths of a text as Spark may read them, and Spark's names in what it answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from gateway.catalog.base import Catalog, Draft, TableName
from gateway.catalog.objects import StoredFunction, StoredTable, StoredView
from gateway.catalog.paths import AllowedRoots
from gateway.delta import log
from gateway.delta.containment import check_tree, look
from gateway.delta.log_paths import check_for_others, logged_expressions
from gateway.delta.spark_schemas import told_expressions
from gateway.engine.base import Statement
from gateway.errors import UserError, unsupported
from gateway.runner import objects
from gateway.runner.tables import StatementTables
from gateway.sql.bind.parameters import Given
from gateway.sql.functions.names import SPARK_NAMES
from gateway.sql.read.statement import Statement as Read
from gateway.sql.spark.allowed import check_expression
from gateway.sql.spark.respell import (
    SPARK_CATALOG,
    Head,
    Mention,
    Naming,
    Respelt,
    database,
    names_back,
    respell,
)
from gateway.sqltypes import quote_part

_GLOB = frozenset("*?[]{}")


class Names:
    """Names in `catalogs` and `paths` as Spark knows them, and back; `tells_user` as for `sql.spark.respell.Naming`."""

    def __init__(self, catalogs: Mapping[str, Catalog], paths: AllowedRoots, tells_user: bool) -> None:
        self.catalogs = catalogs
        self.paths = paths
        self._tells_user = tells_user

    def tables(self, job: Statement) -> StatementTables:
        """Names as the job's session sees them."""
        return StatementTables(self.catalogs, self.paths, job.session.catalog, job.session.schema)

    def respelt(
        self,
        statement: Read,
        catalog: str,
        schema: str,
        parameters: dict[int | str, Given] | None = None,
        views: frozenset[str] = frozenset(),
        head: Head | None = None,
        pins: bool = True,
        spelt_out: bool = False,
        nanoseconds: bool = False,
    ) -> Respelt:
        """A statement's text for Spark, under a current catalog and schema."""
        out = self._exists if spelt_out else None
        naming = Naming(catalog, schema, self._has_schema, self._path, self._location, self._version, views, pins, out)
        naming = replace(naming, nanoseconds=nanoseconds, tells_user=self._tells_user)
        return respell(statement, naming, parameters or {}, head)

    def kept(self, statement: Read, catalog: str, schema: str, head: Head | None, spelt_out: bool) -> Respelt:
        """A text that a catalog keeps, for Spark."""
        return self.respelt(statement, catalog, schema, head=head, pins=False, spelt_out=spelt_out)

    def check_targets(self, respelt: Respelt) -> None:
        """Raise UserError for a statement that writes to a catalog that is only read."""
        for mention in respelt.mentions:
            known = self.catalogs.get(mention.catalog.lower())
            if mention.is_target and known is not None and known.read_only:
                raise UserError("UNSUPPORTED_FEATURE", f"The catalog `{known.name}` is read-only.", span=mention.span)

    def folder(self, mention: Mention) -> str | None:
        """The real folder of a table, None if there is none."""
        known = self.catalogs.get(mention.catalog.lower())
        folder = known.table_folder(mention.schema, mention.table) if known is not None else None
        return os.path.realpath(folder) if folder is not None else None

    def named(self, text: str) -> str:
        """An error's text with the gateway's names in it."""
        return names_back(text, list(self.catalogs))

    def named_in(self, respelt: Respelt, text: str) -> str:
        """The same of a statement's error: a table that it makes has its own name, too."""
        for mention in respelt.mentions:
            if mention.draft is not None:
                text = text.replace(mention.draft.name, mention.table)
        return self.named(text)

    def column(self, name: str) -> str:
        """A column's name: one that nobody named may hold a function's full name."""
        return self.named(name) if f"{SPARK_CATALOG}." in name else name

    def _has_schema(self, catalog: str, schema: str) -> bool:
        known = self.catalogs.get(catalog.lower())
        return known is not None and known.has_schema(schema)

    def _path(self, path: str) -> str:
        """A path that a text names, as Spark may read it: all that is below it is looked at."""
        real = self.paths.resolve(path)
        if not _GLOB.isdisjoint(real):
            raise unsupported(
                f"A path with one of the characters {' '.join(sorted(_GLOB))}, which Spark reads as a pattern,"
            )
        if log.has_log(real):
            check_for_others(real, self.paths.roots, writes=False)
            evaluated = logged_expressions(real, self.paths.roots, writes=False)
        else:
            if os.path.isdir(real):
                check_tree(real, self.paths.roots)
            else:
                look(real, self.paths.roots)
            evaluated = told_expressions(real, self.paths.roots)
        for text in evaluated:
            check_expression(text)
        return real

    def _location(self, catalog: str, schema: str, table: str) -> Draft:
        """A table that is there is made anew in its place, another one where nobody looks."""
        known = self.catalogs.get(catalog.lower())
        if known is None or known.read_only:
            raise UserError("UNSUPPORTED_FEATURE", f"The catalog `{catalog}` is read-only: no table can be made in it.")
        folder = known.table_location(schema, table)
        if known.located(schema, table) is not None or known.table_folder(schema, table) is not None:
            return Draft(folder)
        return known.draft()

    def _version(self, catalog: str, schema: str, table: str) -> int | None:
        known = self.catalogs.get(catalog.lower())
        folder = known.table_folder(schema, table) if known is not None else None
        versions = log.commit_versions(folder) if folder is not None else []
        return versions[-1] if versions else None

    def _exists(self, is_function: bool, catalog: str, schema: str, name: str) -> bool:
        """Whether the catalogs have a function that is none of Spark's own, or a table or view, of that name."""
        known = self.catalogs.get(catalog.lower())
        if known is None:
            return False
        if is_function:
            return name.lower() not in SPARK_NAMES and known.identity(StoredFunction, schema, name) is not None
        folder = known.table_folder(schema, name)
        return folder is not None or any(known.identity(k, schema, name) is not None for k in (StoredTable, StoredView))


def spark_name(name: TableName) -> str:
    """The full name that Spark knows an object by."""
    return f"spark_catalog.{quote_part(database(name.catalog, name.schema))}.{quote_part(name.table.lower())}"


def spark_parts(place: objects.Place) -> tuple[str, str]:
    """Database and name in Spark."""
    return database(place.catalog.name, place.schema), place.name
