"""Clients with Python's DB-API: databricks-sql-connector in its ways, PyHive, impyla, and pandas upon the first."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Any

from tests.clients.matrix.programs.say import Client, run


class Connector(Client):
    """databricks-sql-connector over Thrift."""

    more: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.version = version("databricks-sql-connector")
        self.connection = self.opened(order)

    def opened(self, order: dict[str, Any]) -> Any:
        """A connection."""
        sql = importlib.import_module("databricks.sql")
        url = order["http"] + order["path"]
        settings: dict[str, Any] = {"server_hostname": "localhost", "_connection_uri": url}
        settings |= {"http_path": order["path"], "access_token": "none-needed", "enable_telemetry": False}
        return sql.connect(**settings, **self.more)

    def query(self, statement: str) -> Sequence[Sequence[Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return [] if cursor.description is None else list(cursor.fetchall())

    def pages(self, statement: str) -> Iterable[Sequence[Sequence[Any]]]:
        with self.connection.cursor() as cursor:
            cursor.arraysize = 1000
            cursor.execute(statement)
            while page := cursor.fetchmany(1000):
                yield page

    def slow(self, statement: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
        cursor = self.connection.cursor()
        cursor.execute_async(statement)
        return cursor.get_async_execution_result, cursor.cancel

    def tables(self) -> Sequence[str]:
        with self.connection.cursor() as cursor:
            return [row[2] for row in cursor.tables("main", "matrix").fetchall()]

    def columns(self) -> Sequence[str]:
        with self.connection.cursor() as cursor:
            return [row[3] for row in cursor.columns("main", "matrix", "shapes").fetchall()]

    def bound(self, statement: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, list(values))
            return list(cursor.fetchall())


class Bare(Connector):
    """databricks-sql-connector where no pyarrow is installed."""

    def opened(self, order: dict[str, Any]) -> Any:
        sys.modules["pyarrow"] = None  # type: ignore[assignment]
        return super().opened(order)


class Rest(Connector):
    """databricks-sql-connector over the Statement Execution API."""

    def opened(self, order: dict[str, Any]) -> Any:
        sql = importlib.import_module("databricks.sql")
        host, _, port = order["http"].rpartition(":")
        settings: dict[str, Any] = {"server_hostname": host, "_port": int(port), "use_sea": True}
        return sql.connect(http_path=order["path"], access_token="none-needed", enable_telemetry=False, **settings)

    def tables(self) -> Sequence[str]:
        with self.connection.cursor() as cursor:
            return [row.tableName for row in cursor.tables("main", "matrix").fetchall()]

    def columns(self) -> Sequence[str]:
        with self.connection.cursor() as cursor:
            return [row.col_name for row in cursor.columns("main", "matrix", "shapes").fetchall()]


class Frames(Connector):
    """pandas over databricks-sql-connector."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.version = version("pandas")

    def query(self, statement: str) -> Sequence[Sequence[Any]]:
        if not statement.startswith("SELECT"):
            return super().query(statement)
        pandas = importlib.import_module("pandas")
        frame = pandas.read_sql(statement, self.connection)
        return frame.astype(object).where(frame.notna(), None).values.tolist()  # type: ignore[no-any-return]

    def pages(self, statement: str) -> Iterable[Sequence[Sequence[Any]]]:
        pandas = importlib.import_module("pandas")
        for frame in pandas.read_sql(statement, self.connection, chunksize=1000):
            yield frame.values.tolist()

    def bound(self, statement: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        pandas = importlib.import_module("pandas")
        frame = pandas.read_sql(statement, self.connection, params=list(values))
        return frame.values.tolist()  # type: ignore[no-any-return]


class Hive(Client):
    """PyHive over TCP."""

    marks = ("%s", "%s")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.version = version("pyhive")
        hive = importlib.import_module("pyhive.hive")
        host, _, port = order["tcp"].rpartition(":")
        self.connection = hive.connect(host, int(port), username="me")

    def query(self, statement: str) -> Sequence[Sequence[Any]]:
        return self.bound(statement, ())

    def bound(self, statement: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, tuple(values) or None)
            return [] if cursor.description is None else list(cursor.fetchall())

    def pages(self, statement: str) -> Iterable[Sequence[Sequence[Any]]]:
        with self.connection.cursor(arraysize=1000) as cursor:
            cursor.execute(statement)
            while page := cursor.fetchmany(1000):
                yield page

    def slow(self, statement: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
        cursor = self.connection.cursor()
        cursor.execute(statement, async_=True)
        states = importlib.import_module("TCLIService.ttypes").TOperationState

        def end() -> None:
            while (state := cursor.poll().operationState) in (states.INITIALIZED_STATE, states.RUNNING_STATE):
                time.sleep(0.1)
            if state != states.FINISHED_STATE:
                raise RuntimeError(states._VALUES_TO_NAMES[state])

        time.sleep(1)
        cursor.cancel()  # its connection is for one call at a time
        return end, lambda: None

    def state(self, error: Exception) -> str | None:
        return getattr(getattr(error.args[0], "status", None), "sqlState", None)

    def tables(self) -> Sequence[str]:
        return [row[1] for row in self.query("SHOW TABLES IN main.matrix")]

    def columns(self) -> Sequence[str]:
        return [row[0] for row in self.query("DESCRIBE main.matrix.shapes")]


class Impyla(Hive):
    """impyla over TCP."""

    def __init__(self, order: dict[str, Any]) -> None:
        Client.__init__(self, order)
        self.version = version("impyla")
        self.connection = self.opened(order)

    def opened(self, order: dict[str, Any]) -> Any:
        """A connection."""
        host, _, port = order["tcp"].rpartition(":")
        dbapi = importlib.import_module("impala.dbapi")
        return dbapi.connect(host, int(port), auth_mechanism="PLAIN", user="me", password="x")

    def pages(self, statement: str) -> Iterable[Sequence[Sequence[Any]]]:
        with self.connection.cursor() as cursor:
            cursor.arraysize = 1000
            cursor.execute(statement)
            while page := cursor.fetchmany(1000):
                yield page

    def slow(self, statement: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
        cursor = self.connection.cursor()
        cursor.execute_async(statement)

        def end() -> None:
            while cursor.is_executing():
                time.sleep(0.1)
            state = cursor.status()
            cursor.close()
            if state != "FINISHED_STATE":
                raise RuntimeError(state)

        time.sleep(1)
        cursor.cancel_operation(reset_state=False)
        return end, lambda: None

    def bound(self, statement: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, tuple(values) or None)
            rows = [] if cursor.description is None else cursor.fetchall()
            # Nested values are bytes in its first column of them.
            kinds = [column[1] for column in cursor.description or ()]
            return [
                [v.decode() if isinstance(v, bytes) and k != "BINARY" else v for k, v in zip(kinds, row, strict=True)]
                for row in rows
            ]

    def state(self, error: Exception) -> str | None:
        return None

    def tables(self) -> Sequence[str]:
        with self.connection.cursor() as cursor:
            cursor.get_tables(database_name="matrix")
            return [row[2] for row in cursor.fetchall()]


class ImpylaHttp(Impyla):
    """impyla over HTTP."""

    def opened(self, order: dict[str, Any]) -> Any:
        host, _, port = order["http"].rpartition("/")[2].rpartition(":")
        dbapi = importlib.import_module("impala.dbapi")
        settings: dict[str, Any] = {"use_http_transport": True, "http_path": "cliservice", "auth_mechanism": "PLAIN"}
        return dbapi.connect(host, int(port), user="me", password="x", **settings)


WAYS: dict[str, Callable[[dict[str, Any]], Client]] = {
    "connector": Connector,
    "bare": Bare,
    "rest": Rest,
    "pandas": Frames,
    "pyhive": Hive,
    "impyla": Impyla,
    "impyla-http": ImpylaHttp,
}

if __name__ == "__main__":
    run(WAYS[sys.argv[1]])
