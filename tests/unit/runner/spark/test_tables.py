"""Tables of other formats: what is kept of Spark's description, and what becomes of one that cannot be made."""

from __future__ import annotations

import contextlib
import enum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.catalog.local import LocalCatalog
from gateway.delta import write
from gateway.runner.spark.tables import definition_of, making
from gateway.sql.read.statement import read_statement
from gateway.sqltypes import BIGINT, StructField, struct
from tests.unit.sql.spark.test_respell import respelt

EMIT = cast(Any, SimpleNamespace(cancelled=False))


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


@pytest.mark.parametrize("by_another", [False, True])
def test_a_table_that_fails_leaves_nothing_of_its_own(tmp_path: Path, by_another: bool) -> None:
    catalog = LocalCatalog("main", str(tmp_path))
    catalog.create_schema("sales", None)
    forgotten: list[Any] = []
    mirror = SimpleNamespace(forget=lambda *what: forgotten.append(what))
    around = partial(making, catalogs={"main": catalog}, mirror=cast(Any, mirror), emit=EMIT)
    text = "CREATE TABLE main.sales.t USING csv AS SELECT 1 AS a"
    folder = tmp_path / "sales" / "t"
    with pytest.raises(RuntimeError, match="failed"), around(read_statement(text), respelt(text)):
        if by_another:
            write.create_table(str(folder), struct(StructField("a", BIGINT)))
        else:
            folder.mkdir()
            (folder / "part-0").touch()
        raise RuntimeError("failed")
    assert (folder / "_delta_log").exists() == folder.exists() == by_another
    assert len(forgotten) == 1


class Outcome(enum.Enum):
    """How a statement that makes a Delta table ends while another may be making the same one."""

    ALONE = enum.auto()
    CANCELLED = enum.auto()
    COMMITTED = enum.auto()
    BESIDE_ANOTHER = enum.auto()
    IN_A_FOLDER_OF_OTHERS = enum.auto()


@pytest.mark.parametrize("how", Outcome)
def test_a_delta_table_that_spark_could_not_make_leaves_no_files(tmp_path: Path, how: Outcome) -> None:
    catalog = LocalCatalog("main", str(tmp_path))
    catalog.create_schema("sales", None)
    text = "CREATE TABLE main.sales.t AS SELECT 1 AS a"
    folder = tmp_path / "sales" / "t"
    emit = cast(Any, SimpleNamespace(cancelled=how is Outcome.CANCELLED))
    around = partial(making, catalogs={"main": catalog}, mirror=cast(Any, None), emit=emit)
    with contextlib.ExitStack() as stack:
        if how is Outcome.IN_A_FOLDER_OF_OTHERS:
            folder.mkdir()
            (folder / "theirs").touch()
        if how is Outcome.BESIDE_ANOTHER:
            stack.enter_context(around(read_statement(text), respelt(text)))
        with pytest.raises(RuntimeError, match="failed"), around(read_statement(text), respelt(text)):
            if how is Outcome.COMMITTED:
                write.create_table(str(folder), struct(StructField("a", BIGINT)))
            folder.mkdir(exist_ok=True)
            (folder / "part-0").touch()
            raise RuntimeError("failed")
        assert folder.exists() == (how is not Outcome.ALONE)
    if how is Outcome.BESIDE_ANOTHER:  # which fails, too, and may have found files of the first
        with pytest.raises(RuntimeError), around(read_statement(text), respelt(text)):
            raise RuntimeError
        assert folder.exists()
