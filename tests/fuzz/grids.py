"""Cases of a grid, all of which are asked about once, in an order that a seed makes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.fuzz.machine import Judgement, Machine
from tests.fuzz.outcome import Outcome
from tests.fuzz.tree import Case

Cell = Callable[[Random], Case]


@dataclass(frozen=True)
class Grid:
    """What is asked about: all `cells`, of each of which some chance makes a case of `kind`; `size` of them are a step."""

    kind: str
    cells: Callable[[], Sequence[Cell]]
    size: int = 128

    def make(self, seed: int, number: int) -> list[Case]:
        """Some cases; those of numbers that follow each other are all, before any is there again."""
        cells = self.cells()
        every = list(range(len(cells)))
        Random(f"{seed} {self.kind}").shuffle(every)
        random = Random(f"{seed} {self.kind} {number}")
        return [cells[every[(number * self.size + i) % len(every)]](random) for i in range(self.size)]

    def step(self, machine: Machine, seed: int, number: int) -> Judgement:
        """Ask the embedded engine about the cases of that number."""
        cases = self.make(seed, number)
        return functools.partial(_judge, machine, cases, [machine.embedded.ask(one) for one in cases])


def combined(asked: Callable[..., Case], *parts: Sequence[str]) -> Callable[[], Sequence[Cell]]:
    """The cells of all combinations of one of each of some `parts`, of which `asked` makes cases."""

    @functools.cache
    def cells() -> Sequence[Cell]:
        return [functools.partial(asked, *chosen) for chosen in itertools.product(*parts)]

    return cells


def _judge(machine: Machine, cases: Sequence[Case], told: Sequence[Outcome]) -> None:
    alone = []
    for one, ours in zip(cases, told, strict=True):
        if ours.kind == "refused":
            machine.refused(one, ours)
        elif len(one.statements) > 1:
            machine.judge(one, ours)
        else:
            alone.append((one, ours))
    machine.settle_each(alone)
