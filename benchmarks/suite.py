"""The same statements to several systems, by turns: medians, answers compared with the floor's, geometric means and totals."""

from __future__ import annotations

import contextlib
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from benchmarks.answers import near, same
from benchmarks.measure import Row, settle, show
from benchmarks.systems import ANEW, Floor, Folders, Ours, System, gateway_process, sail_process
from gateway.protocol.client import Client

LEAST_ROUNDS = 3
OTHER = " OTHER ANSWER"
LINE = "\n"


class Answered(NamedTuple):
    """Median seconds of a statement, and what it answered at first."""

    seconds: float
    answer: pa.Table


Results = Mapping[str, Mapping[str, Answered]]  # system -> statement -> answer; a statement that fails is not in it
Fits = Callable[[pa.Table, pa.Table], bool]


@dataclass(frozen=True, slots=True)
class Mean:
    """A figure over all statements of a suite, and how many times the floor's it may be."""

    work: str
    of: Callable[[Sequence[float]], float]
    asked: float


def geomean(work: str, asked: float) -> Mean:
    """The geometric mean of the medians."""
    return Mean(f"{work}, geomean", statistics.geometric_mean, asked)


def total(work: str, asked: float) -> Mean:
    """The sum of the medians."""
    return Mean(f"{work}, total", sum, asked)


@contextlib.contextmanager
def systems(*flags: str, sail: bool = True) -> Iterator[dict[str, System]]:
    """The floor, Sail where it is installed, and a gateway with these flags."""
    with contextlib.ExitStack() as stack:
        found: dict[str, System] = {"floor": Floor()}
        peer = stack.enter_context(sail_process()) if sail else None
        if peer is not None:
            found["Sail"] = peer
        url, pid, _ = stack.enter_context(gateway_process(*flags))
        found["ours"] = Ours(stack.enter_context(Client(url).open(ANEW)), pid)
        yield found


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    """TimeoutError for what takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer within {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each statement is run, and how long it may take: `patience` ends the rounds, `limit` a statement."""

    warm: bool = True  # whether the first answer is unmeasured
    rounds: int = 5
    patience: float = 20.0
    limit: float = 120.0


def measure(
    found: Mapping[str, System],
    folders: Folders,
    texts: Mapping[str, str],
    effort: Effort = Effort(),
    for_floor: Callable[[str], str] = str,
) -> Results:
    """Each statement by each system, one after the other, so that a slow minute is one of all of them.

    `for_floor` is a text in DataFusion's words.
    """
    results: dict[str, dict[str, Answered]] = {key: {} for key in found}
    for system in found.values():
        system.use(folders)
        if system.pid is not None:
            settle(system.pid)
    for name, text in texts.items():
        asked = {key: for_floor(text) if key == "floor" else text for key in found}
        for key, (answer, seconds) in _by_turns(found, name, asked, effort).items():
            results[key][name] = Answered(statistics.median(seconds), answer)
        first, *others = found.items()
        found = dict([*others, first])  # whoever finds the files not yet in memory is another one each time
    return results


def _by_turns(
    found: Mapping[str, System], name: str, asked: Mapping[str, str], effort: Effort
) -> dict[str, tuple[pa.Table, list[float]]]:
    """The first answer and the seconds of each round, of the systems that answer."""
    results: dict[str, tuple[pa.Table, list[float]]] = {}
    for key, system in found.items():
        start = time.perf_counter()
        try:
            with _within(effort.limit):
                answer = system.query(asked[key])
        except Exception as error:  # noqa: BLE001 - a refusal is a result of the benchmark
            print(f"{system.name}: {name}: {str(error).strip().partition(LINE)[0][:200]}", file=sys.stderr, flush=True)
            continue
        results[key] = (answer, [] if effort.warm else [time.perf_counter() - start])
    end = time.perf_counter() + effort.patience
    for turn in range(effort.rounds - (0 if effort.warm else 1)):
        if turn >= LEAST_ROUNDS and time.perf_counter() > end:
            break
        for key, (_, seconds) in results.items():
            start = time.perf_counter()
            found[key].query(asked[key])
            seconds.append(time.perf_counter() - start)
    return results


def _fits(left: pa.Table, right: pa.Table) -> bool:
    return same(left, right) or near(left, right)


def is_right(results: Results, key: str, name: str, fits: Fits = _fits) -> bool:
    """Whether a system has answered a statement as the floor has."""
    reference, given = results["floor"].get(name), results[key].get(name)
    if reference is None or given is None:
        return False
    return fits(reference.answer, given.answer)


def beside_floor(results: Results) -> list[tuple[str, float]]:
    """How many times as long as the floor the gateway takes for each statement that both answer, the slowest first."""
    floor = results["floor"]
    ratios = [(name, ours.seconds / floor[name].seconds) for name, ours in results["ours"].items() if name in floor]
    return sorted(ratios, key=lambda pair: -pair[1])


def report(
    work: str, texts: Mapping[str, str], results: Results, means: Sequence[Mean], fits: Fits = _fits
) -> list[Row]:
    """A row per statement, and one per mean, which is met only if all answers are right."""
    out = []
    for name in texts:
        shown = {}
        for key in results:
            given = results[key].get(name)
            told = "no answer" if given is None else show(given.seconds)
            other = given is not None and name in results["floor"] and not is_right(results, key, name, fits)
            shown[key] = told + (OTHER if other else "")
        out.append(Row(f"{work}: {name}", shown))
    right = all(is_right(results, "ours", name, fits) for name in texts)
    for mean in means:
        figures = {
            key: mean.of([given.seconds for given in found.values()])
            for key, found in results.items()
            if len(found) == len(texts)
        }
        met = right and figures["ours"] <= mean.asked * figures["floor"]
        shown = {key: show(figure) for key, figure in figures.items()}
        out.append(Row(mean.work, shown, f"all right, <= {mean.asked} x floor", met))
    return out
