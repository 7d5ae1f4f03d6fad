"""Stored columns against those of a definition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway import sqltypes as t
from gateway.delta import write
from gateway.delta.table import Snapshot, open_snapshot
from gateway.pipelines.columns import changed, fits
from gateway.pipelines.definitions import MATERIALIZED_VIEW, Dataset

STRUCT = t.struct(t.StructField("n", t.INT, comment="inside"))


@pytest.fixture
def stored(tmp_path: Path) -> Snapshot:
    write.create_table(str(tmp_path / "t"), t.struct(t.StructField("id", t.BIGINT), t.StructField("s", STRUCT)))
    return open_snapshot(str(tmp_path / "t"))


def defined(*fields: dict[str, Any], partitions: tuple[str, ...] = ()) -> Dataset:
    columns = json.dumps({"type": "struct", "fields": fields})
    return Dataset("c.s.t", MATERIALIZED_VIEW, "s", "t", columns=columns, partitions=partitions)


def field(name: str, type_: Any, *, nullable: bool = True) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": {}}


ID, S = field("id", "long"), field("s", {"type": "struct", "fields": [field("n", "integer")]})


@pytest.mark.parametrize(
    ("definition", "does_fit", "has_changed"),
    [
        (defined(ID, S), True, False),
        (defined(S, ID, field("new", "date")), True, False),
        (defined(ID), False, False),  # a column less
        (defined(field("id", "string"), S), False, True),
        (defined(field("ID", "long"), S), False, False),  # for Spark's comparison another column
        (defined(field("id", "long", nullable=False), S), False, False),
        (defined(ID, S, field("new", "date", nullable=False)), False, False),
        (defined(ID, S, partitions=("id",)), False, True),
    ],
)
def test_what_spark_can_alter(stored: Snapshot, definition: Dataset, does_fit: bool, has_changed: bool) -> None:
    assert (fits(definition, stored), changed(definition, stored)) == (does_fit, has_changed)
