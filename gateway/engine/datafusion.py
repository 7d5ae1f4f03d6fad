"""DataFusion in a worker process: runs finished text over registered sources with a bounded pool and spill to disk.

Contexts live as long as the process (footers and functions stay cached); a statement's tables are registered under names of
its own and removed after it. They differ in whether file statistics may be trusted (Parquet's statistics skip NaN, so a query
that reads a float column runs without them), whether a query is worth more than one partition, and whether footers are cached:
those of files without a log are not.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, TypeVar

import datafusion
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import Execution, Planning, Query, Source, UdfSpec
from gateway.engine.bodies import EngineBody
from gateway.engine.economies import FEWER_RULES, NONE, ONE_PARTITION, Economy, is_at_odds, is_failure
from gateway.engine.functions import IMPLEMENTATIONS, Kernel, guarded, load, row_error_in
from gateway.engine.functions.comparators import compared
from gateway.engine.functions.distinct import once_for_constants
from gateway.engine.functions.folds import folded
from gateway.engine.functions.moving import moving
from gateway.engine.known import KnownExecution
from gateway.engine.measures import Operator, operators
from gateway.engine.shapes import check_schema, conformed, without_views
from gateway.engine.spill import keep
from gateway.errors import GatewayError, ResourceError, ServerError, UnsupportedError, UserError, disk_full
from gateway.instants import BEYOND_CLOCK
from gateway.worker_jobs import BodySpec

Made = TypeVar("Made")

# Errors of our own reader, which come through the engine as text.
_READERS: Mapping[str, type[GatewayError]] = {
    "FAILED_READ_FILE": ServerError,
    "DELTA_FILE_NOT_FOUND": ServerError,
    "PATH_NOT_ALLOWED": UserError,
    "UNSUPPORTED_DATATYPE": UnsupportedError,
    "UNSUPPORTED_FEATURE": UnsupportedError,
    "RESOURCE_EXHAUSTED": ResourceError,
}
_LONG_SECONDS = 0.2  # reading a plan's metrics takes milliseconds, and what spills takes longer than this
_MOST_PLANS = 10  # of one statement
_SETTINGS = {
    "datafusion.sql_parser.dialect": "duckdb",
    "datafusion.sql_parser.map_string_types_to_utf8view": "false",
    "datafusion.sql_parser.parse_float_as_decimal": "true",
    "datafusion.sql_parser.default_null_ordering": "nulls_min",
    "datafusion.sql_parser.recursion_limit": "4000",
    "datafusion.execution.enable_ansi_mode": "true",
    "datafusion.execution.parquet.schema_force_view_types": "false",
    # One batch in each: a repartition waits for ever for the older of two files that are written at once (DataFusion 55).
    "datafusion.execution.max_spill_file_size_bytes": "1",
    "datafusion.execution.time_zone": "UTC",
    "datafusion.catalog.information_schema": "false",
    # The rule that moves the fields of structs to the scans loses names below the keys of joins.
    "datafusion.optimizer.enable_leaf_expression_pushdown": "false",
}

# What is kept of a file there passes for that of every other one of the same name, size and time.
_OF_FILES = ("metadata_cache", "file_statistics_cache")

# Stands in a plan where numbers of rows are wanted above a condition that no scan has taken: nobody can give them there.
_NO_NUMBER = "file_row_index()"

# Functions of ours that are given the bodies of lambdas.
_OVER_BODIES: Mapping[str, Callable[..., Kernel]] = {"compared": compared, "fold": folded}

# Takes keys of a sort for determined by those before them where what was unique is repeated by a join.
_LEFT_OUT = ("eliminate_duplicated_expr",)


load()  # here, so that processes that are forked have them in common


class DataFusionEngine:
    """The embedded engine.

    Args:
        memory_limit: bytes of the pool that sorts, joins and aggregates share.
        spill: folder for what does not fit.
        partitions: degree of parallelism.
    """

    name = "datafusion"

    def __init__(self, memory_limit: int, spill: str, partitions: int | None = None) -> None:
        self.memory_limit = memory_limit
        self.spill = spill
        self.partitions = partitions or max(2, os.cpu_count() or 2)
        self._contexts: dict[tuple[bool, bool, Economy, bool, bool, bool], datafusion.SessionContext] = {}
        self._registered: dict[int, set[str]] = {}
        self._owners: dict[tuple[int, str], DataFusionExecution] = {}
        self._measured: list[list[Operator]] = []
        self.told: Callable[[Planning], None] = _nobody  # what the statement that runs is about

    def measured(self) -> list[Operator]:
        """The operators of what took long since this was last asked, the slowest query's alone."""
        found, self._measured = self._measured, []
        return max(found, key=lambda plan: sum(each.seconds for each in plan), default=[])

    def measure(self, plan: Any) -> list[Operator]:
        """The operators of a plan that has run, remembered for `measured`."""
        found = list(operators(plan))
        if len(self._measured) < _MOST_PLANS:
            self._measured.append(found)
        return found

    @contextlib.contextmanager
    def planning(self) -> Iterator[None]:
        """See `engine.base.Engine`."""
        told = self.told
        told(Planning(True))
        try:
            yield
        finally:
            told(Planning(False))

    def run(self, query: Query) -> Execution:
        """Plan `query`; rows come from the execution's `batches`. Raises GatewayError."""
        return DataFusionExecution(self, query) if query.rows is None else KnownExecution(query.rows)

    def explain(self, query: Query) -> str:
        """The optimised logical and the physical plan as text, of the first way in which the engine can plan it."""
        execution = DataFusionExecution(self, query)
        try:
            return execution.first_planned(lambda economy: _plans(execution.plan(economy)))
        except Exception as error:
            raise engine_error(error) from error
        finally:
            execution.close()

    def analyze(self, query: Query) -> tuple[int, list[Operator]]:
        """Run `query` to its end: how many rows it has, which are dropped, and what its operators say. Raises GatewayError."""
        execution = DataFusionExecution(self, query, measured=True)
        try:
            rows = sum(batch.num_rows for batch in execution.batches())
        finally:
            execution.close()
        return rows, execution.operators

    def context(
        self,
        trust_statistics: bool,
        small: bool,
        economy: Economy,
        filters_ahead: bool = True,
        lasting: bool = True,
        in_order: bool = False,
    ) -> datafusion.SessionContext:
        """The context for a kind of query, made on first use."""
        key = (trust_statistics, small, economy, filters_ahead, lasting, in_order)
        ctx = self._contexts.get(key)
        if ctx is None:
            partitions = 1 if small else self.partitions
            settings = _SETTINGS | economy.settings(partitions)
            told = trust_statistics and not economy.fewer_rules  # which reckon with statistics, too
            settings["datafusion.execution.collect_statistics"] = str(told).lower()
            # A join waits for all partitions of its other side before it tells a scan what to read, and for ever where a join
            # above has asked for some of them only (DataFusion 55).
            settings["datafusion.optimizer.enable_join_dynamic_filter_pushdown"] = str(filters_ahead).lower()
            # What is computed of the rows of one partition is computed in several, whose rows come as they are done.
            settings["datafusion.optimizer.enable_round_robin_repartition"] = str(not in_order).lower()
            try:
                keep(self.spill)
            except OSError as error:
                raise _spill_lost(error.strerror or "it is gone") from error
            # A folder that it is given the engine forgets with the next setting of its runtime (DataFusion 55).
            os.environ["TMPDIR"] = self.spill
            runtime = datafusion.RuntimeEnvBuilder().with_fair_spill_pool(self.memory_limit).with_disk_manager_os()
            ctx = datafusion.SessionContext(datafusion.SessionConfig(settings), runtime)
            files = economy.merged_files(self.memory_limit, partitions)
            ctx.sql(f"SET datafusion.runtime.max_spill_merge_fan_in = {files}").collect()
            for cache in () if lasting else _OF_FILES:
                ctx.sql(f"SET datafusion.runtime.{cache}_limit = '0M'").collect()
            for rule in _LEFT_OUT:
                ctx.remove_optimizer_rule(rule)
            self._contexts[key] = ctx
            self._registered[id(ctx)] = set()
        return ctx

    def begin_anew(self) -> None:
        """Forget all contexts: each spills to a folder of its own, which somebody may have removed."""
        self._contexts.clear()

    def register(self, owner: DataFusionExecution, ctx: datafusion.SessionContext, name: str, source: Source) -> None:
        """Register a table of a statement, in the place of another's that has not been closed yet."""
        ctx.deregister_table(name)
        source.register(ctx, name)
        self._owners[id(ctx), name] = owner

    def forget(self, owner: DataFusionExecution, ctx: datafusion.SessionContext, name: str) -> None:
        """Remove a table of a statement, unless a later statement has taken the name."""
        if self._owners.get((id(ctx), name)) is owner:
            del self._owners[id(ctx), name]
            ctx.deregister_table(name)

    def ensure(self, ctx: datafusion.SessionContext, name: str, spec: UdfSpec) -> None:
        """Register a function of ours once per context."""
        known = self._registered[id(ctx)]
        if name in known:
            return
        args = [t.arrow() for t in spec.args]
        returns = spec.returns.arrow()
        volatility = "volatile" if spec.volatile else "immutable"
        if spec.impl == "moving":
            ctx.register_udwf(datafusion.udwf(moving(spec), args, returns, volatility, name))
            known.add(name)
            return
        kernel = self._kernel(spec)
        kernel = kernel if spec.volatile else once_for_constants(kernel, returns)
        ctx.register_udf(datafusion.udf(guarded(_exact(kernel, returns), spec.impl), args, returns, volatility, name))
        known.add(name)

    def _kernel(self, spec: UdfSpec) -> Kernel:
        if spec.impl in _OVER_BODIES:
            return _OVER_BODIES[spec.impl](*map(self._body, spec.params))
        factory = IMPLEMENTATIONS.get(spec.impl)
        if factory is None:
            raise ServerError("INTERNAL_ERROR", f"There is no implementation of {spec.impl}.")
        return factory(spec)

    def _body(self, spec: BodySpec) -> EngineBody:
        def context() -> datafusion.SessionContext:
            ctx = self.context(True, small=True, economy=NONE)
            for name, inner in spec.udfs:
                self.ensure(ctx, name, inner)
            return ctx

        return EngineBody(spec, context, _READ_ONLY, engine_error)


