"""Folds of arrays: a state that each element changes in turn, for all rows of a batch at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gateway.engine.functions import Kernel, RowError
from gateway.engine.functions.bodies import Body, aside
from gateway.engine.functions.lists import Lists

_MOST_BYTES = 512 << 20  # of states: the engine ends where texts that it joins have 2 GiB together
_TURNS = 32  # elements of all rows that go on, in one question


def folded(merge: Body, finish: Body) -> Kernel:
    """The kernel of ``aggregate``: arrays, the states that they begin with, and what both lambdas read from outside.

    `merge` makes the next states of states, elements and what is outside, `finish` the results of the last states. Neither
    is asked for rows whose array is NULL.
    """

    def run(arrays: pa.Array, start: pa.Array, *outside: pa.Array) -> pa.Array:
        lists = Lists(arrays)
        rows = np.flatnonzero(~lists.void)
        rows = rows[np.argsort(-lists.lengths[rows], kind="stable")]  # those that go on longest come first
        lengths, starts = lists.lengths[rows], lists.starts[rows]
        chosen = pa.array(rows)
        states = start.take(chosen)
        read = [values.take(chosen) for values in outside]
        ended: list[pa.Array] = []
        place = 0
        while len(rows) and place < lengths[0]:
            still = int(np.searchsorted(-lengths, -place))
            if still < len(states):
                ended.append(states.slice(still))
                states = states.slice(0, still)
            others = [values.slice(0, still) for values in read]
            turns = min(int(lengths[still - 1]) - place, _TURNS) if merge.is_chained else 1
            elements = [lists.values.take(pa.array(starts[:still] + place + turn)) for turn in range(turns)]
            states = merge.in_turn(states, elements, *others) if turns > 1 else merge.once(states, *elements, *others)
            place += turns
            if states.nbytes > _MOST_BYTES:
                message = f"What aggregate makes takes more than {_MOST_BYTES >> 20} MiB in a batch of rows."
                raise RowError("RESOURCE_EXHAUSTED", message)
        results = finish.once(pa.concat_arrays([states, *reversed(ended)]), *read)
        places = np.full(len(arrays), -1)
        places[rows] = np.arange(len(rows))
        return results.take(pa.array(places, mask=places < 0))

    return aside(run)
