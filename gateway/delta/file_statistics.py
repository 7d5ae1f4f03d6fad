"""The ``stats`` text of a data file in the log: how many rows it has, and of columns the bounds and how many rows have none.

FLOAT and DOUBLE have no bounds: theirs skip NaN.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gateway import sqltypes as t
from gateway.delta import partitions

_STRING_PREFIX, _LAST_CHARACTER = 32, "\U0010ffff"
#: A column by its names in files, how many rows have none, and its bounds as `spelled` gives them.
Told = tuple[Sequence[str], int, tuple[str, str] | None]


def statistics_text(rows: int, columns: Iterable[Told], tight: bool | None) -> str:
    """The text, numbers spelt out exactly (a DECIMAL does not survive a float); `tight` None says nothing of that."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    count: dict[str, Any] = {}
    for names, missing, bounds in columns:
        _put(count, names, str(missing))
        if bounds is not None:
            _put(low, names, bounds[0])
            _put(high, names, bounds[1])
    parts: dict[str, Any] = {"numRecords": str(rows), "minValues": low, "maxValues": high, "nullCount": count}
    if tight is not None:
        parts["tightBounds"] = "true" if tight else "false"
    return _object(parts)


def spelled(low: Any, high: Any, data_type: t.DataType) -> tuple[str, str] | None:
    """JSON of a minimum and a maximum of a type of `BOUNDED`, days and microseconds as numbers; None for what has none."""
    spell = BOUNDED[data_type.name]
    bounds = spell(low, False), spell(high, True)
    return None if bounds[0] is None or bounds[1] is None else (bounds[0], bounds[1])


def _put(tree: dict[str, Any], names: Sequence[str], text: str) -> None:
    for name in names[:-1]:
        tree = tree.setdefault(name, {})
    tree[names[-1]] = text


def _object(tree: Mapping[str, Any]) -> str:
    """JSON of an object whose leaves are JSON already."""
    inner = (f"{json.dumps(k, ensure_ascii=False)}:{v if isinstance(v, str) else _object(v)}" for k, v in tree.items())
    return f"{{{','.join(inner)}}}"


def _number(value: Any, _: bool) -> str | None:
    return str(int(value))


def _decimal(value: Any, _: bool) -> str | None:
    return format(value, "f")


def _string(value: Any, is_maximum: bool) -> str | None:
    """The text or its first 32 characters, with something greater behind a cut maximum."""
    cut = _greater(value) if is_maximum else value[:_STRING_PREFIX]
    return None if cut is None else json.dumps(cut, ensure_ascii=False)


def _greater(value: str) -> str | None:
    """A short text that no text which begins alike and is not above `value` exceeds, as Delta makes it; None for none.

    Delta counts Java's characters, of which those beyond U+FFFF are two.
    """
    sizes = np.cumsum([1 + (x > "\uffff") for x in value])
    if not value or sizes[-1] <= _STRING_PREFIX:
        return value
    at = int(np.searchsorted(sizes, _STRING_PREFIX)) + 1
    while at < len(value) and sizes[at - 1] <= 2 * _STRING_PREFIX:
        if value[at] != _LAST_CHARACTER:
            return value[:at] + ("\x7f" if value[at] < "\x7f" else _LAST_CHARACTER)
        at += 1
    return value if at == len(value) else None


def _date(value: Any, _: bool) -> str | None:
    text = partitions.iso_text(int(value), "D")
    return text and f'"{text}"'


def _instant(value: Any, _: bool) -> str | None:
    text = partitions.iso_text(int(value), "us")
    return text and f'"{text}Z"'


def _local(value: Any, _: bool) -> str | None:
    text = partitions.iso_text(int(value), "us")
    return text and f'"{text}"'


#: Types whose bounds are told, each with how a value is spelt, as a minimum or a maximum.
BOUNDED: dict[str, Callable[[Any, bool], str | None]] = {
    "TINYINT": _number,
    "SMALLINT": _number,
    "INT": _number,
    "BIGINT": _number,
    "DECIMAL": _decimal,
    "STRING": _string,
    "VARCHAR": _string,
    "DATE": _date,
    "TIMESTAMP": _instant,
    "TIMESTAMP_NTZ": _local,
}
