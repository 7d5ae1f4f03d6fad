"""What the embedded engine does to a Delta table is what Delta with Spark did when it was recorded: rows, history, actions."""

from __future__ import annotations

import pytest

from tests.live.delta_changes import CASES, effects, made, recorded
from tests.live.gateway import Connect
from tests.live.spark import Sql


@pytest.mark.parametrize("name", CASES)
def test_it_does_what_spark_did(connect: Connect, name: str) -> None:
    case, sql = CASES[name], Sql(connect())
    table = "as_recorded"
    made(case, sql.auto, table)
    for text, expected in zip(case.done, recorded()[name], strict=True):
        assert effects(case, table, text, sql.auto, sql.auto) == expected, text
