"""Store assignment of Delta tables: which values a column takes, and what an overflow on the way into it is called.

As measured for all pairs of types (tests/data/store-assignment.csv): what CAST takes is cast, and only a value can fail.
Fields of structs go by position, but by name where names are what a column is found by, or inside of arrays and maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.errors import Span, UserError, unsupported
from gateway.sql.typed.coerce import can_cast, cast_refusal, plain
from gateway.sqltypes import ArrayType, DataType, DecimalType, MapType, StructField, StructType

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
    source: DataType, column: StructField, table: str, by_name: bool, span: Span | None
) -> tuple[Assigned, ...]:
    """The casts of a value of type `source` that is stored in `column`.

    Raises UserError for what no cast takes, UnsupportedError for fields of structs in another order.
    """
    return tuple(_Walk(column.name, table, by_name, span).casts(source, column.type, column.name, None))


@dataclass(frozen=True, slots=True)
class _Walk:
    column: str
    table: str
    by_name: bool
    span: Span | None

    def casts(
        self, source: DataType, target: DataType, name: str, whole: tuple[DataType, DataType] | None
    ) -> Iterator[Assigned]:
        """`name` is of the innermost field; `whole` the types of the array around it, which casts as one."""
        source, target = plain(source), plain(target)
        if isinstance(source, StructType) and isinstance(target, StructType):
            self._check_fields(source, target, name)
            for f, g in zip(source.fields, target.fields, strict=False):
                yield from self.casts(f.type, g.type, g.name, whole)
            if len(source.fields) > len(target.fields):
                raise too_many(self.table, [f"{self.column}.{f.name}" for f in source.fields], self.span)
            return
        if isinstance(source, ArrayType) and isinstance(target, ArrayType):
            whole = whole or (source, target)
            if self._misses_fields(source.element, target.element):
                raise self._cannot(*whole)
            yield from self._inner().casts(source.element, target.element, name, whole)
            return
        if isinstance(source, MapType) and isinstance(target, MapType):
            yield from self._inner().casts(source.key, target.key, "key", whole)
            yield from self._inner().casts(source.value, target.value, "value", whole)
            return
        if not can_cast(source, target):
            raise self._cannot(*(whole or (source, target)))
        if source != target:
            yield Assigned(source, target, self.column if whole else name, whole or (source, target))

    def _inner(self) -> _Walk:
        return replace(self, by_name=True)

    def _check_fields(self, source: StructType, target: StructType, name: str) -> None:
        if len(source.fields) < len(target.fields):
            raise too_few(self.table, f"nested fields in {name}", len(target.fields), len(source.fields), self.span)
        theirs, ours = ([f.name.lower() for f in t.fields] for t in (source, target))
        if self.by_name and theirs[: len(ours)] != ours and not set(theirs).isdisjoint(ours):
            raise unsupported(f"Writing structs whose fields are in another order than those of {name}", self.span)

    def _misses_fields(self, source: DataType, target: DataType) -> bool:
        return (
            isinstance(source, StructType)
            and isinstance(target, StructType)
            and len(source.fields) < len(target.fields)
        )

    def _cannot(self, source: DataType, target: DataType) -> UserError:
        return UserError(
            cast_refusal(source, target, False),
            f'Cannot resolve "{self.column}" due to data type mismatch: cannot cast "{source.sql}" to "{target.sql}".',
            span=self.span,
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
