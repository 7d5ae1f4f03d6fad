"""Large answers are made a few at a time, of one caller fewer, and each caller comes to their turn."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.protocol.turns import Turns
from tests.live.processes import eventually
from tests.unit.at_once import AtOnce


def test_a_few_pass_at_once_and_all_come_to_their_turn() -> None:
    turns, inside = Turns(3, 2), AtOnce(0.005)

    def work(caller: str) -> str:
        with turns.turn(caller), inside.counted(caller):
            return caller

    with ThreadPoolExecutor(40) as executor:
        callers = ["ann"] * 60 + ["bob"] * 20 + ["eve"] * 20
        assert list(executor.map(work, callers)) == callers
    most = inside.most
    assert most["all"] == 3 and most["ann"] == 2 and max(most.values()) == 3


def test_others_pass_those_who_wait_for_themselves() -> None:
    turns = Turns(2, 1)
    waiting = threading.Thread(target=lambda: turns.turn("ann").__enter__(), daemon=True)
    with turns.turn("ann"):
        waiting.start()
        eventually(lambda: turns._waiting, 10)
        with turns.turn("bob"):
            assert waiting.is_alive()
    waiting.join(10)
    assert not waiting.is_alive() and not turns._waiting


def test_a_turn_ends_with_an_error() -> None:
    turns = Turns(1, 1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.turn("ann"):
            raise ZeroDivisionError
    assert not turns._busy
