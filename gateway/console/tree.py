"""Catalogs, schemas, tables, columns, as metadata calls tell them: for the tree and for what the editor completes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gateway.protocol import versions
from gateway.protocol.handler import Caller
from gateway.rest import fields
from gateway.rest.call import Asked, Path
from gateway.service.api import MetadataRequest, OpenSessionRequest, Orientation, WholeResults

PLACE: fields.Fields = {"catalog": fields.text, "schema": fields.text, "table": fields.text}
_MOST = 20_000
_WAIT_SECONDS = 30.0
# What is listed, below what is named: kind of the call, the columns of its answer, and what they are called here.
_LISTS = {
    0: ("catalogs", {"TABLE_CAT": "name"}),
    1: ("schemas", {"TABLE_SCHEM": "name"}),
    2: ("tables", {"TABLE_NAME": "name", "TABLE_TYPE": "type", "REMARKS": "comment"}),
    3: (
        "columns",
        {"COLUMN_NAME": "name", "TYPE_NAME": "type", "IS_NULLABLE": "nullable", "REMARKS": "comment"},
    ),
}
_FILES = {"FILE": "file", "PARTITION": "partition", "BYTES": "bytes", "ROWS": "rows", "HAS_DELETED": "deleted"}
_WILD = str.maketrans({c: f"\\{c}" for c in "\\%_*."})


@dataclass(frozen=True, slots=True)
class Tree:
    """What there is in the catalogs, for whoever calls."""

    service: WholeResults

    def below(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """List what is below a catalog, a schema or a table; the catalogs without any."""
        given = [asked["catalog"], asked["schema"], asked["table"]]
        named = next((i for i, name in enumerate(given) if not name), len(given))
        if any(given[named:]):
            raise fields.invalid("a table needs its schema, a schema its catalog")
        kind, columns = _LISTS[named]
        schema, table = (None if name is None else name.translate(_WILD) for name in given[1:])
        request = MetadataRequest(
            kind, given[0], schema if named > 1 else None, table if named > 2 else None, wait_seconds=_WAIT_SECONDS
        )
        rows = self._rows(caller, request, columns)
        return {"kind": kind, "items": rows[:_MOST], "more": len(rows) > _MOST}

    def files(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """List the data files of a table."""
        if not (asked["catalog"] and asked["schema"] and asked["table"]):
            raise fields.invalid("catalog, schema and table are needed")
        place = asked["catalog"], asked["schema"], asked["table"]  # names, not patterns
        request = MetadataRequest("files", *place, wait_seconds=_WAIT_SECONDS)
        return {"items": self._rows(caller, request, _FILES)}

    def _rows(self, caller: Caller, request: MetadataRequest, columns: dict[str, str]) -> list[dict[str, Any]]:
        with self._answered(caller, request) as handle:
            names = [field.name for field in self.service.result_metadata(caller.principal, handle).schema.fields]
            page = self.service.fetch(caller.principal, handle, Orientation.FIRST, _MOST + 1, None, None)
            found: list[dict[str, Any]] = []
            for part in page.parts:
                values = {
                    told: part.batch.column(names.index(name)).to_pylist()
                    for name, told in columns.items()
                    if name in names
                }
                found += [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
            return found

    @contextmanager
    def _answered(self, caller: Caller, request: MetadataRequest) -> Iterator[Any]:
        """The handle of an answered call, in a session of its own."""
        opened = OpenSessionRequest(caller.principal, versions.SPARK_V9, client=caller.client)
        session = self.service.open_session(opened).handle
        try:
            yield self.service.metadata(caller.principal, session, request).handle
        finally:
            self.service.close_session(caller.principal, session)
