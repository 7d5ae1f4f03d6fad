"""Built-in jobs on a Spark that is there already."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import job
from gateway.cli.main import make_parser
from gateway.pipelines.jobs import session

# The words of a job; exit code, its JSON, standard error.
Run = Callable[..., tuple[int, Any, str]]


def jobs_on(spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `gateway job …` on `spark` with the warehouse `folder`/wh."""
    monkeypatch.delenv("GATEWAY_SPARK_JARS", raising=False)

    class Shared:
        def __enter__(self) -> Any:
            return spark

        def __exit__(self, *exc: object) -> None: ...

    monkeypatch.setattr(session, "spark_session", lambda *_, **__: Shared())

    def run_job(*words: str) -> tuple[int, Any, str]:
        arguments: Namespace = make_parser().parse_args(
            ["job", *words, "--json", "--warehouse", str(folder / "wh"), "--state", str(folder / "state")]
        )
        capsys.readouterr()
        code = job.run(arguments)
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else None, err

    return run_job
