"""The parser groups as Spark's grammar does, loses nothing of the text, and tells errors with their place."""

from __future__ import annotations

import csv
import gzip
import json
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.tokenizer_core import TokenType

from gateway.errors import GatewayError, ResourceError, UnsupportedError, UserError
from gateway.sql.read import allowed
from gateway.sql.read.statement import read_statement
from gateway.sql.read.tree import IntervalLiteral, Positive, TypedLiteral, number_suffix, span_of
from tests.unit.sql.read.trees import parse_query

DATA = Path(__file__).parents[3] / "data"
CORPORA = ("tpc.jsonl.gz", "spark_function_examples.jsonl.gz", "spark_golden_dev.jsonl.gz")


def parse(text: str) -> Any:
    return parse_query(text)


def expression(text: str) -> Any:
    return parse("SELECT " + text).expressions[0]


def outline(node: Any) -> str:
    """A short text of the tree: class names with their leaves."""
    if isinstance(node, exp.Column):
        return ".".join(part.name for part in node.parts)
    if isinstance(node, exp.Identifier):
        return str(node.name)
    if isinstance(node, exp.Literal):
        return repr(node.this) if node.is_string else str(node.this)
    if isinstance(node, exp.Anonymous):
        return f"{node.this}({', '.join(outline(x) for x in node.expressions)})"
    if isinstance(node, (TypedLiteral, IntervalLiteral)):
        return " ".join(str(v) for v in node.args.values() if v is not None)
    cells = []
    for value in node.args.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Expr):
                cells.append(outline(item))
            elif item is not None:
                cells.append(str(item))
    return f"{type(node).__name__}[{', '.join(cells)}]"


def cases(shared: Path, name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(shared / "conformance" / name, "rt") as lines:
        for line in lines:
            yield from json.loads(line).get("statements", [])


# Spark's own view of how operators group: 1,530 texts over a, b, c.


def grouping(node: Any) -> Any:
    """Columns and nested tuples of them; whatever has one column inside is that column."""
    if isinstance(node, exp.Column):
        return ".".join(part.name for part in node.parts)
    found = []
    for value in node.args.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Expr) and not isinstance(item, (exp.Literal, exp.Null, exp.Boolean, exp.Var)):
                inner = item.name if isinstance(item, exp.Identifier) and isinstance(node, exp.Dot) else grouping(item)
                if inner != ():
                    found.append(inner)
    return found[0] if len(found) == 1 else tuple(found)


def recorded(text: str) -> Any:
    """The same shape from the table's brackets."""
    for word in ("unresolvedcollation()", "true", "false"):
        text = text.replace(word, " ")
    stack: list[list[Any]] = [[]]
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            stack.append([])
        elif word == ")":
            done = stack.pop()
            if done:
                stack[-1].append(done[0] if len(done) == 1 else tuple(done))
        else:
            stack[-1].append(word)
    return stack[0][0] if len(stack[0]) == 1 else tuple(stack[0])


# The table shows the value of a literal after its casts, we the literal.
DISPLAY = {
    "-1::string", "-1.5::string", "- 1::string", "+1::string", "-1[0]", "DATE '2020-01-01'::string",
    "TIMESTAMP '2020-01-01'::date", "X'1F'::string", "'a' 'b'::int", "INTERVAL '1' DAY::string", "a -> a + 1", "a[0].b::int",
}  # fmt: skip


def test_operators_group_as_in_spark() -> None:
    counts: Counter[str] = Counter()
    for row in csv.DictReader((DATA / "operator-grouping.csv").open()):
        text, spark = row["text"], row["spark_grouping"]
        try:
            tree = expression(text)
        except GatewayError:
            # Spark takes NOT for a column with an alias behind it, and finds no such column later.
            assert spark == "ERROR" or "NOT" in spark, text
            counts["refused by both" if spark == "ERROR" else "column NOT"] += 1
            continue
        assert spark != "ERROR", text
        if text in DISPLAY:
            counts["display"] += 1
            continue
        assert grouping(tree) == recorded(spark), text
        counts["same"] += 1
    assert counts["refused by both"] == 85
    assert counts["same"] >= 1_400


