"""A schema of the catalog `system` whose relations the gateway computes: what history and runtime share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gateway.catalog.base import TableName
from gateway.catalog.information import SYSTEM, Relation, Shape


class SystemSchema:
    """A read-only part of `system`, with the reading methods of a `catalog.base.Catalog`.

    Args:
        schema: its only schema.
        relations: by name, in lower case.
    """

    name = SYSTEM
    read_only = True

    def __init__(self, schema: str, relations: Mapping[str, Callable[[TableName], Relation]]) -> None:
        self._schema = schema
        self._relations = relations

    def schemas(self) -> list[str]:
        """Its only schema."""
        return [self._schema]

    def has_schema(self, schema: str) -> bool:
        return schema.lower() == self._schema

    def views(self, schema: str) -> list[str]:
        """The relations."""
        return list(self._relations)

    def tables(self, schema: str) -> list[str]:
        """None."""
        return []

    def outlines(self, schema: str) -> Mapping[str, Any]:
        """None."""
        return {}

    other_tables = functions = tables

    def table(self, schema: str, table: str, as_of: Any = None, *, to_add: bool = False) -> None:
        """None."""

    def view(self, schema: str, view: str) -> Relation | None:
        """The relation of that name."""
        made = self._relations.get(view.lower())
        return None if made is None else made(TableName(SYSTEM, self._schema, view.lower()))

    def shapes(self) -> Iterator[Shape]:
        """What it has, for the information schema."""
        for name, made in self._relations.items():
            yield self._schema, name, made(TableName(SYSTEM, self._schema, name)).schema

    def identity(self, kind: type, schema: str, name: str) -> None:
        """None: nothing shows whether rows of it would be the same."""

    def schema_location(self, schema: str) -> str:
        """There is no folder."""
        return ""
