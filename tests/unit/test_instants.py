"""Calendar, zones and text forms of dates and timestamps; expectations measured on Spark."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway import instants
from gateway.instants import UTC, Zone, known_zone, zone_of

LA = known_zone("America/Los_Angeles")
EPOCH = date(1970, 1, 1)


@settings(deadline=None)
@given(st.dates())
def test_fields_and_text_agree_with_the_standard_library(day: date) -> None:
    days = (day - EPOCH).days
    assert instants.date_text(days) == day.isoformat()
    assert instants.parse_date(day.isoformat()) == days
    assert instants.days_of(day.year, day.month, day.day) == days


@settings(deadline=None)
@given(st.dates(min_value=date(1, 2, 1), max_value=date(9998, 1, 1)), st.integers(-500, 500))
def test_adding_months_keeps_the_day_or_takes_the_last(day: date, count: int) -> None:
    total = day.year * 12 + day.month - 1 + count
    year, month = divmod(total, 12)
    if not 1 <= year <= 9998:
        return
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    expected = date(year, month + 1, min(day.day, last))
    moved = instants.add_months(np.array([(day - EPOCH).days]), np.array([count]))
    assert int(moved[0]) == (expected - EPOCH).days


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2020-02-29", "2020-02-29"),
        (" 2020-2-9T x", "2020-02-09"),
        ("2020", "2020-01-01"),
        ("2020-5", "2020-05-01"),
        ("10000-01-01", "+10000-01-01"),
        ("-0001-01-01", "-0001-01-01"),
        ("02020-01-01", "2020-01-01"),
        ("2020-01-01 garbage", "2020-01-01"),
    ],
)
def test_date_forms(text: str, shown: str) -> None:
    days = instants.parse_date(text)
    assert days is not None
    assert instants.date_text(days) == shown


@pytest.mark.parametrize(
    "text",
    [
        "2021-02-29",
        "20200105",
        "2020-01-",
        "",
        "2020-01-01x",
        "12345678-01-01",
        "x",
        "2020-13-01",
        "\uff12\uff10\uff12\uff10",
    ],
)
def test_malformed_dates(text: str) -> None:
    assert instants.parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2021-03-14 02:30:00", "2021-03-14 10:30:00"),  # a gap moves forward
        ("2024-11-03 01:30:00", "2024-11-03 08:30:00"),  # an overlap takes the earlier offset
        ("2024-11-03 02:30:00", "2024-11-03 10:30:00"),
        ("2020-01-01 00:00:00Z", "2020-01-01 00:00:00"),
        ("2020-01-01T10:11:12.1234567+02:00", "2020-01-01 08:11:12.123456"),
        ("2020-01-01 10", "2020-01-01 18:00:00"),
        ("2020-1-1 1:2:3.5 PST", "2020-01-01 09:02:03.5"),
        ("2020", "2020-01-01 08:00:00"),
        ("0001-01-01 00:00:00", "0001-01-01 07:52:58"),
    ],
)
def test_timestamps_in_a_zone_with_summer_time(text: str, instant: str) -> None:
    micros = instants.parse_timestamp(text, LA)
    assert micros is not None
    assert instants.stamp_text(micros) == instant


@pytest.mark.parametrize(
    "text",
    ["2020-01-01 10:11Z", "10:11:12", "T10", "2020-01-01 24:00:00", "2020-01-01 1:2:3 Nowhere", "now", "1:2:3:4"],
)
def test_malformed_timestamps(text: str) -> None:
    assert instants.parse_timestamp(text, LA) is None


def test_a_zone_is_ignored_or_refused_without_one() -> None:
    assert instants.parse_ntz("2020-01-01 00:00:00 Europe/Berlin") == instants.parse_ntz("2020-01-01")
    assert instants.parse_ntz("2020-01-01 00:00:00Z", allow_zone=False) is None


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("UTC", UTC),
        ("Z", UTC),
        ("GMT", UTC),
        ("PST", Zone("America/Los_Angeles")),
        ("UTC+8", Zone(None, 8 * 3_600_000_000)),
        ("+8", Zone(None, 8 * 3_600_000_000)),
        ("+8:00", Zone(None, 8 * 3_600_000_000)),
        ("GMT-3:30", Zone(None, -12_600_000_000)),
        ("-0330", Zone(None, -12_600_000_000)),
        ("EST", Zone(None, -5 * 3_600_000_000)),
        ("Europe/Brussels", Zone("Europe/Brussels")),
        ("foo", None),
        ("", None),
        ("utc", None),
        ("America/los_angeles", None),
        ("+25:00", None),
        ("+18:01", None),
        ("-12.5", None),
        ("../etc/passwd", None),
    ],
)
def test_java_zone_ids(name: str, zone: Zone | None) -> None:
    assert zone_of(name) == zone


@settings(deadline=None)
@given(st.integers(-62_000_000_000_000_000, 250_000_000_000_000_000))
def test_local_times_come_back(micros: int) -> None:
    local = instants.local_of(micros, LA)
    back = instants.instant_of(local, LA)
    # only an hour that occurs twice may come back as its first occurrence
    assert back == micros or (micros - back == 3_600_000_000 and instants.local_of(back, LA) == local)