# The 18 rows where sqlglot's own parser goes wrong (numbers as in the table of causes).


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("DATE '2020-01-01'::string", "Cast[2020-01-01 DATE, string, True]"),  # 1
        ("TIMESTAMP '2020-01-01'::date::string", "Cast[Cast[2020-01-01 TIMESTAMP, date, True], string, True]"),
        ("1 = 2 < 3", "LT[EQ[1, 2], 3]"),  # 2
        ("'a' || 1 + 2", "Add[DPipe['a', 1], 2]"),
        ("a = b LIKE c", "Like[EQ[a, b], c]"),
        ("a LIKE b = c", "Like[a, EQ[b, c]]"),
        ("a >>> b >> c << d", "BitwiseLeftShift[BitwiseRightShift[UnsignedRightShift[a, b], c], d]"),
        ("-1::string", "Cast[-1, string, True]"),  # 3
        ("-128Y", "-128Y"),
        ("- - 1", "Neg[-1]"),
        ("2 - 1", "Sub[2, 1]"),
        ("-a::int", "Neg[Cast[a, int, True]]"),
        ("+ '1'", "Positive['1']"),  # 4
        ("'it''s'", '"it\'s"'),  # 5
        ("'a' \"b\" r'\\c'", "'ab\\\\c'"),  # 6: adjacent and raw strings
        ("TIMESTAMP_NTZ '2020-01-01 00:00:00.123456789'", "2020-01-01 00:00:00.123456789 TIMESTAMP_NTZ"),  # 7
        ("nvl(Ceil(x, 0, 0), first(x, true))", "nvl(Ceil(x, 0, 0), first(x, Boolean[True]))"),  # 8
        ("max_by(DISTINCT x, y, 2)", "max_by(Distinct[x, y, 2])"),
        ("date_format(d, 'YYYY y')", "date_format(d, 'YYYY y')"),  # 9
        ("named_struct('a', 1)", "named_struct('a', 1)"),  # 12
        ("array(1, 2)[i]", "Bracket[array(1, 2), i]"),
        ("INTERVAL 23 DAYS 4 HOURS", "(('23', 'DAY'), ('4', 'HOUR'))"),  # 13
        ("INTERVAL '-1-2' YEAR TO MONTH", "(('-1-2', 'YEAR'),) MONTH"),
        ("INTERVAL - '5' SECOND", "(('-5', 'SECOND'),)"),
        ("INTERVAL '1 day 2 hours'", "1 day 2 hours INTERVAL"),
        ("INTERVAL 1 DAY - INTERVAL 2 DAY", "Sub[(('1', 'DAY'),), (('2', 'DAY'),)]"),
        ("localtimestamp()", "localtimestamp()"),  # 14
        ("f(x -> x + 1, (a, b) -> a)", "f(Lambda[Add[x, 1], x], Lambda[a, a, b])"),
        ("X 'F0'", "F0 X"),  # 16
        ("CAST(x AS CHAR(3))", "Cast[x, char(3)]"),  # 18
        ("TRY_CAST(x AS DECIMAL(5, 2))", "TryCast[x, decimal(5,2)]"),
        ("a AND b AND c AND d", "And[And[a, b], And[c, d]]"),
        ("(a AND b) AND c", "And[And[a, b], c]"),
        ("NOT a IN (1, 2) AND ! b", "And[Not[In[a, 1, 2]], Not[b]]"),
        ("a NOT BETWEEN 1 AND 2 + 3", "Not[Between[a, 1, Add[2, 3]]]"),
        ("a IS NOT DISTINCT FROM b", "NullSafeEQ[a, b]"),
        ("a IS DISTINCT FROM b", "Not[NullSafeEQ[a, b]]"),
        ("a LIKE 'x!%' ESCAPE '!'", "Escape[Like[a, 'x!%'], '!']"),
        ("a ILIKE ANY ('x', 'y')", "ILike[a, Any[Tuple['x', 'y']]]"),
        ("(a).b", "Dot[a, b]"),
        ("a.b.c.d.e", "Dot[a.b.c.d, e]"),
        ("CASE a WHEN 1 THEN 2 ELSE 3 END", "Case[a, If[1, 2], 3]"),
        ("position('x' IN s)", "locate('x', s)"),
        ("substring(s FROM 2 FOR 3)", "substring(s, 2, 3)"),
        ("substr(s IS NULL, 2)", "substr(Is[s, Null[]], 2)"),
        ("trim(LEADING 'x' FROM s)", "Trim[s, 'x', LEADING]"),
        ("trim(s)", "trim(s)"),
        ("overlay(s PLACING 'x' FROM 2)", "overlay(s, 'x', 2)"),
        ("extract(Year FROM d)", "Extract[Var[Year], d]"),
        ("dateadd(month, 1, d)", "dateadd(Var[month], 1, d)"),
        ("f(k => 1)", "f(Kwarg[k, 1])"),
        ("a.b.f(1)", "Dot[a.b, f(1)]"),
        (
            "sum(DISTINCT a) FILTER (WHERE b) OVER (PARTITION BY c ORDER BY d DESC NULLS LAST ROWS 2 PRECEDING)",
            "Window[Filter[sum(Distinct[a]), Where[b]], c, Order[Ordered[d, True, False]], "
            "WindowSpec[ROWS, 2, PRECEDING, CURRENT ROW]]",
        ),
        ("first(a IGNORE NULLS)", "IgnoreNulls[first(a)]"),
        ("lag(a) IGNORE NULLS OVER w", "Window[IgnoreNulls[lag(a)], w]"),
        ("listagg(a, ',') WITHIN GROUP (ORDER BY b)", "WithinGroup[listagg(a, ','), Order[Ordered[b]]]"),
        ("x ?:: int", "TryCast[x, int, True]"),
        ("count(*)", "count(Star[])"),
        ("* EXCEPT (a, t.b)", "Star[a, t.b]"),
        (":a + ?", "Add[Placeholder[a], Placeholder[]]"),
        ("struct(1 AS a, b)", "struct(Alias[1, a], b)"),
        ("explode(m) AS (k, v)", "Aliases[explode(m), k, v]"),
    ],
)
def test_expressions(text: str, tree: str) -> None:
    assert outline(expression(text)) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("VALUES 1, (2, 3), struct(4) AS t(x)", "Values[Tuple[1], Tuple[2, 3], Tuple[4], TableAlias[t, x]]"),  # 11
        ("SELECT all, order FROM t", "Select[all, order, From[Table[t]]]"),  # 14
        ("SELECT offset, limit FROM t WHERE offset > 1", "Select[offset, limit, From[Table[t]], Where[GT[offset, 1]]]"),
        ("SELECT 1 AS order", "Select[Alias[1, order]]"),
        ("SELECT 1 FROM", "Select[Alias[1, FROM]]"),
        ("SELECT * FROM t@v1 AS a", "Select[Star[], From[Table[t, Version[VERSION, @, 1], TableAlias[a]]]]"),
        (
            "SELECT * FROM a.b.t VERSION AS OF 3, s.u TIMESTAMP AS OF '2020-01-01' x",
            "Select[Star[], From[Table[a, b, t, Version[VERSION, AS OF, 3]]], "
            "Join[Table[s, u, Version[TIMESTAMP, AS OF, '2020-01-01'], TableAlias[x]], CROSS]]",
        ),
        ("SELECT * FROM delta.`/a/b`", "Select[Star[], From[Table[delta, /a/b]]]"),
        (
            "TABLE t UNION ALL TABLE u",
            "Union[Select[Star[], From[Table[t]]], Select[Star[], From[Table[u]]], False]",
        ),  # 16
        (
            "SELECT 1 UNION SELECT 2 INTERSECT ALL SELECT 3 MINUS SELECT 4 ORDER BY 1 LIMIT 5 OFFSET 6",
            "Except[Union[Select[1], Intersect[Select[2], Select[3], False], True], Select[4], True, "
            "Order[Ordered[1]], Limit[5], Offset[6]]",
        ),
        (
            "SELECT 1 FROM a LEFT SEMI JOIN b USING (x, y) NATURAL FULL JOIN c JOIN LATERAL (SELECT 2) d ON true",
            "Select[1, From[Table[a]], Join[Table[b], LEFT, SEMI, x, y], Join[Table[c], FULL, OUTER, NATURAL], "
            "Join[Lateral[Subquery[Select[2]], TableAlias[d]], INNER, Boolean[True]]]",
        ),
        (
            "SELECT 1 FROM (a JOIN b) AS x, ((SELECT 2)) y, ((SELECT 3) z CROSS JOIN c)",
            "Select[1, From[Subquery[Table[a], Join[Table[b], INNER], TableAlias[x]]], "
            "Join[Subquery[Subquery[Select[2]], TableAlias[y]], CROSS], "
            "Join[Subquery[Subquery[Select[3], TableAlias[z]], Join[Table[c], CROSS]], CROSS]]",
        ),
        (
            "SELECT 1 FROM t LATERAL VIEW OUTER explode(a) x AS k, v WHERE k",
            "Select[1, From[Table[t]], Lateral[explode(a), True, True, TableAlias[x, k, v]], Where[k]]",
        ),
        ("SELECT 1 FROM VALUES (1) AS (a)", "Select[1, From[Values[Tuple[1], TableAlias[AS, a]]]]"),
        ("SELECT 1 FROM range(3) r(id)", "Select[1, From[Table[range(3), TableAlias[r, id]]]]"),
        ("FROM t SELECT a WHERE b", "Select[a, From[Table[t]], Where[b]]"),
        ("SELECT 1 GROUP BY ALL", "Select[1, Group[True]]"),
        (
            "SELECT 1 GROUP BY a, ROLLUP (b, (c, d)), GROUPING SETS ((), e)",
            "Select[1, Group[a, Rollup[b, Tuple[c, d]], GroupingSets[Tuple[], e]]]",
        ),
        ("SELECT 1 GROUP BY a, b WITH CUBE", "Select[1, Group[Cube[a, b]]]"),
        ("SELECT 1 GROUP BY a GROUPING SETS (a)", "Select[1, Group[a, GroupingSets[a]]]"),
        ("SELECT 1 GROUP /* x */ BY a", "Select[1, Group[a]]"),
        (
            "SELECT /*+ BROADCAST(a) */ DISTINCT a ORDER BY ALL DESC",
            "Select[Distinct[], a, Order[Ordered[Var[ALL], True]]]",
        ),
        ("SELECT a QUALIFY b WINDOW w AS (ORDER BY c)", "Select[a, Qualify[b], Window[w, Order[Ordered[c]]]]"),
        (
            "WITH RECURSIVE a(x) AS (SELECT 1), b (WITH c AS (SELECT 2) SELECT 3) SELECT EXISTS (SELECT 4), (SELECT 5)",
            "Select[Exists[Select[4]], Subquery[Select[5]], With[CTE[Select[1], TableAlias[a, x]], "
            "CTE[Select[3, With[CTE[Select[2], TableAlias[c]]]], TableAlias[b]], True]]",
        ),  # 10
        ("SELECT 1 WHERE (a, b) IN (SELECT 1, 2)", "Select[1, Where[In[Tuple[a, b], Select[1, 2]]]]"),
        ("SELECT 1 WHERE a IN (SELECT (SELECT 2))", "Select[1, Where[In[a, Select[Subquery[Select[2]]]]]]"),
        (
            "SELECT 1 WHERE a IN (SELECT (TABLE b))",
            "Select[1, Where[In[a, Select[Subquery[Select[Star[], From[Table[b]]]]]]]]",
        ),
        ("(SELECT 1) LIMIT ALL", "Subquery[Select[1]]"),
    ],
)
def test_queries(text: str, tree: str) -> None:
    assert outline(parse(text)) == tree


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(a) FILTER (b > 1)",  # 15
        "SELECT * EXCEPT name FROM t",
        "SELECT rank() OVER (PARTITION BY a, ORDER BY b)",
        "SELECT a IS NULL IS NULL",
        "SELECT a LIKE b LIKE c",
        "SELECT FALSE IS NOT NULL :: string",
        "SELECT a = NOT b",
        "SELECT 1 > ALL (SELECT 2)",
        "SELECT 0x1F FROM t WHERE 1 = 'a' 'b' 2",
        "SELECT a b c",
        'SELECT 1 FROM "t"',
        'SELECT 1 AS "x"',
        "SELECT a, FROM t",
        "SELECT 1 FROM a JOIN",
        "SELECT 1 FROM a LEFT b",
        "SELECT (1",
        "SELECT 1)",
        "SELECT f(1,)",
        "SELECT CASE WHEN 1 END",
        "SELECT CAST(1 AS)",
        "SELECT INTERVAL 1",
        "SELECT a ! IN (1)",
        "SELECT",
        "SELECT * FROM a.b.c.d",
        "SELECT 1 LIMIT 1 LIMIT 2",
        "SELECT 1 ORDER BY a WHERE b",
        "VALUES",
        "WITH a AS SELECT 1 SELECT 2",
        "SELECT {x}",
        "SELECT $x",
        "SELECT a @ b",
    ],
)
def test_syntax_errors_have_a_place(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(text)
    assert caught.value.condition == "PARSE_SYNTAX_ERROR"
    assert caught.value.sqlstate == "42601"
    assert caught.value.span is not None


@pytest.mark.parametrize(
    "share", ["101 PERCENT", "-1 PERCENT", "100.1 PERCENT", "BUCKET 5 OUT OF 4", "BUCKET 1 OUT OF 0"]
)
def test_a_sample_is_a_part(share: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(f"SELECT * FROM t TABLESAMPLE ({share})")
    assert (caught.value.condition, caught.value.sqlstate) == ("_LEGACY_ERROR_TEMP_0064", "42000")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (3)", "TABLESAMPLE … REPEATABLE"),
        ("SELECT * FROM t TABLESAMPLE (BUCKET 1 OUT OF 4 ON a)", "TABLESAMPLE of buckets ON"),
        ("SELECT * FROM t TABLESAMPLE (5)", "TABLESAMPLE but of ROWS"),
        ("SELECT * FROM t TABLESAMPLE ()", "TABLESAMPLE but of ROWS"),
        ("SELECT * FROM t TABLESAMPLE BERNOULLI (5 ROWS)", "TABLESAMPLE but of ROWS"),
        ("SELECT * FROM t TABLESAMPLE (1e1 PERCENT)", "by plain numbers"),
        ("SELECT * FROM f(1) TABLESAMPLE (10 PERCENT)", "TABLESAMPLE of anything but tables"),
        ("SELECT * FROM t TABLESAMPLE SYSTEM (10 PERCENT)", "TABLESAMPLE"),
        ("FROM t |> SELECT a", "|>"),  # 17
        ("FROM t | WHERE a > 1", "pipe syntax"),
        ("SELECT a FROM t WHERE a > 1 | LIMIT 1", "pipe syntax"),
        ("SELECT v:`a.b`", "':'"),
        ("SELECT v:[*]", "':'"),
        ("SELECT a COLLATE UTF8_LCASE", "COLLATE"),
        ("SELECT TIME '10:00:00'", "TIME"),
        ("SELECT N'x'", '"N"'),
        ("SELECT CAST(a AS GEOMETRY(ANY))", "GEOMETRY(ANY)"),
        ("SELECT TRANSFORM(a) USING 'cat' FROM t", "TRANSFORM"),
        ("SELECT * FROM IDENTIFIER('t')", "IDENTIFIER"),
        ("SELECT * FROM f(TABLE t)", "table argument"),
    ],
)
def test_constructs_are_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        allowed.check(parse(text))
    assert words in caught.value.message
    assert caught.value.sqlstate == "0A000"
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("SELECT a IN ()", "INVALID_SQL_SYNTAX.EMPTY_IN_PREDICATE"),
        ("SELECT a LIKE ANY ()", "INVALID_SQL_SYNTAX.EMPTY_QUANTIFIED_PATTERN"),
        ("SELECT dateadd('MONTH', 1, d)", "INVALID_PARAMETER_VALUE.DATETIME_UNIT"),
        ("SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN CURRENT ROW AND c FOLLOWING)",
         "INVALID_SQL_SYNTAX.INVALID_WINDOW_FRAME_BOUND"),
        ("SELECT 1 WINDOW w AS (ORDER BY a), w AS (ORDER BY b)", "INVALID_SQL_SYNTAX.REPETITIVE_WINDOW_DEFINITION"),
        ("SELECT 1 FROM a NATURAL CROSS JOIN b", "INCOMPATIBLE_JOIN_TYPES"),
        ("SELECT CAST(a AS DECIMAL(39, 2))", "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"),
    ],
)  # fmt: skip
def test_other_conditions_of_sparks_parser(text: str, condition: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(text)
    assert caught.value.condition == condition


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "substr(" * 400 + "a IS NULL" + ", 2)" * 400,
        "SELECT " + "position(" * 400 + "a" + ")" * 400,
        "SELECT * FROM " + "(" * 400 + "(SELECT 1) a JOIN b" + ")" * 400,
        "SELECT " + "CASE WHEN a THEN 1 ELSE " * 499 + "1" + " END" * 499,
        "SELECT 1 WHERE " + " AND ".join(f"a{i} = {i}" for i in range(8_000)),
        "SELECT " + " + ".join("a" * 1_500),
    ],
    ids=["substr", "position", "relation", "case", "and", "plus"],
)
def test_deep_and_long_statements_parse(text: str) -> None:
    assert isinstance(parse(text), exp.Select)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + " + ".join("a" * 3_000),
        "SELECT " + "NOT " * 600 + "a",
        "SELECT a" + "[0]" * 3_000,
        "SELECT a" + ".b" * 3_000,
        "SELECT CAST(1 AS " + "ARRAY<" * 3_000 + "INT" + ">" * 3_000 + ")",
        " UNION ALL ".join(["SELECT 1"] * 3_000),
        "SELECT f(" + "x -> " * 3_000 + "1)",
    ],
    ids=["plus", "not", "brackets", "dots", "type", "union", "lambda"],
)
def test_what_is_too_complex_is_refused(text: str) -> None:
    with pytest.raises(ResourceError) as caught:
        parse(text)
    assert caught.value.condition == "STATEMENT_TOO_COMPLEX"