def _plans(frame: Any) -> str:
    logical = frame.optimized_logical_plan().display_indent()
    physical = frame.execution_plan().display_indent()
    return f"== Optimized Logical Plan ==\n{logical}\n\n== Physical Plan ==\n{physical}"


def _nobody(event: Planning) -> None:
    """Nobody is told."""


def _exact(kernel: Kernel, returns: pa.DataType) -> Kernel:
    """The kernel with its result in exactly the declared Arrow type and as one array."""

    def run(*arrays: pa.Array) -> pa.Array:
        result = kernel(*arrays)
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if result.type != returns:
            result = result.cast(returns)
        return _one_nan(result) if pa.types.is_floating(returns) else result

    return run


def _one_nan(values: pa.Array) -> pa.Array:
    """The floats with a single NaN: processors make negative ones, which the engine tells apart."""
    found = pc.is_nan(values)
    return pc.if_else(found, pa.scalar(math.nan, values.type), values) if pc.any(found).as_py() else values


class DataFusionExecution:
    """One run of a query."""

    def __init__(self, engine: DataFusionEngine, query: Query, measured: bool = False) -> None:
        self.operators: list[Operator] = []  # of a `measured` one that has run
        self._measured = measured
        self.engine = engine
        self.query = query
        self._ctx: datafusion.SessionContext | None = None
        self._names: list[str] = []
        self._sources: Mapping[str, Source] = {}  # as they are read
        self._started: Any = None
        self._frame: Any = None
        self._short: GatewayError | None = None  # of memory, for which it is run again
        self.spilled_bytes = 0

    def start(self) -> None:
        """Make the physical plan; no row is computed yet. Raises GatewayError."""
        try:
            self._started = self.first_planned(self._begin)
        except BaseException as error:
            self.close()
            if not is_failure(error):
                raise
            told = self._told(error)
            if told.condition == "INTERNAL_ERROR" and is_at_odds(str(error)):  # in each way, and no file is damaged
                told = _unplanned()
            raise told from error

    def first_planned(self, made: Callable[[Economy], Made]) -> Made:
        """What is made of the first plan that the engine is not at odds with itself about."""
        for economy in (NONE, FEWER_RULES):
            try:
                return made(economy)
            except BaseException as error:
                if not is_failure(error) or not is_at_odds(str(error)):
                    raise
                self.close()
        return made(ONE_PARTITION)

    def _begin(self, economy: Economy) -> Any:
        with self.engine.planning():
            return self._stream_of(economy)

    def _stream_of(self, economy: Economy) -> Any:
        self._frame = self.plan(economy)
        if self.query.first and self._ctx is not None:
            self._ctx.sql_with_options(self.query.first, _READ_ONLY).collect()
        stream = self._frame.execute_stream()
        verified = [source.verify() for source in self._sources.values()]  # each of them, whatever the others say
        if not all(verified):
            sources = {name: source.one_by_one() for name, source in self._sources.items()}
            self._frame = self.plan(economy, sources)
            stream = self._frame.execute_stream()
        return stream

    def plan(self, economy: Economy, sources: Mapping[str, Source] | None = None) -> Any:
        """The DataFrame over the query's sources or others; checks its schema against the query's."""
        if sources is not None:
            return self._planned(economy, sources)
        frame = self._planned(economy, self.query.sources)
        numbered = {name for name, source in self.query.sources.items() if source.numbered}
        if numbered and _NO_NUMBER in frame.execution_plan().display_indent():
            own = {name: s.one_by_one() if name in numbered else s for name, s in self.query.sources.items()}
            return self._planned(economy, own)
        return frame

    def _planned(self, economy: Economy, sources: Mapping[str, Source]) -> Any:
        query, self._sources = self.query, sources
        ctx = self.engine.context(
            not query.reads_floats, query.small, economy, query.filters_ahead, query.lasting, query.in_order
        )
        self._ctx = ctx
        views = self.query.views and economy == NONE
        for name, source in sources.items():
            self.engine.register(self, ctx, name, source if views else source.plain())
            self._names.append(name)
        for name, spec in self.query.udfs.items():
            self.engine.ensure(ctx, name, spec)
        frame = ctx.sql_with_options(self.query.text, _READ_ONLY)
        check_schema(frame.schema(), self.query.schema)
        return frame

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Record batches with the query's columns; errors as GatewayError, also in the middle."""
        economy: Economy | None = NONE
        while economy is not None:
            try:
                yield from self._stream(economy)
                economy = None
            except _OnceMore as signal:
                economy = signal.economy

    def _stream(self, economy: Economy) -> Generator[pa.RecordBatch, None, None]:
        target = pa.schema([pa.field(f"c{i}", f.type.arrow()) for i, f in enumerate(self.query.schema.fields)])
        delivered = False
        began = time.perf_counter()
        stream, self._started = self._started, None
        try:
            for batch in stream or self._begin(economy):
                record = batch.to_pyarrow()
                if record.num_rows:
                    delivered = True
                    for part in without_views(record):
                        yield conformed(part, target)
            self._look_back(began)
            if self._measured:
                self.operators = list(operators(self._frame.execution_plan()))
        except BaseException as error:
            if isinstance(error, GeneratorExit):  # enough rows have been read
                self._look_back(began)
            if not is_failure(error):
                raise
            again = None if delivered else economy.after(str(error), self.query.views)
            told = self._told(error)
            if again is not None:
                self._short = told if isinstance(told, ResourceError) else self._short
                raise _OnceMore(again) from error
            # Joins that sort their sides cannot have all types, values and conditions that others have (DataFusion 55).
            raise (self._short if self._short and told.condition in _OF_THE_WAY else told) from error
        finally:
            self.close()

    def _look_back(self, began: float) -> None:
        """Keep what the operators of a plan say that has taken long."""
        if time.perf_counter() - began > _LONG_SECONDS:
            self.spilled_bytes = sum(each.spilled for each in self.engine.measure(self._frame.execution_plan()))

    def _told(self, error: BaseException) -> GatewayError:
        """The failure as an error of ours; one that a damaged file may have caused names the file."""
        found = error if isinstance(error, GatewayError) else engine_error(error)
        if found.condition == "WRITE_FAILED":
            self.engine.begin_anew()
        if found.condition in ("FAILED_READ_FILE", "INTERNAL_ERROR") or _NO_CAPACITY in str(error):
            try:
                for source in self.query.sources.values():
                    source.verify()  # a table may have been dropped, or renamed and back
                    damage = source.damaged()
                    if damage is not None:
                        was_away = os.strerror(errno.ENOENT) in damage
                        condition = "DELTA_FILE_NOT_FOUND" if was_away else "FAILED_READ_FILE"
                        return ServerError(condition, f"A data file cannot be read: {damage}.", retryable=was_away)
            except GatewayError as gone:
                return gone
        return found

    def close(self) -> None:
        """Forget the statement's tables and a plan that nobody has read."""
        self._started = self._frame = None
        if self._ctx is not None:
            for name in self._names:
                self.engine.forget(self, self._ctx, name)
        self._names.clear()


