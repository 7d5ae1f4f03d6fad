"""The least of a sequence that still fails: steps are dropped, then made simpler, as long as it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from tests.fuzz.clients.steps import Sequence

Attempt = Callable[[Sequence], Exception | None]


def smallest(sequence: Sequence, error: Exception, attempt: Attempt, tries: int = 400) -> tuple[Sequence, Exception]:
    """A sequence from which nothing can be taken, and its error."""
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in _simpler(sequence):
            tries -= 1
            if tries < 0:
                return sequence, error
            found = attempt(candidate)
            if found is not None:
                sequence, error, shrunk = candidate, found, True
                break
    return sequence, error


def _simpler(sequence: Sequence) -> Iterator[Sequence]:
    for index in range(len(sequence.steps) - 1, -1, -1):
        yield sequence.without(index)
    for index, step in enumerate(sequence.steps):
        for field in fields(step):
            value = getattr(step, field.name)
            if field.name not in ("slot", "what", "kind") and value != field.default:
                simpler = replace(step, **{field.name: field.default})  # type: ignore[arg-type]
                yield replace(sequence, steps=(*sequence.steps[:index], simpler, *sequence.steps[index + 1 :]))


def shown(sequence: Sequence, error: Exception) -> str:
    """A sequence and its error as text."""
    steps = "\n".join(f"  {step}" for step in sequence.steps)
    return f"{type(error).__name__}: {error}\n  protocol {sequence.protocol:#x}\n{steps}"
