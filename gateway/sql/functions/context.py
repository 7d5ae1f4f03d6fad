"""Functions of the statement's surroundings: clock, catalog, user; each becomes a constant when the statement is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway import __version__, instants
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower
from gateway.sql.typed.nodes import Call, Expr
from gateway.sqltypes import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, StructField, struct

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

#: What clients of Databricks read as the product's version (ADBC, ibis), by field; Spark has no such function.
_VERSIONS: dict[str, str | None] = {
    "dbr_version": None,
    "dbsql_version": "2026.10",
    "u_build_hash": f"delta-sql-gateway-{__version__}",
    "r_build_hash": None,
}
_VERSION_TYPE = struct(*(StructField(name, STRING) for name in _VERSIONS))


def _lower_version(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    members: list[Expr] = []
    for name, value in _VERSIONS.items():
        members += [bound.lit(name, STRING), bound.null(STRING) if value is None else bound.lit(value, STRING)]
    return bound.fn("named_struct", call.type, *members, nullable=False)


ROWS: tuple[Function, ...] = (
    *(_row(name, *found) for name, found in SURROUNDINGS.items() if name != "curdate"),
    _shown("curdate", "current_date", *SURROUNDINGS["curdate"]),
    _shown("current_database", "current_schema", STRING, lambda c: c.schema),
    Function("current_version", returns=_VERSION_TYPE, nullable="never", lower=_lower_version),
    Function("input_file_name", returns=STRING, nullable="never", deterministic=False),
)
