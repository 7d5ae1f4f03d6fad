"""How a statement reads a table: which files, which reader, and its registration with DataFusion.

`native` is DataFusion's Parquet scan over exactly the kept files, `dataset` our own reader (`delta/dataset.py`) for what
DataFusion would misread: field ids, columns whose case differs in files, renamed nested fields, file names without
``.parquet``, partitioned tables with very many distinct partition values. A file with a deletion vector is a scan of its own,
whose rows are asked for by their numbers, if it is large, and so is each where rows' numbers are read; `mixed` reads small
ones, and those beyond `_MAX_NUMBERED`, by our own.
"""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import datafusion
import numpy as np
import pyarrow as pa
from datafusion import functions

from gateway import sqltypes as t
from gateway.delta import plan_message, pruning
from gateway.delta.containment import Within, check_folders, check_still_there, look
from gateway.delta.dataset import POSITION, DataFile, FileDataset, padded
from gateway.delta.features import check_unshredded
from gateway.delta.footers import opened_parquet, unreadable_file, what_of
from gateway.delta.listed import Files
from gateway.delta.misread import Seen, column_problem, file_problem
from gateway.delta.predicates import Predicate
from gateway.delta.replaced import STANDING
from gateway.delta.schema import Column
from gateway.delta.table import NO_VERSION, Snapshot
from gateway.delta.watch import Watch
from gateway.errors import GatewayError, ServerError
from gateway.worker_jobs import Witness, marker_of

NATIVE, DATASET, MIXED, EMPTY = "native", "dataset", "mixed", "empty"
_MAX_PARTITION_GROUPS = 64
_MAX_NATIVE_FILES = 4000
# A scan of its own is a part of the plan, which takes as long as our own reader takes for so many bytes.
_MAX_NUMBERED, _LARGE_NUMBERED = 64, 1 << 20
# A Limit is the one node that no filter is pushed through: the engine evaluates filters itself, with its own semantics.
_BARRIER = 2**63 - 1
_FEW_FILES, _FOOTER_READERS = 8, 4
_LOOKED_THROUGH = 1 << 30  # bytes of files that are read through for a damaged one


