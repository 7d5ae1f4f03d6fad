"""Which engine runs a statement, over which files, and why: a pure function of the compiled query and facts of its tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.catalog.information import SCHEMA as INFORMATION_SCHEMA
from gateway.catalog.information import SYSTEM
from gateway.config.session import ENGINE
from gateway.delta.held import HeldScan
from gateway.delta.scan import ScanPlan
from gateway.engine.base import Handover, Query, Source
from gateway.errors import UnsupportedError, UserError
from gateway.sql.compile import Compiled
from gateway.sql.lowering.late_columns import LateColumns
from gateway.sql.read.statement import Kind, Statement

EMBEDDED = "datafusion"
SPARK = "spark"

# First words of statements that Spark may run; queries go there whatever they start with.
_FOR_SPARK: tuple[tuple[str, ...], ...] = (
    ("INSERT",),
    ("UPDATE",),
    ("DELETE",),
    ("MERGE",),
    ("WITH",),
    ("FROM",),
    ("TRUNCATE", "TABLE"),
    ("CREATE", "TABLE"),
    ("CREATE", "OR", "REPLACE", "TABLE"),
    ("REPLACE", "TABLE"),
    ("ALTER", "TABLE"),
    ("OPTIMIZE",),
    ("VACUUM",),
    ("REORG", "TABLE"),
    ("RESTORE",),
    ("ANALYZE", "TABLE"),
    ("DESCRIBE", "HISTORY"),
    ("DESCRIBE", "DETAIL"),
    ("DESC", "HISTORY"),
    ("DESC", "DETAIL"),
    ("SHOW", "PARTITIONS"),
    ("BEGIN",),
    ("DECLARE",),
    ("SET", "VAR"),
    ("SET", "VARIABLE"),
    ("CREATE", "TEMPORARY", "FUNCTION"),
    ("CREATE", "OR", "REPLACE", "TEMPORARY", "FUNCTION"),
    ("CREATE", "TEMPORARY", "VIEW"),
    ("CREATE", "OR", "REPLACE", "TEMPORARY", "VIEW"),
    ("CREATE", "TEMP", "VIEW"),
    ("CREATE", "OR", "REPLACE", "TEMP", "VIEW"),
    ("CREATE", "VIEW"),
    ("CREATE", "OR", "REPLACE", "VIEW"),
    ("ALTER", "VIEW"),
    ("CREATE", "FUNCTION"),
    ("CREATE", "OR", "REPLACE", "FUNCTION"),
    ("DESCRIBE", "FUNCTION"),
    ("DESC", "FUNCTION"),
    ("DROP", "TEMPORARY", "VARIABLE"),
    ("DROP", "TEMP", "VARIABLE"),
    ("DROP", "TEMPORARY", "VAR"),
    ("DROP", "TEMP", "VAR"),
    ("DROP", "TEMPORARY", "FUNCTION"),
    ("CREATE", "TEMP", "FUNCTION"),
    ("CREATE", "OR", "REPLACE", "TEMP", "FUNCTION"),
    ("DROP", "TEMP", "FUNCTION"),
)
# What would change names or places that only the gateway's catalog may change.
_NOT_IN_SPARK = frozenset({"RENAME", "DROP", "CREATE", "VIEW", "FUNCTION"})
# What only Databricks knows, somewhere in a statement that begins as one of Spark's.
_DATABRICKS_ONLY = frozenset(
    {("SET", "TAGS"), ("UNSET", "TAGS"), ("SET", "MASK"), ("DROP", "MASK"), ("ROW", "FILTER"), ("SET", "OWNER")}
    | {("BY", "AUTO"), ("BEGIN", "TRANSACTION")}
)
_EXCEPTED = frozenset({("SET", "*", "EXCEPT"), ("INSERT", "*", "EXCEPT")})  # of MERGE
_TEMPORARY = frozenset({"TEMP", "TEMPORARY"})
_SMALL_BYTES = 8 << 20
# What a statement may read, be made of and be as text to run beside the slots.
_BRIEF_BYTES = 32 << 20
_BRIEF_ROWS = 1_000_000
_BRIEF_TABLES = 8
_BRIEF_TOKENS = 4000
# First words of statements that tell of the catalog and the session or change them.
_BRIEF_FIRST = frozenset(
    ("SHOW", "DESCRIBE", "DESC", "EXPLAIN", "USE", "SET", "RESET", "DROP", "COMMENT", "CALL", "REFRESH")
)
_QUERYING = frozenset(("SELECT", "FROM", "WITH"))
# Refusals that Spark would not answer better.
_FINAL = ("UNSUPPORTED_FEATURE.SET_VALUE", "UNSUPPORTED_FEATURE.VIEW_USING", "CONFIG_NOT_AVAILABLE")
# Errors that Spark could say nothing else of, and why; all others it confirms where it is up.
_CERTAIN: dict[str, str] = {
    "PATH_NOT_ALLOWED": "a rule of the gateway",
    "PERMISSION_DENIED": "a rule of the gateway",
    "EXPRESSION_NOT_ALLOWED": "a rule of the gateway",
    "INVALID_IDENTIFIER": "a rule of the gateway",
    "CONFIG_NOT_AVAILABLE": "a rule of the gateway",
    "NO_SUCH_CATALOG_EXCEPTION": "Spark knows the gateway's catalogs by other names",
    "SCHEMA_NOT_FOUND": "Spark knows the schemas that the gateway tells it of",
    "TABLE_OR_VIEW_NOT_FOUND": "Spark knows the tables that the gateway tells it of; but a WITH may name it",
    "UNBOUND_SQL_PARAMETER": "parameters are the gateway's",
    "DELTA_VERSION_NOT_FOUND": "the table's log says it",
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION": "the table's log says it",
    "DELTA_TIMESTAMP_GREATER_THAN_COMMIT": "the table's log says it",
    "EXPECT_TABLE_NOT_VIEW": "the catalog says it",
    "RECURSIVE_VIEW": "views are the gateway's",
    "VIEW_EXCEED_MAX_NESTED_DEPTH": "views are the gateway's",
    "CANNOT_DROP_REFERENCED_PRIMARY_KEY": "keys are the catalog's",
    "CONSTRAINT_ALREADY_EXISTS": "keys are the catalog's",
    "CONSTRAINT_DOES_NOT_EXIST": "keys are the catalog's",
    "FOREIGN_KEY_MISMATCH": "keys are the catalog's",
    "MULTIPLE_PRIMARY_KEYS": "keys are the catalog's",
}
_CHANGES = frozenset({"INSERT", "DELETE", "UPDATE", "MERGE"})
# Where Delta with Spark refuses subqueries, and words that those begin with.
_ASKING = frozenset({"DELETE", "UPDATE"})
_QUERIES = frozenset({"SELECT", "VALUES", "TABLE"})
# What a statement may have read, and how long it may have run, for its error to be confirmed.
_CONFIRMED_BYTES = 64 << 20
_CONFIRMED_SECONDS = 5.0


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
    location: str = ""
    lasting: bool = True  # what is kept of its files by their names is theirs


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision: `engine` with its `reason`, the query for it, and how each table is read."""

    engine: str
    reason: str
    query: Query
    scans: tuple[ScanFacts, ...] = field(default=())
    may_raise: bool = True  # a row can make it fail
    counted: int = 0  # rows of ranges

    def reads_of(self, location: str) -> bool:
        """Whether a table there is read, by whatever name."""
        return any(scan.location == location for scan in self.scans)

    @property
    def is_soon(self) -> bool:
        """Whether so little is to be done that its end follows its beginning at once."""
        return self.query.small or not (self.query.sources or self.counted)

    @property
    def is_brief(self) -> bool:
        """Whether it reads so little that it may run beside the slots."""
        read = sum(scan.bytes for scan in self.scans)
        return read <= _BRIEF_BYTES and self.counted <= _BRIEF_ROWS and len(self.scans) <= _BRIEF_TABLES


