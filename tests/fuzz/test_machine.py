"""The fuzzing machine itself, without Spark: what it makes, what it sees, and how small it makes what it found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.sql.read.commands import parse_command
from gateway.sql.read.statement import read_statement
from tests.fuzz import batches, brackets, neighbours, queries, reports, sessions
from tests.fuzz.compare import Difference, compare
from tests.fuzz.embedded import Embedded
from tests.fuzz.exceptions import excuse
from tests.fuzz.machine import Machine
from tests.fuzz.outcome import Outcome
from tests.fuzz.run import endless, run
from tests.fuzz.shrink import shrink
from tests.fuzz.signatures import learnt
from tests.fuzz.table import table, write
from tests.fuzz.tally import Tally
from tests.fuzz.tree import Case, Tree, case, expr, listed, optional, query

MAKERS: dict[str, Callable[[int, int], Case]] = {
    "queries": queries.make,
    "reports": reports.make,
    "sessions": sessions.make,
    "neighbours": neighbours.make,
    "expressions": lambda seed, number: batches.make(seed, number).cases[0][1],
}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """One engine for all tests."""
    with closing(Embedded(tmp_path_factory.mktemp("fuzz"))) as engine:
        yield engine


@pytest.mark.parametrize("kind", MAKERS)
def test_a_seed_makes_the_same_statements(kind: str) -> None:
    make = MAKERS[kind]
    once, again, other = ([make(seed, n).statements for n in range(8)] for seed in (7, 7, 8))
    assert once == again
    assert once != other


@pytest.mark.parametrize("kind", ["queries", "reports", "sessions", "expressions"])
def test_what_is_made_parses(kind: str) -> None:
    texts = [text for n in range(25) for text in MAKERS[kind](3, n).statements]
    assert len(set(texts)) >= 25
    for text in texts:
        parse_command(read_statement(text))


def test_most_queries_are_answered(embedded: Embedded) -> None:
    told = [embedded.ask(queries.make(5, n)).kind for n in range(120)]
    assert told.count("answer") >= 0.7 * len(told)


def test_most_expressions_are_answered(embedded: Embedded) -> None:
    told = [embedded.ask(one).kind for n in range(3) for _, one in batches.make(5, n).cases]
    assert told.count("answer") >= 0.7 * len(told)


def test_all_functions_have_their_turn() -> None:
    scalars = {n for n in learnt().calls if learnt().kind(n) == "scalar"}
    rounds = len(scalars) // batches.SIZE * 3
    seen = {name for n in range(rounds) for _, one in batches.make(1, n).cases for name in one.functions}
    assert len(scalars & seen) > 0.9 * len(scalars)


def test_brackets_keep_the_text() -> None:
    for each in neighbours.written():
        if "--" not in each.sql and "/*" not in each.sql:
            assert _plain(str(brackets.tree(each.sql))) == _plain(each.sql.strip().rstrip(";"))


def _plain(text: str) -> str:
    return "".join(text.split()).upper()


ANSWER = Outcome("answer", [("a", "int", False), ("b", "double", True)], [[1, 0.0], [2, None]])
ERROR = Outcome("error", condition="DIVIDE_BY_ZERO")
ASKED = case("queries", query("SELECT 1"))

PLANTED: dict[str, tuple[Outcome, Outcome, str | None]] = {
    "nothing": (ANSWER, replace(ANSWER), None),
    "rows in another order": (ANSWER, replace(ANSWER, rows=ANSWER.rows[::-1]), None),
    "last bits of a float": (ANSWER, replace(ANSWER, rows=[[1, 0.0], [2, None]]), None),
    "last bits of a double as text": (
        replace(ANSWER, rows=[["1.543080634815244", 0.0]]),
        replace(ANSWER, rows=[["1.5430806348152437", 0.0]]),
        None,
    ),
    "digits of a text": (
        replace(ANSWER, rows=[["1.5430806348152440", 0.0]]),
        replace(ANSWER, rows=[["1.5430806358152437", 0.0]]),
        "rows",
    ),
    "a value": (ANSWER, replace(ANSWER, rows=[[1, 0.0], [3, None]]), "rows"),
    "a row too many": (ANSWER, replace(ANSWER, rows=[*ANSWER.rows, [2, None]]), "rows"),
    "the sign of zero": (ANSWER, replace(ANSWER, rows=[[1, -0.0], [2, None]]), "rows"),
    "NULL for a value": (ANSWER, replace(ANSWER, rows=[[1, None], [2, None]]), "rows"),
    "a truth for a number": (ANSWER, replace(ANSWER, rows=[[True, 0.0], [2, None]]), "rows"),
    "a type": (ANSWER, replace(ANSWER, columns=[("a", "bigint", False), ("b", "double", True)]), "types"),
    "a name": (ANSWER, replace(ANSWER, columns=[("A", "int", False), ("b", "double", True)]), "names"),
    "nullability": (ANSWER, replace(ANSWER, columns=[("a", "int", True), ("b", "double", True)]), "nullability"),
    "an error of ours": (ANSWER, ERROR, "raised"),
    "an answer for an error": (ERROR, ANSWER, "answered"),
    "another error": (ERROR, Outcome("error", condition="CAST_INVALID_INPUT"), "condition"),
    "the same error": (ERROR, Outcome("error", condition="DIVIDE_BY_ZERO.SUB"), None),
    "a refusal": (ANSWER, Outcome("refused", condition="UNSUPPORTED_FEATURE"), None),
    "a crash": (ERROR, Outcome("error", condition="INTERNAL_ERROR"), "crash"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_differences_are_seen(name: str) -> None:
    spark, ours, kind = PLANTED[name]
    found = compare(ASKED, spark, ours)
    assert (found.kind if found is not None else None) == kind


def test_the_order_of_sort_keys_counts() -> None:
    ordered = replace(ASKED, ordered=(0,))
    found = compare(ordered, ANSWER, replace(ANSWER, rows=ANSWER.rows[::-1]))
    assert found is not None
    assert found.kind == "order"
    zeros = replace(ANSWER, columns=ANSWER.columns[1:], rows=[[0.0], [-0.0]])
    assert compare(ordered, zeros, replace(zeros, rows=zeros.rows[::-1])) is None


def test_counts_become_a_table(tmp_path: Path) -> None:
    first, second = Tally(seed=3), Tally(seed=4)
    for verdict in ("same", "same", "refused"):
        first.count("queries", verdict, frozenset({"abs"}))
    second.count("queries", "difference")
    second.differences["rows"] += 1
    second.hits["abs"] = 198
    document = tmp_path / "document.md"
    document.write_text("before\n<!-- counts -->\nold\n<!-- end of counts -->\nafter\n")
    write(document, table([first, second]))
    lines = document.read_text().splitlines()
    assert "| queries | 4 | 2 | 0 | 1 | 0 | 1 |" in lines
    assert any("Seeds 3, 4. Differences: 1 rows. 1 of " in line for line in lines)
    assert "old" not in lines
    assert (lines[0], lines[-1]) == ("before", "after")


def test_what_does_not_matter_is_left_out() -> None:
    deep = expr(
        "int", "abs(", expr("int", "(", expr("int", "k"), " + ", expr("int", "fault(", expr("int", "7"), ")"), ")"), ")"
    )
    where = optional(" WHERE ", expr("boolean", "k > 2"))
    whole = query("SELECT ", listed((expr("int", "1"), deep, expr("int", "k"))), " FROM t", where)
    small = shrink(case("queries", "CREATE VIEW t AS SELECT 1 AS k", whole), lambda c: "fault(" in c.statements[-1])
    assert small.statements == ["SELECT fault(7) FROM t"]


def test_columns_of_values_go_together() -> None:
    batch = batches.make(2, 1)
    _, one = next(
        (t, c) for t, c in batch.cases if str(c.tree).count(" AS t(c") and "," in str(c.tree).rpartition("AS t(")[2]
    )
    small = shrink(one, lambda c: "VALUES" in str(c.tree), budget=400)
    assert str(small.tree).rpartition("AS t(")[2].count(",") == 0


class _Faulty:
    """The embedded engine as oracle, but for a planted fault: texts come back in upper case from where `word` stands."""

    def __init__(self, engine: Embedded, word: str) -> None:
        self.engine = engine
        self.word = word

    def ask(self, one: Case, *, way: str = "") -> Outcome:
        told = self.engine.ask(one)
        if self.word in one.statements[-1]:
            told.rows = [[f"{v}!" if isinstance(v, str) else v for v in row] for row in told.rows]
        return told

    def ask_all(self, cases: Sequence[Case]) -> list[Outcome]:
        return [self.ask(one) for one in cases]


def _machine(embedded: Embedded, word: str, folder: Path) -> Machine:
    machine = Machine(embedded, _Faulty(embedded, word), Tally(seed=1), folder / "found.jsonl", tell=lambda text: None)
    machine.budget = 200
    return machine


def test_a_planted_fault_is_found_and_made_small(embedded: Embedded, tmp_path: Path) -> None:
    machine = _machine(embedded, "concat(", tmp_path)
    run(machine, endless(["expressions"]), 700, 120, tmp_path / "state.json")
    found: list[dict[str, Any]] = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert found
    assert {record["difference"] for record in found} == {"rows"}
    assert min(len(record["statements"][0]) for record in found) < 80
    kept = Tally.load(tmp_path / "state.json")
    assert kept.statements == machine.tally.statements
    assert kept.next == machine.tally.next
    assert kept.hits["concat"] > 0
    assert " rows" in kept.report()


def test_no_fault_no_finding(embedded: Embedded, tmp_path: Path) -> None:
    machine = _machine(embedded, "no such word", tmp_path)
    run(machine, endless(["queries", "neighbours", "expressions"]), 60, 120, None)
    assert not (tmp_path / "found.jsonl").exists()
    assert not machine.tally.differences


@pytest.mark.parametrize("everywhere", [False, True])
def test_which_row_raises_first_is_no_difference(embedded: Embedded, tmp_path: Path, everywhere: bool) -> None:
    """An oracle that tells another condition: over both rows only, or of each row alone as well."""

    class Otherwise(_Faulty):
        def ask(self, one: Case, *, way: str = "") -> Outcome:
            told = self.engine.ask(one)
            if everywhere or one.statements[-1].count("), (") == 1:
                told.condition = "DIVIDE_BY_ZERO"
            return told

    machine = _machine(embedded, "", tmp_path)
    machine.spark = Otherwise(embedded, "")
    rows = listed((Tree(("(", listed(("1",)), ")")), Tree(("(", listed(("2147483647",)), ")"))))
    values = Tree((" FROM VALUES ", rows, " AS t(", listed(("c1",)), ")"), "values")
    machine.asked(case("expressions", query("SELECT c1 + 2147483647", values)))()
    assert machine.tally.verdicts["expressions"] == {"difference" if everywhere else "excused": 1}


@pytest.mark.parametrize(
    ("way", "raises", "verdict"),
    [
        ("generated code", "Spark", "excused"),
        ("conditions stay", "Spark", "excused"),
        ("no optimizer", "Spark", "excused"),
        ("conditions stay", "we", "excused"),
        ("no optimizer", "we", "difference"),
        ("", "Spark", "difference"),
    ],
)
def test_an_oracle_that_is_at_odds_with_itself(
    embedded: Embedded, tmp_path: Path, way: str, raises: str, verdict: str
) -> None:
    """Only in one way it says what we say, of a statement that one side raises for."""
    text = "SELECT 1 / 0" if raises == "we" else "SELECT 1"

    class AtOdds(_Faulty):
        def ask(self, one: Case, *, way: str = "") -> Outcome:
            return self.engine.ask(one) if way == told else Outcome("answer") if raises == "we" else ERROR

    told = way or "none"
    machine = _machine(embedded, "", tmp_path)
    machine.spark = AtOdds(embedded, "")
    machine.asked(case("queries", query(text)))()
    assert machine.tally.verdicts["queries"] == {verdict: 1}


def test_bisection_reaches_each_expression(embedded: Embedded, tmp_path: Path) -> None:
    """A batch of which one member raises in the oracle only."""

    class Raising(_Faulty):
        def ask(self, one: Case, *, way: str = "") -> Outcome:
            return ERROR if self.word in one.statements[-1] else self.engine.ask(one)

    machine = _machine(embedded, "", tmp_path)
    machine.spark = Raising(embedded, "initcap(")
    batch = next(b for b in (batches.make(1, n) for n in range(40)) if _answered(embedded, b, "initcap("))
    batches.asked(machine, batch)()
    found = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert {record["difference"] for record in found} == {"answered"}
    assert machine.tally.verdicts["expressions"]["same"] > batches.SIZE / 3


def _answered(embedded: Embedded, batch: batches.Batch, word: str) -> bool:
    return any(word in str(t) and embedded.ask(c).kind == "answer" for t, c in batch.cases)


def test_trees_are_put_together_again() -> None:
    tree = Tree(("a", Tree(("b", Tree(("c",))))))
    paths = {str(piece): path for path, piece in tree.walk()}
    assert str(tree.put(paths["c"], Tree(("d",)))) == "abd"


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    endless = "SELECT sum(a.id * b.id % 7) FROM range(10000000) AS a CROSS JOIN range(10000000) AS b"
    with closing(Embedded(tmp_path, seconds=1.0)) as engine:
        told = [engine.ask(case("queries", query(text))) for text in ("SELECT 1", endless, "SELECT 2")]
    assert [(o.kind, o.condition, o.rows) for o in told] == [
        ("answer", "", [[1]]),
        ("refused", "TOO_SLOW", []),
        ("answer", "", [[2]]),
    ]


@pytest.mark.parametrize(
    ("ours", "excused"),
    [([[1, 2, 2], [2, 2, 3]], "approximate counts"), ([[1, 2, 3], [2, 2, 3]], None), ([[1, 2, 2]], None), ([], None)],
)
def test_a_sketch_excuses_its_own_column_alone(ours: list[list[int]], excused: str | None) -> None:
    asked = case("queries", query("SELECT k, approx_count_distinct(x), max(y) FROM t GROUP BY k"))
    columns = [("k", "int", True), ("a", "bigint", False), ("m", "int", True)]
    spark, own = (Outcome("answer", columns, rows) for rows in ([[1, 1, 2], [2, 1, 3]], ours))
    assert excuse(asked, Difference("rows", "the rows differ"), spark, own) == excused
