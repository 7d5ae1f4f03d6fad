"""Store assignment of Delta tables: which values a column takes, and what an overflow on the way into it is called.

As measured for all pairs of types (tests/data/store-assignment.csv): what CAST takes is cast, and only a value can fail.
Fields of structs go by position, but by name where Delta has nothing to cast in all of an INSERT: where the columns are named
as the table's, and their types are too, but for the order of fields (DeltaAnalysis, SchemaUtils.isReadCompatible).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.errors import Span, UserError, unsupported
from gateway.sql.typed.coerce import can_cast, cast_refusal, coerced
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Call, Expr, Lit, Project, Rel, Values
from gateway.sqltypes import (
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    is_nested,
    map_of,
    struct,
)

_VOID_MAP = map_of(VOID, VOID, False)
# The engine's own casts between numbers do not tell the decimal type that a value does not fit.
_NAMELESS = "cannot be represented in the result's decimal type"


@dataclass(frozen=True, slots=True)
class Assigned:
    """A cast that storing makes: the types that a failure of it names, and the column, types that are told."""

    source: DataType
    target: DataType
    column: str
    shown: tuple[DataType, DataType]

    def caused(self, error: UserError) -> bool:
        """Whether the error is an overflow of this cast; told by its text."""
        if error.condition == "CAST_OVERFLOW":
            return f'of the type "{self.source.sql}" cannot be cast to "{self.target.sql}" due' in error.message
        t = self.target
        if not error.condition.startswith("NUMERIC_VALUE_OUT_OF_RANGE") or not isinstance(t, DecimalType):
            return False
        return (
            f"cannot be represented as Decimal({t.precision}, {t.scale})" in error.message or _NAMELESS in error.message
        )


def assigned(
    source: DataType, column: StructField, table: str, in_order: bool, span: Span | None
) -> tuple[Assigned, ...]:
    """The casts of a value of type `source` that is stored in `column`, fields of structs by their places.

    Raises UserError for what no cast takes, and with `in_order` UnsupportedError for fields of structs in another order.
    """
    walk = _Walk(column.name, table, in_order, span)
    walk.check(plain(source), plain(column.type), column.name, (column.name,))
    return tuple(walk.casts(source, column.type, column.name, None))


def are_found_by_name(given: Sequence[tuple[str, DataType, StructField]]) -> bool:
    """Whether nothing is cast of an INSERT's columns (their names and types, and those that they fill).

    The fields of their structs are found by their names then, whatever order they come in, and may be too many.
    """
    return all(name == f.name and _is_read_as(plain(source), plain(f.type)) for name, source, f in given)


def _is_read_as(source: DataType, target: DataType) -> bool:
    if isinstance(source, StructType) and isinstance(target, StructType):
        theirs = {f.name: f.type for f in source.fields}
        return len(theirs) == len(source.fields) and all(
            f.name in theirs and _is_read_as(theirs[f.name], f.type) for f in target.fields
        )
    if is_nested(source) and type(source) is type(target):
        return all(map(_is_read_as, source.children(), target.children()))
    return source == target


def with_names_of(source: DataType, target: DataType) -> DataType:
    """The type of a value as a list of columns has it: with the names of fields in the same places, but inside of arrays."""
    if not isinstance(source, StructType) or not isinstance(target, StructType):
        return source
    if len(source.fields) != len(target.fields):
        return source
    pairs = zip(source.fields, target.fields, strict=True)
    return struct(*(replace(f, name=g.name, type=with_names_of(f.type, g.type)) for f, g in pairs))


def found_by_name(value: Expr, source: DataType, column: StructField, table: str, span: Span | None) -> Expr:
    """A value of type `source` with the fields of its structs in the order of the column's.

    Raises UserError DELTA_METADATA_MISMATCH for fields that the column has not.
    """
    more = list(_more_fields(plain(source), plain(column.type), column.name))
    if more:
        raise too_many(table, more, span)
    if [*_names(source)] == [*_names(column.type)]:
        return coerced(value, column.type)
    renamed = coerced(value, source)
    return Call(column.type, renamed.nullable, "_fields_by_name", (renamed,), span=span)


def with_maps_of(rel: Rel, types: Mapping[int, DataType]) -> Rel:
    """Rows whose columns of maps without entries, by their numbers, have the types of the columns that take them.

    `map()` is a MAP<VOID, VOID>, of which the engine has none. Columns that hold it otherwise than as a constant keep it.
    """
    places = [i for i, column in enumerate(rel.columns) if column.id in types and column.type == _VOID_MAP]
    if isinstance(rel, Values):
        places = [i for i in places if all(is_void_map(row[i]) or _is_null(row[i]) for row in rel.rows)]
    elif isinstance(rel, Project):
        places = [i for i in places if is_void_map(rel.exprs[i])]
    else:
        return rel
    wanted = {i: types[rel.columns[i].id] for i in places}

    def typed(cells: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(replace(cell, type=wanted[i]) if i in wanted else cell for i, cell in enumerate(cells))

    columns = tuple(replace(column, type=wanted.get(i, column.type)) for i, column in enumerate(rel.columns))
    if isinstance(rel, Values):
        return Values(columns, tuple(map(typed, rel.rows)))
    return Project(columns, rel.input, typed(rel.exprs))


def is_void_map(e: Expr) -> bool:
    """Whether a value is `map()`, which is a map of whatever types it is cast to."""
    return isinstance(e, Call) and e.fn == "map" and not e.args


def _is_null(e: Expr) -> bool:
    return isinstance(e, Lit) and e.value is None


def in_order_of(value: Expr, target: DataType, span: Span | None) -> Expr:
    """A value with the fields of its structs, at any depth, as a column of type `target` has them in an UPDATE or a MERGE.

    They keep their types. Raises UserError DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION for structs with other fields,
    AMBIGUOUS_REFERENCE_TO_FIELDS for two of one name.
    """
    spelt, ordered = _arranged(value.type, target, span)
    if spelt == ordered:  # as names are no part of what is cast
        return value
    renamed = coerced(value, spelt)
    return Call(ordered, renamed.nullable, "_fields_by_name", (renamed,), span=span)


def has_other_fields(source: DataType, target: DataType) -> bool:
    """Whether structs that meet, at any depth, have not the same fields, in whatever order."""
    try:
        _arranged(source, target, None)
    except UserError:
        return True
    return False


def _arranged(source: DataType, target: DataType, span: Span | None) -> tuple[DataType, DataType]:
    """The type of a value with the names of the column's fields, and with their order as well."""
    if isinstance(source, StructType) and isinstance(target, StructType):
        ours = {f.name.lower(): f for f in target.fields}
        theirs = [f.name.lower() for f in source.fields]
        if len(theirs) != len(ours) or not ours.keys() >= set(theirs):
            text = f"Cannot cast {source.simple} to {target.simple}. All nested columns must match."
            raise UserError("DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION", text, span=span)
        twice = next((name for name in theirs if theirs.count(name) > 1), None)
        if twice is not None:
            text = f"Ambiguous reference to the field `{twice}`. It appears {theirs.count(twice)} times in the schema."
            raise UserError("AMBIGUOUS_REFERENCE_TO_FIELDS", text, span=span)
        named: dict[str, tuple[StructField, ...]] = {}
        for name, f in zip(theirs, source.fields, strict=True):
            own = ours[name]
            named[name] = tuple(replace(f, name=own.name, type=t) for t in _arranged(f.type, own.type, span))
        return struct(*(named[name][0] for name in theirs)), struct(*(named[name][1] for name in ours))
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        spelt, ordered = _arranged(source.element, target.element, span)
        return replace(source, element=spelt), replace(source, element=ordered)
    if isinstance(source, MapType) and isinstance(target, MapType):
        keys, values = _arranged(source.key, target.key, span), _arranged(source.value, target.value, span)
        first, second = (replace(source, key=k, value=v) for k, v in zip(keys, values, strict=True))
        return first, second
    return source, source


