"""What holds for all tests on Spark."""

from collections.abc import Iterator

import pytest

from tests.live.spark import Background


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """A test that fails leaves its statements; their connections would try for minutes to reach a server that is gone."""
    yield
    Background.end_all()
