"""The function catalogue: one row per Spark function, by family; `CATALOGUE` is what binding and lowering look names up in."""

from __future__ import annotations

from gateway.sql.functions import (
    aggregates,
    arrays,
    collections,
    conditional,
    context,
    date_fields,
    datetimes,
    encodings,
    formats,
    gathered,
    generators,
    hashing,
    intervals,
    json,
    lambdas,
    likes,
    maps,
    maths,
    operators,
    regex,
    statistics,
    strings,
    variants,
    windows,
)
from gateway.sql.functions.aggregates import NOT_AS_WINDOW
from gateway.sql.functions.names import SPARK_NAMES
from gateway.sql.typed.catalogue import catalogue

CATALOGUE = catalogue(
    operators.ROWS,
    likes.ROWS,
    conditional.ROWS,
    strings.ROWS,
    encodings.ROWS,
    maths.ROWS,
    hashing.ROWS,
    aggregates.ROWS,
    gathered.ROWS,
    statistics.ROWS,
    windows.ROWS,
    regex.ROWS,
    json.ROWS,
    formats.ROWS,
    date_fields.ROWS,
    datetimes.ROWS,
    intervals.ROWS,
    collections.ROWS,
    arrays.ROWS,
    maps.ROWS,
    lambdas.ROWS,
    generators.ROWS,
    context.ROWS,
    variants.ROWS,
)

#: Names that Spark knows and the catalogue does not: UNSUPPORTED_FUNCTION; any other unknown name is UNRESOLVED_ROUTINE.
SPARK_ONLY: frozenset[str] = SPARK_NAMES - frozenset(CATALOGUE)


def public_names() -> list[str]:
    """The names under which a user can call what the catalogue has, in order."""
    return sorted(name for name in CATALOGUE if name[0].isalpha() and " " not in name)


__all__ = ["CATALOGUE", "NOT_AS_WINDOW", "SPARK_ONLY", "public_names"]
