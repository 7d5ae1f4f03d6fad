"""`gateway doctor`: would the server start here, with these settings, and work well?"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import sys
import tempfile
import zoneinfo
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from gateway.cli.findings import FAIL, OK, WARN, Finding, report
from gateway.cli.settings import settings_flags
from gateway.cli.spark import jar_findings, program_findings
from gateway.config import PINS, Config, check_pins, format_bytes, load_config
from gateway.engine import confinement
from gateway.engine.spark import setup
from gateway.engine.spark.masters import find, is_connect
from gateway.engine.spark.properties import read_properties
from gateway.errors import ConfigError

_MINIMUM_DISK = 1024**3


def run(arguments: argparse.Namespace) -> int:
    """Print all findings; 1 if one of them would keep the server from working, 2 for bad settings."""
    flags = settings_flags(arguments)
    findings: list[Finding] = []
    try:
        config = load_config(flags, config_file=arguments.config)
    except ConfigError as error:
        if error.setting != "warehouse" or flags["warehouse"]:
            raise
        findings.append(Finding(WARN, "warehouse", "not given; checked as if it were the current folder"))
        config = load_config({**flags, "warehouse": "."}, config_file=arguments.config)
    findings += examine(config)
    return 0 if report(findings) else 1


def examine(config: Config) -> Iterator[Finding]:
    """All findings for `config`."""
    yield Finding(OK, "python", f"{sys.version.split()[0]} at {sys.executable}")
    yield _pins()
    yield _port(config)
    yield _folder("warehouse", config.warehouse)
    yield _folder("state", config.state)
    for root in config.allow_path:
        readable = os.access(root, os.R_OK | os.X_OK)
        yield Finding(OK if readable else FAIL, "allow-path", f"{root}{'' if readable else ' cannot be read'}")
    yield _disk(config)
    yield _memory(config)
    yield _files()
    yield _confinement(config)
    zones = len(zoneinfo.available_timezones())
    yield Finding(OK if zones > 300 else FAIL, "time zones", f"{zones} known")
    yield from _spark(config)


def _pins() -> Finding:
    try:
        check_pins()
    except ConfigError as error:
        return Finding(FAIL, "libraries", error.message)
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in PINS)
    return Finding(OK, "libraries", versions)


def _port(config: Config) -> Finding:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((config.host.strip("[]"), config.port))
        except OSError as error:
            return Finding(FAIL, "port", f"{config.host}:{config.port}: {error.strerror}")
    return Finding(OK, "port", f"{config.host}:{config.port} is free")


def _folder(what: str, path: Path) -> Finding:
    existing = next(p for p in (path, *path.parents) if p.exists())
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        return Finding(FAIL, what, f"{existing} cannot be written: {error.strerror}")
    return Finding(OK, what, f"{path} {'can be written' if path.exists() else 'will be made'}")


def _disk(config: Config) -> Finding:
    existing = next(p for p in (config.state, *config.state.parents) if p.exists())
    free = shutil.disk_usage(existing).free
    verdict = FAIL if free < _MINIMUM_DISK else WARN if free < config.spool_limit else OK
    return Finding(
        verdict,
        "disk",
        f"{format_bytes(free >> 30 << 30)} free for spooled results, the limit is {format_bytes(config.spool_limit)}",
    )


def available_memory() -> int | None:
    """Bytes that this process may use: the machine's, or the control group's if that is less; None if unknown."""
    limits: list[int] = []
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError):
        return None
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


def _memory(config: Config) -> Finding:
    available = available_memory()
    if available is None:
        return Finding(WARN, "memory", f"unknown; the limit is {format_bytes(config.memory_limit)}")
    heap = config.spark_memory if config.spark is not None and not is_connect(config.spark) else 0
    verdict = OK if config.memory_limit + heap <= available * 0.8 else WARN
    spark = f", Spark's heap {format_bytes(heap)}" if heap else ""
    text = f"engines spill at {format_bytes(config.memory_limit)}{spark}, {config.slots} slots"
    return Finding(verdict, "memory", f"{available / 1024**3:.1f} GiB, {text}")


def _files() -> Finding:
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except ImportError:
        return Finding(WARN, "open files", "the limit is unknown")
    return Finding(OK if soft >= 1024 else WARN, "open files", f"limit {soft}")


def _confinement(config: Config) -> Finding:
    if not config.confine:
        return Finding(WARN, "confinement", "off: links may lead engine processes to other folders for a moment")
    if not confinement.version():
        return Finding(
            WARN, "confinement", "the kernel has no Landlock: links may lead engine processes elsewhere for a moment"
        )
    return Finding(OK, "confinement", "engine processes open files of their folders only")


def _spark(config: Config) -> Iterator[Finding]:
    """What the second engine needs: optional while it is not asked for."""
    if config.spark is None:
        yield from program_findings(WARN, " (optional, for --spark)")
        yield from jar_findings(setup.default_folder(), WARN, " (optional, for --spark)")
        return
    if is_connect(config.spark):
        yield _connect_client()
        yield from _server(config.spark)
    else:
        yield from program_findings()
        yield from jar_findings(config.spark_jars or setup.default_folder())
        yield from _server(config.spark)
    if config.spark_properties is not None:
        yield _properties(config.spark_properties)


def _connect_client() -> Finding:
    problem = setup.connect_problem()
    if problem is not None:
        return Finding(FAIL, problem.what, problem.detail)
    return Finding(OK, "pyspark", f"{metadata.version('pyspark')} with Spark Connect")


def _server(master: str) -> Iterator[Finding]:
    try:
        where = find(master)
    except ConfigError as error:
        yield Finding(FAIL, "spark", error.message.removeprefix("spark: "))
    else:
        if where is not None:
            yield Finding(OK, "spark", where)


def _properties(path: Path) -> Finding:
    try:
        found = read_properties(path)
    except ConfigError as error:
        return Finding(FAIL, "properties", error.message)
    return Finding(OK, "properties", f"{path}: {len(found)} settings of Spark")
