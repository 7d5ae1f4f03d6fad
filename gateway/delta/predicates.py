"""Conjuncts that a scan may use to leave out files: hints, never the filter itself.

Values are pyarrow scalars in the column's Arrow type; a column is a top-level name with the table's spelling. A predicate
that a reader does not understand is ignored: the engine evaluates the full condition again on every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Comparison:
    """``column op value`` with op one of = < <= > >= ; never true for NULL."""

    column: str
    op: str
    value: Any


@dataclass(frozen=True, slots=True)
class OneOf:
    """``column IN (values)``; values hold no NULL."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NullTest:
    """``column IS NULL`` or, with `negated`, ``IS NOT NULL``."""

    column: str
    negated: bool


@dataclass(frozen=True, slots=True)
class StartsWith:
    """``column LIKE 'prefix%'``."""

    column: str
    prefix: str


Predicate = Comparison | OneOf | NullTest | StartsWith
