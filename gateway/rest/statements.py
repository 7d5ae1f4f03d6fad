"""The Statement Execution API 2.0 over the service: sessions, statements, their results and cancels."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.engine.base import Parameter
from gateway.errors import GatewayError, ProtocolError
from gateway.protocol import convert, versions
from gateway.protocol.handler import LINK_PATH, Caller
from gateway.protocol.turns import ShapeTurns, Turns
from gateway.rest import fields, manifest
from gateway.rest.call import Asked, Path
from gateway.rest.fields import RestError
from gateway.rest.manifest import Verbatim
from gateway.results.links import LinkSigner
from gateway.service.api import (
    ENDS,
    Disposition,
    ExecuteRequest,
    Files,
    Form,
    Handle,
    OpenSessionRequest,
    OperationStatus,
    Outcome,
    ResultOptions,
    State,
    WholeResults,
)
from gateway.service.session import text_of

_WAIT_SECONDS = 10.0

_PARAMETER: fields.Fields = {
    "name": fields.text,
    "value": fields.text,
    "type": fields.text,
    "ordinal": fields.count,
}
SESSION: fields.Fields = {
    "warehouse_id": fields.text,
    "session_confs": fields.texts,
    "catalog": fields.text,
    "schema": fields.text,
    "execution_mode": fields.anything,  # databricks-jdbc 3.4: whether answers may wait
}
STATEMENT: fields.Fields = {
    "statement": fields.text,
    "warehouse_id": fields.text,
    "session_id": fields.text,
    "catalog": fields.text,
    "schema": fields.text,
    "parameters": fields.each(fields.record(_PARAMETER)),
    "row_limit": fields.count,
    "byte_limit": fields.count,
    "disposition": fields.one_of(*Disposition),
    "format": fields.one_of(*Form),
    "result_compression": fields.one_of("NONE", "LZ4_FRAME"),
    "wait_timeout": fields.wait,
    "on_wait_timeout": fields.one_of("CONTINUE", "CANCEL"),
    "query_tags": fields.anything,
    "session_version": fields.anything,
}
# Said twice by some clients: the path counts.
OF_SESSION: fields.Fields = {"warehouse_id": fields.text, "session_id": fields.text}
OF_STATEMENT: fields.Fields = {"statement_id": fields.text}
OF_CANCEL: fields.Fields = {**OF_STATEMENT, "statementId": fields.text}  # as databricks-jdbc 3 spells it


@dataclass(frozen=True, slots=True)
class StatementApi:
    """The calls; each takes who calls, the parts of its path and the fields of its body, and gives what is answered as JSON."""

    service: WholeResults
    signer: LinkSigner
    turns: Turns = field(default_factory=Turns)
    shapes: ShapeTurns = field(default_factory=ShapeTurns)

    def create_session(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Open a session."""
        handle = self._open(caller, asked["catalog"], asked["schema"], asked["session_confs"])
        return {"session_id": text_of(handle)}

    def delete_session(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Close a session and what was executed in it."""
        self.service.close_session(caller.principal, self.service.named_session(caller.principal, path["session_id"]))
        return {}

    def _open(
        self, caller: Caller, catalog: str | None, schema: str | None, settings: Any = None, *, for_one: bool = False
    ) -> Handle:
        confs, used_catalog, used_schema = convert.settings_from(settings)
        request = OpenSessionRequest(
            caller.principal,
            versions.SPARK_V9,
            confs,
            convert.catalog_from(catalog) or used_catalog,
            schema or used_schema,
            caller.client,
            for_one=for_one,
        )
        return self.service.open_session(request).handle

    def execute(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Execute a statement, and wait for its result for a while."""
        files = _files(asked)
        within = asked["session_id"] or path.get("session_id")
        if within is not None and (asked["catalog"] is not None or asked["schema"] is not None):
            raise fields.invalid("catalog and schema are those of the session where session_id is given")
        wait = _WAIT_SECONDS if asked["wait_timeout"] is None else asked["wait_timeout"]
        request = ExecuteRequest(
            statement=asked["statement"],
            parameters=parameters(asked["parameters"] or []),
            row_limit=asked["row_limit"],
            byte_limit=asked["byte_limit"],
            wait_seconds=wait,
            origin=caller.origin,
            options=result_options(files, asked["result_compression"], convert.is_near(caller.origin)),
        )
        if within is not None:
            session = self.service.named_session(caller.principal, within)
            status = self.service.execute(caller.principal, session, request)
        else:
            status = self.execute_alone(caller, asked["catalog"], asked["schema"], request)
        if status.state not in ENDS and wait and asked["on_wait_timeout"] == "CANCEL":
            self.service.cancel(caller.principal, status.handle)
            status = self.service.operation_status(caller.principal, status.handle, 0)
        return self._answer(caller, status)

    def execute_alone(
        self, caller: Caller, catalog: str | None, schema: str | None, request: ExecuteRequest
    ) -> OperationStatus:
        """Execute a statement in a session of its own, which ends with it."""
        session = self._open(caller, catalog, schema, for_one=True)
        try:
            return self.service.execute(caller.principal, session, request)
        except GatewayError:
            with contextlib.suppress(ProtocolError):  # it has ended with its statement, as where too many wait
                self.service.close_session(caller.principal, session)
            raise

    def get(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Tell a statement's status, and its result once it is there."""
        handle = self.service.named_operation(caller.principal, path["statement_id"])
        return self._answer(caller, self.service.operation_status(caller.principal, handle, 0))

    def status(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Tell a statement's status without its result."""
        handle = self.service.named_operation(caller.principal, path["statement_id"])
        status = self.service.operation_status(caller.principal, handle, 0)
        return {"statement_id": text_of(handle), "status": manifest.status_of(status)}

    def chunk(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Give a result from one of its chunks on."""
        handle = self.service.named_operation(caller.principal, path["statement_id"])
        if self.service.operation_status(caller.principal, handle, 0).state is not State.FINISHED:
            raise RestError(400, "BAD_REQUEST", "The statement has no result (yet).")
        found = self._result(caller, handle, int(path["chunk_index"]))[1]
        if found is None:
            raise RestError(404, "RESOURCE_DOES_NOT_EXIST", f"The result has no chunk {path['chunk_index']}.")
        return found

    def cancel(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Cancel a statement: one's own, or anybody's for administrators."""
        try:
            handle = self.service.named_operation(caller.principal, path["statement_id"])
        except ProtocolError:
            self.service.kill(caller.principal, path["statement_id"])
        else:
            self.service.cancel(caller.principal, handle)
        return {}

    def close(self, caller: Caller, path: Path, asked: Asked) -> dict[str, Any]:
        """Close a statement: its result is let go of."""
        handle = self.service.named_operation(caller.principal, path["statement_id"])
        self.service.close_operation(caller.principal, handle)
        return {}

    def _answer(self, caller: Caller, status: OperationStatus) -> dict[str, Any]:
        answer: dict[str, Any] = {"statement_id": text_of(status.handle), "status": manifest.status_of(status)}
        if status.state is State.FINISHED:
            try:
                outcome, result = self._result(caller, status.handle, 0)
            except GatewayError as error:  # of the rows: too large for one answer, or of a type that cannot be given
                failed = {"error_code": manifest.code_of(error), "message": error.text()}
                return answer | {"status": {"state": "FAILED", "error": failed, "sql_state": error.sqlstate}}
            with self.shapes.turn(caller.principal.name, len(outcome.metadata.schema.fields)):
                shown = Verbatim(manifest.as_json(manifest.manifest(outcome)))
            answer |= {"manifest": shown, "result": result or {}}
        return answer

    def _result(self, caller: Caller, handle: Handle, index: int) -> tuple[Outcome, dict[str, Any] | None]:
        """What ``manifest`` tells of, and ``result`` from chunk `index` on."""
        outcome = self.service.outcome(caller.principal, handle)
        if outcome.metadata.options.files is None:
            raise RestError(400, "BAD_REQUEST", "The statement was not executed by this API.")

        def link(start_row: int, rows: int) -> tuple[str, int]:
            text, expires_ms = self.signer.sign(handle.guid, start_row, rows)
            return f"{caller.origin}{LINK_PATH}{text}", expires_ms

        with self.turns.turn(caller.principal.name):
            found = manifest.chunk(
                text_of(handle), outcome, index, lambda start, rows: self.service.piece(handle.guid, start, rows), link
            )
        return outcome, found


def _files(asked: Mapping[str, Any]) -> Files:
    disposition = Disposition(asked["disposition"] or Disposition.INLINE)
    form = Form(asked["format"] or Form.JSON)
    if form is Form.CSV and disposition is not Disposition.LINKS:
        raise fields.invalid("The format CSV is only supported for disposition=EXTERNAL_LINKS.")
    if form is not Form.ARROW and disposition is Disposition.EITHER:
        raise fields.invalid("disposition=INLINE_OR_EXTERNAL_LINKS is only supported for format=ARROW_STREAM.")
    return Files(form, disposition)


def result_options(files: Files, compression: str | None = None, near: bool = False) -> ResultOptions:
    """How a whole result is kept for these files; texts are not compressed."""
    lz4 = files.form is Form.ARROW and compression == "LZ4_FRAME"
    return ResultOptions(arrow=True, lz4=lz4, near=near, interval_as_arrow=True, files=files)


def parameters(asked: Sequence[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    """Named ones, or (databricks-jdbc, databricks-sql-connector) nameless ones by their ordinals, or as they come."""
    named = [p for p in asked if p["name"]]
    if named and len(named) != len(asked):
        raise fields.invalid("Named and positional parameters cannot be mixed.")
    ordered = named or sorted(asked, key=lambda p: p.get("ordinal") or 0)
    return tuple(Parameter(p["name"] or None, p["type"] or "STRING", p["value"]) for p in ordered)
