"""The tools: SQL statements executed, read-only ones too, and asked for once more if they take long.

Names, arguments and the shape of answers are those of Databricks' own server of this kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.errors import GatewayError
from gateway.mcp import answers
from gateway.mcp.messages import Json
from gateway.protocol.handler import Caller
from gateway.protocol.turns import Turns
from gateway.rest import fields
from gateway.rest.statements import StatementApi, parameters, result_options
from gateway.service.api import Disposition, ExecuteRequest, Files, Form, OperationStatus

WAIT_SECONDS = 10.0
_ROWS = 1_000  # where a call names no limit

_PARAMETER: fields.Fields = {"name": fields.text, "value": fields.text, "type": fields.text}
_EXECUTE: fields.Fields = {
    "query": fields.text.told("The SQL statement: one, without a second one behind it."),
    "catalog": fields.text.told("The catalog that names without one mean."),
    "schema": fields.text.told("The schema that names without one mean."),
    "parameters": fields.each(fields.record(_PARAMETER)).told(
        "Values of parameter markers (:name; nameless ones for each ? in order): texts, each cast to its type."
    ),
    "row_limit": fields.at_most(answers.MOST_ROWS).told(
        f"How many rows are given at most; {_ROWS} where it is left out."
    ),
    "warehouse_id": fields.text.told("Without effect: there is one warehouse."),
}
_POLL: fields.Fields = {"statement_id": fields.text.told("The statement_id that a call of another tool has given.")}

_READING = "Execute one SQL statement that only reads: a query, SHOW, DESCRIBE or EXPLAIN. Anything else is refused."
_WRITING = "Execute one SQL statement of any kind. Use execute_sql_read_only for what only reads."
_WAITING = (
    f" Waits {WAIT_SECONDS:g} seconds: a statement that takes longer goes on, and is asked for with poll_sql_result. "
    f"Gives {answers.MOST_BYTES >> 20} MiB of rows at most."
)
_POLLING = (
    f"Tell the state of a statement that took long, and its rows once it has ended. Waits {WAIT_SECONDS:g} seconds."
)

# Who calls, the arguments, seconds to wait.
Call = Callable[[Caller, Mapping[str, Any], float], Json]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what clients are told of it, and what a call does."""

    name: str
    title: str
    description: str
    arguments: fields.Fields
    required: str
    reads: bool
    call: Call
    repeatable: bool = False

    def asked(self, found: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of a call. Raises RestError."""
        asked = fields.read_object("arguments", found, self.arguments)
        if asked[self.required] is None:
            raise fields.invalid(f"{self.required} is missing")
        return asked

    @property
    def described(self) -> Json:
        """What the list of tools says."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": fields.schema_of(self.arguments, (self.required,)),
            "outputSchema": answers.SCHEMA,
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.reads,
                "destructiveHint": not self.reads,
                "idempotentHint": self.reads,
                "openWorldHint": False,
            },
        }


class SqlTools:
    """The tools over a service, by the calls of the REST API."""

    def __init__(self, statements: StatementApi) -> None:
        self._statements = statements
        self._turns = Turns(2, 1)  # while rows become values and text of values, other threads wait
        self._tools = {
            tool.name: tool
            for tool in (
                Tool(
                    "execute_sql",
                    "Execute SQL",
                    _WRITING + _WAITING,
                    _EXECUTE,
                    "query",
                    False,
                    partial(self._execute, read_only=False),
                ),
                Tool(
                    "execute_sql_read_only",
                    "Execute SQL that only reads",
                    _READING + _WAITING,
                    _EXECUTE,
                    "query",
                    True,
                    partial(self._execute, read_only=True),
                ),
                Tool("poll_sql_result", "Ask for a result", _POLLING, _POLL, "statement_id", True, self._poll),
            )
        }
        self.described = [tool.described for tool in self._tools.values()]

    def named(self, name: str) -> Tool | None:
        """The tool of a name; some clients know the last one by that which Databricks' other servers give it."""
        return self._tools.get("poll_sql_result" if name == "poll_response" else name)

    def _execute(self, caller: Caller, asked: Mapping[str, Any], wait: float, *, read_only: bool) -> Json:
        try:
            request = ExecuteRequest(
                statement=asked["query"],
                parameters=parameters(asked["parameters"] or []),
                row_limit=asked["row_limit"] or _ROWS,
                byte_limit=answers.MOST_BYTES,
                wait_seconds=wait,
                options=result_options(Files(Form.JSON, Disposition.INLINE)),
                read_only=read_only,
            )
            status = self._statements.execute_alone(caller, asked["catalog"], asked["schema"], request)
        except GatewayError as error:
            return answers.refused(error)
        return self._told(caller, status)

    def _poll(self, caller: Caller, asked: Mapping[str, Any], wait: float) -> Json:
        service, principal = self._statements.service, caller.principal
        try:
            handle = service.named_operation(principal, asked["statement_id"])
            status = service.operation_status(principal, handle, wait)
        except GatewayError as error:
            return answers.refused(error)
        return self._told(caller, status)

    def _told(self, caller: Caller, status: OperationStatus) -> Json:
        with self._turns.turn(caller.principal.name):
            return answers.told(self._statements.service, caller.principal, status)
