"""`system.query.history`: what the history holds, with the columns of Databricks' system table of that name, or with our own.

What nobody measures here is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.catalog.recorded import Column, RecordedRelation, Seen, Told, texts
from gateway.catalog.system import SystemSchema
from gateway.history.details import known
from gateway.history.records import STATEMENTS
from gateway.history.told import error_of, kind_of, status_of
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TINYINT,
    StructField,
    array,
    map_of,
    struct,
)

SCHEMA = "query"
_WAREHOUSE = {"type": "WAREHOUSE", "cluster_id": None, "warehouse_id": "gateway"}


_COMPUTE = texts("type", "cluster_id", "warehouse_id")
_SOURCE = struct(
    StructField("job_info", texts("job_id", "job_run_id", "job_task_run_id")),
    *texts("legacy_dashboard_id", "dashboard_id", "alert_id", "notebook_id", "sql_query_id", "genie_space_id").fields,
    StructField("pipeline_info", texts("pipeline_id", "update_id")),
)
_PARAMETERS = struct(
    StructField("named_parameters", map_of(STRING, STRING)),
    StructField("pos_parameters", array(STRING)),
    StructField("is_truncated", BOOLEAN),
)


def _whole(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)


def _microseconds(milliseconds: int) -> int:
    return milliseconds * 1000


def _pruned(kept: int | None, total: int | None) -> int | None:
    return None if kept is None or total is None else total - kept


def _parameters(details: str | None) -> dict[str, Any] | None:
    """The parameters by name and by position, where their values are kept."""
    given = known(details).get("parameters", [])
    if not given or "value" not in given[0]:
        return None
    return {
        "named_parameters": [(each["name"], each["value"]) for each in given if each["name"] is not None],
        "pos_parameters": [each["value"] for each in given if each["name"] is None],
        "is_truncated": False,
    }


def _origin(statement_id: str, cached: int, origin_id: str | None) -> str | None:
    """Whose answer it was: the statement's own, or the one that had been kept."""
    return origin_id if cached else statement_id


def _driver(client: str) -> str | None:
    """The product that a User-Agent begins with."""
    return client.split(maxsplit=1)[0].partition("(")[0] if client.strip() else None


# In the order that Databricks' table tells itself, which is that of `SELECT *`.
_COLUMNS: Mapping[str, Column] = {
    "account_id": Column(STRING),
    "workspace_id": Column(STRING),
    "statement_id": Column(STRING, ("statement_id",)),
    "executed_by": Column(STRING, ("user",)),
    "session_id": Column(STRING, ("session_id",)),
    "execution_status": Column(STRING, ("state",), status_of),
    "compute": Column(_COMPUTE, ("state",), lambda state: _WAREHOUSE),
    "executed_by_user_id": Column(STRING, ("user",)),
    "statement_text": Column(STRING, ("text",)),
    "statement_type": Column(STRING, ("statement_type",), kind_of),
    "error_message": Column(STRING, ("condition", "sqlstate", "message"), error_of),
    "client_application": Column(STRING, ("client",), lambda client: client or None),
    "client_driver": Column(STRING, ("client",), _driver),
    "total_duration_ms": Column(BIGINT, ("total_ms",), _whole),
    "waiting_for_compute_duration_ms": Column(BIGINT),
    "waiting_at_capacity_duration_ms": Column(BIGINT, ("queue_ms",), _whole),
    "execution_duration_ms": Column(BIGINT, ("execute_ms",), _whole),
    "compilation_duration_ms": Column(BIGINT, ("compile_ms",), _whole),
    "total_task_duration_ms": Column(BIGINT),
    "result_fetch_duration_ms": Column(BIGINT, ("fetch_ms",), _whole),
    "start_time": Column(TIMESTAMP, ("started_ms",), _microseconds),
    "end_time": Column(TIMESTAMP, ("ended_ms",), _microseconds),
    "update_time": Column(TIMESTAMP, ("ended_ms",), _microseconds),
    "read_partitions": Column(BIGINT),
    "pruned_files": Column(BIGINT, ("files_kept", "files_total"), _pruned),
    "read_files": Column(BIGINT, ("files_kept",)),
    "read_rows": Column(BIGINT),
    "produced_rows": Column(BIGINT, ("rows",)),
    "read_bytes": Column(BIGINT, ("read_bytes",)),
    "read_io_cache_percent": Column(TINYINT),
    "from_result_cache": Column(BOOLEAN, ("cached",), bool),
    "spilled_local_bytes": Column(BIGINT, ("spilled_bytes",)),
    "written_bytes": Column(BIGINT, ("details",), lambda details: known(details).get("bytes_written")),
    "shuffle_read_bytes": Column(BIGINT),
    "query_source": Column(_SOURCE),
    "executed_as_user_id": Column(STRING, ("user",)),
    "executed_as": Column(STRING, ("user",)),
    "written_rows": Column(BIGINT, ("written_rows",)),
    "written_files": Column(BIGINT, ("details",), lambda details: known(details).get("files_written")),
    "cache_origin_statement_id": Column(STRING, ("statement_id", "cached", "origin_id"), _origin),
    "query_parameters": Column(_PARAMETERS, ("details",), _parameters),
    "query_tags": Column(map_of(STRING, STRING)),
    "pruned_files_bytes": Column(BIGINT),
    "read_files_bytes": Column(BIGINT, ("read_bytes",)),
}
# What the file says beside that, in our own words.
_OWN: Mapping[str, Column] = {
    **{name: _COLUMNS[name] for name in ("statement_id", "session_id")},
    "user": Column(STRING, ("user",)),
    **{name: _COLUMNS[name] for name in ("client_application", "statement_text")},
    **{
        name: Column(STRING, (name,))
        for name in ("statement_type", "engine", "reason", "state", "condition", "sqlstate")
    },
    **{name: _COLUMNS[name] for name in ("start_time", "end_time")},
    **{
        name: Column(DOUBLE, (name,))
        for name in ("total_ms", "queue_ms", "parse_ms", "compile_ms", "execute_ms", "fetch_ms")
    },
    **{name: _COLUMNS[name] for name in ("produced_rows", "written_rows", "read_bytes", "read_files", "pruned_files")},
    **{name: Column(BIGINT, (name,)) for name in ("spilled_bytes", "result_bytes")},
    "from_result_cache": _COLUMNS["from_result_cache"],
    "details": Column(STRING, ("details",)),
}
# Columns whose filters are followed: those of the file that say the same.
_TEXTS = dict.fromkeys(("user", "executed_by", "executed_by_user_id", "executed_as", "executed_as_user_id"), "user")
_TEXTS |= {"statement_id": "statement_id", "session_id": "session_id"}
_TIMES = {"start_time": "started_ms", "end_time": "ended_ms", "update_time": "ended_ms"}
HISTORY = Told(STATEMENTS, _COLUMNS, _TEXTS, _TIMES)
OWN = Told(STATEMENTS, _OWN, _TEXTS, _TIMES)


def recorded(seen: Seen | None) -> SystemSchema:
    """`system.query`."""
    return SystemSchema(SCHEMA, {"history": lambda name: RecordedRelation(name, (), told=HISTORY, seen=seen)})
