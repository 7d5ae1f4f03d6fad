"""What may differ, each with its reason. Everything else that differs is a fault, of the gateway or of this machine."""

from __future__ import annotations

import re
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


#: An approximate percentile that is told to keep few values: its third argument.
_ROUGH = re.compile(r"(?:approx_percentile|percentile_approx)\(.+, \d{1,3}\)")
_FIRST = frozenset({"first", "first_value", "any_value"})


def _internal(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition.startswith("INTERNAL_ERROR")


def _cancelled(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition in ("OPERATION_CANCELED", "RESOURCE_EXHAUSTED")


def _order_in_lists(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return difference.kind == "rows" and "unordered lists" in case.labels and len(spark.rows) == len(ours.rows)


def _few_kept(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return difference.kind == "rows" and _ROUGH.search(case.statements[-1].lower()) is not None


def _first_row(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return difference.kind == "raised" and bool(case.functions & _FIRST)


def _newer(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition.startswith(("WRONG_NUM_ARGS", "UNRESOLVED_ROUTINE")) and ours.kind == "answer"


def _null_index(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """A column that Spark calls not nullable and we do, or for which we tell NULL."""
    text = case.statements[-1].lower()
    if "[" not in text and "element_at(" not in text:
        return False
    at = [i for i, (_, _, nullable) in enumerate(spark.columns) if not nullable]
    if difference.kind == "nullability":
        return all(ours.columns[i][2] or not column[2] for i, column in enumerate(spark.columns))
    return difference.kind == "rows" and any(row[i] is None for row in ours.rows for i in at)


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
        "approximate percentiles",
        "ExpressionDescription of ApproximatePercentile: it is approximate, with an error of 1/accuracy; ours is exact.",
        _few_kept,
    ),
    Exempt(
        "values that first() does not look at",
        "First.updateExpressions is If(valueSet, first, child): the child is computed for the row that happens to be "
        "the first, which its description calls not deterministic; what other rows would raise is seen or not.",
        _first_row,
    ),
    Exempt(
        "newer than Spark 4.2",
        "Databricks SQL documents functions and parameters that Spark has from 4.3 on, as instr(text, part, position).",
        _newer,
    ),
    Exempt(
        "NULL as an index",
        "GetArrayItem.nullable and ElementAt.nullable look at the array's elements and not at the index, so Spark says of "
        "array(1, 2)[NULL] that it is never NULL; what clients then read in its place is whatever the vector holds.",
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
