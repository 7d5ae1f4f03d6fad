"""Values of every type as SQL text: everyday ones, and those at the edges where engines differ."""

from __future__ import annotations

from random import Random

#: Zones with overlaps, gaps, half hours, changes in history, and none at all.
ZONES = (
    "UTC",
    "America/Los_Angeles",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "+05:30",
)

_INSTANTS = (
    "2024-03-10 02:30:00",  # a gap in Los Angeles
    "2024-11-03 01:30:00",  # an overlap
    "2024-03-31 02:15:00",
    "2024-10-27 02:30:00.5",
    "2024-04-07 01:45:00",
    "2050-07-01 12:00:00",  # beyond the tables of zone files
    "2200-01-01 00:00:00",
    "1883-11-18 12:00:00",
    "1900-01-01 00:00:00",
    "1582-10-10 00:00:00",
    "0001-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2011-12-30 10:00:00",  # a day that Apia never had
)
_EVERYDAY_INSTANTS = (
    "2024-02-29 13:45:59.123456",
    "2023-07-15 00:00:00",
    "2024-12-31 23:59:59",
    "2020-01-01 08:09:10.5",
)

EVERYDAY: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "tinyint": ("1Y", "7Y", "-3Y", "0Y"),
    "smallint": ("1S", "12S", "-30S", "0S"),
    "int": ("0", "1", "2", "3", "7", "-5", "10", "42"),
    "bigint": ("0L", "1L", "5L", "-9L", "100L"),
    "float": ("CAST(1.5 AS FLOAT)", "CAST(0 AS FLOAT)", "CAST(-2.25 AS FLOAT)"),
    "double": ("1.5D", "0D", "-2.75D", "3D", "0.1D"),
    "decimal(5,2)": ("CAST(1.50 AS DECIMAL(5,2))", "CAST(-0.25 AS DECIMAL(5,2))", "123.45"),
    "decimal(38,0)": ("CAST(12 AS DECIMAL(38,0))", "CAST(-7 AS DECIMAL(38,0))"),
    "decimal(38,18)": ("CAST(1.5 AS DECIMAL(38,18))", "CAST(-0.000000000000000001 AS DECIMAL(38,18))"),
    "string": ("'a'", "'Spark SQL'", "'abc'", "'B'", "'12'", "'2024-02-29'", "'x,y,z'", "''"),
    "binary": ("X'537061726B'", "X'00'", "X'6162'"),
    "date": ("DATE'2024-02-29'", "DATE'2023-07-15'", "DATE'2024-12-31'", "DATE'2020-01-01'"),
    "timestamp": tuple(f"TIMESTAMP'{t}'" for t in _EVERYDAY_INSTANTS),
    "timestamp_ntz": tuple(f"TIMESTAMP_NTZ'{t}'" for t in _EVERYDAY_INSTANTS),
    "interval year to month": ("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-0-1' YEAR TO MONTH"),
    "interval day to second": ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '-1 00:00:00' DAY TO SECOND"),
    "array<int>": ("array(1, 2, 3)", "array(3, NULL, 1)", "array(5)"),
    "array<string>": ("array('a', 'b')", "array('b', NULL, 'a', 'b')", "array('')"),
    "array<double>": ("array(1.5D, -2D)", "array(0D)"),
    "map<string,int>": ("map('a', 1, 'b', 2)", "map('k', CAST(NULL AS INT))"),
    "map<int,string>": ("map(1, 'x', 2, 'y')", "map(0, '')"),
    "struct<a:int,b:string>": ("named_struct('a', 1, 'b', 'x')", "named_struct('a', -1, 'b', '')"),
    "array<struct<a:int,b:string>>": ("array(named_struct('a', 1, 'b', 'x'), named_struct('a', 2, 'b', 'y'))",),
    "void": ("NULL",),
}

