"""The same query on Spark and on the gateway's own engine: are the rows the same?

Spark's tasks write their result as Parquet into a scratch folder, the gateway's is spooled there as Arrow; then `compare` reads
both. Nothing in the warehouse changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pa_dataset

from gateway.engine import spill
from gateway.errors import ConfigError, GatewayError, ServerError, UserError, unsupported
from gateway.pipelines.jobs.compare import Comparison, Rows, compare
from gateway.pipelines.jobs.names import Catalogs, registered
from gateway.pipelines.jobs.places import CATALOG, split_name
from gateway.pipelines.jobs.report import Report, Say, rows_table
from gateway.pipelines.jobs.session import spark_errors
from gateway.protocol.client import Client, RemoteError
from gateway.results.arrow_types import sql_type_of
from gateway.sqltypes import VOID, DataType, quote_part

_TOLD = re.compile(r"\[([A-Z0-9_.]+)\] (.*?) SQLSTATE: \w{5}", re.DOTALL)

SPARK, OURS = "spark", "datafusion"
_SCRATCH = ".verify-"


def check_tolerance(tolerance: float) -> None:
    """Raise ConfigError unless floats can be compared with `tolerance`."""
    if not 0.0 <= tolerance <= 0.5:
        raise ConfigError("tolerance", f"{tolerance:g} is not between 0 and 0.5")


def query_of(text: str, catalogs: Catalogs) -> str:
    """`text` if it is a query, else the query for all rows of the table that it names. Raises ConfigError."""
    words = text.split()
    if not words:
        raise ConfigError("verify", "neither a query nor the name of a table")
    if len(words) > 1 or not words[0].strip("`"):
        return text
    parts = split_name(text)
    catalog = parts[0].lower() if len(parts) == 3 else CATALOG
    if len(parts) not in (2, 3) or catalog not in catalogs:
        raise ConfigError("verify", f"'{text}' is not a table's name: [main.]schema.table")
    if catalogs[catalog].table_folder(parts[-2], parts[-1]) is None:
        raise ConfigError("verify", f"there is no Delta table {text} in {catalogs[catalog].root}")
    return "SELECT * FROM " + ".".join(quote_part(p) for p in parts)


def verify(
    spark: Any,
    client: Client,
    query: str,
    catalogs: Catalogs,
    scratch: Path,
    say: Say,
    *,
    schema: str = "default",
    tolerance: float = 0.0,
    most_rows: int = 10,
) -> Report:
    """Run `query` on both engines and compare.

    Args:
        spark: a session with Delta.
        client: of a gateway over the same tables that has no Spark; opened and closed here.
        catalogs: the gateway's catalogs, by name.
        scratch: a folder that Spark's tasks can write to; a folder of its own is made in it and removed, and before it those
            of processes that were killed.
        schema: the current schema.
        tolerance, most_rows: see `compare`.

    Raises:
        GatewayError: the query fails on both, or can only be run by one of them.
    """
    with spill.claimed(scratch, _SCRATCH) as folder:
        failures: dict[str, GatewayError] = {}
        theirs = ours = None
        say("running the query on DataFusion")
        try:
            ours = _run_here(client, query, schema, folder / "ours.arrow")
        except GatewayError as error:
            failures[OURS] = error
        say("running the query on Spark")
        try:
            theirs = _run_spark(spark, query, catalogs, schema, folder / "spark")
        except GatewayError as error:
            failures[SPARK] = error
        if theirs is None or ours is None:
            return _failures(failures)
        say("comparing")
        return _report(theirs, compare(theirs, ours, tolerance=tolerance, most_rows=most_rows), tolerance)


# ---- the two engines


def _run_here(client: Client, query: str, schema: str, spool: Path) -> Rows:
    try:
        with client:
            client.open(catalog=CATALOG, schema=schema)
            result = client.execute(query, lz4=True)
            names, arrow = tuple(result.columns), result.arrow_schema
            with pa.OSFile(str(spool), "wb") as sink, pa.ipc.new_file(sink, arrow) as writer:
                for batch in result.batches():
                    writer.write_batch(batch)
    except RemoteError as error:
        raise told(error) from error
    except OSError as error:
        raise ServerError("INTERNAL_ERROR", f"The gateway's answer cannot be kept: {error}.") from error

    def read() -> Iterable[pa.RecordBatch]:
        with pa.memory_map(str(spool)) as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)

    return Rows(names, tuple(sql_type_of(f.type, f.name) for f in arrow), read)


def told(error: RemoteError) -> GatewayError:
    """The gateway's error with its condition; what would help a server is no help here."""
    found = _TOLD.match(str(error))
    condition, message = found.groups() if found is not None else ("INTERNAL_ERROR", str(error))
    kind = UserError if (error.sqlstate or "").startswith(("22", "23", "42", "0A")) else ServerError
    return kind(condition, message.partition(" Spark may run it: ")[0], sqlstate=error.sqlstate)


