"""A gateway that answers what it likes, and `gateway query` on it as a terminal sees it."""

from __future__ import annotations

import http.server
import io
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import pyarrow as pa

from gateway.cli import main
from gateway.protocol import codec
from gateway.thrift_gen.TCLIService import ttypes

EVIL = "\x1b]0;evil\x07\x1b[2J\u202eabc\r\n\x9b31m"
RAW = frozenset("\x1b\x07\r\u202e\x9b")
OK = ttypes.TStatus(statusCode=0)
FORMS = (["--format", "table"], ["--format", "csv"], ["--format", "json"], ["--format", "vertical"], ["--chart"])
Answers = Callable[[str, bytes], bytes | Iterable[bytes]]


@contextmanager
def hostile(answer: Answers) -> Iterator[str]:
    """The URL of a server that answers calls, each by its method's name and its body, with whole answers of HTTP or parts."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found = answer(codec.method_of(body) or "", body)
            for part in (found,) if isinstance(found, bytes) else found:
                self.wfile.write(part)

    class Hostile(http.server.ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Nothing: a client that hangs up on it is what is wanted."""

    server = Hostile(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def told(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def of_rows(rows: pa.Table, compress: Callable[[bytes], bytes] | None = None) -> dict[str, Any]:
    """What a gateway answers to a statement with such rows."""
    own = ttypes.THandleIdentifier(guid=b"g" * 16, secret=b"s" * 16)
    pack = compress or bytes
    batches = [ttypes.TSparkArrowBatch(pack(b.serialize().to_pybytes()), b.num_rows) for b in rows.to_batches()]
    return {
        "OpenSession": ttypes.TOpenSessionResp(OK, 0xA509, ttypes.TSessionHandle(own)),
        "ExecuteStatement": ttypes.TExecuteStatementResp(OK, ttypes.TOperationHandle(own, 0, True)),
        "GetOperationStatus": ttypes.TGetOperationStatusResp(OK, ttypes.TOperationState.FINISHED_STATE),
        "GetResultSetMetadata": ttypes.TGetResultSetMetadataResp(
            OK, lz4Compressed=compress is not None, arrowSchema=rows.schema.serialize().to_pybytes()
        ),
        "FetchResults": ttypes.TFetchResultsResp(OK, False, ttypes.TRowSet(0, [], arrowBatches=batches)),
        "CloseOperation": ttypes.TCloseOperationResp(OK),
        "CancelOperation": ttypes.TCancelOperationResp(OK),
        "CloseSession": ttypes.TCloseSessionResp(OK),
    }


def encoded(answers: dict[str, Any]) -> dict[str, bytes]:
    found = {method: codec.encode_reply_parts(method, 0, value) for method, value in answers.items()}
    return {method: parts if isinstance(parts, bytes) else b"".join(parts) for method, parts in found.items()}


def saying(answers: dict[str, Any]) -> Answers:
    bodies = encoded(answers)
    return lambda method, body: told(bodies[method])


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def query(url: str, *form: str) -> tuple[int, str]:
    """The exit code of a command, and all that a terminal gets of it."""
    screen = Screen()
    with redirect_stdout(screen), redirect_stderr(screen):
        code = main(["query", "--url", url, *form, "SELECT 1"])
    assert not RAW & set(screen.getvalue())
    return code, screen.getvalue()
