"""Built-in jobs on a real local Spark with Delta; what they write is read back through the gateway's own engine.

Needs Java, pyspark and the Delta jars (GATEWAY_SPARK_JARS, else the cache folder); skipped otherwise.
"""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from gateway.cli import job
from gateway.cli.main import make_parser
from gateway.engine.spark import setup
from gateway.pipelines.jobs import session

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-jobs"),
    # pyspark speaks of pandas, which it only imports
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark.*"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark.*"),
]


def jars() -> Path:
    """The folder of the Delta jars."""
    given = os.environ.get("GATEWAY_SPARK_JARS")
    return Path(given) if given else setup.default_folder()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The one Spark of this module."""
    missing = [p.detail for p in setup.problems(jars())]
    if missing:
        pytest.skip("; ".join(missing))
    from gateway.engine.spark import session as spark_session

    derby = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
    settings = spark_session.settings(
        setup.jar_paths(jars()), tmp_path_factory.mktemp("spark"), memory=1 << 30, extra=derby
    )
    one = spark_session.start("local[2]", settings)
    yield one
    one.stop()


Run = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def run(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `gateway job …` on the shared Spark with a warehouse of its own: exit code, its JSON, standard error."""
    monkeypatch.delenv("GATEWAY_SPARK_JARS", raising=False)

    class Shared:
        def __enter__(self) -> Any:
            return spark

        def __exit__(self, *exc: object) -> None: ...

    monkeypatch.setattr(session, "spark_session", lambda *_, **__: Shared())

    def run_job(*words: str) -> tuple[int, Any, str]:
        arguments: Namespace = make_parser().parse_args(
            ["job", *words, "--json", "--warehouse", str(tmp_path / "wh"), "--state", str(tmp_path / "state")]
        )
        capsys.readouterr()
        code = job.run(arguments)
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else None, err

    return run_job


def rows(folder: Path) -> pa.Table:
    """The rows of a Delta table, read without Spark."""
    return DeltaTable(str(folder)).to_pyarrow_table()


# ---- generate and verify


def test_all_types_are_equal_on_both_engines_and_the_same_again(run: Run, tmp_path: Path) -> None:
    code, report, err = run("generate", "all-types", "--scale", "0.2")
    assert code == 0, err
    assert report["summary"][0]["rows"] == 205
    code, report, err = run("verify", "generated.all_types")
    assert code == 0, (report, err)
    assert report["notes"] == ["same"]
    first = {line["what"]: line["spark"] for line in report["summary"]}
    assert len(first) == 2 + 24
    assert run("generate", "all-types", "--scale", "0.2", "--into", "s.again")[0] == 0
    code, report, _ = run("verify", "main.s.again")
    assert {line["what"]: line["spark"] for line in report["summary"]} == first
    assert run("generate", "all-types", "--scale", "0.2", "--into", "s.other", "--seed", "7")[0] == 0
    code, report, _ = run("verify", "main.s.other")
    other = {line["what"]: line["spark"] for line in report["summary"]}
    assert {what for what in first if first[what] == other[what]} == {"rows", "column id", "column c_void"}
    code, _, err = run("generate", "all-types")
    assert (code, "exists already" in err) == (2, True)