@dataclass(frozen=True)
class ScanPlan:
    """A table as one statement reads it.

    `files_kept` of `files_total` files are read, `bytes` in all; `num_rows` is an estimate (None: unknown). `reads_floats`
    says that a FLOAT or DOUBLE is among the columns: the session must then not trust file statistics
    (``datafusion.execution.collect_statistics=false``).
    """

    reader: str
    reason: str
    files_kept: int
    files_total: int
    bytes: int
    num_rows: int | None
    reads_floats: bool
    _columns: tuple[Column, ...] = field(repr=False)
    _groups: tuple[_Group, ...] = field(repr=False)
    lasting: bool = True  # what is kept of its files by their names is theirs
    _root: str = ""
    _within: Within = ()
    _pruning: bool = True
    _views: bool = True  # texts as views
    _late: bool = True  # columns are read only of rows that conditions leave
    _apart: bool = False  # no condition is asked of rows that are deleted
    _watches: list[Watch] = field(default_factory=list, repr=False, compare=False)  # of the last registration

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as the scan gives them."""
        return pa.schema([pa.field(c.name, self._given(c)) for c in self._columns])

    def _given(self, column: Column) -> pa.DataType:
        return column.type.scanned() if self._views else column.type.arrow()

    def plain(self) -> ScanPlan:
        """See `engine.base.Source`."""
        return replace(self, _views=False)

    def at_once(self) -> ScanPlan:
        """The same with all columns read before a condition is looked at."""
        return replace(self, _late=False)

    def apart(self) -> ScanPlan:
        """The same with deleted rows gone before a condition is looked at: for conditions that may fail."""
        return replace(self, _apart=True)

    def verify(self) -> bool:
        """See `engine.base.Source`.

        Raises ServerError DELTA_FILE_NOT_FOUND unless every file is still there as logged, UserError for links to elsewhere.
        """
        plain = verify_files(self._root, self._files, self._within)
        held = bool(self._watches) and self._watches[-1].held()
        return self.reader in (DATASET, EMPTY) or (plain and held)

    def witnesses(self) -> tuple[Witness, ...]:
        """What shows whether the files are those that they are now."""
        return tuple(Witness(f.path, marker_of(f.path)) for f in self._files)

    def one_by_one(self) -> ScanPlan:
        """See `engine.base.Source`: our own reader opens each file, and fails where it is not there."""
        return self if self.reader == EMPTY else replace(self, reader=DATASET)

    @property
    def numbered(self) -> bool:
        """See `engine.base.Source`."""
        return self.reader in (NATIVE, MIXED) and bool(self._numbered)

    @cached_property
    def _numbered(self) -> set[str]:
        return _numbered(self._groups, self._columns)

    @cached_property
    def _files(self) -> list[DataFile]:
        return [f for group in self._groups for f in group.files]

    def damaged(self) -> str | None:
        """See `engine.base.Source`: footers and indexes of all files, then the columns read, up to `_LOOKED_THROUGH` bytes.

        Then what the engine itself says of each.
        """
        files = self._files
        names = {c.physical for c in self._columns}
        found = next(filter(None, (_damage(f.path, self._within, indexes_of=names) for f in files)), None)
        if found is None and sum(f.size for f in files) <= _LOOKED_THROUGH:
            found = next(filter(None, (_damage(f.path, self._within, names) for f in files)), None)
        if found is None:
            found = _refusal([f.path for f in files])
        return None if found is None else f"{found} (table {self._root})"

    def register(self, ctx: Any, name: str) -> None:
        """Register the scan in a `datafusion.SessionContext` as the table `name` (lower case, plain)."""
        self._watches[:] = (
            [Watch((f.path for f in self._files), self._within, contents=True)]
            if self.reader in (NATIVE, MIXED)
            else []
        )
        if self.reader == EMPTY:
            # Not as a table of no rows: of a constant over one the engine's statistics have the sum 0 (DataFusion 55).
            ctx.register_record_batches(name, [[_empty(self.schema)]])
            nothing = ctx.table(name).filter(datafusion.lit(False))
            ctx.deregister_table(name)
            ctx.register_view(name, nothing)
            return
        frame = self._dataset(ctx, self._files) if self.reader == DATASET else self._native(ctx)
        ctx.register_view(name, frame)

    def _dataset(self, ctx: Any, files: Sequence[DataFile]) -> datafusion.DataFrame:
        stored = pa.schema([pa.field(c.name, c.type.arrow()) for c in self._columns])
        frame: datafusion.DataFrame = ctx.read_table(FileDataset(files, self._columns, stored, self._within))
        frame = frame.limit(_BARRIER)
        if stored == self.schema:
            return frame
        columns = [(datafusion.col(_quoted(c.name)), self._given(c), c.name) for c in self._columns]
        return frame.select(*[column.cast(given).alias(name) for column, given, name in columns])

    def _native(self, ctx: Any) -> datafusion.DataFrame:
        frames, left, counted = [], [], _counts_rows(self._columns)
        for group in self._groups:
            whole = []
            for f in group.files:
                if f.path in self._numbered:
                    frames.append(self._native_group(ctx, _Group((f,), group.constants), numbered=True))
                elif counted or f.live is not None:
                    left.append(f)
                else:
                    whole.append(f)
            if whole:
                frames.append(self._native_group(ctx, _Group(tuple(whole), group.constants)))
        if left:
            frames.append(self._dataset(ctx, left))
        # Balanced, so that many groups do not make a deep plan.
        while len(frames) > 1:
            pairs = [a.union(b) for a, b in zip(frames[::2], frames[1::2], strict=False)]
            frames = pairs + ([frames[-1]] if len(frames) % 2 else [])
        return frames[0]

    def _native_group(self, ctx: Any, group: _Group, *, numbered: bool = False) -> datafusion.DataFrame:
        stored = [c for c in self._columns if c.name not in group.constants and c.physical != POSITION]
        schema = pa.schema([pa.field(c.physical, self._read(c)) for c in stored])
        # What numbers the rows knows nothing above a condition, which the scan itself has to take; but for those that sorts and
        # joins make as they go, and that may fail.
        late = self._late if not numbered else not self._apart
        frame = plan_message.read_files(ctx, [f.path for f in group.files], schema, self._pruning, late=late)
        number = ""
        if numbered:
            frame, number = _with_numbers(frame, [c.physical for c in stored])
            frame = _living(frame, number, group.files[0], self._apart)
        elif not group.constants and all(c.name == c.physical and not _is_char(c.type) for c in stored):
            return frame
        out = []
        for column in self._columns:
            if column.name in group.constants:
                value = group.constants[column.name]
                expr = datafusion.lit(value).cast(self._given(column))
            elif column.physical == POSITION:
                expr = datafusion.col(_quoted(number))
            else:
                expr = _padded(datafusion.col(_quoted(column.physical)), column.type, self._given(column))
            out.append(expr.alias(column.name))
        return frame.select(*out)

    def _read(self, column: Column) -> pa.DataType:
        return column.physical_arrow() if column.children else self._given(column)


@dataclass(frozen=True)
class _Group:
    """Files that share the values of the partition columns that are read."""

    files: tuple[DataFile, ...]
    constants: Mapping[str, pa.Scalar]


def _counts_rows(columns: Sequence[Column]) -> bool:
    return any(c.physical == POSITION for c in columns)


def _numbered(groups: Sequence[_Group], columns: Sequence[Column]) -> set[str]:
    """The files whose rows the engine's own scan numbers, for their deletion vectors or a column: the largest."""
    all_of_them = _counts_rows(columns)
    files = (f for group in groups for f in group.files if f.size >= _LARGE_NUMBERED and not f.is_sparse)
    wanted = [f for f in files if all_of_them or f.live is not None]
    return {f.path for f in heapq.nlargest(_MAX_NUMBERED, wanted, key=lambda f: f.size)}


