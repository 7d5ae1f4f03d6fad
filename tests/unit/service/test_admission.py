"""Slots are given fairly between sessions, and nobody holds one that he gave back."""

import pytest

from gateway.errors import ResourceError
from gateway.service.admission import Admission, Place


class Desk:
    """Enters places and notes who started."""

    def __init__(self, slots: int, limit: int = 1000, reserved: int = 1, lane: int = 0) -> None:
        self.admission = Admission(slots, limit, reserved, lane)
        self.started: list[str] = []
        self.places: dict[str, Place] = {}

    def enter(self, name: str, small: bool = False, owner: str = "") -> None:
        """`name` is session and number: a1, a2, b1."""
        self.places[name] = Place(name[0], lambda: self.started.append(name), small, owner)
        self.admission.enter_place(self.places[name])

    def leave(self, name: str) -> None:
        self.admission.release(self.places[name])


def test_what_would_wait_begins_in_the_lane_one_by_one() -> None:
    desk = Desk(1, lane=1)
    for name in ("a1", "b1", "b2", "c1"):
        desk.enter(name)
    assert desk.started == ["a1", "b1"] and [desk.places[n].brief for n in ("a1", "b1")] == [False, True]
    desk.leave("b1")  # it was short
    assert desk.started == ["a1", "b1", "b2"]
    desk.admission.put_back(desk.places["b2"])  # it was not
    assert desk.started == ["a1", "b1", "b2", "c1"] and not desk.places["b2"].brief
    desk.leave("c1")
    assert desk.admission.waiting == 1 and desk.admission.running == 1  # it is not tried twice
    desk.enter("b3")  # may pass by it, in the lane
    assert desk.started[-1] == "b3"
    desk.leave("a1")
    assert desk.started[-1] == "b2" and not desk.places["b2"].brief and desk.places["b2"].held
    for name in ("b2", "b3"):
        desk.leave(name)
    assert (desk.admission.waiting, desk.admission.running) == (0, 0)


def test_what_is_put_back_is_the_first_of_its_session() -> None:
    desk = Desk(1, lane=1)
    for name in ("a1", "b1", "b2"):
        desk.enter(name)
    desk.admission.put_back(desk.places["b1"])
    desk.admission.put_back(desk.places["b2"])
    desk.admission.put_back(desk.places["b2"])  # the second time it is without effect
    desk.leave("b2")  # cancelled while it waits
    desk.leave("a1")
    assert desk.started == ["a1", "b1", "b2", "b1"]
    assert (desk.admission.waiting, desk.admission.running) == (0, 1)


def test_the_lane_is_no_way_around_a_full_queue() -> None:
    desk = Desk(1, limit=0, lane=1)
    desk.enter("a1")
    with pytest.raises(ResourceError):
        desk.enter("b1")
    assert desk.started == ["a1"] and (desk.admission.waiting, desk.admission.running) == (0, 1)


def test_the_lane_takes_no_slot_of_metadata_calls() -> None:
    desk = Desk(1, lane=1)
    for name in ("a1", "b1", "c1"):
        desk.enter(name)
    desk.enter("m1", small=True)
    desk.enter("m2", small=True)
    assert desk.started == ["a1", "b1", "m1"]


def test_the_lane_goes_by_callers() -> None:
    desk = Desk(1, lane=1)
    for owner, name in (("m", "a1"), ("m", "b1"), ("m", "c1"), ("m", "d1"), ("n", "e1")):
        desk.enter(name, owner=owner)
    desk.leave("b1")
    desk.leave("c1")
    assert desk.started == ["a1", "b1", "c1", "e1"]


def test_first_come_first_served_within_a_session() -> None:
    desk = Desk(1)
    for name in ("a1", "a2", "a3"):
        desk.enter(name)
    assert desk.started == ["a1"] and desk.admission.waiting == 2
    desk.leave("a1")
    desk.leave("a2")
    assert desk.started == ["a1", "a2", "a3"]


def test_sessions_take_turns_so_that_a_flood_delays_nobody_much() -> None:
    desk = Desk(1)
    for i in range(100):
        desk.enter(f"a{i}")
    desk.enter("b0")
    desk.enter("c0")
    desk.enter("b1")
    for _ in range(6):
        desk.leave(desk.started[-1])
    assert desk.started == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]


def test_metadata_calls_in_a_row_keep_no_statement_out() -> None:
    desk = Desk(2)
    for number in range(8):
        desk.enter(f"m{number}", small=True, owner="mallory")
    assert desk.started == ["m0", "m1", "m2"]  # no statement waits
    desk.enter("a1", owner="ann")
    desk.enter("a2", owner="ann")
    for name in ("m0", "m1", "m2", "m3"):
        desk.leave(name)
    assert desk.started[3:] == ["m3", "a1", "m4", "a2"]
    desk.enter("a3", owner="ann")
    for name in ("m4", "a1", "a2"):
        desk.leave(name)
    assert desk.started[7:] == ["m5", "m6", "a3"]


