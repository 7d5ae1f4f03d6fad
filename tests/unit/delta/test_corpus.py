"""Every table of the corpus: read rightly or refused by name, never wrong, by every reader that may be chosen."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.delta.scan import DATASET, NATIVE, ScanPlan, plan_scan
from gateway.delta.table import Snapshot, open_snapshot
from gateway.errors import GatewayError, UnsupportedError
from tests.live.changes import spell

# Larger tables are compared by their number of rows only (none of them has expected rows).
_MOST_ROWS = 20_000
# Tables whose readable rows no reader here can give; each is refused by name.
REFUSED = {
    "crafted/absolute-file-path/table",
    "crafted/catalog-managed-published/table",
    "crafted/dv-corrupt-checksum/table",
    "crafted/dv-feature-not-in-protocol/table",  # Spark reads it as if there were none
    "crafted/partition-form-date-timestamp-form/table",
    "crafted/partition-form-decimal-short-scale/table",
    "crafted/proto-reader-4/table",
    "crafted/proto-unknown-reader-feature/table",
    "crafted/root with space %20 ü/table",
    "delta/basic_catalog_managed/table",
    "delta-rs/simple_table_features/table",
    "delta-kernel-rs/catalog_managed_0/table",
}


def bag(table: pa.Table) -> Counter[str]:
    return Counter(spell(list(row.values())) for row in table.to_pylist())


def read(plan: ScanPlan) -> pa.Table:
    ctx = datafusion.SessionContext(datafusion.SessionConfig({"datafusion.execution.collect_statistics": "false"}))
    plan.register(ctx, "t")
    found = ctx.sql("select * from t").to_arrow_table()
    assert found.schema.names == plan.schema.names
    assert found.schema.types == plan.schema.types
    return found


def readable(snapshot: Snapshot) -> list[str]:
    names = []
    for column in snapshot.columns:
        try:
            column.check_readable()
        except UnsupportedError:
            continue
        names.append(column.name)
    return names


def expected_rows(folder: Path, schema: pa.Schema) -> pa.Table:
    files = [f for f in folder.rglob("*.parquet") if not f.name.startswith(("_", "."))]
    tables = [pq.read_table(f, coerce_int96_timestamp_unit="us", partitioning=None) for f in files]
    table = pa.concat_tables(tables)
    by_fold = {name.lower(): name for name in table.column_names}
    names = [n for n in schema.names if n.lower() in by_fold]
    assert names
    return pa.table({n: table[by_fold[n.lower()]].cast(schema.field(n).type) for n in names})


def judge(corpus: Path, entry: dict[str, Any]) -> str:
    """What became of one table: right, refused or wrong (with the reason)."""
    try:
        snapshot = open_snapshot(str(corpus / entry["table"]))
        plan = plan_scan(snapshot, readable(snapshot))
        found = read(plan)
    except GatewayError as error:
        assert error.condition
        return "refused"
    except Exception as error:
        if type(error) is not Exception:  # DataFusion's errors have no class of their own
            raise
        assert "FAILED_READ_FILE" in str(error) or "Parquet" in str(error)
        return "refused"
    if entry.get("should") == "error":
        return "wrong: a broken table was read"
    if entry["rows"] is not None and found.num_rows != entry["rows"]:
        return f"wrong: {found.num_rows} rows for {entry['rows']}"
    if found.num_rows > _MOST_ROWS:
        return "right"
    rows = bag(found)
    if plan.reader == NATIVE and bag(read(dataclasses.replace(plan, reader=DATASET))) != rows:
        return "wrong: the two readers differ"
    if "expected" in entry and not entry.get("expected_is_off"):
        expected = expected_rows(corpus / entry["expected"], plan.schema)
        if bag(expected) != bag(found.select(expected.column_names)):
            return "wrong: not the expected rows"
    return "right"


def test_nothing_is_read_wrongly(tables_of_others: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((tables_of_others / "manifest.json").read_text())
    verdicts = {e["table"]: judge(tables_of_others, e) for e in manifest}
    counts = Counter(v.partition(":")[0] for v in verdicts.values())
    with capsys.disabled():
        print(f"\nDelta corpus: {counts['right']} right, {counts['refused']} refused, {counts['wrong']} wrong")
    assert {k: v for k, v in verdicts.items() if v.startswith("wrong")} == {}
    broken = {e["table"] for e in manifest if e.get("should") == "error"}
    refused = {k for k, v in verdicts.items() if v == "refused"}
    assert refused - broken == REFUSED


def test_every_version_can_be_read(tables_of_others: Path) -> None:
    """Time travel: each version has the rows that its commits say."""
    root = str(tables_of_others / "delta/time-travel-start-start20/table")
    snapshots = [open_snapshot(root, version) for version in range(open_snapshot(root).version + 1)]
    counts = [read(plan_scan(snapshot, readable(snapshot))).num_rows for snapshot in snapshots]
    assert counts == [10, 20]
