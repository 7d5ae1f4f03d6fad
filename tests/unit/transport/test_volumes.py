"""What is told to be kept is on the disk: the file, and then its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.catalog.base import TableName
from gateway.catalog.local import LocalCatalog
from gateway.catalog.objects import StoredView
from gateway.results.file_links import FileLink
from gateway.sqltypes import INT, StructField, struct
from gateway.transport.volumes import _Draft


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was brought to the disk."""
    found: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: found.append(os.path.basename(os.readlink(f"/proc/self/fd/{file}"))))
    return found


@pytest.mark.parametrize("replaces", [True, False])
def test_a_file_that_was_put(tmp_path: Path, synced: list[str], replaces: bool) -> None:
    volume = tmp_path / "volumes" / "v"
    (volume / "below").mkdir(parents=True)
    draft = _Draft(FileLink("PUT", str(volume), "below/x", "ann", replaces))
    draft.write(b"rows")
    draft.keep()
    draft.close()
    assert (volume / "below" / "x").read_bytes() == b"rows"
    assert synced[1:] == ["below"]


def test_an_object_of_the_catalog(tmp_path: Path, synced: list[str]) -> None:
    catalog = LocalCatalog("main", str(tmp_path))
    catalog.create_schema("shop", None)
    synced.clear()
    name = TableName("main", "shop", "v")
    catalog.put(StoredView(name, "SELECT 1 AS a", struct(StructField("a", INT)), ("a",), "main", "default"), False)
    assert synced[1:] == ["_objects"]
