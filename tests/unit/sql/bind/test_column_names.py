"""Names, types and nullability of result columns, against Spark's (tests/data/column-names.csv)."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from gateway.errors import GatewayError, UnsupportedError
from gateway.worker_jobs import Parameter, TempView
from tests.unit.sql.bind.analysis import analysed, failure

DATA = Path(__file__).parents[3] / "data" / "column-names.csv"

_T = """SELECT * FROM VALUES (1, 2L, 1.5D, CAST(1.25 AS DECIMAL(10,2)), 'x', DATE'2020-01-01', TIMESTAMP'2020-01-01 00:00:00',
    true, array(1,2), map('k',1), named_struct('a',1,'b',named_struct('c','d')), X'01')
    AS v(a, b, x, d, s, dt, ts, f, arr, m, st, bin)"""
_U = "SELECT * FROM VALUES (1, 'p') AS v(a, `My Col`)"
VIEWS = {n: TempView(n, query, (), "main", "default") for n, query in (("t", _T), ("u", _U))}

# Arguments of the statements with markers, by the comment behind the statement.
ARGUMENTS = {
    "args {'p': 5}": Parameter("p", "INT", "5"),
    "args [5]": Parameter(None, "INT", "5"),
    "args ['a']": Parameter(None, "STRING", "a"),
    "args {'d': datetime.date(2020, 1, 1)}": Parameter("d", "DATE", "2020-01-01"),
    "args {'n': None}": Parameter("n", "VOID", None),
}

Column = tuple[str, str, str]
Answer = tuple[Column, ...] | str

# Statements that the gateway refuses by name, and why; everything else must be equal.
REFUSED: dict[str, str] = {
    "c290": "rand with a seed",
    "c309": "window",
    "c312": "COLLATE",
    "c313": "collate",
    "c315": "COLLATE",
}


def expected() -> dict[str, tuple[str, Answer]]:
    """Statement id -> its text and Spark's columns or error."""
    texts: dict[str, str] = {}
    columns: dict[str, list[Column]] = defaultdict(list)
    errors: dict[str, str] = {}
    with DATA.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            texts[row["id"]] = row["sql"]
            if row["error"]:
                errors[row["id"]] = row["error"]
            else:
                columns[row["id"]].append((row["name"], row["type"], row["nullable"]))
    return {i: (text, errors.get(i) or tuple(columns[i])) for i, text in texts.items()}


STATEMENTS = expected()


def answer(sql: str) -> Answer:
    """Columns or error of the gateway; UnsupportedError passes."""
    arguments = ARGUMENTS.get(sql.partition(" -- ")[2])
    try:
        query = analysed(sql, views=VIEWS, parameters=[arguments] if arguments else ())
    except UnsupportedError:
        raise
    except GatewayError as error:
        return failure(error)
    return tuple((f.name, f.type.simple, str(f.nullable).lower()) for f in query.schema.fields)


@pytest.mark.parametrize("id_", [i for i in STATEMENTS if i not in REFUSED])
def test_columns(id_: str) -> None:
    sql, want = STATEMENTS[id_]
    assert answer(sql) == want


@pytest.mark.parametrize("id_", list(REFUSED))
def test_refused(id_: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        answer(STATEMENTS[id_][0])
    assert REFUSED[id_] in str(raised.value)


def test_refused_count() -> None:
    assert (len(STATEMENTS), len(REFUSED)) == (432, 5)
