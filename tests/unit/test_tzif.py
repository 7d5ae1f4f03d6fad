"""Time zone files: offsets as the standard library reads them, and the forms of the footer's rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway import tzif
from gateway.instants import Zone, offsets_of, to_instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
ZONES = ("America/New_York", "America/Santiago", "Africa/Cairo", "Asia/Gaza", "Australia/Lord_Howe", "Europe/Dublin",
         "America/Nuuk", "Asia/Tokyo", "Pacific/Chatham")  # fmt: skip


@settings(deadline=None)
@given(st.sampled_from(ZONES), st.lists(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), min_size=1, max_size=20))
def test_offsets_are_those_of_the_standard_library(zone: str, moments: list[datetime]) -> None:
    aware = [m.replace(tzinfo=UTC) for m in moments]
    expected = [(m.astimezone(ZoneInfo(zone)).utcoffset() or timedelta()) // TICK for m in aware]
    micros = np.array([(m - EPOCH) // TICK for m in aware])
    assert offsets_of(micros, Zone(zone)).tolist() == expected


@settings(deadline=None)
@given(st.sampled_from(ZONES), st.lists(st.integers(-(2**62), 2**63 - 2**40), min_size=1, max_size=20))
def test_an_instant_comes_back_from_its_wall_clock_and_offset(zone: str, micros: list[int]) -> None:
    instants = np.array(micros)
    offsets = offsets_of(instants, Zone(zone))
    assert to_instant(instants + offsets, Zone(zone), offsets).tolist() == micros
    # without the offset it is the earlier one of two
    assert (to_instant(instants + offsets, Zone(zone)) <= instants).all()


def test_the_rule_holds_for_ever_in_cycles_of_400_years() -> None:
    july, january = 2_540_314_800_000_000, 2_524_676_400_000_000
    for cycles in (0, 1, 2, 600):
        later = np.array([july, january]) + cycles * tzif.CYCLE
        assert (offsets_of(later, Zone("America/Los_Angeles")) // 3_600_000_000).tolist() == [-7, -8]


def test_files_of_the_package_serve_where_the_machine_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    years = np.arange(1968, 2101) - 1970
    micros = (years * 31_556_952 + 15_778_476) * 1_000_000
    expected = offsets_of(micros, Zone("America/New_York"))
    monkeypatch.setattr(tzif, "TZPATH", ())
    tzif.periods.cache_clear()
    assert (offsets_of(micros, Zone("America/New_York")) == expected).all()
    tzif.periods.cache_clear()


@pytest.mark.parametrize(
    ("rule", "moments"),
    [
        ("M3.2.0", ["2023-03-12T02:00:00", "2024-03-10T02:00:00"]),
        ("M10.5.0/3", ["2023-10-29T03:00:00", "2024-10-27T03:00:00"]),
        ("M3.4.4/50", ["2023-03-25T02:00:00", "2024-03-30T02:00:00"]),
        ("M10.5.0/-1", ["2023-10-28T23:00:00", "2024-10-26T23:00:00"]),
        ("J60/0", ["2023-03-01T00:00:00", "2024-03-01T00:00:00"]),
        ("J59/0:30", ["2023-02-28T00:30:00", "2024-02-28T00:30:00"]),
        ("59/0", ["2023-03-01T00:00:00", "2024-02-29T00:00:00"]),
    ],
)
def test_days_of_the_rule(rule: str, moments: list[str]) -> None:
    assert tzif._moments(rule, np.array([2023, 2024])).astype("M8[s]").astype(str).tolist() == moments


@pytest.mark.parametrize(
    ("names", "hours"),
    [("EST5EDT", (-5, -4)), ("<+1030>-10:30<+11>-11", (10.5, 11)), ("IST-1GMT0", (1, 0)), ("<-02>2<-01>", (-2, -1))],
)
def test_standard_and_summer_time(names: str, hours: tuple[float, float]) -> None:
    standard, summer = tzif._standard_and_summer(names)
    assert (standard / 3600, summer / 3600) == hours
