"""`system.query.history` has Databricks' columns, and its filters leave no row out that they should not."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from gateway.catalog import query_history, recorded
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


# As Databricks documents them; structs by their fields below.
STRINGS = """account_id workspace_id statement_id session_id execution_status executed_by_user_id executed_by statement_text
statement_type error_message client_application client_driver cache_origin_statement_id executed_as_user_id executed_as"""
BIGINTS = """total_duration_ms waiting_for_compute_duration_ms waiting_at_capacity_duration_ms execution_duration_ms
compilation_duration_ms total_task_duration_ms result_fetch_duration_ms read_partitions pruned_files read_files read_rows
produced_rows read_bytes spilled_local_bytes written_bytes written_rows written_files shuffle_read_bytes"""
OTHERS = {
    **dict.fromkeys(("start_time", "end_time", "update_time"), pa.timestamp("us", "UTC")),
    "read_io_cache_percent": pa.int32(),
    "from_result_cache": pa.bool_(),
    "query_tags": pa.map_(pa.string(), pa.string()),
}
STRUCTS = {
    "compute": {"type", "cluster_id", "warehouse_id"},
    "query_parameters": {"named_parameters", "pos_parameters", "is_truncated"},
}


def test_names_and_types_are_those_of_databricks() -> None:
    relation = query_history.recorded(None).view("query", "history")
    assert relation is not None
    found = {field.name: field.type.arrow() for field in relation.schema.fields}
    source = found.pop("query_source")
    assert {"job_info", "dashboard_id", "alert_id", "notebook_id", "sql_query_id"} <= {field.name for field in source}
    assert {name: {field.name for field in found.pop(name)} for name in STRUCTS} == STRUCTS
    strings, bigints = dict.fromkeys(STRINGS.split(), pa.string()), dict.fromkeys(BIGINTS.split(), pa.int64())
    assert found == strings | bigints | OTHERS


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
