"""Results in a bucket: links lead on to presigned ones, drivers follow them, and what is there goes with its operation."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.thrift_gen.TCLIService import ttypes
from tests.clients.test_links import ROWS, all_links, execute, get, rows_of
from tests.fuzz.clients.wire import Wire, query
from tests.live import bucket as buckets
from tests.live.bucket import Bucket
from tests.live.gateway import Server, clean_environment, connect_to, start_server
from tests.live.processes import eventually

PLACE = "s3://results/of/gateways"


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with buckets.serving() as one:
        yield one


@pytest.fixture(scope="module")
def sending(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway whose results are in the bucket, of which it leaves nothing."""
    environment = clean_environment() | bucket.environment()
    running = start_server(tmp_path_factory.mktemp("bucket"), "--result-bucket", PLACE, environment=environment)
    yield running
    assert running.stop() == 0
    assert bucket.files() == []


def led_on(link: str, method: str = "GET") -> tuple[int, str]:
    """Status of a link and where it leads on to."""
    parts = urlsplit(link)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    connection.request(method, parts.path)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers.get("location") or ""


def test_links_lead_to_the_bucket_and_end_with_their_operation(sending: Server, bucket: Bucket) -> None:
    with Wire(sending.thrift_url) as wire:
        answer = execute(wire, query(ROWS))
        links = all_links(wire, answer)
        assert bucket.files() == []
        status, there = led_on(links[0].fileLink)
        assert status == 307 and there.startswith(f"{bucket.url}/results/of/gateways/")
        assert re.fullmatch(r"/results/of/gateways/[0-9a-f]{16}/[0-9a-f]{32}/0-\d+", urlsplit(there).path)
        assert int(parse_qs(urlsplit(there).query)["X-Amz-Expires"][0]) <= 300
        assert led_on(links[0].fileLink)[0] == 307
        assert [asked[0] for asked in bucket.asked if asked[1] == urlsplit(there).path] == ["PUT"], "is put there once"
        found = [i for link in links for i in rows_of(get(link.fileLink)[2])]
        assert found == list(range(ROWS))
        assert len(bucket.files()) == len(links)
        whole, part = get(links[0].fileLink), get(links[0].fileLink, Range="bytes=5-9")
        assert part[0] == 206 and part[2] == whole[2][5:10]
        assert get(there)[0] == 200 and get(there.replace("X-Amz-Expires=", "X-Amz-Expires=1"))[0] == 403
        assert led_on(links[0].fileLink, "HEAD") == (200, "")
        wire.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=answer.operationHandle))
        eventually(lambda: bucket.files() == [], 20)
        assert led_on(links[0].fileLink)[0] == 404 and get(there)[0] == 404


def test_the_connector_reads_from_the_bucket(sending: Server, bucket: Bucket) -> None:
    before = len(bucket.asked)
    with connect_to(sending) as connection, connection.cursor() as cursor:
        cursor.execute(query(ROWS))
        assert cursor.fetchall_arrow().column(0).to_pylist() == list(range(ROWS))
        read = [path for method, path, status in bucket.asked[before:] if (method, status) == ("GET", 200)]
        assert sorted(read) == bucket.files() != []


def test_a_bucket_that_takes_nothing_is_no_loss(sending: Server, bucket: Bucket) -> None:
    bucket.refuses = True
    try:
        with Wire(sending.thrift_url) as wire:
            link = all_links(wire, execute(wire, query(ROWS)))[0].fileLink
            assert led_on(link) == (200, "")
            asked = len(bucket.asked)
            assert rows_of(get(link)[2])[0] == 0
            assert [one for one in bucket.asked[asked:] if one[0] == "PUT"] == [], "is not asked again at once"
    finally:
        bucket.refuses = False
    log = sending.log.read_text()
    assert "a file of a result cannot be put into the bucket" in log
    assert "X-Amz" not in log and buckets.SECRET not in log and "Traceback" not in log


@pytest.mark.parametrize(
    ("place", "secret", "told"),
    [
        ("s3://results", "another", "result-bucket: nothing can be put into s3://results: "),
        ("gs://results", "", "'gs://results' is not of the form s3://BUCKET or s3://BUCKET/PREFIX"),
        ("s3://results/../x y", "", "is not of the form"),
    ],
)
def test_a_bucket_that_cannot_be_used_is_told_at_once(
    bucket: Bucket, tmp_path: Path, place: str, secret: str, told: str
) -> None:
    environment = {
        **clean_environment(),
        **bucket.environment(),
        **({"AWS_SECRET_ACCESS_KEY": secret} if secret else {}),
    }
    folders = ["--warehouse", str(tmp_path), "--state", str(tmp_path / "state"), "--port", "0"]
    command = [sys.executable, "-m", "gateway", "serve", *folders, "--result-bucket", place]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False, cwd=os.getcwd()
    )
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr
