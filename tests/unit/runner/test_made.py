"""What is kept of Spark's description of a table of another format."""

from __future__ import annotations

import pytest

from gateway.runner.made import definition_of


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        (
            "CREATE TABLE spark_catalog.default.t (\n  a INT,\n  b STRING COLLATE UTF8_BINARY)\nUSING parquet\n",
            "(\n  a INT,\n  b STRING)\nUSING parquet",
        ),
        (
            "CREATE TABLE spark_catalog.`s`.`x y` (\n  `location` CHAR(5) COLLATE UTF8_BINARY COMMENT 'LOCATION \\'x\\'')\n"
            "USING csv\nOPTIONS (\n  'header' = 'true')\nLOCATION 'file:/wh/s/t'\nTBLPROPERTIES (\n  'k' = 'v')\n",
            "(\n  `location` CHAR(5) COMMENT 'LOCATION \\'x\\'')\n"
            "USING csv\nOPTIONS (\n  'header' = 'true')\nTBLPROPERTIES (\n  'k' = 'v')",
        ),
    ],
)
def test_definitions_have_no_place_and_no_usual_collation(shown: str, kept: str) -> None:
    assert definition_of(shown) == kept
