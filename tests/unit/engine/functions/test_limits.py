"""What one value or one batch of values may cost: a search that never ends, texts that no array holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from gateway.engine.base import UdfSpec
from gateway.engine.functions import IMPLEMENTATIONS, distinct, guarded, load, regex, row_error_in
from gateway.errors import ResourceError
from gateway.sqltypes import INT, STRING

load()


def kernel(name: str, *types: Any, returns: Any = STRING) -> Callable[..., Any]:
    return guarded(IMPLEMENTATIONS[name](UdfSpec(name, types, returns)), name)


def refusal(run: Callable[..., Any], *arrays: pa.Array) -> ResourceError:
    with pytest.raises(Exception) as raised:
        run(*arrays)
    error = row_error_in(str(raised.value))
    assert isinstance(error, ResourceError), error
    return error


@pytest.mark.parametrize("pattern", ["(a|aa)+(?!b)$", "(a|a|a)+(?<!b)$"])
def test_a_search_that_does_not_end_is_given_up_once(monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    monkeypatch.setattr(regex, "_SEARCH_SECONDS", 1.0)
    value = pa.array(["a" * 60 + "!"])
    run = kernel("regexp_replace", STRING, STRING, STRING, INT)
    arguments = (value, pa.array([pattern]), pa.array(["x"]), pa.array([1], pa.int32()))
    assert refusal(run, *arguments).condition == "STATEMENT_TOO_COMPLEX"
    began = time.process_time()
    refusal(run, *arguments)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("value", ["xxabbbc", "x" * 500 + "abbbc"])
@pytest.mark.parametrize("pattern", ["ab+c", "(ab)*b*c", "a.*c", "a*b*b*b*c"])
def test_all_other_searches_find_what_they_find(value: str, pattern: str) -> None:
    run = kernel("regexp_substr", STRING, STRING)
    assert run(pa.array([value]), pa.array([pattern])).to_pylist() == ["abbbc"]


@pytest.mark.parametrize("rows", [["x" * 600, "y" * 600], ["x" * 300] * 4, [None, "x" * 1001]])
def test_texts_that_no_array_holds(monkeypatch: pytest.MonkeyPatch, rows: list[str | None]) -> None:
    monkeypatch.setattr(distinct, "MAX_TEXT_BYTES", 1000)
    run = kernel("quote", STRING)
    assert refusal(run, pa.array(rows, pa.string())).condition == "RESOURCE_EXHAUSTED"
    assert run(pa.array(["x" * 400, None, "y" * 400])).to_pylist()[1] is None


def test_a_replacement_that_grows_is_stopped_before_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "MAX_TEXT_BYTES", 1000)
    run = kernel("regexp_replace", STRING, STRING, STRING, INT)
    many = (pa.array(["a" * 100]), pa.array(["a"]), pa.array(["b" * 100]), pa.array([1], pa.int32()))
    assert refusal(run, *many).condition == "RESOURCE_EXHAUSTED"


def test_what_arrow_cannot_hold_is_told_as_such() -> None:
    """Arrow raises the same class for it as for all else that is invalid."""

    def grown(values: pa.Array) -> pa.Array:
        raise pa.ArrowInvalid("Take operation overflowed binary array capacity")

    assert refusal(guarded(grown, "grown"), pa.array(["x"])).condition == "RESOURCE_EXHAUSTED"
