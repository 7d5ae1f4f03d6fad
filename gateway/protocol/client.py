"""A small blocking client: Thrift over HTTP/1.1 on one kept-alive connection, results as Arrow batches or raw pages.

For the command line, tests and benchmarks. It adds as little of its own time as Python allows: one write per call, no
header parser beyond what is needed, column values left as bytes. One call at a time; not for sharing between threads.
"""

from __future__ import annotations

import base64
import contextlib
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

import lz4.frame
import pyarrow as pa

from gateway.protocol import codec, versions
from gateway.protocol.foreign import Form
from gateway.protocol.reader import Budget
from gateway.thrift_gen.TCLIService import ttypes

DEFAULT_PATH = "/sql/1.0/warehouses/gateway"
_LARGEST_HEAD, _LARGEST_ANSWER, _LARGEST_REFUSAL = 1 << 20, 1 << 31, 1 << 16
_LARGEST_BATCH, _MOST_PACKED = 1 << 28, 16  # bytes of unpacked rows; but rows may always be so many times what came
_ANSWERS = Budget(size=_LARGEST_ANSWER, elements=1_000_000)
_PIECE = 1 << 20  # bytes that there is room for before any has come
_MOST_EMPTY = 100  # pages without rows, one after the other
_LARGEST_TEXTS = 1 << 25  # bytes of rows that are wanted as Python has them
_LONGEST_ERROR, _MOST_LINES = 1 << 16, 1000  # characters and lines of what a server says
_HELD, _FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.005, 1.0  # seconds: answers that come sooner are asked for after a pause
_FAREWELL = 2.0  # seconds that a server has for calls that nobody waits for
_SLOWEST = 1 << 14  # bytes in a second, behind the time that an answer may take anyway
_HTTP_OK = 200
_OK = (ttypes.TStatusCode.SUCCESS_STATUS, ttypes.TStatusCode.SUCCESS_WITH_INFO_STATUS)
_RUNNING = (
    ttypes.TOperationState.INITIALIZED_STATE,
    ttypes.TOperationState.PENDING_STATE,
    ttypes.TOperationState.RUNNING_STATE,
)


class RemoteError(Exception):
    """What a server answered instead of a result: SQL errors, refusals, HTTP errors (sqlstate 08000); cut if it is long."""

    def __init__(self, text: str, sqlstate: str | None) -> None:
        lines = text[:_LONGEST_ERROR].split("\n")
        cut = len(text) > _LONGEST_ERROR or len(lines) > _MOST_LINES
        super().__init__("\n".join(lines[:_MOST_LINES]) + "…" if cut else text)
        self.sqlstate = sqlstate


@contextlib.contextmanager
def _answers_read() -> Iterator[None]:
    """What an answer raises that is none, as RemoteError: whoever answers may be anybody."""
    try:
        yield
    except RemoteError:
        raise
    except (ValueError, EOFError, ArithmeticError, MemoryError, RuntimeError, pa.ArrowException) as error:
        raise RemoteError(
            f"The answer cannot be read ({type(error).__name__}: {str(error)[:500]}).", "08000"
        ) from error


def _there(value: Any, what: str) -> Any:
    """A part of an answer without which it is none."""
    if value is None:
        raise RemoteError(f"The answer has no {what}.", "08000")
    return value