class _OnceMore(Exception):  # noqa: N818 - a signal, not an error
    """The memory did not do: to be run again with `economy`."""

    def __init__(self, economy: Economy) -> None:
        super().__init__()
        self.economy = economy


_READ_ONLY = datafusion.SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)


_ZERO = "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead."
_RANGE = "A value is out of the range of the result's type."
_MALFORMED = "A value cannot be cast because it is malformed."
_DECIMAL = "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"
_ROWS = "SCALAR_SUBQUERY_TOO_MANY_ROWS"

# Piece of the engine's message -> condition and message.
_DIGITS = "A value cannot be represented in the result's decimal type."
_PATTERNS: tuple[tuple[str, str, str], ...] = (
    ("Divide by zero", "DIVIDE_BY_ZERO", _ZERO),
    ("DivideByZero", "DIVIDE_BY_ZERO", _ZERO),
    ("is too large to store in a Decimal", _DECIMAL, _DIGITS),
    ("Cannot cast to Decimal128(", _DECIMAL, _DIGITS),
    ("is too small to store in a Decimal", _DECIMAL, _DIGITS),
    ("subquery returned more than one row", _ROWS, "More than one row returned by a subquery used as an expression."),
    ("Can't cast value", "ARITHMETIC_OVERFLOW", _RANGE),
    ("out of range", "ARITHMETIC_OVERFLOW", _RANGE),
    ("Overflow happened", "ARITHMETIC_OVERFLOW", "Arithmetic overflow."),
    ("Arithmetic overflow", "ARITHMETIC_OVERFLOW", "Arithmetic overflow."),
    ("Cannot cast string", "CAST_INVALID_INPUT", _MALFORMED),
    ("Cannot cast value", "CAST_INVALID_INPUT", _MALFORMED),
    ("Error parsing", "CAST_INVALID_INPUT", _MALFORMED),
)


