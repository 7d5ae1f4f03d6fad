"""Results on the wire: the metadata of a result, and a page of its rows in the one form that its client reads.

The form follows from what was negotiated when the statement ran, and from the size of the result, so that every page of it has
it: inline Arrow batches if the client can read them (links to Arrow streams if it takes those too, and the result is large),
else columns; metadata calls are always columnar. Exactly one field of TRowSet is set
(Go reads an empty list of columns as a columnar page), `resultFormat` and `lz4Compressed` always.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gateway.errors import ServerError
from gateway.observability import counter
from gateway.protocol import codec, convert, versions
from gateway.protocol.writer import Encoded, Spliced
from gateway.results import arrow_ipc, columnar, texts
from gateway.results.arrow_ipc import ArrowOptions
from gateway.results.lz4_frames import Framing
from gateway.results.spool import Piece
from gateway.service.api import Form, Page, ResultMetadata, ResultOptions
from gateway.sqltypes import Slot, StructType, struct
from gateway.thrift_gen.TCLIService import ttypes

_COLUMNS: dict[Slot, type[Any]] = {
    Slot.BOOL: ttypes.TBoolColumn,
    Slot.BYTE: ttypes.TByteColumn,
    Slot.I16: ttypes.TI16Column,
    Slot.I32: ttypes.TI32Column,
    Slot.I64: ttypes.TI64Column,
    Slot.DOUBLE: ttypes.TDoubleColumn,
    Slot.STRING: ttypes.TStringColumn,
    Slot.BINARY: ttypes.TBinaryColumn,
}
_EMPTY = struct()
_COLUMN = 16  # characters that a column counts for beside its name and type

# Identifier of an operation, first row, number of rows -> an absolute URL, and when it expires in epoch milliseconds.
LinkTo = Callable[[bytes, int, int], tuple[str, int]]


def is_arrow(metadata: ResultMetadata) -> bool:
    """Whether rows of this result travel as Arrow batches."""
    return metadata.options.arrow and not metadata.is_metadata


def _shown(metadata: ResultMetadata) -> StructType:
    """The schema that clients are told: statements without a result show one empty column."""
    return metadata.schema if metadata.is_query else convert.NO_RESULT


def _arrow_schema(metadata: ResultMetadata) -> StructType:
    """The Arrow schema of a statement without a result has no column at all, unlike its Thrift schema."""
    return metadata.schema if metadata.is_query else _EMPTY


def _arrow_options(options: ResultOptions) -> ArrowOptions:
    return ArrowOptions(
        decimal_as_arrow=options.decimal_as_arrow,
        timestamp_as_arrow=options.timestamp_as_arrow,
        complex_as_arrow=options.complex_as_arrow,
        interval_as_arrow=options.interval_as_arrow,
        null_as_arrow=options.null_as_arrow,
    )


def _framing(options: ResultOptions, stored: bool = False) -> Framing:
    if not options.lz4:
        return Framing.NONE
    return Framing.STORED if stored else Framing.PACKED


def metadata(metadata: ResultMetadata) -> Encoded:
    """TGetResultSetMetadataResp, ready-made: it goes with every page, and programs repeat their statements.

    Of long ones fewer are kept, and of those that names without end make so long none.
    """
    size = sum(_COLUMN + len(field.name) + len(field.type.sql) for field in metadata.schema.fields)
    make = next((made for most, made in _KEPT if size <= most), _encoded)
    return make(metadata)


def _encoded(metadata: ResultMetadata) -> Encoded:
    arrow = is_arrow(metadata)
    message = None
    if arrow and versions.has_arrow_schema(metadata.protocol):
        schema = _arrow_schema(metadata)
        message = arrow_ipc.schema_message(schema, _arrow_options(metadata.options), metadata.time_zone)
    formats = ttypes.TSparkRowSetType
    return Encoded(
        codec.encode_struct(
            ttypes.TGetResultSetMetadataResp(
                status=convert.success(),
                schema=convert.table_schema(_shown(metadata), metadata.options),
                resultFormat=formats.URL_BASED_SET
                if metadata.linked
                else (formats.ARROW_BASED_SET if arrow else formats.COLUMN_BASED_SET),
                lz4Compressed=arrow and metadata.options.lz4,
                arrowSchema=message,
                cacheLookupResult=ttypes.TCacheLookupResult.CACHE_INELIGIBLE,
                isStagingOperation=metadata.is_staging,
            )
        )
    )


# For so many characters of a schema; some four bytes are kept for each.
_KEPT = ((16 << 10, lru_cache(maxsize=256)(_encoded)), (512 << 10, lru_cache(maxsize=16)(_encoded)))


def row_set(page: Page, link: LinkTo) -> Any:
    """TRowSet of a page; `link` makes links to its pieces. Rows that are not packed are one batch for who `reads_on`.

    Raises the encodings' errors (UNSUPPORTED_RESULT_TYPE, NUMERIC_VALUE_OUT_OF_RANGE …).
    """
    metadata = page.metadata
    rows = page.rows
    if rows and not metadata.is_query:
        raise ServerError("INTERNAL_ERROR", f"A statement without a result delivered {rows} rows.")
    parts = page.parts if metadata.is_query else ()
    result = ttypes.TRowSet(startRowOffset=page.start_row_offset, rows=[])
    if metadata.linked:
        result.resultLinks = [
            _result_link(piece, *link(page.operation, piece.start_row, piece.count)) for piece in page.pieces
        ]
        rows = sum(piece.count for piece in page.pieces)
    elif is_arrow(metadata):
        result.arrowBatches = [
            ttypes.TSparkArrowBatch(batch=batch.data, rowCount=batch.rows)
            for batch in arrow_ipc.encode(
                parts,
                _arrow_schema(metadata),
                _arrow_options(metadata.options),
                metadata.time_zone,
                _framing(metadata.options),
            )
        ]
        if metadata.options.reads_on and len(result.arrowBatches) > 1 and not metadata.options.lz4:
            # Messages stand behind one another.
            whole = b"".join(batch.batch for batch in result.arrowBatches)
            result.arrowBatches = [ttypes.TSparkArrowBatch(batch=whole, rowCount=rows)]
        counter("result_bytes_total", sum(len(batch.batch) for batch in result.arrowBatches), format="arrow")
    else:
        payloads = columnar.encode([part.batch for part in parts], _shown(metadata), time_zone=metadata.time_zone)
        result.columns = _columns(payloads)
        counter("result_bytes_total", sum(p.size for p in payloads), format="columnar")
    counter("result_rows_total", rows)
    return result


def _result_link(piece: Piece, url: str, expires_ms: int) -> Any:
    # Node and JDBC read the time as milliseconds; Python and Go compare it with seconds, which are always fewer.
    return ttypes.TSparkArrowResultLink(
        fileLink=url, expiryTime=expires_ms, startRowOffset=piece.start_row, rowCount=piece.count, bytesNum=piece.size
    )


@dataclass(frozen=True, slots=True)
class File:
    """Rows as what a link leads to: media type, and the bytes in parts."""

    media: str
    parts: Sequence[bytes | memoryview]


def file(page: Page) -> File:
    """The rows of a page in the form that their client asked for. Raises the encoding's errors."""
    metadata = page.metadata
    form = metadata.options.files.form if metadata.options.files is not None else Form.ARROW
    found = _FILES[form](page)
    counter("result_bytes_total", sum(map(len, found.parts)), format="link")
    return found


