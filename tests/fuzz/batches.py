"""Expressions by the dozen: those that the embedded engine answers go to Spark as columns of one SELECT."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from gateway.sql.functions import CATALOGUE
from tests.fuzz.expressions import Expressions
from tests.fuzz.machine import Judgement, Machine
from tests.fuzz.outcome import Outcome
from tests.fuzz.scope import Column, Scope, values_relation
from tests.fuzz.signatures import learnt
from tests.fuzz.tally import seldom
from tests.fuzz.tree import Case, Tree, case, listed, query
from tests.fuzz.values import ZONES

SIZE = 256  # a SELECT costs Spark much more than a column of it
_GENERATORS = 24  # in a batch: Spark takes one of them in a SELECT
_DEPTHS = (1, 1, 1, 2, 2, 3)
_TOGETHER = 6  # are put to the embedded engine in one SELECT, as long as they seldom raise
_RISK = 0.15  # of calls of a function raise: what uses it is asked alone
_CALLS = 20  # of a function, before its risk is known
_SELDOM = 0.5  # of a batch are calls of functions that were called too seldom so far
_TRIES = 60
_FEW = 4  # are asked one by one sooner than halved
_LISTS = frozenset(
    {"collect_list", "collect_set", "array_agg", "first", "last", "first_value", "last_value", "any_value"}
)


@dataclass(frozen=True, slots=True)
class Batch:
    """Expressions over one VALUES relation; `single` ones cannot stand beside each other."""

    columns: tuple[Column, ...]
    rows: int
    zone: str
    cases: tuple[tuple[Tree, Case], ...]
    single: bool = False

    def whole(self, members: Sequence[Tree]) -> Case:
        """Some of the expressions as columns of one statement."""
        named = listed(tuple(members))
        return case("expressions", query("SELECT ", named, " FROM ", relation(self, members)), zone=self.zone)


def relation(batch: Batch | Scope, members: Sequence[Tree], rows: int = 0) -> Tree:
    """VALUES of the columns that the expressions use."""
    text = " ".join(map(str, members)).lower()
    used = [c for c in batch.columns if f"{c.text} " in f"{_spaced(text)} "]
    return values_relation(used, batch.rows or rows)


def _spaced(text: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text)


def make(seed: int, number: int, few: Sequence[str] = ()) -> Batch:
    """The batch of that number: its functions follow each other, so that all have their turn, those of `few` more often."""
    random = Random(f"{seed} expressions {number}")
    rows = random.choice((1, 1, 1, 2, 3))
    scope = Scope([], rows, edge=random.choice((0.0, 0.1, 0.2, 0.5)), nothing=random.choice((0.0, 0.1, 0.3)))
    zone = random.choice(ZONES) if random.random() < 0.6 else "UTC"
    maker = Expressions(random, scope, edge=random.choice((0.0, 0.05, 0.2)))
    wanted = "generator" if number % 15 == 14 else "aggregate" if number % 5 == 4 else "scalar"
    if few and random.random() < _SELDOM:
        wanted = _beside(random.choice(few))
    rest = [n for n in few if _beside(n) == wanted]
    names = sorted(n for n in learnt().calls if CATALOGUE[n].kind == wanted)
    Random(f"{seed} {wanted} {number * SIZE // len(names)}").shuffle(names)
    at = number * SIZE
    made: list[tuple[Tree, frozenset[str], str]] = []
    for i in range(_GENERATORS if wanted == "generator" else SIZE):
        maker.used = set()
        depth = random.choice(_DEPTHS)
        if rest and random.random() < _SELDOM:
            label = random.choice(rest)
            tree = _of(maker, label, depth)
        elif wanted == "scalar" and random.random() < 0.25:
            tree, label = maker.any(depth + 1), ""
        elif wanted == "aggregate" and random.random() < 0.04:
            tree, label = maker.ranked(), ""
        else:
            label = names[(at + i) % len(names)]
            tree = maker.call(label, depth)
        made.append((tree, frozenset(maker.used), label))
    cases = tuple((tree, _case(tree, scope, zone, used, label, f"{seed}/{number}")) for tree, used, label in made)
    return Batch(tuple(scope.columns), rows, zone, cases, single=wanted == "generator")


def _beside(name: str) -> str:
    """The kind of functions beside which one may stand in a SELECT."""
    kind = CATALOGUE[name].kind
    return kind if kind in ("aggregate", "generator") else "scalar"


def _of(maker: Expressions, name: str, depth: int) -> Tree:
    """An expression with a function or an operator; operators come as they do in expressions of any form."""
    if name in learnt().calls:
        return maker.call(name, depth)
    tree = maker.windowed(name) if CATALOGUE[name].kind == "window" else maker.any(depth + 1)
    for _ in range(_TRIES):
        if name in maker.used:
            break
        maker.used = set()
        tree = maker.ranked() if CATALOGUE[name].kind == "aggregate" else maker.any(depth + 1)
    return tree


def _case(tree: Tree, scope: Scope, zone: str, used: frozenset[str], label: str, seed: str) -> Case:
    source = relation(scope, [tree])
    labels = {label, *(("unordered lists",) if used & _LISTS else ())} - {""}
    text = query("SELECT ", listed((tree,)), " FROM ", source)
    return case("expressions", text, zone=zone, functions=used, labels=frozenset(labels), seed=seed)


def step(machine: Machine, seed: int, number: int) -> Judgement:
    """Ask about the batch of that number."""
    return asked(machine, make(seed, number, seldom(machine.called)))


def asked(machine: Machine, batch: Batch) -> Judgement:
    """Ask the embedded engine about all expressions of a batch."""
    told = _told(machine, batch)
    for (_, one), ours in zip(batch.cases, told, strict=True):
        machine.called.update(one.functions if ours.kind != "refused" else ())
        machine.unanswered.update(one.functions if ours.kind != "answer" else ())
    return functools.partial(_judge, machine, batch, told)


def _told(machine: Machine, batch: Batch) -> list[Outcome]:
    """What the embedded engine says to each: to a few in one SELECT where they are unlikely to raise, and do not."""
    told: dict[int, Outcome] = {}
    safe = [] if batch.single else [i for i, (_, one) in enumerate(batch.cases) if not _risky(machine, one)]
    for at in range(0, len(safe), _TOGETHER):
        group = safe[at : at + _TOGETHER]
        whole = machine.embedded.ask(batch.whole([batch.cases[i][0] for i in group]))
        if whole.kind == "answer" and len(whole.columns) == len(group):
            told |= dict(zip(group, _columns(whole), strict=True))
    return [told[i] if i in told else machine.embedded.ask(one) for i, (_, one) in enumerate(batch.cases)]


def _risky(machine: Machine, one: Case) -> bool:
    """Whether it calls what often raises or is refused."""
    called = ((machine.called[f], machine.unanswered[f]) for f in one.functions)
    return any(n >= _CALLS and unanswered > n * _RISK for n, unanswered in called)


def _columns(whole: Outcome) -> list[Outcome]:
    """An answer for each column."""
    return [Outcome("answer", [c], [[row[i]] for row in whole.rows]) for i, c in enumerate(whole.columns)]


def _judge(machine: Machine, batch: Batch, told: Sequence[Outcome]) -> None:
    answered: list[tuple[Tree, Case, Outcome]] = []
    raised: list[tuple[Case, Outcome]] = []
    for (tree, one), ours in zip(batch.cases, told, strict=True):
        if ours.kind == "refused":
            machine.refused(one, ours)
        elif ours.kind == "error":
            raised.append((one, ours))
        else:
            answered.append((tree, one, ours))
    _judge_answered(machine, batch, answered)
    machine.settle_each(raised)


def _judge_answered(machine: Machine, batch: Batch, members: list[tuple[Tree, Case, Outcome]]) -> None:
    """Ask Spark about all members at once; where it raises, about the halves."""
    if not members:
        return
    if len(members) <= _FEW or batch.single:
        machine.settle_each([(one, ours) for _, one, ours in members])
        return
    told = machine.spark.ask(batch.whole([tree for tree, _, _ in members]))
    if told.kind == "answer" and len(told.columns) == len(members):
        for (_, one, ours), theirs in zip(members, _columns(told), strict=True):
            machine.settle(one, theirs, ours)
        return
    middle = len(members) // 2
    _judge_answered(machine, batch, members[:middle])
    _judge_answered(machine, batch, members[middle:])
