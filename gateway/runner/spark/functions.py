"""Lasting SQL functions: tried on Spark, then kept by the catalog."""

from __future__ import annotations

from gateway.catalog.objects import StoredFunction
from gateway.engine.base import Emit, Finished, Planned, Statement
from gateway.engine.spark.engine import SparkSessionSlot
from gateway.errors import unsupported
from gateway.runner import objects
from gateway.runner.answer import RESULT
from gateway.runner.spark.names import spark_name, spark_parts
from gateway.runner.spark.prepared import Preparation
from gateway.runner.spark.results import finish
from gateway.runner.spark.sent import sent
from gateway.runner.spark.settings import kept_settings
from gateway.sql.read.made_view import MadeFunction
from gateway.sql.read.statement import read_statement
from gateway.sql.spark.respell import Head, Respelt


def function_head(prepared: Preparation, job: Statement, function: MadeFunction) -> tuple[objects.Place, Head]:
    """Where a function goes, and how Spark's statement for it begins."""
    place = objects.place_of(prepared.names.tables(job), function.name, "no function can be created", function.span)
    return place, Head(function.start, f"CREATE OR REPLACE FUNCTION {spark_name(place.full)} ")


def make_function(
    prepared: Preparation,
    job: Statement,
    function: MadeFunction,
    place: objects.Place,
    respelt: Respelt,
    slot: SparkSessionSlot,
    emit: Emit,
) -> None:
    """CREATE FUNCTION."""
    if read_statement(job.text).markers:
        raise unsupported("parameter markers in a function", function.span)
    if not objects.may_make_function(place, function.replaces, function.if_not_exists, function.span):
        finish(job, "CREATE_FUNCTION", emit, writes=False)
        return
    where, name = spark_parts(place)
    key = where, name.lower()
    prepared.prepare(job, slot, respelt, emit)
    if key in slot.functions:  # Spark would replace what others have dropped, and fail
        prepared.renew(job, slot, respelt, emit)
    prepared.engine.mirror.database(where, emit)
    slot.functions[key] = object()  # what is tried here is not what is kept
    try:
        slot.spark.sql(sent(slot.spark, respelt))
    finally:
        prepared.engine.mirror.forget("FUNCTION", where, name)
    made = StoredFunction(place.full, function.text, job.session.catalog, job.session.schema, kept_settings(job))
    emit(Planned("CREATE_FUNCTION", "spark", job.route, RESULT, writes=True, is_query=False))
    objects.put_function(place, made, function.replaces, function.if_not_exists, function.span)
    emit(Finished(0))
