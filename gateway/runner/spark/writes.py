"""What a statement that wrote to a Delta table has written: its answer's counts, or those of its commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from gateway.delta import log
from gateway.engine.base import Emit, Finished, Statement
from gateway.engine.spark.engine import SparkSessionSlot
from gateway.runner.spark.names import Names
from gateway.sql.spark.respell import Respelt
from gateway.sqltypes import StructType

_COMMIT_MARK = "spark.databricks.delta.commitInfo.userMetadata"
_NEWEST_COMMITS = 100


def marked(job: Statement, slot: SparkSessionSlot, text: str) -> Any:
    """Run a statement whose commit carries the statement's id."""
    slot.spark.conf.set(_COMMIT_MARK, job.statement_id)
    try:
        return slot.spark.sql(text)
    finally:
        slot.spark.conf.unset(_COMMIT_MARK)


def finish_write(frame: Any, shape: StructType, facts: Mapping[str, Any], emit: Emit) -> None:
    """The counts that Spark answers."""
    found = frame.toArrow()
    if found.num_rows != 1 or found.num_columns != len(shape.fields):
        emit(Finished(0, facts=facts))
        return
    names = [f"c{i}" for i in range(found.num_columns)]
    table = found.rename_columns(names).cast(pa.schema([(n, pa.int64()) for n in names])).combine_chunks()
    emit.rows(table.to_batches()[0])
    emit(Finished(1, modified_rows=table.column(0)[0].as_py(), facts=facts))


def finish_insert(names: Names, statement_id: str, respelt: Respelt, facts: Mapping[str, Any], emit: Emit) -> None:
    """The counts that Databricks shows; Spark's INSERT answers nothing, so they come from its commit."""
    rows = sum(
        inserted_rows(folder, statement_id)
        for mention in respelt.mentions
        if mention.is_target and (folder := names.folder(mention)) is not None
    )
    emit.rows(pa.record_batch([pa.array([rows]), pa.array([rows])], names=["c0", "c1"]))
    emit(Finished(1, modified_rows=rows, facts=facts))


def inserted_rows(folder: str, statement_id: str) -> int:
    """Rows that the statement's commit says it wrote; it is among the newest, maybe with a compaction by the same statement."""
    for version in reversed(log.commit_versions(folder)[-_NEWEST_COMMITS:]):
        for action in log.actions(folder, version):
            info = action.get("commitInfo")
            if isinstance(info, dict) and info.get("userMetadata") == statement_id:
                rows = log.counted(info, "numOutputRows")
                if rows:
                    return rows
    return 0
