"""Rows of a result as the page takes them: some of them as text, or a part of them as a file's piece."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.errors import ResourceError
from gateway.protocol import pages
from gateway.protocol.handler import Caller
from gateway.protocol.turns import Turns
from gateway.rest.fields import RestError, invalid
from gateway.rest.manifest import Verbatim
from gateway.service.api import Files, Form, Page, WholeResults

MOST_ROWS = 2_000
_MOST_BYTES = 4 << 20  # of rows as text: an answer ends early
_MOST_PARQUET = 256 << 20  # bytes of rows, which are all in memory meanwhile
_PART = re.compile(r"results/([0-9a-f-]{36})/(csv|arrow|parquet)", re.ASCII)
_FORMS = {"csv": Form.CSV, "arrow": Form.ARROW}
_NUMBER = re.compile(r"[0-9]{1,6}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Results:
    """Results of whoever calls. Thread-safe."""

    service: WholeResults
    turns: Turns
    whole: Turns = field(default_factory=lambda: Turns(2, 1))  # for files that are in memory as a whole

    def some(self, caller: Caller, identifier: str, start: int, count: int) -> dict[str, Any]:
        """Rows from `start` on, each a list of texts; fewer than asked for where they are large. Raises GatewayError."""
        with self.turns.turn(caller.principal.name):
            page = self._page(caller, identifier, start, min(count, MOST_ROWS), _MOST_BYTES)
            data = b"".join(pages.file(_formed(page, Form.JSON)).parts) if page is not None else b"[]"
        return {"start": start, "rows": Verbatim(data)}

    def part(self, caller: Caller, path: str, query: str) -> tuple[str, Sequence[bytes | memoryview]] | None:
        """Media type and bytes of a part of a file; None for another path. Raises RestError, GatewayError."""
        found = _PART.fullmatch(path)
        if found is None:
            return None
        identifier, kind = found.groups()
        number = dict(parse_qsl(query)).get("part", "0")
        if not _NUMBER.fullmatch(number):
            raise invalid("part is not a number")
        if kind == "parquet":
            with self.whole.turn(caller.principal.name):
                try:
                    return "application/vnd.apache.parquet", (self._parquet(caller, identifier),)
                except pa.ArrowException as error:
                    raise invalid(f"The result cannot be a Parquet file: {error}") from error
        with self.turns.turn(caller.principal.name):
            handle = self.service.named_operation(caller.principal, identifier)
            pieces = self.service.outcome(caller.principal, handle).pieces
            if int(number) >= max(1, len(pieces)):
                raise RestError(404, "RESOURCE_DOES_NOT_EXIST", f"The result has no part {number}.")
            piece = pieces[int(number)] if pieces else None
            page = self._page(caller, identifier, piece.start_row, piece.count) if piece is not None else None
            if page is None:
                raise RestError(404, "RESOURCE_DOES_NOT_EXIST", "The result has no rows.")
            file = pages.file(_formed(page, _FORMS[kind]))
            return file.media, file.parts

    def _parquet(self, caller: Caller, identifier: str) -> memoryview:
        handle = self.service.named_operation(caller.principal, identifier)
        outcome = self.service.outcome(caller.principal, handle)
        if sum(piece.size for piece in outcome.pieces) > _MOST_PARQUET:
            raise ResourceError("RESULT_TOO_LARGE", "The result is too large for a Parquet file: take CSV or Arrow.")
        out = pa.BufferOutputStream()
        writer: Any = None
        for piece in outcome.pieces:
            page = self.service.piece(handle.guid, piece.start_row, piece.count)
            stream = b"".join(pages.file(_formed(page, Form.ARROW)).parts)
            table = pa.ipc.open_stream(stream).read_all()
            if writer is None:
                writer = pq.ParquetWriter(out, table.schema)
            writer.write_table(table)
        if writer is None:
            raise RestError(404, "RESOURCE_DOES_NOT_EXIST", "The result has no rows.")
        writer.close()
        return memoryview(out.getvalue())

    def _page(self, caller: Caller, identifier: str, start: int, count: int, size: int | None = None) -> Page | None:
        """Rows of one's own statement, None if there are none. Raises GatewayError."""
        handle = self.service.named_operation(caller.principal, identifier)
        outcome = self.service.outcome(caller.principal, handle)
        if not outcome.metadata.is_query:
            return None
        count = min(count, outcome.rows - start)
        return self.service.piece(handle.guid, start, count, size) if count > 0 else None


def _formed(page: Page, form: Form) -> Page:
    """The same rows, in the form of a file."""
    metadata = page.metadata
    files = metadata.options.files
    if files is None:
        raise RestError(400, "BAD_REQUEST", "The statement was not executed by the console.")
    options = replace(metadata.options, files=Files(form, files.disposition), lz4=False)
    return replace(page, metadata=replace(metadata, options=options))
