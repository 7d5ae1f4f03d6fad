"""Texts that are read as views leave the engine as plain arrays, whole and in their order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gateway.engine import shapes
from gateway.engine.shapes import without_views

TEXTS = ["short", None, "one that is longer than twelve bytes", "", "\U0001f600" * 9, "last"]


def test_texts_of_a_part_of_a_batch_are_plain() -> None:
    batch = pa.record_batch({"n": list(range(6)), "s": pa.array(TEXTS, pa.string_view())}).slice(1, 4)
    (plain,) = without_views(batch)
    assert plain.schema.types == [pa.int64(), pa.string()]
    assert plain.to_pydict() == {"n": [1, 2, 3, 4], "s": TEXTS[1:5]}


def test_what_stands_in_the_place_of_null_has_no_length() -> None:
    views = np.array([[1, ord("a"), 0, 0], [2**31 - 1, 7, 7, 7], [2, ord("b") + 256 * ord("c"), 0, 0]], np.int32)
    valid = pa.py_buffer(bytes([0b101]))
    texts = pa.Array.from_buffers(pa.string_view(), 3, [valid, pa.py_buffer(views)])
    (plain,) = without_views(pa.record_batch({"s": texts}))
    assert plain.column("s").to_pylist() == ["a", None, "bc"]


def test_texts_that_are_too_long_for_one_array_are_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_LONGEST", 40)
    batch = pa.record_batch({"s": pa.array(TEXTS, pa.string_view()), "n": list(range(6))})
    parts = list(without_views(batch))
    assert len(parts) > 1
    assert [row for part in parts for row in part.to_pylist()] == batch.to_pylist()
    with pytest.raises(pa.ArrowCapacityError):
        list(without_views(pa.record_batch({"s": pa.array(["x" * 41], pa.string_view())})))
