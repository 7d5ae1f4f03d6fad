"""Two results compared as bags of rows: types, counts, order-free hashes per column and of rows, and the rows that differ.

Results are read in batches, up to three times, and never held; only where hashes differ are the hashes of all rows held
(8 bytes a row), and with a tolerance for floats the differing rows, up to `MOST_MATCHED` a side.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from gateway.errors import UnsupportedError
from gateway.pipelines.jobs.hashing import Hashes, row_hashes, value_hashes
from gateway.results.arrow_types import plain
from gateway.sqltypes import DataType, is_fractional

MOST_MATCHED = 200_000


@dataclass(frozen=True, slots=True)
class Rows:
    """A result: names and types of its columns, and a function that reads its rows from the start."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    read: Callable[[], Iterable[pa.RecordBatch]]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the plain Arrow types of `types`, columns by position."""
        for batch in self.read():
            columns = [plain(c, t, n) for c, t, n in zip(batch.columns, self.types, self.names, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])


@dataclass(slots=True)
class Digest:
    """What one pass over a result leaves: the count of rows, and sums of hashes per column and of rows."""

    rows: int = 0
    row_sum: int = 0
    column_sums: list[int] = field(default_factory=list)
    nulls: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Comparison:
    """Outcome of `compare`.

    Attributes:
        problems: what differs beside values: number, names and types of columns.
        left, right: digests; None if the columns do not fit each other.
        only_left, only_right: how many rows have no partner on the other side, within the tolerance.
        left_rows, right_rows: the first of those rows.
        matched: rows that are equal only within the tolerance.
        largest: the largest difference of two floats in them.
    """

    problems: list[str] = field(default_factory=list)
    left: Digest | None = None
    right: Digest | None = None
    only_left: int = 0
    only_right: int = 0
    left_rows: pa.Table | None = None
    right_rows: pa.Table | None = None
    matched: int = 0
    largest: float = 0.0

    @property
    def same(self) -> bool:
        return not self.problems and not self.only_left and not self.only_right


def compare(left: Rows, right: Rows, *, tolerance: float = 0.0, most_rows: int = 10) -> Comparison:
    """Whether two results hold the same rows, in any order.

    Args:
        left, right: the results; columns are paired by position.
        tolerance: floats also count as equal if they differ by at most this, absolutely or relative to the larger.
        most_rows: differing rows that are kept for showing, per side.

    Raises:
        UnsupportedError: too many rows differ to be matched within the tolerance.
    """
    outcome = Comparison(_column_problems(left, right))
    if len(left.types) != len(right.types) or any(a != b for a, b in zip(left.types, right.types, strict=True)):
        return outcome
    outcome.left, outcome.right = _digest(left), _digest(right)
    if (outcome.left.rows, outcome.left.row_sum) == (outcome.right.rows, outcome.right.row_sum):
        return outcome
    lefts, rights = _surplus(_all_hashes(left), _all_hashes(right))
    outcome.only_left, outcome.only_right = sum(lefts.values()), sum(rights.values())
    if tolerance and any(_has_floats(t) for t in left.types):
        if max(outcome.only_left, outcome.only_right) > MOST_MATCHED:
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE",
                f"{max(outcome.only_left, outcome.only_right)} rows differ by more than nothing; at most {MOST_MATCHED} can be "
                "compared with a tolerance: compare aggregates, or a part of the rows.",
            )
        _match(left, right, lefts, rights, tolerance, outcome, most_rows)
    else:
        outcome.left_rows = _collect(left, lefts, most_rows)
        outcome.right_rows = _collect(right, rights, most_rows)
    return outcome


def _column_problems(left: Rows, right: Rows) -> list[str]:
    if len(left.names) != len(right.names):
        return [f"{len(left.names)} and {len(right.names)} columns: {list(left.names)}, {list(right.names)}"]
    problems = []
    for number, (a, b) in enumerate(zip(left.names, right.names, strict=True), 1):
        if a != b:
            problems.append(f"column {number} is named {a!r} and {b!r}")
    for name, s, t in zip(left.names, left.types, right.types, strict=True):
        if s != t:
            problems.append(f"column {name} is {s.sql} and {t.sql}")
    return problems