def plan(compiled: Compiled) -> Plan:
    """Choose engine and files for a compiled query.

    Raises UnsupportedError for a table feature that no reader here is right for, ServerError for a missing data file.
    """
    sources: dict[str, Source] = dict(compiled.generated.arrays)
    facts = []
    floats = False
    late: LateColumns | None = None
    compares_floats = compiled.compares_floats
    for name, use in compiled.generated.scans.items():
        table = use.scan.table
        scan: ScanPlan | HeldScan = table.scan(use.sources, compiled.predicates(use), floats_compared=compares_floats)
        if scan.bytes > _SMALL_BYTES:
            late = late or compiled.late_columns()
            if not late.reads_late(use.scan, len(use.sources)):
                scan = scan.at_once()
        if compiled.may_raise:
            scan = scan.apart()
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
                table.location,
                scan.lasting,
            )
        )
    query = Query(
        compiled.generated.text,
        compiled.schema,
        sources,
        compiled.generated.udfs,
        reads_floats=floats,
        views=not compiled.hands_on,
        small=len(sources) == 1 and len(facts) == 1 and facts[0].files_kept <= 1 and facts[0].bytes <= _SMALL_BYTES,
        first=compiled.generated.first,
        filters_ahead=compiled.tells_ahead,
        lasting=all(fact.lasting for fact in facts),
        in_order=compiled.in_order,
        rows=compiled.generated.rows,
    )
    return Plan(
        EMBEDDED,
        "every construct, function and table feature is proved for the embedded engine",
        query,
        tuple(facts),
        compiled.may_raise,
        compiled.generated.counted,
    )