def test_spans_are_the_text_of_each_node() -> None:
    text = "SELECT  f( a.b , - c ) + CASE WHEN x THEN 'é' END AS n, (SELECT 1) FROM t AS u WHERE NOT p IN (1, 2)"
    tree = parse(text)

    def source(node: Any) -> str:
        span = span_of(node)
        assert span is not None
        return text[span.start : span.stop]

    assert source(tree) == text
    first, second = tree.expressions
    assert source(first) == text[8:54]
    assert source(first.this) == "f( a.b , - c ) + CASE WHEN x THEN 'é' END"
    assert source(first.this.this) == "f( a.b , - c )"
    assert [source(x) for x in first.this.this.expressions] == ["a.b", "- c"]
    assert source(second) == "(SELECT 1)"
    assert source(tree.args["from_"].this) == "t AS u"
    assert source(tree.args["where"].this) == "NOT p IN (1, 2)"
    for node in tree.walk():
        assert span_of(node) is not None, outline(node)


def test_number_suffix() -> None:
    found = [number_suffix(t) for t in ("1", "-1L", "1.5bd", "1e3", "2D", "3f", "4S", "5y")]
    assert found == [
        ("1", ""), ("-1", "L"), ("1.5", "BD"), ("1e3", ""), ("2", "D"), ("3", "F"), ("4", "S"), ("5", "Y"),
    ]  # fmt: skip


