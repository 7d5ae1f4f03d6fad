"""What a function of ours, or the engine, fails with: words of ours for the client, the rest in the log."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from gateway.engine.base import UdfSpec
from gateway.engine.datafusion import engine_error
from gateway.engine.functions import IMPLEMENTATIONS, Kernel, RowError, guarded, load, row_error_in
from gateway.errors import ResourceError, ServerError, UserError
from gateway.sqltypes import DATE, DOUBLE, INT, STRING, YEAR_MONTH, DataType, array


def failing(error: Exception) -> Kernel:
    def kernel(*arrays: pa.Array) -> pa.Array:
        raise error

    return kernel


@pytest.mark.parametrize(
    ("raised", "kind", "condition"),
    [
        (OverflowError("days=2147483647 in /srv/x.py"), ServerError, "INTERNAL_ERROR"),
        (ZeroDivisionError("boom /srv/x.py"), ServerError, "INTERNAL_ERROR"),
        (MemoryError(), ResourceError, "RESOURCE_EXHAUSTED"),
        (pa.ArrowCapacityError("array cannot contain more"), ResourceError, "RESOURCE_EXHAUSTED"),
    ],
)
def test_only_words_of_ours_leave_a_function(
    raised: Exception, kind: type, condition: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RowError) as caught:
        guarded(failing(raised), "thing")(pa.array([1]))
    told = row_error_in(f"Execution error: {caught.value}")
    assert told is not None
    assert type(told) is kind
    assert told.condition == condition
    assert "thing" in told.message
    assert not any(word in told.text() for word in ("srv", "Error(", "Traceback", "cannot contain"))
    assert type(raised).__name__ in capsys.readouterr().err  # the log has it all


def test_an_error_of_a_row_passes_unchanged() -> None:
    with pytest.raises(RowError) as caught:
        guarded(failing(RowError("DIVIDE_BY_ZERO", "Division by zero.")), "thing")(pa.array([1]))
    told = row_error_in(str(caught.value))
    assert isinstance(told, UserError)
    assert told.condition == "DIVIDE_BY_ZERO"


def test_the_engines_words_stay_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    told = engine_error(RuntimeError("Optimizer rule 'simplify' failed at src/plan.rs:12"))
    assert told.condition == "INTERNAL_ERROR"
    assert "rule" not in told.text()
    assert "plan.rs" not in told.text()
    assert "plan.rs" in capsys.readouterr().err


@pytest.mark.parametrize("mark", ["offset overflow", "string size overflow on repeat, max size is 2147483647"])
def test_too_long_texts(mark: str) -> None:
    assert engine_error(RuntimeError(f"Execution error: {mark}")).condition == "RESOURCE_EXHAUSTED"


def test_a_side_of_a_join_that_cannot_be_spilled() -> None:
    told = engine_error(RuntimeError("Internal error: Left side produced no data to spill."))
    assert told.condition == "RESOURCE_EXHAUSTED"


def run(impl: str, types: tuple[DataType, ...], params: tuple[Any, ...], *values: object) -> object:
    load()
    kernel = IMPLEMENTATIONS[impl](UdfSpec(impl, types, STRING, params))
    return kernel(*(pa.array([v], t.arrow()) for v, t in zip(values, types, strict=True)))[0].as_py()


@pytest.mark.parametrize(
    ("pattern", "length"), [("%.10000f", 10002), ("%.1000e", 1006), ("%1000000.1f", 1000000), ("%,.1000g", 1001)]
)
def test_long_numbers(pattern: str, length: int) -> None:
    text = run("format_string", (STRING, DOUBLE), (("DOUBLE",),), pattern, 1.0)
    assert len(str(text)) == length


@pytest.mark.parametrize("pattern", ["%2147483647s", "%.999999999f", "%99999999d"])
def test_longer_ones_are_an_error_of_resources(pattern: str) -> None:
    with pytest.raises(RowError) as caught:
        run("format_string", (STRING, DOUBLE), (("DOUBLE",),), pattern, 1.0)
    told = row_error_in(str(caught.value))
    assert isinstance(told, ResourceError)


def test_places_of_doubles_end_where_javas_do() -> None:
    assert len(str(run("format_number", (DOUBLE, INT), (False,), 1e300, 1000))) == 742
    assert run("format_number", (DOUBLE, INT), (False,), -0.001, 2) == "-0.00"
    assert run("format_number", (DOUBLE, INT), (False,), math.inf, 2147483647) == "∞"


def test_days_after_the_year_9999_are_told_as_any_other() -> None:
    day = pa.array([4_018_262], pa.int32()).cast(pa.date32())
    moments = IMPLEMENTATIONS["sequence_moments"](
        UdfSpec("sequence_moments", (DATE, DATE, YEAR_MONTH), array(DATE), ("UTC",))
    )
    with pytest.raises(RowError) as caught:
        moments(day, pa.array([0], pa.int32()).cast(pa.date32()), pa.array([1], pa.int32()))
    told = row_error_in(str(caught.value))
    assert told is not None
    assert "4018262 to 0 by 1" in told.message
