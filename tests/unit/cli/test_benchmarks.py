"""What the benchmarks make of what they have measured: rows, verdicts, records."""

import pyarrow as pa
import pytest

from benchmarks import run
from benchmarks.answers import alike
from benchmarks.suite import Answered, geomean, report, total


def test_long_benchmarks_run_only_when_they_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not set(run.NAMES) & set(run.LONG)
    monkeypatch.setattr(run, "NAMES", ())
    assert run.main([]) == 0
    assert "large" not in capsys.readouterr().err
    assert run.main(["nonsense"]) == 2
    assert "large" in capsys.readouterr().err


def _answered(seconds: float, value: int) -> Answered:
    return Answered(seconds, pa.table({"n": [value]}))


def test_a_suite_tells_other_answers_and_meets_nothing_with_them() -> None:
    texts = {"a": "SELECT 1", "b": "SELECT 2"}
    floor = {"a": _answered(1.0, 1), "b": _answered(4.0, 2)}
    means = [geomean("both", 1.0), total("both", 0.5)]
    right = report("w", texts, {"floor": floor, "ours": {"a": _answered(2.0, 1), "b": _answered(2.0, 2)}}, means)
    assert [(row.figures["ours"], row.ok) for row in right] == [
        ("2 s", None), ("2 s", None), ("2 s", True), ("4 s", False),
    ]  # fmt: skip
    wrong = report("w", texts, {"floor": floor, "ours": {"a": _answered(1.0, 1), "b": _answered(1.0, 3)}}, means)
    assert wrong[1].figures["ours"] == "1 s OTHER ANSWER" and [row.ok for row in wrong[2:]] == [False, False]


def test_a_suite_has_no_mean_of_who_has_not_answered_all() -> None:
    texts = {"a": "SELECT 1", "b": "SELECT 2"}
    floor = {"a": _answered(1.0, 1), "b": _answered(4.0, 2)}
    rows = report("w", texts, {"floor": floor, "ours": {"a": _answered(1.0, 1)}}, [total("all", 1.0)])
    assert [row.figures["ours"] for row in rows[:2]] == ["1 s", "no answer"]
    assert rows[2].figures == {"floor": "5 s"} and rows[2].ok is False


def test_answers_are_alike_in_any_order_but_for_digits_that_were_cut() -> None:
    floor = pa.table({"k": ["b", "a", None], "q": pa.array([None, 0.333333, 11.5243333], pa.float64())})
    ours = [("a", 0.33333333), (None, 11.5243627), ("b", None)]

    def table(rows: list[tuple[str | None, float | None]]) -> pa.Table:
        return pa.table({"k": [k for k, _ in rows], "q": [q for _, q in rows]})

    assert alike(floor, table(ours))
    assert not alike(floor, table([("a", 0.3334), *ours[1:]]))
    assert not alike(floor, table([*ours[:2], ("b", 0.0)]))
    assert not alike(floor, table([("c", 0.33333333), *ours[1:]]))
    assert not alike(floor, table(ours[1:]))
