"""The embedded engine in this process: a session per case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gateway.errors import GatewayError, UnsupportedError
from gateway.jobs import Parameter
from gateway.sqltypes import StructType
from tests.conformance.session import Session, open_runner
from tests.fuzz.outcome import Column, Outcome
from tests.fuzz.tree import Case


def columns_of(schema: StructType) -> list[Column]:
    """Name, type and nullability of each column."""
    return [(f.name, f.type.simple, f.nullable) for f in schema.fields]


class Embedded:
    """A runner with its warehouse below `folder`."""

    def __init__(self, folder: Path, allow_paths: Sequence[Path] = ()) -> None:
        self._runner = open_runner(folder, allow_paths)

    def ask(self, case: Case) -> Outcome:
        """The answer to the case's last statement, or the first failure of one before it."""
        session = Session(self._runner, case.zone)
        statements = case.statements
        for text in statements[:-1]:
            before = self._one(session, text)
            if before.kind != "answer":
                return before
        return self._one(session, statements[-1], case.parameters)

    @staticmethod
    def _one(session: Session, text: str, parameters: Sequence[Parameter] = ()) -> Outcome:
        try:
            result = session.execute(text, parameters)
            return Outcome("answer", columns_of(result.schema), result.rows())
        except UnsupportedError as error:
            return Outcome("refused", condition=error.condition, message=error.message)
        except GatewayError as error:
            # What is too large here would hang or end Spark's JVM.
            if error.condition == "RESOURCE_EXHAUSTED":
                return Outcome("refused", condition=error.condition, message=error.message)
            return Outcome("error", condition=error.condition, message=error.message)
        except Exception as error:  # noqa: BLE001 - a crash is a finding like any other
            return Outcome("error", condition=f"CRASH {type(error).__name__}", message=str(error))
