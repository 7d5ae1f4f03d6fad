"""Random clients against one real gateway: ``python -m tests.fuzz.clients --sequences N --seconds S --seed K``.

Every sequence has a number, from which alone it is made: ``--seed K`` begins with number K. The first that fails is shrunk,
shown and ends the run (exit 1). With ``--connector`` the calls are those of the databricks-sql-connector.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.clients import connector, model, shrink, steps
from tests.live.gateway import Server, start_server

Outcome = tuple[int, Counter[str], str | None]


def fuzz(server: Server, first: int, count: int, seconds: float) -> Outcome:
    """How many sequences of raw calls were run, what they did, and the one that failed."""
    done: Counter[str] = Counter()

    def attempt(sequence: steps.Sequence) -> Exception | None:
        try:
            model.run(server.thrift_url, sequence)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
            return error
        return None

    def one(number: int) -> str | None:
        sequence = steps.sequence(Random(number))
        done.update(type(step).__name__ for step in sequence.steps)
        error = attempt(sequence)
        return None if error is None else shrink.shown(*shrink.smallest(sequence, error, attempt))

    return _repeat(one, first, count, seconds, done)


def fuzz_connector(server: Server, first: int, count: int, seconds: float) -> Outcome:
    """The same with the databricks-sql-connector."""
    done: Counter[str] = Counter()

    def one(number: int) -> str | None:
        try:
            done.update(connector.run(server, Random(number)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
            return f"{type(error).__name__}: {error}"
        return None

    return _repeat(one, first, count, seconds, done)


def _repeat(one: Callable[[int], str | None], first: int, count: int, seconds: float, done: Counter[str]) -> Outcome:
    end = time.monotonic() + seconds
    ran = 0
    for number in range(first, first + count):
        if time.monotonic() > end:
            break
        failure = one(number)
        ran += 1
        if failure is not None:
            return ran, done, f"sequence {number}: {failure}"
    return ran, done, None


def main(arguments: list[str] | None = None) -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.clients", description=__doc__)
    parser.add_argument("--sequences", type=int, default=1000, metavar="N")
    parser.add_argument("--seconds", type=float, default=600.0, metavar="S")
    parser.add_argument("--seed", type=int, default=0, metavar="K", help="the number of the first sequence")
    parser.add_argument("--connector", action="store_true", help="calls of the databricks-sql-connector")
    given: Any = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        server = start_server(Path(folder), "--memory-limit", "1GiB")
        try:
            work = fuzz_connector if given.connector else fuzz
            ran, done, failure = work(server, given.seed, given.sequences, given.seconds)
        finally:
            code = server.stop()
        log = server.log.read_text()
    counts = ", ".join(f"{name} {count}" for name, count in sorted(done.items()))
    print(f"{ran} sequences from {given.seed} on: {counts}")
    if "unexpected error" in log or code != 0:
        failure = f"{failure or 'every answer was right'}; the gateway (exit {code}) logged:\n{log[-4000:]}"
    if failure is not None:
        print(failure)
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
