"""Whether two outcomes say the same: types, rows, names, nullability, conditions of errors."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fuzz.outcome import Outcome
from tests.fuzz.tree import Case

#: Kinds of difference, the gravest first. `condition` is soft: both raise, but not for the same reason.
DIFFERENCES = ("crash", "rows", "order", "types", "answered", "raised", "names", "nullability", "condition")
SOFT = frozenset({"condition"})
_TOLERANCE = 1e-11  # Java's and C's mathematical functions differ in the last bits
_FLOAT_TOLERANCE = 1e-6
_DIGITS = re.compile(r"-?\d+\.\d{12,}(?:E-?\d+)?")
#: What conditions begin with that are no error of a statement's.
OURS = ("INTERNAL_ERROR", "CRASH")


@dataclass(frozen=True, slots=True)
class Difference:
    """`kind` of `DIFFERENCES`, and what differs in words."""

    kind: str
    detail: str


def compare(case: Case, spark: Outcome, ours: Outcome) -> Difference | None:
    """How our outcome differs from Spark's; None if it does not, or is a refusal by name."""
    if ours.kind == "refused":
        return None
    if ours.kind == "error":
        if ours.condition.startswith(OURS) and not spark.condition.startswith("INTERNAL_ERROR"):
            return Difference("crash", f"{ours.condition}: {ours.message[:200]}")
        if spark.kind == "answer":
            return Difference("raised", f"we raise {ours.condition}, Spark answers")
        same = spark.condition.partition(".")[0] == ours.condition.partition(".")[0]
        return None if same else Difference("condition", f"Spark {spark.condition}, we {ours.condition}")
    if spark.kind == "error":
        return Difference("answered", f"Spark raises {spark.condition}, we answer")
    return _answers(case, spark, ours)


def _answers(case: Case, spark: Outcome, ours: Outcome) -> Difference | None:
    want, got = [t for _, t, _ in spark.columns], [t for _, t, _ in ours.columns]
    if want != got:
        return Difference("types", "; ".join(f"Spark {w}, we {g}" for w, g in zip(want, got, strict=False) if w != g))
    if not same_multiset(spark.rows, ours.rows):
        return Difference("rows", "the rows differ")
    if case.ordered and not _same_order(case.ordered, spark.rows, ours.rows):
        return Difference("order", "the rows come in another order")
    for kind, at in (("names", 0), ("nullability", 2)):
        pairs = [(w[at], g[at], w[0]) for w, g in zip(spark.columns, ours.columns, strict=True) if w[at] != g[at]]
        if pairs:
            return Difference(kind, "; ".join(f"{name}: Spark {w}, we {g}" for w, g, name in pairs[:3]))
    return None


def _same_order(positions: Sequence[int], want: list[list[Any]], got: list[list[Any]]) -> bool:
    """Whether the sort keys come in the same order; ties may come in any, and the two zeros are one."""
    return all(_same_key(w[p], g[p]) for w, g in zip(want, got, strict=True) for p in positions)


def _same_key(want: Any, got: Any) -> bool:
    return (want == 0 and got == 0 and type(want) is type(got)) or same_value(want, got)


def same_multiset(want: list[list[Any]], got: list[list[Any]]) -> bool:
    """Whether the rows are the same, in any order."""
    if len(want) != len(got):
        return False
    left = Counter(map(_key, want))
    right = Counter(map(_key, got))
    if left == right:
        return True
    rest = list(got)
    for row in want:  # keys of floats may fall on both sides of a rounding
        hit = next((i for i, other in enumerate(rest) if same_value(row, other)), None)
        if hit is None:
            return False
        rest.pop(hit)
    return True


def same_value(want: Any, got: Any) -> bool:
    """Whether two canonical values are the same: NaN is NaN, -0.0 is not 0.0, last bits of floats do not count."""
    if isinstance(want, float) and isinstance(got, float):
        if math.isnan(want) or math.isnan(got):
            return math.isnan(want) and math.isnan(got)
        if want == 0 and got == 0:
            return math.copysign(1, want) == math.copysign(1, got)
        tolerance = _FLOAT_TOLERANCE if _single(want) and _single(got) else _TOLERANCE
        return math.isclose(want, got, rel_tol=tolerance)
    if isinstance(want, dict) and isinstance(got, dict):
        return want.keys() == got.keys() and all(same_value(v, got[k]) for k, v in want.items())
    if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
        return len(want) == len(got) and all(map(same_value, want, got))
    if isinstance(want, str) and isinstance(got, str) and want != got:
        return _DIGITS.fullmatch(want) is not None and _DIGITS.fullmatch(got) is not None and _near(want, got)
    return type(want) is type(got) and bool(want == got)


def _near(want: str, got: str) -> bool:
    """Whether two texts of doubles differ in their last bits alone."""
    return math.isclose(float(want), float(got), rel_tol=_TOLERANCE)


def _single(value: float) -> bool:
    """Whether it may be a FLOAT: no bits beyond 24."""
    if math.isinf(value):
        return True
    mantissa, _ = math.frexp(value)
    return (mantissa * (1 << 24)).is_integer()


def _key(value: Any) -> Hashable:
    if isinstance(value, float):
        return ("f", f"{value:.9e}")
    if isinstance(value, dict):
        return tuple((k, _key(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    return (type(value).__name__, value)
