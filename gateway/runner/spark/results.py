"""What Spark answers: the columns that a frame has, its rows, and the end of a statement without rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.delta.schema import UnreadableType, parse_schema, struct_of
from gateway.engine.base import Emit, Finished, Planned, Statement
from gateway.engine.spark import rows
from gateway.engine.spark.engine import SparkEngine
from gateway.runner.answer import RESULT
from gateway.runner.spark.readable import check_readable
from gateway.sqltypes import INTERVAL, DataType, StructType


def schema_of(frame: Any) -> StructType:
    """The columns of a frame under Spark's names."""
    return struct_of(parse_schema(frame.schema.jsonValue()))


def readable_schema(frame: Any, column: Callable[[str], str]) -> StructType:
    """The columns of a result, each named by `column` of Spark's name; UnsupportedError for one that no client reads."""
    columns = parse_schema(frame.schema.jsonValue())
    shown: dict[DataType, DataType] = {UnreadableType("INTERVAL"): INTERVAL}
    columns = tuple(replace(c, name=column(c.name), type=shown.get(c.type, c.type)) for c in columns)
    for found in columns:
        check_readable(found)
    return struct_of(columns)


def is_collated(frame: Any) -> bool:
    """Whether a string in a column has a collation, which Spark's JSON tells beside the type."""
    return "__COLLATIONS" in frame.schema.json()


def batches(engine: SparkEngine, scratch: Path, frame: Any, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a frame; many of them go through files in `scratch`."""
    if engine.is_connect:
        yield from rows.streamed(frame, schema)
        return
    if rows.is_small(frame, schema):
        try:
            yield from rows.collected(frame, schema)
            return
        except rows.TooWideError:
            pass  # nothing went out yet: the query runs once more
    yield from rows.written(frame, schema, scratch / f"result-{uuid.uuid4().hex}")


def renamed(batch: pa.RecordBatch, index: int, named: Callable[[str], str]) -> pa.RecordBatch:
    """A column of texts with the gateway's names in them."""
    texts = [None if text is None else named(text) for text in batch.column(index).to_pylist()]
    return batch.set_column(index, batch.schema.field(index), pa.array(texts, batch.schema.field(index).type))


def finish(job: Statement, word: str, emit: Emit, writes: bool = True) -> None:
    """Tell the end of a statement without rows."""
    emit(Planned(word, "spark", job.route, RESULT, writes=writes, is_query=False))
    emit(Finished(0))
