"""Arrays in the order that a lambda gives: what `java.util.Arrays.sort` makes of them with it, all rows of a batch at once."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gateway.engine.functions import Kernel, RowError
from gateway.engine.functions.bodies import Body, aside
from gateway.engine.functions.lists import Lists, built
from gateway.errors import GatewayError
from gateway.instants import Ints

_BY_INSERTION = 32  # elements, from which on Java merges runs
_MOST = 3000  # elements, each of which is compared with each other
_AT_ONCE = 1 << 18  # pairs that are asked for in one question
_TOGETHER = 1 << 24  # pairs of rows that are sorted together, whose answers are all in memory

Flags = npt.NDArray[np.bool_]
#: Asks whether an element (its place) is less than an earlier one, and is told; ends with the places in order.
Sort = Generator[tuple[int, int], bool, list[int]]


def compared(order: Body) -> Kernel:
    """The kernel of ``array_sort`` with a comparator: arrays, and what `order` reads from outside beside two elements."""

    def run(arrays: pa.Array, *outside: pa.Array) -> pa.Array:
        lists = Lists(arrays)
        chosen = np.arange(len(lists.values))
        for length in np.unique(lists.lengths):
            equal = np.flatnonzero(lists.lengths == length)
            step = max(1, _TOGETHER // max(1, int(length) ** 2 // 2))
            for start in range(0, len(equal) if length > 1 else 0, step):
                rows = equal[start : start + step]
                places = lists.starts[rows][:, None] + np.arange(length)
                given = _Compared(order, lists.values, places, [values.take(pa.array(rows)) for values in outside])
                chosen[places] = np.take_along_axis(places, given.sorted(), axis=1)
        return built(lists.lengths, lists.values.take(pa.array(chosen)), lists.void, arrays.type)

    return aside(run)


class _Compared:
    """Rows of one length: `places` (row, element) in `values`, and what a comparator reads beside them, by row."""

    def __init__(self, order: Body, values: pa.Array, places: Ints, outside: list[pa.Array]) -> None:
        self.order, self.values, self.places, self.outside = order, values, places, outside
        self.size = places.shape[1]

    def sorted(self) -> Ints:
        """The places of each row's elements (from 0) in their order."""
        if self.size < _BY_INSERTION:
            try:
                less = self._all_pairs()
            except GatewayError:  # perhaps of a pair that is never compared; what is compared raises again
                less = None
            return self._one_by_one() if less is None else self._ordered(less)
        if self.size > _MOST:
            raise RowError(
                "UNSUPPORTED_FEATURE", f"array_sort of more than {_MOST} elements with a comparator is not supported."
            )
        less = self._all_pairs()
        if less is None:
            raise _no_order()
        return self._ordered(less)

    def _all_pairs(self) -> Flags | None:
        """Whether the second of each pair (row, pair of `_pairs`) is less than the first; None where one gives NULL."""
        first, second = _pairs(self.size)
        found = []
        step = max(1, _AT_ONCE // len(first))
        for start in range(0, len(self.places), step):
            some = np.arange(start, min(start + step, len(self.places)))
            rows = np.repeat(some, len(first))
            less, known = self._asked(rows, np.tile(second, len(some)), np.tile(first, len(some)))
            if not known.all():
                return None
            found.append(less.reshape(len(some), -1))
        return np.concatenate(found)

    def _asked(self, rows: Ints, later: Ints, earlier: Ints) -> tuple[Flags, Flags]:
        """Of pairs of elements of rows: whether the later one is less, and whether that is known."""
        elements = [self.values.take(pa.array(self.places[rows, at])) for at in (later, earlier)]
        answer = self.order.once(*elements, *(values.take(pa.array(rows)) for values in self.outside))
        return answer.fill_null(0).to_numpy() < 0, answer.is_valid().to_numpy(zero_copy_only=False)

    def _ordered(self, less: Flags) -> Ints:
        """The order that all pairs together say; of rows whose pairs are at odds what Java makes of them."""
        first, second = _pairs(self.size)
        before = np.zeros((len(less), self.size), dtype=np.int64)  # how many elements come before each
        if len(less) < len(first):
            for row, lesser in enumerate(less):
                before[row] = np.bincount(np.where(lesser, first, second), minlength=self.size)
        else:
            for pair, (i, j) in enumerate(zip(first, second, strict=True)):
                before[:, i] += less[:, pair]
                before[:, j] += ~less[:, pair]
        order = np.argsort(before, axis=1, kind="stable")
        odd = np.flatnonzero((np.sort(before, axis=1) != np.arange(self.size)).any(axis=1))
        if len(odd) and self.size >= _BY_INSERTION:
            raise RowError(
                "UNSUPPORTED_FEATURE", "array_sort with a comparator that contradicts itself is not supported."
            )
        if len(odd):
            numbers = {pair: number for number, pair in enumerate(zip(second.tolist(), first.tolist(), strict=True))}
            for row in odd.tolist():
                order[row] = _run(_by_insertion(self.size), numbers, less[row])
        return order

    def _one_by_one(self) -> Ints:
        """What Java makes of each row, which is asked for no other pair than Java asks for."""
        order = np.zeros(self.places.shape, dtype=np.int64)
        sorts = {row: _by_insertion(self.size) for row in range(len(self.places))}
        asked = {row: next(sort) for row, sort in sorts.items()}
        while asked:
            rows = np.array(list(asked))
            less, known = self._asked(rows, *np.array(list(asked.values())).T)
            if not known.all():
                raise _no_order()
            for row, answer in zip(rows.tolist(), less.tolist(), strict=True):
                try:
                    asked[row] = sorts[row].send(answer)
                except StopIteration as end:
                    order[row] = end.value
                    del asked[row]
        return order


def _pairs(size: int) -> tuple[Ints, Ints]:
    first, second = np.triu_indices(size, 1)
    return first, second


def _no_order() -> RowError:
    return RowError(
        "COMPARATOR_RETURNS_NULL",
        "The comparator has returned a NULL for a comparison between two elements. It should return a positive integer for "
        '"greater than", 0 for "equal" and a negative integer for "less than".',
    )


def _run(sort: Sort, numbers: Mapping[tuple[int, int], int], less: Flags) -> list[int]:
    """A sort to its end, by the answers about all pairs."""
    answer: Any = None
    while True:
        try:
            answer = bool(less[numbers[sort.send(answer)]])
        except StopIteration as end:
            order: list[int] = end.value
            return order


def _by_insertion(size: int) -> Sort:
    """`java.util.TimSort` of less than 32 elements: the run that it begins with, then one after the other by halves."""
    order = list(range(size))
    run = 2
    if (yield 1, 0):
        while run < size and (yield run, run - 1):
            run += 1
        order[:run] = order[:run][::-1]
    else:
        while run < size and not (yield run, run - 1):
            run += 1
    for start in range(run, size):
        left, right = 0, start
        while left < right:
            middle = (left + right) // 2
            if (yield start, order[middle]):
                right = middle
            else:
                left = middle + 1
        order.insert(left, order.pop(start))
    return order
