"""Every recorded probe of the catalogue's functions: same answer as Spark, or a refusal by name; never another answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from gateway.sql.functions import CATALOGUE
from tests.unit.sql.functions.probe_runner import Probes, judge, probes

#: Parts of statements whose answer depends on the order of rows or on how ties are decided.
ARBITRARY = (
    "first(",
    "last(",
    "first_value(",
    "last_value(",
    "any_value(",
    "listagg(",
    "string_agg(",
    "max_by(",
)
#: Names that are other than Spark's, with the reason.
OTHER_NAMES = {"hash", "xxhash64", "concat", "to_json"}  # Spark shows a typed NULL of a nested type as NULL

GROUPS = {
    "strings": "upper lower lcase ucase length len char_length character_length octet_length bit_length trim ltrim rtrim "
    "btrim substring substr left right repeat space elt concat reverse concat_ws lpad rpad replace translate instr locate "
    "position contains startswith endswith find_in_set split_part substring_index overlay levenshtein soundex ascii chr "
    "char initcap mask base64 unbase64 encode decode to_binary try_to_binary format_string printf luhn_check "
    "is_valid_utf8 make_valid_utf8 validate_utf8 try_validate_utf8 url_encode url_decode try_url_decode quote parse_url "
    "try_parse_url collation",
    "formats": "to_char to_varchar to_number try_to_number format_number",
    "maths": "acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees e exp expm1 "
    "factorial floor hex hypot ln log log10 log1p log2 mod negative pi pmod positive pow power radians rint round sec sign "
    "signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply try_subtract unhex width_bucket abs bit_count "
    "bit_get getbit shiftleft shiftright shiftrightunsigned & | ^ ~ << >> >>>",
    "conditional": "coalesce if ifnull nvl nvl2 nullif nullifzero zeroifnull greatest least isnull isnotnull isnan nanvl "
    "equal_null assert_true raise_error typeof",
    "regex": "rlike regexp regexp_like regexp_count regexp_extract regexp_extract_all regexp_instr regexp_replace "
    "regexp_substr split",
    "json": "get_json_object json_array_length json_object_keys json_tuple from_json to_json",
    "variants": "parse_json try_parse_json variant_get try_variant_get is_variant_null schema_of_variant to_variant_object",
    "hashing": "md5 sha sha1 sha2 crc32 hash xxhash64",
    "aggregates": "any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and "
    "bool_or collect_list collect_set corr count count_if covar_pop covar_samp every first first_value kurtosis last "
    "last_value listagg max max_by mean median min min_by mode percentile percentile_approx percentile_cont "
    "percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness "
    "some std stddev stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance",
    "windows": "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number",
}
#: How many probes of a group may be refused: falls when forms are added, never rises.
REFUSED_AT_MOST = {
    "strings": 12,
    "formats": 3,
    "maths": 16,
    "conditional": 0,
    "regex": 0,
    "json": 16,
    "variants": 16,
    "hashing": 0,
    "aggregates": 40,
    "windows": 0,
}


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probes]:
    yield Probes(tmp_path_factory.mktemp("probes"))


def _arbitrary(sql: str) -> bool:
    text = sql.lower()
    return any(part in text for part in ARBITRARY)


@pytest.mark.parametrize("group", GROUPS)
def test_probes(group: str, runner: Probes) -> None:
    names = GROUPS[group].split()
    assert not [n for n in names if n not in CATALOGUE]
    found: Counter[str] = Counter()
    bad: list[str] = []
    for function, statement in probes(*names):
        sql = statement["sql"]
        verdict = judge(function, statement, runner.run(sql))
        kind = verdict.kind
        if (kind == "wrong" and _arbitrary(sql)) or (kind == "name" and function in OTHER_NAMES):
            kind = "same"
        if kind == "condition" and function == "from_json":
            kind = "same"  # another parse error for a schema text that is no schema
        found[kind] += 1
        if kind not in ("same", "refused"):
            bad.append(f"{kind}: {sql}\n    {verdict.detail}")
    assert found["same"] > 0
    assert not bad, "\n".join(bad[:20])
    assert found["refused"] <= REFUSED_AT_MOST[group], found


def test_no_row_is_both_window_and_scalar() -> None:
    kinds = {row.kind for row in CATALOGUE.values()}
    assert kinds <= {"scalar", "aggregate", "window", "generator", "table", "operator"}
    assert {n for n in GROUPS["aggregates"].split() if CATALOGUE[n].kind != "aggregate"} == set()
    assert {n for n in GROUPS["windows"].split() if CATALOGUE[n].kind != "window"} == set()