def test_positive_is_not_dropped() -> None:
    assert isinstance(expression("+a"), Positive)


# The corpora.


@pytest.mark.parametrize(("name", "parsed"), [(CORPORA[0], 157), (CORPORA[1], 1268), (CORPORA[2], 5269)])
def test_valid_queries_parse_and_refused_ones_do_not(shared: Path, name: str, parsed: int) -> None:
    count = 0
    accepted: Counter[str] = Counter()
    for case in cases(shared, name):
        if case["kind"] not in ("query", "unparsed"):
            continue
        text = case["sql"]
        condition = (case.get("error") or {}).get("condition")
        try:
            parse(text)
        except UnsupportedError:
            continue
        except GatewayError:
            # Nothing that Spark answers is a syntax error here, but for its newest join.
            nearest = "APPROX NEAREST" in text or "EXACT NEAREST" in text
            assert case["kind"] == "unparsed" or condition is not None or nearest, text
            continue
        count += 1
        if case["kind"] == "unparsed" or condition == "PARSE_SYNTAX_ERROR":
            accepted[str(condition)] += 1
    assert count >= parsed
    # What Spark's parser refuses and the values of literals decide is refused by the binder.
    assert set(accepted) <= {
        "INVALID_TYPED_LITERAL",
        "INVALID_NUMERIC_LITERAL_RANGE",
        "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
        "INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING_WITH_NOTICE",
        "PARSE_SYNTAX_ERROR",
    }, accepted
    # Two types in strings: from_json('…', 'a InvalidType'), from_csv.
    assert accepted["PARSE_SYNTAX_ERROR"] <= 2


