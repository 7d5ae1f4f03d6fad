"""What may differ, each with its reason. Everything else that differs is a fault, of the gateway or of this machine."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fuzz.compare import DIFFERENCES, SOFT, Difference, same_multiset
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
_GENERATED_HAVING = re.compile(r"(?:explode|inline|stack|json_tuple).*having", re.DOTALL)
_HAVING_MOMENT = re.compile(r"(?:having|where|qualify|over).*(?:skewness|kurtosis)\(", re.DOTALL)
_NOT_IN_QUERY = re.compile(r"not in \(\s*(?:select|values|from|with|\()|not \(.* in \(")
_DECIDING = re.compile(r"(?:exists|forall)\(.+->")
_OFFSET_FRAME = re.compile(r"range between .*(?:\w|\))\s+(?:preceding|following)")
_TRIED_SUM = re.compile(r"\btry_sum\(")
_LARGEST = "9223372036854775807"
_MEAN = re.compile(r"\b(?:avg|mean|regr_avg[xy])\(")
_EXPRESSION_ID = re.compile(r"#\d+")
_LIMIT_AROUND = re.compile(r"(?:select|lateral|[(,=])\s*\(select .*where .*=.*\blimit \d", re.DOTALL)
_NOT_IN_BELOW = re.compile(r"(?:select|[(,=>])\s*\(select .*\bfrom .*\bwhere .*\bnot in \(\s*select ", re.DOTALL)
_UNWRITTEN = re.compile(r"sort_array\(.*ascendingOrder|regexp_replace\(.*position", re.DOTALL)
_SKETCHED = re.compile(r"\bapprox_count_distinct\(")
_BY_OTHERS = re.compile(r"\b(?:max|min)_by\(")
_EXTREME_OF_FRAME = re.compile(r"\b(?:max|min)\(.*\bover\b", re.DOTALL)
_TIME_OF_DAY = re.compile(r"\b(?:hour|minute|second)\(.+,", re.DOTALL)
_NO_THRESHOLD = re.compile(r"\blevenshtein\(.+, (?:NULL|CAST\(NULL AS \w+\))\)", re.IGNORECASE)
_DISTRIBUTED = re.compile(r"\b(?:distribute|cluster) by\b", re.IGNORECASE)
_WINDOW_QUERY = re.compile(r"\bwindow \w+ as \(.*\(\s*select\b", re.DOTALL)
_RAISING_OPERAND = re.compile(
    r"\[(?:raise_error|assert_true)\(|(?:raise_error|assert_true)\([^()]*\)\)?[.\[]|-> (?:raise_error|assert_true)\("
)
_FIRST = frozenset({"first", "first_value", "any_value", "max_by", "min_by"})


def _internal(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition.startswith("INTERNAL_ERROR") or spark.sqlstate.startswith("XX")


def _of_databricks(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    assigned = spark.condition.startswith("UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY") and _changes_rows(case)
    return (assigned or spark.condition == "DELTA_UNSUPPORTED_SUBQUERY") and ours.kind == "answer"


def _changes_rows(case: Case) -> bool:
    return any(text.startswith(("UPDATE ", "DELETE ", "MERGE ")) for text in case.statements)


def _cancelled(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition in ("OPERATION_CANCELED", "SPARK_JOB_CANCELLED", "RESOURCE_EXHAUSTED")


def _two_faults(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return difference.kind == "condition" and case.kind in ("misplaced", "wrapped", "changes")


def _check_tokens(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition == "PARSE_SYNTAX_ERROR" and any("ADD CONSTRAINT" in text for text in case.statements)


def _source_filter(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition == "_LEGACY_ERROR_TEMP_1109"


def _ctes_in_windows(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    text = case.statements[-1].lower()
    return spark.condition == "TABLE_OR_VIEW_NOT_FOUND" and "with " in text and _WINDOW_QUERY.search(text) is not None


def _untyped_operand(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    asked = _RAISING_OPERAND.search(case.statements[-1]) is not None
    return difference.kind == "raised" and ours.condition == "USER_RAISED_EXCEPTION" and asked


def _known_to_be_none(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return difference.kind == "raised" and ours.condition == "SCALAR_SUBQUERY_TOO_MANY_ROWS" and not spark.rows


def _more_operands(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    called = _TIME_OF_DAY.search(case.statements[-1]) is not None
    return called and spark.kind == "answer" and ours.condition.startswith("WRONG_NUM_ARGS")


def _no_threshold(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return difference.kind == "rows" and _NO_THRESHOLD.search(case.statements[-1]) is not None


def _no_literal(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition == "_LEGACY_ERROR_TEMP_0064" and ours.condition.endswith("INVALID_WINDOW_FRAME_BOUND")


def _distributed(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return difference.kind == "answered" and _DISTRIBUTED.search(case.statements[-1]) is not None


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


def _named_late(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """A query in FROM or WITH that has HAVING beside a generator."""
    lost = spark.condition.startswith(("UNRESOLVED_COLUMN", "INVALID_USAGE_OF_STAR_OR_REGEX"))
    texts = " ".join(case.statements).lower()
    return lost and ours.kind == "answer" and _GENERATED_HAVING.search(texts) is not None


def _moments(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """Skewness and kurtosis of which only the last bits differ, also where they are a condition."""
    text = " ".join(case.statements).lower()
    if difference.kind != "rows" or not ("skewness(" in text or "kurtosis(" in text):
        return False
    return _HAVING_MOMENT.search(text) is not None or same_multiset(_rounded(spark.rows), _rounded(ours.rows))


def _rounded(value: Any) -> Any:
    """Rows with floats as far as they count here, and with one zero."""
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    if isinstance(value, dict):
        return {key: _rounded(v) for key, v in value.items()}
    return round(value, 9) + 0.0 if isinstance(value, float) and math.isfinite(value) else value


def _sign_of_zero(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """Rows that differ in the signs of zeros alone, where rows are told apart."""
    text = case.statements[-1].lower()
    told = any(word in text for word in ("distinct", "group by", "union", "intersect", "except", "minus"))
    return told and difference.kind == "rows" and same_multiset(_unsigned(spark.rows), _unsigned(ours.rows))


def _unsigned(value: Any) -> Any:
    if isinstance(value, list):
        return [_unsigned(v) for v in value]
    if isinstance(value, dict):
        return {key: _unsigned(v) for key, v in value.items()}
    return value + 0.0 if isinstance(value, float) else value


def _which_zero(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """Rows that differ in the signs of zeros alone, beside a max or min over a window."""
    told = _EXTREME_OF_FRAME.search(" ".join(case.statements).lower()) is not None
    return told and difference.kind == "rows" and same_multiset(_unsigned(spark.rows), _unsigned(ours.rows))


def _sketched(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """As many rows, beside an approximate count."""
    return difference.kind == "rows" and _only_columns_of(_SKETCHED, case, spark, ours)


def _which_of_equals(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """As many rows, beside a value that others choose."""
    return difference.kind == "rows" and _only_columns_of(_BY_OTHERS, case, spark, ours)


def _only_columns_of(calls: re.Pattern[str], case: Case, spark: Outcome, ours: Outcome) -> bool:
    """Whether there are as many rows, and no more columns have other values than there are such calls."""
    if len(spark.rows) != len(ours.rows):
        return False
    columns = zip(zip(*spark.rows, strict=True), zip(*ours.rows, strict=True), strict=True)
    apart = sum(not same_multiset([[v] for v in a], [[v] for v in b]) for a, b in columns)
    return 0 < apart <= len(calls.findall(" ".join(case.statements).lower()))


def _zero_not_in(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """NOT IN (subquery) of a float, and a zero among the values or rows."""
    text = case.statements[-1].lower()
    zeros = "-0.0" in text or any(v == 0 and isinstance(v, float) for row in (*spark.rows, *ours.rows) for v in row)
    return difference.kind == "rows" and _NOT_IN_QUERY.search(text) is not None and zeros


def _ids_in_names(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    pairs = zip(spark.columns, ours.columns, strict=True)
    return difference.kind == "names" and all(w[0] == g[0] or _EXPRESSION_ID.search(w[0]) for w, g in pairs)


def _no_timestamp(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """A column that Spark calls not nullable, for which we tell NULL, in a statement with such a cast."""
    text = case.statements[-1].lower()
    if difference.kind != "rows" or "try_cast(" not in text or " as timestamp" not in text:
        return False
    at = [i for i, (_, _, nullable) in enumerate(spark.columns) if not nullable]
    return any(row[i] is None for row in ours.rows for i in at)


def _after_the_deciding(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    text = case.statements[-1].lower()
    return difference.kind == "raised" and _DECIDING.search(text) is not None


def _bound_not_asked(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """A RANGE frame of integers with an offset, whose bound leaves the type."""
    overflow = ours.condition in ("ARITHMETIC_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW")
    return difference.kind == "raised" and overflow and _OFFSET_FRAME.search(case.statements[-1].lower()) is not None


def _sum_on_its_way(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """A sum of hashes or ends of BIGINT, which leaves BIGINT on its way to one that BIGINT holds; try_sum is NULL then."""
    texts = " ".join(case.statements).lower()
    if not any(large in texts for large in ("xxhash64(", _LARGEST)) or "sum(" not in texts:
        return False
    if difference.kind == "rows":
        lost = [row for row in spark.rows if row not in ours.rows]
        return (
            _TRIED_SUM.search(texts) is not None and len(spark.rows) == len(ours.rows) and all(None in r for r in lost)
        )
    return difference.kind == "answered" and spark.condition == "ARITHMETIC_OVERFLOW" and "try_add" in spark.message


def _cancelling(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """Rows that differ in floats alone, beside a mean of an end of BIGINT."""
    text = " ".join(case.statements).lower()
    told = _LARGEST in text and _MEAN.search(text) is not None
    return told and difference.kind == "rows" and same_multiset(_without_floats(spark.rows), _without_floats(ours.rows))


def _without_floats(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_floats(v) for v in value]
    if isinstance(value, dict):
        return {key: _without_floats(v) for key, v in value.items()}
    return None if isinstance(value, float) else value


def _not_told_apart(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    return spark.condition.endswith(".UNSUPPORTED_CORRELATED_REFERENCE_DATA_TYPE") and ours.kind == "answer"


def _mode_of_binary(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """Values of a BINARY column that differ, beside mode."""
    binary = {i for i, (_, t, _) in enumerate(ours.columns) if t == "binary"}
    if difference.kind != "rows" or "mode(" not in case.statements[-1].lower() or len(spark.rows) != len(ours.rows):
        return False
    rest = [[[v for i, v in enumerate(row) if i not in binary] for row in rows] for rows in (spark.rows, ours.rows)]
    return bool(binary) and same_multiset(*rest)


def _untyped_keys(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """Rows that are joined by columns of no type, or told apart by them."""
    text = case.statements[-1].lower()
    joined = any(word in text for word in ("join", "lateral", "except", "minus", "intersect", " in ("))
    return difference.kind == "rows" and joined and any(t == "void" for _, t, _ in spark.columns)


def _limit_of_all(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """Rows that Spark lacks, or has NULL for, beside a correlated subquery with LIMIT."""
    if difference.kind != "rows" or _LIMIT_AROUND.search(case.statements[-1].lower()) is None:
        return False
    lost = [row for row in spark.rows if row not in ours.rows]
    return len(spark.rows) <= len(ours.rows) and all(None in row for row in lost)


def _null_not_in(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """NOT IN (subquery) of an outer value, inside of a subquery that aggregates."""
    return difference.kind == "rows" and _NOT_IN_BELOW.search(case.statements[-1].lower()) is not None


def _argument_as_key(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> bool:
    """An argument of sort_array or regexp_replace that nobody has written, TRUE or 1, beside a key that is the same."""
    lost = spark.condition == "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT" and _UNWRITTEN.search(spark.message) is not None
    return lost and ours.kind == "answer" and "having" in " ".join(case.statements).lower()


EXCEPTIONS: tuple[Exempt, ...] = (
    Exempt(
        "subqueries of DELETE and UPDATE",
        "DELTA_UNSUPPORTED_SUBQUERY (Delta's delta-error-classes.json): its DELETE and UPDATE take none, those of Databricks "
        "do (DELETE FROM and UPDATE in its SQL reference).",
        _of_databricks,
    ),
    Exempt(
        "internal error",
        "Spark's own documentation calls INTERNAL_ERROR a bug of Spark's, and error-states.json the SQLSTATEs of class XX "
        "internal errors: columns that USING hides beside grouping sets, one column twice in EXCEPT ALL.",
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
        "approximate counts",
        "ExpressionDescription of HyperLogLogPlusPlus: it is the estimated cardinality; two values that meet in one of its "
        "registers count once, as 2 and 80 do. Ours is exact.",
        _sketched,
    ),
    Exempt(
        "which of equals",
        "ExpressionDescription of MaxBy and MinBy: the result is not deterministic for values of the same order.",
        _which_of_equals,
    ),
    Exempt(
        "which of two zeros is the largest",
        "Max.updateExpressions is greatest(max, child), for which -0.0 and 0.0 are equal and the one that came first stays; "
        "over frames that move the engine keeps the order of its own, in which they are two.",
        _which_zero,
    ),
    Exempt(
        "values that first() and max_by() do not look at",
        "First.updateExpressions is If(valueSet, first, child): the child is computed for the row that happens to be "
        "the first, which its description calls not deterministic, as is MaxBy's (MaxMinBy.updateExpressions): what other "
        "rows raise is seen or not.",
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
        "TRY_CAST of dates that have no timestamp",
        "Cast.nullable of TRY is !canUpCast, and DATE is cast up to TIMESTAMP and TIMESTAMP_NTZ: never NULL, though days whose "
        "microseconds overflow are; what clients then read in its place is whatever the vector holds.",
        _no_timestamp,
    ),
    Exempt(
        "a shift behind the word ARRAY, MAP or STRUCT",
        "SqlBaseLexer.g4 counts these words as open types (incComplexTypeLevelCounter), also where they are functions, and "
        "then reads >> as the end of two types: a syntax error in Spark.",
        _shift_after_type,
    ),
    Exempt(
        "HAVING over generated rows in FROM",
        "ExtractGenerator leaves UnresolvedHaving over a Generate, whose output is unknown until the query around it has been "
        "looked at: `x` cannot be resolved, did you mean `x`? The same query by itself is answered.",
        _named_late,
    ),
    Exempt(
        "last bits of moments",
        "CentralMomentAgg merges partial moments in the order in which they come: of values around their mean nothing but the "
        "rounding of its sums is left, 2.2E-16 in the place of 0.",
        _moments,
    ),
    Exempt(
        "the sign of a zero that is a key",
        "NormalizeFloatingNumbers works on what is still a key when Spark plans its execution: FoldablePropagation has put "
        "constants in the place of some, and OptimizeOneRowPlan has dropped the keys of one row.",
        _sign_of_zero,
    ),
    Exempt(
        "two zeros in NOT IN",
        "ExtractSingleColumnNullAwareAntiJoin hands its keys on as they are, ExtractEquiJoinKeys makes one zero of two: -0.0 "
        "is IN (0.0), and NOT IN (0.0) as long as the subquery is small.",
        _zero_not_in,
    ),
    Exempt(
        "ids in names",
        "toPrettySQL prints what is below GetArrayStructFields with toString, and so with the ids of aliases, lambdas and "
        "subqueries, which are others each time.",
        _ids_in_names,
    ),
    Exempt(
        "elements after the one that decides",
        "ArrayExists.nullSafeEval and ArrayForAll.nullSafeEval stop at the element that decides; the embedded engine computes "
        "a lambda for all elements of a column at once, and so tells an error in the place of an answer, never another one.",
        _after_the_deciding,
    ),
    Exempt(
        "bounds of frames that are not asked",
        "SlidingWindowFunctionFrame.write computes an upper bound while there are rows left to add (nextRow != null), a lower "
        "one while there are some to drop: whether a row's bound overflows is seen or not by the rows around it.",
        _bound_not_asked,
    ),
    Exempt(
        "sums that leave BIGINT on their way",
        "Sum.updateExpressions and mergeExpressions add with ANSI's Add, row by row, then sum by sum: whether one of "
        "those overflows depends on the order of rows, which is not deterministic after a shuffle; ours is the exact sum's.",
        _sum_on_its_way,
    ),
    Exempt(
        "zeros that Spark rounds to -2147483648 digits",
        "RoundBase.dataType and nullSafeEval negate the scale, and -2147483648 has no negative: all numbers but zeros fail, "
        "in java.math.BigDecimal.",
        lambda case, difference, spark, ours: difference.kind == "raised" and ", -2147483648)" in case.statements[-1],
    ),
    Exempt(
        "means of what cancels",
        "Average.updateExpressions adds doubles row by row, mergeExpressions sum by sum: beside both ends of BIGINT "
        "what else there is stays or is lost by the order of rows; the engine adds several at once.",
        _cancelling,
    ),
    Exempt(
        "LIMIT in a subquery that is correlated by a cast",
        "DecorrelateInnerQuery numbers the rows of a LIMIT for each outer value that it finds a column for; cast(outer.a) = b "
        "it pulls up without finding one, and limits the rows of all outer values together. With one type it does not.",
        _limit_of_all,
    ),
    Exempt(
        "NULL NOT IN, asked by an aggregate about an outer value",
        "PullupCorrelatedPredicates leaves NOT IN of an outer value in the condition of an outer join, where "
        "RewritePredicateSubquery makes a join of it that knows no NULL: NULL NOT IN (1, 2) is true there, and not in LATERAL.",
        _null_not_in,
    ),
    Exempt(
        "TRUE or 1 that nobody has written as a key",
        "SortArray(array) is SortArray(array, Literal(true)), RegExpReplace has 1 for position, and HAVING reads keys of the "
        "groups, or what is selected, wherever an expression is one: with GROUP BY true the order of sort_array in HAVING is a "
        "column, which it must not be.",
        _argument_as_key,
    ),
    Exempt(
        "VARIANTs that a subquery reads of the query around it",
        "DecorrelateInnerQuery joins a subquery with the distinct values that it reads of the query around it, and can tell "
        "no VARIANTs apart: UNSUPPORTED_CORRELATED_REFERENCE_DATA_TYPE where it is no key of a join; ours needs no such join.",
        _not_told_apart,
    ),
    Exempt(
        "hour, minute and second of more than one operand",
        "HourExpressionBuilder and its kin look at the first of the operands, to tell TIME from TIMESTAMP, and at no other; "
        "functions of one operand raise WRONG_NUM_ARGS for more, these in Databricks as well.",
        _more_operands,
    ),
    Exempt(
        "a constant of NULL as the threshold of levenshtein",
        "Levenshtein.eval takes NULL for 0, as ConvertToLocalRelation finds it, but NullPropagation, which may come first, "
        "makes the whole NULL: one and the same call is -1 or NULL by what stands around it.",
        _no_threshold,
    ),
    Exempt(
        "bounds of frames that are no literals",
        "window.sql.out of Spark's own tests has INVALID_SQL_SYNTAX.INVALID_WINDOW_FRAME_BOUND for them, as ours do; what is "
        "released raises it under a name of old, _LEGACY_ERROR_TEMP_0064.",
        _no_literal,
    ),
    Exempt(
        "what rows are distributed by, and nobody reads",
        "RepartitionByExpression is a plan of its own, which no rule of the optimizer takes away as it does a Sort: it "
        "computes what it goes by, which may raise. One machine distributes nothing.",
        _distributed,
    ),
    Exempt(
        "which of two faults is told",
        "Analyzer's rules and CheckAnalysis tell the first one that they come to. What is put where it does not belong is "
        "often of a wrong type, too, or names what is not there; that both raise is what is asked.",
        _two_faults,
    ),
    Exempt(
        "CHECK constraints with tokens of two characters",
        "DeltaSqlAstBuilder puts a constraint's text together of the tokens of its own grammar, which has none for -> and ::, "
        "so that they are torn apart; Databricks has constraints with both.",
        _check_tokens,
    ),
    Exempt(
        "REPLACE WHERE of what is no filter of a source",
        "OverwriteByExpression of Spark 4.2 hands a table the filters that DataSourceStrategy.translateFilter knows, and "
        "raises _LEGACY_ERROR_TEMP_1109 for all others; replaceWhere of Delta itself, and of Databricks, takes any condition.",
        _source_filter,
    ),
    Exempt(
        "CTEs in subqueries of a WINDOW clause",
        "AstBuilder keeps the clause's definitions in a map of WithWindowDefinition, whose expressions CTESubstitution does "
        "not visit: names of CTEs there are looked for among tables. Behind OVER the same definition is answered.",
        _ctes_in_windows,
    ),
    Exempt(
        "raise_error and assert_true as operands of another type",
        "TypeCoercionHelper.castExpr puts NULL in the place of an operand of no type, and ExtractValue takes no key of one: "
        "nobody is left to raise. Ours raises wherever it stands.",
        _untyped_operand,
    ),
    Exempt(
        "a subquery of several rows beside none",
        "ConvertToLocalRelation filters rows of VALUES while it plans, and PropagateEmptyRelation drops what is above none, a "
        "scalar subquery too; of a table without such rows Spark raises, as ours does.",
        _known_to_be_none,
    ),
    Exempt(
        "mode of BINARY",
        "Mode.update counts values in an OpenHashMap, by equals and hashCode: of byte arrays these are the object's own, so "
        "that every row is a value that is there once, and the result any of them; ours is the most frequent one.",
        _mode_of_binary,
    ),
    Exempt(
        "NULLs of no type as keys",
        "ExtractEquiJoinKeys makes of a <=> b the keys coalesce(a, default) and isnull(a); the default of VOID is NULL itself, "
        "so that such rows never meet, in EXCEPT, INTERSECT and LATERAL as well: NULL <=> NULL by itself is true.",
        _untyped_keys,
    ),
)


@dataclass(frozen=True, slots=True)
class Way:
    """Another way in which the same Spark answers a statement: if it then says what we say, it is at odds with itself."""

    name: str
    reason: str
    kinds: frozenset[str]


_OF_ERRORS = frozenset({"answered", "raised", "condition"})

WAYS: tuple[Way, ...] = (
    Way(
        "generated code",
        "spark.sql.codegen.wholeStage and spark.sql.codegen.factoryMode: what is documented as a matter of speed alone.",
        frozenset(DIFFERENCES) - SOFT,
    ),
    Way(
        "conditions stay",
        "PushDownPredicates, InferFiltersFromConstraints and their kin ask conditions of rows that the statement, as it is "
        "written, asks nothing of, or no more of those that it does: whether what raises there is seen depends on them.",
        _OF_ERRORS,
    ),
    Way(
        "values stay",
        "OptimizeJoinCondition makes a <=> b of (a = b OR (a IS NULL AND b IS NULL)), which is NULL where the other is false; "
        "ConvertToLocalRelation computes over decimals of VALUES, up to 18 digits BigDecimals there and 64 bits in all other "
        "rows, and Decimal.roundToNumeric takes these for exact and those by way of a double.",
        frozenset({"rows"}),
    ),
    Way(
        "no optimizer",
        "ConstantFolding computes what no row asks for, ColumnPruning and CollapseProject what is asked for later or never: "
        "without the rules of Optimizer.defaultBatches that Spark can do without, it raises what its own text does. An error "
        "of ours in the place of an answer is not excused by it.",
        frozenset({"answered", "condition"}),
    ),
)


def excuse(case: Case, difference: Difference, spark: Outcome, ours: Outcome) -> str | None:
    """The name of the exception that holds for a difference."""
    return next((rule.name for rule in EXCEPTIONS if rule.holds(case, difference, spark, ours)), None)
