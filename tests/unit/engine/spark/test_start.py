"""`gateway serve --spark` where Spark cannot start: told at once, with the remedy. No JVM is started here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.gateway import clean_environment


def serve(folder: Path, *flags: str, **environment: str) -> tuple[int, str]:
    """Exit code and what was said."""
    (folder / "warehouse").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "gateway", "serve", "--warehouse", str(folder / "warehouse"), "--port", "0"]
    done = subprocess.run(
        [*command, "--state", str(folder / "state"), *flags],
        env={**clean_environment(), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def test_without_java(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    code, said = serve(tmp_path, "--spark", "local[2]", PATH=str(empty), JAVA_HOME="")
    assert code == 2 and "Java is not found: install Java 17 or 21, or set JAVA_HOME" in said


def test_with_a_java_that_is_too_old(tmp_path: Path) -> None:
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    code, said = serve(tmp_path, "--spark", "local[2]", JAVA_HOME=str(java.parents[1]))
    assert code == 2 and "is Java 11" in said and "needs Java 17 or 21" in said


@pytest.mark.parametrize("how", ["missing", "wrong"])
def test_with_missing_or_wrong_jars(tmp_path: Path, how: str) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    if how == "wrong":
        (jars / "delta-storage-4.4.0.jar").write_bytes(b"not a jar")
    code, said = serve(tmp_path, "--spark", "local[2]", "--spark-jars", str(jars))
    assert code == 2 and f"gateway spark install --spark-jars {jars}" in said
    assert how == "missing" or "its SHA-256 is" in said


@pytest.mark.parametrize("text", ["spark.master spark://x:1", "no.setting 1", "spark.sql.ansi.enabled false"])
def test_with_properties_that_cannot_be(tmp_path: Path, text: str) -> None:
    found = subprocess.run([sys.executable, "-c", "import pyspark"], capture_output=True, env=dict(os.environ))
    if found.returncode:
        pytest.skip("pyspark is not installed")
    properties = tmp_path / "spark.conf"
    properties.write_text(text + "\n")
    code, said = serve(tmp_path, "--spark", "local[2]", "--spark-properties", str(properties))
    assert code == 2 and "line 1" in said
