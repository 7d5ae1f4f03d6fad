"""The gateway's worker as an engine of the corpora's runner (``--callable tests.conformance.adapter:Engine``): no socket.

One process serves many sessions of the runner; each starts with an empty catalog. Its files are below the folder
GATEWAY_CONFORMANCE_STATE, else a temporary one.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.errors import UnsupportedError
from gateway.runner.handler import Runner
from gateway.sql.bind.literals import interval_display
from gateway.sqltypes import ArrayType, DataType, IntervalType, MapType, StructType
from tests.conformance.session import Session, open_runner

Value = Any


class Engine:
    """What the corpora's runner calls: open, execute, close."""

    _runner: Runner | None = None

    def open(self, meta: dict[str, Any]) -> None:
        """A session as a corpus file asks for it: zone, settings, Parquet files as views."""
        base = Path(meta["base"])
        if Engine._runner is None:
            state = os.environ.get("GATEWAY_CONFORMANCE_STATE") or tempfile.gettempdir()
            folder = Path(tempfile.mkdtemp(prefix="gateway-conformance-", dir=state))
            Engine._runner = open_runner(folder, [base, (base / "data").resolve()])
        _empty(Engine._runner)
        self.session = Session(Engine._runner, meta.get("tz") or "UTC")
        for key, value in dict(meta.get("confs") or {}).items():
            with contextlib.suppress(
                UnsupportedError
            ):  # a setting that is not ours: its statements are judged as they are
                self.session.execute(f"SET {key}={value}")
        self.session.load({name: base / path for name, path in (meta.get("preload") or {}).items()})

    def execute(self, sql: str) -> tuple[list[tuple[str, str]], list[list[Value]]]:
        """Columns as (name, Spark's type) and rows in the corpora's notation; raises the gateway's errors."""
        result = self.session.execute(sql)
        fields = result.schema.fields
        columns: list[list[Value]] = [[] for _ in fields]
        for batch in result.batches:
            for values, array, f in zip(columns, batch.columns, fields, strict=True):
                values += recorded(array, f.type)
        return [(f.name, f.type.simple) for f in fields], [list(r) for r in zip(*columns, strict=True)]

    def close(self) -> None:
        """Nothing is held per session."""


def _empty(runner: Runner) -> None:
    catalog = runner.catalogs["main"]
    for schema in catalog.schemas():
        for table in catalog.tables(schema):
            catalog.drop_table(schema, table)
        if schema != "default":
            catalog.drop_schema(schema, cascade=True)


def recorded(array: pa.Array, t: DataType) -> list[Value]:
    """Values as the corpora record them; intervals inside nested values as text."""
    if isinstance(t, IntervalType):
        days = 86_400_000_000
        return [
            None if v is None else {"iv": [v, 0, 0] if t.is_year_month else [0, v // days, v % days]}
            for v in array.to_pylist()
        ]
    if not _has_interval(t):
        plain: list[Value] = importlib.import_module("conformance").canon_array(array)
        return plain
    return _nested(array, t)


def _has_interval(t: DataType) -> bool:
    return isinstance(t, IntervalType) or any(_has_interval(c) for c in t.children())


def _nested(array: pa.Array, t: DataType) -> list[Value]:
    if isinstance(t, IntervalType):
        return [None if v is None else interval_display(v, t) for v in array.to_pylist()]
    if isinstance(t, ArrayType):
        return [_nested(v.values, t.element) if v.is_valid else None for v in array]
    if isinstance(t, MapType):
        pairs = [
            (_nested(v.values.field(0), t.key), _nested(v.values.field(1), t.value)) if v.is_valid else None
            for v in array
        ]
        return [{"m": [list(p) for p in zip(*pair, strict=True)]} if pair is not None else None for pair in pairs]
    if isinstance(t, StructType):
        columns = [_nested(c, f.type) for c, f in zip(array.flatten(), t.fields, strict=True)]
        names = [f.name for f in t.fields]
        rows = zip(*columns, strict=True)
        return [
            {"s": [list(p) for p in zip(names, r, strict=True)]} if v.is_valid else None
            for v, r in zip(array, rows, strict=True)
        ]
    plain: list[Value] = importlib.import_module("conformance").canon_array(array)
    return plain