def may_be_brief(statement: Statement) -> bool:
    """Whether a statement may run beside the slots as far as its words tell; queries are judged by their plans."""
    if len(statement.tokens) > _BRIEF_TOKENS:
        return False
    words = statement.words
    if words[:2] == ["EXPLAIN", "ANALYZE"]:
        return False
    if statement.kind is Kind.QUERY or words[0] in _BRIEF_FIRST or "VIEW" in words[:5]:
        return True
    if words[0] == "INSERT":
        return "VALUES" in words and _QUERYING.isdisjoint(words)
    return words[0] == "CREATE" and _QUERYING.isdisjoint(words) and ("AS", "TABLE") not in itertools.pairwise(words)


def asked_for(statement: Statement, engine: str, place: tuple[str, str] = ("", "")) -> Handover | None:
    """Spark, if the session's `gateway.engine` says so and the statement is one that reads or writes tables.

    None for one that names relations which only the gateway has; `place`: the session's catalog and schema.
    """
    if engine != SPARK or not _fits_spark(statement) or _names_own(statement, place):
        return None
    return Handover(SPARK, "gateway.engine is spark")


def uses_definitions(statement: Statement, names: Sequence[str]) -> Handover | None:
    """Spark, for a statement with the name of one of the session's variables or functions, which live there."""
    if not names or not _fits_spark(statement):
        return None
    return Handover(SPARK, f"it uses {', '.join(names)} of the session")


