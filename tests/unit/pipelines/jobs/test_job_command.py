"""`gateway job` before Spark starts: what it lacks, what cannot be done, what a dry run says."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli import main


def job(tmp_path: Path, *words: str) -> int:
    return main(["job", *words, "--quiet", "--warehouse", str(tmp_path / "wh"), "--state", str(tmp_path / "state")])


def test_what_spark_lacks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert job(tmp_path, "generate", "events", "--spark-jars", str(tmp_path / "nojars")) == 2
    error = capsys.readouterr().err
    assert "where there is no bin/java" in error and "gateway spark install" in error
    assert not (tmp_path / "wh").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["generate", "events", "--scale", "0"], "scale: 0 is not between"),
        (["generate", "events", "--scale", "nan"], "scale: nan is not between"),
        (["generate", "events", "--into", "x"], "'x' is not a table's name"),
        (["generate", "tpch", "--seed", "1"], "seed: has no effect on tpch"),
        (["maintain", "compact", "s.t"], "does not exist"),
        (["maintain", "vacuum", "s.t", "--retain", "3"], "does not exist"),
        (["verify", "s.t", "--tolerance", "2"], "tolerance: 2 is not between"),
        (["verify", "s.t"], "warehouse"),
        (["ingest", "s.t", "--cursor", "c"], "cursor: has an effect only with --jdbc"),
        (["ingest", "s.t", "--jdbc", "jdbc:x:y"], "one of --query and --table"),
        (["ingest", "s.t", "--jdbc", "jdbc:x:y", "--table", " "], "table: is empty"),
        (["ingest", "s.t", "--jdbc", "jdbc:x:y", "--table", "t", "--cursor", ""], "cursor: is empty"),
        (["ingest", "s.t", "--jdbc", "http://x", "--table", "t"], "does not start with jdbc:"),
        (["ingest", "a", "s.t", "--jdbc", "jdbc:x:y", "--table", "t"], "only the name of the table"),
        (["ingest", "s.t", "--jdbc", "jdbc:x:y", "--table", "t", "--jar", "no.jar"], "no.jar is not a file"),
        (["ingest", "s.t", "--jdbc", "jdbc:x:y", "--table", "t", "--cursor", "c", "--replace"], "leave --cursor out"),
        (["ingest", "s.t", "--jdbc", "jdbc:x:y", "--table", "t", "--other-source", "add"], "only with --cursor"),
        (["generate", "events", "--spark", "nonsense"], "no Spark master"),
    ],
)
def test_bad_input_is_refused_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    assert job(tmp_path, *words) == 2
    assert text in capsys.readouterr().err


def test_dry_runs_change_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert job(tmp_path, "generate", "tpch", "--dry-run") == 0
    assert f"would create tpch.orders in {tmp_path}/wh/tpch/orders" in capsys.readouterr().out
    (tmp_path / "wh").mkdir()
    assert job(tmp_path, "verify", "select 1", "--dry-run") == 0
    assert "would run on Spark (local) and on DataFusion" in capsys.readouterr().out
    (tmp_path / "in").mkdir()
    assert job(tmp_path, "ingest", str(tmp_path / "in"), "s.t") == 0
    assert "0 rows loaded into s.t" in capsys.readouterr().out
    assert not list((tmp_path / "wh").iterdir())
