"""Rows with a column of every type: first those of `samples.delta_types.all_types`, then any number made from hashes.

The first five hold ordinary values, the smallest, the largest, odd ones and NULLs; in the others about a tenth of all values,
nested ones too, is NULL, and floats are now and then NaN, infinite or -0.0. Types that Delta has no column for (intervals) are
left out.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa

from gateway import sqltypes as t
from gateway.catalog.samples import all_types
from gateway.delta.schema import CHAR_VARCHAR
from gateway.sqltypes import quote_part

ROWS = 1000  # at scale 1, beside the first five
_FIRST_DAY, _DAYS = -719_162, 3_652_059  # 0001-01-01, days to 9999-12-31
_FIRST_MICRO, _MICROS = -62_135_596_800_000_000, 315_537_897_600_000_000
_BOUNDS = {t.TINYINT: 8, t.SMALLINT: 16, t.INT: 32}
_CHUNK = 18  # decimal digits that a BIGINT surely holds
_WORDS = "array('alpha', 'Ünïcödé', '日本語', '🎵', 'two\\nlines', 'quo\\'te', ' padded ', 'NULL')"

Hash = Callable[[], str]


def all_types_frame(spark: Any, scale: float, seed: int) -> Any:
    """A DataFrame of 5 + `scale` * 1000 rows, ids from 1."""
    from pyspark.sql import functions as f

    columns = all_types()
    batch = pa.table({name: values for name, (_, values) in columns.items()})
    rows = max(1, round(scale * ROWS))
    salts = count(1)

    def fresh() -> str:
        return f"xxhash64(id, {seed}L, {next(salts)})"

    made = ["CAST(id AS INT) AS id"]
    made += [
        f"{nullable(expression(kind, fresh), fresh)} AS {quote_part(name)}"
        for name, (kind, _) in columns.items()
        if name != "id"
    ]
    first = spark.createDataFrame(batch)
    first = first.selectExpr(
        *(f"CAST({quote_part(n)} AS {_stored(k).sql}) AS {quote_part(n)}" for n, (k, _) in columns.items())
    )
    more = spark.range(len(batch) + 1, len(batch) + 1 + rows).selectExpr(*made)
    marked = [
        f.col(quote_part(n)).alias(n, metadata={CHAR_VARCHAR: k.simple} if isinstance(k, t.CharType) else {})
        for n, (k, _) in columns.items()
    ]
    return first.unionByName(more).select(*marked, f.lit(None).alias("c_void"))


def _stored(kind: t.DataType) -> t.DataType:
    return t.STRING if isinstance(kind, t.CharType) else kind


def nullable(expression: str, fresh: Hash) -> str:
    """`expression`, or NULL in one of ten rows."""
    return f"IF(pmod({fresh()}, 10) = 0, NULL, {expression})"


def expression(kind: t.DataType, fresh: Hash) -> str:
    """SQL for a value of `kind` made from hashes; `fresh` gives the text of a new hash of the row, a BIGINT."""
    match kind:
        case t.DecimalType():
            return _decimal(kind, fresh)
        case t.CharType():
            return f"left(hex({fresh()}), {kind.length})"
        case t.ArrayType():
            items = ", ".join(nullable(expression(kind.element, fresh), fresh) for _ in range(3))
            return f"slice(array({items}), 1, CAST(pmod({fresh()}, 4) AS INT))"
        case t.MapType():
            keys = (
                "'a', 'b', ''" if kind.key == t.STRING else ", ".join(f"CAST({k} AS {kind.key.sql})" for k in range(3))
            )
            items = ", ".join(nullable(expression(kind.value, fresh), fresh) for _ in range(3))
            size = f"CAST(pmod({fresh()}, 4) AS INT)"
            return f"map_from_arrays(slice(array({keys}), 1, {size}), slice(array({items}), 1, {size}))"
        case t.StructType():
            inner = (f"'{f.name}', {nullable(expression(f.type, fresh), fresh)}" for f in kind.fields)
            return f"named_struct({', '.join(inner)})"
    if kind in _BOUNDS:
        bits = _BOUNDS[kind]
        return f"CAST(pmod({fresh()}, {2**bits}L) - {2 ** (bits - 1)}L AS {kind.sql})"
    if kind in t.FRACTIONALS:
        odd = "WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN '-0.0'"
        usual = f"{fresh()} % 1000000000000L / 1024.0D"
        return f"CAST(coalesce(CAST(CASE pmod({fresh()}, 50) {odd} END AS DOUBLE), {usual}) AS {kind.sql})"
    return _PLAIN[kind].replace("?", fresh())


_PLAIN = {
    t.BOOLEAN: "pmod(?, 2) = 0",
    t.BIGINT: "?",
    t.STRING: f"concat(element_at({_WORDS}, CAST(pmod(?, 8) AS INT) + 1), repeat('x', CAST(pmod(?, 5) AS INT)))",
    t.BINARY: "unhex(hex(?))",
    t.DATE: f"date_add(DATE'1970-01-01', CAST(pmod(?, {_DAYS}L) + {_FIRST_DAY}L AS INT))",
    t.TIMESTAMP: f"timestamp_micros(pmod(?, {_MICROS}L) + {_FIRST_MICRO}L)",
    t.TIMESTAMP_NTZ: f"CAST(timestamp_micros(pmod(?, {_MICROS}L) + {_FIRST_MICRO}L) AS TIMESTAMP_NTZ)",
}


def _decimal(kind: t.DecimalType, fresh: Hash) -> str:
    """Of every size that the type holds: some digits of a long text of digits, moved behind the point."""
    chunks = (f"lpad(pmod({fresh()}, {10**_CHUNK}L), {_CHUNK}, '0')" for _ in range(-(-kind.precision // _CHUNK)))
    length = f"CAST(pmod({fresh()}, {kind.precision}) AS INT) + 1"
    sign = f"IF(pmod({fresh()}, 2) = 0, '-', '')"
    return f"CAST(concat({sign}, left(concat({', '.join(chunks)}), {length}), 'E-{kind.scale}') AS {kind.sql})"
