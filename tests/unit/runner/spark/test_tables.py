"""Tables of other formats: what is kept of Spark's description, and what becomes of one that cannot be made."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from gateway.catalog.base import TableName
from gateway.catalog.local import LocalCatalog
from gateway.catalog.objects import StoredTable, StoredView
from gateway.delta import write
from gateway.errors import GatewayError, Span, UserError
from gateway.runner.spark.tables import check_as_it_was, definition_of, making, may_run, settle
from gateway.sql.read.statement import read_statement
from gateway.sql.spark.respell import Mention
from gateway.sqltypes import BIGINT, StructField, struct
from tests.unit.sql.spark.test_respell import respelt

ONE = struct(StructField("a", BIGINT))


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


@pytest.fixture
def catalog(tmp_path: Path) -> LocalCatalog:
    """A warehouse with a schema ``sales``."""
    found = LocalCatalog("main", str(tmp_path))
    found.create_schema("sales", None)
    return found


class Forgetful:
    """A mirror that only forgets."""

    def __init__(self) -> None:
        self.forgotten: list[Any] = []

    def forget(self, *what: str) -> None:
        self.forgotten.append(what)


def _made(catalog: LocalCatalog, text: str, files: Sequence[str], meanwhile: Callable[[], None], failed: bool) -> None:
    """What happens around a statement that makes ``sales.t`` on Spark."""
    draft, mirror = catalog.draft(), Forgetful()
    target = Mention("main", "sales", "t", True, Span(0, 1), 0, draft=draft)
    other = StoredTable(TableName("main", "sales", "t"), "", "csv", ONE, (), "(a BIGINT) USING csv")
    catalogs = {"main": catalog}
    try:
        with making(target, cast(Any, mirror)) as made:
            assert made == draft
            Path(draft.folder, "_delta_log").mkdir(parents=True)
            for name in files:
                Path(draft.folder, name).touch()
            meanwhile()
            if failed:
                raise RuntimeError("failed")
            stored = replace(other, location=catalog.table_location("sales", "t")) if "csv" in text else None
            settle(catalogs, target, made, stored, read_statement(text))
    finally:
        assert mirror.forgotten == [("TABLE", "sales", draft.name, draft.folder)]
        assert os.listdir(os.path.dirname(draft.folder)) == []


FORMATS = ["", " USING csv"]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_table_comes_to_its_name_when_it_is_made(catalog: LocalCatalog, format_: str) -> None:
    _made(catalog, f"CREATE TABLE t{format_} AS SELECT 1 AS a", ["part-0"], lambda: None, False)
    assert sorted(os.listdir(os.path.join(catalog.root, "sales", "t"))) == ["_delta_log", "part-0"]
    assert (catalog.identity(StoredTable, "sales", "t") is not None) == bool(format_)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_table_that_fails_leaves_nothing_of_its_own(catalog: LocalCatalog, format_: str) -> None:
    with pytest.raises(RuntimeError, match="failed"):
        _made(catalog, f"CREATE TABLE t{format_} AS SELECT 1 AS a", ["part-0"], lambda: None, True)
    assert not os.path.lexists(os.path.join(catalog.root, "sales", "t"))
    assert catalog.identity(StoredTable, "sales", "t") is None


def _view(catalog: LocalCatalog) -> None:
    name = TableName("main", "sales", "t")
    assert catalog.put(StoredView(name, "SELECT 1 AS a", ONE, ("a",), "main", "sales"), False)


def _delta(catalog: LocalCatalog) -> None:
    write.create_table(os.path.join(catalog.root, "sales", "t"), ONE)


def _files(catalog: LocalCatalog) -> None:
    folder = Path(catalog.root, "sales", "t")
    folder.mkdir()
    (folder / "theirs").touch()


def _tables(catalog: LocalCatalog) -> list[Path]:
    return sorted(Path(catalog.root).glob("[!.]*/[!_]*/**/*"))


MEANWHILE: list[tuple[Callable[[LocalCatalog], None], str, str]] = [
    (_view, "CREATE TABLE", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    (_view, "CREATE OR REPLACE TABLE", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    (_view, "CREATE TABLE IF NOT EXISTS", ""),
    (_delta, "CREATE TABLE", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    (_delta, "CREATE OR REPLACE TABLE", "WRITE_CONFLICT"),
    (_delta, "CREATE TABLE IF NOT EXISTS", ""),
    (_files, "CREATE TABLE IF NOT EXISTS", "LOCATION_ALREADY_EXISTS"),
    (lambda catalog: catalog.drop_schema("sales", True), "CREATE TABLE IF NOT EXISTS", "SCHEMA_NOT_FOUND"),
]


@pytest.mark.parametrize(
    ("format_", "meanwhile", "how", "condition"),
    # Another format never takes the place of a table: that is refused before.
    [(format_, *case) for format_ in FORMATS for case in MEANWHILE if not (format_ and "REPLACE" in case[1])],
)
def test_a_table_takes_nothing_from_what_is_made_or_dropped_meanwhile(
    catalog: LocalCatalog, format_: str, meanwhile: Callable[[LocalCatalog], None], how: str, condition: str
) -> None:
    seen: list[list[Path]] = []

    def late() -> None:
        meanwhile(catalog)
        seen.append(_tables(catalog))

    with pytest.raises(UserError) if condition else contextlib.nullcontext() as caught:
        _made(catalog, f"{how} t{format_} AS SELECT 1 AS a", ["part-0"], late, False)
    assert caught is None or caught.value.condition == condition
    assert _tables(catalog) == seen[0]
    assert catalog.identity(StoredTable, "sales", "t") is None


def test_a_table_that_is_gone_is_not_made_anew_in_its_place(catalog: LocalCatalog) -> None:
    target = Mention("main", "sales", "t", True, Span(0, 1), 0)
    statement = read_statement("CREATE OR REPLACE TABLE t AS SELECT 1 AS a")
    with pytest.raises(UserError) as caught:
        check_as_it_was({"main": catalog}, target, statement)
    assert caught.value.condition == "WRITE_CONFLICT"
    _delta(catalog)
    check_as_it_was({"main": catalog}, target, statement)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("CREATE TABLE sales.`odd name` USING csv AS SELECT 1 AS a", "INVALID_SCHEMA_OR_RELATION_NAME"),
        ("CREATE TABLE sales.u LIKE sales.t USING parquet", "UNSUPPORTED_FEATURE"),
        ("CREATE OR REPLACE TABLE sales.u USING csv AS SELECT 1 AS a", "UNSUPPORTED_FEATURE"),
    ],
)
def test_what_spark_could_not_find_again_is_refused(catalog: LocalCatalog, text: str, condition: str) -> None:
    with pytest.raises(GatewayError) as caught:
        may_run(read_statement(text), respelt(text), {"main": catalog})
    assert caught.value.condition == condition
