"""Why DataFusion's own Parquet scan would misread what a table keeps: its features, and what its files hold by which names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

import pyarrow as pa

from gateway import sqltypes as t
from gateway.delta.containment import Within
from gateway.delta.dataset import is_read_alike
from gateway.delta.footers import one_valued, opened_parquet, unreadable_file
from gateway.delta.moments import suspects
from gateway.delta.schema import Column, has_older_value, holds_char
from gateway.delta.table import Snapshot

_FEW_FILES, _FOOTER_READERS = 8, 4
_DEEPEST = 16  # types in each other that a plan's message has room for; half of what was measured
# Which file stood under a name when it was looked at.
Seen = dict[str, tuple[int, int]]


def column_problem(snapshot: Snapshot, stored: Sequence[Column]) -> str | None:
    """Why some columns of a table are not what DataFusion would read."""
    if snapshot.mapping == "id":
        return "columns are found by field id"
    if any(t.has_variant(c.type) for c in stored):
        return "VARIANT"
    if any(c.type == t.VOID or _holds_void(c.type) for c in stored):
        return "VOID columns are not in files"
    if any(t.is_nested(c.type) and holds_char(c.type) for c in stored):
        return "CHAR in nested fields"
    if any(c.renamed for column in stored for c in column.children):
        return "renamed nested fields"
    if any(_depth(c.physical_arrow()) > _DEEPEST for c in stored):
        return "deeply nested types"
    return None


def _depth(arrow: pa.DataType) -> int:
    """How many types lie in each other; a map is a list of structs."""
    return 1 + max((_depth(arrow.field(i).type) for i in range(arrow.num_fields)), default=0)


def _holds_void(data_type: t.DataType) -> bool:
    return any(c == t.VOID or _holds_void(c) for c in data_type.children())


def file_problem(
    snapshot: Snapshot, stored: Sequence[Column], kept: list[int], seen: Seen, floats_compared: bool
) -> str | None:
    """Why DataFusion would misread a kept file: a column whose name in the file differs in case, or its type in kind.

    It makes arrays of single values, casts whatever it finds, and takes bytes for texts. Of each file the footer is read,
    once as long as it is the same file.
    """
    paths = [snapshot.files.paths[i] for i in kept]
    deleted = snapshot.files.deleted
    for at, names in zip(kept, _facts(snapshot, paths, seen), strict=True):
        if at in deleted and len(deleted[at]) > names[ROWS]:
            return "a deletion vector is longer than its file"
        if not names.get(IN_ORDER, True):
            return "row groups are numbered in another order than they come"
        for column in stored:
            # Where floats are compared, the engine is told of no statistics.
            if not floats_compared and column.physical in names.get(ONE_VALUE, ()):
                return f"the column {column.name} may hold NaN beside its only value in a file"
            if column.physical in names.get(MISREAD, ()):
                return f"the column {column.name} has {names[MISREAD][column.physical]} in a file"
            if column.physical in names.get(MOMENTS, ()):
                return f"the column {column.name} may have dates of the old calendar, nano- or milliseconds in a file"
            if column.physical.casefold() in names.get(TWICE, ()):
                return f"the column {column.name} is in a file in several spellings"
            problem = _name_problem(column, names)
            if problem:
                return problem
    return None


def _facts(snapshot: Snapshot, paths: list[str], seen: Seen) -> Iterator[NameTree]:
    """What is in files, from their footers; those that are not known yet are read side by side."""
    known = snapshot.contents
    unread = [p for p in paths if p not in known or known[p][0] not in (None, seen[p])]
    if len(unread) < _FEW_FILES:
        read = [_names_in(p, snapshot.within) for p in unread]
    else:
        with ThreadPoolExecutor(_FOOTER_READERS) as threads:
            read = list(threads.map(_names_in, unread, repeat(snapshot.within)))
    known.update((p, (seen[p], names)) for p, names in zip(unread, read, strict=True))
    return (known[p][1] for p in paths)


NameTree = dict[str, Any]


def _names_in(path: str, within: Within) -> NameTree:
    """Names of the columns in a Parquet file, nested ones as nested dicts, with the types of the others."""
    try:
        with opened_parquet(path, within) as file:
            counts = Counter(name.casefold() for name in file.schema_arrow.names)
            twice = {name for name, count in counts.items() if count > 1}
            facts = {ONE_VALUE: one_valued(file.metadata), TWICE: twice, ROWS: file.metadata.num_rows}
            facts |= {IN_ORDER: file.facts.in_order, MISREAD: file.facts.misread, MOMENTS: suspects(file)}
            return {**_tree(file.schema_arrow), **facts}
    except (pa.ArrowException, OSError) as error:
        raise unreadable_file(path, error) from error


#: Where, among the names in a file, those of which statistics tell one value stand; no column is called so.
ONE_VALUE = "\0one value"
#: Where those that are there in several spellings stand, without case.
TWICE = "\0twice"
#: Where their number of rows stands.
ROWS = "\0rows"
#: Where those stand that the engine misreads, with what they have.
MISREAD = "\0misread"
#: Where those with dates and times of the old calendar, of nanoseconds or milliseconds, stand.
MOMENTS = "\0moments"
#: Where it stands whether its row groups are in order.
IN_ORDER = "\0in order"


def _tree(fields: Any) -> NameTree:
    return {f.name: _type_tree(f.type) for f in fields}


def _type_tree(arrow: pa.DataType) -> NameTree | pa.DataType:
    if pa.types.is_struct(arrow):
        return _tree(arrow)
    if pa.types.is_map(arrow):
        return {"key": _type_tree(arrow.key_type), "value": _type_tree(arrow.item_type)}
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return {"element": _type_tree(arrow.value_type)}
    return arrow


def _is_same(one: NameTree | pa.DataType, other: NameTree | pa.DataType) -> bool:
    """Whether two types are the same, names and order of fields too; so is one of which nothing is told."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(_is_same, one.values(), other.values()))
    return one in ({}, other)


def _name_problem(column: Column, names: Any) -> str | None:
    if column.physical not in names:
        folded = column.physical.casefold()
        if any(n.casefold() == folded for n in names):
            return f"the column {column.name} is spelt differently in a file"
        return f"the column {column.name} is not in a file, and not NULL for that" if has_older_value(column) else None
    held = names[column.physical]
    is_nested = isinstance(held, dict) and bool(held)
    if is_nested != bool(column.children) and held != pa.null():
        return f"the column {column.name} has another type in a file"
    if isinstance(held, pa.DataType) and not is_read_alike(held, column.type.arrow()):
        return f"the column {column.name} is {held} in a file"
    if isinstance(column.type, t.MapType) and is_nested and not _is_same(held, _type_tree(column.physical_arrow())):
        return f"the map {column.name} holds other types in a file"  # the engine casts none, not even to further fields
    if isinstance(column.type, t.StructType) and is_nested and not any(c.physical in held for c in column.children):
        return f"the struct {column.name} has other fields in a file"
    for child in column.children if is_nested else ():
        problem = _name_problem(child, held)
        if problem:
            return problem
    return None
