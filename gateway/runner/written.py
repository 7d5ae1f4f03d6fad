"""What statements that write rows answer, whichever engine runs them: the counts that Databricks shows."""

from __future__ import annotations

from gateway.sqltypes import BIGINT, StructField, StructType, struct


def _counts(*kinds: str) -> StructType:
    return struct(*(StructField(f"num_{kind}_rows", BIGINT) for kind in kinds))


INSERTED = _counts("affected", "inserted")
#: Of COPY INTO.
COPIED = struct(*INSERTED.fields, StructField("num_skipped_corrupt_files", BIGINT))
_AFFECTED = _counts("affected")
#: By the statement's first word; told before it runs, so that a loss of the engine is judged rightly.
WRITES: dict[str, StructType] = {
    "DELETE": _AFFECTED,
    "UPDATE": _AFFECTED,
    "MERGE": _counts("affected", "updated", "deleted", "inserted"),
    "INSERT": INSERTED,
}