@pytest.mark.parametrize("name", CORPORA)
def test_no_string_and_no_quoted_name_is_lost(shared: Path, name: str) -> None:
    """Every string literal and back-quoted name among the tokens is in the tree, in the same number."""
    for case in cases(shared, name):
        if case["kind"] != "query":
            continue
        try:
            statement = read_statement(case["sql"])
            tree = parse_query(statement)
        except GatewayError:
            continue
        quoted = Counter(t.text for t in statement.tokens if t.token_type is TokenType.IDENTIFIER)
        names = Counter(n.name for n in tree.find_all(exp.Identifier) if n.args.get("quoted"))
        names += Counter(n.name for n in tree.find_all(exp.Anonymous) if n.name in quoted and n.name not in names)
        assert names == quoted, case["sql"]
        strings = "".join(t.text for t in statement.tokens if t.token_type in (TokenType.STRING, TokenType.RAW_STRING))
        kept = []
        for node in tree.walk():
            if (isinstance(node, exp.Literal) and node.is_string) or isinstance(node, TypedLiteral):
                kept.append(node.this)
            elif isinstance(node, IntervalLiteral):
                kept.extend(
                    value for value, _ in node.args["parts"] if not value.lstrip("-").replace(".", "").isdigit()
                )
        lost = Counter(strings) - Counter("".join(kept))
        # Digits of intervals may be written with or without quotes; a sign may be folded.
        assert not {c for c in lost if not (c.isdigit() or c in "-+. ")}, case["sql"]


