"""Calls of TCLIService over a real socket as drivers make them, and the rows of their answers, read in full."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import lz4.frame
import pyarrow as pa

from gateway.protocol import codec, versions
from gateway.protocol.client import HttpConnection, check
from gateway.thrift_gen.TCLIService import ttypes

# Rows are (id, text): the text follows from the id, so that a row can be neither exchanged nor damaged unseen.
COLUMNS = "id, CASE WHEN id % 7 = 3 THEN NULL ELSE concat('row ', CAST(id AS STRING)) END AS s"
SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


def text_of(number: int) -> str | None:
    """The second column of row `number`."""
    return None if number % 7 == 3 else f"row {number}"


def query(rows: int) -> str:
    """A statement of `rows` rows, numbered from 0."""
    return f"SELECT {COLUMNS} FROM range({rows}) ORDER BY id"


class Wire:
    """A session. Unlike `Client`, it judges no answer: refusals are answers too."""

    def __init__(self, url: str, protocol: int | None = versions.SPARK_V9, user_agent: str = "DeltaSqlGateway") -> None:
        self.url = url
        self._connection = HttpConnection(url, timeout=120, user_agent=user_agent)
        spark = protocol is not None and versions.is_spark(protocol)
        request = ttypes.TOpenSessionReq(
            client_protocol=None if spark else protocol, client_protocol_i64=protocol if spark else None
        )
        answer = self.call("OpenSession", request)
        check(answer.status)
        self.session = answer.sessionHandle
        self.protocol = answer.serverProtocolVersion

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.call("CloseSession", ttypes.TCloseSessionReq(sessionHandle=self.session))
        self._connection.close()

    def call(self, method: str, request: Any) -> Any:
        """The answer to one call, whatever it says."""
        status, body = self._connection.post(codec.encode_call(method, 0, request))
        assert status == 200, f"HTTP {status}: {bytes(body[:200])!r}"
        return codec.decode_reply(body).value

    def lose(self, method: str, request: Any) -> None:
        """A call whose answer never arrives: the connection is closed as soon as it is sent."""
        lost = HttpConnection(self.url, timeout=120)
        lost.send(codec.encode_call(method, 0, request))
        lost.close()

    def execute(self, statement: str, **fields: Any) -> Any:
        """ExecuteStatement."""
        request = ttypes.TExecuteStatementReq(sessionHandle=self.session, statement=statement, **fields)
        return self.call("ExecuteStatement", request)

    def fetch(self, handle: Any, **fields: Any) -> Any:
        """FetchResults."""
        return self.call("FetchResults", ttypes.TFetchResultsReq(operationHandle=handle, **fields))


def numbers(rows: Any, compressed: bool) -> list[int]:
    """The ids of the rows of a TRowSet of `query`. Raises AssertionError for a text that is not its row's."""
    ids: list[int] = []
    texts: list[str | None] = []
    if rows.arrowBatches is not None:
        assert rows.columns is None
        for part in rows.arrowBatches:
            data = lz4.frame.decompress(part.batch) if compressed else part.batch
            batch = pa.ipc.read_record_batch(pa.py_buffer(data), SCHEMA)
            assert batch.num_rows == part.rowCount
            ids += batch.column(0).to_pylist()
            texts += batch.column(1).to_pylist()
    else:
        first, second = rows.columns[0].i64Val, rows.columns[1].stringVal
        ids = first.values
        texts = [None if _null(second.nulls, i) else text for i, text in enumerate(second.values)]
    assert texts == [text_of(i) for i in ids]
    return ids


def _null(bitmap: bytes, index: int) -> bool:
    return index // 8 < len(bitmap) and bool(bitmap[index // 8] >> index % 8 & 1)