def _more_fields(source: DataType, target: DataType, name: str) -> Iterator[str]:
    if isinstance(source, StructType) and isinstance(target, StructType):
        ours = {f.name: f.type for f in target.fields}
        for f in source.fields:
            if f.name not in ours:
                yield f"{name}.{f.name}"
            else:
                yield from _more_fields(f.type, ours[f.name], f"{name}.{f.name}")
        return
    for inner, own in zip(source.children(), target.children(), strict=True):
        yield from _more_fields(inner, own, name)


def _names(t: DataType) -> Iterator[str]:
    if isinstance(t, StructType):
        yield from (f.name for f in t.fields)
    for child in t.children():
        yield from _names(child)


@dataclass(frozen=True, slots=True)
class _Walk:
    column: str
    table: str
    in_order: bool
    span: Span | None

    def check(self, source: DataType, target: DataType, name: str, path: tuple[str, ...]) -> None:
        """Raise what Delta does before it looks at casts: for structs with too few fields, or in places of others."""
        if not isinstance(source, StructType) or not isinstance(target, StructType):
            return
        self._check_fields(source, target, name)
        for f, g in zip(source.fields, target.fields, strict=False):
            if isinstance(f.type, StructType) and not isinstance(g.type, StructType) and not self.in_order:
                text = (
                    f"Struct column {'.'.join((*path, f.name))} cannot be inserted into a {g.type.simple} field "
                    f"{'.'.join((*path, g.name))} in {self.table}."
                )
                raise UserError("DELTA_COLUMN_STRUCT_TYPE_MISMATCH", text, span=self.span)
            self.check(f.type, g.type, g.name, (*path, g.name))

    def casts(
        self, source: DataType, target: DataType, name: str, whole: tuple[DataType, DataType] | None
    ) -> Iterator[Assigned]:
        """`name` is of the innermost field; `whole` the types of the array around it, which casts as one."""
        source, target = plain(source), plain(target)
        if isinstance(source, StructType) and isinstance(target, StructType):
            self._check_fields(source, target, name)
            for f, g in zip(source.fields, target.fields, strict=False):
                yield from self.casts(f.type, g.type, g.name, whole)
            self._check_more(source, target)
            return
        if isinstance(source, ArrayType) and isinstance(target, ArrayType):
            whole = whole or (source, target)
            if self._is_cast_whole(source, target) and _differ_in_size(source.element, target.element):
                raise self._cannot(*whole)
            yield from self.casts(source.element, target.element, name, whole)
            return
        if isinstance(source, MapType) and isinstance(target, MapType):
            yield from self.casts(source.key, target.key, "key", whole)
            yield from self.casts(source.value, target.value, "value", whole)
            return
        if not can_cast(source, target):
            raise self._cannot(*(whole or (source, target)))
        if source != target:
            yield Assigned(source, target, self.column if whole else name, whole or (source, target))

    def _check_fields(self, source: StructType, target: StructType, name: str) -> None:
        if len(source.fields) < len(target.fields):
            raise too_few(self.table, f"nested fields in {name}", len(target.fields), len(source.fields), self.span)
        theirs, ours = ([f.name.lower() for f in t.fields] for t in (source, target))
        if self.in_order and theirs[: len(ours)] != ours and not set(theirs).isdisjoint(ours):
            raise unsupported(f"Writing structs whose fields are in another order than those of {name}", self.span)

    def _check_more(self, source: StructType, target: StructType) -> None:
        """Refuse fields that have no place in the column; they keep their names beside those of the column's."""
        more = [f.name for f in source.fields[len(target.fields) :]]
        names = [name.lower() for name in (*(f.name for f in target.fields), *more)]
        twice = next((name for name in more if names.count(name.lower()) > 1), None)
        if twice is not None:
            text = f"Found duplicate column(s): {twice}. The duplicate was found in the schema of the data being read."
            raise UserError("DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA", text, span=self.span)
        if more:
            raise too_many(self.table, [f"{self.column}.{name}" for name in more], self.span)

    def _is_cast_whole(self, source: ArrayType, target: ArrayType) -> bool:
        """Whether Delta casts the array as it is; it looks into elements where they may be NULL on both sides or on none."""
        return source.contains_null != target.contains_null

    def _cannot(self, source: DataType, target: DataType) -> UserError:
        return UserError(
            cast_refusal(source, target, False),
            f'Cannot resolve "{self.column}" due to data type mismatch: cannot cast "{source.sql}" to "{target.sql}".',
            span=self.span,
        )


