"""Of which columns files tell statistics: the first ones of a table, fields of structs counted, or those that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gateway import sqltypes as t
from gateway.delta.schema import Column
from gateway.errors import ServerError, UserError

#: How many columns have statistics, -1 for all; and which ones, whatever their number.
NUMBER, NAMES = "delta.dataSkippingNumIndexedCols", "delta.dataSkippingStatsColumns"
_NUMBER = 32
# Types whose bounds are kept, by which files can be told apart.
SKIPPED_BY = frozenset(
    {
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "STRING",
    }
)
TOLD_BY = SKIPPED_BY | {"CHAR", "VARCHAR"}  # to Delta they are STRINGs
Path = tuple[str, ...]
Types = Iterator[tuple[Path, t.DataType]]


def indexed(
    columns: Sequence[Column], partition_by: Sequence[str], properties: Mapping[str, str]
) -> list[list[Column]]:
    """The columns of files that have statistics, each as the way to it: a column, and within structs their fields.

    Raises ServerError DELTA_LOG_CORRUPT for properties of a table that Delta would not have taken.
    """
    stored = [column for column in columns if column.name not in partition_by]
    leaves = [way for column in stored for way in _leaves([column])]
    wanted = _wanted([tuple(c.name for c in way) for way in leaves], properties)
    return [leaves[i] for i in wanted]


def indexed_paths(schema: t.StructType, partition_by: Sequence[str], properties: Mapping[str, str]) -> list[Path]:
    """The same as paths of names."""
    stored = [f for f in schema.fields if f.name not in partition_by]
    leaves = [path for path, _ in leaves_of((), t.struct(*stored))]
    return [leaves[i] for i in _wanted(leaves, properties)]


def _leaves(way: list[Column]) -> Iterator[list[Column]]:
    if not isinstance(way[-1].type, t.StructType):
        yield way
        return
    for child in way[-1].children:
        yield from _leaves([*way, child])


def leaves_of(path: Path, data_type: t.DataType) -> Types:
    """The fields of structs within a type, at any depth, that are none themselves."""
    if not isinstance(data_type, t.StructType):
        yield path, data_type
        return
    for f in data_type.fields:
        yield from leaves_of((*path, f.name), f.type)


def _wanted(leaves: Sequence[Path], properties: Mapping[str, str]) -> list[int]:
    named = properties.get(NAMES)
    if named is not None:
        lower = [_folded(path) for path in _parsed(named)]
        return [i for i, leaf in enumerate(leaves) if any(_folded(leaf)[: len(one)] == one for one in lower)]
    count = number_of(properties)
    return list(range(len(leaves) if count < 0 else min(count, len(leaves))))


def number_of(properties: Mapping[str, str]) -> int:
    """How many columns have statistics where none are named; negative for all."""
    text = properties.get(NUMBER, str(_NUMBER))
    try:
        return int(text)
    except ValueError as error:
        raise ServerError("DELTA_LOG_CORRUPT", f"The table has {text[:40]!r} as {NUMBER}.") from error


def _folded(path: Path) -> Path:
    return tuple(name.lower() for name in path)


def _parsed(text: str) -> list[Path]:
    found = names_of(text)
    if found is None:
        raise ServerError("DELTA_LOG_CORRUPT", f"The table has {text[:40]!r} as {NAMES}.")
    return found


def names_of(text: str) -> list[Path] | None:
    """The paths in ``a, b.c, `d e` ``; None for another text."""
    if not text.strip():
        return []
    found, path, rest = [], [], text.strip()
    while True:
        name, rest = _name(rest)
        if not name:
            return None
        path.append(name)
        mark, rest = rest[:1], rest[1:].lstrip()
        if mark != ".":
            found.append(tuple(path))
            path = []
        if not mark:
            return found
        if mark not in ".,":
            return None


def _name(text: str) -> tuple[str, str]:
    """The identifier that begins a text, and what is behind it; an empty one if there is none."""
    if text.startswith("`"):
        at = 1
        while (at := text.find("`", at)) >= 0 and text[at + 1 : at + 2] == "`":
            at += 2
        return ("", "") if at < 0 else (text[1:at].replace("``", "`"), text[at + 1 :].lstrip())
    size = next((i for i, x in enumerate(text) if not (x == "_" or x.isalnum())), len(text))
    return text[:size], text[size:].lstrip()


def check_named(schema: t.StructType, partition_by: Sequence[str], properties: Mapping[str, str]) -> None:
    """Raise UserError for columns that are named as having statistics but can have none."""
    text = properties.get(NAMES)
    if text is None:
        return
    seen: list[str] = []
    for path in _parsed(text):
        shown = ".".join(map(t.quote_if_needed, path))
        if shown.lower() in (name.lower() for name in partition_by):
            told = f"Data skipping is not supported for partition column '{shown}'."
            raise UserError("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN", told)
        for leaf, kind in leaves_of(path, _type_at(schema, path, shown)):
            if kind.name not in TOLD_BY:
                told = f"Data skipping is not supported for column '{'.'.join(leaf)}' of type {kind.sql}."
                raise UserError("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE", told)
            seen.append(".".join(leaf))
    twice = sorted({name for name in seen if seen.count(name) > 1})
    if twice:
        told = f"Duplicated data skipping columns found: [{','.join(twice)}]."
        raise UserError("DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS", told)


def _type_at(schema: t.DataType, path: Path, shown: str) -> t.DataType:
    for name in path:
        fields = schema.fields if isinstance(schema, t.StructType) else ()
        found = next((f.type for f in fields if f.name.lower() == name.lower()), None)
        if found is None:
            told = f"Couldn't find column {shown} in the table."
            raise UserError("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", told)
        schema = found
    return schema
