"""Types of columns that give way to wider ones: which, and what a table says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway import sqltypes as t
from gateway.delta.creation import type_json
from gateway.delta.properties import WIDENING
from gateway.delta.table import Snapshot

CHANGES = "delta.typeChanges"
_WHOLE = (t.TINYINT, t.SMALLINT, t.INT, t.BIGINT)
_OTHERS = {(t.FLOAT, t.DOUBLE), (t.DATE, t.TIMESTAMP_NTZ)}


def may_widen(snapshot: Snapshot) -> bool:
    """Whether the table says that its types may be widened."""
    return snapshot.properties.get(WIDENING, "").lower() == "true"


def is_wider(old: t.DataType, new: t.DataType) -> bool:
    """Whether every reader of the protocol finds values of `old` in a column of `new`."""
    if old in _WHOLE:
        if new in _WHOLE:
            return _WHOLE.index(new) > _WHOLE.index(old)
        if isinstance(new, t.DecimalType):
            return new.precision - new.scale >= (20 if old == t.BIGINT else 10)
        return new == t.DOUBLE and old != t.BIGINT
    if isinstance(old, t.DecimalType) and isinstance(new, t.DecimalType):
        more = new.scale - old.scale
        return old != new and more >= 0 and new.precision - old.precision >= more
    return (old, new) in _OTHERS


def keeps_texts(old: t.DataType, new: t.DataType) -> bool:
    """Whether the reader of logs takes texts of `old`, which partition values are, for values of the wider `new`."""
    if isinstance(new, t.DecimalType):
        return new.scale == (old.scale if isinstance(old, t.DecimalType) else 0)
    return new != t.TIMESTAMP_NTZ


def told(owner: dict[str, Any], inside: Sequence[str], old: t.DataType, new: t.DataType) -> None:
    """Say in the metadata of a field that its type, or one inside of it, was changed."""
    change = {"toType": type_json(new), "fromType": type_json(old)}
    path = {"fieldPath": ".".join(inside)} if inside else {}
    owner["metadata"] = {**owner["metadata"], CHANGES: [*owner["metadata"].get(CHANGES, ()), {**change, **path}]}