def one_group(files: Sequence[DataFile]) -> tuple[_Group, ...]:
    """Files that are read by our own reader, each with its own values."""
    return (_Group(tuple(files), {}),) if files else ()


def _with_numbers(frame: datafusion.DataFrame, names: Sequence[str]) -> tuple[datafusion.DataFrame, str]:
    """A scan of one file with the numbers of its rows behind its columns, and the name that these have."""
    number = max(("", *names), key=len) + "#"  # longer than any of them
    columns = [datafusion.col(_quoted(name)) for name in names]
    return frame.select(*columns, functions.file_row_index().alias(number)), number


def _living(frame: datafusion.DataFrame, number: str, file: DataFile, apart: bool) -> datafusion.DataFrame:
    """The rows of a scan of one file that are not deleted; with `apart` no condition is asked before."""
    if file.live is None:
        return frame
    alive = frame.filter(_is_live(file.live, file.path)(datafusion.col(_quoted(number))))
    return alive.limit(_BARRIER) if apart else alive


def _is_live(live: pruning.Mask, path: str) -> Callable[[datafusion.Expr], datafusion.Expr]:
    """A function of row numbers in a file; rows behind the mask's end are alive."""

    def alive(numbers: pa.Array) -> pa.Array:
        at = numbers.to_numpy(zero_copy_only=False)
        inside = at < len(live)
        return pa.array(np.where(inside, live[np.where(inside, at, 0)], True))

    found: Callable[[datafusion.Expr], datafusion.Expr] = datafusion.udf(
        alive,
        [pa.int64()],
        pa.bool_(),
        "volatile",  # so that it stays above what numbers the rows, which only a scan can
        f"is_live {path}",
    )
    return found


def _is_char(data_type: t.DataType) -> bool:
    return isinstance(data_type, t.CharType) and data_type.name == "CHAR"


