"""What programs do with tables beyond the cases of the matrix: SQLAlchemy and pandas, ibis, Superset.

Each has a script in `programs`, run by the interpreter of an environment of its own: GATEWAY_TEST_CLIENTS, which is that of
`make test-clients`, and GATEWAY_TEST_SUPERSET (`pip install apache-superset "flask-caching<2.3.2" cachetools
databricks-sqlalchemy pyhive thrift-sasl pure-sasl`).
"""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.live.gateway import Server, clean_environment

PROGRAMS = Path(__file__).with_name("programs")
pytestmark = pytest.mark.slow
GRAINS = {
    "PT1S",
    "PT1M",
    "PT1H",
    "P1D",
    "P1W",
    "P1M",
    "P3M",
    "P1Y",
    "P1W/1970-01-03T00:00:00Z",
    "1969-12-28T00:00:00Z/P1W",
}


def told(script: str, variable: str, *arguments: str) -> dict[str, Any]:
    """What a script has seen; its last argument is a schema of its own. Skips the test where its interpreter is missing."""
    python = os.environ.get(variable, "")
    if not python:
        pytest.skip(f"{variable} names no interpreter")
    done = subprocess.run(
        [python, PROGRAMS / script, *arguments, f"of_{uuid.uuid4().hex[:8]}"],
        capture_output=True,
        text=True,
        timeout=300,
        env={k: v for k, v in clean_environment().items() if not k.startswith("PYTHON")},
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_sqlalchemy_makes_reflects_and_changes_tables_and_pandas_writes_them(server: Server) -> None:
    seen = told("alchemy.py", "GATEWAY_TEST_CLIENTS", server.thrift_url)
    reflected = seen["reflected"]
    assert reflected.pop("columns") == {
        "id": ["BIGINT", False],
        "maker": ["BIGINT", True],
        "price": ["NUMERIC(10, 2)", True],
        "weight": ["FLOAT", True],
        "sold": ["BOOLEAN", True],
        "day": ["DATE", True],
        "made": ["DATETIME", True],
        "number": ["INTEGER", True],
    }
    assert reflected == {
        "tables": ["makers", "things"],
        "views": [],
        "there": [True, False],
        "key": ["id"],
        "foreign": [["maker"], "makers", ["id"]],
        "comments": ["All makers", "Who makes it"],
        "schema": True,
        "again": ["day", "id", "made", "maker", "number", "price", "sold", "weight"],
    }
    assert seen["rows"] == [
        ["2", *[None] * 8],
        ["3", "1", "2.25", "0.5", "True", "2024-02-29", "2024-02-29 12:30:00", "7", "Ann"],
    ]
    frames = seen["frames"]
    assert frames["told"] == "Table 'frame' already exists."
    assert frames["names"] == ["a", "b", "c", "d"] and frames["sum"] == 4.0
    assert [row[:1] + row[2:] for row in frames["rows"]] == [
        *[["1", "0.5", "2024-01-01 00:00:00"]] * 2,
        *[["2", "1.5", "2024-02-03 04:05:06"]] * 2,
    ]
    assert seen["left"] == ["frame"]


def test_ibis_makes_asks_fills_and_drops_tables(server: Server) -> None:
    seen = told("ibis_tables.py", "GATEWAY_TEST_CLIENTS", server.thrift_url)
    assert "".join(seen.pop("schema").split()) == (
        "ibis.Schema{idint64namestringpricedecimal(10,2)daydatetagsarray<string>}"
    )
    assert seen == {
        "at": ["main", "default"],
        "catalogs": ["main", "samples"],
        "asked": [[1992, 2264], [1993, 2216]],
        "taken": 7,
        "framed": [4, 1],
        "joined": [{"k": 1, "v": "a", "w": 10}, {"k": 4, "v": "d", "w": 40}],
        "view": 2,
        "truncated": 0,
        "tables": ["framed", "made", "seen", "years"],
        "batches": 15_000,
        "missing": "TableNotFound",
        "gone": True,
    }


def test_superset_asks_a_databricks_and_a_hive_database(tcp_server: Server, tmp_path: Path) -> None:
    place = "{}:{}".format(*tcp_server.tcp_address)
    seen = told("superset_specs.py", "GATEWAY_TEST_SUPERSET", tcp_server.thrift_url, place, str(tmp_path))
    native = seen["native"]
    assert native["spec"] == "DatabricksPythonConnectorEngineSpec"
    assert native["catalogs"] == ["main", ["main", "samples"]] and {"tpch", "nyctaxi"} <= set(native["schemas"])
    assert {"nation", "orders"} <= set(native["tables"]) and native["star"] == [3, 4]
    assert native["columns"]["n_nationkey"] == "BIGINT" and native["columns"]["n_name"] == "VARCHAR"
    assert native["grains"].keys() == GRAINS
    assert native["grains"]["P3M"] == ["1992-01-01 00:00:00+00:00", "561"]
    assert native["grains"]["1969-12-28T00:00:00Z/P1W"] == ["1991-12-29 00:00:00+00:00", "25"]
    assert native["error"].startswith("[UNRESOLVED_COLUMN.WITH_SUGGESTION]")
    rows = [[1, "x"], [2, "y'z"]]
    assert (native["uploaded"], native["views"], native["there"]) == (rows, ["seen"], [True, False])
    assert seen["hive"] == {
        "spec": "HiveEngineSpec",
        "schemas": True,
        "columns": {"a": "BIGINT", "b": "VARCHAR"},
        "rows": rows,
    }
