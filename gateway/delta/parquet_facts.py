"""What a Parquet file's footer says of its columns and pages, read by Thrift alone: no reader of pages has believed it yet.

Arrow's objects of a footer end the process where its parts contradict each other (a column of another type than the schema's),
so that is looked for before they are asked. Layout: parquet.thrift of the Apache Parquet format.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import TMemoryBuffer

_TAIL = 8  # the footer's length, and PAR1
_OPTIONAL, _REPEATED = 1, 2
_TYPES = 8  # physical ones
# INT96, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, and numbers without a sign: the first statistics compared all as if they had signs.
_UNORDERED, _UNSIGNED = (3, 6, 7), range(11, 15)
_DEEPEST = 100
# Writers that left out how often a column is NULL where that was never, before parquet-rs 53.1.
_COUNTS_SOME = (b"parquet-rs", b"delta-rs", b"datafusion")
_DELTA_PACKED = 5
_HADOOP_LZ4 = 5  # of which the engine reads no page in several parts, as those of more than 256 KiB are
# Writers whose packed numbers come in blocks of 32 or 64, the only ones that the engine can skip some of.
_SMALL_MINIBLOCKS = (*_COUNTS_SOME, b"parquet-cpp", b"parquet-mr version")
# Bytes of a value in statistics, by physical type: BOOLEAN, INT32, INT64, FLOAT, DOUBLE.
_WIDTHS = {0: 1, 1: 4, 2: 8, 4: 4, 5: 8}


class _Struct:
    """Some fields of a struct, None where they are missing; all others are passed over."""

    thrift_spec: tuple[Any, ...] = ()

    def __init_subclass__(cls) -> None:
        for spec in filter(None, cls.thrift_spec):
            setattr(cls, spec[2], None)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def _fields(*told: tuple[int, int, str, Any]) -> tuple[Any, ...]:
    """The specification that Thrift's decoder wants: by number, with gaps."""
    by_number = {number: (number, kind, name, more, None) for number, kind, name, more in told}
    return tuple(by_number.get(number) for number in range(max(by_number) + 1))


def _list_of(struct: type[_Struct]) -> tuple[Any, ...]:
    return (TType.STRUCT, [struct, struct.thrift_spec], False)


class _Levels(_Struct):
    thrift_spec = _fields(
        (2, TType.LIST, "repetitions", (TType.I64, None, False)),
        (3, TType.LIST, "definitions", (TType.I64, None, False)),
    )


class _Statistics(_Struct):
    thrift_spec = _fields(
        *((number, TType.STRING, f"value{number}", "BINARY") for number in (1, 2, 5, 6)), (3, TType.I64, "nulls", None)
    )


class _Column(_Struct):
    thrift_spec = _fields(
        (1, TType.I32, "type", None),
        (2, TType.LIST, "encodings", (TType.I32, None, False)),
        (3, TType.LIST, "path", (TType.STRING, "BINARY", False)),
        (4, TType.I32, "codec", None),
        (5, TType.I64, "values", None),
        (7, TType.I64, "length", None),
        (9, TType.I64, "data", None),
        (11, TType.I64, "dictionary", None),
        (12, TType.STRUCT, "statistics", [_Statistics, _Statistics.thrift_spec]),
        (14, TType.I64, "bloom", None),
        (15, TType.I32, "bloom_length", None),
        (16, TType.STRUCT, "levels", [_Levels, _Levels.thrift_spec]),
    )


class _Encryption(_Struct):
    """How a column is encrypted, of which it matters only that it is."""


class _Chunk(_Struct):
    thrift_spec = _fields(
        (3, TType.STRUCT, "column", [_Column, _Column.thrift_spec]),
        (4, TType.I64, "pages", None),
        (5, TType.I32, "pages_length", None),
        (6, TType.I64, "index", None),
        (7, TType.I32, "index_length", None),
        (8, TType.STRUCT, "encryption", [_Encryption, _Encryption.thrift_spec]),
    )


class _Sorting(_Struct):
    thrift_spec = _fields((1, TType.I32, "column", None))


class _Group(_Struct):
    thrift_spec = _fields(
        (1, TType.LIST, "chunks", _list_of(_Chunk)),
        (3, TType.I64, "rows", None),
        (4, TType.LIST, "sorted", _list_of(_Sorting)),
        (7, TType.I16, "ordinal", None),
    )


class _Element(_Struct):
    thrift_spec = _fields(
        (1, TType.I32, "type", None),
        (3, TType.I32, "repetition", None),
        (4, TType.STRING, "name", "BINARY"),
        (5, TType.I32, "children", None),
        (6, TType.I32, "converted", None),
    )


class _File(_Struct):
    thrift_spec = _fields(
        (2, TType.LIST, "schema", _list_of(_Element)),
        (3, TType.I64, "rows", None),
        (4, TType.LIST, "groups", _list_of(_Group)),
        (6, TType.STRING, "writer", "BINARY"),
    )


class _Location(_Struct):
    thrift_spec = _fields((1, TType.I64, "offset", None), (2, TType.I32, "length", None), (3, TType.I64, "row", None))


class _Index(_Struct):
    thrift_spec = _fields((1, TType.LIST, "pages", _list_of(_Location)))


class Leaf(NamedTuple):
    """A column as the schema has it: its path, physical type, and how often a value may be missing or repeated on the way.

    `unordered`: the oldest statistics, which name no order, have none that its values can be compared by.
    """

    path: tuple[bytes, ...]
    type: int
    definitions: int
    repetitions: int
    unordered: bool


class Facts(NamedTuple):
    """What a footer tells that can be true, and that an engine may take for something else.

    Attributes:
        in_order: whether its row groups are numbered as they come, or not at all: by these numbers the engine counts rows.
        misread: columns, or those with fields, that the engine (DataFusion 55) reads wrongly or not at all: what they have.
    """

    in_order: bool
    misread: Mapping[str, str]


def check_facts(file: pa.NativeFile, size: int) -> Facts:
    """Raise ArrowInvalid unless what the footer of a file of `size` bytes says of its columns can be true."""
    facts = _decoded(_File, _footer(file, size))
    leaves, rows, groups = list(_leaves(facts.schema or [])), 0, facts.groups or []
    misread, writer = dict[str, str](), facts.writer or b""
    for group in groups:
        if group.rows is None or group.rows < 0 or len(group.chunks or []) != len(leaves):
            raise impossible(f"a row group of {group.rows} rows and {len(group.chunks or [])} columns")
        rows += group.rows
        for chunk, leaf in zip(group.chunks or [], leaves, strict=True):
            _check_chunk(chunk, leaf, group.rows, size)
            if (what := _misread(chunk.column, leaf, writer)) is not None:
                misread[_column_of(leaf)] = what
        for key in group.sorted or []:
            if key.column is None or not 0 <= key.column < len(leaves):
                raise impossible(f"rows sorted by the column {key.column} of {len(leaves)}")
            misread[_column_of(leaves[key.column])] = (
                "rows sorted within row groups, which the engine takes for the whole"
            )
    if rows != facts.rows:
        raise impossible(f"{facts.rows} rows, and {rows} in its row groups")
    numbers = [group.ordinal for group in groups]
    in_order = numbers in (list(range(len(groups))), [None] * len(groups))
    return Facts(in_order, misread)


def _column_of(leaf: Leaf) -> str:
    return leaf.path[0].decode(errors="replace")


