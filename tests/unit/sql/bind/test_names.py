"""Names of unaliased expressions whose form Spark changes while it resolves them; recorded from Spark 4.2.0."""

import pytest

from tests.unit.sql.bind.analysis import analysed

_ORDER = "sum(id) OVER (ORDER BY id ASC NULLS FIRST RANGE BETWEEN"
_CAST = "sum(id) OVER (ORDER BY CAST(id AS {}) ASC NULLS FIRST RANGE BETWEEN"

NAMES = {
    # Casts to nested types are not shown.
    "CAST(array() AS ARRAY<STRING>)": "array()",
    "size(CAST(array(1, 2) AS ARRAY<STRING>))": "size(array(1, 2))",
    "size(CAST(array(CAST(NULL AS INT)) AS ARRAY<BIGINT>))": "size(array(CAST(NULL AS INT)))",
    "upper(CAST('x' AS STRING))": "upper(CAST(x AS STRING))",
    # An integer compared with a decimal constant is compared with an integer.
    "2 > 1.1": "(2 > 1)",
    "2 >= 1.1": "(2 >= 2)",
    "2 < 1.1": "(2 < 2)",
    "2 <= 1.1": "(2 <= 1)",
    "1.1 > 2": "(2 > 2)",
    "1.1 >= 2": "(1 >= 2)",
    "1.1 < 2": "(1 < 2)",
    "1.1 <= 2": "(2 <= 2)",
    "2 = 1.1": "(2 = 1.1)",
    "id > 1.0": "(id > 1)",
    "id < -1.5": "(id < -1)",
    "CAST(id AS TINYINT) > 1.5": "(CAST(id AS TINYINT) > 1)",
    "id > 12345678901234567890123.5": "false",
    "id > 1e3": "(id > 1000.0)",
    "id BETWEEN 1.5 AND 2.5": "between(id, 1.5, 2.5)",
    "id IN (1.5, 2)": "(id IN (1.5, 2))",
    # Binary as text keeps the character set as it was written.
    "to_char(encode('abc', 'utf-8'), 'utf-8')": "decode(encode(abc, utf-8), utf-8)",
    "to_varchar(encode('abc', 'utf-8'), 'utf-8')": "to_varchar(encode(abc, utf-8), utf-8)",
    "'a' ILIKE 'b' ESCAPE '/'": "ilike(a, b)",
    "'a' LIKE 'b' ESCAPE '/'": "a LIKE b ESCAPE '/'",
    # Bounds of another type than the order's are cast once they are negated.
    "sum(id) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)": f"{_ORDER} (- 1) FOLLOWING AND 1 FOLLOWING)",
    "sum(id) OVER (ORDER BY id RANGE BETWEEN 1L PRECEDING AND 1L FOLLOWING)": f"{_ORDER} 1 PRECEDING AND 1 FOLLOWING)",
    "sum(id) OVER (ORDER BY id RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING)": f"{_ORDER} (- 2) FOLLOWING AND (- 1) FOLLOWING)",
    "sum(id) OVER (ORDER BY CAST(id AS INT) RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)": (
        f"{_CAST.format('INT')} 1 PRECEDING AND CURRENT ROW)"
    ),
    "sum(id) OVER (ORDER BY CAST(id AS DOUBLE) RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)": (
        f"{_CAST.format('DOUBLE')} (- 1) FOLLOWING AND 1 FOLLOWING)"
    ),
    # ALL means the output columns, though an enclosing query has a column of the name.
    "(SELECT c FROM VALUES (2) AS v(c) ORDER BY ALL)": "scalarsubquery()",
}


@pytest.mark.parametrize("expression", NAMES)
def test_names(expression: str) -> None:
    query = analysed(f"SELECT {expression} FROM (SELECT id, id AS all FROM range(3))")
    (column,) = query.schema.fields
    assert column.name == NAMES[expression]
