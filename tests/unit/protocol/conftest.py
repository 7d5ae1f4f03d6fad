"""A session of Thrift over scripted statements."""

from __future__ import annotations

import pytest

from tests.unit.protocol.calls import Wire


@pytest.fixture
def wire() -> Wire:
    wire = Wire()
    wire.open()
    return wire
