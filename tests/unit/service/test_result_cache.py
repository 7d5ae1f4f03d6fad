"""Answers are kept by all that they depend on, for as long as their witnesses hold, within a bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.base import Finished, Parameter, Planned, Rows, SessionState, Statement, TempView, Witness
from gateway.service.holdings import weight
from gateway.service.result_cache import Answer, ResultCache
from gateway.sqltypes import BIGINT, StructField, struct
from gateway.worker_jobs import marker_of

STATE = SessionState("main", "default", "me", {"timezone": "UTC"})
JOB = Statement("1", "SELECT * FROM t", STATE)
OTHERS: list[Statement] = [
    replace(JOB, text="SELECT * FROM  t"),
    replace(JOB, parameters=(Parameter(None, "INT", "1"),)),
    replace(JOB, row_limit=5),
    replace(JOB, session=replace(STATE, catalog="samples")),
    replace(JOB, session=replace(STATE, schema="other")),
    replace(JOB, session=replace(STATE, user="you")),
    replace(JOB, session=replace(STATE, settings={"timezone": "Asia/Tokyo"})),
    replace(JOB, session=replace(STATE, settings={})),
]


def answer(folder: Path, size: int = 100, **witness: Any) -> Answer:
    commit = folder / "5.json"
    if not commit.exists():
        commit.touch()
    seen = Witness(str(commit), marker_of(str(commit)), str(folder / "6.json"))
    planned = Planned("SELECT", "cache", "", struct(StructField("id", BIGINT)), witnesses=(replace(seen, **witness),))
    return Answer(planned, (Rows(1, b"x" * size),), Finished(1))


@pytest.mark.parametrize("other", OTHERS)
def test_whatever_a_statement_sees_makes_another_one(other: Statement) -> None:
    assert JOB.key == replace(JOB, statement_id="2", brief=True).key != other.key is not None


def test_sessions_with_views_of_their_own_keep_nothing() -> None:
    view = TempView("v", "SELECT 1", ("a",), "main", "default")
    assert replace(JOB, session=replace(STATE, views={"v": view})).key is None


def test_an_answer_holds_until_its_files_change(tmp_path: Path) -> None:
    cache = ResultCache(1 << 20)
    kept = answer(tmp_path)
    cache.keep("k", kept)
    assert cache.find("k") is kept and cache.find("other") is None
    (tmp_path / "6.json").touch()
    assert cache.find("k") is None
    (tmp_path / "6.json").unlink()
    assert cache.find("k") is None  # it is gone for good
    cache.keep("k", answer(tmp_path))
    (tmp_path / "5.json").write_text("another")
    assert cache.find("k") is None
    cache.keep("k", answer(tmp_path))
    (tmp_path / "5.json").unlink()
    assert cache.find("k") is None


def test_what_nothing_shows_to_hold_is_not_kept(tmp_path: Path) -> None:
    cache = ResultCache(1 << 20)
    for witnesses in (None, ()):  # no witness at all: it reads nothing
        kept = answer(tmp_path)
        kept = replace(kept, planned=replace(kept.planned, witnesses=witnesses))
        cache.keep("k", kept)
        assert cache.find("k") is (kept if witnesses == () else None)


def test_the_size_is_bounded_and_the_oldest_go(tmp_path: Path) -> None:
    cache = ResultCache(16 * (answer(tmp_path, 1000).size + weight(0)))
    cache.keep(-1, answer(tmp_path, 1001))
    assert cache.find(-1) is None
    for number in range(16):
        cache.keep(number, answer(tmp_path, 1000))
    assert cache.find(0) is not None  # used again
    cache.keep(3, answer(tmp_path, 1000))  # the same once more
    cache.keep(99, answer(tmp_path, 1000))
    assert [cache.find(n) is not None for n in (0, 1, 2, 3, 99)] == [True, False, True, True, True]
    assert cache._size <= cache._limit and cache._size == sum(a.size + weight(k) for k, a in cache._answers.items())


def test_long_statements_count(tmp_path: Path) -> None:
    cache = ResultCache(1 << 20)
    for number in range(100):
        job = replace(JOB, text=f"SELECT {number}, length('{'x' * 30_000}')")
        cache.keep(job.key, answer(tmp_path))
    assert 0 < len(cache._answers) < 40
    cache.keep(replace(JOB, text="x" * (1 << 20)).key, answer(tmp_path))
    assert cache.find(replace(JOB, text="x" * (1 << 20)).key) is None
