"""Programs that live in an environment of their own: SQLAlchemy, polars, ibis, Databricks' SDK, arrowbricks."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Any

from tests.clients.matrix.programs.dbapi import Connector
from tests.clients.matrix.programs.say import Client, run


class Alchemy(Client):
    """databricks-sqlalchemy; its metadata by reflection."""

    marks = (":n", ":s")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.version = version("databricks-sqlalchemy")
        self.sqlalchemy = importlib.import_module("sqlalchemy")
        more = {"_connection_uri": order["http"] + order["path"], "enable_telemetry": False}
        url = f"databricks://token:none-needed@localhost?http_path={order['path']}&catalog=main&schema=matrix"
        self.engine = self.sqlalchemy.create_engine(url, connect_args=more)

    def query(self, statement: str) -> Sequence[Sequence[Any]]:
        with self.engine.begin() as connection:
            result = connection.execute(self.sqlalchemy.text(statement))
            return result.fetchall() if result.returns_rows else []

    def pages(self, statement: str) -> Iterable[Sequence[Sequence[Any]]]:
        with self.engine.connect() as connection:
            yield from connection.execute(self.sqlalchemy.text(statement)).partitions(1000)

    def tables(self) -> Sequence[str]:
        return self.sqlalchemy.inspect(self.engine).get_table_names(schema="matrix")  # type: ignore[no-any-return]

    def columns(self) -> Sequence[str]:
        return [c["name"] for c in self.sqlalchemy.inspect(self.engine).get_columns("shapes", schema="matrix")]

    def bound(self, statement: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        with self.engine.connect() as connection:
            given = {"n": values[0], "s": values[1]}
            return connection.execute(self.sqlalchemy.text(statement), given).fetchall()  # type: ignore[no-any-return]


class Polars(Connector):
    """polars.read_database over databricks-sql-connector."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.version = version("polars")

    def query(self, statement: str) -> Sequence[Sequence[Any]]:
        if not statement.startswith("SELECT"):
            return super().query(statement)
        return importlib.import_module("polars").read_database(statement, self.connection).rows()  # type: ignore[no-any-return]

    def pages(self, statement: str) -> Iterable[Sequence[Sequence[Any]]]:
        polars = importlib.import_module("polars")
        for frame in polars.read_database(statement, self.connection, iter_batches=True, batch_size=1000):
            yield frame.rows()

    def bound(self, statement: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        polars = importlib.import_module("polars")
        options = {"parameters": list(values)}
        return polars.read_database(statement, self.connection, execute_options=options).rows()  # type: ignore[no-any-return]


class Ibis(Client):
    """ibis: what is written goes through its own calls, its reads through expressions of SQL."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.version = version("ibis-framework")
        ibis = importlib.import_module("ibis")
        more: dict[str, Any] = {"_connection_uri": order["http"] + order["path"], "enable_telemetry": False}
        place = {"server_hostname": "localhost", "http_path": order["path"], "access_token": "none-needed"}
        self.connection = ibis.databricks.connect(**place, catalog="main", schema="matrix", **more)

    def query(self, statement: str) -> Sequence[Sequence[Any]]:
        if not statement.startswith("SELECT"):
            self.connection.raw_sql(statement).close()
            return []
        table = self.connection.sql(statement).to_pyarrow()
        return [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]

    def types(self, statement: str) -> Any:
        """Without intervals, of which ibis reads none that come as texts."""
        for interval in ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "CAST(NULL AS INTERVAL DAY TO SECOND)"):
            as_text = "CAST(NULL AS STRING)" if "NULL" in interval else "'1 02:03:04.500000000'"
            statement = statement.replace(interval, as_text)
        return super().types(statement)

    nulls = types

    def pages(self, statement: str) -> Iterable[Sequence[Sequence[Any]]]:
        for batch in self.connection.sql(statement).to_pyarrow_batches(chunk_size=1000):
            yield [(value,) for value in batch.column(0).to_pylist()]

    def tables(self) -> Sequence[str]:
        return self.connection.list_tables()  # type: ignore[no-any-return]

    def columns(self) -> Sequence[str]:
        return list(self.connection.table("shapes").columns)

    def write(self, *statements: str) -> Any:
        """With the rows of a table of the client's memory, which go through a volume."""
        made, _, *others = statements
        self.query(made)
        rows = importlib.import_module("ibis").memtable({"id": [1, 2], "name": ["one", "two"]})
        self.connection.insert(made.split()[4].rpartition(".")[2], rows)
        return super().write(*others)


class Sdk(Client):
    """databricks-sdk: statement_execution."""

    marks = (":n", ":s")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.version = version("databricks-sdk")
        os.environ["DATABRICKS_CONFIG_FILE"] = "/dev/null"
        sdk = importlib.import_module("databricks.sdk")
        self.sql = importlib.import_module("databricks.sdk.service.sql")
        self.client = sdk.WorkspaceClient(host=order["http"], token="none-needed")

    def chunks(self, statement: str, parameters: Any = None) -> Iterable[Sequence[Sequence[Any]]]:
        """The rows of a statement, chunk by chunk."""
        calls = self.client.statement_execution
        found = calls.execute_statement(statement, "gateway", parameters=parameters, wait_timeout="30s")
        while found.status.state.value in ("PENDING", "RUNNING"):
            time.sleep(0.2)
            found = calls.get_statement(found.statement_id)
        if found.status.state.value != "SUCCEEDED":
            raise RuntimeError(f"{found.status.state.value}: {found.status.error and found.status.error.message}")
        chunk = found.result
        while chunk is not None:
            yield chunk.data_array or []
            following = chunk.next_chunk_index
            chunk = None if following is None else calls.get_statement_result_chunk_n(found.statement_id, following)

    def query(self, statement: str) -> Sequence[Sequence[Any]]:
        return [row for chunk in self.chunks(statement) for row in chunk]

    def types(self, statement: str) -> Any:
        """The one row's values, which are texts of JSON."""
        return [plain(value) for value in self.query(statement)[0]]

    nulls = types

    def pages(self, statement: str) -> Iterable[Sequence[Sequence[Any]]]:
        return self.chunks(statement)

    def slow(self, statement: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
        calls = self.client.statement_execution
        started = calls.execute_statement(statement, "gateway", wait_timeout="0s")

        def end() -> None:
            while (state := calls.get_statement(started.statement_id).status.state.value) in ("PENDING", "RUNNING"):
                time.sleep(0.2)
            if state != "SUCCEEDED":
                raise RuntimeError(state)

        return end, lambda: calls.cancel_execution(started.statement_id)

    def tables(self) -> Sequence[str]:
        return [row[1] for row in self.query("SHOW TABLES IN main.matrix")]

    def columns(self) -> Sequence[str]:
        return [row[0] for row in self.query("DESCRIBE main.matrix.shapes")]

    def bound(self, statement: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        item = self.sql.StatementParameterListItem
        given = [item(name="n", value=str(values[0]), type="INT"), item(name="s", value=values[1])]
        return [row for chunk in self.chunks(statement, given) for row in chunk]


class Bricks(Client):
    """arrowbricks, which is asynchronous; its statements are cancelled as tasks are."""

    protocol = "thrift"
    marks = (":n", ":s")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.version = version("arrowbricks")
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        connect = importlib.import_module("arrowbricks").connect
        settings = {"warehouse_id": "gateway", "token": "none-needed", "protocol": self.protocol}
        self.connection = connect(host=order["http"], **settings)

    def begun(self, statement: str, parameters: Any = None) -> Any:
        """A statement's rows, to be waited for."""

        async def work() -> Any:
            cursor = self.connection.cursor()
            await cursor.execute(statement, parameters)
            return await cursor.fetchall()

        return asyncio.run_coroutine_threadsafe(work(), self.loop)

    def query(self, statement: str) -> Sequence[Sequence[Any]]:
        return self.begun(statement).result()  # type: ignore[no-any-return]

    def pages(self, statement: str) -> Iterable[Sequence[Sequence[Any]]]:
        cursor = self.connection.cursor()
        asyncio.run_coroutine_threadsafe(cursor.execute(statement), self.loop).result()
        while page := asyncio.run_coroutine_threadsafe(cursor.fetchmany(1000), self.loop).result():
            yield page

    def slow(self, statement: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
        begun = self.begun(statement)
        return begun.result, begun.cancel

    def tables(self) -> Sequence[str]:
        return [row[1] for row in self.query("SHOW TABLES IN main.matrix")]

    def columns(self) -> Sequence[str]:
        return [row[0] for row in self.query("DESCRIBE main.matrix.shapes")]

    def bound(self, statement: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        number = {"name": "n", "value": str(values[0]), "type": "INT"}
        return self.begun(statement, [number, {"name": "s", "value": values[1], "type": "STRING"}]).result()  # type: ignore[no-any-return]


class BricksRest(Bricks):
    """arrowbricks over the Statement Execution API."""

    protocol = "sea"


def plain(value: str | None) -> Any:
    """A value of JSON rows, times without T and Z; numbers in nested values are no texts."""
    if value is None:
        return "NULL"
    if value[:1] in "[{":
        nested = json.loads(value)
        return json.dumps(nested, separators=(",", ":"))
    if len(value) > 18 and value[4] == "-" and value[10] == "T":
        return value.replace("T", " ").removesuffix("Z").rstrip("0").rstrip(".")
    return value


WAYS: dict[str, Callable[[dict[str, Any]], Client]] = {
    "sqlalchemy": Alchemy,
    "polars": Polars,
    "ibis": Ibis,
    "sdk": Sdk,
    "arrowbricks": Bricks,
    "arrowbricks-rest": BricksRest,
}

if __name__ == "__main__":
    run(WAYS[sys.argv[1]])
