"""Files of volumes as clients put, get, remove, list and read them."""

from __future__ import annotations

import http.client
import io
import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from databricks.sql import exc

from gateway.protocol.client import Client, RemoteError
from gateway.protocol.versions import HIVE_V6
from tests.live.doors import tcp_client
from tests.live.gateway import Connect, Server, connect_to, start_server

FOUR = ["operation", "presignedUrl", "headers", "localFile"]


@pytest.fixture
def volume(server: Server) -> Iterator[str]:
    """The path of a new volume."""
    name = f"files_{uuid.uuid4().hex[:8]}"
    with Client(server.thrift_url).open() as client:
        client.execute(f"CREATE VOLUME main.default.{name}").close()
        yield f"/Volumes/main/default/{name}"
        client.execute(f"DROP VOLUME IF EXISTS main.default.{name}").close()


@pytest.fixture
def staging(connect: Connect, tmp_path: Path) -> Any:
    """A cursor that may use files below `tmp_path`."""
    return connect(staging_allowed_local_path=str(tmp_path)).cursor()


def asked(server: Server, method: str, url: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    """Status and body of a request to a link."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc or urlsplit(server.url).netloc, timeout=30)
    connection.request(method, parts.path, body, headers)
    got = connection.getresponse()
    answer = got.status, got.read()
    connection.close()
    return answer


def folder_of(server: Server, name: str) -> Path:
    """Where the files of a volume of the schema `default` lie."""
    (found,) = (server.warehouse / "default" / "_volumes").glob(f"{name}.*")
    return found


def link(client: Client, statement: str) -> str:
    """The link that a statement answers with."""
    return str(client.execute(statement).table().column("presignedUrl")[0].as_py())


def test_a_file_goes_there_and_back(staging: Any, volume: str, tmp_path: Path) -> None:
    data = os.urandom(5_000_000)  # in several pieces, both ways
    (tmp_path / "here.bin").write_bytes(data)
    staging.execute(f"PUT '{tmp_path}/here.bin' INTO '{volume}/a/b/c.bin'")
    staging.execute(f"GET '{volume}/a/b/c.bin' TO '{tmp_path}/back.bin'")
    assert (tmp_path / "back.bin").read_bytes() == data
    (tmp_path / "here.bin").write_bytes(b"")
    with pytest.raises(exc.ServerOperationError, match="FILE_IN_STAGING_PATH_ALREADY_EXISTS"):
        staging.execute(f"PUT '{tmp_path}/here.bin' INTO '{volume}/a/b/c.bin'")
    staging.execute(f"PUT '{tmp_path}/here.bin' INTO '{volume}/a/b/c.bin' OVERWRITE")
    staging.execute(f"GET '{volume}/a/b/c.bin' TO '{tmp_path}/back.bin'")
    assert (tmp_path / "back.bin").read_bytes() == b""
    staging.execute(f"REMOVE '{volume}/a/b/c.bin'")
    with pytest.raises(exc.OperationalError, match="404"):
        staging.execute(f"GET '{volume}/a/b/c.bin' TO '{tmp_path}/back.bin'")
    staging.execute(f"REMOVE '{volume}/a/b/c.bin'")  # as on object stores


def test_a_stream_is_put(staging: Any, volume: str, tmp_path: Path) -> None:
    staging.execute(f"PUT '__input_stream__' INTO '{volume}/s.txt' OVERWRITE", input_stream=io.BytesIO(b"streamed"))
    staging.execute(f"GET '{volume}/s.txt' TO '{tmp_path}/s.txt'")
    assert (tmp_path / "s.txt").read_bytes() == b"streamed"


def test_a_part_is_no_file(server: Server, volume: str) -> None:
    with Client(server.thrift_url).open() as client:
        place = link(client, f"PUT 'f' INTO '{volume}/part'")
        assert asked(server, "PUT", place, b"abc", **{"Content-Range": "bytes 0-2/10"})[0] == 400
        assert client.execute(f"LIST '{volume}'").table().num_rows == 0


def test_files_are_listed(server: Server, volume: str) -> None:
    with Client(server.thrift_url).open() as client:
        assert client.execute(f"LIST '{volume}'").table().num_rows == 0
        begun = int(time.time() * 1000) - 1000
        for name in ("b.txt", "a/x.txt"):
            assert asked(server, "PUT", link(client, f"PUT 'f' INTO '{volume}/{name}'"), b"abc")[0] == 200
        rows = client.execute(f"LIST '{volume}/'").table().to_pylist()
        assert [(r["path"], r["name"], r["size"]) for r in rows] == [
            (f"{volume}/a/", "a/", 0),
            (f"{volume}/b.txt", "b.txt", 3),
        ]
        assert all(begun <= r["modification_time"] <= begun + 60_000 for r in rows)
        assert client.execute(f"LIST 'dbfs:{volume}/a' LIMIT 1").table().column("name").to_pylist() == ["x.txt"]
        assert client.execute(f"LIST '{volume}/b.txt'").table().column("path").to_pylist() == [f"{volume}/b.txt"]
        with pytest.raises(RemoteError, match="PATH_NOT_FOUND"):
            client.execute(f"LIST '{volume}/none'")


@pytest.mark.parametrize(
    "name",
    ["3.04.05\u202fPM.png", "\u0646\u200c\u0645.csv", "\U0001f469\u200d\U0001f4bb", "a\u00a0b", "\u2028", "\U0001fae8"],
)
def test_names_with_hidden_characters_are_names(server: Server, volume: str, name: str) -> None:
    """Systems and writings make them: spaces of all kinds, joiners. What LIST tells can be got and removed."""
    with Client(server.thrift_url).open() as client:
        assert asked(server, "PUT", link(client, f"PUT 'f' INTO '{volume}/{name}'"), b"x")[0] == 200
        assert client.execute(f"LIST '{volume}'").table().column("name").to_pylist() == [name]
        assert asked(server, "GET", link(client, f"GET '{volume}/{name}' TO 'x'")) == (200, b"x")
        assert asked(server, "DELETE", link(client, f"REMOVE '{volume}/{name}'"))[0] == 200
        assert client.execute(f"LIST '{volume}'").table().num_rows == 0


def test_files_are_read_as_tables(server: Server, volume: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "t.parquet", compression="zstd")
    data = (tmp_path / "t.parquet").read_bytes()
    with Client(server.thrift_url).open() as client:
        assert asked(server, "PUT", link(client, f"PUT 'f' INTO '{volume}/t/p.parquet'"), data)[0] == 200
        for path in (f"{volume}/t/p.parquet", f"{volume}/t", f"dbfs:{volume}/t/"):
            assert client.execute(f"SELECT sum(id) AS s FROM parquet.`{path}`").table().to_pylist() == [{"s": 6}]
        client.execute(f"CREATE TEMPORARY VIEW of_file AS SELECT * FROM parquet.`{volume}/t/p.parquet`").close()
        assert client.execute("SELECT count(*) AS n FROM of_file").table().to_pylist() == [{"n": 3}]
        client.execute("CREATE OR REPLACE TABLE copied (id BIGINT)").close()
        client.execute(f"COPY INTO copied FROM '{volume}/t' FILEFORMAT = PARQUET").close()
        assert client.execute("SELECT count(*) AS n FROM copied").table().to_pylist() == [{"n": 3}]
        client.execute("DROP TABLE copied").close()


def test_the_answer_is_told_to_be_one_of_staging(server: Server, volume: str) -> None:
    with Client(server.thrift_url).open() as client:
        put = client.execute(f"PUT '/tmp/f' INTO '{volume}/f' OVERWRITE")
        assert put.metadata.isStagingOperation is True and put.columns == FOUR
        (row,) = put.table().to_pylist()
        assert (row["operation"], row["headers"], row["localFile"]) == ("PUT", [], "/tmp/f")
        assert row["presignedUrl"].startswith(f"{server.url}/sql/1.0/files/")
        got = client.execute(f"GET '{volume}/f' TO 'x y'")
        assert got.metadata.isStagingOperation is True and got.columns == FOUR
        assert got.table().column("localFile").to_pylist() == ["x y"]
        removed = client.execute(f"REMOVE '{volume}/f'")
        assert removed.metadata.isStagingOperation is True and removed.columns == FOUR[:3]  # @databricks/sql, Go
        assert removed.table().column("operation").to_pylist() == ["REMOVE"]
        assert client.execute(f"LIST '{volume}'").metadata.isStagingOperation is False
    with Client(server.thrift_url).open(protocol=HIVE_V6) as client:  # in columns
        columns = client.execute(f"GET '{volume}/f' TO 'x'", arrow=False)
        assert columns.metadata.isStagingOperation is True and columns.columns == FOUR
        columns.close()


def test_rest_tells_it_too(server: Server, volume: str) -> None:
    body = json.dumps({"warehouse_id": "gateway", "statement": f"GET '{volume}/f' TO 'x'"}).encode()
    status, answer = asked(server, "POST", "/api/2.0/sql/statements", body)
    found = json.loads(answer)
    assert status == 200 and found["manifest"]["is_volume_operation"] is True
    assert found["result"]["data_array"][0][1].startswith(server.url)


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("PUT '' INTO '{v}/f'", "EMPTY_LOCAL_FILE_IN_STAGING_ACCESS_QUERY"),
        ("GET '{v}/f' TO ' '", "EMPTY_LOCAL_FILE_IN_STAGING_ACCESS_QUERY"),
        ("PUT 'f' INTO 'stage://tmp/me/f'", "INVALID_STAGING_PATH_IN_STAGING_ACCESS_QUERY"),
        ("PUT 'f' INTO '{v}'", "INVALID_STAGING_PATH_IN_STAGING_ACCESS_QUERY"),
        ("PUT 'f' INTO '{v}/'", "INVALID_STAGING_PATH_IN_STAGING_ACCESS_QUERY"),
        ("PUT 'f' INTO '{v}/a/'", "INVALID_STAGING_PATH_IN_STAGING_ACCESS_QUERY"),
        ("PUT 'f' INTO '/Volumes/main/default'", "INVALID_STAGING_PATH_IN_STAGING_ACCESS_QUERY"),
        ("REMOVE '/etc/passwd'", "INVALID_STAGING_PATH_IN_STAGING_ACCESS_QUERY"),
        ("PUT 'f' INTO '/Volumes/nope/default/v/f'", "NOT_FOUND: Catalog"),
        ("PUT 'f' INTO '/Volumes/main/nope/v/f'", "SCHEMA_NOT_FOUND"),
        ("GET '/Volumes/main/default/no_volume/f' TO 'x'", "VOLUME_DOES_NOT_EXIST"),
        ("LIST '/Volumes/samples/tpch/region'", "VOLUME_DOES_NOT_EXIST"),
        ("PUT 'f'", "PARSE_SYNTAX_ERROR"),
        ("GET '{v}/f'", "PARSE_SYNTAX_ERROR"),
        ("SELECT * FROM parquet.`{v}/none`", "PATH_NOT_FOUND"),
        ("SELECT * FROM parquet.`/Volumes/main/default/no_volume/x`", "PATH_NOT_ALLOWED"),
    ],
)
def test_what_is_wrong_is_told(server: Server, volume: str, statement: str, condition: str) -> None:
    with Client(server.thrift_url).open() as client, pytest.raises(RemoteError) as caught:
        client.execute(statement.format(v=volume))
    assert condition in str(caught.value)


def test_files_end_with_their_volume(server: Server, volume: str) -> None:
    name = volume.rpartition("/")[2]
    with Client(server.thrift_url).open() as client:
        late = link(client, f"PUT 'f' INTO '{volume}/late'")
        assert asked(server, "PUT", link(client, f"PUT 'f' INTO '{volume}/f'"), b"x")[0] == 200
        folder = folder_of(server, name)
        assert (folder / "f").read_bytes() == b"x"
        client.execute(f"DROP VOLUME main.default.{name}").close()
        assert not folder.exists()
        assert asked(server, "PUT", late, b"x")[0] == 404
        client.execute(f"CREATE VOLUME main.default.{name}").close()
        assert client.execute(f"LIST '{volume}'").table().num_rows == 0


def test_links_end_with_their_volume(server: Server, volume: str) -> None:
    """Another one of its name is another volume: neither read nor changed by what was asked for the first."""
    name = volume.rpartition("/")[2]
    with Client(server.thrift_url).open() as client:
        put = link(client, f"PUT 'f' INTO '{volume}/f' OVERWRITE")
        assert asked(server, "PUT", put, b"first")[0] == 200
        got, removed = link(client, f"GET '{volume}/f' TO 'x'"), link(client, f"REMOVE '{volume}/f'")
        client.execute(f"DROP VOLUME main.default.{name}").close()
        client.execute(f"CREATE VOLUME main.default.{name}").close()
        assert asked(server, "PUT", link(client, f"PUT 'f' INTO '{volume}/f'"), b"second")[0] == 200
        assert asked(server, "GET", got)[0] == 404
        assert asked(server, "PUT", put, b"third")[0] == 404
        asked(server, "DELETE", removed)
        assert asked(server, "GET", link(client, f"GET '{volume}/f' TO 'x'")) == (200, b"second")


def test_what_was_put_at_once_is_one_of_them(server: Server, volume: str) -> None:
    texts = [bytes([65 + i]) * 300_000 for i in range(8)]
    with Client(server.thrift_url).open() as client:
        there = link(client, f"PUT 'f' INTO '{volume}/f' OVERWRITE")
        threads = [threading.Thread(target=asked, args=(server, "PUT", there, text)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        status, found = asked(server, "GET", link(client, f"GET '{volume}/f' TO 'x'"))
        assert status == 200 and found in texts
    drafts = server.warehouse / "default" / "_volumes" / ".drafts"
    assert list(drafts.iterdir()) == []


def test_over_tcp_there_are_no_links(tcp_server: Server) -> None:
    with tcp_client(tcp_server, None).open() as client:
        client.execute("CREATE VOLUME IF NOT EXISTS main.default.of_tcp").close()
        with pytest.raises(RemoteError, match="GET for a client that cannot follow links"):
            client.execute("GET '/Volumes/main/default/of_tcp/f' TO 'x'")


def test_a_file_has_a_limit(tmp_path: Path) -> None:
    server = start_server(tmp_path, "--max-volume-file", "1MiB")
    try:
        connection = connect_to(server, staging_allowed_local_path=str(tmp_path))
        with connection.cursor() as cursor:
            cursor.execute("CREATE VOLUME v")
            (tmp_path / "large").write_bytes(bytes((1 << 20) + 1))
            with pytest.raises(exc.OperationalError, match=r"413.*exceeds the limit of 1048576 bytes"):
                cursor.execute(f"PUT '{tmp_path}/large' INTO '/Volumes/main/default/v/large'")
            (tmp_path / "large").write_bytes(bytes(1 << 20))
            cursor.execute(f"PUT '{tmp_path}/large' INTO '/Volumes/main/default/v/large'")
            cursor.execute("LIST '/Volumes/main/default/v'")
            assert [row[2] for row in cursor.fetchall()] == [1 << 20]
        connection.close()
    finally:
        server.stop()
