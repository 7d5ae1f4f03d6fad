"""How long a command asks for: so many statements, so many seconds, from a seed on."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator


def parser(name: str, doc: str | None, statements: int, seconds: float) -> argparse.ArgumentParser:
    """The arguments `statements`, `seconds` and `seed` of ``python -m tests.fuzz.<name>``, and their defaults."""
    made = argparse.ArgumentParser(prog=f"python -m tests.fuzz.{name}", description=doc)
    made.add_argument("--statements", type=int, default=statements, help="stop after so many")
    made.add_argument("--seconds", type=float, default=seconds, help="stop after so long")
    made.add_argument("--seed", type=int, default=1, help="what they are made from")
    return made


def within(numbers: Iterable[int], seconds: float) -> Iterator[int]:
    """The numbers, until so many seconds have passed."""
    begun = time.monotonic()
    for number in numbers:
        if time.monotonic() - begun >= seconds:
            return
        yield number
