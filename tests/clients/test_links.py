"""Large results as links: drivers with their default settings get each row once, and a link opens its own rows alone."""

from __future__ import annotations

import itertools
import json
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from typing import Any

import lz4.frame
import pyarrow as pa
import pytest

from gateway.protocol.user_agents import follows
from gateway.service.cursor import LINK_BYTES, LINKED_BYTES, LINKS_OF_PAGE
from gateway.thrift_gen.TCLIService import ttypes
from tests.fuzz.clients.wire import SCHEMA, Wire, query, text_of
from tests.live.doors import Certificates
from tests.live.gateway import HTTP_PATH, Connect, Server, start_server

ROWS = 1_500_000
URL_BASED = ttypes.TSparkRowSetType.URL_BASED_SET
NEXT, PRIOR, RELATIVE, ABSOLUTE, FIRST, LAST = range(6)


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, Message, bytes]:
    """Status, headers and body of a request without credentials."""
    request = urllib.request.Request(url, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def rows_of(data: bytes, compressed: bool = False) -> list[int]:
    """The row numbers in a file of `query`, whose texts must be theirs."""
    table = pa.ipc.open_stream(lz4.frame.decompress(data) if compressed else data).read_all()
    assert table.schema.equals(SCHEMA)
    ids: list[int] = table.column(0).to_pylist()
    assert table.column(1).to_pylist() == [text_of(i) for i in ids]
    return ids


def execute(wire: Wire, text: str, **fields: Any) -> Any:
    direct = ttypes.TSparkGetDirectResults(maxRows=1000, maxBytes=1 << 20)
    flags = {"canDownloadResult": True, "canReadArrowResult": True, "runAsync": True, "getDirectResults": direct}
    answer = wire.execute(text, **flags | fields)
    assert answer.status.statusCode == ttypes.TStatusCode.SUCCESS_STATUS, answer.status
    return answer


def all_links(wire: Wire, answer: Any) -> list[Any]:
    """The links of a result, page by page."""
    direct = answer.directResults
    assert direct.resultSetMetadata.resultFormat == URL_BASED and direct.closeOperation is None
    page = direct.resultSet
    found = list(page.results.resultLinks)
    while page.hasMoreRows:
        page = wire.fetch(answer.operationHandle, orientation=NEXT, maxRows=1000)
        assert page.results.startRowOffset == found[-1].startRowOffset + found[-1].rowCount
        found += page.results.resultLinks
    return found


@pytest.mark.parametrize("compressed", [False, True])
def test_links_hold_each_row_once(server: Server, compressed: bool) -> None:
    with Wire(server.thrift_url) as wire:
        answer = execute(wire, query(ROWS), canDecompressLZ4Result=compressed)
        assert bool(answer.directResults.resultSetMetadata.lz4Compressed) == compressed
        links = all_links(wire, answer)
        assert len(links) > 2 and all(link.fileLink.startswith(f"{server.url}/") for link in links)
        with ThreadPoolExecutor(4) as pool:
            files = list(pool.map(lambda link: get(link.fileLink), links))
        assert {status for status, _, _ in files} == {200}
        found = [rows_of(body, compressed) for _, _, body in files]
        assert [len(ids) for ids in found] == [link.rowCount for link in links]
        assert list(itertools.chain(*found)) == list(range(ROWS))
        for (_, headers, body), link in zip(files, links, strict=True):
            assert headers["cache-control"] == "no-store" and headers["accept-ranges"] == "bytes"
            assert headers["x-content-type-options"] == "nosniff"
            # Frames for clients on this machine hold what they would hold anyway.
            assert abs(len(body) - link.bytesNum) < 4096
            assert time.time() + 3600 < link.expiryTime / 1000 < time.time() + 86400


def test_small_results_and_clients_that_take_no_links_get_rows(server: Server) -> None:
    with Wire(server.thrift_url) as wire:
        for text, fields in (
            (query(1000), {}),
            (query(ROWS), {"canDownloadResult": False}),
            (query(ROWS), {"canReadArrowResult": False}),
            ("SET TIME ZONE 'UTC'", {}),
        ):
            direct = execute(wire, text, **fields).directResults
            assert direct.resultSetMetadata.resultFormat != URL_BASED and direct.resultSet.results.resultLinks is None
    with Wire(server.thrift_url, 0xA502) as old:  # links came with the version after
        assert execute(old, query(ROWS)).directResults.resultSet.results.resultLinks is None


@pytest.mark.parametrize(
    ("client", "origin", "linked"),
    [
        ("PyDatabricksSqlConnector/4.9.0 (x)", "http://gateway:8080", True),
        ("DatabricksJDBCDriverOSS/3.4.5 databricks-jdbc-http", "http://gateway:8080", True),
        ("DatabricksDatabricksJDBCDriver/2.08.07 Java/THttpClient/HC ", "http://gateway:8080", False),
        ("DatabricksDatabricksJDBCDriver/2.08.07 Java/THttpClient/HC ", "https://gateway", True),
        ("", "http://gateway:8080", False),
        ("PyDatabricksSqlConnector/4.9.0", "", False),
    ],
)
def test_who_is_given_links(client: str, origin: str, linked: bool) -> None:
    assert follows(client, origin) is linked


def test_parts_of_a_file_can_be_asked_for(server: Server) -> None:
    with Wire(server.thrift_url) as wire:
        link = all_links(wire, execute(wire, query(ROWS)))[0].fileLink
        _, _, whole = get(link)
        size = len(whole)
        for header, first, last in (
            ("bytes=0-99", 0, 99),
            (f"bytes={size - 10}-", size - 10, size - 1),
            ("bytes=-7", size - 7, size - 1),
            ("bytes=1000000-99999999999", 1_000_000, size - 1),
        ):
            status, headers, body = get(link, Range=header)
            assert (status, headers["content-range"]) == (206, f"bytes {first}-{last}/{size}")
            assert body == whole[first : last + 1]
        for header in (f"bytes={size}-", "bytes=-0"):
            status, headers, _ = get(link, Range=header)
            assert (status, headers["content-range"]) == (416, f"bytes */{size}")
        for header in ("bytes=5-2", "lines=1-2", "bytes=-", "bytes=0-1,5-6", "bytes=" + "9" * 40 + "-"):
            assert get(link, Range=header)[::2] == (200, whole)
        status, headers, body = get(link, "HEAD")
        assert (status, headers["content-length"], body) == (200, str(size), b"")
        assert get(link, "POST")[0] == 405


def test_links_are_renewed_by_row(server: Server) -> None:
    """Drivers ask anew for what they could not download in time."""
    with Wire(server.thrift_url) as wire:
        answer = execute(wire, query(ROWS))
        links = all_links(wire, answer)
        second = links[1].startRowOffset

        def page(**fields: Any) -> Any:
            return wire.fetch(answer.operationHandle, maxRows=10, **fields).results

        again = page(orientation=ABSOLUTE, startRowOffset=second)
        assert again.startRowOffset == second
        assert [(i.startRowOffset, i.rowCount) for i in again.resultLinks] == [
            (i.startRowOffset, i.rowCount) for i in links[1:]
        ]
        middle = page(orientation=ABSOLUTE, startRowOffset=second + 5).resultLinks[0]
        assert rows_of(get(middle.fileLink)[2])[0] == second + 5
        assert page(orientation=PRIOR).resultLinks[0].startRowOffset == second + 5 - 10
        assert page(orientation=FIRST).startRowOffset == 0
        last = page(orientation=LAST).resultLinks
        assert rows_of(get(last[0].fileLink)[2])[-1] == ROWS - 1
        assert page(orientation=NEXT).resultLinks == []


def test_links_come_while_rows_are_made(server: Server) -> None:
    rows = LINKS_OF_PAGE * LINK_BYTES // 16 + 2_000_000  # more than one page of links
    with Wire(server.thrift_url) as wire:
        answer = execute(wire, f"SELECT id, id AS b FROM range({rows})")
        links = all_links(wire, answer)
        assert len(links) > LINKS_OF_PAGE and sum(link.rowCount for link in links) == rows
        total = sum(
            pa.ipc.open_stream(get(link.fileLink)[2]).read_all().column(0).to_numpy().sum() for link in links[::7]
        )
        assert total > 0


def test_links_end_with_their_operation(server: Server) -> None:
    with Wire(server.thrift_url) as wire:
        answer = execute(wire, query(ROWS))
        link = all_links(wire, answer)[0].fileLink
        assert get(link)[0] == 200
        wire.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=answer.operationHandle))
        status, _, body = get(link)
        assert status == 404 and json.loads(body)["error_code"] == "RESOURCE_DOES_NOT_EXIST"


