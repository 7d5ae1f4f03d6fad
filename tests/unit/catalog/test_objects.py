"""Views, functions and tables of other formats as files: round trips, names, two processes at once, sweeping."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from pathlib import Path

import pytest

from gateway.catalog import objects
from gateway.catalog.base import TableName
from gateway.catalog.local import LocalCatalog
from gateway.catalog.objects import StoredFunction, StoredTable, StoredView
from gateway.errors import ResourceError, ServerError, UserError
from gateway.sqltypes import INT, STRING, StructField, array, char, map_of, struct, varchar


@pytest.fixture
def catalog(tmp_path: Path) -> LocalCatalog:
    """A catalog with the schemas `default` and `shop`."""
    made = LocalCatalog("main", str(tmp_path / "wh"))
    made.create_schema("shop", None)
    return made


def view(name: str = "V", schema: str = "shop", query: str = "SELECT 1 AS a") -> StoredView:
    """A view of one column."""
    return StoredView(
        TableName("main", schema, name), query, struct(StructField("a", INT, False)), ("a",), "main", "default"
    )


def test_a_full_disk_leaves_no_drafts(catalog: LocalCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert catalog.put(view(), False)
    before = sorted(tmp_path.rglob("*"))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for place, what, write in (
        (os, "fsync", lambda: catalog.put(view("other"), False)),
        (os, "fsync", lambda: catalog.put(view(query="SELECT 2 AS a"), True)),
        (objects, "spelt", lambda: catalog.create_schema("noted", "a comment")),
    ):
        monkeypatch.setattr(place, what, full)
        with pytest.raises(ResourceError, match="no space left") as caught:
            write()
        assert caught.value.sqlstate == "53100"
        assert sorted(tmp_path.rglob("*")) == before
    assert catalog.view("shop", "v") == view()


def test_views_keep_everything(catalog: LocalCatalog) -> None:
    columns = struct(
        StructField("c", char(3), False, "a comment"),
        StructField("l", array(varchar(5))),
        StructField("m", map_of(STRING, struct(StructField("x", char(2)), StructField("y", INT)))),
    )
    made = StoredView(
        TableName("main", "shop", "V"),
        "SELECT 'ä' AS c",
        columns,
        ("c", "l", "m"),
        "samples",
        "tpch",
        "what it is",
        {"k": "v"},
        {"TIMEZONE": "UTC"},
        True,
        True,
    )
    assert catalog.put(made, False)
    assert catalog.view("SHOP", "v") == made
    assert catalog.views("shop") == ["V"]
    assert catalog.tables("shop") == []


def test_functions_and_tables_keep_everything(catalog: LocalCatalog) -> None:
    function = StoredFunction(
        TableName("main", "shop", "f"), "(x INT) RETURNS INT RETURN x", "main", "shop", {"a": "b"}
    )
    assert catalog.put(function, False)
    assert catalog.function("shop", "F") == function
    location = catalog.table_location("shop", "P")
    os.makedirs(location)
    table = StoredTable(
        TableName("main", "shop", "P"),
        location,
        "csv",
        struct(StructField("a", INT), StructField("b", STRING)),
        ("b",),
        "(a INT, b STRING) USING csv PARTITIONED BY (b)",
        "rows",
        {"k": "v"},
        {"header": "true"},
    )
    assert catalog.put(table, False)
    assert catalog.table("shop", "p") == table
    assert catalog.other_tables("shop") == ["P"]
    assert catalog.tables("shop") == []
    catalog.drop_table("shop", "p")
    assert catalog.table("shop", "p") is None
    assert not os.path.exists(location)


def test_one_name_once(catalog: LocalCatalog) -> None:
    assert catalog.put(view(), False)
    assert not catalog.put(view("v", query="SELECT 2 AS a"), False)
    assert catalog.put(view("v", query="SELECT 2 AS a"), True)
    found = catalog.view("shop", "V")
    assert found is not None
    assert found.query == "SELECT 2 AS a"
    assert catalog.drop(StoredView, "shop", "v")
    assert not catalog.drop(StoredView, "shop", "v")


def test_default_needs_no_folder(catalog: LocalCatalog) -> None:
    assert catalog.put(view(schema="default"), False)
    assert catalog.views("default") == ["V"]
    with pytest.raises(UserError, match="SCHEMA_NOT_FOUND"):
        catalog.put(view(schema="nope"), False)


@pytest.mark.parametrize("name", ["", ".v", "_v", "a/b", "a%b", "x" * 201])
def test_names_are_those_of_files(catalog: LocalCatalog, name: str) -> None:
    with pytest.raises(UserError, match="INVALID_IDENTIFIER"):
        catalog.put(view(name), False)
    assert catalog.view("shop", name) is None


def test_a_schema_with_a_view_is_not_empty(catalog: LocalCatalog) -> None:
    catalog.put(view(), False)
    with pytest.raises(UserError, match="SCHEMA_NOT_EMPTY"):
        catalog.drop_schema("shop", cascade=False)
    catalog.drop_schema("shop", cascade=True)
    catalog.create_schema("shop", None)
    assert catalog.views("shop") == []


def test_only_one_of_many_makers_wins(catalog: LocalCatalog) -> None:
    won: list[str] = []
    start = threading.Barrier(8)

    def make(number: int) -> None:
        start.wait()
        if catalog.put(view(query=f"SELECT {number} AS a"), False):
            won.append(f"SELECT {number} AS a")

    threads = [threading.Thread(target=make, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = catalog.view("shop", "v")
    assert found is not None
    assert won == [found.query]
    assert len(os.listdir(os.path.join(catalog.root, "shop", objects.FOLDER))) == 1


def test_old_drafts_are_swept(catalog: LocalCatalog) -> None:
    catalog.put(view(), False)
    folder = Path(catalog.root, "shop", objects.FOLDER)
    old, new = folder / f"{objects.DRAFT}old", folder / f"{objects.DRAFT}new"
    for draft in (old, new):
        draft.write_text("{")
    os.utime(old, (time.time() - 2 * 86_400,) * 2)
    again = LocalCatalog("main", catalog.root)
    assert (old.exists(), new.exists()) == (False, True)
    assert again.views("shop") == ["V"]


@pytest.mark.parametrize("text", ["{", json.dumps({"format_version": 2}), "[]"])
def test_damaged_and_newer_files_are_told(catalog: LocalCatalog, text: str) -> None:
    catalog.put(view(), False)
    Path(catalog.root, "shop", objects.FOLDER, "v.view.json").write_text(text)
    with pytest.raises(ServerError, match=r"v\.view\.json"):
        catalog.view("shop", "v")


def test_what_would_not_be_read_again_is_not_kept(catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    assert catalog.put(view(), False)
    monkeypatch.setattr(objects, "LARGEST", 1000)
    for write in (
        lambda: catalog.put(view(query=f"SELECT '{'x' * 1000}' AS a"), True),
        lambda: catalog.create_schema("noted", "x" * 1000),
    ):
        with pytest.raises(ResourceError) as caught:
            write()
        assert caught.value.condition == "STATEMENT_TOO_LARGE"
    assert catalog.view("shop", "v") == view()
    assert catalog.schemas() == ["default", "shop"]
