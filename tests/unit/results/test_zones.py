"""Zone ids that Spark accepts, and wall clocks equal to the reference from year 1 to 9999 and beyond."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError, UnsupportedError, UserError
from gateway.results.zones import SHORT_IDS, arrow_zone, offset_seconds, wall_clock
from tests.unit.results.typed_values import EPOCH, MICROS, TICK, UNTIMED

# Ids that Spark accepts, with the wall clock that it shows at 2020-09-13 12:26:40 UTC.
SPARK_IDS = {
    "GMT+1": "13:26:40", "UTC+1": "13:26:40", "+1": "13:26:40", "+01:00": "13:26:40", "Z": "12:26:40", "UTC": "12:26:40",
    "EST": "07:26:40", "GMT": "12:26:40", "+1:30": "13:56:40", "-08": "04:26:40", "UTC+01:30": "13:56:40",
    "America/New_York": "08:26:40", "CST": "07:26:40", "Etc/GMT+5": "07:26:40", "UT+2": "14:26:40",
    "+01:02:03": "13:28:43", "PST": "05:26:40", "+0130": "13:56:40", "US/Pacific": "05:26:40", "ACT": "21:56:40",
}  # fmt: skip


@pytest.mark.parametrize(("zone", "clock"), SPARK_IDS.items())
def test_ids_that_spark_accepts(zone: str, clock: str) -> None:
    seconds, _ = wall_clock(np.array([1_600_000_000 * 10**6]), zone)
    assert str(seconds.astype("M8[s]")[0])[11:19] == clock


def test_arrow_names() -> None:
    zones = {z: arrow_zone(z) for z in ("UTC", "Etc/UTC", "Z", "GMT+1", "-08", "+1:30", "PST", "EST", "Europe/Berlin")}
    assert zones == {
        "UTC": "UTC", "Etc/UTC": "Etc/UTC", "Z": "UTC", "GMT+1": "+01:00", "-08": "-08:00", "+1:30": "+01:30",
        "PST": "America/Los_Angeles", "EST": "-05:00", "Europe/Berlin": "Europe/Berlin",
    }  # fmt: skip


def test_every_short_id_is_known() -> None:
    assert all(arrow_zone(zone) for zone in SHORT_IDS)


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "+19:00", "+1:60", "+1:2:3:4", "+x", "GMT+", "+12345"])
def test_unknown_ids_are_refused(zone: str) -> None:
    assert offset_seconds(zone) is None
    with pytest.raises(UserError) as error:
        arrow_zone(zone)
    assert error.value.condition == "INVALID_TIMEZONE"
    assert error.value.sqlstate == "22009"


def test_an_offset_with_seconds_has_no_arrow_name() -> None:
    with pytest.raises(UnsupportedError, match=r"\+01:02:03"):
        arrow_zone("+01:02:03")
    assert issubclass(UnsupportedError, GatewayError)


@pytest.mark.parametrize(
    "zone",
    [
        "America/Los_Angeles",
        "Europe/Berlin",
        "Africa/Casablanca",
        "Europe/Dublin",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
    ],
)
@UNTIMED
@given(instants=st.lists(MICROS, min_size=1, max_size=20))
def test_wall_clock_equals_zoneinfo_from_year_1_to_9999(zone: str, instants: list[int]) -> None:
    info = ZoneInfo(zone)
    expected = [
        i + ((EPOCH + timedelta(microseconds=i)).astimezone(info).utcoffset() or timedelta()) // TICK for i in instants
    ]
    seconds, fraction = wall_clock(np.array(instants, np.int64), zone)
    assert (seconds * 10**6 + fraction).tolist() == expected


def test_daylight_saving_time_goes_on_after_the_listed_transitions() -> None:
    july_5000, july_11476 = 95_633_049_600 * 10**6, 300_000_000_000 * 10**6
    seconds, _ = wall_clock(np.array([july_5000, july_11476]), "America/Los_Angeles")
    assert (seconds - [july_5000 // 10**6, july_11476 // 10**6]).tolist() == [-7 * 3600] * 2


def test_the_last_timestamp_has_a_wall_clock_beyond_64_bits() -> None:
    seconds, fraction = wall_clock(np.array([2**63 - 1]), "Asia/Tokyo")
    assert (int(seconds[0]), int(fraction[0])) == ((2**63 - 1) // 10**6 + 9 * 3600, 775_807)
