"""What no engine plans in time is refused before it is tried, and nothing else is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gateway.errors import ResourceError
from tests.conformance.session import Session, open_runner


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder: Path = tmp_path_factory.mktemp("extent")
    return Session(open_runner(folder), "UTC")


def _doubled(levels: int, how: str) -> str:
    parts = ["t0 AS (SELECT id FROM range(1))"]
    parts += [f"t{i} AS ({how.format(last=f't{i - 1}')})" for i in range(1, levels + 1)]
    return f"WITH {', '.join(parts)} SELECT count(*) AS n FROM t{levels}"


JOINED = "SELECT a.id FROM {last} a JOIN {last} b ON a.id = b.id"
UNITED = "SELECT id FROM {last} UNION ALL SELECT id FROM {last}"


def _nested(levels: int, head: str, first: str) -> str:
    return f"SELECT {first} AS n FROM range(1) t WHERE " + head * levels + "true" + ")" * levels


@pytest.mark.parametrize(
    "text",
    [
        _doubled(13, JOINED),
        _doubled(60, JOINED),
        _doubled(20, UNITED),
        _doubled(60, UNITED),
        _nested(200, "EXISTS (SELECT 1 FROM range(1) WHERE ", "1"),
        _nested(200, "1L IN (SELECT id FROM range(2) WHERE ", "1"),
        _nested(21, "1L IN (SELECT id FROM range(2) WHERE ", "1"),
        _nested(40, "NOT EXISTS (SELECT 1 FROM range(1) WHERE ", "1"),
    ],
)
def test_what_takes_for_ever_to_plan_is_refused_at_once(session: Session, text: str) -> None:
    began = time.process_time()
    with pytest.raises(ResourceError, match="STATEMENT_TOO_COMPLEX"):
        session.execute(text)
    assert time.process_time() - began < 5  # a second, on a machine without other work


@pytest.mark.parametrize(
    "head",
    [
        "1L IN (SELECT id FROM range(2) WHERE ",
        "1L NOT IN (SELECT id FROM range(2) WHERE ",
        "EXISTS (SELECT 1 FROM range(1) WHERE ",
    ],
)
def test_queries_inside_of_each_other_are_looked_through_once(session: Session, head: str) -> None:
    began = time.process_time()
    assert len(session.execute(_nested(17, head, "1")).rows()) < 2
    assert time.process_time() - began < 5  # it would be half a minute if each were looked through twice


def _in_a_row(form: str, count: int) -> str:
    """An operand in itself again and again, over columns that may be NULL."""
    written = "v"
    for i in range(count):
        written = form.format(x=written, c="kj"[i % 2])
    columns = "if(id = 3, NULL, id) AS v, if(id = 4, NULL, id + 1) AS k, if(id = 5, NULL, id + 2) AS j"
    return f"SELECT count({written}) AS n FROM (SELECT {columns} FROM range(9))"


@pytest.mark.parametrize(
    "form",
    [
        "({x} DIV {c})",
        "({x} % ({c} + 1))",
        "({c} + {x})",
        "(-{x} / {c})",
        "greatest({x} / {c}, {c})",
        "coalesce({x} / {c}, {c})",
        "string(length({x}) / {c})",
        "try_divide({x}, {c})",
    ],
)
def test_operands_that_may_fail_in_a_row_are_looked_through_once(session: Session, form: str) -> None:
    began = time.process_time()
    assert len(session.execute(_in_a_row(form, 24)).rows()) == 1
    assert time.process_time() - began < 5  # a minute and more if what each is made of were asked twice


@pytest.mark.parametrize(
    "text",
    [
        _doubled(6, JOINED),
        _doubled(8, UNITED),
        _nested(8, "EXISTS (SELECT 1 FROM range(1) WHERE ", "1"),
        "SELECT " + "(SELECT 1 + " * 40 + "0" + ")" * 40 + " AS n",
        "SELECT count(*) AS n FROM (" + " UNION ALL ".join(f"SELECT {i} AS a" for i in range(200)) + ")",
        "SELECT count(*) AS n FROM range(10) WHERE id IN (" + ",".join(map(str, range(20_000))) + ")",
    ],
)
def test_what_is_planned_in_time_is_not(session: Session, text: str) -> None:
    assert len(session.execute(text).rows()) == 1
