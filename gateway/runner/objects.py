"""Lasting views and SQL functions: what holds for making and dropping them, whichever engine knows their text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.catalog.base import Catalog, TableName
from gateway.catalog.objects import StoredFunction, StoredLocation, StoredTable, StoredView
from gateway.errors import Span, UnsupportedError, UserError
from gateway.runner.tables import StatementTables
from gateway.sql.read.statement import Statement as Read
from gateway.sql.read.statement import read_statement
from gateway.sql.spark.respell import called_names
from gateway.sqltypes import StructField, StructType, struct
from gateway.worker_jobs import TempView


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new object goes: a catalog that is written to, a schema that exists, and a name."""

    catalog: Catalog
    schema: str
    name: str

    @property
    def full(self) -> TableName:
        return TableName(self.catalog.name, self.schema, self.name)

    @property
    def quoted(self) -> str:
        return f"`{self.catalog.name}`.`{self.schema}`.`{self.name}`"

    @property
    def kind(self) -> str:
        """What has the name: "table", "view", or "" for neither."""
        if self.catalog.table(self.schema, self.name) is not None:
            return "table"
        return "view" if self.catalog.view(self.schema, self.name) is not None else ""


def has_view(catalog: Catalog | None, schema: str, name: str) -> bool:
    """Whether a view has the name, be its file damaged or not: that can be dropped."""
    if catalog is None or catalog.identity(StoredLocation, schema, name) is not None:
        return False
    if catalog.table_folder(schema, name) is not None:
        return False
    return catalog.identity(StoredView, schema, name) is not None


def place_of(tables: StatementTables, parts: Sequence[str], what: str, span: Span | None) -> Place:
    """The place that one to three names stand for; `what` could be "no view can be created"."""
    catalog_name, schema, name = tables.qualified(parts)
    catalog, schema = tables.schema_of((catalog_name, schema), span)
    check_writable(catalog, what, span)
    return Place(catalog, schema, name)


def check_writable(catalog: Catalog, what: str, span: Span | None) -> None:
    """Raise UserError PERMISSION_DENIED for a catalog that is only read; `what` could be "no view can be created"."""
    if catalog.read_only:
        raise UserError("PERMISSION_DENIED", f"The catalog `{catalog.name}` is read-only: {what}.", span=span)


def information_is_read_only(relation: str, what: str, span: Span | None) -> UserError:
    """PERMISSION_DENIED for a relation of an information schema or of the history."""
    text = f"Relations of the system are read-only: {what} ({relation})."
    return UserError("PERMISSION_DENIED", text, span=span)


def may_make_view(place: Place, replace: bool, if_not_exists: bool, span: Span | None) -> bool:
    """Whether a view is to be made, False if one of that name is enough.

    Raises UserError TABLE_OR_VIEW_ALREADY_EXISTS, EXPECT_VIEW_NOT_TABLE.
    """
    kind = place.kind
    if not kind or (kind == "view" and replace):
        return True
    if if_not_exists:
        return False
    if replace:
        raise UserError(
            "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE",
            f"The table {place.quoted} does not support CREATE OR REPLACE VIEW.",
            span=span,
        )
    raise already_exists(place, span)


def may_make_table(place: Place, replace: bool, if_not_exists: bool, span: Span | None) -> bool:
    """Whether a Delta table is to be made, False if what has the name is enough.

    Raises UserError TABLE_OR_VIEW_ALREADY_EXISTS, EXPECT_TABLE_NOT_VIEW; UnsupportedError for a table of another format.
    """
    kind = place.kind
    if not kind:
        return True
    if if_not_exists:
        return False
    if not replace:
        raise already_exists(place, span)
    if kind == "view":
        raise expects_table("CREATE OR REPLACE TABLE", place.quoted, span)
    found = place.catalog.table(place.schema, place.name)
    if isinstance(found, StoredTable):
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"Replacing a table of the format {found.format} by a Delta table.", span=span
        )
    return True


#: What is raised for a table whose name something has.
MADE = "TABLE_OR_VIEW_ALREADY_EXISTS"


@dataclass(frozen=True, slots=True)
class Tolerated:
    """Around what was looked at before: IF [NOT] EXISTS is content with what others have done meanwhile (CreateTableExec)."""

    condition: str
    is_content: bool

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return self.is_content and isinstance(error, UserError) and error.condition == self.condition


def expects_table(operation: str, view: str, span: Span | None) -> UserError:
    """EXPECT_TABLE_NOT_VIEW."""
    quoted = view if view.startswith("`") else f"`{view}`"
    return UserError(
        "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", f"'{operation}' expects a table but {quoted} is a view.", span=span
    )


def already_exists(place: Place, span: Span | None) -> UserError:
    """TABLE_OR_VIEW_ALREADY_EXISTS."""
    return UserError(
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        f"Cannot create table or view {place.quoted} because it already exists. Choose a different name, drop or replace "
        "the existing object, or add the IF NOT EXISTS clause to tolerate pre-existing objects.",
        span=span,
    )


def put_view(place: Place, view: StoredView, replace: bool, if_not_exists: bool, span: Span | None) -> None:
    """Keep a new view; raises TABLE_OR_VIEW_ALREADY_EXISTS if somebody else was faster."""
    with place.catalog.alone():
        _put_view(place, view, replace, if_not_exists, span)


