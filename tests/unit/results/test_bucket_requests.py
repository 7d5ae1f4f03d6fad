"""Requests to a bucket have an end, whatever it answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from gateway.results import bucket as buckets_of_results
from gateway.results import bucket_requests
from gateway.results.bucket import Bucket as Results
from gateway.results.bucket_requests import RefusedError, ask
from tests.live import bucket as buckets
from tests.live.bucket import Bucket


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setattr(bucket_requests, "_SILENCE", 0.5)
    monkeypatch.setattr(bucket_requests, "_WHOLE", 1.0)
    with buckets.serving() as one:
        yield one


TRICKLE = [b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 90]
HEADS = {
    "silent": [],
    "a byte now and then": TRICKLE,
    "no answer": [b"SSH-2.0-x\r\n\r\n"],
    "a head without end": [b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000],
    "waiting for ever": [b"HTTP/1.1 100 Continue\r\n\r\n"] * 90,
    "a terabyte": [b"HTTP/1.1 403 No\r\nContent-Length: 1099511627776\r\n\r\n" + b"x" * 8192],
    "pieces of a terabyte": [b"HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n" + b"x" * 8192],
    "elsewhere": [b"HTTP/1.1 307 There\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"],
}


@pytest.mark.parametrize("name", HEADS)
def test_a_request_ends_whatever_is_answered(bucket: Bucket, name: str) -> None:
    bucket.says, begun = HEADS[name], time.monotonic()
    with pytest.raises(RefusedError) as told:
        ask(f"{bucket.url}/one?X-Amz-Signature=secret", "PUT", {}, (b"some", memoryview(b"thing")))
    assert time.monotonic() - begun < 4
    assert "secret" not in str(told.value) and bucket.url not in str(told.value)
    assert [path for _, path, _ in bucket.asked] == ["/one"]


def test_a_proxy_is_asked(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", bucket.url.replace("http://", "http://a:b@"))
    bucket.says = [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]
    ask("http://results.nowhere.invalid/one?x=y", "PUT", {})
    assert len(bucket.asked) == 1


def test_the_first_failure_to_remove_is_the_last_one_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket that says nothing would be asked for each of the operations."""
    asked = []

    def refused(link: str, *_: object) -> None:
        asked.append(link)
        raise RefusedError("no")

    monkeypatch.setattr(buckets_of_results, "ask", refused)
    results = Results.__new__(Results)
    results._lock, results._stopped, results._is_failing = threading.Lock(), threading.Event(), False
    results._sweeper = threading.Thread(target=lambda: None)
    results._sweeper.start()
    results._folder, results._store, results._link = "f", None, buckets_of_results._LINK  # type: ignore[assignment]
    results._obstore = SimpleNamespace(sign=lambda _, method, path, __: f"{method} {path}")
    results._files = {bytes([i]): {"x": buckets_of_results._File(is_there=True)} for i in range(3)}
    results.stop()
    assert asked == ["DELETE f/00/x"]