def _padded(text: datafusion.Expr, data_type: t.DataType, given: pa.DataType) -> datafusion.Expr:
    """CHAR(n) as Spark reads it: shorter texts padded with spaces, longer ones as they are."""
    if not isinstance(data_type, t.CharType) or data_type.name != "CHAR":
        return text
    width = datafusion.lit(data_type.length)
    short = functions.character_length(text) < width
    padded = functions.rpad(text, width, datafusion.lit(" "))
    return functions.when(short, padded).otherwise(text).cast(given)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def plan_scan(
    snapshot: Snapshot, columns: Sequence[str], predicates: Sequence[Predicate] = (), *, floats_compared: bool = True
) -> ScanPlan:
    """Choose files and reader for `columns` (top-level names with the table's spelling) of `snapshot`.

    With no columns one cheap column is read, so that rows can be counted. `predicates` are hints (`delta.predicates`).
    `floats_compared` False promises that no FLOAT or DOUBLE of this table stands in a predicate, join key or ORDER BY;
    otherwise Parquet's own statistics, which skip NaN, are not used when such a column is read.
    Raises UnsupportedError for a column that is not readable and ServerError DELTA_FILE_NOT_FOUND for a missing file.
    """
    wanted = _columns(snapshot, columns)
    for column in wanted:
        column.check_readable()
    if any(t.has_variant(c.type) for c in wanted):
        check_unshredded(snapshot.protocol, snapshot.root)
    files = snapshot.files
    kept = np.flatnonzero(pruning.prune(snapshot, predicates)).tolist() if predicates else list(range(len(files)))
    constants = tuple(c for c in wanted if c.name in files.partitions)
    groups = _groups(files, kept, constants)
    seen: Seen = {}
    verify_files(snapshot.root, [f for group in groups for f in group.files], snapshot.within, seen)
    reader, reason = _reader(snapshot, wanted, kept, groups, seen, floats_compared)
    floats = any(has_float(c.type) for c in wanted)
    return ScanPlan(
        reader=reader,
        reason=reason,
        files_kept=len(kept),
        files_total=len(files),
        bytes=sum(f.size for group in groups for f in group.files),
        num_rows=_estimate(files, kept),
        reads_floats=floats,
        _columns=wanted,
        _groups=groups,
        _root=snapshot.root,
        _within=snapshot.within,
        _pruning=not (floats_compared and floats),
        lasting=snapshot.version != NO_VERSION and STANDING.lasts(seen),
    )


def _columns(snapshot: Snapshot, names: Sequence[str]) -> tuple[Column, ...]:
    if names:
        return tuple(snapshot.by_name[name] for name in names)
    cheap = [c for c in snapshot.columns if c.name not in snapshot.partition_columns and not c.children]
    fixed = [c for c in cheap if c.type in (*t.INTEGRALS, t.BOOLEAN, t.DATE)]
    return ((fixed or cheap or list(snapshot.columns))[0],)


def has_float(data_type: t.DataType) -> bool:
    """Whether a type is or holds FLOAT or DOUBLE."""
    return t.is_fractional(data_type) or any(has_float(c) for c in data_type.children())


def _estimate(files: Files, kept: list[int]) -> int | None:
    rows = files.live_rows[kept].tolist()
    return None if -1 in rows else sum(rows)


def verify_files(root: str, files: Sequence[DataFile], within: Within, seen: Seen | None = None) -> bool:
    """Every file must be there with its size, and where it may be; whether none of them is a link. Fills `seen`."""
    plain = True
    if within != (root,):  # else nobody has resolved it
        check_still_there(root, within)
    check_folders((f.path for f in files), root, within)
    for file in files:
        try:
            found = os.lstat(file.path)
            if not stat.S_ISREG(found.st_mode):
                found, plain = look(file.path, within), False
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            raise missing_file(root, file.path) from error
        if found.st_size != file.size:
            text = f"The file {file.path} of the table {root} has {found.st_size} bytes instead of {file.size}."
            raise ServerError("DELTA_FILE_NOT_FOUND", text)
        if not found.st_size:  # the engine would take it for no rows
            raise unreadable_file(file.path, pa.ArrowInvalid("it is empty"))
        if seen is not None:
            seen[file.path] = found.st_ino, found.st_ctime_ns
    return plain


def missing_file(root: str, path: str) -> ServerError:
    """DELTA_FILE_NOT_FOUND."""
    return ServerError("DELTA_FILE_NOT_FOUND", f"The file {path} of the table {root} is missing.")


def _damage(
    path: str, within: Within, names: Collection[str] | None = None, indexes_of: Collection[str] | None = None
) -> str | None:
    """The file and why its footer, or with `names` a page of these columns, cannot be read; None if it can."""
    try:
        with opened_parquet(path, within, indexes_of=indexes_of, page_checksum_verification=True) as file:
            if names is not None:
                for batch in file.iter_batches(columns=[n for n in file.schema_arrow.names if n in names]):
                    batch.validate(full=True)
    except GatewayError as error:
        return error.message
    except (OSError, pa.ArrowException) as error:
        return f"{path}: {what_of(error)}"
    return None


