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


def _order_in_lists(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return difference.kind == "rows" and "unordered lists" in case.labels and len(spark.rows) == len(ours.rows)


EXCEPTIONS: tuple[Exempt, ...] = (
    Exempt(
        "internal error",
        "Spark's own documentation calls INTERNAL_ERROR a bug of Spark's: there is no answer to compare with.",
        _internal,
    ),
    Exempt(
        "order in lists",
        "ExpressionDescription of CollectList, CollectSet, First and Last: the result depends on the order of rows, which is "
        "not deterministic after a shuffle.",
        _order_in_lists,
    ),
)


def excuse(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> str | None:
    """The name of the exception that holds for a difference."""
    return next((rule.name for rule in EXCEPTIONS if rule.holds(case, difference, spark, ours)), None)
