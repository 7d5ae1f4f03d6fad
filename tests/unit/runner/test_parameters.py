"""Parameters are the constants that their types and texts say, as Spark would cast them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gateway.errors import UserError
from gateway.worker_jobs import Parameter
from tests.unit.runner.session import Session


@pytest.mark.parametrize(
    ("type", "text", "made", "shown"),
    [
        ("DECIMAL(10,2)", "100", "decimal(10,2)", "100.00"),
        ("DECIMAL(10,2)", " 1e2 ", "decimal(10,2)", "100.00"),
        ("DECIMAL(10,2)", "-0", "decimal(10,2)", "0.00"),
        ("DECIMAL(10,2)", "1.005", "decimal(11,3)", "1.005"),
        ("DECIMAL", "12345678901", "decimal(11,0)", "12345678901"),
        ("DECIMAL(38,38)", "0.1", "decimal(38,38)", "0.1" + "0" * 37),
    ],
)
def test_decimals_have_the_digits_of_their_type(session: Session, type: str, text: str, made: str, shown: str) -> None:
    given = Parameter("p", type, text)
    asked = "SELECT typeof(:p), CAST(:p AS STRING), :p || 'x', :p"
    assert session.run(asked, given).rows == [(made, shown, f"{shown}x", Decimal(shown))]


@pytest.mark.parametrize("type", ["INT", "DOUBLE", "FLOAT", "DECIMAL(10,2)"])
@pytest.mark.parametrize("text", ["1_0", "\u0661", "", "x"])
def test_texts_that_are_numbers_to_python_alone_are_none(session: Session, type: str, text: str) -> None:
    with pytest.raises(UserError) as raised:
        session.run("SELECT :p", Parameter("p", type, text))
    assert raised.value.condition == "INVALID_PARAMETER_MARKER_VALUE.INVALID_VALUE_TYPE"
