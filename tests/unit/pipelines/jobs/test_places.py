"""Tables that a job writes to keep their names until it has ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.catalog import writers
from gateway.catalog.local import LocalCatalog
from gateway.delta.locks import ALONE, SHARED
from gateway.delta.write import create_table
from gateway.errors import UserError
from gateway.pipelines.jobs.places import kept, locate
from gateway.sqltypes import BIGINT, StructField, struct


def test_tables_of_a_job_keep_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "_PATIENCE", {ALONE: 0.0, SHARED: 0.0})
    catalog = LocalCatalog("main", str(tmp_path))
    catalog.create_schema("shop", None)
    create_table(os.path.join(catalog.root, "shop", "raw"), struct(StructField("a", BIGINT)))
    place = locate(tmp_path, "shop.raw")
    with kept(tmp_path, place, place.beside("_quarantine")), pytest.raises(UserError, match="they have to end first"):
        catalog.drop_table("shop", "raw")
    catalog.drop_table("shop", "raw")
