"""Views over queries that only Spark knows: tried there, then kept by the session or by the catalog."""

from __future__ import annotations

from gateway.catalog.objects import StoredView
from gateway.engine.base import Emit, Finished, Planned, SessionChange, Statement
from gateway.engine.spark.engine import SparkSessionSlot
from gateway.engine.spark.mirror import UNNAMED_COLUMNS
from gateway.errors import UserError, unsupported
from gateway.runner import objects
from gateway.runner.answer import RESULT
from gateway.runner.session_definitions import temporary_view
from gateway.runner.spark.names import spark_name, spark_parts
from gateway.runner.spark.prepared import Preparation
from gateway.runner.spark.results import finish, is_collated, readable_schema, schema_of
from gateway.runner.spark.sent import sent
from gateway.runner.spark.settings import kept_settings
from gateway.sql.read.made_view import MadeView, clauses
from gateway.sql.read.statement import read_statement
from gateway.sql.spark.respell import Head, Respelt
from gateway.sqltypes import StructType, quote_part


def make_temporary_view(
    prepared: Preparation, job: Statement, view: MadeView, respelt: Respelt, slot: SparkSessionSlot, emit: Emit
) -> None:
    """CREATE TEMPORARY VIEW over a query that only Spark knows: checked here, kept by the session as text."""
    state = job.session
    name = view.name[-1]
    if name.lower() in state.views and not view.replaces:
        raise UserError(
            "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
            f"Cannot create the temporary view `{name}` because it already exists. Choose a different name, drop "
            "or replace the existing view.",
        )
    prepared.prepare(job, slot, respelt, emit)
    schema = readable_schema(slot.spark.sql(sent(slot.spark, respelt)), prepared.names.column)
    if view.collation:
        slot.spark.sql(f"SELECT '' COLLATE {quote_part(view.collation)}")  # fails for one that does not exist
    kept = temporary_view(view, state, schema)
    emit(Planned("CREATE_VIEW", "spark", job.route, RESULT, is_query=False))
    emit(Finished(0, changes=(SessionChange("put_view", name.lower(), view=kept),)))


def view_head(prepared: Preparation, job: Statement, view: MadeView) -> tuple[objects.Place, Head]:
    """Where a lasting view goes, and how Spark's statement for it begins. Raises UserError as CREATE and ALTER VIEW do."""
    place = objects.place_of(prepared.names.tables(job), view.name, "no view can be created", view.span)
    if view.alters:
        kind = place.kind
        if not kind:
            raise prepared.names.tables(job).missing(view.name, view.span)
        if kind == "table":
            text = f"The table {place.quoted} does not support ALTER VIEW ... AS."
            raise UserError("EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE", text, span=view.span)
    names = ", ".join(quote_part(name) for name, _ in view.columns)
    columns = f"({names}) " if names else ""
    collation, mode = _clauses(place, view)
    said = clauses(collation, mode)
    return place, Head(view.start, f"CREATE OR REPLACE VIEW {spark_name(place.full)} {columns}{said}AS ")


def _clauses(place: objects.Place, view: MadeView) -> tuple[str, str]:
    """Collation and mode of a view: those that it had if it is altered."""
    old: StoredView | None = place.catalog.view(place.schema, place.name) if view.alters else None
    return (view.collation, view.mode) if old is None else (old.collation, old.mode)


def make_view(
    prepared: Preparation,
    job: Statement,
    view: MadeView,
    place: objects.Place,
    head: Head,
    respelt: Respelt,
    slot: SparkSessionSlot,
    emit: Emit,
) -> None:
    """CREATE VIEW, ALTER VIEW … AS."""
    if read_statement(job.text).markers:
        raise unsupported("parameter markers in a view", view.span)
    prepared.prepare(job, slot, respelt, emit)
    # Behind as many spaces as the head is long, for the places in errors.
    query = sent(slot.spark, respelt)[len(head.text) :]
    frame = slot.spark.sql(query.rjust(len(respelt.text)))
    plain = own = schema_of(frame)
    schema = objects.view_columns(place.quoted, _named(prepared, view, own), own, view.span)
    collation, mode = _clauses(place, view)
    if not objects.may_make_view(place, view.replaces, view.if_not_exists, view.span):
        finish(job, "CREATE_VIEW", emit, writes=False)
        return
    prepared.engine.mirror.database(spark_parts(place)[0], emit)
    if not place.kind:  # a table may have had the name
        prepared.engine.mirror.no_relation(*spark_parts(place))
    try:
        slot.spark.conf.set(*UNNAMED_COLUMNS)
        slot.spark.sql(respelt.text)  # which finds temporary objects and cycles
        if collation:  # a name that nobody gave may tell it
            own = schema_of(slot.spark.table(spark_name(place.full)))
            schema = objects.view_columns(place.quoted, _named(prepared, view, own), own, view.span)
    finally:
        prepared.engine.mirror.forget("VIEW", *spark_parts(place))
    old: StoredView | None = place.catalog.view(place.schema, place.name) if view.alters else None
    made = StoredView(
        place.full,
        view.query,
        schema,
        tuple(f.name for f in plain.fields),
        job.session.catalog,
        job.session.schema,
        old.comment if old is not None else view.comment,
        old.properties if old is not None else dict(view.properties),
        kept_settings(job),
        needs_spark=True,
        named=bool(view.columns),
        collation=collation,
        mode=mode,
        collated=bool(collation) or is_collated(frame),
    )
    emit(
        Planned("ALTER_VIEW" if view.alters else "CREATE_VIEW", "spark", job.route, RESULT, writes=True, is_query=False)
    )
    objects.put_view(place, made, view.replaces, view.if_not_exists, view.span)
    emit(Finished(0))


def _named(prepared: Preparation, view: MadeView, own: StructType) -> tuple[tuple[str, str | None], ...]:
    return view.columns or tuple((prepared.names.column(f.name), f.comment) for f in own.fields)