def _misread(column: Any, leaf: Leaf, writer: bytes) -> str | None:
    """What a column has that the engine takes for something else, or cannot read."""
    told = column.statistics
    if _DELTA_PACKED in (column.encodings or ()) and not writer.startswith(_SMALL_MINIBLOCKS):
        return "numbers packed in blocks of which the engine skips none"
    if column.codec == _HADOOP_LZ4:
        return "pages in LZ4 as Hadoop packs them"
    if told is None:
        return None
    if told.nulls is None and leaf.definitions and not writer.startswith(_COUNTS_SOME):
        return "statistics without the number of NULLs, which the engine takes for none"
    return "old statistics" if leaf.unordered and _is_old(told) else None


def _is_old(told: Any) -> bool:
    """Whether statistics have bounds only where the first version of Parquet had them."""
    if told.value5 is not None and told.value6 is not None:
        return False
    return told.value1 is not None or told.value2 is not None


def check_indexes(file: pa.NativeFile, size: int, names: Collection[str]) -> None:
    """Raise ArrowInvalid for an index that tells of other pages than the columns `names` can have, once `check_facts` is done.

    It takes long for wide files, so it is for those that an engine could not read.
    """
    for group in _decoded(_File, _footer(file, size)).groups or []:
        for chunk in group.chunks or []:
            if chunk.pages is not None and chunk.column.path[0].decode(errors="replace") in names:
                index = _decoded(_Index, bytes(file.read_at(chunk.pages_length or 0, chunk.pages)))
                _check_pages(index.pages or [], chunk.column, group.rows)


def check_bounds(file: pa.NativeFile, size: int, schema: pq.ParquetSchema) -> None:
    """Raise ArrowInvalid for whole numbers, times and decimals whose least value is greater than their greatest.

    By the bytes: of those that are too short Arrow ends the process.
    """
    for group in _decoded(_File, _footer(file, size)).groups or []:
        for at, chunk in enumerate(group.chunks or []):
            told, leaf = chunk.column.statistics, schema.column(at)
            least, greatest = (_whole(value, leaf) for value in (told.value6, told.value5)) if told else (None, None)
            if least is not None and greatest is not None and least > greatest:
                raise impossible(f"the column {leaf.path} with values from {least} to {greatest}")


def _whole(value: bytes | None, leaf: pq.ColumnSchema) -> int | None:
    """A bound as the whole number that stands for it; None where it is none."""
    kind = str(leaf.logical_type)
    if value is not None and leaf.physical_type in ("INT32", "INT64"):
        return int.from_bytes(value, "little", signed="isSigned=false" not in kind)
    decimal = leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and kind.startswith("Decimal")
    return int.from_bytes(value, "big", signed=True) if value is not None and decimal else None


def _check_pages(pages: list[Any], column: Any, rows: int) -> None:
    first = column.data if column.dictionary is None else min(column.data, column.dictionary)
    before = None
    for page in pages:
        if None in (page.offset, page.length, page.row) or not (
            first <= page.offset < page.offset + page.length <= first + column.length
        ):
            told = f"at {page.offset}, {page.length} bytes long"
            raise impossible(f"a page of {tuple(column.path)} in an index {told}, where the column has none")
        if page.row != 0 if before is None else not before < page.row < rows:
            raise impossible(f"a page of {tuple(column.path)} in an index from row {page.row} on, behind {before}")
        before = page.row


