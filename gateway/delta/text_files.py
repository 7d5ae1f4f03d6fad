"""What is asked of files before their rows are looked at: that they are no larger, wider or other than can be read."""

from __future__ import annotations

import os
from collections.abc import Iterable

from gateway.errors import ResourceError, unsupported

LARGEST = 1 << 30  #: bytes of a file that is read as text
MOST_COLUMNS = 10_000  # the engine takes more than a minute to plan what has them
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")


def check_name(path: str) -> None:
    """Raise UnsupportedError for a name by which Spark unpacks a file, whatever is in it."""
    if path.lower().endswith(_PACKED):
        raise unsupported(f"the packed file {os.path.basename(path)}")


def check_width(columns: int, where: str) -> None:
    """Raise ResourceError STATEMENT_TOO_COMPLEX for more columns than can be planned in time."""
    if columns > MOST_COLUMNS:
        text = f"{where} has {columns} columns, and may have {MOST_COLUMNS}."
        raise ResourceError("STATEMENT_TOO_COMPLEX", text)


def check_corrupt_record(names: Iterable[str], path: str) -> None:
    """Raise UnsupportedError for a column by whose name Spark tells damaged rows, of which the others have NULL there."""
    if any(name.lower() == "_corrupt_record" for name in names):
        raise unsupported(f"the column _corrupt_record of {path}")
