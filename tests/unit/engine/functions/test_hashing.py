"""Hashes of many values together are those of each alone, which the probes know from Spark."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gateway.engine.base import UdfSpec
from gateway.engine.functions import IMPLEMENTATIONS
from gateway.engine.functions.hashing import bucket_hashes
from gateway.sqltypes import BIGINT, BINARY, INT, STRING, DataType, array, decimal

LENGTHS = [*range(40), 63, 64, 65, 95, 96, 255, 256, 257, 400]
BYTES = [bytes((i * 37 + n) % 256 for i in range(n)) for n in LENGTHS]
TEXTS = ["".join(chr(97 + (i + n) % 26) for i in range(n)) + "é" * (n % 3) for n in LENGTHS]
NUMBERS = [Decimal(n * 10**i) for i in range(15) for n in (1, -1, 127, -128, 255, 256)]
COLUMNS: dict[str, tuple[DataType, list[Any]]] = {
    "binary": (BINARY, BYTES),
    "string": (STRING, TEXTS),
    "short decimal": (decimal(18, 0), NUMBERS),
    "long decimal": (decimal(38, 0), NUMBERS),
    "array": (array(STRING), [TEXTS[:n] + [None] * (n % 2) for n in range(8)] * 8),
    "array of arrays": (array(array(INT)), [[[1], None, [2, None, 3]][:n] for n in range(4)] * 16),
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(("name", "returns"), [("hash", INT), ("xxhash64", BIGINT)])
def test_many_together_are_as_each_alone(name: str, returns: DataType, column: str) -> None:
    type_, values = COLUMNS[column]
    kernel = IMPLEMENTATIONS[name](UdfSpec(name, (type_, type_), returns, ()))
    given = pa.array([None, *values, None, *reversed(values)], type_.arrow()).slice(1)
    alone = [kernel(given.slice(i, 1), given.slice(i, 1))[0] for i in range(len(given))]
    assert kernel(given, given).to_pylist() == [one.as_py() for one in alone]


def test_buckets_of_texts_together_are_as_each_alone() -> None:
    given = pa.array(TEXTS)
    alone = [bucket_hashes(given.slice(i, 1)) for i in range(len(given))]
    together = bucket_hashes(given)
    assert together is not None
    assert together.tolist() == np.concatenate([one for one in alone if one is not None]).tolist()
