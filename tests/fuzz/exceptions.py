"""What may differ, each with its reason. Everything else that differs is a fault, of the gateway or of this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.compare import Difference
from tests.fuzz.outcome import Outcome
from tests.fuzz.tree import Case


@dataclass(frozen=True, slots=True)
class Exempt:
    """A rule: its name, its reason, and when it holds."""

    name: str
    reason: str
    holds: Callable[[Case, Difference, Outcome, Outcome], bool]


def _internal(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition.startswith("INTERNAL_ERROR")


def _cancelled(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition in ("OPERATION_CANCELED", "RESOURCE_EXHAUSTED")


def _order_in_lists(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return difference.kind == "rows" and "unordered lists" in case.labels and len(spark.rows) == len(ours.rows)


def _newer(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition.startswith(("WRONG_NUM_ARGS", "UNRESOLVED_ROUTINE")) and ours.kind == "answer"


def _null_index(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """A column that Spark calls not nullable, for which we tell NULL."""
    told = [name for name, _, nullable in spark.columns if not nullable]
    at = [i for i, (name, _, _) in enumerate(spark.columns) if name in told]
    return (
        difference.kind == "rows"
        and "[" in case.statements[-1]
        and any(row[i] is None for row in ours.rows for i in at)
    )


def _shift_after_type(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    text = case.statements[-1].lower()
    nested = any(word in text for word in ("array", "map", "struct"))
    return spark.condition == "PARSE_SYNTAX_ERROR" and nested and ">>" in text


EXCEPTIONS: tuple[Exempt, ...] = (
    Exempt(
        "internal error",
        "Spark's own documentation calls INTERNAL_ERROR a bug of Spark's: there is no answer to compare with.",
        _internal,
    ),
    Exempt(
        "too large for Spark",
        "The statement was cancelled after 20 seconds, or took more than this Spark's heap: no answer to compare with.",
        _cancelled,
    ),
    Exempt(
        "order in lists",
        "ExpressionDescription of CollectList, CollectSet, First and Last: the result depends on the order of rows, which is "
        "not deterministic after a shuffle.",
        _order_in_lists,
    ),
    Exempt(
        "newer than Spark 4.2",
        "Databricks SQL documents functions and parameters that Spark has from 4.3 on, as instr(text, part, position).",
        _newer,
    ),
    Exempt(
        "NULL as an index",
        "GetArrayItem.nullable looks at the array's elements and not at the index, so Spark says of array(1, 2)[NULL] that it "
        "is never NULL; what clients then read in its place is whatever the vector holds.",
        _null_index,
    ),
    Exempt(
        "a shift behind the word ARRAY, MAP or STRUCT",
        "SqlBaseLexer.g4 counts these words as open types (incComplexTypeLevelCounter), also where they are functions, and "
        "then reads >> as the end of two types: a syntax error in Spark.",
        _shift_after_type,
    ),
)


def excuse(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> str | None:
    """The name of the exception that holds for a difference."""
    return next((rule.name for rule in EXCEPTIONS if rule.holds(case, difference, spark, ours)), None)
