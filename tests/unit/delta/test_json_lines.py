"""JSON files that others write while they are read: what was looked at is what becomes rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.delta import json_lines
from gateway.errors import ServerError

LINES = '{"a": 1}\n{"a": 2}\n'


@pytest.mark.parametrize(
    "later",
    [
        '{"a": "x"}\n',
        '{"a": 1.5}\n',
        '{"a": {"b": 1}}\n',
        LINES + '{"a": 3, "b": "lost"}\n',
        LINES + '{"a": 3}\n',
        "{",
        "[1]\n",
        "",
    ],
)
def test_a_file_that_changes_between_its_types_and_its_rows_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: str
) -> None:
    path, arrow = tmp_path / "x.json", json_lines._arrow
    path.write_text(LINES)

    def arrow_and_later(kind: Any) -> Any:
        path.write_text(later)
        return arrow(kind)

    monkeypatch.setattr(json_lines, "_arrow", arrow_and_later)
    with pytest.raises(ServerError, match=r"FAILED_READ_FILE.*changed while it was read") as told:
        json_lines.read_json([str(path)], (str(tmp_path),))
    assert told.value.retryable
