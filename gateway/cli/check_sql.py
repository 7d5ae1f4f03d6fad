"""`gateway check-sql`: what of a file of statements would run here, what not, why and where."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from gateway.cli.embedded import embedded_config
from gateway.cli.settings import settings_flags
from gateway.errors import ConfigError, GatewayError
from gateway.observability import configure_logging

_STACK_BYTES = 256 * 1024 * 1024  # as in a worker: deep trees are walked by recursion


def run(arguments: argparse.Namespace) -> int:
    """0 if every statement would run, 1 otherwise."""
    text = _read(arguments.file)
    config = embedded_config(settings_flags(arguments), arguments.config)
    configure_logging(level="warning")
    from gateway.app import prepare_folders, runner_factory
    from gateway.runner.check import Checked, check

    prepare_folders(config)
    reports: list[Checked] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            runner = runner_factory(config)()
            runner.warm_up()
            reports.extend(check(text, runner))  # type: ignore[arg-type]  # the factory promises a Handler only
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            failures.append(error)

    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=work)
    thread.start()
    threading.stack_size(0)
    thread.join()
    if failures and isinstance(failures[0], GatewayError):
        print(f"{arguments.file}: {failures[0].text(text)}", file=sys.stderr)
        return 1
    if failures:
        raise failures[0]
    for report in reports:
        if arguments.json:
            print(json.dumps({"file": arguments.file, **asdict(report)}, ensure_ascii=False))
        else:
            first = " ".join(report.text.split())
            shown = first if len(first) <= 60 else first[:57] + "..."
            why = f"{report.engine}: {report.reason}" if report.engine else f"[{report.condition}] {report.reason}"
            print(f"{arguments.file}:{report.line}:{report.column}: {report.verdict:7} {shown}\n    {why}")
    counts = Counter(str(report.verdict) for report in reports)
    if not arguments.json:
        print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "no statements")
    return 0 if set(counts) <= {"runs"} else 1


def _read(name: str) -> str:
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8-sig")  # editors on Windows begin files with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("file", f"{name} cannot be read: {error}") from error