class HttpConnection:
    """POST requests to one URL over one connection, reopened if the server has closed it while it was idle.

    Nothing is ever sent twice: a statement that was cut off may have run.

    Args:
        url: ``http://host:port[/path]`` or ``https://…``; without a path, `DEFAULT_PATH`. Which authorities are trusted is
            the system's business (or that of the environment: SSL_CERT_FILE).
        authorization: value of the Authorization header.
        timeout: seconds that one read or write may take.
        user_agent: what it calls itself.
    """

    def __init__(
        self,
        url: str,
        authorization: str | None = None,
        timeout: float | None = 900.0,
        user_agent: str = "DeltaSqlGateway",
    ) -> None:
        parts = _checked(url)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._address = (parts.hostname or "", parts.port or (443 if self._tls is not None else 80))
        self._timeout = timeout
        path = parts.path if parts.path.strip("/") else DEFAULT_PATH
        lines = [
            f"POST {path} HTTP/1.1",
            f"Host: {parts.netloc}",
            "Content-Type: application/x-thrift",
            f"User-Agent: {user_agent}",
        ]
        if authorization is not None:
            lines.append(f"Authorization: {authorization}")
        self._head = ("\r\n".join(lines) + "\r\nContent-Length: ").encode("latin-1")
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """Close the connection; a later `post` opens a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @contextlib.contextmanager
    def hurried(self) -> Iterator[None]:
        """Within it, one read or write takes `_FAREWELL` seconds at most."""
        before = self._timeout
        self._allow(_FAREWELL if before is None else min(before, _FAREWELL))
        try:
            yield
        finally:
            self._allow(before)

    def _allow(self, timeout: float | None) -> None:
        self._timeout = timeout
        if self._socket is not None:
            self._socket.settimeout(timeout)

    def post(self, body: bytes) -> tuple[int, bytes | bytearray]:
        """Status and body of the answer. Raises OSError, and ConnectionError for a damaged one."""
        self.send(body)
        try:
            return self._answer()
        except BaseException:  # Ctrl-C too: the answer that is due would be taken for that of the next call
            self.close()
            raise

    def send(self, body: bytes) -> None:
        """The request alone, without waiting for its answer. Raises OSError."""
        if self._socket is not None and _is_stale(self._socket):
            self.close()
        if self._socket is None:
            connection = socket.create_connection(self._address, self._timeout)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_hostname=self._address[0])
            self._socket = connection
        try:
            self._socket.sendall(b"%s%d\r\n\r\n%s" % (self._head, len(body), body))
        except OSError:
            self.close()
            raise

    def _answer(self) -> tuple[int, bytes | bytearray]:
        began = time.monotonic()
        data = self._receive(65536)
        while (end := data.find(b"\r\n\r\n")) < 0:
            if len(data) > _LARGEST_HEAD:
                raise ConnectionError("an answer whose head does not end")
            self._check_pace(began, len(data))
            data += self._receive(65536)
        first, *lines = data[:end].split(b"\r\n")
        headers = {name: value for name, _, value in (line.lower().partition(b":") for line in lines)}
        status, length = first.split(b" ", 2)[1:2], headers.get(b"content-length", b"").strip()
        if not length.isdigit() or not status or not status[0].isdigit():
            raise ConnectionError("an answer without Content-Length or status")
        size, start = int(length[:20]), end + 4
        if size > _LARGEST_ANSWER:
            raise ConnectionError(f"an answer of {size} bytes")
        code = int(status[0][:3])
        whole = code == _HTTP_OK or size <= _LARGEST_REFUSAL  # of others the first words are shown
        answer = self._body(data[start : start + size], size if whole else _LARGEST_REFUSAL, began)
        if not whole or headers.get(b"connection", b"").strip() == b"close":
            self.close()
        return code, answer

    def _body(self, data: bytes, size: int, began: float) -> bytes | bytearray:
        """`size` bytes that begin with `data`; there is only room made for what comes, whatever was declared."""
        assert self._socket is not None
        have = len(data)
        if have >= size:
            return data[:size]
        body = bytearray(data)
        while have < size:
            if have == len(body):
                body += bytes(min(max(have, _PIECE), size - have))
            with memoryview(body) as view:
                count = self._socket.recv_into(view[have:])
            if not count:
                raise ConnectionResetError("the server closed the connection within an answer")
            have += count
            self._check_pace(began, have)
        return body

    def _check_pace(self, began: float, have: int) -> None:
        """Raises TimeoutError for an answer that trickles."""
        if self._timeout is not None and time.monotonic() - began > self._timeout + have / _SLOWEST:
            raise TimeoutError("the answer comes too slowly")

    def _receive(self, size: int) -> bytes:
        assert self._socket is not None
        data = self._socket.recv(size)
        if not data:
            self.close()
            raise ConnectionResetError("the server closed the connection within an answer")
        return data


def _checked(url: str) -> SplitResult:
    """The parts of a URL that can be asked. Raises ValueError, without the password that it may hold."""
    if "@" in url.partition("?")[0]:
        raise ValueError("a URL takes no user, password or @; a token is given by --token or DATABRICKS_TOKEN")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.hostname is None:
        raise ValueError(f"not an http:// or https:// URL: {url!r}")
    try:
        parts.hostname.encode("idna")
        (parts.netloc + parts.path).encode("latin-1")
    except UnicodeError:
        raise ValueError(f"no host has the name, or no server the path, of {url!r}") from None
    return parts


def _is_stale(connection: socket.socket) -> bool:
    """Whether an idle connection has something to read: its end, since no answer is due."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


