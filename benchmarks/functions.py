"""Functions over distinct values, one statement each: nanoseconds a row beyond those of reading the argument."""

from __future__ import annotations

import time
from collections.abc import Mapping

from benchmarks import tables
from benchmarks.measure import Row, settle
from benchmarks.systems import ANEW, Ours, gateway_process
from gateway.protocol.client import Client

ROUNDS = 2

# Columns of the table `kinds`: n BIGINT, i INT, d DOUBLE, m DECIMAL(18,2), s, word, number, stamp, url, json STRING,
# day DATE, at TIMESTAMP, list ARRAY<BIGINT>, words ARRAY<STRING>.
EXPRESSIONS: Mapping[str, tuple[str, ...]] = {
    "n": (
        "hex(n)", "bin(n)", "conv(string(n), 10, 16)", "format_number(n, 2)", "n % 7", "n div 7", "pmod(n, 7)",
        "n + 1", "n * 3", "string(n)", "crc32(string(n))", "hash(n)", "xxhash64(n)", "sequence(n, n + 3)",
        "try_add(n, 1)", "int(n)", "decimal(n)", "timestamp_seconds(n)", "from_unixtime(n)", "bround(n, -1)",
        "factorial(i % 20)", "shiftleft(n, 2)", "chr(n)", "width_bucket(n, 0, 1000000, 10)",
    ),
    "d": (
        "string(d)", "round(d, 2)", "bround(d, 2)", "floor(d)", "ceil(d)", "int(d)", "decimal(d)", "d / 3", "sqrt(d)",
        "pow(d, 2)", "log10(d)", "format_number(d, 2)", "hash(d)", "CAST(d AS DECIMAL(18, 4))",
    ),
    "m": (
        "m + 1", "m * m", "m / 3", "round(m, 1)", "string(m)", "int(m)", "double(m)", "CAST(m AS DECIMAL(10, 1))",
        "m % 7", "hash(m)", "floor(m)", "format_number(m, 2)",
    ),
    "s": (
        "initcap(s)", "split(s, ' ')", "split_part(s, ' ', 2)", "substring_index(s, ' ', 2)",
        "regexp_replace(s, '[0-9]+', '#')", "regexp_extract(s, '([a-z]+) ([0-9]+)', 2)", "s RLIKE 'text [0-9]*7$'",
        "s ILIKE '%TEXT 1%'", "md5(s)", "sha2(s, 256)", "crc32(s)", "base64(s)", "unbase64(base64(s))", "hex(s)",
        "encode(s, 'utf-8')", "soundex(s)", "levenshtein(s, 'a text 7')", "translate(s, 'abc', 'xyz')", "hash(s)",
        "xxhash64(s)", "mask(s)", "overlay(s PLACING 'xx' FROM 3)", "format_string('%s!', s)", "url_encode(s)",
        "concat_ws('-', s, word)", "replace(s, 'e', '3')", "lpad(s, 40, '*')", "instr(s, 'x')",
        "left(s, 5)", "ascii(s)", "reverse(s)", "elt(1, s, word)", "s = word", "sha1(s)",
    ),
    "number": (
        "int(number)", "bigint(number)", "double(number)", "CAST(number AS DECIMAL(18, 2))",
        "try_cast(number AS INT)", "boolean(number = '1')",
    ),
    "stamp": (
        "timestamp(stamp)", "date(stamp)", "to_timestamp(stamp, 'yyyy-MM-dd HH:mm:ss')",
        "to_date(substr(stamp, 1, 10), 'yyyy-MM-dd')", "unix_timestamp(stamp)", "try_to_timestamp(stamp)",
    ),
    "day": (
        "year(day)", "month(day)", "dayofweek(day)", "weekofyear(day)", "date_add(kinds.day, 3)", "add_months(day, 1)",
        "last_day(day)", "date_trunc('MONTH', day)", "trunc(day, 'MM')", "date_format(day, 'yyyy-MM')", "string(day)",
        "datediff(kinds.day, DATE'2020-01-01')", "months_between(day, DATE'2020-01-01')", "next_day(day, 'MON')",
        "quarter(day)", "day + INTERVAL 1 MONTH", "timestamp(day)",
    ),
    "at": (
        "date_format(at, 'yyyy-MM-dd HH')", "hour(at)", "minute(at)", "year(at)", "date(at)",
        "date_trunc('HOUR', at)", "string(at)", "unix_timestamp(at)", "at + INTERVAL 1 DAY",
        "to_utc_timestamp(at, 'Europe/Berlin')", "from_utc_timestamp(at, 'Europe/Berlin')",
        "timestampdiff(HOUR, TIMESTAMP'2020-01-01', at)", "dayofyear(at)", "extract(SECOND FROM at)",

    ),
    "url": (
        "parse_url(url, 'HOST')", "parse_url(url, 'QUERY', 'a')", "url_decode(url)",
    ),
    "json": (
        "get_json_object(json, '$.a')", "from_json(json, 'a INT, b STRING')",
        "to_json(named_struct('a', n))",
    ),
    "list": (
        "size(list)", "array_contains(list, 7)", "sort_array(list)", "array_distinct(list)", "array_max(list)",
        "list[0]", "element_at(list, 1)", "transform(list, x -> x + 1)", "filter(list, x -> x > 3)",
        "aggregate(list, CAST(0 AS BIGINT), (a, x) -> a + x)", "array_join(words, ',')", "concat(list, list)",
        "slice(list, 1, 2)", "array_position(list, 7)", "flatten(array(list, list))", "exists(list, x -> x = 7)",
        "arrays_zip(list, words)", "array_union(list, list)", "reverse(list)",
    ),
}  # fmt: skip


def _timed(system: Ours, text: str) -> float:
    start = time.perf_counter()
    system.query(text)
    return time.perf_counter() - start


def run() -> list[Row]:
    """A row per expression, the slowest first."""
    folder = tables.table("kinds")
    found: list[tuple[float, str]] = []
    refused: list[Row] = []
    with gateway_process() as (url, pid, _), Client(url).open(ANEW) as client:
        system = Ours(client, pid)
        system.use({"kinds": folder})
        settle(pid)

        def seconds(expression: str) -> float:
            text = f"SELECT count({expression}) FROM kinds"
            return min(_timed(system, text) for _ in range(ROUNDS))

        for column, expressions in EXPRESSIONS.items():
            base = seconds(column)
            for expression in expressions:
                try:
                    found.append((max(0.0, seconds(expression) - base), expression))
                except Exception as error:  # noqa: BLE001 - a refusal is a result of the benchmark
                    refused.append(Row(expression, {"ours": str(error).splitlines()[0][:60]}))
    found.sort(reverse=True)
    return [Row(e, {"ours": f"{s / tables.KINDS_ROWS * 1e9:.0f} ns a row"}) for s, e in found] + refused