EDGES: dict[str, tuple[str, ...]] = {
    "tinyint": ("127Y", "-128Y"),
    "smallint": ("32767S", "-32768S"),
    "int": ("2147483647", "-2147483648", "-1", "1000000"),
    "bigint": ("9223372036854775807L", "-9223372036854775808L", "9007199254740993L", "-1L", "2147483648L"),
    "float": (
        "CAST('NaN' AS FLOAT)",
        "CAST('Infinity' AS FLOAT)",
        "CAST('-Infinity' AS FLOAT)",
        "CAST('-0.0' AS FLOAT)",
        "CAST(3.4028235E38 AS FLOAT)",
        "CAST(1.4E-45 AS FLOAT)",
        "CAST(16777217 AS FLOAT)",
    ),
    "double": (
        "CAST('NaN' AS DOUBLE)",
        "CAST('Infinity' AS DOUBLE)",
        "CAST('-Infinity' AS DOUBLE)",
        "CAST('-0.0' AS DOUBLE)",
        "1.7976931348623157E308D",
        "4.9E-324D",
        "9007199254740993D",
        "1E16D",
        "-0.5D",
        "2.5D",
    ),
    "decimal(5,2)": ("CAST(999.99 AS DECIMAL(5,2))", "CAST(-999.99 AS DECIMAL(5,2))", "CAST(0.00 AS DECIMAL(5,2))"),
    "decimal(38,0)": ("99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"),
    "decimal(38,18)": ("99999999999999999999.999999999999999999", "CAST(0.0 AS DECIMAL(38,18))"),
    "string": (
        "' -12.5 '",
        "'Zażółć 日本 😀'",
        "'e\\u0301'",
        "'a\\nb\\tc'",
        "'%_\\\\'",
        "'NaN'",
        "'true'",
        "'  '",
        "'1e3'",
        "'2024-03-10 02:30:00'",
        "'ß'",
        "'İ'",
        "'{\"a\": 1}'",
        "'99999999999999999999'",
    ),
    "binary": ("X''", "X'FF'", "X'C328'", "X'F09F9880'"),
    "date": (
        "DATE'0001-01-01'",
        "DATE'9999-12-31'",
        "DATE'1582-10-10'",
        "DATE'1969-12-31'",
        "DATE'1900-02-28'",
        "DATE'-0044-03-15'",
        "DATE'+12024-01-01'",
    ),
    "timestamp": tuple(f"TIMESTAMP'{t}'" for t in _INSTANTS),
    "timestamp_ntz": tuple(f"TIMESTAMP_NTZ'{t}'" for t in _INSTANTS),
    "interval year to month": ("INTERVAL '178956970-7' YEAR TO MONTH", "INTERVAL '0-0' YEAR TO MONTH"),
    "interval day to second": (
        "INTERVAL '106751991 04:00:54.775807' DAY TO SECOND",
        "INTERVAL '0 00:00:00' DAY TO SECOND",
        "INTERVAL '0 00:00:00.000001' DAY TO SECOND",
    ),
    "array<int>": ("CAST(array() AS ARRAY<INT>)", "array(CAST(NULL AS INT))", "array(2147483647, -2147483648)"),
    "array<string>": ("CAST(array() AS ARRAY<STRING>)", "array('😀', 'a')"),
    "array<double>": (
        "array(CAST('NaN' AS DOUBLE), CAST('-0.0' AS DOUBLE), 0D, NULL)",
        "CAST(array() AS ARRAY<DOUBLE>)",
    ),
    "map<string,int>": ("CAST(map() AS MAP<STRING,INT>)", "map('', 2147483647)"),
    "map<int,string>": ("CAST(map() AS MAP<INT,STRING>)",),
    "struct<a:int,b:string>": ("named_struct('a', CAST(NULL AS INT), 'b', CAST(NULL AS STRING))",),
    "array<struct<a:int,b:string>>": ("CAST(array() AS ARRAY<STRUCT<a:INT,b:STRING>>)",),
}

TYPES = tuple(t for t in EVERYDAY if t != "void")
#: Types that sort, group and join without ado.
ATOMIC = tuple(t for t in TYPES if not t.startswith(("array", "map", "struct")))


def null(type_: str) -> str:
    """A NULL of a type."""
    return "NULL" if type_ == "void" else f"CAST(NULL AS {type_.upper()})"


def literal(random: Random, type_: str, edge: float = 0.2, nothing: float = 0.08) -> str:
    """A value of a type: NULL with chance `nothing`, one at an edge with chance `edge`.

    Types without values here are cast from a NULL.
    """
    if type_ not in EVERYDAY:
        return _made(random, type_)
    chance = random.random()
    if chance < nothing:
        return null(type_)
    if chance < nothing + edge and type_ in EDGES:
        return random.choice(EDGES[type_])
    return random.choice(EVERYDAY[type_])


def _made(random: Random, type_: str) -> str:
    """Decimals of any precision from small numbers, NULL of anything else."""
    if type_.startswith("decimal("):
        precision, scale = (int(n) for n in type_[8:-1].split(","))
        digits = str(random.choice((0, 1, 7, 12)))[: max(precision - scale, 1)] if precision > scale else "0"
        return f"CAST({digits} AS {type_.upper()})"
    return null(type_)