def _refusal(paths: Sequence[str]) -> str | None:
    """A file of which the engine cannot tell the columns, and why: it believes a schema of Arrow's beside the file's own."""
    ctx = datafusion.SessionContext()
    for path in paths:
        try:
            ctx.read_parquet(path, file_extension=os.path.splitext(path)[1])
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            return f"{path}: {str(error).splitlines()[0][:200]}"
    return None


def _groups(files: Files, kept: list[int], constants: tuple[Column, ...]) -> tuple[_Group, ...]:
    """Kept files by equal values of the partition columns that are read."""
    if not kept:
        return ()
    if not constants:
        return (_Group(tuple(_data_file(files, i, {}) for i in kept), {}),)
    take = pa.array(kept)
    codes = np.zeros(len(kept), dtype=np.int64)
    values = {c.name: files.partitions[c.name].take(take) for c in constants}
    for array in values.values():
        # -0.0 and 0.0, or two NaNs, may share a code only if their bits are equal: encode the bits.
        bits = (
            array.view(pa.int64() if array.type == pa.float64() else pa.int32())
            if pa.types.is_floating(array.type)
            else array
        )
        index = bits.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = codes * (int(index.max()) + 1) + index
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) != 0])
    groups = []
    for rows in np.split(order, starts[1:]):
        shared = {name: array[int(rows[0])] for name, array in values.items()}
        for column in constants:
            shared[column.name] = _padded_value(shared[column.name], column.type)
        indices = [kept[row] for row in rows.tolist()]
        groups.append(_Group(tuple(_data_file(files, i, shared) for i in indices), shared))
    return tuple(groups)


def _data_file(files: Files, at: int, constants: Mapping[str, pa.Scalar]) -> DataFile:
    live = files.deleted.get(at) if files.deleted else None
    rows = None if live is None else files.num_records[at].as_py()
    return DataFile(files.paths[at], int(files.sizes[at]), constants, live, rows)


def _padded_value(value: pa.Scalar, data_type: t.DataType) -> pa.Scalar:
    return padded(pa.array([value.as_py()], value.type), data_type)[0] if _is_char(data_type) else value


def _reader(
    snapshot: Snapshot,
    wanted: tuple[Column, ...],
    kept: list[int],
    groups: tuple[_Group, ...],
    seen: Seen,
    floats_compared: bool,
) -> tuple[str, str]:
    """The reader for the kept files and the reason for it, by the features of the table and the facts of the files."""
    files = snapshot.files
    counted = _counts_rows(wanted)
    stored = [c for c in wanted if c.name not in files.partitions and c.physical != POSITION]
    if not kept:
        return EMPTY, "no file can hold a matching row"
    with_vectors = sum(i in files.deleted for i in kept) if files.deleted else 0
    numbered = _numbered(groups, wanted) if with_vectors or counted else set()
    if counted and not numbered:
        return DATASET, "rows are counted"
    if with_vectors == len(kept) and not numbered:
        return DATASET, "deletion vectors"
    problem = column_problem(snapshot, stored)
    if problem:
        return DATASET, problem
    if not stored:
        return DATASET, "only partition columns are read"
    if len(groups) > _MAX_PARTITION_GROUPS:
        return DATASET, f"{len(groups)} distinct partition values"
    if len(kept) > _MAX_NATIVE_FILES:
        return DATASET, f"{len(kept)} files"
    if not all(files.paths[i].endswith(".parquet") for i in kept):
        return DATASET, "file names without .parquet"
    problem = file_problem(snapshot, stored, kept, seen, floats_compared)
    if problem:
        return DATASET, problem
    if counted:
        return NATIVE if len(numbered) == len(kept) else MIXED, "rows are counted"
    if with_vectors:
        reader = NATIVE if with_vectors == len(numbered) else MIXED
        return reader, f"deletion vectors on {with_vectors} of {len(kept)} files"
    return NATIVE, "plain Parquet files"
