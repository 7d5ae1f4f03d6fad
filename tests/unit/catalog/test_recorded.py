"""`system.query.history` has Databricks' columns, and its filters leave no row out that they should not."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gateway.catalog import query_history, recorded
from gateway.catalog.audit import AUDIT
from gateway.catalog.recorded import Seen
from gateway.delta.predicates import Comparison, NullTest, OneOf, StartsWith
from gateway.errors import ResourceError
from gateway.history.search import MOST_VALUES, Condition, History
from tests.unit.history.test_recorder import record, running

START = 1_800_000_000_000


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    path = tmp_path_factory.mktemp("history") / "history.db"
    with running(path, age=1e9) as written:
        for number in range(1500):
            written.add(record(number, user=f"u{number % 2}", started_ms=START + number))
        assert written.flush(20)
    return History(str(path), admins=frozenset({"root"}))


def _scan(history: History | None, user: str, columns: list[str], *predicates: Any) -> pa.Table:
    relation = query_history.recorded(None if history is None else Seen(history, user)).view("query", "HISTORY")
    assert relation is not None
    return relation.scan(columns, predicates).rows


# As DESCRIBE TABLE tells them on Databricks, but for the fields of `query_parameters`, which are as its documentation has them.
STRUCTS = {
    "compute": "struct<type:string,cluster_id:string,warehouse_id:string>",
    "query_source": "struct<job_info:struct<job_id:string,job_run_id:string,job_task_run_id:string>,"
    "legacy_dashboard_id:string,dashboard_id:string,alert_id:string,notebook_id:string,sql_query_id:string,"
    "genie_space_id:string,pipeline_info:struct<pipeline_id:string,update_id:string>>",
    "query_parameters": "struct<named_parameters:map<string,string>,pos_parameters:array<string>,is_truncated:boolean>",
    "query_tags": "map<string,string>",
}
COLUMNS = """account_id workspace_id statement_id executed_by session_id execution_status compute executed_by_user_id
statement_text statement_type error_message client_application client_driver total_duration_ms:bigint
waiting_for_compute_duration_ms:bigint waiting_at_capacity_duration_ms:bigint execution_duration_ms:bigint
compilation_duration_ms:bigint total_task_duration_ms:bigint result_fetch_duration_ms:bigint start_time:timestamp
end_time:timestamp update_time:timestamp read_partitions:bigint pruned_files:bigint read_files:bigint read_rows:bigint
produced_rows:bigint read_bytes:bigint read_io_cache_percent:tinyint from_result_cache:boolean spilled_local_bytes:bigint
written_bytes:bigint shuffle_read_bytes:bigint query_source executed_as_user_id executed_as written_rows:bigint
written_files:bigint cache_origin_statement_id query_parameters query_tags pruned_files_bytes:bigint read_files_bytes:bigint"""


def test_names_types_and_order_are_those_of_databricks() -> None:
    relation = query_history.recorded(None).view("query", "history")
    assert relation is not None
    expected = [
        (name, kind or STRUCTS.get(name, "string")) for name, _, kind in (c.partition(":") for c in COLUMNS.split())
    ]
    assert [(field.name, field.type.simple) for field in relation.schema.fields] == expected


def test_what_is_null_here_is_said() -> None:
    page = (Path(__file__).parents[3] / "docs" / "history.md").read_text(encoding="utf-8")
    for columns, relation in ((query_history.HISTORY.columns, "history"), (AUDIT.columns, "audit")):
        paragraph = next(p for p in page.split("\n\n") if p.startswith("NULL in `system.") and f".{relation}`" in p)
        told = re.findall(r"`(\w+)`", paragraph)
        assert told == [name for name, column in columns.items() if not column.sources]


def test_each_column_has_the_type_that_it_says(history: History) -> None:
    relation = query_history.recorded(Seen(history, "root")).view("query", "history")
    assert relation is not None
    names = [f.name for f in relation.schema.fields]
    found = relation.scan(names, ())
    assert found.rows.num_rows == 1500
    assert found.rows.schema.types == [f.type.arrow() for f in relation.schema.fields]
    row = found.rows.slice(3, 1).to_pylist()[0]
    assert row["start_time"] == datetime.datetime.fromtimestamp((START + 3) / 1000, datetime.UTC)
    assert row["compute"] == {"type": "WAREHOUSE", "cluster_id": None, "warehouse_id": "gateway"}
    assert (row["executed_by"], row["execution_status"], row["total_duration_ms"]) == ("u1", "FINISHED", 5)
    assert _scan(None, "root", names).schema == found.rows.schema


def test_a_scan_sees_what_its_user_may_see(history: History) -> None:
    assert set(_scan(history, "u0", ["executed_by"])["executed_by"].to_pylist()) == {"u0"}
    assert _scan(history, "nobody", []).num_rows == 0
    assert _scan(history, "root", []).num_rows == 1500
    assert _scan(history, "u0", ["account_id"]).num_rows == 750


def _time(microseconds: int) -> Any:
    return pa.scalar(microseconds, pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        (Comparison("start_time", ">", _time((START + 9) * 1000)), range(9, 1500)),
        (Comparison("start_time", ">=", _time((START + 9) * 1000 + 1)), range(9, 1500)),
        (Comparison("start_time", "<", _time((START + 9) * 1000 + 999)), range(10)),
        (Comparison("start_time", "=", _time((START + 9) * 1000)), range(9, 10)),
        (Comparison("end_time", "<=", _time((START + 9) * 1000)), range(5)),
        (Comparison("start_time", ">", _time(-1)), range(1500)),
        (Comparison("statement_id", "=", pa.scalar("s7")), range(7, 8)),
        (OneOf("statement_id", (pa.scalar("s7"), pa.scalar("x"))), range(7, 8)),
        (OneOf("statement_id", (pa.scalar("x"),) * (MOST_VALUES + 1)), range(1500)),
        (Comparison("executed_by", ">", pa.scalar("u0")), range(1500)),
        (Comparison("statement_text", "=", pa.scalar("x")), range(1500)),
        (StartsWith("executed_by", "u1"), range(1500)),
        (NullTest("error_message", False), range(1500)),
    ],
)
def test_filters_are_hints(history: History, predicate: Any, rows: range) -> None:
    found = _scan(history, "root", ["statement_id"], predicate)["statement_id"].to_pylist()
    assert sorted(found) == sorted(f"s{n}" for n in rows)


def test_a_name_in_a_filter_is_compared_as_it_is() -> None:
    assert list(query_history.HISTORY.conditions([Comparison("executed_by", "=", pa.scalar("Ann"))])) == [
        Condition("user", "=", "Ann")
    ]


def test_more_than_memory_should_hold_is_refused(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "_MOST_BYTES", 20_000)
    assert _scan(history, "root", ["from_result_cache"]).num_rows == 1500
    with pytest.raises(ResourceError, match="filter on start_time"):
        _scan(history, "root", ["statement_id", "statement_text"])


def test_it_is_one_schema_of_system(history: History) -> None:
    schema = query_history.recorded(Seen(history, "root"))
    assert (schema.name, schema.schemas(), schema.views("query")) == ("system", ["query"], ["history"])
    assert schema.has_schema("QUERY") and not schema.has_schema("other")
    assert schema.view("query", "other") is None
