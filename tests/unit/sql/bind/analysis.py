"""Binds statements over made-up tables: what analysis says, without data or an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.catalog.base import TableName
from gateway.errors import Span, UserError
from gateway.sql.bind.parameters import bound_parameters
from gateway.sql.bind.resolve import BoundQuery
from gateway.sql.compile import bind
from gateway.sql.read.command_nodes import Query
from gateway.sql.read.commands import parse_command
from gateway.sql.read.statement import read_statement
from gateway.sql.typed.catalogue import Clock, Context
from gateway.sqltypes import StructType
from gateway.worker_jobs import Parameter, TempView


@dataclass(frozen=True, slots=True)
class MadeUpTable:
    """A `catalog.base.BoundTable` of which only the schema matters."""

    name: TableName
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    version: int | None = None
    num_rows: int | None = None
    location: str = "/nowhere"
    comment: str | None = None

    @property
    def properties(self) -> dict[str, str]:
        return {}

    def scan(self, columns: Sequence[str], predicates: Sequence[Any], *, floats_compared: bool = True) -> Any:
        raise AssertionError("analysis reads no rows")


class MadeUpTables:
    """`relations.Tables` over a dict of schemas."""

    def __init__(self, schemas: Mapping[str, StructType]) -> None:
        self._tables = {n: MadeUpTable(TableName("main", "default", n), s) for n, s in schemas.items()}

    def table(self, parts: Sequence[str], as_of: Any, span: Span | None) -> MadeUpTable:
        found = self._tables.get(parts[-1].lower())
        if found is None:
            raise UserError("TABLE_OR_VIEW_NOT_FOUND", f"No table {parts}.", span=span)
        return found

    def path(self, format_: str, path: str, as_of: Any, span: Span | None) -> Any:
        raise AssertionError("no paths here")

    def changes(self, parts: Sequence[str], start: Any, end: Any, span: Span | None) -> Any:
        raise AssertionError("no changes here")

    def view_tree(self, view: TempView) -> Any:
        command = parse_command(read_statement(view.query))
        assert isinstance(command, Query)
        return command.tree

    def computed(self, rel: Any, ids: Any) -> int | None:
        raise NotImplementedError

    def inside(self, view: TempView) -> MadeUpTables:
        return self


def context(zone: str = "UTC") -> Context:
    """A session's context at a fixed instant."""
    return Context(Clock(1_700_000_000_000_000, zone))


def analysed(
    sql: str,
    tables: Mapping[str, StructType] | None = None,
    views: Mapping[str, TempView] | None = None,
    zone: str = "UTC",
    parameters: Sequence[Parameter] = (),
) -> BoundQuery:
    """The bound query of `sql`; raises what analysis raises."""
    statement = read_statement(sql)
    command = parse_command(statement)
    assert isinstance(command, Query), sql
    values = bound_parameters(statement.markers, parameters, context(zone))
    query, _ = bind(command.tree, context(zone), MadeUpTables(tables or {}), views or {}, values)
    return query


def failure(error: Any) -> str:
    """A raised error as the corpora write it: ``CONDITION/SQLSTATE``."""
    return f"{error.condition}/{error.sqlstate}"