def _decoded(kind: type[_Struct], data: bytes) -> Any:
    found = kind()
    protocol = TCompactProtocolAccelerated(TMemoryBuffer(data))
    try:
        if (decode := protocol._fast_decode) is not None:  # noqa: SLF001 (as generated code does)
            decode(found, protocol, [kind, kind.thrift_spec])
        else:  # Thrift was built without its decoder in C
            protocol.readStruct(found, kind.thrift_spec)
    except (TException, EOFError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise impossible(f"what is no Parquet ({type(error).__name__})") from error
    return found


def _footer(file: pa.NativeFile, size: int) -> bytes:
    if size < _TAIL:
        raise impossible("less than a footer")
    length = int.from_bytes(file.read_at(_TAIL, size - _TAIL)[:4], "little")
    return bytes(file.read_at(min(length, size - _TAIL), max(0, size - _TAIL - length)))


def _leaves(schema: list[Any]) -> Iterator[Leaf]:
    """The columns of a schema, whose elements stand before what is in them."""
    above: list[tuple[int, tuple[bytes, ...], int, int]] = []  # how many are still to come, path, levels
    for at, element in enumerate(schema):
        path, definitions, repetitions = above[-1][1:] if above else ((), 0, 0)
        if at:
            if not above or element.name is None or element.repetition not in (0, _OPTIONAL, _REPEATED):
                raise impossible(f"an element of the schema with the repetition {element.repetition}")
            left, *rest = above.pop()
            above += [(left - 1, *rest)] if left > 1 else []  # type: ignore[list-item]
            path = (*path, element.name)
            definitions += element.repetition != 0
            repetitions += element.repetition == _REPEATED
        if element.children:
            if element.children < 0 or len(above) > _DEEPEST:
                raise impossible(f"an element of the schema with {element.children} in it")
            above.append((element.children, path, definitions, repetitions))
        elif at:
            if element.type is None or not 0 <= element.type < _TYPES:
                raise impossible(f"a column of the type {element.type}")
            unordered = element.type in _UNORDERED or element.converted in _UNSIGNED
            yield Leaf(path, element.type, definitions, repetitions, unordered)


def _check_chunk(chunk: Any, leaf: Leaf, rows: int, size: int) -> None:
    column = chunk.column
    if chunk.encryption is not None:
        raise impossible(f"pages of {leaf.path} that are encrypted")
    if column is None or column.type != leaf.type or tuple(column.path or ()) != leaf.path:
        told = (column.type, *(column.path or ())) if column is not None else ()
        raise impossible(f"pages of {told} for the column {(leaf.type, *leaf.path)}")
    values, length, data = column.values or 0, column.length, column.data
    if length is None or data is None:
        raise impossible(f"pages of {leaf.path} without a place")
    first = data if column.dictionary is None else min(data, column.dictionary)
    if first < 0 or length < 0 or max(data, column.dictionary or 0, first + length) > size:
        raise impossible(f"pages of {leaf.path} at {first}, {length} bytes long, in a file of {size}")
    if values < rows or (values and not length) or (values > rows and not leaf.repetitions):
        raise impossible(f"{values} values of {leaf.path} in {length} bytes for {rows} rows")
    for start, extent in _indexes(chunk, column):
        if start < 0 or extent < 0 or start + extent > size:
            raise impossible(f"an index of {leaf.path} at {start}, {extent} bytes long, in a file of {size}")
    told = column.statistics
    if told is not None and leaf.type in _WIDTHS:
        for value in (told.value1, told.value2, told.value5, told.value6):
            if value is not None and len(value) != _WIDTHS[leaf.type]:
                raise impossible(f"statistics of {leaf.path} with {len(value)} bytes")
    if column.levels is not None:
        for told, deepest in (
            (column.levels.definitions, leaf.definitions),
            (column.levels.repetitions, leaf.repetitions),
        ):
            if told and len(told) != deepest + 1:
                raise impossible(f"{len(told)} levels of {leaf.path}, which has {deepest + 1}")


class Impossible(pa.ArrowInvalid):  # type: ignore[misc]
    """A footer that cannot be true."""


def _indexes(chunk: Any, column: Any) -> Iterator[tuple[int, int]]:
    """Where the indexes of a column's pages and its filter are, those that there are: begin and length."""
    if chunk.pages is not None:
        yield chunk.pages, chunk.pages_length or 0
    if chunk.index is not None:
        yield chunk.index, chunk.index_length or 0
    if column.bloom is not None:
        yield column.bloom, column.bloom_length or 0


def impossible(what: str) -> Impossible:
    """The error for a footer that cannot be true; `what` ends its sentence."""
    return Impossible(f"the footer tells what cannot be: {what}")
