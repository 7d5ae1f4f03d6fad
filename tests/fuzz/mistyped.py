"""Calls of every function and operator with an argument of each type in each place, one too few and one too many.

Random calls have arguments of the types that functions take. Here it is asked what is a call at all, what type it has, and what
is raised else.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from tests.fuzz.grids import Grid
from tests.fuzz.signatures import Signature, learnt
from tests.fuzz.tree import Case, case, query
from tests.fuzz.values import EVERYDAY, literal, null

_WAYS = 3  # in which a function is called, at most: by the types of its arguments
_NOTHING = 0.2  # of arguments are NULL
_EDGE = 0.2
_PLACE, _OTHER = "{x}", "{y}"
#: Operators and forms with a place for what they are asked about.
_FORMS = (
    "- {x}", "+ {x}", "~ {x}", "NOT {x}", "{x} IS NULL", "{x} IS TRUE", "{x} IS NOT FALSE", "{x} LIKE 'a%'", "'a' LIKE {x}",
    "{x} RLIKE 'a'", "{x} ILIKE ANY ('a', 'b')", "{x} BETWEEN {x} AND {x}", "CASE WHEN {x} THEN 1 END",
    "CASE {x} WHEN {x} THEN 1 END", "if({x}, 1, 2)", "{x}[0]", "{x}['a']", "array(1, 2)[{x}]", "map('a', 1)[{x}]",
    "map(1, 'a')[{x}]", "{x}.a", "{x}::STRING", "{x}::INT", "EXTRACT(YEAR FROM {x})", "EXTRACT(SECOND FROM {x})",
    "EXTRACT(DAY FROM {x})", "POSITION({x} IN 'abc')", "POSITION('a' IN {x})", "TRIM(BOTH {x} FROM 'abc')",
    "TRIM(BOTH 'a' FROM {x})", "SUBSTRING({x} FROM 1 FOR 2)", "SUBSTRING('abc' FROM {x})", "OVERLAY({x} PLACING 'a' FROM 1)",
    "OVERLAY('abc' PLACING 'a' FROM {x})", "{x} IN (SELECT 1)", "{x} IN (SELECT 'a')", "(SELECT {x})",
    "EXISTS (SELECT 1 WHERE {x})", "transform({x}, e -> e)", "filter(array(1), e -> {x})", "array({x}, {x})[0]",
    "struct({x}, 1).col2", "sum({x}) OVER ()", "max({x}) OVER (ORDER BY {x})", "lag({x}) OVER (ORDER BY 1)",
    "lag(1, 1, {x}) OVER (ORDER BY 1)", "lag(1, {x}) OVER (ORDER BY 1)", "ntile({x}) OVER (ORDER BY 1)",
    "nth_value(1, {x}) OVER (ORDER BY 1)", "count(*) OVER (PARTITION BY {x})",
    "sum(1) OVER (ORDER BY {x} RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "sum(1) OVER (ORDER BY 1 RANGE BETWEEN {x} PRECEDING AND CURRENT ROW)", "count(DISTINCT {x})",
    "sum(1) FILTER (WHERE {x})", "percentile_cont(0.5) WITHIN GROUP (ORDER BY {x})",
    "percentile_cont({x}) WITHIN GROUP (ORDER BY 1)", "listagg({x}) WITHIN GROUP (ORDER BY {x})",
    "mode() WITHIN GROUP (ORDER BY {x})", "timestampadd(DAY, {x}, DATE'2020-01-01')", "timestampadd(DAY, 1, {x})",
    "timestampdiff(DAY, {x}, DATE'2020-01-01')", "timestampdiff(HOUR, TIMESTAMP'2020-01-01 00:00:00', {x})",
    "{x} AT TIME ZONE 'UTC'", "CAST({x} AS INTERVAL DAY TO SECOND)", "CAST({x} AS ARRAY<STRING>)",
    "CAST({x} AS STRUCT<a:INT,b:STRING>)", "CAST({x} AS MAP<STRING,INT>)", "typeof({x})", "grouping({x})",
    "{x} COLLATE UTF8_BINARY",
)  # fmt: skip
#: The same with a place for another operand.
_INFIX = (
    "+", "-", "*", "/", "%", "DIV", "&", "|", "^", "<<", ">>", ">>>", "||", "=", "<", "<=>", "<>", "IS DISTINCT FROM",
    "AND", "OR", "LIKE", "RLIKE",
)  # fmt: skip
_PAIRED = (
    "coalesce", "greatest", "nullif", "nvl", "array", "map", "struct", "concat", "equal_null", "array_contains",
    "array_append", "array_position", "array_remove", "element_at", "try_add", "try_subtract", "try_multiply", "try_divide",
    "pmod", "mod", "power", "datediff", "date_add", "months_between", "array_union", "array_except", "array_intersect",
    "arrays_overlap", "arrays_zip", "map_concat", "map_from_arrays", "map_contains_key", "array_prepend", "sequence", "get",
    "array_repeat", "trunc", "date_trunc", "try_element_at", "least", "nanvl", "ifnull", "date_diff", "date_sub", "repeat",
)  # fmt: skip
_BESIDE = (
    "CASE WHEN true THEN {x} ELSE {y} END", "CASE {x} WHEN {y} THEN 1 END", "if(true, {x}, {y})", "nvl2(1, {x}, {y})",
    "{x} IN ({y}, {y})", "{x} IN (SELECT {y})", "{x} BETWEEN {y} AND {y}", "{x} = (SELECT {y})", "{x} NOT IN ({y}, NULL)",
    "decode(1, {x}, 1, {y}, 2)", "decode({x}, {y}, 1)", "array(array({x}), array({y}))", "map({x}, 1, {y}, 2)",
    "map(1, {x}, 2, {y})", "array(struct({x} AS a), struct({y} AS a))", "named_struct('a', {x}) = named_struct('a', {y})",
    "array({x}) = array({y})", "lag({x}, 1, {y}) OVER (ORDER BY 1)", "array_insert(array({x}), 1, {y})",
    "array_contains(array({x}), {y})", "elt(1, {x}, {y})", "map({x}, 1)[{y}]", "element_at(map({x}, 1), {y})",
    "map_concat(map({x}, 1), map({y}, 2))", "concat(array({x}), array({y}))", "coalesce(map({x}, 1), map({y}, 2))",
    "coalesce(map(1, {x}), map(2, {y}))", "struct({x}) IN (struct({y}))", "transform({x}, e -> {y})",
    "aggregate(array({x}), {y}, (a, e) -> a)", "aggregate(array({x}), {y}, (a, e) -> e)",
    "zip_with(array({x}), array({y}), (a, b) -> a = b)",
    "sum(1) OVER (ORDER BY {x} RANGE BETWEEN {y} PRECEDING AND CURRENT ROW)", "max_by({x}, {y})", "array_join({x}, {y})",
    "split_part({x}, {y}, 1)", "SELECT {x} AS a UNION ALL SELECT {y}", "SELECT {x} AS a EXCEPT SELECT {y}",
    "SELECT {x} AS a INTERSECT ALL SELECT {y}", "SELECT * FROM VALUES ({x}), ({y}) AS t(a)",
    "SELECT * FROM (SELECT {x} AS k) JOIN (SELECT {y} AS k) USING (k)",
    "SELECT * FROM (SELECT {x} AS k) FULL JOIN (SELECT {y} AS k) USING (k)",
    "SELECT * FROM (SELECT {x} AS a) t JOIN (SELECT {y} AS b) u ON a = b", "SELECT stack(2, {x}, {y})",
    "SELECT explode(array({x}, {y}))", "SELECT inline(array(struct({x}), struct({y})))",
    "SELECT * FROM (SELECT {x} AS a, {y} AS b) UNPIVOT (v FOR n IN (a, b))",
    "SELECT * FROM (SELECT {x} AS a, 1 AS b) PIVOT (max(b) FOR a IN ({y}))",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """An expression, or a whole query, with places for an argument, and the type put there; `name` for what it is of."""

    name: str
    text: str
    type: str

    def case(self, random: Random) -> Case:
        """With a column, a constant or a NULL in the places."""
        value = null(self.type) if random.random() < _NOTHING else literal(random, self.type, _EDGE, 0)
        whole = self.text.startswith("SELECT ")
        constant = whole or random.random() < 0.5
        written, source = (value, "") if constant else ("x", f" FROM VALUES ({value}) AS t(x)")
        text = f"{'' if whole else 'SELECT '}{self.text.replace(_PLACE, written)}{source}"
        return case("mistyped", query(text), labels=frozenset({self.name}))


@functools.cache
def calls() -> tuple[Call, ...]:
    """All calls."""
    return (*_forms(), *_functions(), *_pairs())


def _forms() -> Iterator[Call]:
    for form in _FORMS:
        for type_ in EVERYDAY:
            yield Call(form, form, type_)


def _pairs() -> Iterator[Call]:
    forms = {f"{_PLACE} {symbol} {_OTHER}" for symbol in _INFIX} | {f"{name}({_PLACE}, {_OTHER})" for name in _PAIRED}
    for form in (*sorted(forms), *_BESIDE):
        for other in EVERYDAY:
            text = form.replace(_OTHER, EVERYDAY[other][-1])
            for type_ in EVERYDAY:
                yield Call(form, text, type_)


def _functions() -> Iterator[Call]:
    for name, ways in sorted(learnt().calls.items()):
        for way in islice({tuple(a.type for a in w.arguments): w for w in ways}.values(), _WAYS):
            yield from _of(name, way)


def _of(name: str, way: Signature) -> Iterator[Call]:
    texts = [literal(Random(0), a.type, 0, 0) if a.column and a.type else a.text for a in way.arguments]
    for i, argument in enumerate(way.arguments):
        if argument.type:
            written = ", ".join([*texts[:i], _PLACE, *texts[i + 1 :]])
            for type_ in EVERYDAY:
                yield Call(name, f"{name}({written})", type_)
    for other in (texts[:-1], [*texts, "1"], [*texts, "'a'"]):
        yield Call(name, f"{name}({', '.join(other)})", "void")


GRID = Grid("mistyped", lambda: [one.case for one in calls()])
