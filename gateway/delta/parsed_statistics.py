"""Statistics of files as checkpoints may hold them, as structs, in the JSON of the log's other places."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PARSED, _STATS = "stats_parsed", "stats"
_INSTANT = pa.timestamp("us", "UTC")
Texts = list[str | None]
_LAST_YEAR = np.datetime64("9999-12-31T23:59:59.999999")
_FIRST_YEAR = np.datetime64("0001-01-01")
_NO_NUMBERS = {math.inf: '"Infinity"', -math.inf: '"-Infinity"'}


def opened_checkpoint(file: Any) -> pq.ParquetFile:
    """A checkpoint whose instants are as they were written: Spark's are INT96, which are more than nanoseconds can be."""
    return pq.ParquetFile(file, pre_buffer=False, coerce_int96_timestamp_unit="us")


def instants_of(parquet: pq.ParquetFile) -> frozenset[str]:
    """The columns of a checkpoint that are INT96: instants, whose type does not say so."""
    columns = (parquet.schema.column(i) for i in range(len(parquet.schema)))
    return frozenset(column.path for column in columns if column.physical_type == "INT96")


def with_texts(add: pa.StructArray, instants: Collection[str]) -> pa.StructArray:
    """Actions of files, their statistics as texts: those of structs where there are no others."""
    if add.type.get_field_index(PARSED) < 0:
        return add
    texts = pa.array(_texts(add.field(PARSED), f"add.{PARSED}", instants), pa.string())
    if add.type.get_field_index(_STATS) >= 0:
        texts = pc.coalesce(add.field(_STATS), texts)
    kept = [i for i, field in enumerate(add.type) if field.name not in (PARSED, _STATS)]
    fields = [*(add.type[i] for i in kept), pa.field(_STATS, pa.string())]
    return pa.StructArray.from_arrays([*(add.field(i) for i in kept), texts], fields=fields, mask=add.is_null())


def _texts(values: pa.Array, path: str, instants: Collection[str]) -> Texts:
    """The JSON of each value, without what has none; None for NULL."""
    if pa.types.is_struct(values.type):
        return _of_structs(values, path, instants)
    told = values.cast(_INSTANT) if path in instants else values
    write = next((write for test, write in _WRITERS if test(told.type)), None)
    return [None] * len(told) if write is None else write(told)


def _of_structs(values: pa.StructArray, path: str, instants: Collection[str]) -> Texts:
    names = [field.name for field in values.type]
    children = [_texts(values.field(i), f"{path}.{name}", instants) for i, name in enumerate(names)]
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    there = values.is_valid().to_pylist()

    def one(row: int) -> str:
        told = (f"{key}:{texts[row]}" for key, texts in zip(keys, children, strict=True) if texts[row] is not None)
        return "{" + ",".join(told) + "}"

    return [one(row) if there[row] else None for row in range(len(values))]


def _each(write: Callable[[Any], str]) -> Callable[[pa.Array], Texts]:
    return lambda values: [None if value is None else write(value) for value in values.to_pylist()]


def _floats(values: pa.Array) -> Texts:
    """Each in as few digits as tell it from its neighbours."""
    plain = values.fill_null(0).to_numpy(zero_copy_only=False)
    texts = [str(x) if np.isfinite(x) else _NO_NUMBERS.get(float(x), '"NaN"') for x in plain]
    return [text if there else None for text, there in zip(texts, values.is_valid().to_pylist(), strict=True)]


def _moments(values: pa.Array) -> Texts:
    """Dates and times; those before the year 1 and after 9999 are not told."""
    kind = values.type
    unit = "D" if pa.types.is_date(kind) else "us"
    whole = values.cast(pa.int32() if unit == "D" else pa.timestamp("us", kind.tz)).cast(pa.int64())
    moments = whole.fill_null(0).to_numpy().astype(f"datetime64[{unit}]")
    told = values.is_valid().to_numpy(zero_copy_only=False) & (moments >= _FIRST_YEAR) & (moments <= _LAST_YEAR)
    if unit == "us" and not (moments.astype(np.int64) % 1000).any():
        moments = moments.astype("datetime64[ms]")
    zone = "Z" if unit == "us" and kind.tz is not None else ""
    return [f'"{text}{zone}"' if there else None for text, there in zip(moments.astype(str), told, strict=True)]


_WRITERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Texts]], ...] = (
    (pa.types.is_boolean, _each(lambda value: "true" if value else "false")),
    (pa.types.is_integer, _each(str)),
    (pa.types.is_decimal, _each(lambda value: format(value, "f"))),
    (pa.types.is_string, _each(lambda value: json.dumps(value, ensure_ascii=False))),
    (pa.types.is_floating, _floats),
    (pa.types.is_date32, _moments),
    (pa.types.is_timestamp, _moments),
)