def _run_spark(spark: Any, query: str, catalogs: Catalogs, schema: str, folder: Path) -> Rows:
    with spark_errors("Spark"), registered(spark, query, catalogs, schema) as text:
        frame = spark.sql(text)
        fields = frame.schema.fields
        # By position: names may repeat, and Parquet has rules of its own about them.
        frame = frame.toDF(*(f"c{i}" for i in range(len(fields))))
        frame = frame.selectExpr(*(_writable(f"c{i}", f) for i, f in enumerate(fields)))
        frame.write.parquet(str(folder))
    data = pa_dataset.dataset(str(folder), format="parquet")
    types: list[DataType] = []
    for field, arrow in zip(fields, data.schema, strict=True):
        void = field.dataType.typeName() == "void"
        types.append(VOID if void else sql_type_of(arrow.type, field.name))

    def read() -> Iterable[pa.RecordBatch]:
        for batch in data.to_batches():
            yield _without_voids(batch, types)

    return Rows(tuple(f.name for f in fields), tuple(types), read)


def _writable(column: str, field: Any) -> str:
    """The column as Parquet holds it; ANSI intervals as the text that the gateway sends."""
    name = field.dataType.simpleString()
    if name == "void":
        return f"CAST({column} AS STRING) AS {column}"
    if name.startswith("interval "):
        months = name.endswith(("year", "month"))
        whole = "YEAR TO MONTH" if months else "DAY TO SECOND"
        text = f'split(CAST(CAST({column} AS INTERVAL {whole}) AS STRING), "\'")[1]'
        if not months:  # seconds with nine digits
            text = (
                f"rpad(concat({text}, IF(instr({text}, '.') > 0, '', '.')), instr(concat({text}, '.'), '.') + 9, '0')"
            )
        return f"{text} AS {column}"
    if "interval" in name or "void" in name:
        raise unsupported(f"Comparing column {quote_part(field.name)} of type {name}")
    return column


def _without_voids(batch: pa.RecordBatch, types: list[DataType]) -> pa.RecordBatch:
    columns = [pa.nulls(batch.num_rows) if t is VOID else c for c, t in zip(batch.columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


# ---- reports


def _failures(failures: dict[str, GatewayError]) -> Report:
    """What it means that one or both engines refuse the query."""
    if len(failures) == 2:
        states = {side: error.sqlstate for side, error in failures.items()}
        if len(set(states.values())) == 1 and states[SPARK].startswith("22"):
            table = rows_table(["engine", "error"], [(side, str(error)) for side, error in failures.items()])
            return Report({"summary": table}, [f"both engines fail with SQLSTATE {states[SPARK]}"])
        raise failures[SPARK]
    (side, error), *_ = failures.items()
    if error.sqlstate.startswith("22"):
        table = rows_table(["engine", "error"], [(side, str(error))])
        return Report({"summary": table}, [f"{side} fails, the other engine returns rows"], differs=True)
    other = OURS if side == SPARK else SPARK
    error.message = f"{other} runs the query, {side} does not, so there is nothing to compare: {error.message}"
    raise error


def _report(rows: Rows, outcome: Comparison, tolerance: float) -> Report:
    lines: list[tuple[str, str, str, str]] = []
    left, right = outcome.left, outcome.right
    if left is not None and right is not None:
        lines.append(("rows", str(left.rows), str(right.rows), _verdict(left.rows == right.rows)))
        whole = left.row_sum == right.row_sum and left.rows == right.rows
        lines.append(("hash of rows", f"{left.row_sum:016x}", f"{right.row_sum:016x}", _verdict(whole)))
        for i, name in enumerate(rows.names):
            same = left.column_sums[i] == right.column_sums[i]
            theirs, ours = (f"{digest.column_sums[i]:016x} ({digest.nulls[i]} NULL)" for digest in (left, right))
            lines.append((f"column {name}", theirs, ours, _verdict(same)))
    tables = {"summary": rows_table(["what", SPARK, OURS, "verdict"], lines)}
    notes = list(outcome.problems)
    for side, count, table in (
        (SPARK, outcome.only_left, outcome.left_rows),
        (OURS, outcome.only_right, outcome.right_rows),
    ):
        if count and table is not None:
            shown = f", {table.num_rows} shown" if table.num_rows < count else ""
            notes.append(f"{count} row{'s' if count > 1 else ''} only in {side}{shown}")
            tables[f"only in {side}"] = pa.Table.from_arrays(table.columns, names=list(rows.names))
    if outcome.matched:
        notes.append(
            f"{outcome.matched} rows are equal within the tolerance {tolerance:g}; largest difference {outcome.largest:g}"
        )
    if outcome.same:
        notes.append("same")
    return Report(tables, notes, differs=not outcome.same)


def _verdict(same: bool) -> str:
    return "same" if same else "differs"
