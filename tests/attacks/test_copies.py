"""COPY INTO with patterns that stand for millions, and from what is no file of the folder: refused, nothing is loaded."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer
from tests.live.gateway import Server

PATTERNS = (
    "{a,b}" * 24,
    "{" * 5000 + "}" * 5000,
    "{" + "a," * 500_000 + "}",
    "{{a,b},{c,d}}" * 12,
    "{" * 3000,
    "*" * 100_000,
)


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.thrift_url).open() as one:
        answer(one, "CREATE TABLE loaded (a INT)")
        yield one


@pytest.fixture
def folder(server: Server, tmp_path: Path) -> Path:
    """A folder with one file that may be loaded."""
    found = server.warehouse / tmp_path.name
    found.mkdir()
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), found / "x.parquet")
    return found


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: f"{pattern[:8]}-{len(pattern)}")
def test_patterns_that_stand_for_too_many_are_refused_at_once(client: Client, folder: Path, pattern: str) -> None:
    start = time.monotonic()
    with pytest.raises(RemoteError, match="pattern"):
        answer(client, f"COPY INTO loaded FROM '{folder}' FILEFORMAT = PARQUET PATTERN = '{pattern}'")
    assert time.monotonic() - start < 10  # it took minutes, and gigabytes
    assert answer(client, "SELECT count(*) AS n FROM loaded") == [{"n": 0}]


def test_what_is_no_file_of_the_folder_is_not_loaded(client: Client, folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"a": pa.array([99], pa.int32())}), secret)
    (folder / "link.parquet").symlink_to(secret)
    os.mkfifo(folder / "pipe.parquet")
    (folder / "away").symlink_to(tmp_path)
    for where, files in [
        (folder, "('link.parquet')"),
        (folder, "('pipe.parquet')"),
        (folder, "('away/secret.parquet')"),
        (folder, f"('../../../../..{secret}')"),
        (folder, f"('{secret}')"),
        (folder / "away", "('secret.parquet')"),
        (tmp_path, "('secret.parquet')"),
        (folder / ".." / ".." / tmp_path, "('secret.parquet')"),
    ]:
        with pytest.raises(RemoteError):
            answer(client, f"COPY INTO loaded FROM '{where}' FILEFORMAT = PARQUET FILES = {files}")
    for pattern in ("link*", "pipe*", "*"):
        with pytest.raises(RemoteError):
            answer(client, f"COPY INTO loaded FROM '{folder}' FILEFORMAT = PARQUET PATTERN = '{pattern}'")
    assert answer(client, "SELECT count(*) AS n FROM loaded") == [{"n": 0}]
