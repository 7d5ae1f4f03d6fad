"""`system.runtime` has the fields of what the service tells as columns, and no rows where nothing was told."""

from __future__ import annotations

import pytest

from gateway.catalog.runtime import running
from gateway.config import ServerSetting
from gateway.errors import UnsupportedError
from gateway.worker_jobs import OpenSession, RunningOperation, Runtime

SETTING = ServerSetting("slots", "2", "flag", "how many")
SESSION = OpenSession("s", "ann", "curl", "main", "default", [("a", "1")], 2, 5)
OPERATION = RunningOperation(
    "o",
    "s",
    "ann",
    "dbt",
    "EXECUTE_STATEMENT",
    "RUNNING",
    "SELECT ?",
    "SELECT",
    None,
    None,
    1_000_000,
    7,
    1,
    0.5,
    "half",
    3,
    99,
)


def test_fields_are_columns() -> None:
    schema = running(Runtime((SESSION,), (OPERATION,), (SETTING,)), None)
    assert schema.views("runtime") == ["sessions", "operations", "settings", "statements"]
    for name, row in (("sessions", SESSION), ("operations", OPERATION), ("settings", SETTING)):
        relation = schema.view("runtime", name)
        assert relation is not None
        names = [f.name for f in relation.schema.fields]
        assert names == list(row._fields)
        found = relation.scan(names, ()).rows
        assert found.schema.types == [f.type.arrow() for f in relation.schema.fields]
        told = found.to_pylist()[0]
        assert {k: v for k, v in told.items() if k != "start_time"} == {
            k: v for k, v in row._asdict().items() if k != "start_time"
        }
        assert relation.scan([], ()).rows.num_rows == 1
        assert relation.scan(names[3:1:-1], ()).rows.column_names == names[3:1:-1]


def test_without_a_picture_it_is_refused() -> None:
    relation = running(None, None).view("runtime", "sessions")
    assert relation is not None
    with pytest.raises(UnsupportedError, match=r"system\.runtime\.sessions"):
        relation.scan(["user"], ())
