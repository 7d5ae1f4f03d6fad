"""A table partitioned by instants whose texts in the log name no zone, as Delta-Spark wrote them for long."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.delta import log

#: The table's definition and rows; each row is a file of its own.
MADE = (
    "CREATE TABLE z (i INT, at TIMESTAMP) PARTITIONED BY (at) "
    "TBLPROPERTIES ('delta.checkpointInterval' = '{interval}', 'delta.enableChangeDataFeed' = 'true')",
    "INSERT INTO z VALUES (0, NULL), (1, timestamp_micros(1)), (2, timestamp_micros(2)), (3, timestamp_micros(3)), "
    "(4, timestamp_micros(4))",
)
#: The text that comes in the place of each written one.
TEXTS = {
    "1970-01-01T00:00:00.000001Z": "2024-01-01 00:00:00",
    "1970-01-01T00:00:00.000002Z": "2024-03-10 02:30:00.5",  # an hour that New York's clocks leave out
    "1970-01-01T00:00:00.000003Z": "2024-11-03 01:30:00",  # one that they have twice
    "1970-01-01T00:00:00.000004Z": "2024-01-01T05:00:00.000000Z",  # the first one's instant in New York
}
ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "+02:00")


def make(execute: Callable[[str], object], folder: Callable[[], Path], *, checkpoint: bool = False) -> None:
    """Make the table, then have its log tell the texts; with `checkpoint` those are in a checkpoint alone."""
    execute(MADE[0].format(interval=2 if checkpoint else 1000))
    execute(MADE[1])
    _respell(folder(), TEXTS)
    if checkpoint:
        execute("INSERT INTO z SELECT 5, NULL")  # the second version, which has a checkpoint made


def _respell(folder: Path, texts: Mapping[str, str]) -> None:
    path = Path(log.commit_path(str(folder), 1))
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        values = action.get("add", {}).get("partitionValues", {})
        values.update({name: texts[text] for name, text in values.items() if text in texts})
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
