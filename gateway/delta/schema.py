"""Delta schema JSON as a tree of `Column`s: logical types, and the names and ids under which files hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any

import pyarrow as pa

from gateway import sqltypes as t
from gateway.delta.expressions import EXISTS, structs_in
from gateway.errors import ServerError, UnsupportedError

MAPPING = "delta.columnMapping.mode"
PHYSICAL = "delta.columnMapping.physicalName"
FIELD_ID = "delta.columnMapping.id"
CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
# Field metadata that changes what a string means; comparing such columns byte-wise would be wrong.
COLLATIONS = "__COLLATIONS"

_PRIMITIVES: dict[str, t.DataType] = {
    "boolean": t.BOOLEAN,
    "byte": t.TINYINT,
    "short": t.SMALLINT,
    "integer": t.INT,
    "long": t.BIGINT,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "binary": t.BINARY,
    "date": t.DATE,
    "timestamp": t.TIMESTAMP,
    "timestamp_ntz": t.TIMESTAMP_NTZ,
    "void": t.VOID,
    "variant": t.VARIANT,
}


@dataclass(frozen=True, slots=True)
class UnreadableType(t.DataType):
    """A column type that exists in Delta but is not read here; naming it works, reading it raises."""

    @property
    def row(self) -> t.SqlType:
        raise self.error("")

    def json(self) -> Any:
        return self.name.lower()

    def arrow(self) -> pa.DataType:
        raise self.error("")

    def error(self, column: str) -> UnsupportedError:
        """The refusal, naming `column` if given."""
        of = f" of column {t.quote_if_needed(column)}" if column else ""
        return UnsupportedError("UNSUPPORTED_DATATYPE", f"Data type {self.name}{of} is not supported.")


@dataclass(frozen=True, slots=True)
class Column:
    """A column or nested field.

    `physical` is its name in files, `field_id` its Parquet field id (None without column mapping), `type` the logical type,
    `children` the fields of a struct, the element of an array, or key and value of a map; `by_id` says that files are
    matched by field id (mapping mode id), not by name.
    """

    name: str
    physical: str
    field_id: int | None
    type: t.DataType
    nullable: bool = True
    comment: str | None = None
    children: tuple[Column, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict, compare=False)
    by_id: bool = False

    @property
    def renamed(self) -> bool:
        """Whether this or a nested field has another name in files."""
        return self.name != self.physical or any(c.renamed for c in self.children)

    @property
    def holds_ids(self) -> bool:
        """Whether nested fields are matched by field id."""
        return any(c.by_id or c.holds_ids for c in self.children)

    def check_readable(self) -> None:
        """Raise UnsupportedError naming this column if it or a nested field has a type that is not read."""
        _check_readable(self, self.name)

    def physical_arrow(self) -> pa.DataType:
        """Arrow type with the names that files use; otherwise as `type.arrow()`."""
        return arrow_of(self.type, self.children)


def _open_inside(column: Column) -> Column:
    """The column, the fields of whose structs are nullable in its type; that they are NOT NULL is told by its `children`.

    Whatever is put into such fields is looked at when it is written: until then any value has the column's type.
    """
    if not isinstance(column.type, t.StructType):
        return column
    children = tuple(map(_open_inside, column.children))
    fields = (t.StructField(c.name, c.type, True, c.comment) for c in children)
    return replace(column, type=t.struct(*fields), children=children)


def declared_type(column: Column) -> t.DataType:
    """The type that a column is declared with, NOT NULL of the fields of its structs as well."""
    if not isinstance(column.type, t.StructType):
        return column.type
    return _rebuilt(column.type, [replace(c, type=declared_type(c)) for c in column.children])


def required_fields(column: Column) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
    """Positions and names, the column's first, that lead to each field of its structs that is NOT NULL; an outer one first."""
    if isinstance(column.type, t.StructType):
        for at, child in enumerate(column.children):
            if not child.nullable:
                yield (at,), (column.name, child.name)
            for positions, names in required_fields(child):
                yield (at, *positions), (column.name, *names)


def has_older_value(column: Column) -> bool:
    """Whether rows of files without a column have another value than NULL there."""
    return str(column.metadata.get(EXISTS, "NULL")).strip().upper() != "NULL"


