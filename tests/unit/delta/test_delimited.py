"""CSV files that are read together."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.delta.delimited import Layout, read_delimited
from gateway.errors import UnsupportedError


def test_the_file_with_other_columns_is_named(tmp_path: Path) -> None:
    """An empty one before it has no columns at all."""
    texts = {"empty.csv": "", "first.csv": "a,b\n1,2\n", "other.csv": "a,c\n1,2\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UnsupportedError, match=r"different columns \(other\.csv\)"):
        read_delimited([str(tmp_path / name) for name in texts], (str(tmp_path),), Layout(header=True))
