"""`gateway spark install | check`: what a local Spark needs is brought or looked for; 0 if it could start, else 2."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from gateway.cli.findings import FAIL, OK, Finding, report
from gateway.cli.settings import settings_flags
from gateway.config import load_config
from gateway.engine.spark import setup
from gateway.errors import ConfigError


def run(arguments: argparse.Namespace) -> int:
    """Bring the jars, if asked to, and say what is there and what is missing."""
    folder = _folder(arguments)
    programs = report(program_findings())
    jars = report(_install(folder) if arguments.action == "install" else jar_findings(folder))
    good = programs and jars
    print("Spark can start." if good else "Spark cannot start: see FAIL above.")
    return 0 if good else 2


def program_findings(missing: str = FAIL, note: str = "") -> Iterator[Finding]:
    """pyspark and Java; `missing` is the verdict on what is not there or not right, `note` ends its detail."""
    problem = setup.pyspark_problem()
    if problem is None:
        yield Finding(OK, "pyspark", metadata.version("pyspark"))
    else:
        yield Finding(missing, "pyspark", problem.detail + note)
    problem = setup.java_problem()
    if problem is None:
        java = str(setup.find_java())
        yield Finding(OK, "java", f"{setup.java_version(java)} at {java}")
    else:
        yield Finding(missing, "java", problem.detail + note)


def jar_findings(folder: Path, missing: str = FAIL, note: str = "") -> Iterator[Finding]:
    """Each jar, as `program_findings` has it."""
    for jar in setup.JARS:
        problem = setup.jar_problem(folder, jar)
        if problem is None:
            yield Finding(OK, "spark jar", str(folder / jar.file))
        else:
            yield Finding(missing, "spark jar", problem.detail + note)


def _install(folder: Path) -> Iterator[Finding]:
    missing = setup.missing_jars(folder)
    for jar in setup.JARS:
        if jar not in missing:
            yield Finding(OK, "spark jar", f"{folder / jar.file} (already there)")
    if not missing:
        return
    print(f"Maven brings {', '.join(j.file for j in missing)}; this may take a minute ...", flush=True)
    failure: ConfigError | None = None
    try:
        setup.install(folder)
    except ConfigError as error:
        failure = error
    for jar in missing:
        if setup.jar_problem(folder, jar) is None:
            yield Finding(OK, "spark jar", f"{folder / jar.file} (brought)")
    if failure is not None:
        yield Finding(FAIL, "spark jar", failure.message)


def _folder(arguments: argparse.Namespace) -> Path:
    # The folder is the only setting that counts here; it is refused without `spark`, and nothing goes without a warehouse.
    flags = {**settings_flags(arguments), "spark": "local[*]", "warehouse": "."}
    return load_config(flags, config_file=arguments.config).spark_jars or setup.default_folder()
