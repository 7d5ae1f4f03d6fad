"""Files as rows of a table and, beside them, the records that are none, with the reason.

`read` gives one DataFrame for all files: the table's columns, and `RAW` (the record's text), `REASON`, `COLUMN` (whose value
does not fit; NULL for malformed records) and `FILE`, where RAW is NULL in good rows. Nothing is dropped: every record of every
file is a row.
"""

from __future__ import annotations

import bz2
import csv
import gzip
from collections import defaultdict
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import reduce
from itertools import chain
from typing import Any, TextIO

from gateway.errors import ConfigError
from gateway.pipelines.jobs.columns import by_name, check_names, is_lossless, widest
from gateway.pipelines.jobs.sources import CSV, JSON, PARQUET, SourceFile, file_of
from gateway.sql.spark.made_table import FILE_OPTIONS
from gateway.sqltypes import quote_part, quoted_text

RAW, REASON, COLUMN, FILE = "__gateway_raw", "__gateway_reason", "__gateway_column", "__gateway_file"
_OWN = (RAW, REASON, COLUMN, FILE)
_SHOWN = 100  # characters of a bad value in a reason
_KEEP = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', 'c')"
_PATTERN = frozenset("*?[]{}\\")

Options = Mapping[str, str]


class Files:
    """Files of one format, read with Spark's options.

    Args:
        spark: a session.
        format: csv, json or parquet.
        files: what to read.
        options: of Spark's reader; ``header`` is true unless given.
    """

    def __init__(self, spark: Any, format: str, files: Sequence[SourceFile], options: Options) -> None:
        self._spark = spark
        self.format = format
        self.files = list(files)
        self.options = {**(_csv_defaults(self.files) if format == CSV else {}), **options}
        self._lower = {k.lower(): v for k, v in self.options.items()}
        for own in ("mode", "columnnameofcorruptrecord", "enforceschema", "path", "paths"):
            if own in self._lower:
                raise ConfigError("option", f"{own} is set by the job itself")
        for name in options:
            if name.lower() not in FILE_OPTIONS:
                near = get_close_matches(name.lower(), FILE_OPTIONS, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ConfigError("option", f"Spark's readers of files know no option {name}{hint}")

    # ---- schemas

    def schema(self) -> Any:
        """The StructType of all files, inferred from them; columns in the order in which they first appear."""
        from pyspark.sql.types import StructType

        found: Any = StructType([])
        for group in self._groups():
            here = self._inferred(group)
            check_names([f.name for f in here.fields], group[0].path)
            fields = by_name(found)
            for field in here.fields:
                own = fields.get(field.name.lower())
                if own is not None:
                    own.dataType = widest(own.dataType, field.dataType)
                else:
                    found = found.add(field.name, field.dataType, True)
        for field in found.fields:
            field.dataType = _no_void(field.dataType)
        return found

    def header_names(self) -> set[str] | None:
        """Lower-case names of all columns of CSV files with headers; None for other files."""
        if self.format != CSV or not self._has_header():
            return None
        return {name.lower() for group in self._groups() for name in self._header(group[0])}

    def new_columns(self, schema: Any) -> dict[str, str]:
        """Columns in the headers of CSV files that `schema` lacks, with a file that has them."""
        known = by_name(schema)
        news: dict[str, str] = {}
        if self.format == CSV and self._has_header():
            for group in self._groups():
                for name in self._header(group[0]):
                    if name.lower() not in known:
                        news.setdefault(name, group[0].path)
        return news

    def _inferred(self, group: Sequence[SourceFile]) -> Any:
        if self.format == PARQUET:
            return self._reader().load([f.uri for f in group]).schema
        odd = [f.path for f in group if not _PATTERN.isdisjoint(f.path)]
        if odd and self._lower.get("multiline", "").lower() == "true":
            # Spark's inference takes such names as patterns there, whatever it is told.
            raise ConfigError(
                "option", f"multiLine: the columns of {odd[0]} cannot be inferred; give --schema, or rename it"
            )
        reader = self._reader().option("mode", "DROPMALFORMED")
        if self.format == CSV:
            reader = reader.option("inferSchema", "true")
        return reader.load([f.uri for f in group]).schema

    def _reader(self) -> Any:
        reader = self._spark.read.format(self.format).option("__globPaths__", "false")  # names are names, not patterns
        for key, value in self.options.items():
            reader = reader.option(key, value)
        return reader

    def _has_header(self) -> bool:
        return self._lower.get("header", "").lower() == "true"

    def _groups(self) -> list[list[SourceFile]]:
        """Files that have the same columns in the same places."""
        groups: dict[Any, list[SourceFile]] = defaultdict(list)
        for file in self.files:
            key: Any = None
            if self.format == CSV and self._has_header():
                key = tuple(self._header(file))
            elif self.format == PARQUET:
                key = _footer(file)
            groups[key].append(file)
        return list(groups.values())

    def _header(self, file: SourceFile) -> list[str]:
        """The names in the first record of a CSV file that is neither blank nor a comment. Raises ConfigError."""
        separator = self._lower.get("delimiter", self._lower.get("sep", ","))
        encoding = self._lower.get("encoding", self._lower.get("charset", "utf-8-sig"))
        comment = self._lower.get("comment", "")
        try:
            with _open_text(file.path, "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding) as text:
                first = (line for line in text if line.strip() and not (comment and line.startswith(comment)))
                record = next(
                    csv.reader(first, delimiter=separator, quotechar=self._lower.get("quote", '"') or None), []
                )
        except (OSError, EOFError, UnicodeError, LookupError, csv.Error, TypeError) as error:
            raise ConfigError("source", f"{file.path} cannot be read as CSV: {error}") from error
        check_names(record or [""], file.path)
        return record

    def check_lines(self) -> None:
        """Raise ConfigError for a JSON line that goes on behind its object: Spark would leave out the rest in silence."""
        if self.format != JSON or not self._lower.keys().isdisjoint(("multiline", "encoding", "charset", "linesep")):
            return
        lines = self._spark.read.format("text").option("__globPaths__", "false").load([f.uri for f in self.files])
        read, whole = (
            f"from_json({t}, 'v STRING, c STRING', {_KEEP})" for t in ("value", "concat('{\"v\":', value, '}')")
        )
        found = lines.where(f"ltrim(value) LIKE '{{%' AND {read}.c IS NULL AND {whole}.c IS NOT NULL")
        for row in found.selectExpr("_metadata.file_path AS path", f"left(value, {_SHOWN}) AS line").limit(1).collect():
            raise ConfigError(
                "source", f"{file_of(row['path'])} has a line with more than one JSON object: {row['line']}"
            )

    # ---- rows

    def read(self, schema: Any) -> Any:
        """The DataFrame described above, with the columns of `schema`; those that a file lacks are NULL."""
        frames = [self._read_group(group, schema) for group in self._groups()]
        return reduce(lambda a, b: a.unionByName(b), frames)

    def _read_group(self, group: Sequence[SourceFile], schema: Any) -> Any:
        from pyspark.sql import functions as f

        frame = self._typed(group, schema) if self.format == PARQUET else self._parsed(group, schema)
        found = by_name(frame.schema)
        columns = [
            f.col(quote_part(found[name].name)).alias(field.name)
            if name in found
            else f.lit(None).cast(field.dataType).alias(field.name)
            for name, field in by_name(schema).items()
        ]
        return frame.select(*columns, *_OWN)

    def _parsed(self, group: Sequence[SourceFile], schema: Any) -> Any:
        """CSV and JSON: Spark's parser with the table's types, which keeps the text of records that do not fit."""
        from pyspark.sql.types import StringType, StructField, StructType

        known = by_name(schema)
        if self.format == CSV and self._has_header():
            fields = [StructField(n, known[n.lower()].dataType, True) for n in self._header(group[0])]
        else:
            fields = [StructField(field.name, field.dataType, True) for field in schema.fields]
        reader = self._reader().option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", RAW)
        if self.format == CSV:
            reader = reader.option("columnPruning", "false")  # else records are not checked to their end
        frame = reader.schema(StructType([*fields, StructField(RAW, StringType(), True)])).load([f.uri for f in group])
        frame = frame.selectExpr("*", f"_metadata.file_path AS {FILE}")
        # Behind a value that does not fit, the parsers go on: the other columns have theirs.
        texts = self._texts(fields)
        cases = [
            f"WHEN {texts}.{quote_part(field.name)} IS NOT NULL AND {quote_part(field.name)} IS NULL "
            f"THEN struct({quoted_text(field.name)} AS name, concat({quoted_text(f'column {field.name}: ')}, "
            f"left({texts}.{quote_part(field.name)}, {_SHOWN}), {quoted_text(f' is not {sql_of(field.dataType)}')}) AS reason)"
            for field in fields
        ]
        malformed = "struct(CAST(NULL AS STRING) AS name, 'malformed record' AS reason)"
        number = f"struct(CAST(NULL AS STRING) AS name, 'not {len(fields)} fields' AS reason)"
        checked = f"WHEN {texts}.{quote_part(RAW)} IS NOT NULL THEN {number if self.format == CSV else malformed}"
        why = f"CASE WHEN {RAW} IS NULL THEN NULL {checked} {' '.join(cases)} ELSE {malformed} END"
        return frame.selectExpr("*", f"{why} AS __gateway_why").selectExpr(
            "* EXCEPT (__gateway_why)", f"__gateway_why.reason AS {REASON}", f"__gateway_why.name AS {COLUMN}"
        )

    def _texts(self, fields: Sequence[Any]) -> str:
        """SQL for the bad record as a struct of texts."""
        inner = ", ".join(f"{quote_part(field.name)} STRING" for field in fields)
        schema = quoted_text(f"{inner}, {quote_part(RAW)} STRING")
        return f"from_{self.format}({RAW}, {schema}, {self._parser_options()})"

    def _parser_options(self) -> str:
        options = {k: v for k, v in self.options.items() if k.lower() not in ("header", "multiline", "samplingratio")}
        pairs = chain.from_iterable({**options, "columnNameOfCorruptRecord": RAW, "mode": "PERMISSIVE"}.items())
        return f"map({', '.join(map(quoted_text, pairs))})"

    def _typed(self, group: Sequence[SourceFile], schema: Any) -> Any:
        """Parquet, see `typed`; nested columns are read with the table's type, whose fields are found by name."""
        from pyspark.sql.types import StructField, StructType

        known = by_name(schema)
        uris = [file.uri for file in group]
        fields = [
            StructField(f.name, known[f.name.lower()].dataType if _is_nested(f.dataType) else f.dataType, True)
            for f in self._reader().load(uris).schema.fields
        ]
        frame = self._reader().schema(StructType(fields)).load(uris)
        return typed(frame.selectExpr("*", f"_metadata.file_path AS {FILE}"), schema)


def _csv_defaults(files: Sequence[SourceFile]) -> dict[str, str]:
    tabs = {".tsv" in file.path.lower() for file in files}
    if len(tabs) > 1:
        raise ConfigError("format", "some files are .csv, some .tsv: load them one by one")
    return {"header": "true", "sep": "\t" if True in tabs else ","}


def typed(frame: Any, schema: Any) -> Any:
    """Rows that have types already (and a column FILE) with those of `schema`, and the four columns of `read`.

    A value that its column's type does not hold exactly makes the row a bad one, whose text is the row as JSON.
    """
    known = by_name(schema)
    own = [field for field in frame.schema.fields if field.name != FILE]
    columns, cases = [], []
    for field in own:
        target = known[field.name.lower()]
        name = quote_part(field.name)
        if _is_nested(field.dataType) or is_lossless(field.dataType, target.dataType):
            columns.append(f"CAST({name} AS {sql_of(target.dataType)}) AS {name}")
            continue
        there = f"try_cast({name} AS {sql_of(target.dataType)})"
        columns.append(f"{there} AS {name}")
        text = f"left(CAST({name} AS STRING), {_SHOWN})"
        reason = f"concat({quoted_text(f'column {field.name}: ')}, {text}, {quoted_text(f' is not {sql_of(target.dataType)}')})"
        cases.append(
            f"WHEN {name} IS NOT NULL AND NOT (try_cast({there} AS {sql_of(field.dataType)}) <=> {name}) "
            f"THEN struct({quoted_text(field.name)} AS name, {reason} AS reason)"
        )
    nothing = "CAST(NULL AS STRUCT<name: STRING, reason: STRING>)"
    why = f"CASE {' '.join(cases)} ELSE {nothing} END" if cases else nothing
    everything = ", ".join(quote_part(field.name) for field in own)
    frame = frame.selectExpr("*", f"{why} AS __gateway_why")
    return frame.selectExpr(
        *columns,
        f"IF(__gateway_why IS NULL, NULL, to_json(struct({everything}))) AS {RAW}",
        f"__gateway_why.reason AS {REASON}",
        f"__gateway_why.name AS {COLUMN}",
        FILE,
    )


def check_castable(found: Any, schema: Any, where: str) -> None:
    """Raise ConfigError for nested columns whose values are not those of the table's: other kinds, other types inside."""
    known = by_name(schema)
    for field in found.fields:
        target = known.get(field.name.lower())
        if target is None:
            continue
        a, b = field.dataType, target.dataType
        if (_is_nested(a) or _is_nested(b)) and not _reads_as(a, b):
            raise ConfigError("columns", f"column {field.name} of {where} is {sql_of(a)}, the table's is {sql_of(b)}")


def _is_nested(kind: Any) -> bool:
    return kind.typeName() in ("struct", "array", "map")


def _reads_as(found: Any, table: Any) -> bool:
    """Whether a nested type differs from the table's in nothing but fields that it lacks."""
    if found.typeName() != table.typeName():
        return False
    match found.typeName():
        case "struct":
            known = by_name(table)
            return all(
                f.name.lower() in known and _reads_as(f.dataType, known[f.name.lower()].dataType) for f in found.fields
            )
        case "array":
            return _reads_as(found.elementType, table.elementType)
        case "map":
            return _reads_as(found.keyType, table.keyType) and _reads_as(found.valueType, table.valueType)
    return bool(found.simpleString() == table.simpleString())


def _no_void(kind: Any) -> Any:
    """Types of columns without any value become STRING."""
    from pyspark.sql.types import ArrayType, MapType, NullType, StringType, StructField, StructType

    if isinstance(kind, NullType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(_no_void(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _no_void(kind.valueType), True)
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _no_void(f.dataType), True, f.metadata) for f in kind.fields])
    return kind


def sql_of(kind: Any) -> str:
    """DDL of a type; `simpleString` cuts structs with many fields."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        inner = ", ".join(f"{quote_part(f.name)}: {sql_of(f.dataType)}" for f in kind.fields)
        return f"STRUCT<{inner}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{sql_of(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{sql_of(kind.keyType)}, {sql_of(kind.valueType)}>"
    return str(kind.simpleString()).upper()


def _footer(file: SourceFile) -> str:
    """The schema in a Parquet file's footer, as text. Raises ConfigError if it is not one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file.path) as opened:
            return str(opened.schema)
    except (OSError, pa.ArrowException) as error:
        raise ConfigError("source", f"{file.path} cannot be read as Parquet: {error}") from error


def _open_text(path: str, encoding: str) -> TextIO:
    lower = path.lower()
    if lower.endswith(".gz"):
        return gzip.open(path, "rt", encoding=encoding, newline="")
    if lower.endswith(".bz2"):
        return bz2.open(path, "rt", encoding=encoding, newline="")
    return open(path, encoding=encoding, newline="")
