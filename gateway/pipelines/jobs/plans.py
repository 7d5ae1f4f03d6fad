"""Plans of batches as they are read again: who may write into the warehouse may have written them, so each value is looked at.

Of a schema pyspark makes what it names, classes too, and types become part of a condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from gateway.errors import ServerError
from gateway.pipelines.jobs.sources import CSV, JSON, PARQUET

_TYPE = re.compile(r"[A-Za-z_]{1,20}(\(\d{1,2}(,\s*\d{1,2})?\))?")


def checked(plan: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A plan whose values are of the forms that plans have, with all of its kind. Raises ServerError CATALOG_FILE_CORRUPT."""
    of_files = "replaces" not in plan and "source" not in plan
    _check_whole(plan, _OF_FILES if of_files else _OF_WHOLE if plan.get("replaces") else _OF_ROWS, path)
    return _checked(plan, _FORMS, path)


def checked_end(done: Mapping[str, Any], path: str, plan: Mapping[str, Any]) -> dict[str, Any]:
    """The same of what was noted when the batch of a plan was in its tables, or given up; {} if nothing was."""
    if done and not done.get("abandoned"):
        _check_whole(done, {"loaded", "marks"} if plan.get("replaces") else {"loaded"}, path)
    return _checked(done, _ENDS, path)


def _check_whole(found: Mapping[str, Any], wanted: AbstractSet[str], path: str) -> None:
    missing = sorted(wanted - found.keys())
    if missing:
        raise damaged(path, f"it lacks {missing[0]!r}")


def damaged(path: str, why: str) -> ServerError:
    """The error for a file of a ledger that cannot be trusted."""
    return ServerError("CATALOG_FILE_CORRUPT", f"The file {path} of a ledger is damaged: {why}.")


def _checked(found: Mapping[str, Any], forms: Mapping[str, Callable[[Any], bool]], path: str) -> dict[str, Any]:
    wrong = [key for key, value in found.items() if key not in forms or not forms[key](value)]
    if wrong:
        raise damaged(path, f"{wrong[0]!r} is not what it should be")
    return dict(found)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_type(value: Any) -> bool:
    return isinstance(value, str) and _TYPE.fullmatch(value) is not None


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "struct" and _is_type_of_spark(value)


def _is_type_of_spark(value: Any) -> bool:
    """Whether a type in Spark's JSON is none that names a class."""
    if isinstance(value, str):
        return True
    match value:
        case {"type": "struct", "fields": list(fields)}:
            return all(
                isinstance(f, dict) and _is_text(f.get("name")) and _is_type_of_spark(f.get("type")) for f in fields
            )
        case {"type": "array", "elementType": element}:
            return _is_type_of_spark(element)
        case {"type": "map", "keyType": key, "valueType": of}:
            return _is_type_of_spark(key) and _is_type_of_spark(of)
    return False


def _are_files(value: Any) -> bool:
    forms = (_is_text, _is_count, lambda changed: type(changed) is int)
    return isinstance(value, list) and all(_is_row(file, *forms) for file in value)


def _are_cursors(value: Any) -> bool:
    return isinstance(value, list) and all(_is_row(one, _is_text, _is_text, _is_text) for one in value)


def _is_row(value: Any, *forms: Callable[[Any], bool]) -> bool:
    return (
        isinstance(value, list)
        and len(value) == len(forms)
        and all(form(one) for form, one in zip(forms, value, strict=True))
    )


def _are_options(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


_FORMS: dict[str, Callable[[Any], bool]] = {
    "batch": _is_count,
    "good": _is_count,
    "bad": _is_count,
    "files": _are_files,
    "format": lambda value: value in (CSV, JSON, PARQUET),
    "options": _are_options,
    "schema": _is_schema,
    "conflicts": _is_text,
    "replaces": _is_flag,
    "source": _is_text,
    "table": _is_text,
    "cursors": _are_cursors,
    "whole": _is_text,
    "continues": _is_flag,
    "column": _is_text,
    "type": _is_type,
    "low": _is_text_or_none,
    "high": _is_text_or_none,
}
# What the kinds of plans have: of files, of all rows of a database's table, of those above a mark.
_OF_FILES = {"batch", "files", "format", "options", "schema", "conflicts", "good", "bad"}
_OF_WHOLE = {"batch", "source", "table", "cursors"}
_OF_ROWS = {"batch", "source", "table", "column", "type", "low", "high", "schema", "good", "bad"}
_ENDS: dict[str, Callable[[Any], bool]] = {
    "finished": _is_flag,
    "abandoned": _is_flag,
    "loaded": _is_count,
    "quarantined": _is_count,
    "marks": _are_cursors,
}
