"""`system.access.audit`: who signed in, who was refused, with the columns of Databricks' system table of that name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.catalog.recorded import Column, RecordedRelation, Seen, Told, texts
from gateway.catalog.system import SystemSchema
from gateway.history.records import SIGN_INS
from gateway.sqltypes import DATE, INT, STRING, TIMESTAMP, StructField, map_of, struct

SCHEMA = "access"
_DAY_MS = 86_400_000
_IDENTITY = texts("email", "subject_name")
_IDENTITIES = texts("run_by", "run_as", "acting_resource", "run_by_display_name", "run_as_display_name")
_RESPONSE = struct(StructField("status_code", INT), StructField("error_message", STRING), StructField("result", STRING))


def _microseconds(milliseconds: int) -> int:
    return milliseconds * 1000


def _parameters(mechanism: str, unlogged: int) -> list[tuple[str, str]]:
    """How they signed in; of failures, how many before this one were not kept."""
    return [("mechanism", mechanism), *([("unlogged", str(unlogged))] if unlogged else [])]


def _response(status: int, message: str | None) -> dict[str, Any]:
    return {"status_code": status, "error_message": message, "result": None}


_COLUMNS: Mapping[str, Column] = {
    "account_id": Column(STRING),
    "workspace_id": Column(STRING),
    "version": Column(STRING, ("status",), lambda status: "2.0"),
    "event_time": Column(TIMESTAMP, ("started_ms",), _microseconds),
    "event_date": Column(DATE, ("started_ms",), lambda milliseconds: milliseconds // _DAY_MS),
    "source_ip_address": Column(STRING, ("address",), lambda address: address or None),
    "user_agent": Column(STRING, ("client",), lambda client: client or None),
    "session_id": Column(STRING),
    "user_identity": Column(_IDENTITY, ("user",), lambda user: {"email": user, "subject_name": None}),
    "service_name": Column(STRING, ("status",), lambda status: "accounts"),
    "action_name": Column(STRING, ("action",)),
    "request_id": Column(STRING, ("event_id",)),
    "request_params": Column(map_of(STRING, STRING), ("mechanism", "unlogged"), _parameters),
    "response": Column(_RESPONSE, ("status", "message"), _response),
    "audit_level": Column(STRING, ("status",), lambda status: "ACCOUNT_LEVEL"),
    "event_id": Column(STRING, ("event_id",)),
    "identity_metadata": Column(_IDENTITIES, ("user",), lambda user: {"run_by": user, "run_as": user}),
}
AUDIT = Told(SIGN_INS, _COLUMNS, {"event_id": "event_id", "request_id": "event_id", "action_name": "action"},
             {"event_time": "started_ms"})  # fmt: skip


def audited(seen: Seen | None) -> SystemSchema:
    """`system.access`."""
    return SystemSchema(SCHEMA, {"audit": lambda name: RecordedRelation(name, (), told=AUDIT, seen=seen)})
