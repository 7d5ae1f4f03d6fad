"""Rows as JSON arrays and as CSV, every value a text: the files of the Statement Execution API.

Values have the text of columnar pages (`display.wire_text`), but for timestamps, which are ISO 8601 with milliseconds (or
microseconds, where there are any) and the offset of the session's zone (``2021-06-15T12:34:56.789-07:00``, as Databricks
answers), and BINARY, which is hexadecimal (databricks-sql-connector, sea/utils/conversion.py).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.results.arrow_types import plain
from gateway.results.display import quoted, wire_text
from gateway.results.spool import Rows
from gateway.results.temporal import timestamp_text
from gateway.results.zones import wall_clock
from gateway.sqltypes import DataType, StructType

NULL = "null"


def json_rows(parts: Sequence[Rows], schema: StructType, time_zone: str) -> bytes:
    """An array of rows, each an array of texts and nulls, without white space."""
    return b"[" + b",".join(_json(part, schema, time_zone) for part in parts if part.count) + b"]"


def _json(part: Rows, schema: StructType, time_zone: str) -> bytes:
    """Its rows with commas between them; no row is a Python object of its own."""
    cells = [quoted(column).fill_null(NULL) for column in _columns(part, schema, time_zone)]
    rows = pc.binary_join_element_wise(*cells, ",") if cells else pa.array([""] * part.count)
    rows = pc.binary_join_element_wise("[", rows, "],", "")
    # Its texts stand one behind the other, each with a comma at its end.
    offsets = np.frombuffer(rows.buffers()[1], np.int32)
    first, end = int(offsets[rows.offset]), int(offsets[rows.offset + len(rows)])
    return memoryview(rows.buffers()[2])[first : end - 1].tobytes()


def csv_rows(parts: Sequence[Rows], schema: StructType, time_zone: str, *, header: bool) -> bytes:
    """Lines as of RFC 4180, NULL as ``null``; with `header` the first has the names of the columns."""
    out = io.StringIO()
    lines = csv.writer(out)
    if header:
        lines.writerow(field.name for field in schema.fields)
    for part in parts:
        columns = [column.fill_null(NULL).to_pylist() for column in _columns(part, schema, time_zone)]
        lines.writerows(zip(*columns, strict=True))
    return out.getvalue().encode()


def _columns(part: Rows, schema: StructType, time_zone: str) -> list[pa.StringArray]:
    return [
        _texts(plain(part.batch.column(i), field.type, field.name), field.type, time_zone)
        for i, field in enumerate(schema.fields)
    ]


def _texts(values: pa.Array, data_type: DataType, time_zone: str) -> pa.StringArray:
    match data_type.name:
        case "TIMESTAMP":
            return _iso(values, time_zone)
        case "TIMESTAMP_NTZ":
            return _iso(values, None)
        case "BINARY":
            return pa.array(
                [None if value is None else value.hex().upper() for value in values.to_pylist()], pa.string()
            )
    return wire_text(values, data_type, time_zone)


def _iso(values: pa.Array, time_zone: str | None) -> pa.StringArray:
    """ISO 8601 of microseconds since the epoch; `time_zone` None for TIMESTAMP_NTZ, which has no offset."""
    micros = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    seconds, fraction = np.divmod(micros, 1_000_000)
    local = seconds if time_zone is None else wall_clock(micros, time_zone)[0]
    whole = pc.replace_substring(timestamp_text(seconds * 1_000_000, time_zone), " ", "T", max_replacements=1)
    pieces = [whole, _mapped(fraction, _fraction)]
    if time_zone is not None:
        pieces.append(_mapped(local - seconds, _offset))
    return pc.if_else(values.is_valid(), pc.binary_join_element_wise(*pieces, ""), None)


def _mapped(numbers: npt.NDArray[np.int64], text: object) -> pa.StringArray:
    """The text of each number, made once for equal ones."""
    assert callable(text)
    distinct, places = np.unique(numbers, return_inverse=True)
    return pa.array([text(int(number)) for number in distinct], pa.string()).take(pa.array(places))


def _fraction(micros: int) -> str:
    return f".{micros // 1000:03d}" if micros % 1000 == 0 else f".{micros:06d}"


def _offset(seconds: int) -> str:
    if seconds == 0:
        return "Z"
    hours, rest = divmod(abs(seconds), 3600)
    minutes, odd = divmod(rest, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02d}:{minutes:02d}" + (f":{odd:02d}" if odd else "")
