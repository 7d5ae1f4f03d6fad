"""Old clients are answered on the scale that they know, or refused."""

import pytest

from gateway.errors import ProtocolError
from gateway.protocol import versions


@pytest.mark.parametrize(
    ("hive", "spark", "answer"),
    [
        (5, None, 5),  # PyHive, impyla: must be echoed exactly
        (6, None, 6),
        (9, None, 9),  # hive-jdbc
        (10, None, 9),
        (42240, None, 9),
        (-7, 0xA501, 0xA501),
        (-7, 0xA507, 0xA507),  # the Python connector
        (None, 0xA508, 0xA508),
        (-7, 0xA509, 0xA509),
        (-7, 0xA50A, 0xA509),
        (0xA506, None, 0xA506),  # on Spark's scale in the older field
        (-7, 0xFF01, 0xA509),
        (None, None, 5),  # no version at all
        (-7, None, 5),
    ],
)
def test_answer_is_on_the_scale_of_the_client(hive: int | None, spark: int | None, answer: int) -> None:
    assert versions.negotiate(hive, spark) == answer
    assert versions.is_spark(answer) == (answer >= 0xA501)


@pytest.mark.parametrize(
    ("hive", "spark", "text"),
    [
        (4, None, "V5"),
        (0, None, "V1"),
        (-3, None, "-3"),
    ],
)
def test_versions_without_columnar_results_are_refused(hive: int | None, spark: int | None, text: str) -> None:
    with pytest.raises(ProtocolError, match=text) as caught:
        versions.negotiate(hive, spark)
    assert caught.value.sqlstate == "08004"


def test_arrow_schema_from_v5_on() -> None:
    have = [p for p in (*range(10), *range(0xA501, 0xA50A)) if versions.has_arrow_schema(p)]
    assert have == [0xA505, 0xA506, 0xA507, 0xA508, 0xA509]
