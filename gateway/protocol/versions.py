"""Protocol versions: two scales in one enum, and what each version allows.

Hive clients send `client_protocol` (0 is V1); Databricks clients leave it at -7 and send `client_protocol_i64` (0xA501 is
V1). The answer stays on the client's scale, min(asked, ours): PyHive asserts equality with V6, and Databricks drivers
refuse an answer below 0xA501. A client that names no version, which both fields allow, gets Hive's V6: columnar results, and
nothing that came later.
"""

from __future__ import annotations

from gateway.errors import ProtocolError

HIVE_V6 = 5  # the first with columnar results
HIVE_V10 = 9
SPARK_V1 = 0xA501  # direct results, Arrow batches
SPARK_V3 = 0xA503  # links to results
SPARK_V5 = 0xA505  # arrowSchema, native Arrow types
SPARK_V9 = 0xA509

_LOWEST_HIVE = 0
_ABSENT = -7  # __HIVE_JDBC_WORKAROUND


def negotiate(client_protocol: int | None, client_protocol_i64: int | None) -> int:
    """The version of a session, for what its client asked; raises ProtocolError where there is none in common."""
    asked = client_protocol_i64 if client_protocol_i64 is not None else client_protocol
    if asked is None or asked == _ABSENT:
        return HIVE_V6
    if asked >= SPARK_V1:
        return min(asked, SPARK_V9)
    if asked < _LOWEST_HIVE:
        raise ProtocolError("PROTOCOL_VERSION_UNKNOWN", f"Protocol version {asked} is not known.")
    if asked < HIVE_V6:
        raise ProtocolError(
            "PROTOCOL_VERSION_TOO_OLD",
            f"HIVE_CLI_SERVICE_PROTOCOL_V{asked + 1} has row-based results; V6 is the oldest supported.",
        )
    return min(asked, HIVE_V10)


def is_spark(protocol: int) -> bool:
    """Whether a negotiated version is on the scale of Spark and Databricks."""
    return protocol >= SPARK_V1


def has_arrow_schema(protocol: int) -> bool:
    """Whether `arrowSchema` may be sent, and Arrow types other than strings for decimals, timestamps and nested values."""
    return protocol >= SPARK_V5


def has_links(protocol: int) -> bool:
    """Whether results may be given as links."""
    return protocol >= SPARK_V3