def _differ_in_size(source: DataType, target: DataType) -> bool:
    return (
        isinstance(source, StructType) and isinstance(target, StructType) and len(source.fields) != len(target.fields)
    )


_OVERFLOW = {
    "CAST_OVERFLOW_IN_TABLE_INSERT": 'Fail to assign a value of "{0}" type to the "{1}" type column or variable {2} due to an '
    "overflow.",
    "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE": 'Failed to write a value of "{0}" type into the "{1}" type column {2} due to an '
    "overflow.",
}


def overflown(error: UserError, casts: list[Assigned], condition: str = "CAST_OVERFLOW_IN_TABLE_INSERT") -> UserError:
    """An overflow in a cast to a column's type as Spark calls it; every other error as it is.

    A cast of the same types that the user wrote cannot be told apart, and is as right.
    """
    found = [cast for cast in casts if cast.caused(error)]
    if not found:
        return error
    source, target = found[0].shown
    names = " or ".join(dict.fromkeys(f"`{cast.column}`" for cast in found))
    return UserError(
        condition,
        _OVERFLOW[condition].format(source.sql, target.sql, names)
        + " Use `try_cast` on the input value to tolerate overflow and return NULL instead.",
        span=error.span,
    )


def too_few(table: str, what: str, wanted: int, given: int, span: Span | None) -> UserError:
    """Fewer columns, or fields of a struct, than the table has."""
    return UserError(
        "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        f"Cannot write to {table}, not enough {what}; target table has {wanted} column(s) but the inserted data has "
        f"{given} column(s).",
        span=span,
    )


def too_many(table: str, given: list[str], span: Span | None) -> UserError:
    """More columns, or fields of a struct, than the table has."""
    return UserError(
        "DELTA_METADATA_MISMATCH",
        f"A schema mismatch detected when writing to the table {table}: the data has columns that it has not "
        f"({', '.join(given)}).",
        span=span,
    )
