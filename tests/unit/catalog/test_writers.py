"""Names of tables that another engine writes to: they stay until it has ended."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.catalog import writers
from gateway.catalog.local import LocalCatalog
from gateway.delta.locks import ALONE, SHARED
from gateway.delta.write import create_table
from gateway.errors import ResourceError, UserError
from gateway.sqltypes import BIGINT, StructField, struct

TAKEN: list[Callable[[LocalCatalog], None]] = [
    lambda catalog: catalog.drop_table("Sales", "T"),
    lambda catalog: catalog.rename_table("sales", "t", "sales", "u"),
    lambda catalog: catalog.drop_schema("sales", True),
]


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalCatalog:
    """Tables ``t`` and ``other``, and nobody who waits."""
    monkeypatch.setattr(writers, "_PATIENCE", {ALONE: 0.0, SHARED: 0.0})
    found = LocalCatalog("main", str(tmp_path))
    found.create_schema("sales", None)
    for name in ("t", "other"):
        create_table(os.path.join(found.root, "sales", name), struct(StructField("a", BIGINT)))
    return found


@pytest.mark.parametrize("taken", TAKEN)
def test_a_table_that_is_written_to_keeps_its_name(
    catalog: LocalCatalog, taken: Callable[[LocalCatalog], None]
) -> None:
    with catalog.written("sales", "t"), catalog.written("SALES", "T"):
        with pytest.raises(UserError) as caught:
            taken(catalog)
        assert caught.value.condition == "WRITE_CONFLICT"
        assert caught.value.retryable
        assert catalog.tables("sales") == ["other", "t"]
        catalog.drop_table("sales", "other")
    taken(catalog)
    assert os.listdir(os.path.join(catalog.root, ".writers")) == []


@pytest.mark.parametrize("schema", [False, True])
def test_who_is_to_write_waits_for_who_takes_a_table_away(catalog: LocalCatalog, schema: bool) -> None:
    with writers.taking(catalog.root, "sales", None if schema else "t"):
        with pytest.raises(UserError) as caught, catalog.written("sales", "t"):
            raise AssertionError
        assert caught.value.condition == "WRITE_CONFLICT"
    with catalog.written("sales", "t"):
        pass


def test_a_name_is_one_however_it_is_spelt(catalog: LocalCatalog) -> None:
    create_table(os.path.join(catalog.root, "sales", "straße"), struct(StructField("a", BIGINT)))
    with catalog.written("sales", "STRASSE"), pytest.raises(UserError):
        catalog.drop_table("sales", "straße")
    catalog.drop_table("sales", "strasse")


def test_tables_are_dropped_on_a_full_disk(catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def full(path: str, flags: int, *mode: int, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, flags, *mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(ResourceError), catalog.written("sales", "t"):
        raise AssertionError
    catalog.drop_table("sales", "t")
    assert catalog.tables("sales") == ["other"]


def test_a_lock_of_which_the_file_is_gone_is_taken_anew(catalog: LocalCatalog) -> None:
    with catalog.written("sales", "t"):
        for name in os.listdir(os.path.join(catalog.root, ".writers")):
            os.unlink(os.path.join(catalog.root, ".writers", name))
        catalog.drop_table("sales", "t")  # nobody can know
    assert catalog.tables("sales") == ["other"]