# What the engine says of days that its calendar does not reach.
_BEYOND_CALENDAR = (
    "Cannot convert arrow_array::types::TimestampMicrosecondType",
    "to temporal for Date32",
    "Cannot cast timezone to different timezone",  # of INT96, which has none
)

# What the engine says of valid statements that it has no plan for; all of it before a row is read.
_UNPLANNED = (
    "This feature is not implemented",
    "decorrelate",
    "Invalid (non-executable) plan after Analyzer",
    "scalar_subquery_to_join",
    "__correlated_sq",
    "__scalar_sq",
    "null_aware anti join only supports single column",
    "Expects PARTITION BY expression to be ordered",
    "DataFusion error: aggregate_statistics",  # it takes an aggregate below for the one at hand
    "Physical input schema should be the same",  # it has judged by itself which branches of a CASE are reached
)


# What a sparing way cannot do says nothing of the statement.
_OF_THE_WAY = ("INTERNAL_ERROR", "UNSUPPORTED_FEATURE.ENGINE")

# What the engine says of data files; the last one of those whose columns are of other types than the table's.
_OF_TABLES = ("Parquet", "Object Store error", "NotFound")
_UNREADABLE = (*_OF_TABLES, "No such file", "(physical data type)")
# What it says of files that it spills to.
_OF_SYSTEM, _OF_SPILLING = " (os error ", "io error: "
_FULL = ("No space left", "quota exceeded")
# A page whose own numbers cannot be: of its bytes or values, not of a value in an expression.
_BROKEN_PAGE = "Integer overflow: out of range integral type conversion"
# More than a process could have: by texts that are joined without end, or by what a file says of its own bytes.
_NO_CAPACITY = "capacity overflow"
_TOO_LONG = ("offset overflow", "Offset overflow", "string size overflow", _NO_CAPACITY)