def honoured_there(
    statement: Statement, settings: Mapping[str, str], engine: str, place: tuple[str, str] = ("", "")
) -> Handover | None:
    """Spark, for a statement of a session with settings that only Spark honours (`settings`); for `place` see `asked_for`.

    Raises UnsupportedError where Spark must not or could not run it, and for a temporary function that would be made under
    them: it is used under others, too.
    """
    if not settings or not _fits_spark(statement):
        return None
    shown = ", ".join(f"{key} = {value}" for key, value in settings.items())
    words = statement.words
    if words[0] == "CREATE" and "FUNCTION" in words[2:5] and not _TEMPORARY.isdisjoint(words[1:4]):
        text = f"Making a temporary function under {shown} is not supported; RESET it before."
        raise UnsupportedError("UNSUPPORTED_FEATURE.SET_VALUE", text)
    if engine == EMBEDDED:
        text = f"The session has {shown}, which only Spark honours, but its {ENGINE} is {EMBEDDED}: RESET one of them."
        raise UnsupportedError("UNSUPPORTED_FEATURE.SET_VALUE", text)
    if _names_own(statement, place):
        text = f"The session has {shown}, which only Spark honours, and Spark knows no information schema: RESET it before."
        raise UnsupportedError("UNSUPPORTED_FEATURE.SET_VALUE", text)
    return Handover(SPARK, f"the session has {shown}, which only Spark honours")


def handed_over(statement: Statement, error: UnsupportedError, engine: str) -> Handover | None:
    """Spark, for what the embedded engine refuses; None where Spark must not or could not run it either."""
    if engine == EMBEDDED or error.condition in _FINAL or not _fits_spark(statement):
        return None
    reason = error.message.rstrip(".")
    return Handover(SPARK, f"{reason} by the embedded engine" if reason.endswith("is not supported") else reason)


def confirmed(statement: Statement, error: UserError, engine: str, size: int, seconds: float) -> Handover | None:
    """Spark, to confirm the error of a query or a change of rows, which has read `size` bytes and run for `seconds`.

    None for an error that is certain, and for what would cost Spark much.
    """
    words = statement.words
    if engine != "auto" or not (statement.kind is Kind.QUERY or words[0] in _CHANGES):
        return None
    condition = error.condition.partition(".")[0]
    certain = condition in _CERTAIN and not (condition == "TABLE_OR_VIEW_NOT_FOUND" and "WITH" in words)
    refused_there = words[0] in _ASKING and not _QUERIES.isdisjoint(words)
    if certain or refused_there or size > _CONFIRMED_BYTES or seconds > _CONFIRMED_SECONDS:
        return None
    return Handover(SPARK, f"the embedded engine told {error.condition}, which Spark confirms or not", confirms=True)


def too_large(plan: Plan, limit: int, engine: str) -> Handover | None:
    """Spark, for a query that would read more than `limit` bytes (0: no limit)."""
    size = sum(scan.bytes for scan in plan.scans)
    if not limit or size <= limit or engine == EMBEDDED:
        return None
    return Handover(SPARK, f"it reads {size} bytes, more than spark-above = {limit}")


def _names_own(statement: Statement, place: tuple[str, str]) -> bool:
    """Whether a statement names a relation of the information schema or of the catalog `system`, or stands in one of them."""
    if place[0].lower() == SYSTEM or place[1].lower() == INFORMATION_SCHEMA:
        return True
    names = [token.text.lower() for token in statement.tokens]
    return any(
        after == "." and (name == INFORMATION_SCHEMA or (name == SYSTEM and names[i + 3 : i + 4] == ["."]))
        for i, (name, after) in enumerate(itertools.pairwise(names))
    )


def _fits_spark(statement: Statement) -> bool:
    if statement.kind is Kind.QUERY:
        return True
    words = statement.words
    if not any(tuple(words[: len(first)]) == first for first in _FOR_SPARK):
        return False
    if words[0] == "MERGE" and not _EXCEPTED.isdisjoint(zip(words, words[1:], words[2:], strict=False)):
        return False
    if words[0] in ("ALTER", "BEGIN") and not _DATABRICKS_ONLY.isdisjoint(itertools.pairwise(words)):
        return False
    rest = words[4:] if words[0] == "CREATE" else words[1:]
    if words[:2] == ["ALTER", "TABLE"]:  # columns may be renamed and dropped, tables not
        return not any(words[i : i + 2] == ["RENAME", "TO"] for i in range(len(words) - 1))
    return words[0] != "BEGIN" or _NOT_IN_SPARK.isdisjoint(rest)


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