def test_go_reads_what_it_has_closed(
    tls_server: Server, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    with Wire(f"{tls_server.https}{HTTP_PATH}", user_agent="godatabrickssqlconnector/1.10.0") as wire:
        answer = execute(wire, query(ROWS))
        page = answer.directResults.resultSet
        assert page.hasMoreRows and len(page.results.resultLinks) == 1, "ADBC loses the others of the first page"
        wire.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=answer.operationHandle))
        links = all_links(wire, answer)
        assert len(links) > 1 and sum(link.rowCount for link in links) == ROWS
        assert len(rows_of(get(links[-1].fileLink)[2])) == links[-1].rowCount


def test_links_name_the_server_as_its_client_does(tmp_path: Path) -> None:
    running = start_server(tmp_path, "--public-url", "https://sql.example.org/", "--link-lifetime", "60s")
    try:
        with Wire(running.thrift_url) as wire:
            link = all_links(wire, execute(wire, query(ROWS), canDecompressLZ4Result=True))[0]
            assert link.fileLink.startswith("https://sql.example.org/sql/1.0/results/")
            assert link.expiryTime / 1000 < time.time() + 61
            path = link.fileLink.removeprefix("https://sql.example.org")
            status, _, body = get(running.url + path)
            assert status == 200 and rows_of(body, compressed=True) == list(range(link.rowCount))
            assert len(body) < 0.7 * link.bytesNum, "is packed for who is not on this machine"
    finally:
        running.stop()


def test_the_connector_reads_links_by_default(connect: Connect) -> None:
    text = "SELECT id, CAST(id AS STRING) AS s, CAST(id AS DECIMAL(12, 2)) AS d, array(id) AS a FROM range(600000) ORDER BY id"
    assert LINKED_BYTES < 600_000 * 16
    tables = []
    for settings in ({}, {"use_cloud_fetch": False}):
        with connect(**settings).cursor() as cursor:
            cursor.execute(text)
            tables.append(cursor.fetchall_arrow())
    linked, inline = tables
    assert linked.num_rows == 600_000 and linked.equals(inline)


def test_the_connector_reads_links_in_steps(connect: Connect) -> None:
    with connect(max_download_threads=3).cursor() as cursor:
        cursor.execute(query(ROWS))
        found: list[int] = []
        while batch := cursor.fetchmany_arrow(70_001).column(0).to_pylist():
            found += batch
        assert found == list(range(ROWS))