# What the engine says of what is too much for it.
# The second is said by a nested loop join that would spill a side which it cannot read again (DataFusion 55).
_NO_MEMORY = ("Resources exhausted", "Left side produced no data to spill")
_SHORTAGES: tuple[tuple[str, str, str], ...] = (
    *(
        (
            mark,
            "RESOURCE_EXHAUSTED",
            "The statement needs more memory than one statement may use, and this step cannot spill to disk.",
        )
        for mark in _NO_MEMORY
    ),
    *(
        (
            mark,
            "RESOURCE_EXHAUSTED",
            "Values of a text or binary column are too large: 2 GiB is the limit of a batch of rows.",
        )
        for mark in _TOO_LONG
    ),
    (
        "Recursion level in ArrowSchema",
        "STATEMENT_TOO_COMPLEX",
        "A type of this statement is nested too deeply for the engine.",
    ),
    (
        "Compiled regex exceeds size limit",
        "STATEMENT_TOO_COMPLEX",
        "A LIKE pattern of this statement is too long for the engine.",
    ),
)


def engine_error(error: BaseException) -> GatewayError:
    """The engine's exception as an error of ours; its text is for the log, not for clients, unless it is ours."""
    text = str(error)
    mine = row_error_in(text)
    if mine is not None:
        return mine
    if BEYOND_CLOCK in text:
        return UnsupportedError("UNSUPPORTED_FEATURE", BEYOND_CLOCK)
    if any(mark in text for mark in _BEYOND_CALENDAR):
        return UnsupportedError(
            "UNSUPPORTED_FEATURE",
            "Fields of a date or timestamp before the year -262142 or after 262141 are not supported here.",
        )
    if "not allowed in name" in text:
        return UnsupportedError(
            "UNSUPPORTED_FEATURE", "A field whose name has the character U+0000 is not supported here."
        )
    for mark, condition, message in _SHORTAGES:
        if mark in text:
            return ResourceError(condition, message)
    if any(mark in text for mark in _FULL):
        return disk_full("There is no space left on the disk that statements spill to (--state).")
    if _OF_SYSTEM in text and _OF_SPILLING in text.lower() and not any(mark in text for mark in _OF_TABLES):
        return _spill_lost(text.partition(_OF_SYSTEM)[0].rpartition(": ")[2])
    for mark, condition, message in _PATTERNS if _BROKEN_PAGE not in text else ():
        if mark in text:
            return UserError(condition, message)
    if any(mark in text for mark in _UNPLANNED):
        return _unplanned()
    for condition, kind in _READERS.items():
        if f"Error: [{condition}] " in text:
            return kind(condition, text.partition(f"[{condition}] ")[2].partition(" SQLSTATE: ")[0])
    if any(mark in text for mark in _UNREADABLE):
        return ServerError("FAILED_READ_FILE", f"A data file cannot be read: {_first_line(text)}")
    traceback.print_exception(error)
    what = "failed" if isinstance(error, Exception) else "gave up"
    return ServerError("INTERNAL_ERROR", f"The engine {what} at this statement; see the server's log.")


def _spill_lost(why: str) -> ServerError:
    text = f"The folder that statements spill to (below --state) cannot be used: {why}."
    return ServerError("WRITE_FAILED", text, retryable=True)


def _unplanned() -> UnsupportedError:
    text = "A construct of this statement (such as the place of a subquery) is not supported."
    return UnsupportedError("UNSUPPORTED_FEATURE.ENGINE", text)


def _first_line(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line[:500]
