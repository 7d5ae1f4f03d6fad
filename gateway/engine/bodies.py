"""Bodies of lambdas that functions of ours compute over arrays, where the engine has no function that takes the lambda."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pyarrow as pa

from gateway.engine.economies import is_failure
from gateway.engine.shapes import relabelled
from gateway.worker_jobs import BodySpec

_NUMBERS = count()


class EngineBody:
    """A body that the engine computes; only threads that are none of the engine's may ask for it.

    Args:
        spec: the text and its types.
        context: gives the engine's context, with the functions that the text calls.
        read_only: what the text may do.
        told: the engine's exceptions as errors of ours.
    """

    def __init__(
        self, spec: BodySpec, context: Callable[[], Any], read_only: Any, told: Callable[[BaseException], Exception]
    ) -> None:
        self._text, self._context, self._read_only, self._told = spec.text, context, read_only, told
        self._types, self._returns = [t.arrow() for t in spec.args], spec.returns.arrow()
        self.is_chained = spec.chained

    def once(self, *columns: pa.Array) -> pa.Array:
        """The body for its columns."""
        named = {f"c{place}": relabelled(c, t) for place, (c, t) in enumerate(zip(columns, self._types, strict=True))}
        return self._computed(named, self._text)

    def in_turn(self, state: pa.Array, elements: Sequence[pa.Array], *others: pa.Array) -> pa.Array:
        """The body for a state, an element and others; then for what that gave and the next element, and so on.

        Raises ValueError for one that is not `is_chained`.
        """
        if not self.is_chained:
            raise ValueError("the text may not stand in itself")
        first, second, *rest = self._types
        named, text = {"c0": relabelled(state, first)}, '"c0"'
        for turn, column in enumerate(elements):
            named[f"e{turn}"] = relabelled(column, second)
            text = self._text.replace('"c1"', f'"e{turn}"').replace('"c0"', text)
        named |= {f"c{place + 2}": relabelled(c, t) for place, (c, t) in enumerate(zip(others, rest, strict=True))}
        return self._computed(named, text)

    def _computed(self, columns: dict[str, pa.Array], text: str) -> pa.Array:
        name = f"body{next(_NUMBERS)}"
        try:
            ctx = self._context()
            ctx.create_dataframe([[pa.RecordBatch.from_arrays(list(columns.values()), list(columns))]], name=name)
            try:
                batches = ctx.sql_with_options(f"SELECT {text} AS v FROM {name}", self._read_only).collect()
            finally:
                ctx.deregister_table(name)
        except BaseException as error:
            if not is_failure(error):
                raise
            raise self._told(error) from error
        parts = [batch.column(0) for batch in batches]
        found = parts[0] if len(parts) == 1 else pa.concat_arrays(parts) if parts else pa.array([], self._returns)
        return relabelled(found, self._returns)
