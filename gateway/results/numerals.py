"""Numbers as text, the way Java and Spark write them: shortest doubles (``1.0E20``), plain decimals.

Arrow's own cast yields the shortest digits that read back as the same number; kernels then bring them into the shape of
`java.lang.Double.toString`, by masks, so that the common range 10^-3 … 10^7 costs little more than the cast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]

# Java always writes two digits, which makes the smallest subnormals differ from the shortest form.
_SMALLEST = {pa.float64(): ("5e-324", "4.9E-324"), pa.float32(): ("1e-45", "1.4E-45")}
_ARROW_PLAIN_SCALE = 6  # up to this scale Arrow writes decimals without an exponent, like BigDecimal.toString


def shortest_double(array: pa.FloatArray) -> pa.DoubleArray:
    """FLOAT values as the doubles that their text names (0.1f -> 0.1), as Databricks sends them in columnar pages."""
    if array.null_count == len(array):
        return array.cast(pa.float64())
    return array.cast(pa.string()).cast(pa.float64())


def float_text(array: pa.Array) -> pa.StringArray:
    """FLOAT or DOUBLE values as `Float.toString` / `Double.toString` write them; nulls stay null."""
    text = array.cast(pa.string())
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    size = np.abs(values)
    plain: Mask = ((size >= values.dtype.type(1e-3)) & (size < values.dtype.type(1e7))) | (size == 0)
    if not plain.all():
        other = pa.array(~plain)
        text = pc.replace_with_mask(text, other, _exponent_text(text.filter(other), values[~plain], array.type))
    whole: Mask = plain & (values == np.trunc(values))
    if whole.any():
        text = pc.binary_join_element_wise(text, pc.if_else(pa.array(whole), ".0", ""), "")
    return text


def _exponent_text(text: pa.StringArray, values: npt.NDArray[np.floating], kind: pa.DataType) -> pa.StringArray:
    """Values outside 10^-3 … 10^7, not zero, none null: ``d.dddE±n``, NaN or ±Infinity; `text` is Arrow's form of them."""
    special: Mask = ~np.isfinite(values)
    shortest, java = _SMALLEST[kind]
    body = pc.utf8_ltrim(text, "-")
    with_exponent = pc.match_substring(body, "e").to_numpy(zero_copy_only=False)
    size = np.abs(values)
    forms: tuple[tuple[Mask, Callable[[pa.StringArray], pa.StringArray]], ...] = (
        (special, _named),
        (~special & with_exponent, _respelled),
        (~special & ~with_exponent & (size >= 1), _shifted_left),
        (~special & ~with_exponent & (size < 1), _shifted_right),
    )
    result = body
    for rows, form in forms:
        if rows.all():
            result = form(body)
            break
        if rows.any():
            mask = pa.array(rows)
            result = pc.replace_with_mask(result, mask, form(body.filter(mask)))
    smallest = pc.equal(body, shortest)
    if pc.any(smallest).as_py():
        result = pc.if_else(smallest, java, result)
    negative: Mask = values < 0
    if negative.any():
        result = pc.binary_join_element_wise(pc.if_else(pa.array(negative), "-", ""), result, "")
    return result


def _named(text: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring(pc.replace_substring(text, "nan", "NaN"), "inf", "Infinity")


def _respelled(text: pa.StringArray) -> pa.StringArray:
    """``1e+20`` -> ``1.0E20``."""
    dotted = pc.if_else(pc.match_substring(text, "."), text, pc.replace_substring(text, "e", ".0e"))
    return pc.replace_substring(pc.replace_substring(dotted, "e+", "E"), "e", "E")


def _shifted_left(text: pa.StringArray) -> pa.StringArray:
    """``123456789.5`` -> ``1.234567895E8``."""
    dot = pc.find_substring(text, ".")
    integer_digits = pc.if_else(pc.less(dot, 0), pc.binary_length(text), dot)
    return _scientific(pc.replace_substring(text, ".", ""), pc.subtract(integer_digits, 1))


def _shifted_right(text: pa.StringArray) -> pa.StringArray:
    """``0.00012`` -> ``1.2E-4``."""
    fraction = pc.utf8_slice_codeunits(text, 2)
    digits = pc.utf8_ltrim(fraction, "0")
    exponent = pc.subtract(pc.subtract(pc.binary_length(digits), pc.binary_length(fraction)), 1)
    return _scientific(digits, exponent)


def _scientific(digits: pa.StringArray, exponent: pa.Array) -> pa.StringArray:
    rest = pc.utf8_rtrim(pc.utf8_slice_codeunits(digits, 1), "0")
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    first = pc.utf8_slice_codeunits(digits, 0, 1)
    return pc.binary_join_element_wise(first, ".", rest, "E", exponent.cast(pa.string()), "")


def decimal_text(array: pa.Decimal128Array) -> pa.StringArray:
    """Decimals with all digits of their scale and never an exponent (`BigDecimal.toPlainString`); nulls stay null."""
    scale = array.type.scale
    if scale <= _ARROW_PLAIN_SCALE:
        return array.cast(pa.string())
    buffers = array.buffers()
    unscaled = pa.Array.from_buffers(pa.decimal128(38, 0), len(array), buffers, array.null_count, array.offset)
    text = unscaled.cast(pa.string())
    digits = pc.utf8_lpad(pc.utf8_ltrim(text, "-"), scale + 1, "0")
    sign = pc.if_else(pc.starts_with(text, "-"), "-", "")
    integer, fraction = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(sign, integer, ".", fraction, "")