def _check_readable(column: Column, name: str) -> None:
    if isinstance(column.type, UnreadableType):
        raise column.type.error(name)
    if COLLATIONS in column.metadata:
        raise UnsupportedError("UNSUPPORTED_DATATYPE", f"Column {t.quote_if_needed(name)} has a collation.")
    for child in column.children:
        _check_readable(child, name)


def arrow_of(data_type: t.DataType, children: tuple[Column, ...]) -> pa.DataType:
    """Arrow type of a nested type whose children carry physical names."""
    match data_type:
        case t.StructType():
            return pa.struct([pa.field(c.physical, c.physical_arrow()) for c in children])
        case t.ArrayType():
            return pa.list_(pa.field("item", children[0].physical_arrow()))
        case t.MapType():
            key = pa.field("key", children[0].physical_arrow(), nullable=False)
            return pa.map_(key, pa.field("value", children[1].physical_arrow()))
    return data_type.arrow()


def parse_schema(schema: dict[str, Any], mapping: str = "none") -> tuple[Column, ...]:
    """Top-level columns of a Delta schema under the column mapping mode `mapping` (none, name or id).

    In their types the fields of structs are nullable (`declared_type` has them as they are declared).
    """
    return tuple(_open_inside(_declared_column(_field(f, mapping))) for f in schema["fields"])


def _declared_column(column: Column) -> Column:
    """A column of the table itself as it was declared: what fields of structs say of themselves counts for nobody.

    Spark gives them such metadata where they are added (ALTER TABLE ADD COLUMN s.f CHAR(3)), and reads and writes texts.
    """
    declared = column.metadata.get(CHAR_VARCHAR)
    return column if declared is None else _with_declared(column, declared)


def _field(spec: dict[str, Any], mapping: str) -> Column:
    mapped = mapping != "none"
    metadata = spec.get("metadata") or {}
    name = spec["name"]
    _check_texts(name, metadata)
    data_type, children = _type(spec["type"], mapping)
    return Column(
        name=name,
        physical=metadata.get(PHYSICAL, name) if mapped else name,
        field_id=int(metadata[FIELD_ID]) if mapped and FIELD_ID in metadata else None,
        type=data_type,
        nullable=spec.get("nullable", True),
        comment=metadata.get("comment"),
        children=children,
        metadata=metadata,
        by_id=mapping == "id",
    )


_TEXTS = ("comment", PHYSICAL, CHAR_VARCHAR, "CURRENT_DEFAULT", EXISTS, "delta.generationExpression")
_LONGEST = 2**31 - 1  # of a CHAR or VARCHAR


def _check_texts(name: object, metadata: dict[str, Any]) -> None:
    """Raise ValueError for a name or a text of a column that is none: lists of the columns of all tables show them."""
    wrong = [key for key in _TEXTS if not isinstance(metadata.get(key, ""), (str, NoneType))]
    if wrong or not isinstance(name, str):
        raise ValueError(f"the column {str(name)[:200]!r} has no text as {', '.join(wrong) or 'name'}")


def _type(spec: Any, mapping: str) -> tuple[t.DataType, tuple[Column, ...]]:
    if isinstance(spec, str):
        return _primitive(spec), ()
    match spec["type"]:
        case "struct":
            children = tuple(_field(f, mapping) for f in spec["fields"])
            fields = tuple(t.StructField(c.name, c.type, c.nullable, c.comment) for c in children)
            return t.struct(*fields), children
        case "array":
            element = _anonymous("element", spec["elementType"], mapping)
            return t.array(element.type, spec.get("containsNull", True)), (element,)
        case "map":
            key = _anonymous("key", spec["keyType"], mapping)
            value = _anonymous("value", spec["valueType"], mapping)
            return t.map_of(key.type, value.type, spec.get("valueContainsNull", True)), (key, value)
        case other:
            return UnreadableType(str(other).upper()), ()


def _anonymous(name: str, spec: Any, mapping: str) -> Column:
    data_type, children = _type(spec, mapping)
    return Column(name, name, None, data_type, children=children)


def _primitive(text: str) -> t.DataType:
    if text in _PRIMITIVES:
        return _PRIMITIVES[text]
    if text == "decimal":
        return t.decimal(10, 0)
    if text.startswith("decimal(") and text.endswith(")"):
        precision, _, scale = text[8:-1].partition(",")
        return t.decimal(int(precision), int(scale or 0))
    if text.startswith(
        ("interval year", "interval month", "interval day", "interval hour", "interval min", "interval sec")
    ):
        start, _, end = text.removeprefix("interval ").partition(" to ")
        return t.interval(start, end or None)
    return UnreadableType(text.upper())


