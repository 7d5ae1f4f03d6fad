"""The session's temporary variables and functions in a Spark session: brought there, and read back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from gateway.delta.schema import parse_schema
from gateway.engine.base import Definition, SessionChange, SessionState
from gateway.errors import UnsupportedError
from gateway.runner.session_definitions import declared
from gateway.sql.read.declarations import defined
from gateway.sql.read.statement import Statement as Read
from gateway.sql.spark.literals import spark_value
from gateway.sqltypes import quoted_text

_WITHOUT_TEXT = ("array", "map", "struct", "variant", "binary")


def prepare(
    spark: Any,
    known: dict[str, Definition],
    state: SessionState,
    respell: Callable[[Definition], str],
    noted: Callable[[], AbstractContextManager[object]],
) -> None:
    """Bring a Spark session, which has `known`, to the definitions of `state`.

    Why a function cannot be made any more (others have dropped what it calls) is `noted`, and no fault of the statement.
    """
    for key in [k for k in known if k not in state.definitions]:
        _drop(spark, key, known)
    for key, definition in state.definitions.items():
        found = known.get(key)
        if found == definition:
            continue
        with noted() if key.startswith("function ") else nullcontext():
            if found is None or found.text != definition.text:
                if found is not None:
                    _drop(spark, key, known)
                spark.sql(respell(definition))
            if definition.value:
                spark.sql(f"SET VARIABLE `{definition.name}` = {definition.value}")
            known[key] = definition


def _drop(spark: Any, key: str, known: dict[str, Definition]) -> None:
    kind, _, name = key.partition(" ")
    spark.sql(f"DROP TEMPORARY {kind.upper()} IF EXISTS `{name}`")
    del known[key]


def changes(
    statement: Read, spark: Any, known: dict[str, Definition], state: SessionState
) -> tuple[SessionChange, ...]:
    """What a statement that has just run on `spark` did to the session's definitions; `known` follows.

    Raises UnsupportedError for a variable whose value has no text, which is dropped again.
    """
    found: list[SessionChange] = []
    for change in declared(statement, state):
        if change.definition is None:
            known.pop(change.name, None)
            found.append(change)
        else:
            found.append(_put(_valued(change.definition, spark), known))
    if defined(statement).sets:
        found += [_put(_valued(d, spark), known) for d in state.definitions.values() if d.key.startswith("variable ")]
    return tuple(found)


def _put(definition: Definition, known: dict[str, Definition]) -> SessionChange:
    known[definition.key] = definition
    return SessionChange("put_definition", definition.key, definition=definition)


def _valued(definition: Definition, spark: Any) -> Definition:
    if not definition.key.startswith("variable "):
        return definition
    name = f"`{definition.name}`"
    frame = spark.sql(f"SELECT session.{name} AS value")
    kind = frame.schema[0].dataType.simpleString()
    if kind.startswith(_WITHOUT_TEXT):
        try:
            (column,) = parse_schema(frame.schema.jsonValue())
            return replace(definition, value=spark_value(frame.toArrow().column(0)[0], column.type))
        except UnsupportedError:
            spark.sql(f"DROP TEMPORARY VARIABLE IF EXISTS {name}")
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE", f"A variable of type {kind.upper()} is not supported."
            ) from None
    text = spark.sql(f"SELECT CAST(session.{name} AS STRING)").collect()[0][0]
    value = "NULL" if text is None else quoted_text(text)
    return replace(definition, value=f"CAST({value} AS {kind})")
