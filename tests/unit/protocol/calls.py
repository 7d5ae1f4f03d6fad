"""Calls of Thrift as a client makes them, over scripted statements."""

from __future__ import annotations

from typing import Any

import lz4.frame
import pyarrow as pa

from gateway.errors import UserError
from gateway.protocol import codec
from gateway.protocol.handler import HandlerOptions, ThriftHandler
from gateway.service.api import State
from gateway.sqltypes import INT, STRING, StructField, struct
from gateway.thrift_gen.TCLIService import ttypes
from tests.unit.protocol.fake import FakeService, Script

ROWS = [(i, None if i % 3 == 0 else f"v{i}") for i in range(10)]
SCHEMA = struct(StructField("n", INT), StructField("s", STRING))
SCRIPTS = {
    "SELECT": Script(SCHEMA, ROWS),
    "EMPTY": Script(SCHEMA),
    "DDL": Script(is_query=False),
    "INSERT": Script(struct(StructField("num_affected_rows", INT)), [(3,)], modified_rows=3),
    "FAIL": Script(error=UserError("DIVIDE_BY_ZERO", "Division by zero.")),
    "SLOW": Script(SCHEMA, ROWS, polls=3),
    "SLOW FAIL": Script(error=UserError("DIVIDE_BY_ZERO", "Division by zero."), polls=2),
    "CANCELLED": Script(SCHEMA, ROWS, state=State.CANCELED),
    "BROKEN": Script(struct(StructField("n", INT)), [(1,)], is_query=False),
    "catalogs": Script(struct(StructField("TABLE_CAT", STRING, comment="Catalog name.")), [("main",)]),
    "schemas": Script(struct(StructField("TABLE_SCHEM", STRING)), [("default",)]),
    "tables": Script(struct(StructField("TABLE_CAT", STRING)), []),
    "columns": Script(struct(StructField("TABLE_CAT", STRING)), []),
}
STATUS = ttypes.TStatusCode
STATE = ttypes.TOperationState


class Wire:
    """Calls as a client makes them: bytes in, bytes out."""

    def __init__(
        self, service: FakeService | None = None, user: str = "ann", options: HandlerOptions | None = None
    ) -> None:
        self.service = service or FakeService(dict(SCRIPTS))
        options = options or HandlerOptions(direct_wait_seconds=4.0, poll_seconds=1.5)
        self.handler = ThriftHandler(self.service, options)
        self.user = user
        self.session: Any = None

    def call(self, method: str, request: Any, seqid: int = 0) -> Any:
        body = self.handler.handle(codec.encode_call(method, seqid, request), self.user, "test/1")
        reply = codec.decode_reply(body)
        assert (reply.method, reply.seqid) == (method, seqid)
        return reply.value

    def open(self, protocol: int = 0xA508, **fields: Any) -> Any:
        spark = protocol > 1000
        request = ttypes.TOpenSessionReq(
            client_protocol=None if spark else protocol, client_protocol_i64=protocol if spark else None, **fields
        )
        answer = self.call("OpenSession", request)
        self.session = answer.sessionHandle
        return answer

    def execute(self, statement: str, *, direct: bool = True, max_rows: int = 100, **fields: Any) -> Any:
        fields.setdefault("runAsync", True)
        limits = ttypes.TSparkGetDirectResults(maxRows=max_rows, maxBytes=1000) if direct else None
        return self.call(
            "ExecuteStatement",
            ttypes.TExecuteStatementReq(
                sessionHandle=self.session, statement=statement, getDirectResults=limits, **fields
            ),
        )

    def fetch(self, handle: Any, max_rows: int = 100, **fields: Any) -> Any:
        return self.call("FetchResults", ttypes.TFetchResultsReq(operationHandle=handle, maxRows=max_rows, **fields))


def ints(column: Any) -> list[int]:
    return list(column.i32Val.values)


def arrow_table(direct_metadata: Any, results: Any) -> pa.Table:
    schema = pa.ipc.read_schema(pa.py_buffer(direct_metadata.arrowSchema))
    datas = [lz4.frame.decompress(b.batch) if direct_metadata.lz4Compressed else b.batch for b in results.arrowBatches]
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(d), schema) for d in datas], schema)
