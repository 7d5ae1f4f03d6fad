"""Expressions of each kind in each place of a query: what may stand where, and what it means there.

Random queries have aggregates, windows, generators and subqueries where they belong. Here it is asked where they are allowed at
all, and what is raised else.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.grids import Grid, combined
from tests.fuzz.tree import Case, case, query

PLACE = "{x}"
TABLES = (
    "WITH t AS (SELECT * FROM VALUES (1, 'x', array(1, 2), map('k', 1), named_struct('f', 1), true, DATE'2020-01-01', 1.5D), "
    "(2, 'y', array(3), map('k', 2), named_struct('f', 2), false, DATE'2021-01-01', 2.5D) AS v(a, b, l, m, s, c, d, e)), "
    "u AS (SELECT * FROM VALUES (1, 10), (2, 20) AS w(a, z)) "
)
PIECES = (
    "1", "2", "'a'", "NULL", "true", "1.5", "array(1)", "INTERVAL 1 DAY", "a", "b", "c", "t.a", "A", "l", "m", "s", "s.f",
    "l[0]", "m['k']", "d", "zz", "t.zz", "q", "r", "z", "u.a", "*", "t.*", "s.*", "a + 1", "-a", "a > 1", "NOT c",
    "a IS NULL", "b || 'x'", "CAST(a AS STRING)", "CAST(b AS INT)", "CASE WHEN c THEN a END", "coalesce(a, 1)", "a AS r",
    "(a, b)", "(a)", "struct(*)", "1 / 0", "raise_error('no')", "count(*)", "sum(a)", "sum(1)", "max(b)", "sum(a) + 1",
    "sum(a + 1) > 1", "avg(e)", "first(1)", "sort_array(collect_list(a))", "count(DISTINCT a)", "sum(a) FILTER (WHERE c)",
    "listagg(b) WITHIN GROUP (ORDER BY b)", "sum(sum(a))", "any_value(true)", "sum((SELECT 1))", "sum(max(a) OVER ())",
    "sum(a) OVER ()", "max(a) OVER (ORDER BY a)", "row_number() OVER (ORDER BY a)", "sum(a) OVER (PARTITION BY b) > 1",
    "rank() OVER (ORDER BY sum(a))", "sum(sum(a)) OVER ()", "sum(a) OVER w", "lag(a) OVER (ORDER BY a)",
    "sum(sum(a) OVER ()) OVER ()", "row_number() OVER ()", "row_number()", "(SELECT 1)", "(SELECT max(a) FROM u)",
    "(SELECT z FROM u WHERE u.a = t.a)", "(SELECT max(z) FROM u WHERE u.a = t.a)", "(SELECT a FROM u)",
    "(SELECT a, z FROM u LIMIT 1)", "(SELECT t.a)", "(SELECT sum(t.a))", "(SELECT count(*) FROM u WHERE u.a > t.a)",
    "EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", "NOT EXISTS (SELECT 1 FROM u WHERE z > 10 AND u.a = t.a)",
    "a IN (SELECT a FROM u)", "a NOT IN (SELECT z FROM u)", "(a, b) IN (SELECT a, 'x' FROM u)", "a IN (1, 2)",
    "a = ANY (SELECT a FROM u)", "explode(l)", "explode(array(1, 2))", "explode(m)", "explode_outer(l)", "posexplode(l)",
    "inline(array(s))", "stack(2, 1, 2)", 'json_tuple(\'{"a":1}\', \'a\')', "explode(l) + 1",
    "size(collect_list(explode(l)))", "explode(sort_array(collect_list(a)))", "sum(explode(l))", "x -> x",
    "transform(l, e -> e + a)",
    "transform(l, e -> sum(a))", "transform(l, e -> (SELECT 1))", "transform(l, e -> max(e) OVER ())",
    "transform(l, e -> explode(l))", "exists(l, e -> e = a)", "aggregate(l, 0, (x, y) -> x + y)", "rand() < 2",
    "rand(1) >= 0", "uuid() IS NULL", "current_date() IS NULL", "current_user() IS NULL",
    "monotonically_increasing_id() >= 0", "spark_partition_id() >= 0", "input_file_name()", "grouping(a)", "grouping_id()",
    "grouping_id(a)", "grouping__id", "DEFAULT", "DATE'2020-01-01'", "typeof(a)", "b COLLATE UTF8_BINARY",
    "b COLLATE UTF8_LCASE", "window(d, '1 day')", "window(TIMESTAMP'2020-01-01', '1 day')", "_metadata",
    "_metadata.file_name", "`a`", "`t`.`a`", "`a + 1`", "t", "u", "nosuch(a)", "sum()", "sum(a, b)", "sum(DISTINCT a)",
    "upper(DISTINCT b)", "upper(b) FILTER (WHERE c)", "upper(b) OVER ()", "assert_true(c)", "if(c, a, b)", "a b",
    "date_add(d, a)", "current_timestamp IS NULL", "user IS NULL", "interval(a)", "a::STRING", "named_struct('a', 1).a",
)  # fmt: skip
_PLACES = (
    "SELECT {x} FROM t", "SELECT {x} AS r FROM t WHERE c", "SELECT DISTINCT {x} FROM t", "SELECT a, {x} FROM t GROUP BY a",
    "SELECT {x} FROM t GROUP BY ALL", "SELECT {x}, count(*) FROM t GROUP BY ALL", "SELECT count(*) FROM t GROUP BY {x}",
    "SELECT {x} FROM t GROUP BY {x}", "SELECT {x} AS r FROM t GROUP BY r", "SELECT {x} FROM t GROUP BY 1",
    "SELECT b, {x} FROM t GROUP BY 1, 2", "SELECT count(*) FROM t GROUP BY ROLLUP ({x}, a)",
    "SELECT count(*) FROM t GROUP BY GROUPING SETS (({x}), ())", "SELECT a, {x} FROM t GROUP BY CUBE (a, b)",
    "SELECT {x} FROM t GROUP BY ROLLUP (a)", "SELECT a FROM t WHERE {x}", "SELECT a FROM t WHERE {x} = 1",
    "SELECT a FROM t WHERE {x} IS NOT NULL", "SELECT a FROM t WHERE NOT ({x} IS NULL OR a > 5)",
    "SELECT a FROM t GROUP BY a HAVING {x} IS NOT NULL", "SELECT a FROM t HAVING {x} IS NOT NULL",
    "SELECT count(*) FROM t HAVING {x} IS NOT NULL", "SELECT a AS r FROM t GROUP BY a HAVING {x} = 1",
    "SELECT a FROM t QUALIFY {x} IS NOT NULL",
    "SELECT a, row_number() OVER (ORDER BY a) AS n FROM t QUALIFY {x} IS NOT NULL AND n > 0",
    "SELECT a FROM t GROUP BY a QUALIFY {x} IS NOT NULL AND rank() OVER (ORDER BY a) = 1",
    "SELECT a FROM t ORDER BY {x}, a", "SELECT a FROM t ORDER BY {x}, a LIMIT 1", "SELECT a AS q FROM t ORDER BY {x}, q",
    "SELECT DISTINCT a FROM t ORDER BY {x}, a", "SELECT a FROM t GROUP BY a ORDER BY {x}, a",
    "SELECT a, sum(e) AS r FROM t GROUP BY a ORDER BY {x} DESC, a", "SELECT count(*) FROM t ORDER BY {x}",
    "SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY {x}, a", "SELECT a FROM t SORT BY {x}",
    "SELECT a FROM t DISTRIBUTE BY {x}", "SELECT a FROM t CLUSTER BY {x}", "SELECT a FROM t ORDER BY a LIMIT {x}",
    "SELECT a FROM t ORDER BY a LIMIT 1 OFFSET {x}", "SELECT t.a FROM t JOIN u ON {x}",
    "SELECT t.a FROM t JOIN u ON {x} = u.a", "SELECT t.a, z FROM t LEFT JOIN u ON t.a = u.a AND {x} IS NOT NULL",
    "SELECT t.a, z FROM t FULL JOIN u ON t.a = u.a AND {x} IS NULL",
    "SELECT a FROM t LEFT SEMI JOIN u ON t.a = u.a AND {x} IS NOT NULL",
    "SELECT a FROM t LEFT ANTI JOIN u ON {x} IS NOT NULL", "SELECT t.a, q FROM t, LATERAL (SELECT {x} AS q)",
    "SELECT t.a, q FROM t, LATERAL (SELECT {x} AS q FROM u)",
    "SELECT t.a, q FROM t LEFT JOIN LATERAL (SELECT {x} AS q FROM u WHERE u.a = t.a)",
    "SELECT t.a, q FROM t LATERAL VIEW explode(array({x})) v AS q", "SELECT t.a, q FROM t LATERAL VIEW {x} v AS q",
    "SELECT q FROM t LATERAL VIEW OUTER explode({x}) v AS q", "SELECT t.a, v.* FROM t, LATERAL explode({x}) v",
    "SELECT * FROM explode({x})", "SELECT * FROM range({x})", "SELECT * FROM VALUES ({x}) AS v(q)",
    "SELECT (SELECT {x}) FROM t", "SELECT (SELECT {x} FROM u LIMIT 1) FROM t", "SELECT (SELECT max({x}) FROM u) FROM t",
    "SELECT (SELECT max(z) FROM u WHERE {x} = u.a) FROM t", "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE {x} = z)",
    "SELECT a FROM t WHERE EXISTS (SELECT {x} FROM u)", "SELECT a FROM t WHERE a IN (SELECT {x} FROM u)",
    "SELECT a FROM t WHERE {x} IN (SELECT a FROM u)", "SELECT a FROM t WHERE {x} NOT IN (SELECT a FROM u)",
    "SELECT a FROM t WHERE {x} = (SELECT max(a) FROM u)", "SELECT sum({x}) FROM t", "SELECT count({x}) FROM t",
    "SELECT count(DISTINCT {x}, a) FROM t", "SELECT b, max({x}) FROM t GROUP BY b",
    "SELECT sort_array(collect_list({x})) FROM t", "SELECT count(*) FILTER (WHERE {x} IS NOT NULL) FROM t",
    "SELECT a, sum(e) FILTER (WHERE {x}) FROM t GROUP BY a", "SELECT listagg(b) WITHIN GROUP (ORDER BY {x}) FROM t",
    "SELECT percentile_cont({x}) WITHIN GROUP (ORDER BY a) FROM t", "SELECT max_by(a, {x}) FROM t",
    "SELECT max({x}) OVER () FROM t", "SELECT sum(a) OVER (PARTITION BY {x}) FROM t",
    "SELECT sum(a) OVER (ORDER BY {x}) FROM t",
    "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN {x} PRECEDING AND CURRENT ROW) FROM t",
    "SELECT sum(a) OVER (ORDER BY a RANGE BETWEEN {x} PRECEDING AND CURRENT ROW) FROM t",
    "SELECT lag(a, {x}) OVER (ORDER BY a) FROM t", "SELECT lag(a, 1, {x}) OVER (ORDER BY a) FROM t",
    "SELECT ntile({x}) OVER (ORDER BY a) FROM t", "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY {x})",
    "SELECT {x} FROM t WINDOW w AS (ORDER BY a)", "SELECT a, sum(sum(a)) OVER (ORDER BY {x}) FROM t GROUP BY a",
    "SELECT a, sum(a) OVER (PARTITION BY {x}) FROM t GROUP BY a", "SELECT transform(l, e -> {x}) FROM t",
    "SELECT filter(l, e -> {x} IS NOT NULL) FROM t", "SELECT aggregate(l, {x}, (acc, e) -> acc) FROM t",
    "SELECT aggregate(l, 0, (acc, e) -> {x}) FROM t", "SELECT transform({x}, e -> e) FROM t",
    "SELECT CASE WHEN {x} THEN 1 ELSE 2 END FROM t", "SELECT CASE a WHEN {x} THEN 1 END FROM t",
    "SELECT if(a > 1, {x}, NULL) FROM t", "SELECT coalesce({x}, NULL) FROM t", "SELECT array({x}) FROM t",
    "SELECT struct({x}) FROM t", "SELECT named_struct('q', {x}).q FROM t", "SELECT map('k', {x}) FROM t",
    "SELECT NOT {x} FROM t", "SELECT {x} IS NULL FROM t", "SELECT ({x}).f FROM t", "SELECT {x}[0] FROM t",
    "SELECT l[{x}] FROM t", "SELECT {x} + 1 FROM t", "SELECT {x} = 1 OR a = 1 FROM t", "SELECT CAST({x} AS STRING) FROM t",
    "SELECT {x} BETWEEN 1 AND 2 FROM t", "SELECT * FROM (SELECT a, b FROM t) PIVOT (sum(a) FOR b IN ({x}))",
    "SELECT * FROM (SELECT a, b FROM t) PIVOT (max({x}) FOR b IN ('x'))",
    "SELECT * FROM (SELECT a, z FROM u) UNPIVOT (v FOR n IN (a, z)) WHERE {x} IS NOT NULL",
    "SELECT r FROM (SELECT {x} AS r, a FROM t) WHERE a = 1", "SELECT r, r FROM (SELECT {x} AS r FROM t)",
    "SELECT {x} AS r, r IS NULL FROM t", "SELECT a AS r, {x} AS q FROM t", "SELECT {x} FROM t WHERE a = 5",
    "SELECT {x} FROM t LIMIT 0", "SELECT {x} UNION ALL SELECT 1", "SELECT 1 UNION SELECT {x} FROM t",
    "SELECT a FROM t EXCEPT SELECT {x} FROM u", "SELECT stack(2, {x}, {x}) FROM t", "SELECT {x}", "SELECT {x} FROM u",
    "SELECT {x} FROM t JOIN u USING (a)", "SELECT {x} FROM t NATURAL JOIN u",
    "SELECT {x} FROM t LEFT JOIN u ON t.a = u.a + 1", "SELECT {x} FROM (SELECT a, max(b) AS b FROM t GROUP BY a) t",
    "SELECT * EXCEPT (a), {x} FROM u", "FROM t |> SELECT {x}", "FROM t |> WHERE {x} IS NOT NULL |> SELECT a",
    "FROM t |> EXTEND {x} AS r |> SELECT r", "FROM t |> AGGREGATE {x} GROUP BY a",
    "FROM t |> AGGREGATE count(*) GROUP BY {x}", "FROM u |> SET a = {x}", "FROM t |> SELECT a |> ORDER BY {x}, a",
    "VALUES ({x})", "VALUES (1), ({x})", "SELECT IDENTIFIER('a'), {x} FROM t", "SELECT a FROM t TABLESAMPLE ({x} ROWS)",
    "SELECT a FROM t TABLESAMPLE ({x} PERCENT)",
)  # fmt: skip


def _asked(piece: str, place: str, random: Random) -> Case:
    text = f"{TABLES}{place.replace(PLACE, piece)}"
    return case("misplaced", query(text), labels=frozenset({piece, place}))


GRID = Grid("misplaced", combined(_asked, PIECES, _PLACES))
