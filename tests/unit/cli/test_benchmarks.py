"""What the benchmarks make of what they have measured: rows, verdicts, records."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks import run, short
from benchmarks.answers import alike, same
from benchmarks.measure import Row
from benchmarks.suite import Answered, geomean, report, total
from benchmarks.systems import Folders


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


def test_a_ratio_is_lost_that_is_a_fifth_worse_than_the_last_that_was_kept(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    assert short.last(history) == {}
    records = [{"ratios": {"x": 9.0}}, {"date": "2026-01-01", "commit": "a1", "ratios": {"x": 1.0, "y": 1.0}}]
    history.write_text("".join(json.dumps(record) + "\n" for record in records))
    rows = [Row("x"), Row("y"), Row("z")]
    short.compared(rows, {"x": 1.19, "y": 1.21, "z": 5.0}, short.last(history))
    assert [row.figures["change"] for row in rows] == ["", "LOST", ""]
    assert [row.figures["ratio"] for row in rows] == ["1.19", "1.21", "5.00"]
    assert [row.figures["2026-01-01, a1"] for row in rows] == ["1.00", "1.00", ""]


@pytest.mark.parametrize(("right", "code", "kept"), [(True, 0, 1), (False, 1, 0)])
def test_only_a_wrong_answer_fails_and_is_not_kept(
    right: bool, code: int, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = tmp_path / "history.jsonl"
    monkeypatch.setattr(short, "HISTORY", history)
    monkeypatch.setattr(short, "commit", lambda: "a1")
    monkeypatch.setattr(short, "run", lambda: ([Row("x")], {"x": 1000.0}, right))
    assert short.main([]) == code and not history.exists()
    assert short.main(["--keep"]) == code
    assert len(history.read_text().splitlines() if history.exists() else []) == kept
    if kept:
        assert short.last(history)["commit"] == "a1" and short.last(history)["ratios"] == {"x": 1000.0}


def test_the_works_of_the_short_form_tell_right_from_wrong(tmp_path: Path) -> None:
    class Asked:
        name = "asked"
        pid: int | None = None

        def use(self, folders: Folders) -> None: ...

        def query(self, sql: str) -> pa.Table:
            return pa.table({"n": [sql]})

    asked = Asked()
    works = {case.name: case for case in short.cases(asked, asked, asked, tmp_path)}
    assert set(short.QUERIES) < set(works)
    all_rows = pa.table({"n": [short.INSERTED]})
    assert works["INSERT"].is_right(all_rows, all_rows)
    assert not works["INSERT"].is_right(all_rows, pa.table({"n": [1]}))
    answer = pa.table({"a": [5, 6]})
    assert works["transfer, columnar"].is_right(answer, pa.table({"rows": [2]}))
    assert not works["transfer, columnar"].is_right(answer, pa.table({"rows": [3]}))
    assert works["join"].is_right is same
