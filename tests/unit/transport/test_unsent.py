"""Answers that nobody takes hold no more memory than a share of it."""

from gateway.transport.unsent import LONG_SECONDS, Answer, Unsent


def filled(share: int, *answers: tuple[str, str, int, float]) -> Unsent[str]:
    unsent: Unsent[str] = Unsent(share)
    for key, caller, size, began in answers:
        unsent.begin(key, Answer(caller, size, began))
    return unsent


def test_those_that_take_long_are_cut_while_their_caller_has_too_much() -> None:
    slow = [(f"m{i}", "mallory", 40, float(i)) for i in range(4)]
    unsent = filled(100, *slow, ("a", "ann", 90, 0.0))
    assert unsent.overdue(LONG_SECONDS) == []
    assert unsent.overdue(LONG_SECONDS + 0.5) == ["m0"]
    assert unsent.overdue(LONG_SECONDS + 1.5) == ["m1"]
    assert unsent.overdue(LONG_SECONDS + 100) == []
    unsent.end("m2")
    unsent.end("m2")
    unsent.begin("m4", Answer("mallory", 60, 200.0))
    assert unsent.overdue(1000.0) == []


def test_far_too_much_is_cut_at_once() -> None:
    unsent = filled(100, *[(f"m{i}", "mallory", 50, 0.0) for i in range(6)])
    assert unsent.overdue(0.0) == ["m0", "m1"]


def test_many_callers_have_twice_a_share_together() -> None:
    unsent = filled(100, *[(f"m{i}", f"caller {i}", 90, float(i)) for i in range(4)])
    assert unsent.overdue(5.0) == []
    assert unsent.overdue(LONG_SECONDS + 50) == ["m0", "m1"]