def _with_declared(column: Column, declared: str) -> Column:
    """The column with CHAR and VARCHAR where `declared`, Spark's text of its type, has them instead of STRING."""
    found, stop = _declared(column, declared, 0)
    if stop != len(declared):
        raise _undeclarable(column, declared)
    return found


def _undeclarable(column: Column, declared: str) -> ServerError:
    text = f"Type {declared!r} in the metadata of column {column.name} does not fit its type {column.type.simple}."
    return ServerError("DELTA_SCHEMA_INVALID", text)


def _declared(column: Column, text: str, at: int) -> tuple[Column, int]:
    """`column` re-typed by the type text that starts at `at`, and where that text ends."""
    if column.type == t.STRING:
        return _declared_text(column, text, at)
    if not column.children:
        return column, _expect(column, text, at, column.type.simple)
    at = _expect(column, text, at, column.type.name.lower() + "<")
    children: list[Column] = []
    for child in column.children:
        at = at if not children else _expect(column, text, at, ",")
        if isinstance(column.type, t.StructType):
            at = _expect(column, text, at, child.name + ":")
        found, at = _declared(child, text, at)
        children.append(found)
    return replace(column, type=_rebuilt(column.type, children), children=tuple(children)), _expect(
        column, text, at, ">"
    )


def _declared_text(column: Column, text: str, at: int) -> tuple[Column, int]:
    for kind, make in (("varchar(", t.varchar), ("char(", t.char)):
        if text.startswith(kind, at):
            stop = text.find(")", at)
            length = text[at + len(kind) : stop]
            if not (length.isascii() and length.isdecimal() and len(length) < 20 and 0 < int(length) <= _LONGEST):
                raise _undeclarable(column, text)
            return replace(column, type=make(int(length))), stop + 1
    return column, _expect(column, text, at, "string")


def _expect(column: Column, text: str, at: int, word: str) -> int:
    if not text.startswith(word, at):
        raise _undeclarable(column, text)
    return at + len(word)


def _rebuilt(data_type: t.DataType, children: Sequence[Column]) -> t.DataType:
    match data_type:
        case t.StructType():
            return t.struct(*(t.StructField(c.name, c.type, c.nullable, c.comment) for c in children))
        case t.ArrayType():
            return t.array(children[0].type, data_type.contains_null)
        case t.MapType():
            return t.map_of(children[0].type, children[1].type, data_type.value_contains_null)
    raise TypeError(data_type.name)


def check_told_apart(schema: str | None) -> None:
    """Raise ValueError if two columns of a schema's text are one in files: by their ids, or beside each other by their names.

    Only for tables with column mapping: of others such metadata says nothing. Spark reads the same values for both.
    """
    ids: set[int] = set()
    for fields in structs_in(schema):
        told = [f.get("metadata") or {} for f in fields]
        names = [m[PHYSICAL] for m in told if PHYSICAL in m]
        numbers = [int(m[FIELD_ID]) for m in told if FIELD_ID in m]
        if len({*names}) < len(names) or len({*numbers} - ids) < len(numbers):
            raise ValueError("two columns that are one in files")
        ids.update(numbers)


def holds_char(data_type: t.DataType) -> bool:
    """Whether a type is or holds CHAR or VARCHAR."""
    return isinstance(data_type, t.CharType) or any(holds_char(c) for c in data_type.children())


def struct_of(columns: tuple[Column, ...]) -> t.StructType:
    """The logical schema of top-level columns."""
    return t.struct(*(t.StructField(c.name, c.type, c.nullable, c.comment) for c in columns))


def declared_of(columns: tuple[Column, ...]) -> t.StructType:
    """The schema of top-level columns as it was declared: with NOT NULL of the fields of structs."""
    return struct_of(tuple(replace(c, type=declared_type(c)) for c in columns))


def nullable(data_type: Any) -> Any:
    """The type with every field, element and value nullable."""
    match data_type:
        case t.StructType():
            fields = data_type.fields
            return t.struct(*(t.StructField(f.name, nullable(f.type), True, f.comment) for f in fields))
        case t.ArrayType():
            return t.array(nullable(data_type.element))
        case t.MapType():
            return t.map_of(nullable(data_type.key), nullable(data_type.value))
    return data_type
