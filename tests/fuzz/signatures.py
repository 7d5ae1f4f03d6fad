"""How functions are called, learnt from the recorded probes: texts and types of arguments, and the type of the result.

The probes call every function of Spark with types that it takes; binding them tells the types.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gateway.errors import GatewayError
from gateway.sql.functions import CATALOGUE
from tests.fuzz.brackets import arguments, items
from tests.unit.sql.bind.analysis import analysed
from tests.unit.sql.functions.probe_runner import probes

# What tells of the clock, of chance, of the session or of the machine; what is there to fail; what is slow by design.
UNSTEADY = frozenset(
    {
        "rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id",
        "spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length",
        "now", "current_timestamp", "localtimestamp", "current_date", "curdate", "current_time", "unix_timestamp",
        "current_timezone", "current_user", "user", "session_user", "current_catalog", "current_database", "current_schema",
        "version", "current_metastore", "java_method", "reflect", "try_reflect", "sleep", "raise_error",
    }
)  # fmt: skip
# Rows of the catalogue that are there for Spark's errors, or for what the binder makes of an operator.
NOT_RUN = frozenset({"aggregate", "reduce", "extractansiintervaldays"})
_CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument as recorded: its text, its type ("" if it has none by itself, as a lambda), whether columns are in it."""

    text: str
    type: str
    column: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """One recorded call and the type of its result."""

    name: str
    arguments: tuple[Argument, ...]
    type: str


@dataclass(frozen=True, slots=True)
class Signatures:
    """Calls by function, and functions by the type of their results."""

    calls: Mapping[str, tuple[Signature, ...]]
    by_type: Mapping[str, tuple[Signature, ...]]

    def kind(self, name: str) -> str:
        """scalar | aggregate | window | generator | table."""
        return CATALOGUE[name].kind


@functools.cache
def learnt() -> Signatures:
    """The signatures of all functions that the catalogue has and binds."""
    calls: dict[str, dict[Signature, None]] = defaultdict(dict)
    for _, statement in probes():
        if "error" in statement:  # its arguments are there to raise, and would whatever stands around them
            continue
        for found in _signatures(statement["sql"]):
            calls[found.name][found] = None
    by_type: dict[str, list[Signature]] = defaultdict(list)
    for found_all in calls.values():
        for found in found_all:
            by_type[found.type].append(found)
    return Signatures({n: tuple(s) for n, s in calls.items()}, {t: tuple(s) for t, s in by_type.items()})


def _signatures(sql: str) -> Iterator[Signature]:
    if not sql.startswith("SELECT "):
        return
    selected, source = items(sql[len("SELECT ") :])
    for item in selected:
        head = _CALL.match(item)
        if head is None or head[1].lower() not in CATALOGUE or head[1].lower() in UNSTEADY:
            continue
        inside = arguments(item[head.end() - 1 :])
        if inside is None:  # something follows the call
            continue
        type_ = _type(item, source)
        if type_ is not None:
            args = tuple(Argument(a, _type(a, source) or "", _type(a, "") is None) for a in inside)
            if not any(map(_of_its_place, args)):
                yield Signature(head[1].lower(), args, type_)


def _of_its_place(argument: Argument) -> bool:
    """Whether it means something only where it was recorded."""
    text = argument.text
    unknown = argument.type == "" and text.isidentifier()
    return unknown or "=>" in text or text == "*" or text.upper().startswith("DISTINCT ")


@functools.cache
def castable(source: str, target: str) -> bool:
    """Whether there is a cast of one type to the other."""
    value = "NULL" if source == "void" else f"CAST(NULL AS {source})"
    return _type(f"try_cast({value} AS {target})", "") is not None


@functools.cache
def _type(text: str, source: str) -> str | None:
    """The type of an expression over a FROM clause; None if it has none, or is not bound here."""
    try:
        return analysed(f"SELECT {text} {source}").schema.fields[0].type.simple
    except GatewayError:
        return None