# ---- passes


def _digest(rows: Rows) -> Digest:
    digest = Digest(column_sums=[0] * len(rows.types), nulls=[0] * len(rows.types))
    for batch in rows.batches():
        hashes = [value_hashes(c) for c in batch.columns]
        digest.rows += batch.num_rows
        digest.row_sum = (digest.row_sum + _sum(row_hashes(hashes, batch.num_rows))) % 2**64
        for i, (column, values) in enumerate(zip(hashes, batch.columns, strict=True)):
            digest.column_sums[i] = (digest.column_sums[i] + _sum(column)) % 2**64
            digest.nulls[i] += values.null_count
    return digest


def _sum(hashes: Hashes) -> int:
    return int(hashes.sum(dtype=np.uint64))


def _batch_hashes(batch: pa.RecordBatch) -> Hashes:
    return row_hashes([value_hashes(c) for c in batch.columns], batch.num_rows)


def _all_hashes(rows: Rows) -> Hashes:
    found = [_batch_hashes(batch) for batch in rows.batches()]
    return np.concatenate(found) if found else np.empty(0, np.uint64)


def _surplus(left: Hashes, right: Hashes) -> tuple[dict[int, int], dict[int, int]]:
    """Hashes that one side has more often than the other, with how many more."""
    left_values, left_counts = np.unique(left, return_counts=True)
    right_values, right_counts = np.unique(right, return_counts=True)
    values = np.union1d(left_values, right_values)
    more = np.zeros(len(values), np.int64)
    more[np.searchsorted(values, left_values)] += left_counts
    more[np.searchsorted(values, right_values)] -= right_counts
    pick = more != 0
    pairs = list(zip(values[pick].tolist(), more[pick].tolist(), strict=True))
    return {h: n for h, n in pairs if n > 0}, {h: -n for h, n in pairs if n < 0}


def _collect(rows: Rows, wanted: dict[int, int], most: int) -> pa.Table:
    """At most `most` rows whose hash is wanted, each hash as often as wanted."""
    left = dict(wanted)
    keys = np.fromiter(wanted, np.uint64, len(wanted))
    found: list[pa.RecordBatch] = []
    count = 0
    schema = pa.schema([(str(i), t.arrow()) for i, t in enumerate(rows.types)])
    for batch in rows.batches() if wanted and most else ():
        hashes = _batch_hashes(batch)
        picked = []
        for index in np.flatnonzero(np.isin(hashes, keys)).tolist():
            key = int(hashes[index])
            if left[key] and count < most:
                left[key] -= 1
                count += 1
                picked.append(index)
        if picked:
            found.append(batch.take(pa.array(picked)))
        if count >= most:
            break
    return pa.Table.from_batches(found, schema) if found else schema.empty_table()


# ---- floats within a tolerance


def _has_floats(type_: DataType) -> bool:
    return is_fractional(type_) or any(_has_floats(child) for child in type_.children())


