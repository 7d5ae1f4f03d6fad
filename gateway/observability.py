"""Logs and metrics of the whole gateway.

A log line is an event name with fields, as JSON or readable text. Secrets never reach a line: fields whose name says so are
masked, and so is anything that looks like a token; statement texts are shown only on request. Metrics are declared in one
table; labels are of low cardinality, never a user or SQL text.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}

_SECRET_KEY = re.compile(
    r"token|password|passwd|secret|authorization|credential|api_?key|cookie|private", re.IGNORECASE
)
_SECRET_VALUE = re.compile(
    r"(?:Bearer|Basic)\s+[A-Za-z0-9+/=._~-]{6,}"
    r"|\bdapi[0-9a-f]{32}(?:-\d+)?\b"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bgh[opsu]_[A-Za-z0-9]{20,}\b"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?<=[?&]sig=)[^&\s]+",
)
# One of these is in whatever `_SECRET_VALUE` finds: most texts hold none, which takes a tenth of the time to see.
_SECRET_MARKS = ("Bearer", "Basic", "dapi", "eyJ", "AKIA", "ASIA", "gh", "://", "sig=")
_TEXT_KEYS = frozenset({"sql", "statement", "statement_text", "query"})
MASK = "***"
_LONGEST_FIELD = 8_000  # characters; names of 60,000 are legal


@dataclass(slots=True)
class _LogSettings:
    format: str = "text"
    level: int = LEVELS["info"]
    show_sql: bool = False
    stream: TextIO | None = None


_settings = _LogSettings()
_lock = threading.Lock()


def configure_logging(
    format: str = "text", level: str = "info", show_sql: bool = False, stream: TextIO | None = None
) -> None:
    """Set the process-wide log: `format` "text" or "json", `level` a key of LEVELS, `stream` stderr by default."""
    _settings.format = format
    _settings.level = LEVELS[level]
    _settings.show_sql = show_sql
    _settings.stream = stream


def _masked(text: str) -> str:
    for mark in _SECRET_MARKS:
        if mark in text:
            return _SECRET_VALUE.sub(MASK, text)
    return text


@lru_cache(maxsize=1024)
def _is_secret(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def mask(value: object) -> object:
    """`value` with everything in it that looks like a token replaced."""
    if isinstance(value, str):
        return _masked(value)
    if isinstance(value, dict):
        return {str(k): _masked_field(str(k), v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask(v) for v in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return _masked(str(value))


def _masked_field(key: str, value: object) -> object:
    if not isinstance(value, (bool, int, float)) and _is_secret(key):
        return MASK
    if key in _TEXT_KEYS and not _settings.show_sql and isinstance(value, str):
        return f"<{len(value)} characters>"
    return mask(value)


def printable(text: str, keep: str = "") -> str:
    """`text` with its control, format and separator characters (but those of `keep`) written as escapes.

    Terminals obey them: they hide lines, turn the reading direction and change colours and titles.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep or not _is_hidden(c) else _escaped(c) for c in text)


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _cut(value: object) -> object:
    if isinstance(value, str) and len(value) > _LONGEST_FIELD:
        return f"{value[:_LONGEST_FIELD]}… ({len(value)} characters)"
    return value


class Throttle:
    """Lets at most `count` events through in `seconds`; thread-safe."""

    def __init__(self, count: int, seconds: float) -> None:
        self._count = count
        self._seconds = seconds
        self._lock = threading.Lock()
        self._began = -seconds
        self._passed = self._held = 0

    def ask(self) -> int | None:
        """None if this event is to be held back; else how many were since the last one that was not."""
        now = time.monotonic()
        with self._lock:
            if now - self._began >= self._seconds:
                self._began, self._passed = now, 0
            if self._passed >= self._count:
                self._held += 1
                return None
            self._passed += 1
            held, self._held = self._held, 0
            return held


def is_logged(level: str) -> bool:
    """Whether lines of `level` are written, for whoever would gather their facts in vain."""
    return LEVELS[level] >= _settings.level


def log(event: str, level: str = "info", **fields: object) -> None:
    """Write one line: what happened (`event`, a few words) and the facts."""
    if not is_logged(level):
        return
    now = datetime.now(UTC)
    facts = {k: _cut(_masked_field(k, v)) for k, v in fields.items() if v is not None}
    event = str(mask(event))
    if _settings.format == "json":
        line = json.dumps(
            {"time": now.isoformat(timespec="milliseconds"), "level": level, "event": event, **facts},
            ensure_ascii=False,
        )
        # Outside of its texts JSON is ASCII, so that these escapes stand in texts only.
        if not line.isprintable():
            line = "".join(json.dumps(c)[1:-1] if not c.isprintable() and _is_hidden(c) else c for c in line)
    else:
        shown = "".join(f" {k}={_readable(v)}" for k, v in facts.items())
        at = f"{now.astimezone():%H:%M:%S}.{now.microsecond // 1000:03}"
        line = f"{at} {level:7} {printable(event)}{shown}"
    stream = _settings.stream or sys.stderr
    with _lock, suppress(OSError, ValueError):  # a closed terminal must not end a statement
        stream.write(line + "\n")
        stream.flush()


