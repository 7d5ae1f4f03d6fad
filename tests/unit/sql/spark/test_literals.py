"""Constants as Spark's literals; `tests/spark` asks Spark what it reads them as."""

from decimal import Decimal

import pyarrow as pa
import pytest

from gateway.errors import UnsupportedError
from gateway.sql.spark.literals import spark_literal, spark_value
from gateway.sql.typed.nodes import Lit
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    YEAR_MONTH,
    DataType,
    StructField,
    array,
    decimal,
    map_of,
    struct,
)

LITERALS: list[tuple[DataType, object, str]] = [
    (VOID, None, "NULL"),
    (INT, None, "CAST(NULL AS INT)"),
    (BOOLEAN, True, "true"),
    (BOOLEAN, False, "false"),
    (TINYINT, -128, "CAST('-128' AS TINYINT)"),
    (TINYINT, 127, "127Y"),
    (SMALLINT, -32768, "CAST('-32768' AS SMALLINT)"),
    (SMALLINT, -5, "-5S"),
    (INT, -(1 << 31), "CAST('-2147483648' AS INT)"),
    (INT, 7, "7"),
    (BIGINT, -(1 << 63), "CAST('-9223372036854775808' AS BIGINT)"),
    (BIGINT, (1 << 63) - 1, "9223372036854775807L"),
    (DOUBLE, 0.1, "0.1D"),
    (DOUBLE, -0.0, "-0.0D"),
    (DOUBLE, 1e300, "1e+300D"),
    (DOUBLE, 5e-324, "5e-324D"),
    (DOUBLE, float("nan"), "CAST('NaN' AS DOUBLE)"),
    (DOUBLE, float("-inf"), "CAST('-Infinity' AS DOUBLE)"),
    (FLOAT, 1.5, "1.5F"),
    (decimal(3, 1), Decimal("12.5"), "12.5BD"),
    (decimal(10, 2), Decimal("12.5"), "CAST('12.5' AS DECIMAL(10,2))"),
    (STRING, "", "''"),
    (STRING, 'it\'s \\ "x"', "'it\\'s \\\\ \"x\"'"),
    (STRING, "%\\_ \n é 😀", "'%\\\\_ \n é 😀'"),
    (BINARY, b"", "X''"),
    (BINARY, b"\x00\xff", "X'00FF'"),
    (DATE, 0, "DATE'1970-01-01'"),
    (TIMESTAMP, 1, "TIMESTAMP_LTZ'1970-01-01 00:00:00.000001Z'"),
    (TIMESTAMP_NTZ, 0, "TIMESTAMP_NTZ'1970-01-01 00:00:00'"),
    (YEAR_MONTH, -13, "INTERVAL '-1-1' YEAR TO MONTH"),
    (DAY_TIME, 90_061_000_001, "INTERVAL '1 01:01:01.000001' DAY TO SECOND"),
]


@pytest.mark.parametrize(("type_", "value", "text"), LITERALS)
def test_literals(type_: DataType, value: object, text: str) -> None:
    assert spark_literal(Lit(type_, value is None, value)) == text


def test_a_type_without_literals_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a value of type ARRAY<INT>"):
        spark_literal(Lit(array(INT), False, [1]))


def test_nested_values() -> None:
    pairs = map_of(STRING, array(DATE))
    type_ = struct(StructField("it's", pairs), StructField("n", TIMESTAMP))
    rows = [{"it's": [("a", [18263, None]), ("b", None)], "n": 1_500_000}, {"it's": [], "n": None}, None]
    first, second, third = pa.array(rows, type_.arrow())
    dates = "CAST(array(DATE'2020-01-02', CAST(NULL AS DATE)) AS ARRAY<DATE>)"
    entries = f"CAST(map('a', {dates}, 'b', CAST(NULL AS ARRAY<DATE>)) AS {pairs.sql})"
    moment = "TIMESTAMP_LTZ'1970-01-01 00:00:01.5Z'"
    assert spark_value(first, type_) == f"CAST(named_struct('it\\'s', {entries}, 'n', {moment}) AS {type_.sql})"
    assert f"CAST(map() AS {pairs.sql}), 'n', CAST(NULL AS TIMESTAMP)" in spark_value(second, type_)
    assert spark_value(third, type_) == f"CAST(NULL AS {type_.sql})"
