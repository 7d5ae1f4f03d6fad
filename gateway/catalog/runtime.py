"""`system.runtime`: the sessions that are open and the statements that have not ended, as of when a statement
started; and those that have ended, in our own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gateway.catalog.base import TableName
from gateway.catalog.information import Relation
from gateway.catalog.query_history import OWN
from gateway.catalog.recorded import RecordedRelation, Seen
from gateway.catalog.system import SystemSchema
from gateway.config import ServerSetting
from gateway.delta.held import HeldScan
from gateway.delta.predicates import Predicate
from gateway.errors import unsupported
from gateway.sqltypes import BIGINT, DOUBLE, STRING, TIMESTAMP, DataType, StructField, StructType, map_of, struct
from gateway.worker_jobs import RUNTIME, OpenSession, RunningOperation, Runtime

_TYPES: Mapping[str, DataType] = {
    "settings": map_of(STRING, STRING),  # of a session
    "start_time": TIMESTAMP,
    "progress": DOUBLE,
    **dict.fromkeys(("idle_ms", "duration_ms", "waiting_at_capacity_duration_ms"), BIGINT),
    **dict.fromkeys(("operations", "produced_rows", "result_bytes"), BIGINT),
}
_SCHEMAS: Mapping[str, StructType] = {
    name: struct(*(StructField(field, _TYPES.get(field, STRING)) for field in kind._fields))
    for name, kind in (("sessions", OpenSession), ("operations", RunningOperation), ("settings", ServerSetting))
}


@dataclass(frozen=True, slots=True)
class RuntimeRelation(Relation):
    """One relation; `runtime` is None for a statement that does not name the schema itself."""

    runtime: Runtime | None = None

    @property
    def schema(self) -> StructType:
        return _SCHEMAS[self.name.table]

    def scan(
        self, columns: Sequence[str], predicates: Sequence[Predicate], *, floats_compared: bool = True
    ) -> HeldScan:
        """The rows as of the statement's start."""
        if self.runtime is None:
            raise unsupported(f"`{self.name}` in a statement that does not spell `{RUNTIME}` itself, or is very long,")
        rows: Sequence[Any] = getattr(self.runtime, self.name.table)
        wanted = [f for f in self.schema.fields if f.name in columns] or [self.schema.fields[0]]
        arrays = {f.name: pa.array([getattr(row, f.name) for row in rows], f.type.arrow()) for f in wanted}
        names = list(columns) or [wanted[0].name]
        return HeldScan(pa.table({name: arrays[name] for name in names}), reason="what runs now")


def running(runtime: Runtime | None, seen: Seen | None) -> SystemSchema:
    """`system.runtime`."""

    def relation(name: TableName) -> Relation:
        return RuntimeRelation(name, (), runtime=runtime)

    def ended(name: TableName) -> Relation:
        return RecordedRelation(name, (), told=OWN, seen=seen)

    return SystemSchema(RUNTIME, {**dict.fromkeys(_SCHEMAS, relation), "statements": ended})
