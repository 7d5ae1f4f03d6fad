"""GetTables and GetColumns over ten thousand tables: the first time, and again."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import Row, Sample, show
from benchmarks.systems import gateway_process
from gateway.protocol.client import Client
from gateway.thrift_gen.TCLIService import ttypes

SCHEMAS, TABLES = 10, 1000  # in each
AGAIN = 5
FIRST_SECONDS, LATER_SECONDS = 2.0, 0.2
_COLUMNS = ("id", "name", "amount", "day")


def _commit() -> str:
    """The log of a table without rows."""
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in _COLUMNS]
    schema = json.dumps({"type": "struct", "fields": fields})
    actions: tuple[dict[str, Any], ...] = (
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "0",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 0,
            }
        },
    )
    return "\n".join(json.dumps(action) for action in actions)


def _make(warehouse: Path) -> None:
    text = _commit()
    for s in range(SCHEMAS):
        for t in range(TABLES):
            log = warehouse / f"schema_{s}" / f"table_{t:04}" / "_delta_log"
            log.mkdir(parents=True)
            (log / f"{0:020}.json").write_text(text)


def _asked(client: Client, call: str) -> tuple[int, float]:
    """Rows of a call for all that `main` holds, and the seconds until the last one was here."""
    request = getattr(ttypes, f"T{call}Req")(sessionHandle=client.session, catalogName="main")
    start = time.perf_counter()
    handle = client.call(call, request).operationHandle
    fetch, rows = ttypes.TFetchResultsReq(operationHandle=handle, maxRows=1_000_000), 0
    while page := int(client.call("FetchResults", fetch).results.columns[0].stringVal.values.count):
        rows += page
    seconds = time.perf_counter() - start
    client.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=handle))
    return rows, seconds


def _rows(client: Client, call: str, due: int) -> list[Row]:
    count, first = _asked(client, call)
    later = Sample(tuple(_asked(client, call)[1] for _ in range(AGAIN)))
    wrong = "" if count == due else f" {count} ROWS"
    work = f"{call} of {SCHEMAS * TABLES} tables"
    return [
        Row(
            f"{work}, first",
            {"ours": show(first) + wrong},
            f"< {FIRST_SECONDS:g} s",
            first < FIRST_SECONDS and not wrong,
        ),
        Row(f"{work}, again", {"ours": str(later)}, f"< {LATER_SECONDS * 1000:.0f} ms", later.median < LATER_SECONDS),
    ]


def run() -> list[Row]:
    """Both calls in one process, which has opened none of the tables before."""
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Path(folder)
        _make(warehouse)
        with gateway_process(warehouse=warehouse) as (url, _, _), Client(url).open() as client:
            tables = SCHEMAS * TABLES
            return [*_rows(client, "GetTables", tables), *_rows(client, "GetColumns", tables * len(_COLUMNS))]
