"""A small bucket that checks signatures: objects of S3 by path, signed in headers or in the query (AWS Signature Version 4)."""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, urlsplit

KEY, SECRET, REGION = "a key", "a secret", "eu-central-1"


class Bucket:
    """The objects, by path with the bucket's name in front, and what was asked for."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[str, bytes]] = {}
        self.asked: list[tuple[str, str, int]] = []  # method, path, status
        self.refuses = False
        self.says: list[bytes] | None = None  # to whoever puts something there, instead of an answer; then nothing more
        self.url = ""

    def environment(self) -> dict[str, str]:
        """How AWS's tools are told of it."""
        keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}
        return {**keys, "AWS_ENDPOINT_URL": self.url, "AWS_ALLOW_HTTP": "true"}

    def files(self) -> list[str]:
        """Paths of all objects."""
        return sorted(self.objects)


def _signature(
    method: str, path: str, query: list[tuple[str, str]], headers: list[tuple[str, str]], body: str, when: str
) -> str:
    """AWS's "Authenticating Requests (Signature Version 4)": the hexadecimal signature of a request."""
    asked = "&".join(f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in sorted(query))
    told = "".join(f"{name}:{value.strip()}\n" for name, value in headers)
    names = ";".join(name for name, _ in headers)
    request = f"{method}\n{path}\n{asked}\n{told}\n{names}\n{body}"
    scope = f"{when[:8]}/{REGION}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", when, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{SECRET}".encode()
    for part in (when[:8], REGION, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _is_signed(method: str, target: str, headers: Mapping[str, str]) -> bool:
    """Whether a request is signed with the secret, and has not expired."""
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "X-Amz-Signature" in query:
        given, when, names = query.pop("X-Amz-Signature"), query["X-Amz-Date"], query["X-Amz-SignedHeaders"]
        body = "UNSIGNED-PAYLOAD"
        ends = datetime.strptime(when, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) + timedelta(
            seconds=int(query["X-Amz-Expires"])
        )
        if ends < datetime.now(UTC):
            return False
    else:
        fields = dict(f.strip().split("=", 1) for f in headers["authorization"].split(" ", 1)[1].split(","))
        given, when, names, body = (
            fields["Signature"],
            headers["x-amz-date"],
            fields["SignedHeaders"],
            headers["x-amz-content-sha256"],
        )
    signed = [(name, headers[name]) for name in names.split(";")]
    return hmac.compare_digest(given, _signature(method, parts.path, list(query.items()), signed, body, when))


def _part(data: bytes, asked: str | None) -> tuple[int, bytes, str]:
    """Status, the part that a Range header asks for, and which it is."""
    if asked is None:
        return 200, data, ""
    first, last = asked.removeprefix("bytes=").split("-")
    part = data[int(first) : int(last) + 1 if last else None]
    return 206, part, f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"


class _Handler(BaseHTTPRequestHandler):
    bucket: Bucket
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def do_PUT(self) -> None:
        if self.bucket.says is not None:
            self.bucket.asked.append((self.command, self._path, 0))
            with suppress(OSError):  # the other side has had enough
                for piece in self.bucket.says:
                    self.wfile.write(piece)
                    time.sleep(0.05)
                while self.connection.recv(1 << 20):
                    pass
            self.close_connection = True
            return
        data = self.rfile.read(int(self.headers["content-length"]))
        if self._may():
            self.bucket.objects[self._path] = (self.headers["content-type"], data)
            self._answer(200)

    def do_GET(self) -> None:
        if not self._may():
            return
        if self._path not in self.bucket.objects:
            self._answer(404)
            return
        media, data = self.bucket.objects[self._path]
        self._answer(*_part(data, self.headers.get("range")), media)

    def do_DELETE(self) -> None:
        if self._may():
            self.bucket.objects.pop(self._path, None)
            self._answer(204)

    @property
    def _path(self) -> str:
        return urlsplit(self.path).path

    def _may(self) -> bool:
        headers = {name.lower(): value for name, value in self.headers.items()}
        may = not self.bucket.refuses and _is_signed(self.command, self.path, headers)
        if not may:
            self._answer(403)
        return may

    def _answer(self, status: int, data: bytes = b"", reach: str = "", media: str = "text/plain") -> None:
        self.bucket.asked.append((self.command, self._path, status))
        self.send_response(status)
        for name, value in (("content-type", media), ("content-length", str(len(data))), ("etag", '"1"')):
            self.send_header(name, value)
        if reach:
            self.send_header("content-range", reach)
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving() -> Iterator[Bucket]:
    """A bucket on a free port."""
    bucket = Bucket()
    handler = type("Handler", (_Handler,), {"bucket": bucket})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    bucket.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield bucket
    server.shutdown()
    server.server_close()
    thread.join()