def _match(
    left: Rows,
    right: Rows,
    lefts: dict[int, int],
    rights: dict[int, int],
    tolerance: float,
    outcome: Comparison,
    most_rows: int,
) -> None:
    """Pair the differing rows whose exact parts are equal and whose floats are near; the rest stays different."""
    left_rows, right_rows = _collect(left, lefts, MOST_MATCHED), _collect(right, rights, MOST_MATCHED)
    groups: dict[Any, tuple[list[_Floats], list[_Floats]]] = defaultdict(lambda: ([], []))
    for side, table in enumerate((left_rows, right_rows)):
        for number, row in enumerate(zip(*(c.to_pylist() for c in table.columns), strict=True)):
            floats: list[float] = []
            key = tuple(_exact(value, type_, floats) for value, type_ in zip(row, left.types, strict=True))
            groups[key][side].append((tuple(floats), number))
    alone: tuple[list[int], list[int]] = ([], [])
    for ours, theirs in groups.values():
        pairs = match_floats([f for f, _ in ours], [f for f, _ in theirs], tolerance)
        outcome.matched += len(pairs)
        for i, j in pairs:
            outcome.largest = max([outcome.largest, *map(_distance, ours[i][0], theirs[j][0])])
        taken, given = {i for i, _ in pairs}, {j for _, j in pairs}
        alone[0].extend(number for i, (_, number) in enumerate(ours) if i not in taken)
        alone[1].extend(number for j, (_, number) in enumerate(theirs) if j not in given)
    outcome.only_left, outcome.only_right = len(alone[0]), len(alone[1])
    outcome.left_rows = left_rows.take(pa.array(sorted(alone[0])[:most_rows], pa.int64()))
    outcome.right_rows = right_rows.take(pa.array(sorted(alone[1])[:most_rows], pa.int64()))


_Floats = tuple[tuple[float, ...], int]  # the floats of a row, and its number


def _exact(value: Any, type_: DataType, floats: list[float]) -> Any:
    """`value` as something hashable without its floats, which are appended to `floats`."""
    if value is None:
        return None
    if is_fractional(type_):
        floats.append(float(value))
        return True
    children = list(type_.children())
    if not children:
        return value
    if isinstance(value, dict):
        return tuple(_exact(v, t, floats) for v, t in zip(value.values(), children, strict=True))
    if type_.name == "MAP":
        entries = sorted(value, key=lambda entry: repr(entry[0]))
        return tuple((_exact(k, children[0], floats), _exact(v, children[1], floats)) for k, v in entries)
    return tuple(_exact(item, children[0], floats) for item in value)


def _near(a: float, b: float, tolerance: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)


def _distance(a: float, b: float) -> float:
    return 0.0 if a == b or math.isnan(a) else abs(a - b)


def match_floats(
    left: Sequence[tuple[float, ...]], right: Sequence[tuple[float, ...]], tolerance: float
) -> list[tuple[int, int]]:
    """As many pairs of near rows as there can be (augmenting paths), as indexes into `left` and `right`."""
    order = sorted(range(len(right)), key=lambda j: _rank(right[j]))
    firsts = [_rank(right[j])[0] for j in order] if right and right[0] else []
    chosen: dict[int, int] = {}  # left to right
    partner: dict[int, int] = {}  # right to left

    def candidates(i: int) -> list[int]:
        if not left[i]:
            return order
        low, high = _window(left[i][0], tolerance)
        part = order[bisect_left(firsts, low) : bisect_right(firsts, high)]
        return [j for j in part if all(_near(a, b, tolerance) for a, b in zip(left[i], right[j], strict=True))]

    for start in range(len(left)):
        # Breadth first: `came` remembers for each right row from which left row it was reached.
        came: dict[int, int] = {}
        queue = [start]
        free: int | None = None
        while queue and free is None:
            i = queue.pop(0)
            for j in candidates(i):
                if j in came:
                    continue
                came[j] = i
                if j not in partner:
                    free = j
                    break
                queue.append(partner[j])
        while free is not None:
            i = came[free]
            before = chosen.get(i)
            chosen[i], partner[free] = free, i
            free = before
    return sorted(chosen.items())


def _rank(floats: tuple[float, ...]) -> tuple[tuple[int, float], ...]:
    return tuple((1, 0.0) if math.isnan(f) else (0, f) for f in floats) or ((0, 0.0),)


def _window(value: float, tolerance: float) -> tuple[tuple[int, float], tuple[int, float]]:
    if math.isnan(value) or math.isinf(value):
        return _rank((value,))[0], _rank((value,))[0]
    # math.isclose is relative to the larger of the two, which may be the other one.
    reach = max(tolerance, abs(value) * tolerance / max(1.0 - tolerance, 0.5))
    reach += math.ulp(abs(value) + reach)
    return (0, value - reach), (0, value + reach)
