"""`system.access.audit` has Databricks' columns, each of the type that it says."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa

from gateway.catalog.audit import audited
from gateway.catalog.recorded import Seen
from gateway.delta.predicates import Comparison
from gateway.history.files import FileStore
from gateway.history.recorder import Recorder
from gateway.history.records import SIGN_INS, STATEMENTS, SignIn
from gateway.history.search import History

NOW = 1_800_000_000_123
EVENTS = (
    SignIn("e1", NOW, "ann", "10.0.0.1", "dbt", "tokenLogin", "bearer", 200, None, 0),
    SignIn("e2", NOW + 1000, None, "10.0.0.2", "", "tokenLogin", "basic", 401, "The token is not valid.", 7),
)


# As DESCRIBE TABLE tells them on Databricks.
COLUMNS = {
    **dict.fromkeys(("account_id", "workspace_id", "version"), "string"),
    "event_time": "timestamp",
    "event_date": "date",
    **dict.fromkeys(("source_ip_address", "user_agent", "session_id"), "string"),
    "user_identity": "struct<email:string,subject_name:string>",
    **dict.fromkeys(("service_name", "action_name", "request_id"), "string"),
    "request_params": "map<string,string>",
    "response": "struct<status_code:int,error_message:string,result:string>",
    **dict.fromkeys(("audit_level", "event_id"), "string"),
    "identity_metadata": "struct<run_by:string,run_as:string,acting_resource:string,run_by_display_name:string,"
    "run_as_display_name:string>",
}


def test_names_types_and_order_are_those_of_databricks() -> None:
    relation = audited(None).view("access", "audit")
    assert relation is not None
    assert [(f.name, f.type.simple) for f in relation.schema.fields] == list(COLUMNS.items())


def test_rows(tmp_path: Path) -> None:
    recorder = Recorder[SignIn](FileStore(tmp_path / SIGN_INS.file, SIGN_INS), age=1e10, size=1 << 20)
    recorder.start()
    for event in EVENTS:
        recorder.add(event)
    assert recorder.flush(20)
    recorder.stop()
    history = History(str(tmp_path / STATEMENTS.file), admins=frozenset({"root"}))
    relation = audited(Seen(history, "root")).view("access", "audit")
    assert relation is not None
    names = [f.name for f in relation.schema.fields]
    found = relation.scan(names, ()).rows
    assert found.schema.types == [f.type.arrow() for f in relation.schema.fields]
    first, second = found.to_pylist()
    assert first["event_time"] == dt.datetime.fromtimestamp(NOW / 1000, dt.UTC)
    assert first["event_date"] == dt.date(2027, 1, 15)
    assert (first["user_identity"]["email"], first["response"]["status_code"]) == ("ann", 200)
    assert (first["identity_metadata"]["run_by"], first["identity_metadata"]["run_as"]) == ("ann", "ann")
    assert dict(second["request_params"]) == {"mechanism": "basic", "unlogged": "7"}
    assert second["response"]["error_message"] == "The token is not valid."
    chosen = relation.scan(["event_id"], [Comparison("event_id", "=", pa.scalar("e2"))]).rows
    assert chosen["event_id"].to_pylist() == ["e2"]
    own = audited(Seen(history, "ann")).view("access", "audit")
    assert own is not None and own.scan([], ()).rows.num_rows == 1
