"""What a client may do: steps, and random sequences of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

NEXT, PRIOR, RELATIVE, ABSOLUTE, FIRST, LAST = range(6)
HIVE = (5, 6, 9)
SPARK = tuple(range(0xA501, 0xA50B))


@dataclass(frozen=True)
class Execute:
    """A statement; `kind` is a key of `model.STATEMENTS`, `direct` the rows and bytes of getDirectResults."""

    slot: int
    kind: str = "rows"
    rows: int = 10
    run_async: bool = True
    direct: tuple[int | None, int | None] | None = None
    arrow: bool = False
    lz4: bool = False
    row_limit: int | None = None


@dataclass(frozen=True)
class Fetch:
    """FetchResults. `offset`: none, a number, "next" (the row that follows), "page" (the first of the last page).

    `lost`: "late" is an answer that is not looked at, "cut" a connection that is closed before it can come.
    """

    slot: int
    orientation: int | None = NEXT
    offset: int | str | None = None
    max_rows: int | None = 10
    max_bytes: int | None = None
    lost: str = ""


@dataclass(frozen=True)
class Drain:
    """All rows that are left, page by page."""

    slot: int
    max_rows: int = 100_000


@dataclass(frozen=True)
class Ask:
    """A call about an operation: GetOperationStatus, GetResultSetMetadata, CancelOperation, CloseOperation, or its log."""

    slot: int
    what: str


Step = Execute | Fetch | Drain | Ask
QUESTIONS = ("status", "metadata", "log", "cancel", "close")


@dataclass(frozen=True)
class Sequence:
    """What one session does."""

    protocol: int | None
    steps: tuple[Step, ...] = field(default=())

    def without(self, index: int) -> Sequence:
        """All but one step."""
        return replace(self, steps=self.steps[:index] + self.steps[index + 1 :])


def sequence(source: Random) -> Sequence:
    """A random sequence."""
    protocol = source.choice(SPARK if source.random() < 0.75 else HIVE)
    steps: list[Step] = []
    sizes: dict[int, int] = {}
    for _ in range(source.randint(1, 2)):
        _add_statement(source, steps, sizes)
        for _ in range(source.randint(1, 9)):
            _add_call(source, steps, sizes)
        if source.random() < 0.15:
            _add_statement(source, steps, sizes)
    for slot, rows in sizes.items():
        if source.random() < 0.7:
            steps.append(Drain(slot, max(1, rows // source.randint(1, 6))))
    return Sequence(protocol, tuple(steps))


def _add_statement(source: Random, steps: list[Step], sizes: dict[int, int]) -> None:
    slot = source.randint(0, 1)
    kind = source.choices(("rows", "refused", "late", "none", "large", "slow"), (100, 6, 1, 5, 0.5, 0.1))[0]
    rows = source.choice((0, 1, 2, 10, source.randint(2, 60), source.randint(60, 3000), 8192, 8193, 20_000))
    direct = (_rows(source, rows), _bytes(source)) if source.random() < 0.5 else None
    limit = source.choice((0, 1, rows, rows + 1, source.randint(0, rows))) if source.random() < 0.15 else None
    odds = source.random
    steps.append(Execute(slot, kind, rows, odds() < 0.7, direct, odds() < 0.6, odds() < 0.5, limit))
    sizes[slot] = rows


def _add_call(source: Random, steps: list[Step], sizes: dict[int, int]) -> None:
    slot = source.choice(tuple(sizes))
    if source.random() < 0.3:
        steps.append(Ask(slot, source.choices(QUESTIONS, (6, 4, 2, 1, 1))[0]))
        return
    rows = sizes[slot]
    orientation = source.choices((NEXT, PRIOR, RELATIVE, ABSOLUTE, FIRST, LAST, 17, None), (60, 8, 8, 8, 8, 8, 1, 4))[0]
    numbers = (0, 1, -1, rows, rows + 1, rows // 2, -rows, source.randint(-5, rows + 5), 2**62)
    offset = source.choice((None, None, None, 0, "next", "page", source.choice(numbers)))
    if orientation in (RELATIVE, ABSOLUTE) and source.random() < 0.8:
        offset = source.choice((0, "next", source.choice(numbers)))
    lost = source.choices(("", "late", "cut"), (90, 7, 3))[0]
    steps.append(Fetch(slot, orientation, offset, _rows(source, rows), _bytes(source), lost))


def _rows(source: Random, rows: int) -> int:
    return source.choice((1, 2, 7, 0, -1, max(1, rows // 3), max(1, rows // 2), rows, rows + 1, 100_000, 1 << 40))


def _bytes(source: Random) -> int | None:
    return source.choice((None, None, None, 0, -1, 1, 100, 4096, 1 << 20, 1 << 40))
