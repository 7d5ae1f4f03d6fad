"""The tables of a run in the warehouse: nobody takes them away meanwhile, and nothing of another kind has their names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.catalog import writers
from gateway.catalog.base import TableName
from gateway.catalog.local import LocalCatalog
from gateway.catalog.objects import StoredTable, StoredView
from gateway.delta.locks import ALONE, SHARED
from gateway.delta.write import create_table
from gateway.errors import ConfigError, UserError
from gateway.pipelines.warehouse import Warehouse
from gateway.sqltypes import BIGINT, StructField, struct

ONE = struct(StructField("a", BIGINT))


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalCatalog:
    """A table ``shop.gold``, and nobody who waits."""
    monkeypatch.setattr(writers, "_PATIENCE", {ALONE: 0.0, SHARED: 0.0})
    found = LocalCatalog("main", str(tmp_path))
    found.create_schema("shop", None)
    create_table(os.path.join(found.root, "shop", "gold"), ONE)
    return found


def test_tables_of_a_run_keep_their_names(catalog: LocalCatalog) -> None:
    with Warehouse(Path(catalog.root)).kept([("shop", "gold"), ("shop", "new")]):
        with pytest.raises(UserError, match="they have to end first"):
            catalog.drop_table("shop", "gold")
        with pytest.raises(UserError, match="they have to end first"):
            catalog.drop_schema("shop", True)
    catalog.drop_schema("shop", True)


def test_a_name_that_something_else_has_is_refused(catalog: LocalCatalog) -> None:
    name = TableName("main", "shop", "silver")
    assert catalog.put(StoredView(name, "SELECT 1 AS a", ONE, ("a",), "main", "shop"), False)
    place = catalog.table_location("shop", "raw")
    assert catalog.put(
        StoredTable(TableName("main", "shop", "raw"), place, "csv", ONE, (), "(a BIGINT) USING csv"), False
    )
    warehouse = Warehouse(Path(catalog.root))
    for table, what in (("silver", "view"), ("raw", "table of another format")):
        with pytest.raises(ConfigError, match=f"there is a {what} of that name"), warehouse.kept([("shop", table)]):
            raise AssertionError
    assert os.listdir(os.path.join(catalog.root, ".writers")) == []
