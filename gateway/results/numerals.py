"""Decimals as text: plain digits. (Doubles and floats: `gateway.floats`.)"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_ARROW_PLAIN_SCALE = 6  # up to this scale Arrow writes decimals without an exponent, like BigDecimal.toString


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
