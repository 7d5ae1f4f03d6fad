"""What is kept of a statement beside its columns: no literal of it unless they are wanted, and never too much."""

from __future__ import annotations

import json
from typing import Any

from gateway.history.details import details_of, kept, known
from gateway.history.records import LONGEST_DETAILS
from gateway.worker_jobs import Parameter

OPERATORS = [
    {"depth": 0, "text": "FilterExec: name@0 = Alice AND n@1 > 42", "rows": 1, "ms": 0.5},
    {"depth": 1, "text": "HashJoinExec: mode=Partitioned, join_type=Inner, on=[(a@0, b@0)], filter=x@1 = secret"},
    {
        "depth": 2,
        "text": "DataSourceExec: file_groups={1 group: [[srv/t/secret.parquet]]}, file_type=parquet, limit=42",
    },
    {"depth": 2, "text": "EmptyExec"},
]
PARAMETERS = (
    Parameter("who", "STRING", "Alice"),
    Parameter(None, "INT", None),
    Parameter("t", "STRING", "dapi" + "0" * 32),
)


def told(*, show_values: bool, **facts: Any) -> dict[str, Any]:
    return known(kept(details_of(facts, PARAMETERS), show_values=show_values))


def test_nothing_is_kept_of_nothing() -> None:
    assert details_of({"parse_ms": 1.0, "read": [], "operators": []}) is None
    assert kept(None, show_values=False) is None
    assert known(None) == known("no json") == known("[1]") == {}


def test_what_is_not_ours_tells_nothing() -> None:
    for text in (
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"a": NaN}',
        '{"a": 1e400}',
        '{"a": ' + "[" * 200 + "]" * 200 + "}",
    ):
        assert known(text) == {}
    assert known('{"scans": [["t", {"ms": 1e2}]]}') == {"scans": [["t", {"ms": 100.0}]]}


def test_literals_are_left_out_unless_wanted() -> None:
    found = told(show_values=False, operators=OPERATORS, read=[("main", "default", "t")])
    text = json.dumps(found)
    assert "Alice" not in text and "42" not in text and "secret" not in text
    assert [each["text"] for each in found["operators"]] == [
        "FilterExec",
        "HashJoinExec: mode=Partitioned, join_type=Inner",
        "DataSourceExec: file_type=parquet",
        "EmptyExec",
    ]
    assert found["operators"][0]["rows"] == 1
    assert found["parameters"][:2] == [{"name": "who", "type": "STRING"}, {"name": None, "type": "INT"}]
    assert found["read"] == [["main", "default", "t"]]


def test_values_are_kept_where_they_are_wanted_but_no_token() -> None:
    found = told(show_values=True, operators=OPERATORS)
    assert found["operators"][0]["text"] == OPERATORS[0]["text"]
    assert [each["value"] for each in found["parameters"]] == ["Alice", None, "***"]


def test_what_is_too_long_goes() -> None:
    operators = [{"depth": n, "text": "X: " + "y" * 1000, "rows": n} for n in range(1000)]
    found = told(show_values=True, operators=operators, scans=[("t" * 50_000, 1)], read=[("a", "b", "c")])
    assert found.keys() == {"scans", "parameters", "read"}
    assert len(json.dumps(found)) < LONGEST_DETAILS
    found = told(show_values=True, operators=operators[:9], read=[("a", "b", "c" * 70_000)])
    assert found == {}
    found = told(show_values=True, operators=operators[:20])
    assert len(found["operators"]) == 20 and len(found["operators"][0]["text"]) == 200
