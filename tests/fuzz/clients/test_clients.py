"""A slice of the random clients, always the same one; ``python -m tests.fuzz.clients`` runs more of them."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.clients import __main__, model, shrink, steps
from tests.fuzz.clients.steps import NEXT, Ask, Drain, Execute, Fetch, Sequence
from tests.fuzz.clients.wire import Wire
from tests.live.gateway import Server


def test_raw_sequences(server: Server) -> None:
    ran, done, failure = __main__.fuzz(server, 1_000_000, 60, 8.0)
    assert failure is None, failure
    assert ran > 3
    assert done["Execute"] and done["Fetch"]


def test_connector_sequences(server: Server) -> None:
    ran, done, failure = __main__.fuzz_connector(server, 1_000_000, 20, 4.0)
    assert failure is None, failure
    assert ran > 1 and done


def test_a_sequence_follows_from_its_number() -> None:
    assert steps.sequence(Random(7)) == steps.sequence(Random(7)) != steps.sequence(Random(8))


@pytest.mark.parametrize("fault", ["repeats", "loses", "ends early"])
def test_faults_are_found_and_shrunk(server: Server, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """The model sees a page that is repeated, one that is left out, and an end that is none."""
    honest = Wire.fetch

    def faulty(wire: Wire, handle: object, **fields: object) -> object:
        if fault != "ends early" and fields.get("orientation") == NEXT:
            orientation, offset = (3, 0) if fault == "repeats" else (2, 1)
            fields |= {"orientation": orientation, "startRowOffset": offset}
        answer = honest(wire, handle, **fields)
        answer.hasMoreRows = answer.hasMoreRows and fault != "ends early"
        return answer

    monkeypatch.setattr(Wire, "fetch", faulty)
    long = Sequence(0xA508, (Execute(0, rows=50), Ask(0, "status"), Fetch(0, max_rows=20), Execute(1), Drain(0, 20)))

    def attempt(sequence: Sequence) -> Exception | None:
        try:
            model.run(server.thrift_url, sequence)
        except model.WrongError as error:
            return error
        return None

    error = attempt(long)
    assert error is not None
    least, _ = shrink.smallest(long, error, attempt)
    assert [type(step) for step in least.steps] in ([Execute, Drain], [Execute, Fetch], [Execute, Fetch, Fetch])
