"""A file of Spark's settings as spark-submit reads it: Java's properties, ``key value`` or ``key=value``, UTF-8.

What spark-submit would drop or misread in silence is refused: keys that do not start with ``spark.``, a key given twice, a key
without a value, and backslashes, which Java takes as escapes and continued lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gateway.engine.spark.session import SEMANTICS
from gateway.errors import ConfigError

_SETTING = "spark-properties"
_COMMENTS = ("#", "!")
_SEPARATORS = "=:"
# Set by --spark; in a file they would win over it unseen.
_MASTERS = ("spark.master", "spark.remote")


def read_properties(path: Path) -> dict[str, str]:
    """The settings of `path` in its order. Raises ConfigError with the number of the line, counted from 1."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(_SETTING, f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(_SETTING, f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    found: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in _lines(text):
        try:
            key, value = _entry(line)
            if key in found:
                raise ValueError(f"{key} is given twice, first in line {lines[key]}")
        except ValueError as error:
            raise ConfigError(_SETTING, f"{path}, line {number}: {error}") from None
        found[key], lines[key] = value, number
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    # Not splitlines: Java ends lines only at \n, \r and \r\n, and `read_text` has made these \n.
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip(" \t\f")
        if stripped and not stripped.startswith(_COMMENTS):
            yield number, stripped


def _entry(line: str) -> tuple[str, str]:
    """Key and value of a stripped line. Raises ValueError."""
    if "\\" in line:
        raise ValueError("a backslash, for an escape or a continued line, is not supported")
    end = next((i for i, c in enumerate(line) if c in _SEPARATORS or c in " \t\f"), len(line))
    key, rest = line[:end], line[end:].lstrip(" \t\f")
    if not key.startswith("spark.") or key == "spark.":
        raise ValueError(f"'{key}' is no setting of Spark: it does not start with spark.")
    if not rest:
        raise ValueError(f"{key} has no value; `{key}=` gives it an empty one")
    value = rest[1:].lstrip(" \t\f") if rest[0] in _SEPARATORS else rest
    if key in _MASTERS:
        raise ValueError(f"{key} is given with --spark")
    if key in SEMANTICS and value.lower() != SEMANTICS[key].lower():
        raise ValueError(f"{key} must be {SEMANTICS[key]}: what statements mean depends on it")
    return key, value