def _arrow_file(page: Page) -> File:
    metadata = page.metadata
    # Inside of answers frames are packed for everybody: clients take longer to read long ones than to unpack them.
    framing = _framing(metadata.options, stored=metadata.options.near)
    schema, options = _arrow_schema(metadata), _arrow_options(metadata.options)
    parts = arrow_ipc.stream(page.parts, schema, options, metadata.time_zone, framing)
    return File("application/vnd.apache.arrow.stream", parts)


def _json_file(page: Page) -> File:
    return File("application/json", (texts.json_rows(page.parts, page.metadata.schema, page.metadata.time_zone),))


def _csv_file(page: Page) -> File:
    header = page.start_row_offset == 0  # of the whole result: files are put behind one another
    zone = page.metadata.time_zone
    return File("text/csv", (texts.csv_rows(page.parts, page.metadata.schema, zone, header=header),))


_FILES: dict[Form, Callable[[Page], File]] = {Form.ARROW: _arrow_file, Form.JSON: _json_file, Form.CSV: _csv_file}


def _columns(payloads: Sequence[columnar.ColumnPayload]) -> list[Any]:
    return [
        ttypes.TColumn(**{p.slot.value: _COLUMNS[p.slot](values=Spliced(p.count, p.parts), nulls=p.nulls)})
        for p in payloads
    ]


def log_page(lines: Sequence[str]) -> Any:
    """TRowSet of lines of an operation's log: one column of text, as beeline and impyla read it."""
    column = ttypes.TColumn(stringVal=ttypes.TStringColumn(values=list(lines), nulls=b""))
    return ttypes.TRowSet(startRowOffset=0, rows=[], columns=[column])
