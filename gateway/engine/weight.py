"""About how many bytes rows take, in Arrow or as text: a NULL of nothing, a bit and a field's name are told to every client."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_VALUE = 1
_ELEMENT = 16  # of a list or map: each is a text with its neighbours


def weight(batch: pa.RecordBatch) -> int:
    """Of all rows of a batch."""
    return sum(_weight(column, _VALUE) for column in batch.columns)


def _weight(values: Any, least: int) -> int:
    kind = values.type
    if pa.types.is_struct(kind):
        names = sum(len(field.name.encode("utf-8", "replace")) + least for field in kind)
        return len(values) * names + sum(_weight(child, least) for child in values.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        offsets = values.offsets
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        return len(values) * _ELEMENT + _weight(values.values.slice(first, last - first), _ELEMENT)
    return max(len(values) * least, int(values.nbytes))
