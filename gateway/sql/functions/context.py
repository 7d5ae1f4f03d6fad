"""Functions of the statement's surroundings: clock, catalog, user; each becomes a constant when the statement is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway import instants
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower
from gateway.sql.typed.nodes import Call, Expr
from gateway.sqltypes import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType

SPARK_VERSION = "4.2.0"


def _local(context: Context) -> int:
    return instants.local_of(context.clock.now_us, instants.known_zone(context.time_zone))


def _constant(value: Callable[[Context], Any]) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        return bound.lit(value(context), call.type)

    return lower


def _row(name: str, type_: DataType, value: Callable[[Context], Any]) -> Function:
    return Function(name, returns=type_, nullable="never", kind="scalar", lower=_constant(value))


def _shown(name: str, shown: str, type_: DataType, value: Callable[[Context], Any]) -> Function:
    return Function(name, returns=type_, nullable="never", lower=_constant(value), shown=shown)


#: Constants of a statement by the function without arguments that gives them: type and value.
SURROUNDINGS: dict[str, tuple[DataType, Callable[[Context], Any]]] = {
    "current_date": (DATE, lambda c: _local(c) // instants.MICROS_PER_DAY),
    "curdate": (DATE, lambda c: _local(c) // instants.MICROS_PER_DAY),
    "current_timestamp": (TIMESTAMP, lambda c: c.clock.now_us),
    "now": (TIMESTAMP, lambda c: c.clock.now_us),
    "localtimestamp": (TIMESTAMP_NTZ, _local),
    "current_timezone": (STRING, lambda c: c.time_zone),
    "current_catalog": (STRING, lambda c: c.catalog),
    "current_schema": (STRING, lambda c: c.schema),
    "current_user": (STRING, lambda c: c.user),
    "user": (STRING, lambda c: c.user),
    "session_user": (STRING, lambda c: c.user),
    "version": (STRING, lambda c: SPARK_VERSION),
}

ROWS: tuple[Function, ...] = (
    *(_row(name, *found) for name, found in SURROUNDINGS.items() if name != "curdate"),
    _shown("curdate", "current_date", *SURROUNDINGS["curdate"]),
    _shown("current_database", "current_schema", STRING, lambda c: c.schema),
    Function("input_file_name", returns=STRING, nullable="never", deterministic=False),
)
