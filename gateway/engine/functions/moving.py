"""Aggregates of floats over frames that move: each frame is computed anew, value by value, as Spark does.

The engine takes out of a sum again what has left the frame, so that what a large value has swallowed stays lost, and an
infinity leaves NaN behind. These are window functions without a frame: they get all rows of some partitions at once, with the
place of each row in its own, the end and the size of its frame, which the engine has counted, and the number of its partition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from datafusion.user_defined import WindowEvaluator

from gateway.engine.base import UdfSpec
from gateway.sqltypes import DOUBLE

Vector = np.ndarray[Any, np.dtype[Any]]


class Moving(WindowEvaluator):
    """One aggregate; `params` of the spec name it, its arguments are one or two columns of DOUBLE, then place, end and size.

    Behind these comes the number of the row's partition, where there may be several.
    """

    def __init__(self, spec: UdfSpec) -> None:
        (self._name,) = spec.params
        self._width = sum(kind == DOUBLE for kind in spec.args)

    def evaluate_all(self, values: list[pa.Array], num_rows: int) -> pa.Array:
        """The aggregate of each row's frame."""
        columns = values[: self._width]
        places, ends, sizes, *partitions = (a.to_numpy(zero_copy_only=False) for a in values[self._width :])
        order = np.lexsort((places, *partitions))
        for numbers_of in partitions:  # ends among all rows
            ends = ends + np.searchsorted(numbers_of[order], numbers_of)
        known = np.ones(num_rows, bool)
        for column in columns:
            known &= column.is_valid().to_numpy(zero_copy_only=False)
        # without the rows that have no value: how many of those with one come before each place
        before = np.concatenate(([0], np.cumsum(known[order])))
        first, last = before[ends - sizes], before[ends]
        kept = order[known[order]]
        numbers = [c.fill_null(0.0).to_numpy(zero_copy_only=False)[kept] for c in columns]
        return _result(self._name, numbers, first, last)


def moving(spec: UdfSpec) -> Callable[[], Moving]:
    """What makes an evaluator for each partition."""
    return lambda: Moving(spec)


def _result(name: str, numbers: list[Vector], first: Vector, last: Vector) -> pa.Array:
    sizes = last - first
    longest = np.argsort(-sizes, kind="stable")  # those that have a next value are then the first ones
    counts, at = sizes[longest], first[longest]
    most = int(counts.max(initial=0))
    left = np.searchsorted(-counts, -np.arange(most), side="left")
    with np.errstate(all="ignore"):
        state = _State(len(numbers), len(first))
        step = _STEPS[name]
        for frames in left.tolist():
            rows = slice(frames)
            step(state, rows, [column[at[rows]] for column in numbers])
            at[rows] += 1
        found, least = _ENDS[name](state, np.maximum(counts, 1))
    back = np.empty_like(longest)
    back[longest] = np.arange(len(longest))
    return pa.array(found[back], pa.float64(), mask=sizes < least, from_pandas=False)


class _State:
    """The means and the spreads of all frames so far."""

    def __init__(self, width: int, frames: int) -> None:
        self.count = np.zeros(frames)
        self.mean = [np.zeros(frames) for _ in range(width)]
        self.spread = [np.zeros(frames) for _ in range(width)]
        self.product = np.zeros(frames)
        self.total = np.zeros(frames)


def _add(state: _State, rows: slice, values: list[Vector]) -> None:
    state.total[rows] += values[0]


def _moment(state: _State, rows: slice, values: list[Vector]) -> None:
    """CentralMomentAgg.updateExpressions."""
    state.count[rows] += 1
    delta = values[0] - state.mean[0][rows]
    share = delta / state.count[rows]
    state.mean[0][rows] += share
    state.spread[0][rows] += delta * (delta - share)


def _pair(state: _State, rows: slice, values: list[Vector]) -> None:
    """PearsonCorrelation.updateExpressions."""
    state.count[rows] += 1
    deltas = [value - mean[rows] for value, mean in zip(values, state.mean, strict=True)]
    for mean, delta in zip(state.mean, deltas, strict=True):
        mean[rows] += delta / state.count[rows]
    state.product[rows] += deltas[0] * (values[1] - state.mean[1][rows])
    for spread, delta, value, mean in zip(state.spread, deltas, values, state.mean, strict=True):
        spread[rows] += delta * (value - mean[rows])


#: Takes the next value, or pair of values, of the first frames into their states.
Step = Callable[[_State, slice, list[Vector]], None]
#: The value of each frame, given how many values it has, and how many it must have for one.
End = Callable[[_State, Vector], tuple[Vector, int]]
_STEPS: dict[str, Step] = {
    **dict.fromkeys(("sum", "avg"), _add),
    **dict.fromkeys(("var_pop", "var_samp", "stddev_pop", "stddev_samp"), _moment),
    **dict.fromkeys(
        ("covar_pop", "covar_samp", "corr", "regr_sxx", "regr_syy", "regr_sxy", "regr_slope", "regr_r2"),
        _pair,
    ),
    **dict.fromkeys(("regr_avgx", "regr_avgy"), _pair),
}
# The first argument is y, the second x.
_ENDS: dict[str, End] = {
    "sum": lambda s, n: (s.total, 1),
    "avg": lambda s, n: (s.total / n, 1),
    "var_pop": lambda s, n: (s.spread[0] / n, 1),
    "var_samp": lambda s, n: (s.spread[0] / (n - 1), 2),
    "stddev_pop": lambda s, n: (np.sqrt(s.spread[0] / n), 1),
    "stddev_samp": lambda s, n: (np.sqrt(s.spread[0] / (n - 1)), 2),
    "covar_pop": lambda s, n: (s.product / n, 1),
    "covar_samp": lambda s, n: (s.product / (n - 1), 2),
    "corr": lambda s, n: (s.product / np.sqrt(s.spread[0] * s.spread[1]), 2),
    "regr_avgy": lambda s, n: (s.mean[0], 1),
    "regr_avgx": lambda s, n: (s.mean[1], 1),
    "regr_syy": lambda s, n: (s.spread[0], 1),
    "regr_sxx": lambda s, n: (s.spread[1], 1),
    "regr_sxy": lambda s, n: (s.product, 1),
    "regr_slope": lambda s, n: (s.product / s.spread[1], 2),
    "regr_r2": lambda s, n: (s.product * s.product / (s.spread[0] * s.spread[1]), 2),
}
#: The aggregates of the engine that these take the place of.
NAMES = frozenset(_STEPS)
