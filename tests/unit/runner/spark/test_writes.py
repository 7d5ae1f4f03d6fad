"""How many rows an INSERT on Spark has written, by the table's log."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.runner.spark.writes import inserted_rows


def test_the_statements_own_commit_counts(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    commits = [
        {"operation": "WRITE", "userMetadata": "other", "operationMetrics": {"numOutputRows": "7"}},
        {"operation": "WRITE", "userMetadata": "mine", "operationMetrics": {"numOutputRows": "3"}},
        {"operation": "OPTIMIZE", "userMetadata": "mine", "operationMetrics": {"numAddedFiles": "1"}},
        {"operation": "WRITE", "operationMetrics": {"numOutputRows": "9"}},
    ]
    for version, info in enumerate(commits):
        (log / f"{version:020}.json").write_text(json.dumps({"commitInfo": info}) + "\n")
    assert inserted_rows(str(tmp_path), "mine") == 3
    assert inserted_rows(str(tmp_path), "nobody") == 0
