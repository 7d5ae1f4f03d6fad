"""DataFusion's serialised logical plan, changed so that a Parquet scan reads exactly the files that are listed.

`SessionContext.read_parquet` takes one path. Its plan as a protobuf message (`LogicalPlanNode` with a `ListingTableScanNode`
in field 1) names the paths in a repeated string; that field is replaced and the plan read back. The layout is internal to
DataFusion, so this works with the pinned version only and says so otherwise.

Remove when datafusion-python reads a list of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from urllib.parse import quote
from weakref import WeakKeyDictionary

import datafusion
import pyarrow as pa
from datafusion.plan import LogicalPlan

from gateway.errors import ServerError

DATAFUSION = "55.0.0"
_LISTING_SCAN, _PATHS = 1, 2
_LENGTH_DELIMITED = 2
_MAX_SCHEMAS = 256
# ListingTableScanNode.parquet.options.global, and fields in it.
_OPTIONS = (11, 2, 1)
_ENABLE_PAGE_INDEX, _PRUNING, _PUSHDOWN_FILTERS, _COERCE_INT96 = 1, 2, 5, 32


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _spans(data: bytes) -> list[tuple[int, int, int, int]]:
    """Fields of a message as (number, start, start of the payload, stop); only varints and length-delimited fields."""
    out, at = [], 0
    while at < len(data):
        start = at
        key, at = _read_varint(data, at)
        if key & 7 == _LENGTH_DELIMITED:
            length, at = _read_varint(data, at)
            out.append((key >> 3, start, at, at + length))
            at += length
        elif key & 7 == 0:
            payload = at
            _, at = _read_varint(data, at)
            out.append((key >> 3, start, payload, at))
        else:
            raise ServerError("INTERNAL_ERROR", "DataFusion's plan message has an unknown layout.")
    return out


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(payload)) + payload


def _options(payload: bytes) -> bytes:
    for number in reversed(_OPTIONS):
        payload = _field(number, payload)
    return payload


# Appended to the message: a repeated singular field is merged into the first occurrence.
_INT96_AS_MICROSECONDS = _options(_field(_COERCE_INT96, b"us"))
# Statistics of row groups and of pages both skip NaN.
_NO_PRUNING = _options(bytes([_ENABLE_PAGE_INDEX << 3, 0, _PRUNING << 3, 0]))
_LATE = _options(bytes([_PUSHDOWN_FILTERS << 3, 1]))


def around_paths(plan: bytes) -> tuple[bytes, bytes]:
    """The scan's message before and behind the path, of the plan message of a one-file Parquet scan."""
    top = _spans(plan)
    if len(top) != 1 or top[0][0] != _LISTING_SCAN:
        raise ServerError("INTERNAL_ERROR", "DataFusion's plan of a Parquet scan has an unknown layout.")
    inner = plan[top[0][2] :]
    paths = [(start, stop) for number, start, _, stop in _spans(inner) if number == _PATHS]
    if len(paths) != 1:
        raise ServerError("INTERNAL_ERROR", "DataFusion's plan of a Parquet scan names no single path.")
    start, stop = paths[0]
    return inner[:start], inner[stop:]


def with_paths(around: tuple[bytes, bytes], urls: Sequence[str], pruning: bool = True, late: bool = False) -> bytes:
    """The plan message that reads `urls`, and INT96 as microseconds, from what stands `around_paths`.

    INT96 read as nanoseconds, the default, wraps around outside of the years 1678 to 2262. With `pruning` False neither row
    groups nor pages are left out by their statistics; with `late` filters are evaluated while rows are read.
    """
    paths = (_field(_PATHS, url.encode()) for url in urls)
    options = _INT96_AS_MICROSECONDS + (b"" if pruning else _NO_PRUNING) + (_LATE if late else b"")
    return _field(_LISTING_SCAN, b"".join((around[0], *paths, around[1], options)))


def file_url(path: str) -> str:
    """`file://` URL of an absolute path; raw paths would be read as globs."""
    return "file://" + quote(path)


@cache
def _check_version() -> None:
    if datafusion.__version__ != DATAFUSION:
        raise ServerError("INTERNAL_ERROR", f"datafusion {datafusion.__version__} is not {DATAFUSION}.")


def read_files(
    ctx: datafusion.SessionContext, paths: Sequence[str], schema: pa.Schema, pruning: bool, *, late: bool = False
) -> datafusion.DataFrame:
    """A Parquet scan of exactly the files `paths` (absolute, at least one) as `schema`, in the names of the files.

    With `pruning` False neither row groups nor pages are left out by their statistics; with `late` filters are evaluated on
    their own columns first, and others read of what is left.
    """
    _check_version()
    urls = [file_url(p) for p in paths]
    plan = with_paths(_around(ctx, urls[0], schema), urls, pruning, late)
    return ctx.create_dataframe_from_logical_plan(LogicalPlan.from_bytes(ctx, plan))


_known: WeakKeyDictionary[datafusion.SessionContext, dict[pa.Schema, tuple[bytes, bytes]]] = WeakKeyDictionary()


def _around(ctx: datafusion.SessionContext, url: str, schema: pa.Schema) -> tuple[bytes, bytes]:
    """All of a scan's message but its paths, which is the same for each schema in a context."""
    known = _known.setdefault(ctx, {})
    found = known.get(schema)
    if found is None:
        if len(known) >= _MAX_SCHEMAS:
            known.clear()
        plan = ctx.read_parquet(url, schema=schema).logical_plan().to_bytes()
        found = known[schema] = around_paths(plan)
    return found
