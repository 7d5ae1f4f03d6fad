"""Bodies of lambdas, as functions of ours ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import pyarrow as pa

from gateway.engine.functions import Kernel


class Body(Protocol):
    """The body of a lambda, computed over arrays: its parameters, then what it reads from outside."""

    is_chained: bool  # whether it can be asked `in_turn`

    def once(self, *columns: pa.Array) -> pa.Array:
        """The body for its columns."""
        ...

    def in_turn(self, state: pa.Array, elements: Sequence[pa.Array], *others: pa.Array) -> pa.Array:
        """The body for a state, an element and others; then for what that gave and the next element, and so on."""
        ...


def aside(kernel: Kernel) -> Kernel:
    """The kernel on a thread of its own: those of the engine may not ask the engine, as bodies do."""

    def run(*arrays: pa.Array) -> pa.Array:
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(kernel, *arrays).result()

    return run
