"""``python -m tests.fuzz.run``: random statements on both engines until time or number is used up."""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import os
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from tests.conformance.shared import ROOT, unpacked
from tests.fuzz import (
    batches,
    misplaced,
    misplaced_changes,
    mistyped,
    neighbours,
    queries,
    reports,
    sessions,
    tables,
    wrapped,
)
from tests.fuzz.compare import SOFT
from tests.fuzz.embedded import Embedded
from tests.fuzz.machine import Judgement, Machine
from tests.fuzz.outcome import Outcome
from tests.fuzz.spark import Spark
from tests.fuzz.tally import Tally
from tests.fuzz.tree import case, query
from tests.live.spark import missing

_KEPT = ROOT / ".bench" / "fuzz"
_SAVED_SECONDS = 30.0
_AHEAD = 4
_LONG_SECONDS = 1200.0

Step = Callable[[Machine, int, int], Judgement]
#: One step of each kind: a batch of expressions, else one case. It asks the embedded engine, and leaves Spark to what it gives.
STEPS: dict[str, Step] = {
    "expressions": batches.step,
    "queries": queries.step,
    "reports": reports.step,
    "sessions": sessions.step,
    "neighbours": neighbours.step,
    "mistyped": mistyped.GRID.step,
    "misplaced": misplaced.GRID.step,
    "wrapped": wrapped.GRID.step,
    "changes": misplaced_changes.GRID.step,
}
#: Steps of each kind, and their seed, that must show no difference; without the corpora, so that they are the same everywhere.
SLICE = {
    "expressions": 2,
    "queries": 60,
    "reports": 40,
    "neighbours": 40,
    "sessions": 6,
    "mistyped": 2,
    "misplaced": 2,
    "wrapped": 1,
    "changes": 1,
}
SLICE_SEED = 1
#: How many steps of a kind follow each other, where it is more than one.
_TURNS = {"queries": 16, "reports": 16, "neighbours": 8}


def endless(kinds: Sequence[str]) -> Iterator[str]:
    """The kinds in turn, for ever."""
    return itertools.cycle([kind for kind in kinds for _ in range(_TURNS.get(kind, 1))])


def run(machine: Machine, kinds: Iterable[str], statements: int, seconds: float, kept: Path | None) -> None:
    """A step of each of the kinds, until one of the bounds is reached; counts are kept in a file as they grow."""
    begun, before = time.monotonic(), machine.tally.seconds
    first, saved = machine.tally.statements, time.monotonic()
    tally = machine.tally
    with closing(_ahead(machine, kinds)) as steps:
        for kind, judgement in steps:
            judgement()
            tally.next[kind] += 1
            tally.seconds = before + time.monotonic() - begun
            if tally.statements - first >= statements or time.monotonic() - begun >= seconds:
                break
            if kept is not None and time.monotonic() - saved > _SAVED_SECONDS:
                tally.save(kept)
                saved = time.monotonic()
    if kept is not None:
        tally.save(kept)


def _ahead(machine: Machine, kinds: Iterable[str]) -> Generator[tuple[str, Judgement]]:
    """Steps that the embedded engine has answered: it is asked about the next ones while Spark is about the last."""
    numbers = Counter(machine.tally.next)
    waiting: deque[tuple[str, Future[Judgement]]] = deque()
    with ThreadPoolExecutor(1) as asking:
        for kind in kinds:
            waiting.append((kind, asking.submit(STEPS[kind], machine, machine.tally.seed, numbers[kind])))
            numbers[kind] += 1
            if len(waiting) > _AHEAD:
                first, judgement = waiting.popleft()
                yield first, judgement.result()
        for last, judgement in waiting:
            yield last, judgement.result()


def _asked(engine: Embedded | Spark, text: str) -> Outcome:
    return engine.ask(case("sessions", query(text)))


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 if something differs that is no soft difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument(
        "--statements", type=int, default=2_000, help="stop after so many (an expression counts as one)"
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="stop after so long")
    parser.add_argument("--seed", type=int, default=1, help="what statements are made from")
    parser.add_argument("--kind", choices=tuple(STEPS), action="append", help="only these; may be given more than once")
    parser.add_argument(
        "--resume", type=Path, help="go on with the counts and numbers of this file, and keep them there"
    )
    parser.add_argument(
        "--slice", action="store_true", help="the statements that must show no difference; no other bounds"
    )
    parser.add_argument("--found", type=Path, default=_KEPT / "found.jsonl", help="where differences are appended")
    given = parser.parse_args(arguments)
    reason = missing()
    if reason is not None:
        print(f"No Spark here{', the slice is skipped' * given.slice}: {reason}", file=sys.stderr)
        return 0 if given.slice else 2
    kept: Path | None = given.resume
    kinds = tuple(given.kind or STEPS)
    tally = Tally.load(kept) if kept is not None and kept.exists() else Tally(seed=given.seed)
    turns, statements, seconds = endless(kinds), given.statements, given.seconds
    long = seconds >= _LONG_SECONDS
    if given.slice:
        os.environ["GATEWAY_SHARED"] = os.devnull
        kept, kinds, tally = None, tuple(SLICE), Tally(seed=SLICE_SEED)
        turns = iter([kind for kind, steps in SLICE.items() for _ in range(steps)])
        statements, seconds = sys.maxsize, math.inf
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        stored = unpacked(Path(folder)) if "sessions" in kinds else None
        embedded = Embedded(Path(folder) / "embedded", (stored,) if stored is not None else ())
        with closing(embedded), Spark.opened(Path(folder) / "spark", long=long) as spark:
            machine = Machine(embedded, spark, tally, given.found)
            if stored is not None:
                asks = [functools.partial(_asked, engine) for engine in (embedded, spark)]
                machine.tables = tables.readable(stored, asks, tally.seed)
            run(machine, turns, statements, seconds, kept)
    print(tally.report())
    return 1 if set(tally.differences) - SOFT else 0


if __name__ == "__main__":
    sys.exit(main())
