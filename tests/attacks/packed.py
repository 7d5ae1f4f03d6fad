"""A Parquet column of whole numbers as DELTA_BINARY_PACKED, in blocks of any size; Arrow's writer has one size only.

Layout: encodings of the Apache Parquet format, delta encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.attacks import compact

_I32, _I64 = 5, 6  # of the compact protocol
_DELTA_PACKED, _RLE = 5, 3


def write(table: pa.Table, path: Path, miniblock: int, writer: str) -> None:
    """A file whose last column, whole numbers that are never NULL, is packed in blocks of `miniblock`, as if by `writer`."""
    pq.write_table(table, path, use_dictionary=False, compression="none", row_group_size=len(table))
    data = path.read_bytes()
    told = compact.footer(data)
    column = told[4][1][1][0][1][1][1][-1][3][1]
    page = _packed(table.column(table.num_columns - 1).to_pylist(), miniblock)
    levels = {1: (_I32, len(table)), 2: (_I32, _DELTA_PACKED), 3: (_I32, _RLE), 4: (_I32, _RLE)}
    sizes = {1: (_I32, 0), 2: (_I32, len(page)), 3: (_I32, len(page))}
    whole = compact.written(compact.STRUCT, {**sizes, 5: (compact.STRUCT, levels)}) + page
    start = column[9][1]
    column[2] = (compact.LIST, (_I32, [_DELTA_PACKED, _RLE]))
    column[6] = column[7] = (_I64, len(whole))
    column.pop(13, None)  # how often each encoding is there
    told[6] = (compact.BINARY, writer.encode())
    footer = compact.written(compact.STRUCT, told)
    path.write_bytes(data[:start] + whole + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def _packed(values: Sequence[int], miniblock: int) -> bytes:
    """The values as blocks of four miniblocks: the least difference of each block, and how much greater the others are."""
    out = compact.unsigned(4 * miniblock) + compact.unsigned(4) + compact.unsigned(len(values)) + _zigzag(values[0])
    steps = [after - before for before, after in pairwise(values)]
    for at in range(0, len(steps), 4 * miniblock):
        block = steps[at : at + 4 * miniblock]
        least = min(block)
        parts = [[step - least for step in block[i : i + miniblock]] for i in range(0, 4 * miniblock, miniblock)]
        widths = [max(part, default=0).bit_length() for part in parts]
        out += _zigzag(least) + bytes(widths)
        for part, width in zip(parts, widths, strict=True):
            if part:
                number = sum(value << (i * width) for i, value in enumerate(part))
                out += number.to_bytes(miniblock * width // 8, "little")
    return out


def _zigzag(number: int) -> bytes:
    return compact.unsigned(number * 2 if number >= 0 else -number * 2 - 1)
