"""Plain Parquet files and folders (``parquet.`/p` ``) as a table: a snapshot without a log.

The columns are those that the files hold, by Spark's rules for Parquet types. All files must hold the same columns with the
same types; partition folders, sub-folders and differing files are refused by name, because what Spark answers there depends on
settings and on chance.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gateway import sqltypes as t
from gateway.delta.containment import Within, as_text, end_of_link, is_text, look
from gateway.delta.features import Protocol
from gateway.delta.footers import one_valued, opened_parquet, unreadable_file
from gateway.delta.listed import Files
from gateway.delta.log import LOG
from gateway.delta.misread import MISREAD, MOMENTS, ONE_VALUE
from gateway.delta.moments import leaf_count, suspects
from gateway.delta.scan import missing_file
from gateway.delta.schema import Column, UnreadableType
from gateway.delta.table import NO_VERSION, Contents, Snapshot
from gateway.errors import UnsupportedError, UserError

_MOST_FILES = 10_000
_ENUM = "ENUM"  # of Parquet's types


def open_files(path: str, within: Within = (), only: Sequence[str] | None = None, merge: bool = False) -> Snapshot:
    """The Parquet file or the files of the folder `path` (real), or `only` some, as a snapshot with version `NO_VERSION`.

    With `merge` files may have columns that others have not, as with Spark's mergeSchema. Links in it must lead `within`
    folders, by default its own. Raises UserError PATH_NOT_FOUND, PATH_NOT_ALLOWED,
    UNABLE_TO_INFER_SCHEMA (no files) and UnsupportedError for what is not read.
    """
    within = within or (path,)
    paths = listed(path, within) if only is None else list(only)
    columns: tuple[Column, ...] | None = None
    counts: list[int] = []
    suspects: dict[str, dict[str, Any]] = {}
    sizes: list[int] = []
    for file in paths:
        try:
            stat = look(file, within)
        except OSError as error:
            raise missing_file(path, file) from error
        found, rows, facts = _described(file, stat.st_size, (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns), within)
        suspects[file] = {**_names(found), **facts}
        sizes.append(stat.st_size)
        counts.append(rows)
        if columns is None:
            columns = found
        elif columns != found and (not merge or (columns := _merged(columns, found)) is None):
            text = f"Parquet files with different columns ({os.path.basename(paths[0])}, {os.path.basename(file)} in {path})"
            raise UnsupportedError("UNSUPPORTED_FEATURE", f"{text} are not supported.")
    if columns is None:
        raise UserError("UNABLE_TO_INFER_SCHEMA", "Unable to infer schema for Parquet.")
    files = Files(
        paths=paths,
        logged=paths,
        sizes=np.array(sizes, dtype=np.int64),
        num_records=pa.array(counts, pa.int64()),
        null_count=None,
        minimum=None,
        maximum=None,
        partitions={},
        deleted={},
        mended=False,
    )
    contents: Contents = {p: (None, suspects[p]) for p in paths}  # the names that each was just seen to have
    return Snapshot(
        path, NO_VERSION, Protocol(1, 2), columns, (), {}, None, "none", files, within=within, contents=contents
    )


def _merged(known: tuple[Column, ...], found: tuple[Column, ...]) -> tuple[Column, ...] | None:
    """The columns of several files with those that only another one has behind them; None where one is two things."""
    by_name = {column.name.casefold(): column for column in known}
    others = [(by_name.get(column.name.casefold()), column) for column in found]
    if any(own is not None and own != column for own, column in others):
        return None
    return (*known, *(column for own, column in others if own is None))


def listed(path: str, within: Within) -> list[str]:
    """The files of a folder, without hidden ones; a file is its own. Raises as `open_files`."""
    if not os.path.lexists(path):
        raise UserError("PATH_NOT_FOUND", f"Path does not exist: {path}.")
    if not os.path.isdir(path):
        return [path]
    paths = []
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name == LOG:
                text = f"{path} is a Delta table: read it as delta.`{path}`."
                raise UserError("DELTA_INVALID_FORMAT", text)
            if entry.name.startswith((".", "_")):
                continue
            if not is_text(entry.name):
                raise UnsupportedError(
                    "UNSUPPORTED_FEATURE", f"A file whose name is not UTF-8 ({as_text(entry.path)})."
                )
            if entry.is_symlink():
                end_of_link(entry.path, within)
            if entry.is_dir():
                raise UnsupportedError(
                    "UNSUPPORTED_FEATURE", f"A sub-folder in a folder of Parquet files ({entry.path})."
                )
            paths.append(entry.path)
    if len(paths) > _MOST_FILES:
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"A folder of more than {_MOST_FILES} files ({path}).")
    return sorted(paths)


@lru_cache(maxsize=_MOST_FILES)
def _described(
    path: str, size: int, _marks: tuple[int, int, int], within: Within
) -> tuple[tuple[Column, ...], int, dict[str, Any]]:
    """Columns and rows of one file, and which statistics mislead, from its footer, read once while it is the same file.

    Its times alone do not tell: who copies with `cp -p` or unpacks an archive gives another file the same.
    """
    try:
        with opened_parquet(path, within, size) as file:
            schema, leaves, rows = file.schema_arrow, file.schema, file.metadata.num_rows
            misread = dict(file.facts.misread)
            facts = {ONE_VALUE: one_valued(file.metadata), MISREAD: misread, MOMENTS: suspects(file)}
        # The leaves in order: only they tell INT96 (an instant) from a local timestamp, and an ENUM (a text) from bytes.
        kinds = iter([_kind(leaves.column(i)) for i in range(len(leaves))])
        of_fields = [(f, list(islice(kinds, leaf_count(f.type)))) for f in schema]
        misread |= {f.name: "texts that it takes for bytes" for f, found in of_fields if _ENUM in found}
        columns = tuple(_column(f.name, f.type, iter(found)) for f, found in of_fields)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # names of columns and zones are texts
        raise unreadable_file(path, error) from error
    counts = Counter(c.name.casefold() for c in columns)
    for column in columns:
        if counts[column.name.casefold()] > 1:
            text = f"The column {t.quote_if_needed(column.name)} appears more than once in {path}."
            raise UserError("COLUMN_ALREADY_EXISTS", text)
    return columns, rows, facts


def _column(name: str, arrow: pa.DataType, physical: Iterator[str]) -> Column:
    types = pa.types
    if types.is_dictionary(arrow):
        return _column(name, arrow.value_type, physical)
    if types.is_struct(arrow):
        children = tuple(_column(f.name, f.type, physical) for f in arrow)
        fields = tuple(t.StructField(c.name, c.type) for c in children)
        return Column(name, name, None, t.struct(*fields), children=children)
    if types.is_map(arrow):
        key, value = _column("key", arrow.key_type, physical), _column("value", arrow.item_type, physical)
        return Column(name, name, None, t.map_of(key.type, value.type), children=(key, value))
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        element = _column("element", arrow.value_type, physical)
        return Column(name, name, None, t.array(element.type), children=(element,))
    return Column(name, name, None, _leaf(arrow, next(physical)))


def type_of(arrow: pa.DataType) -> t.DataType:
    """The type of values in memory, which are of those that `delimited` and `json_lines` make."""
    if pa.types.is_struct(arrow):
        return t.struct(*(t.StructField(f.name, type_of(f.type)) for f in arrow))
    return t.array(type_of(arrow.value_type)) if pa.types.is_list(arrow) else _LEAVES[arrow]


_LEAVES: dict[pa.DataType, t.DataType] = {
    pa.bool_(): t.BOOLEAN,
    pa.int8(): t.TINYINT,
    pa.int16(): t.SMALLINT,
    pa.int32(): t.INT,
    pa.int64(): t.BIGINT,
    pa.uint8(): t.SMALLINT,
    pa.uint16(): t.INT,
    pa.uint32(): t.BIGINT,
    pa.uint64(): t.decimal(20, 0),
    pa.float32(): t.FLOAT,
    pa.float64(): t.DOUBLE,
    pa.string(): t.STRING,
    pa.large_string(): t.STRING,
    pa.string_view(): t.STRING,
    pa.binary(): t.BINARY,
    pa.large_binary(): t.BINARY,
    pa.binary_view(): t.BINARY,
    pa.date32(): t.DATE,
}


def _kind(leaf: pq.ColumnSchema) -> str:
    """The physical type of a Parquet leaf, or ENUM."""
    return _ENUM if leaf.logical_type.type == _ENUM else str(leaf.physical_type)


def _leaf(arrow: pa.DataType, physical: str) -> t.DataType:
    """Spark's type of a Parquet leaf; an UnreadableType for those that Spark or we do not read."""
    if physical == _ENUM:
        return t.STRING
    if arrow in _LEAVES:
        return _LEAVES[arrow]
    if pa.types.is_decimal128(arrow) and 0 <= arrow.scale <= arrow.precision:
        return t.decimal(arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow):
        if physical == "INT96":
            return t.TIMESTAMP
        if arrow.unit != "ns":
            return t.TIMESTAMP if arrow.tz is not None else t.TIMESTAMP_NTZ
    if pa.types.is_fixed_size_binary(arrow):
        return t.BINARY
    return UnreadableType(str(arrow).upper())


def _names(columns: tuple[Column, ...]) -> dict[str, Any]:
    return {c.physical: _names(c.children) for c in columns}
