"""What is refused before Spark starts, and the forecast of a protocol that the gateway can no longer write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.pipelines.jobs.maintain import Task, check, forecast
from gateway.pipelines.jobs.places import Place, locate

PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}
UNREADABLE = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["catalogManaged"],
    "writerFeatures": ["catalogManaged"],
}


def table(warehouse: Path, protocol: dict[str, Any]) -> Place:
    """A table that is nothing but its protocol."""
    place = locate(warehouse, "s.t")
    log = place.folder / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text(json.dumps({"protocol": protocol}))
    return place


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (Task("vacuum", hours=167), "--force"),
        (Task("vacuum", hours=-1, force=True), "not between"),
        (Task("vacuum", hours=float("nan"), force=True), "not between"),
        (Task("cluster"), "--by"),
    ],
)
def test_refusals(tmp_path: Path, task: Task, text: str) -> None:
    place = table(tmp_path, PLAIN)
    with pytest.raises(ConfigError, match=text):
        check(task, [place], None)
    check(Task("vacuum", hours=0, force=True), [place], None)
    (place.folder / "p=1" / "inner" / "_delta_log").mkdir(parents=True)
    with pytest.raises(ConfigError, match="another Delta table"):
        check(Task("vacuum"), [place], None)
    with pytest.raises(ConfigError, match="does not exist"):
        check(Task("compact"), [locate(tmp_path, "s.nope")], None)
    with pytest.raises(ConfigError, match="Connect"):
        check(Task("checkpoint"), [place], "sc://localhost")


def test_forecast(tmp_path: Path) -> None:
    place = table(tmp_path, PLAIN)
    assert forecast(Task("compact"), place) == []
    (note,) = forecast(Task("map-columns"), place)
    assert note.startswith("warning: with columnMapping the gateway no longer writes s.t")
    (note,) = forecast(Task("cluster", by=("a",), liquid=True), place)
    assert "clustering, domainMetadata" in note
    # What it cannot read or write now it does not lose.
    assert forecast(Task("widen-types"), table(tmp_path / "other", UNREADABLE)) == []