class PlainTokenizer(Databricks.Tokenizer):
    STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']


class PlainParser(DatabricksParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": DatabricksParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        k: v
        for k, v in DatabricksParser.FUNCTION_PARSERS.items()
        if k in ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "OVERLAY", "SUBSTRING", "SUBSTR")
    }


class Plain(Databricks):
    """sqlglot's Databricks with calls left as written: what its own parser makes of names and literals."""

    Tokenizer = PlainTokenizer
    Parser = PlainParser


def leaves(tree: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in tree.walk():
        if isinstance(node, exp.Identifier):
            found[node.name.lower()] += 1
        elif (isinstance(node, exp.Literal) and node.is_string) or isinstance(node, TypedLiteral):
            found[node.this] += 1
        elif isinstance(node, IntervalLiteral):
            found.update(value for value, _ in node.args["parts"])
    return Counter({k: v for k, v in found.items() if k and not k.lstrip("-")[:1].isdigit()})


@pytest.mark.parametrize(("name", "differing"), [(CORPORA[0], 0), (CORPORA[1], 60), (CORPORA[2], 120)])
def test_names_and_strings_are_those_of_sqlglots_tree(shared: Path, name: str, differing: int) -> None:
    """A second opinion: sqlglot's parser finds the same names and strings."""
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    compared = 0
    different: list[str] = []
    for case in cases(shared, name):
        if case["kind"] != "query":
            continue
        try:
            ours = parse(case["sql"])
            theirs = sqlglot.parse_one(case["sql"], dialect=Plain)
        except (GatewayError, SqlglotError):
            continue
        compared += 1
        if leaves(ours) != leaves(theirs):
            different.append(case["sql"])
    assert compared > 100
    assert len(different) <= differing, "\n".join(different)


@pytest.mark.parametrize("name", CORPORA)
def test_what_parses_is_on_the_allow_list_or_refused_in_words(shared: Path, name: str) -> None:
    refused: Counter[str] = Counter()
    for case in cases(shared, name):
        if case["kind"] != "query":
            continue
        try:
            tree = parse(case["sql"])
        except GatewayError:
            continue
        try:
            allowed.check(tree)
        except UnsupportedError as error:
            refused[error.message] += 1
    assert set(refused) <= {
        "COLLATE is not supported.",
        "':' extraction from semi-structured values is not supported.",
    }
