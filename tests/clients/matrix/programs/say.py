"""What all programs in Python share: the order they read, the texts of values, and the lines they write.

They run in interpreters that need not have the gateway's own packages: nothing but the standard library is imported here.
"""

from __future__ import annotations

import datetime
import json
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def text(value: Any) -> str:
    """A value as the cases are judged by."""
    if value is None:
        return "NULL"
    if hasattr(value, "tolist"):  # numpy's
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
        return str(value.strftime("%Y-%m-%d %H:%M:%S.%f")).rstrip("0").rstrip(".")
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, separators=(",", ":"), default=text)
    return str(value)


def texts(rows: Iterable[Iterable[Any]]) -> list[list[str]]:
    """Rows as texts."""
    return [[text(value) for value in row] for row in rows]


class Client(ABC):
    """A client: its queries, and in terms of them the cases. Cases that are not its own way it overrides."""

    version = ""
    marks = ("?", "?")

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order

    @abstractmethod
    def query(self, statement: str) -> Sequence[Sequence[Any]]:
        """All rows of a statement."""

    def connect(self, statement: str) -> Any:
        """A first row."""
        return texts(self.query(statement))

    def types(self, statement: str) -> Any:
        """The one row's values."""
        return texts(self.query(statement))[0]

    nulls = types

    def pages(self, statement: str) -> Iterable[Sequence[Sequence[Any]]]:
        """The rows of a statement, a thousand at a time."""
        raise NotImplementedError

    def page(self, statement: str) -> Any:
        """Rows and their sum, read in pages."""
        rows = total = 0
        for page in self.pages(statement):
            rows += len(page)
            total += sum(int(row[0]) for row in page)
        return {"rows": rows, "sum": total}

    def large(self, statement: str) -> Any:
        """Rows and their sum, read at once."""
        rows = self.query(statement)
        return {"rows": len(rows), "sum": sum(int(row[0]) for row in rows)}

    def slow(self, statement: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
        """What runs a statement to its end, and what cancels it."""
        raise NotImplementedError

    def cancel(self, statement: str) -> Any:
        """How a statement ends that is cancelled after a second, and whether another one runs then."""
        run, stop = self.slow(statement)
        ended: list[str] = []

        def work() -> None:
            try:
                run()
                ended.append("rows")
            except Exception:  # noqa: BLE001 - each client has errors of its own
                ended.append("error")

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        time.sleep(1)
        start = time.monotonic()
        stop()
        thread.join(60)
        seconds = round(time.monotonic() - start, 1)
        return {"ended": (ended or ["nothing"])[0], "seconds": seconds, "after": text(self.query("SELECT 1")[0][0])}

    def error(self, statement: str) -> Any:
        """Text and state of an error."""
        try:
            self.query(statement)
        except Exception as error:  # noqa: BLE001 - each client has errors of its own
            return {"text": str(error), "state": self.state(error)}
        return {"text": "none", "state": None}

    def state(self, error: Exception) -> str | None:
        """The SQLSTATE of an error, where the client has one."""
        return None

    def tables(self) -> Sequence[str]:
        """Names of the tables of main.matrix, by the client's own call."""
        raise NotImplementedError

    def columns(self) -> Sequence[str]:
        """Names of the columns of main.matrix.shapes, by the client's own call."""
        raise NotImplementedError

    def metadata(self) -> Any:
        """What the client finds in the schema."""
        return {"tables": list(self.tables()), "columns": list(self.columns())}

    def bound(self, statement: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """All rows of a statement with parameters."""
        raise NotImplementedError

    def parameters(self, statement: str) -> Any:
        """A row made of a number and a text."""
        return texts(self.bound(statement.format(*self.marks), (41, "o'b")))

    def write(self, *statements: str) -> Any:
        """The rows of a table that was made, filled, changed and is dropped."""
        seen: Any = None
        for statement in statements:
            rows = self.query(statement)
            if statement.startswith("SELECT"):
                seen = texts(rows)
        return seen


def run(make: Callable[[dict[str, Any]], Client]) -> None:
    """Do what standard input orders, and write a line for each case."""
    order = json.load(sys.stdin)
    client = make(order)
    print(json.dumps({"version": client.version}), flush=True)
    for name, statements in order["cases"].items():
        try:
            line = {"case": name, "seen": getattr(client, name)(*statements)}
        except Exception as error:  # noqa: BLE001 - the case has failed, the next may not
            line = {"case": name, "failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(line), flush=True)
