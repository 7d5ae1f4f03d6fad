"""Log lines, secrets, metrics, steps."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import observability
from gateway.observability import (
    METRICS,
    Throttle,
    configure_logging,
    counter,
    gauge,
    gauge_from,
    histogram,
    log,
    mask,
    metrics_text,
    printable,
)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    configure_logging("json", "debug", stream=stream)
    yield stream
    configure_logging()


def _entries(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    "secret",
    [
        "dapi0123456789abcdef0123456789abcdef",
        "Bearer abcdefghijkl",
        "Basic dG9rZW46c2VjcmV0",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig-nature",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "ghs_0123456789abcdefghij",
        "/result?sig=0123456789abcdef",
        "https://user:hunter2@host/x",
    ],
)
def test_secrets_never_reach_a_line(lines: io.StringIO, secret: str) -> None:
    log(f"failed with {secret}", error=f"saw {secret}!", nested={"a": [secret]}, cause=ValueError(secret))
    text = lines.getvalue()
    for part in secret.replace("https://user:", "").replace("@host/x", "").replace("/result?sig=", "").split():
        if part not in ("Bearer", "Basic"):
            assert part not in text


def test_fields_with_secret_names_are_masked(lines: io.StringIO) -> None:
    log("x", access_token="plain", headers={"Authorization": "plain"}, token_count=3)
    assert "plain" not in lines.getvalue()
    assert _entries(lines)[0]["token_count"] == 3


def test_statement_texts_are_hidden_unless_asked_for() -> None:
    for show in (False, True):
        stream = io.StringIO()
        configure_logging("json", "info", show_sql=show, stream=stream)
        log("x", sql="SELECT 42")
        assert ("SELECT 42" in stream.getvalue()) is show
    configure_logging()


def test_readable_lines_and_levels() -> None:
    stream = io.StringIO()
    configure_logging("text", "warning", stream=stream)
    log("quiet")
    log("loud", "error", reason='two "words"', n=1.5, none=None)
    configure_logging()
    assert stream.getvalue().endswith('error   loud reason="two \\"words\\"" n=1.5\n')
    assert "quiet" not in stream.getvalue()


def test_what_a_terminal_would_obey_is_escaped(lines: io.StringIO) -> None:
    hostile = "a\x1b[2J\r\nb\u202ec\x9b\x00é"
    log("name", name=hostile)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", lines.getvalue())
    assert _entries(lines)[0]["name"] == hostile
    stream = io.StringIO()
    configure_logging("text", stream=stream)
    log(f"about {hostile}", name=hostile, plain="a\u202eb")
    shown = stream.getvalue()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert shown.count("\n") == 1
    assert "about a\\x1b[2J\\x0d\\x0ab\\u202ec\\x9b\\x00é" in shown
    assert "plain=a\\u202eb" in shown


def test_long_fields_are_cut(lines: io.StringIO) -> None:
    log("name", name="x" * 60_000)
    assert len(lines.getvalue()) < 10_000
    assert str(_entries(lines)[0]["name"]).endswith("… (60000 characters)")


def test_printable_keeps_text() -> None:
    text = "naïve 日本語 \u00a0 😀\n"
    assert printable(text, keep="\n") == text
    assert printable(text).endswith("\\x0a")
    assert printable("\U000e0041") == "\\U000e0041"


def test_a_throttle_tells_what_it_held_back() -> None:
    throttle = Throttle(2, 60.0)
    assert [throttle.ask() for _ in range(4)] == [0, 0, None, None]
    throttle._began -= 60.0
    assert [throttle.ask() for _ in range(2)] == [2, 0]


def test_ordinary_text_is_left_alone() -> None:
    assert mask("SELECT token FROM t WHERE a = 'x'") == "SELECT token FROM t WHERE a = 'x'"
    assert mask(3.5) == 3.5


def test_metrics() -> None:
    counter("result_rows_total", 5)
    counter("result_bytes_total", 7, format="arrow")
    gauge("queue_depth", 2)
    gauge_from("spool_bytes", lambda: 11.0)
    histogram("rpc_seconds", 0.002, rpc="OpenSession")
    text = metrics_text().decode()
    assert 'result_bytes_total{format="arrow"}' in text
    assert "queue_depth 2.0" in text
    assert "spool_bytes 11.0" in text
    assert 'rpc_seconds_bucket{le="0.0025",rpc="OpenSession"}' in text
    assert "rss_bytes" in text and observability.resident_bytes() > 1e6
    for metric in METRICS:
        assert f"# HELP {metric.name} " in text


def test_names_and_labels_are_those_of_the_reference(shared: Path) -> None:
    text = (shared / "reference" / "operations.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("**Metrics**")]
    wanted = dict(re.findall(r"`([a-z_]+)(?:\{([^}]*)\})?`", line))
    del wanted["links_open"]  # there are no result links yet
    assert len(wanted) >= 20
    declared = {metric.name: metric for metric in METRICS}
    assert set(wanted) - set(declared) == set()
    for name, labels in wanted.items():
        keys = [label.partition("=")[0].replace("class", "error_class") for label in labels.split(",") if label]
        assert list(declared[name].labels) == keys, name
    phases = wanted["operation_seconds"].removeprefix("phase=").split("|")
    assert declared["operation_seconds"].help.endswith(", ".join(phases))


def test_wrong_use_of_metrics_is_an_error() -> None:
    with pytest.raises(KeyError):
        counter("no_such_metric")
    with pytest.raises(TypeError):
        counter("queue_depth")
    with pytest.raises(ValueError, match="abel"):
        counter("result_bytes_total", 1, colour="red")
