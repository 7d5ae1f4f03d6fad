"""What statements make of a Delta table that others wrote: the statements, and the rows that plain rules give."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]
Rows = Sequence[Row]
_COPY = "INSERT INTO t SELECT * FROM t"
_COMPARED = frozenset(
    (
        "int",
        "bigint",
        "smallint",
        "tinyint",
        "string",
        "date",
        "boolean",
        "double",
        "float",
        "timestamp",
        "timestamp_ntz",
    )
)
_MOST_KEYS = 4
# Properties that tables of others get, and keep their rows.
_PROPERTIES = {
    "'delta.checkpointInterval' = '1'": "checkpoint",
    "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '1'": "v2 checkpoint",
    "'delta.enableRowTracking' = 'true'": "row tracking",
    "'delta.enableInCommitTimestamps' = 'true'": "in-commit timestamps",
    "'delta.enableTypeWidening' = 'true'": "type widening",
    "'delta.columnMapping.mode' = 'name'": "column mapping",
    "'delta.enableChangeDataFeed' = 'true'": "change data feed",
}
_MAPPED = "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
_VECTORS = "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"


@dataclass(frozen=True, slots=True)
class Change:
    """Statements about the table `t`, of which `{version}` is the version before, and the rows that `read` holds then."""

    name: str
    statements: tuple[str, ...]
    rows: Counter[str]
    read: str = "t"


def bag(rows: Rows) -> Counter[str]:
    """Rows as a multiset of texts, so that NaN equals itself and -0.0 does not equal 0.0."""
    return Counter(spell(row) for row in rows)


def spell(value: Any) -> str:
    """A value as text."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{spell(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(spell, value)) + "]"
    return repr(value)


def changes(columns: Sequence[tuple[str, str, bool]], rows: Rows) -> Iterator[Change]:
    """All changes of a table with these columns (name, type, whether it may be NULL) and rows."""
    before, twice = bag(rows), bag([*rows, *rows])
    yield Change("insert", (_COPY,), twice)
    yield Change("truncate", ("TRUNCATE TABLE t",), bag([]))
    yield Change("optimize", ("OPTIMIZE t",), before)
    yield Change("reorg", ("REORG TABLE t APPLY (PURGE)",), before)
    yield Change("vacuum", ("VACUUM t",), before)
    yield Change("statistics", ("ANALYZE TABLE t COMPUTE DELTA STATISTICS", "OPTIMIZE t"), before)
    yield Change("add", ("ALTER TABLE t ADD COLUMN zz INT",), bag([(*row, None) for row in rows]))
    filled = "ALTER TABLE t ADD COLUMN zz INT", "UPDATE t SET zz = 7"
    yield Change("add and fill", filled, bag([(*row, 7) for row in rows]))
    yield Change("check", ("ALTER TABLE t ADD CONSTRAINT cc CHECK (1 = 1)", _COPY), twice)
    inserted = "MERGE INTO t USING (SELECT * FROM t) s ON false WHEN NOT MATCHED THEN INSERT *"
    yield Change("merge insert", (inserted,), twice)
    for properties, name in _PROPERTIES.items():
        yield Change(name, (f"ALTER TABLE t SET TBLPROPERTIES ({properties})", _COPY), twice)
    yield Change("restore", (_COPY, "RESTORE TABLE t TO VERSION AS OF {version}"), before)
    yield Change("undelete", ("DELETE FROM t", "RESTORE TABLE t TO VERSION AS OF {version}"), before)
    for kind in ("SHALLOW CLONE t", "DEEP CLONE t", "AS SELECT * FROM t"):
        yield Change(kind.lower(), (f"CREATE TABLE made {kind}",), before, "made")
    yield Change("like", ("CREATE TABLE made LIKE t", "INSERT INTO made SELECT * FROM t"), before, "made")
    keys = [at for at, (_, type_, _) in enumerate(columns) if type_ in _COMPARED or type_.startswith("decimal")]
    for at in keys[:_MOST_KEYS]:
        yield from _of_column(columns[at][0], columns[at][1], at, rows)


def _of_column(name: str, type_: str, at: int, rows: Rows) -> Iterator[Change]:
    """Changes of one column, and of the rows with a value of it: of those of the first row, the last row, and NULL."""
    quoted = "`" + name.replace("`", "``") + "`"
    renamed = (_MAPPED, f"ALTER TABLE t RENAME COLUMN {quoted} TO `new name`", _COPY)
    yield Change(f"rename {quoted}", renamed, bag([*rows, *rows]))
    without = bag([row[:at] + row[at + 1 :] for row in rows])
    yield Change(f"drop {quoted}", (_MAPPED, f"ALTER TABLE t DROP COLUMN {quoted}"), without)
    some = [row[at] for row in rows if row[at] is not None and not (isinstance(row[at], float) and math.isnan(row[at]))]
    for value in dict.fromkeys([*some[:1], *some[-1:], None]):
        where = f"{quoted} IS NULL" if value is None else f"{quoted} = {_literal(value, type_)}"
        met = [row for row in rows if _is(row[at], value)]
        others = [row for row in rows if not _is(row[at], value)]
        emptied = [(*row[:at], None, *row[at + 1 :]) for row in met]
        paired = f"(SELECT DISTINCT {quoted} AS k FROM t WHERE {where}) s ON t.{quoted} <=> s.k"
        yield Change(f"delete {where}", (f"DELETE FROM t WHERE {where}",), bag(others))
        yield Change(f"mark {where}", (_VECTORS, f"DELETE FROM t WHERE {where}"), bag(others))
        yield Change(f"overwrite {where}", (f"INSERT OVERWRITE t SELECT * FROM t WHERE {where}",), bag(met))
        yield Change(f"update {where}", (f"UPDATE t SET {quoted} = NULL WHERE {where}",), bag([*others, *emptied]))
        yield Change(f"merge {where}", (f"MERGE INTO t USING {paired} WHEN MATCHED THEN DELETE",), bag(others))


def _is(found: Any, value: Any) -> bool:
    return found is None if value is None else bool(found == value)


def _literal(value: Any, type_: str) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case datetime.datetime() | datetime.date():
            return f"{type_.upper()}'{value.isoformat()}'"
        case Decimal() | float():
            return f"CAST('{value}' AS {type_})"
    return f"CAST({value} AS {type_})"
