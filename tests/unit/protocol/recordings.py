"""Recorded exchanges of real clients with a real server."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Exchange:
    """One call: both messages as bytes."""

    suite: str
    method: str
    request: bytes
    response: bytes


def read_recordings(shared: Path) -> list[Exchange]:
    """All exchanges, in the order of the file."""
    with gzip.open(shared / "wire-recordings.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        Exchange(r["suite"], r["method"], base64.b64decode(r["request"]), base64.b64decode(r["response"])) for r in rows
    ]
