"""What a session must survive: a changed token, a cancelled read, hundreds of statements; and the plainest of clients."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.authenticators import token_line
from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import Server, start_server


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_statement_without_rows_has_an_identifier(cursor: Any) -> None:
    cursor.execute("SET use_cached_result = false")
    assert cursor.query_id
    assert cursor.active_result_set is not None
    cursor.execute("CREATE SCHEMA IF NOT EXISTS checklist")
    assert cursor.fetchall() == []


def test_typed_rows_one_by_one_then_the_rest(connect: Any) -> None:
    names = [
        "id",
        "c_boolean",
        "c_int",
        "c_bigint",
        "c_double",
        "c_decimal",
        "c_string",
        "c_date",
        "c_timestamp",
        "c_array",
    ]
    with connect().cursor(arraysize=1) as cursor:
        cursor.execute(f"SELECT {', '.join(names)} FROM samples.delta_types.all_types ORDER BY id")
        assert [d[0] for d in cursor.description] == names
        first = cursor.fetchmany(1)
        rest = cursor.fetchall()
    assert [row.id for row in first + rest] == [1, 2, 3, 4, 5]
    kinds = [type(v).__name__ for v in first[0]]
    assert kinds == ["int", "bool", "int", "int", "float", "Decimal", "str", "date", "datetime", "ndarray"]
    assert list(rest[-1])[1:] == [None] * 9


def test_columnar_pages_of_one_row_without_direct_results(server: Server) -> None:
    # As drivers ask with Arrow, direct results and downloads switched off.
    with Client(server.thrift_url).open() as client:
        result = client.execute(
            "SELECT CAST(id AS INT) AS id, 'label' AS label FROM range(3) ORDER BY id",
            arrow=False,
            direct=False,
            max_rows=1,
        )
        assert result.columns == ["id", "label"]
        assert result.metadata.resultFormat == ttypes.TSparkRowSetType.COLUMN_BASED_SET
        pages = list(result.pages())
    assert [p.startRowOffset for p in pages] == [0, 1, 2]
    for page in pages:
        assert page.columns[0].i32Val is not None
        assert page.columns[1].stringVal is not None


def test_a_cancelled_read_leaves_its_table_usable(connect: Any) -> None:
    with connect().cursor() as cursor, connect().cursor() as other:
        cursor.execute_async(
            "SELECT count(*) FROM samples.tpch.lineitem a CROSS JOIN samples.tpch.lineitem b WHERE a.l_tax <> b.l_tax"
        )
        time.sleep(0.05)
        cursor.cancel()
        other.execute("SELECT count(*) > 0 FROM samples.tpch.lineitem")
        assert other.fetchone()[0] is True


def test_sessions_outlive_their_token(tmp_path: Path) -> None:
    tokens = {"old": "anna", "new": "anna", "other": "bert"}
    file = tmp_path / "tokens"
    file.write_text("".join(token_line(name, token) + "\n" for token, name in tokens.items()))
    server = start_server(tmp_path, "--auth", "token", "--token-file", str(file))
    try:
        first = Client(server.url, token="old").open()
        first.execute("CREATE TEMPORARY VIEW kept AS SELECT 7 AS n").close()
        for token in tokens:
            later = Client(server.url, token=token)
            later._session = first._session  # a client that has refreshed its token
            if tokens[token] == "anna":
                assert later.execute("SELECT n FROM kept").table().column(0).to_pylist() == [7]
            else:
                with pytest.raises(RemoteError, match="INVALID_SESSION_HANDLE"):
                    later.execute("SELECT n FROM kept")
            later._connection.close()
        first.close()
    finally:
        assert server.stop() == 0


def test_hundreds_of_statements_leave_no_memory_behind(server: Server) -> None:
    def some(count: int) -> None:
        with Client(server.thrift_url).open() as client:
            for i in range(count):
                result = client.execute(f"SELECT id, repeat('x', 1000) AS s FROM range({i % 7 * 100})")
                assert result.table().num_rows == i % 7 * 100

    some(100)
    before = resident_bytes(server.process.pid)
    some(300)
    assert resident_bytes(server.process.pid) - before < 32 * 1024 * 1024