def test_callers_take_turns_and_each_has_some_of_the_queue() -> None:
    started: list[str] = []
    admission = Admission(1, 20)
    places = {}

    def enter(owner: str, session: str, name: str) -> None:
        places[name] = Place(session, lambda: started.append(name), False, owner)
        admission.enter_place(places[name])

    for i in range(21):
        enter("mallory", f"session {i}", f"m{i}")
    with pytest.raises(ResourceError):
        enter("mallory", "one more", "m21")
    for name in ("a0", "a1"):
        enter("ann", "hers", name)
    with pytest.raises(ResourceError):
        enter("ann", "another", "a2")
    for _ in range(5):
        admission.release(places[started[-1]])
    assert started == ["m0", "m1", "a0", "m2", "a1", "m3"]


def test_metadata_never_waits_behind_statements() -> None:
    desk = Desk(2)
    for name in ("a1", "a2", "a3", "b1"):
        desk.enter(name)
    desk.enter("z1", small=True)
    assert desk.started == ["a1", "a2", "z1"]
    desk.enter("z2", small=True)
    assert desk.started == ["a1", "a2", "z1"]  # the reserved slot is taken
    desk.leave("a1")
    assert desk.started == ["a1", "a2", "z1", "z2"]  # small work goes first
    desk.leave("z1")
    assert desk.started[4:] == ["a3"]
    assert desk.admission.running == 3


def test_statements_never_take_the_reserved_slot() -> None:
    desk = Desk(1)
    desk.enter("a1")
    desk.enter("a2")
    assert desk.started == ["a1"] and desk.admission.running == 1


def test_a_full_queue_refuses_and_forgets() -> None:
    desk = Desk(1, limit=2)
    for name in ("a1", "a2", "b1"):
        desk.enter(name)
    with pytest.raises(ResourceError, match="2 statements wait") as raised:
        desk.enter("c1")
    assert raised.value.retryable and desk.admission.waiting == 2
    desk.leave("a1")
    desk.enter("c2")
    for name in ("a2", "b1", "c2"):
        desk.leave(name)
    assert desk.started == ["a1", "a2", "b1", "c2"]
    assert desk.admission.running == desk.admission.waiting == 0


def test_without_a_queue_slots_are_still_given() -> None:
    desk = Desk(1, limit=0)
    desk.enter("a1")
    with pytest.raises(ResourceError):
        desk.enter("a2")
    desk.leave("a1")
    desk.enter("a3")
    assert desk.started == ["a1", "a3"]


def test_leaving_the_queue_or_twice_gives_back_no_slot_of_others() -> None:
    desk = Desk(1)
    for name in ("a1", "a2", "a3"):
        desk.enter(name)
    desk.leave("a2")
    desk.leave("a2")
    assert desk.started == ["a1"] and desk.admission.running == 1
    desk.leave("a1")
    desk.leave("a1")
    assert desk.started == ["a1", "a3"] and desk.admission.running == 1


def test_a_thousand_that_fail_at_once_do_not_nest() -> None:
    admission = Admission(1, 5000)
    started: list[Place] = []

    def make() -> Place:
        def start() -> None:
            started.append(place)
            admission.release(place)

        place = Place("a", start, small=False)
        return place

    first = Place("a", lambda: None, small=False)
    admission.enter_place(first)
    for _ in range(3000):
        admission.enter_place(make())
    admission.release(first)
    assert len(started) == 3000 and admission.running == 0


def test_the_lane_opens_once_all_slots_have_been_taken_for_a_while() -> None:
    now, started = [0.0], []
    admission = Admission(1, 100, lane=1, patience=2.0, clock=lambda: now[0])
    places = [Place(name, lambda name=name: started.append(name), False) for name in "abc"]  # type: ignore[misc]
    for place in places:
        admission.enter_place(place)
    assert started == ["a"] and admission.look() == 2.0
    now[0] = 1.0
    admission.release(places[0])
    now[0] = 2.5
    assert started == ["a", "b"] and admission.look() == 2.0 and started == ["a", "b"]  # b has begun only then
    now[0] = 3.0
    assert admission.look() == float("inf") and started == ["a", "b", "c"] and places[2].brief


def test_who_waits_is_told_how_many_come_before() -> None:
    now = [0.0]
    queue = Admission(1, 100, clock=lambda: now[0])
    queue.enter("s0", lambda: None)
    places = []
    for owner, session in (("ann", "a1"), ("ann", "a1"), ("ann", "a2"), ("bob", "b1")):
        place = Place(session, lambda: None, small=False, owner=owner)
        queue.enter_place(place)
        places.append(place)
    assert [place.position() for place in places] == [(1, 4), (4, 4), (3, 4), (2, 4)]  # as they take turns
    now[0] += 1
    queue.release(places[0])
    assert [place.position() for place in places] == [None, (1, 3), (3, 3), (2, 3)]
    small = queue.enter("s9", lambda: None, small=True)
    assert small.position() is None and Place("x", lambda: None, small=False).position() is None
