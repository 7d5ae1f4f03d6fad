"""Functions that need Python per value: computed once per distinct combination of arguments in a batch.

A batch has thousands of rows and mostly few distinct values; constants (a pattern, a format) have exactly one. Arguments are
dictionary-encoded, their codes combined, and the Python function sees each combination once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import MAX_TEXT_BYTES, Factory, Kernel, implementation, too_long

_FEW_ROWS = 16
_BITS = {pa.float16(): pa.int16(), pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def _codes(array: pa.Array) -> tuple[np.ndarray[Any, Any], list[Any]]:
    """Codes per row and the values that they stand for; NULL is the last code."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.int64), [None]
    encoded = array.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [*values, None]


def per_distinct(
    function: Callable[..., Any], arrays: tuple[pa.Array, ...], type_: pa.DataType, *, strict: bool = True
) -> pa.Array:
    """`function` over the rows of `arrays`, called once per distinct row; NULL for rows with a NULL if `strict`.

    Only rows that occur are computed, so an exception of `function` is one that some row has earned. Texts and bytes that are
    too long for one array are refused before they are all there.
    """
    codes, values = zip(*(_codes(a) for a in arrays), strict=True)
    combined = codes[0]
    for code, value in zip(codes[1:], values[1:], strict=True):
        combined = combined * len(value) + code
    keys, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
    rows = zip(*([v[i] for i in c[first].tolist()] for c, v in zip(codes, values, strict=True)), strict=True)
    index = inverse.reshape(-1)
    if not (pa.types.is_string(type_) or pa.types.is_binary(type_)):
        out = [None if strict and None in args else function(*args) for args in rows]
        return pa.array(out, type_).take(pa.array(index))
    texts: list[Any] = []
    size = 0
    for args in rows:
        value = None if strict and None in args else function(*args)
        if value is not None:
            size += len(value)
            if size > MAX_TEXT_BYTES:
                raise too_long(function.__name__)
        texts.append(value)
    array = pa.array(texts, type_)
    if len(keys) < len(index):
        lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)
        if int(lengths.astype(np.int64) @ np.bincount(index, minlength=len(keys))) > MAX_TEXT_BYTES:
            raise too_long(function.__name__)
    return array.take(pa.array(index))


def scalar(name: str, *, strict: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a Python function of values (arguments, then the spec's params) as the implementation `name`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def factory(spec: UdfSpec) -> Kernel:
            returns, params = spec.returns.arrow(), spec.params

            def kernel(*arrays: pa.Array) -> pa.Array:
                call = wraps(function)(lambda *args: function(*args, *params)) if params else function
                return per_distinct(call, arrays, returns, strict=strict)

            return kernel

        implementation(name)(factory)
        return function

    return register


def vectorised(name: str) -> Callable[[Callable[..., pa.Array]], Callable[..., pa.Array]]:
    """Registers a function of arrays (then the spec's params) as the implementation `name`; the result is cast to its type."""

    def register(function: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
        def factory(spec: UdfSpec) -> Kernel:
            returns, params = spec.returns.arrow(), spec.params

            def kernel(*arrays: pa.Array) -> pa.Array:
                result = function(*arrays, *params)
                return result if result.type == returns else pc.cast(result, returns)

            return kernel

        implementation(name)(factory)
        return function

    return register


def once_for_constants(kernel: Kernel, returns: pa.DataType) -> Kernel:
    """The kernel, asked for one row where all rows of its arguments are the same: the value of a subquery, for example.

    Only of results of one width, which nothing bounds but the number of rows; the kernel may not depend on where a row is.
    """
    if not (pa.types.is_primitive(returns) or pa.types.is_decimal(returns)):
        return kernel

    def run(*arrays: pa.Array) -> pa.Array:
        rows = len(arrays[0]) if arrays else 0
        if rows < _FEW_ROWS or not all(map(_is_constant, arrays)):
            return kernel(*arrays)
        one = kernel(*(array.slice(0, 1) for array in arrays))
        return pa.repeat(one[0], rows)

    return run


def _is_constant(array: pa.Array) -> bool:
    """Whether all rows have the same value; False where that is not seen quickly."""
    nulls, last = array.null_count, len(array) - 1
    if nulls:
        return bool(nulls > last)
    if pa.types.is_floating(array.type):  # by their bits: zeros have signs
        array = array.view(_BITS[array.type])
    elif pa.types.is_nested(array.type) or pa.types.is_dictionary(array.type):
        return False
    ends = array.slice(0, 1).equals(array.slice(last, 1))
    return bool(ends and array.slice(0, last).equals(array.slice(1)))


__all__ = ["Factory", "once_for_constants", "per_distinct", "scalar", "vectorised"]
