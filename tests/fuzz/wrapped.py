"""The expressions of `misplaced` inside of each other kind of expression, in the clauses of a query."""

from __future__ import annotations

from random import Random

from tests.fuzz.grids import Grid, combined
from tests.fuzz.misplaced import PIECES, PLACE, TABLES
from tests.fuzz.tree import Case, case, query

_WRAPS = (
    "coalesce({x}, NULL)", "CASE WHEN ({x}) IS NULL THEN 1 ELSE 2 END", "array({x})[0]", "struct({x} AS q).q",
    "map('k', {x})['k']", "transform(array({x}), e -> e)[0]", "max({x}) OVER ()", "max({x})", "(SELECT {x})",
    "(SELECT max({x}) FROM u)", "EXISTS (SELECT 1 FROM u WHERE ({x}) IS NOT NULL)", "a IN (SELECT {x} FROM u)",
    "({x}) IN (SELECT a FROM u)", "if(c, {x}, NULL)", "({x}, a)", "rank() OVER (PARTITION BY {x} ORDER BY a)",
    "sum(a) OVER (ORDER BY {x})", "count({x}) FILTER (WHERE c)", "sort_array(collect_list({x}))", "({x}) IS NOT NULL",
    "count(DISTINCT {x})", "aggregate(array({x}), 0, (p, e) -> p + 1)", "CAST({x} AS STRING)", "typeof({x})",
    "({x}) <=> NULL", "count(*) FILTER (WHERE ({x}) IS NULL)", "lag(a) OVER (ORDER BY {x}, a)", "explode(array({x}))",
    "stack(1, {x})",
)  # fmt: skip
_PLACES = (
    "SELECT {x} FROM t", "SELECT a, {x} FROM t GROUP BY a", "SELECT {x} FROM t GROUP BY ALL",
    "SELECT {x} FROM t GROUP BY ROLLUP (a)", "SELECT a FROM t WHERE {x} IS NOT NULL",
    "SELECT a FROM t GROUP BY a HAVING {x} IS NOT NULL", "SELECT a FROM t ORDER BY {x}, a",
    "SELECT a FROM t QUALIFY {x} IS NOT NULL", "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a AND {x} IS NOT NULL",
    "SELECT DISTINCT {x} FROM t", "SELECT {x} FROM t GROUP BY 1", "SELECT a AS q, q + 1 AS r, {x} FROM t",
)  # fmt: skip
_ALIAS = " AS r"


def _asked(piece: str, wrap: str, place: str, random: Random) -> Case:
    text = f"{TABLES}{place.replace(PLACE, wrap.replace(PLACE, piece))}"
    return case("wrapped", query(text), labels=frozenset({piece, wrap, place}))


#: An alias stands in no other expression.
GRID = Grid("wrapped", combined(_asked, [piece for piece in PIECES if not piece.endswith(_ALIAS)], _WRAPS, _PLACES))
