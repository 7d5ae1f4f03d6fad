"""Which engine runs a statement, over which files, and why: a pure function of the compiled query and facts of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.engine.base import Query, Source
from gateway.sql.compile import Compiled

EMBEDDED = "datafusion"


@dataclass(frozen=True, slots=True)
class ScanFacts:
    """How one table is read; for EXPLAIN and logs."""

    table: str
    version: int | None
    reader: str
    reason: str
    files_kept: int
    files_total: int
    bytes: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision: `engine` with its `reason`, the query for it, and how each table is read."""

    engine: str
    reason: str
    query: Query
    scans: tuple[ScanFacts, ...] = field(default=())


def plan(compiled: Compiled) -> Plan:
    """Choose engine and files for a compiled query.

    Raises UnsupportedError for a table feature that no reader here is right for, ServerError for a missing data file.
    """
    sources: dict[str, Source] = dict(compiled.generated.arrays)
    facts = []
    floats = False
    compares_floats = compiled.compares_floats
    for name, use in compiled.generated.scans.items():
        table = use.scan.table
        scan = table.scan(use.sources, compiled.predicates(use), floats_compared=compares_floats)
        sources[name] = scan
        floats = floats or (scan.reads_floats and compares_floats)
        facts.append(
            ScanFacts(
                str(table.name),
                table.version,
                scan.reader,
                scan.reason,
                scan.files_kept,
                scan.files_total,
                scan.bytes,
                use.sources,
            )
        )
    query = Query(
        compiled.generated.text,
        compiled.schema,
        sources,
        compiled.generated.udfs,
        reads_floats=floats,
    )
    return Plan(
        EMBEDDED, "every construct, function and table feature is proved for the embedded engine", query, tuple(facts)
    )


def described(plan: Plan, settings: Mapping[str, str] | None = None) -> str:
    """The plan in words: engine, reason, tables."""
    lines = [f"Engine: {plan.engine}", f"Reason: {plan.reason}"]
    for scan in plan.scans:
        version = f" version {scan.version}" if scan.version is not None else ""
        lines.append(
            f"Table: {scan.table}{version}, reader {scan.reader} ({scan.reason}), files {scan.files_kept} of "
            f"{scan.files_total}, {scan.bytes} bytes, columns {', '.join(scan.columns) or '(none)'}"
        )
    return "\n".join(lines)