def _put_view(place: Place, view: StoredView, replace: bool, if_not_exists: bool, span: Span | None) -> None:
    if not place.catalog.put(view, replace):
        if not if_not_exists:
            raise already_exists(place, span)
    elif place.catalog.table(place.schema, place.name) is not None:  # made meanwhile: the table has the name
        place.catalog.drop(StoredView, place.schema, place.name)
        raise already_exists(place, span)


def change_view(catalog: Catalog, old: StoredView, new: StoredView) -> None:
    """Keep what was made of a view in its place. Raises UserError WRITE_CONFLICT if it is another one by now, or gone."""
    with catalog.alone():
        _check_same(catalog, old)
        catalog.put(new, True)


def rename_view(old: StoredView, place: Place, span: Span | None) -> None:
    """Give a view another name. Raises what `put_view` and `change_view` do."""
    with place.catalog.alone():
        _check_same(place.catalog, old)
        _put_view(place, dataclasses.replace(old, name=place.full), False, False, span)
        place.catalog.drop(StoredView, old.name.schema, old.name.table)


def _check_same(catalog: Catalog, view: StoredView) -> None:
    if catalog.view(view.name.schema, view.name.table) != view:
        text = f"Another session changed the view {view.name} at the same time. Send the statement again."
        raise UserError("WRITE_CONFLICT", text, retryable=True)


def view_columns(view: str, given: Sequence[tuple[str, str | None]], own: StructType, span: Span | None) -> StructType:
    """A view's columns: those of its query under the given names and comments."""
    if given and len(given) != len(own.fields):
        many = len(given) < len(own.fields)
        raise UserError(
            f"CREATE_VIEW_COLUMN_ARITY_MISMATCH.{'TOO_MANY' if many else 'NOT_ENOUGH'}_DATA_COLUMNS",
            f"Cannot create view {view}, the reason is {'too many' if many else 'not enough'} data columns: view "
            f"columns: {_listed([name for name, _ in given])}; data columns: {_listed([f.name for f in own.fields])}.",
            span=span,
        )
    named = given or [(f.name, f.comment) for f in own.fields]
    seen: set[str] = set()
    for name, _ in named:
        if name.lower() in seen:
            raise UserError(
                "COLUMN_ALREADY_EXISTS",
                f"The column `{name.lower()}` already exists. Choose another name or rename the existing column.",
                span=span,
            )
        seen.add(name.lower())
    pairs = zip(named, own.fields, strict=True)
    return struct(*(StructField(name, f.type, f.nullable, comment) for (name, comment), f in pairs))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def temporary_object(place_or_name: str, kind: str, temporary: str, temporary_kind: str) -> UserError:
    """INVALID_TEMP_OBJ_REFERENCE."""
    return UserError(
        "INVALID_TEMP_OBJ_REFERENCE",
        f"Cannot create the persistent object {place_or_name} of the type {kind} because it references to the temporary "
        f"object `{temporary}` of the type {temporary_kind}. Please make the temporary object `{temporary}` persistent, or "
        f"make the persistent object {place_or_name} temporary.",
    )


def wrong_kind(operation: str, required: str, name: str, found: str, alternative: str, span: Span | None) -> UserError:
    """WRONG_COMMAND_FOR_OBJECT_TYPE."""
    return UserError(
        "WRONG_COMMAND_FOR_OBJECT_TYPE",
        f"The operation {operation} requires a {required}. But {name} is a {found}. Use {alternative} instead.",
        span=span,
    )


def called_function(
    statement: Read, tables: StatementTables, views: Mapping[str, TempView], seen: frozenset[str] = frozenset()
) -> TableName | None:
    """A lasting function that a statement calls, or a temporary view in it; only words are looked at."""
    for first, last in called_names(statement):
        parts = [str(t.text) for t in statement.tokens[first : last + 1 : 2]]
        if len(parts) > 3:
            continue
        catalog_name, schema, function = tables.qualified(parts)
        catalog = tables.catalogs.get(catalog_name.lower())
        found = catalog.function(schema, function) if catalog is not None else None
        if found is not None:
            return found.name  # type: ignore[no-any-return]
    words = {str(token.text).lower() for token in statement.tokens}
    for name, view in views.items():
        if name in words and name not in seen:
            inside = tables.inside(view)
            used = called_function(read_statement(view.query), inside, views, seen | {name})
            if used is not None:
                return used
    return None


def may_make_function(place: Place, replace: bool, if_not_exists: bool, span: Span | None) -> bool:
    """Whether a function is to be made, False if one of that name is enough; raises ROUTINE_ALREADY_EXISTS."""
    if replace or place.catalog.function(place.schema, place.name) is None:
        return True
    if if_not_exists:
        return False
    raise function_exists(place, span)


def put_function(place: Place, function: StoredFunction, replace: bool, if_not_exists: bool, span: Span | None) -> None:
    """Keep a new function; raises ROUTINE_ALREADY_EXISTS if somebody else was faster."""
    if not place.catalog.put(function, replace) and not if_not_exists:
        raise function_exists(place, span)


def function_exists(place: Place, span: Span | None) -> UserError:
    """ROUTINE_ALREADY_EXISTS."""
    return UserError(
        "ROUTINE_ALREADY_EXISTS",
        f"Cannot create the routine {place.quoted} because a routine of that name already exists. Choose a different name, "
        "drop or replace the existing routine, or add the IF NOT EXISTS clause to tolerate a pre-existing routine.",
        span=span,
    )