def _readable(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return printable(text if text and not any(c in text for c in ' "=\n') else json.dumps(text, ensure_ascii=False))


_FAST = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    1800.0,
)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: `kind` is counter, gauge or histogram (of seconds)."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


METRICS: tuple[Metric, ...] = (
    Metric("sessions_open", "gauge", "Open sessions"),
    Metric("sessions_opened_total", "counter", "Sessions opened"),
    Metric("operations", "gauge", "Operations that are kept, by state", ("state",)),
    Metric("statements_total", "counter", "Statements that ended", ("statement_type", "engine", "state")),
    Metric(
        "operation_seconds", "histogram", "Time per statement and phase: queue, parse, plan, execute, fetch", ("phase",)
    ),
    Metric("rpc_seconds", "histogram", "Time per remote call", ("rpc",)),
    Metric("rpc_errors_total", "counter", "Remote calls that failed, by condition class", ("rpc", "error_class")),
    Metric("queue_depth", "gauge", "Statements that wait for a slot"),
    Metric("queue_wait_seconds", "histogram", "The phase queue of operation_seconds, of statements that got a slot"),
    Metric("queue_rejected_total", "counter", "Statements refused because the queue was full"),
    Metric("result_rows_total", "counter", "Rows sent"),
    Metric("result_bytes_total", "counter", "Result bytes sent", ("format",)),
    Metric("first_row_seconds", "histogram", "Time from execute to the first row"),
    Metric("spool_bytes", "gauge", "Bytes of results that wait to be fetched"),
    Metric("memory_pool_bytes", "gauge", "Memory that the operators of one statement may use before they spill"),
    Metric("rss_bytes", "gauge", "Resident memory of the front process"),
    Metric("spill_bytes_total", "counter", "Bytes that statements wrote to disk for want of memory"),
    Metric("engine_up", "gauge", "Engine processes that are alive", ("engine",)),
    Metric("engine_restarts_total", "counter", "Engine processes started in place of lost or killed ones"),
    Metric("cancel_seconds", "histogram", "Time from cancel until the engine had stopped"),
    Metric("auth_failures_total", "counter", "Refused credentials", ("mech",)),
    Metric("http_requests_total", "counter", "HTTP requests by kind of path and status", ("route", "status")),
    Metric("connections_refused_total", "counter", "Connections that were refused or cut, by door", ("door",)),
    Metric("catalog_seconds", "histogram", "Time of catalog calls, and of opening a statement's tables", ("call",)),
    Metric("cache_hits_total", "counter", "Look-ups answered from a cache", ("cache",)),
    Metric("history_lost_total", "counter", "Statements that are missing in the history"),
    Metric("event_loop_lag_seconds", "gauge", "How late the event loop runs its timers"),
)

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
_registry = CollectorRegistry()
_metrics: dict[str, Any] = {}
for _m in METRICS:
    if _m.kind == "histogram":
        _metrics[_m.name] = Histogram(_m.name, _m.help, _m.labels, registry=_registry, buckets=_FAST)
    else:
        _metrics[_m.name] = {"counter": Counter, "gauge": Gauge}[_m.kind](
            _m.name, _m.help, _m.labels, registry=_registry
        )


_children: dict[tuple[str, type[Any], tuple[tuple[str, str], ...]], Any] = {}


def _child(name: str, kind: type[Any], labels: dict[str, str]) -> Any:
    key = (name, kind, tuple(labels.items()))
    child = _children.get(key)
    if child is None:
        metric = _metrics[name]
        if not isinstance(metric, kind):
            raise TypeError(f"metric {name} is not a {kind.__name__}")
        child = _children[key] = metric.labels(**labels) if labels else metric
    return child


def counter(name: str, amount: float = 1.0, **labels: str) -> None:
    """Add to a counter of `METRICS`."""
    _child(name, Counter, labels).inc(amount)


def gauge(name: str, value: float, **labels: str) -> None:
    """Set a gauge of `METRICS`."""
    _child(name, Gauge, labels).set(value)


def gauge_from(name: str, read: Callable[[], float], **labels: str) -> None:
    """A gauge of `METRICS` is read by `read` whenever the metrics are asked for."""
    _child(name, Gauge, labels).set_function(read)


def histogram(name: str, seconds: float, **labels: str) -> None:
    """Record a duration in a histogram of `METRICS`."""
    _child(name, Histogram, labels).observe(seconds)


def metrics_text() -> bytes:
    """Everything in Prometheus' text format, as `/metrics` answers it (content type `METRICS_CONTENT_TYPE`)."""
    return prometheus_client.generate_latest(_registry)


METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def resident_bytes() -> float:
    """Resident memory of this process, 0 where /proc is missing."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return float(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    except OSError:
        return 0.0


gauge_from("rss_bytes", resident_bytes)
