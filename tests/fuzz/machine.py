"""Asks both engines, judges, makes what differs smaller and writes it down."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from tests.fuzz.compare import SOFT, Difference, compare
from tests.fuzz.exceptions import WAYS, excuse
from tests.fuzz.outcome import Outcome
from tests.fuzz.relations import Table
from tests.fuzz.shrink import shrink
from tests.fuzz.tally import Tally
from tests.fuzz.tree import Case, Tree, case, query

_SHRUNK = 3  # of differences that look alike, before and after they are made smaller
_VALUES = re.compile(r"'(?:[^'\\]|\\.)*'|\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[LSYDF]?\b|\bc\d+\b")


def _print(text: str) -> None:
    print(text, flush=True)


#: What is left to do for a case, once the embedded engine has answered: ask Spark, judge.
Judgement = Callable[[], None]


class Engine(Protocol):
    """What answers a case."""

    def ask(self, case: Case) -> Outcome:
        """The outcome of its last statement."""
        ...


class Oracle(Engine, Protocol):
    """The engine that is right."""

    def ask(self, case: Case, *, way: str = "") -> Outcome:
        """The outcome of its last statement, in one of `exceptions.WAYS` or as ever."""
        ...

    def ask_all(self, cases: Sequence[Case]) -> list[Outcome]:
        """The outcomes of cases of one statement and of one time zone."""
        ...


@dataclass(slots=True)
class Machine:
    """Two engines and what was found so far; findings are appended to `found`, a JSON object a line."""

    embedded: Engine
    spark: Oracle
    tally: Tally
    found: Path
    tell: Callable[[str], None] = _print
    budget: int = 80
    tables: Sequence[Table] = ()
    #: How often functions were called so far, by what has not been judged yet too: the same with the same seed.
    called: Counter[str] = field(init=False)
    #: Of these calls, those that the embedded engine did not answer.
    unanswered: Counter[str] = field(default_factory=Counter)
    _alike: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.called = Counter(self.tally.hits)

    def asked(self, one: Case) -> Judgement:
        """Ask the embedded engine about a case."""
        return functools.partial(self.judge, one, self.embedded.ask(one))

    def judge(self, one: Case, ours: Outcome) -> None:
        """Ask Spark about what the embedded engine has answered, and keep what they say."""
        if ours.kind == "refused":
            self.refused(one, ours)
            return
        self.settle(one, self.spark.ask(one), ours)

    def refused(self, one: Case, ours: Outcome) -> None:
        """A refusal by name is right, and counted."""
        self.tally.count(one.kind, "refused", one.functions)
        self.tally.refusals[_VALUES.sub("?", ours.message)[:70]] += 1

    def settle_each(self, members: Sequence[tuple[Case, Outcome]]) -> None:
        """Ask Spark about each of some cases in a statement of its own, all at once."""
        for (one, ours), told in zip(members, self.spark.ask_all([one for one, _ in members]), strict=True):
            self.settle(one, told, ours)

    def settle(self, one: Case, spark: Outcome, ours: Outcome) -> None:
        """Judge two outcomes of a case."""
        difference = compare(one, spark, ours)
        if difference is None:
            self.tally.count(one.kind, "same" if ours.kind == "answer" else "both raise", one.functions)
            return
        excused = (
            excuse(one, difference, spark, ours)
            or self._spark_at_odds(one, difference, ours)
            or self._other_row(one, difference)
        )
        if excused is not None:
            self.tally.count(one.kind, "excused", one.functions)
            self.tally.excused[excused] += 1
            return
        self.tally.count(one.kind, "difference", one.functions)
        self.tally.differences[difference.kind] += 1
        self._shrink_and_tell(one, difference)

    def _spark_at_odds(self, one: Case, difference: Difference, ours: Outcome) -> str | None:
        """Spark says in another of its ways what we say: it is at odds with itself."""
        ways = (way for way in WAYS if difference.kind in way.kinds)
        return next((w.name for w in ways if compare(one, self.spark.ask(one, way=w.name), ours) is None), None)

    def _other_row(self, one: Case, difference: Difference) -> str | None:
        """Both engines say the same of each row alone: of several that raise, they have met another one first."""
        alone = one_row_each(one) if difference.kind == "condition" else []
        asked = ((row, self.embedded.ask(row)) for row in alone)
        if not alone or any(compare(row, self.spark.ask(row), ours) is not None for row, ours in asked):
            return None
        return "another row that raises is met first"

    def _shrink_and_tell(self, one: Case, difference: Difference) -> None:
        looks = (
            f"{one.kind} {difference.kind} {_VALUES.sub('?', difference.detail)[:80]} {','.join(sorted(one.labels))}"
        )
        looks = looks if difference.kind not in SOFT else difference.detail
        self._alike[looks] += 1
        if self._alike[looks] > _SHRUNK or (difference.kind in SOFT and self._alike[looks] > 1):
            return
        wanted = difference.kind
        # While the order is in question, so must what it is asked for be; else nothing depends on it.
        one = one if wanted == "order" else replace(one, ordered=())
        ordering = _ordering(one) if wanted == "order" else ""
        width = len(self.embedded.ask(one).columns)

        def still(smaller: Case) -> bool:
            ours = self.embedded.ask(smaller)
            if ordering and (_ordering(smaller) != ordering or len(ours.columns) != width):
                return False
            if ours.kind == "refused" or (wanted in ("raised", "crash") and ours.kind != "error"):
                return False
            if wanted not in ("raised", "crash", "condition") and ours.kind != "answer":
                return False
            spark = self.spark.ask(smaller)
            again = compare(smaller, spark, ours)
            if again is None or again.kind != wanted or excuse(smaller, again, spark, ours) is not None:
                return False
            return _essence(again) == _essence(difference)

        small = shrink(one, still, self.budget)
        text = _VALUES.sub("?", "; ".join(small.statements))
        self._alike[f"{wanted} {text}"] += 1
        if self._alike[f"{wanted} {text}"] == 1:
            self._write(small, difference.kind)

    def _write(self, small: Case, kind: str) -> None:
        spark, ours = self.spark.ask(small), self.embedded.ask(small)
        now = compare(small, spark, ours)
        record: dict[str, Any] = {
            "difference": kind,
            "detail": now.detail if now is not None else "gone when asked again",
            "kind": small.kind,
            "seed": small.seed,
            "zone": small.zone,
            "statements": small.statements,
            "spark": str(spark),
            "ours": str(ours),
            "probe": probe(small, spark, self.spark),
        }
        if small.parameters:
            record["parameters"] = [[p.name, p.type, p.value] for p in small.parameters]
        self.found.parent.mkdir(parents=True, exist_ok=True)
        with self.found.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        shown = ";\n  ".join(small.statements)
        self.tell(f"--- {kind}: {record['detail']} [{small.zone}]\n  {shown}\n  Spark: {spark}\n  ours:  {ours}")


def one_row_each(one: Case) -> list[Case]:
    """The case over each row of its VALUES alone; nothing where there is one row, or more than one VALUES."""
    found = [(path, piece) for path, piece in one.tree.walk() if piece.kind == "values"]
    if len(found) != 1:
        return []
    path, values = found[0]
    lines = values.parts[1]
    assert isinstance(lines, Tree)
    if len(lines.parts) < 2:
        return []
    rows = (replace(lines, parts=(line,)) for line in lines.parts)
    trees = (one.tree.put(path, replace(values, parts=(values.parts[0], row, *values.parts[2:]))) for row in rows)
    return [replace(one, tree=tree) for tree in trees]


def _ordering(one: Case) -> str:
    """The last ORDER BY and what follows it."""
    return one.statements[-1].rpartition("ORDER BY")[2]


def _essence(difference: Difference) -> str:
    """What must stay the same while a statement gets smaller: conditions and types, but no names."""
    if difference.kind in ("rows", "order", "names", "nullability"):
        return difference.kind
    return _VALUES.sub("?", difference.detail) if difference.kind != "types" else "types"


def probe(one: Case, spark: Outcome, oracle: Engine) -> dict[str, Any] | None:
    """A line of tests/data/query-probes.jsonl; None for what it cannot hold: sessions, zones, parameters."""
    if len(one.statements) != 1 or one.zone != "UTC" or one.parameters:
        return None
    sql = one.statements[0]
    if spark.kind != "answer":
        return {"sql": sql, "condition": spark.condition, "sqlstate": spark.sqlstate}
    names = [f"c{i}" for i in range(len(spark.columns))]
    texts = ", ".join(f"CAST({n} AS STRING)" for n in names)
    shown = oracle.ask(case(one.kind, query(f"SELECT {texts} FROM ({sql}) AS q({', '.join(names)})")))
    return {"sql": sql, "columns": [list(c) for c in spark.columns], "rows": shown.rows} if shown.rows else None
