"""Delta schema JSON as a tree of `Column`s: logical types, and the names and ids under which files hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gateway import sqltypes as t
from gateway.errors import ServerError, UnsupportedError

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

    def check_readable(self) -> None:
        """Raise UnsupportedError naming this column if it or a nested field has a type that is not read."""
        _check_readable(self, self.name)

    def physical_arrow(self) -> pa.DataType:
        """Arrow type with the names that files use; otherwise as `type.arrow()`."""
        return arrow_of(self.type, self.children)


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
    """Top-level columns of a Delta schema under the column mapping mode `mapping` (none, name or id)."""
    return tuple(_field(f, mapping) for f in schema["fields"])


def _field(spec: dict[str, Any], mapping: str) -> Column:
    mapped = mapping != "none"
    metadata = spec.get("metadata") or {}
    name = spec["name"]
    data_type, children = _type(spec["type"], mapping)
    declared = metadata.get(CHAR_VARCHAR)
    if declared is not None and data_type == t.STRING:
        data_type = _char(declared)
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


def _char(text: str) -> t.DataType:
    kind, _, rest = text.partition("(")
    length = rest.rstrip(")")
    if kind in ("char", "varchar") and length.isdigit():
        return t.char(int(length)) if kind == "char" else t.varchar(int(length))
    if kind == "string":
        return t.STRING
    raise ServerError("DELTA_SCHEMA_INVALID", f"Unknown character type {text!r} in the schema of a Delta table.")


def struct_of(columns: tuple[Column, ...]) -> t.StructType:
    """The logical schema of top-level columns."""
    return t.struct(*(t.StructField(c.name, c.type, c.nullable, c.comment) for c in columns))
