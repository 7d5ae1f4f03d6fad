"""Expectations: predicates that rows of a table should fulfil, kept in the table's properties, counted by Spark after a run.

``gateway.expect.<name>`` holds a predicate of Spark SQL, ``gateway.expect.<name>.action`` one of `ACTIONS`. Plain Spark ignores
both. A row for which the predicate is false or NULL fails it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.pipelines.definitions import Dataset
from gateway.pipelines.events import reason
from gateway.pipelines.project import ProjectError
from gateway.sqltypes import quote_part

PREFIX = "gateway.expect."
WARN, FAIL, COUNT = "warn", "fail", "count"
ACTIONS = (WARN, FAIL, COUNT)
_ACTION = "action"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What rows of a table should fulfil, and what follows if some do not."""

    name: str
    predicate: str
    action: str = WARN


@dataclass(frozen=True, slots=True)
class Outcome:
    """An expectation counted on one version: of `checked` rows `failing` do not fulfil it.

    `failing_added` of the rows that the run has added, None where it has replaced rows. With `error` nothing could be counted.
    """

    expectation: Expectation
    checked: int | None
    failing: int | None
    failing_added: int | None = None
    error: str | None = None

    @property
    def is_met(self) -> bool:
        return self.failing == 0

    @property
    def fails_run(self) -> bool:
        return self.expectation.action == FAIL and not self.is_met


def parse(table: str, properties: Mapping[str, str]) -> list[Expectation]:
    """The expectations among the properties of `table`, by name. Raises ProjectError naming table and key."""
    predicates: dict[str, str] = {}
    actions: dict[str, str] = {}
    for key, value in sorted(properties.items()):
        if not key.startswith(PREFIX):
            continue
        name, dot, rest = key[len(PREFIX) :].partition(".")
        if not name or (dot and rest != _ACTION):
            raise ProjectError(table, f"unknown property {key}: {PREFIX}NAME and {PREFIX}NAME.{_ACTION} are known")
        if dot and value.lower() not in ACTIONS:
            raise ProjectError(table, f"{key} is '{value}', not one of {', '.join(ACTIONS)}")
        if not dot and not value.strip():
            raise ProjectError(table, f"{key} has no predicate")
        (actions if dot else predicates)[name] = value.lower() if dot else value
    for name in actions:
        if name not in predicates:
            raise ProjectError(table, f"{PREFIX}{name}.{_ACTION} stands without {PREFIX}{name}")
    return [Expectation(name, predicate, actions.get(name, WARN)) for name, predicate in predicates.items()]


def check(session: Any, dataset: Dataset, expectations: Sequence[Expectation]) -> None:
    """Analyse the predicates against the columns of `dataset`. Raises ProjectError for one that is no predicate on them."""
    if not expectations or dataset.columns is None:
        return
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    rows = session.createDataFrame([], StructType.fromJson(json.loads(dataset.columns)))
    for expectation in expectations:
        try:
            rows.selectExpr(_fails(expectation)).schema  # noqa: B018 (asks the server)
        except PySparkException as error:
            raise ProjectError(
                dataset.label, f"{PREFIX}{expectation.name} = {expectation.predicate}: {reason(str(error))}"
            ) from error


def count(
    session: Any, dataset: Dataset, expectations: Sequence[Expectation], before: int | None, after: int, appended: bool
) -> list[Outcome]:
    """Count failing rows of version `after`; with `appended`, also how many of them came after version `before`."""
    if not expectations:
        return []
    from pyspark.errors import PySparkException

    try:
        return _count(session, dataset, expectations, before, after, appended)
    except PySparkException as error:
        if len(expectations) == 1:
            return [Outcome(expectations[0], None, None, error=reason(str(error)))]
    # One predicate of several raises an error on some row: the others are counted without it.
    return [o for e in expectations for o in count(session, dataset, [e], before, after, appended)]


def _count(
    session: Any, dataset: Dataset, expectations: Sequence[Expectation], before: int | None, after: int, appended: bool
) -> list[Outcome]:
    now = _query(session, dataset, expectations, after)
    then = _earlier(session, dataset, expectations, before) if appended else None
    return [
        Outcome(expectation, now[0], now[i], None if then is None else now[i] - then[i])
        for i, expectation in enumerate(expectations, 1)
    ]


def _earlier(
    session: Any, dataset: Dataset, expectations: Sequence[Expectation], before: int | None
) -> Sequence[int] | None:
    """Counts of the version before the run: rows were only added since, so the difference is that of the added ones."""
    from pyspark.errors import AnalysisException

    if before is None:
        return [0] * (len(expectations) + 1)
    try:
        return _query(session, dataset, expectations, before)
    except AnalysisException:
        return None  # that version lacks a column of the predicates


def _query(session: Any, dataset: Dataset, expectations: Sequence[Expectation], at: int) -> list[int]:
    table = f"{quote_part(dataset.schema)}.{quote_part(dataset.name)} VERSION AS OF {at}"
    counts = ", ".join(f"count_if({_fails(e)})" for e in expectations)
    row = session.sql(f"SELECT count(*), {counts} FROM {table}").collect()[0]
    return [int(value) for value in row]


def _fails(expectation: Expectation) -> str:
    # The line break ends a comment at the predicate's end; `IS NOT TRUE` takes false and NULL, and only a BOOLEAN.
    return f"({expectation.predicate}\n) IS NOT TRUE"