class Client:
    """A session on a server.

    Args:
        url: see `HttpConnection`.
        token: sent as Bearer.
        user, password: sent as Basic when there is no token.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        user: str | None = None,
        password: str = "",
        timeout: float | None = 900.0,
    ) -> None:
        authorization = None
        if token is not None:
            authorization = f"Bearer {token}"
        elif user is not None:
            authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self._connection = HttpConnection(url, authorization, timeout)
        self._session: Any = None
        self.protocol = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self.hurried() if kind is not None else contextlib.nullcontext():
            self.close()

    def hurried(self) -> contextlib.AbstractContextManager[None]:
        """See `HttpConnection.hurried`: for calls that nobody waits for."""
        return self._connection.hurried()

    def call(self, method: str, request: Any) -> Any:
        """One call; the answer with its TStatus checked. Raises RemoteError, OSError, MalformedError."""
        body = self._posted(method, request)
        with _answers_read():
            try:
                reply = codec.decode_reply(body, _ANSWERS, raw_columns=True)
            except codec.ApplicationError as error:
                raise RemoteError(str(error), "08000") from error
            if reply.method != method:
                raise ValueError(f"to {reply.method} where {method} was asked")
            answer = _there(reply.value, "value")
        check(getattr(answer, "status", None))  # GetQueryId has none
        return answer

    def fetched(self, operation: Any, max_rows: int, max_bytes: int | None) -> bytes | bytearray:
        """The undecoded answer to FetchResults with FETCH_NEXT."""
        request = ttypes.TFetchResultsReq(
            operationHandle=operation,
            orientation=ttypes.TFetchOrientation.FETCH_NEXT,
            maxRows=max_rows,
            maxBytes=max_bytes,
        )
        return self._posted("FetchResults", request)

    def _posted(self, method: str, request: Any) -> bytes | bytearray:
        status, body = self._connection.post(codec.encode_call(method, 0, request))
        if status != _HTTP_OK:
            raise RemoteError(f"HTTP {status}: {body[:500].decode('utf-8', 'replace')}", "08000")
        return body

    def open(
        self,
        configuration: Mapping[str, str] | None = None,
        *,
        catalog: str | None = None,
        schema: str | None = None,
        protocol: int = versions.SPARK_V9,
    ) -> Client:
        """Open the session; a protocol below Spark's scale is asked as Hive clients do."""
        spark = versions.is_spark(protocol)
        answer = self.call(
            "OpenSession",
            ttypes.TOpenSessionReq(
                client_protocol=None if spark else protocol,
                client_protocol_i64=protocol if spark else None,
                configuration=dict(configuration or {}),
                initialNamespace=ttypes.TNamespace(catalogName=catalog, schemaName=schema)
                if catalog or schema
                else None,
                canUseMultipleCatalogs=True,
            ),
        )
        self._session = _there(answer.sessionHandle, "session")
        self.protocol = answer.serverProtocolVersion
        return self

    @property
    def session(self) -> Any:
        """Its TSessionHandle."""
        return self._session

    def close(self) -> None:
        """Close the session and the connection."""
        if self._session is not None:
            session, self._session = self._session, None
            try:
                self.call("CloseSession", ttypes.TCloseSessionReq(sessionHandle=session))
            finally:
                self._connection.close()
        self._connection.close()

    def execute(  # noqa: PLR0913 - as many as the call has fields
        self,
        statement: str,
        *,
        arrow: bool = True,
        lz4: bool = False,
        direct: bool = True,
        max_rows: int = 1_000_000,
        max_bytes: int | None = 100 * 1024 * 1024,
        parameters: Sequence[Any] = (),
        row_limit: int | None = None,
        timeout_seconds: int = 0,
        configuration: Mapping[str, str] | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> Result:
        """Run a statement and wait for its end; `progress` gets every TGetOperationStatusResp while it is under way."""
        answer = self.call(
            "ExecuteStatement",
            ttypes.TExecuteStatementReq(
                sessionHandle=self._session,
                statement=statement,
                confOverlay=dict(configuration or {}),
                runAsync=True,
                queryTimeout=timeout_seconds,
                getDirectResults=ttypes.TSparkGetDirectResults(maxRows=max_rows, maxBytes=max_bytes)
                if direct
                else None,
                canReadArrowResult=arrow,
                canDownloadResult=False,
                canDecompressLZ4Result=lz4,
                useArrowNativeTypes=ttypes.TSparkArrowTypes(
                    timestampAsArrow=True,
                    decimalAsArrow=True,
                    complexTypesAsArrow=True,
                    intervalTypesAsArrow=False,
                    nullTypeAsArrow=True,
                ),
                resultRowLimit=row_limit,
                parameters=list(parameters),
            ),
        )
        result = Result(self, _there(answer.operationHandle, "operation"), max_rows, max_bytes)
        try:
            result.wait(answer.directResults, progress)
        except BaseException:
            result.cancel()
            raise
        return result


class Result:
    """The result of a statement, read once from start to end.

    Attributes:
        metadata: TGetResultSetMetadataResp.
        modified_rows: what the server counts for DML, None otherwise.
    """

    def __init__(self, client: Client, handle: Any, max_rows: int, max_bytes: int | None) -> None:
        self._client = client
        self._handle = handle
        self._limits = (max_rows, max_bytes)
        self._first: Any = None
        self._closed = False
        self._told: Form | None = None
        self.metadata: Any = None
        self.modified_rows: int | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        schema = _there(self.metadata.schema, "schema")
        return [_there(column.columnName, "name of a column") for column in _there(schema.columns, "columns")]

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema that the server told; raises RemoteError for columnar results."""
        return self._form().schema

    def _form(self) -> Form:
        if self.metadata.arrowSchema is None:
            raise RemoteError("The result has no Arrow schema.", None)
        if self._told is None:
            with _answers_read():
                self._told = Form(self.metadata.arrowSchema)
        return self._told

    def wait(self, direct: Any, progress: Callable[[Any], None] | None) -> None:
        """Until the operation has ended. Raises RemoteError if it did not succeed."""
        status = direct.operationStatus if direct is not None else None
        self._closed = direct is not None and direct.closeOperation is not None
        pause = _FIRST_PAUSE
        while status is None or status.operationState in _RUNNING:
            if status is not None and progress is not None:
                progress(status)
            asked = time.monotonic()
            status = self._client.call(
                "GetOperationStatus",
                ttypes.TGetOperationStatusReq(operationHandle=self._handle, getProgressUpdate=progress is not None),
            )
            if status.operationState in _RUNNING and time.monotonic() - asked < _HELD:
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        if _there(status.operationState, "state") != ttypes.TOperationState.FINISHED_STATE:
            state = ttypes.TOperationState._VALUES_TO_NAMES.get(status.operationState, "?")  # noqa: SLF001
            raise RemoteError(status.displayMessage or status.errorMessage or state, status.sqlState)
        self.modified_rows = status.numModifiedRows
        if direct is not None:
            for part in (direct.resultSetMetadata, direct.resultSet):
                if part is not None:
                    check(part.status)
            self.metadata, self._first = direct.resultSetMetadata, direct.resultSet
        if self.metadata is None:
            self.metadata = self._client.call(
                "GetResultSetMetadata", ttypes.TGetResultSetMetadataReq(operationHandle=self._handle)
            )

    def pages(self) -> Iterator[Any]:
        """TRowSet after TRowSet; values of columns are `reader.RawValues`. Ends with the operation closed.

        Raises RemoteError for rows behind links, and for pages without rows that have no end.
        """
        page, self._first = self._first, None
        empty = 0
        while True:
            if page is None:
                max_rows, max_bytes = self._limits
                page = self._client.call(
                    "FetchResults",
                    ttypes.TFetchResultsReq(
                        operationHandle=self._handle,
                        orientation=ttypes.TFetchOrientation.FETCH_NEXT,
                        maxRows=max_rows,
                        maxBytes=max_bytes,
                    ),
                )
            rows = _there(page.results, "rows")
            if rows.resultLinks:
                raise RemoteError("The rows are behind links, which were not asked for.", "08000")
            empty = 0 if _has_rows(rows) else empty + 1
            if empty > _MOST_EMPTY:
                raise RemoteError(
                    f"The server says that there are more rows, and sends none ({_MOST_EMPTY} times).", "08000"
                )
            yield rows
            if not page.hasMoreRows:
                break
            page = None
        self.close()

    def received(self) -> int:
        """The number of rows, with all columnar pages received and left as bytes. Needs a result without direct rows."""
        rows = 0
        while True:
            page = self._client.fetched(self._handle, *self._limits)
            count = codec.column_rows(page)
            if count == 0:
                break
            rows += count
        self.close()
        return rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches of `arrow_schema`; none of them is empty."""
        form = self._form()
        for page in self.pages():
            for batch in page.arrowBatches or ():
                with _answers_read():
                    found = self._batch(_there(batch.batch, "rows"), form)
                    if found.num_rows != batch.rowCount:
                        raise ValueError(f"{found.num_rows} rows where {batch.rowCount} were told")
                if found.num_rows:
                    yield found

    def _batch(self, data: bytes, form: Form) -> pa.RecordBatch:
        if self.metadata.lz4Compressed:
            decompressor = lz4.frame.LZ4FrameDecompressor()
            most = min(max(_LARGEST_BATCH, len(data) * _MOST_PACKED), _LARGEST_ANSWER)
            data = decompressor.decompress(data, most)
            if not decompressor.eof:
                raise ValueError("rows that are larger than they may be")
        batch = form.batch(data)
        if batch.num_rows > self._limits[0]:
            raise ValueError("more rows than were asked for")
        return batch

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.batches(), self.arrow_schema)

    def rows_of_texts(self, columns: int) -> list[tuple[str, ...]]:
        """All rows of a result that has so many columns, all texts. Raises RemoteError for another one."""
        found = pa.Table.from_batches(self._few(), self.arrow_schema)
        if found.schema.types != [pa.string()] * columns or any(column.null_count for column in found.columns):
            raise RemoteError("The answer has other columns than were asked for.", "08000")
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def _few(self) -> Iterator[pa.RecordBatch]:
        size = 0
        for batch in self.batches():
            size += batch.nbytes
            if size > _LARGEST_TEXTS:
                raise RemoteError("The answer has more rows than can be taken.", "08000")
            yield batch

    def close(self) -> None:
        """Free the result on the server."""
        if not self._closed:
            self._closed = True
            self._client.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=self._handle))

    def cancel(self) -> None:
        """Stop the statement, if it still runs, and free it, as far as the server can still be reached."""
        if not self._closed:
            # What cannot be reached is freed when the session ends.
            with self._client.hurried(), contextlib.suppress(RemoteError, OSError):
                self._client.call("CancelOperation", ttypes.TCancelOperationReq(operationHandle=self._handle))
                self.close()


def _has_rows(rows: Any) -> bool:
    """Whether a TRowSet has any; their numbers are as told."""
    if any(batch.rowCount for batch in rows.arrowBatches or ()):
        return True
    columns = [getattr(column, name) for column in rows.columns or () for name in column.__slots__]
    return any(column is not None and column.values is not None and column.values.count for column in columns)


def check(status: Any) -> None:
    """Raises RemoteError for a TStatus that is no success."""
    if status is not None and status.statusCode not in _OK:
        text = status.displayMessage or status.errorMessage or f"status {status.statusCode}"
        raise RemoteError(text, status.sqlState)
