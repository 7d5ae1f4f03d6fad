"""COPY INTO with patterns that stand for millions, and from what is no file of the folder: refused, nothing is loaded."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer, outcome
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


def copied(client: Client, folder: Path, data: bytes, kind: str, name: str = "x") -> str | int:
    """How many rows a file gave to the table, or the error; after an error the table is as it was."""
    (folder / "x.parquet").unlink()
    (folder / name).write_bytes(data)
    before = answer(client, "SELECT count(*) AS n FROM loaded")[0]["n"]
    text = f"COPY INTO loaded FROM '{folder}' FILEFORMAT = {kind} FORMAT_OPTIONS ('mode' = 'FAILFAST')"
    start = time.monotonic()
    found = outcome(client, f"{text} COPY_OPTIONS ('mergeSchema' = 'true')", timeout_seconds=60)
    if not isinstance(found, RemoteError):
        return int(found[0]["num_inserted_rows"])
    assert time.monotonic() - start < 30
    assert answer(client, "SELECT count(*) AS n FROM loaded")[0]["n"] == before
    return str(found)


@pytest.mark.parametrize(
    "kind, data, condition",
    [
        ("JSON", b'{"\\ud800": 1}', "UNSUPPORTED_FEATURE"),
        ("JSON", b'{"\\u0000": 1}', "UNSUPPORTED_FEATURE"),
        ("JSON", b'{"n": {"\\u0000": 1}}', "UNSUPPORTED_FEATURE"),
        ("JSON", b'{"n": ' + b"[" * 300 + b"1" + b"]" * 300 + b"}", "STATEMENT_TOO_COMPLEX"),
        ("JSON", b"[" * 100_000, "UNSUPPORTED_FEATURE"),
        ("JSON", json.dumps({f"c{i}": i for i in range(20_000)}).encode(), "STATEMENT_TOO_COMPLEX"),
        ("JSON", b"\n".join(b'{"c%d": 1}' % i for i in range(12_000)), "STATEMENT_TOO_COMPLEX"),
        ("CSV", b",".join([b"1"] * 100_000), "STATEMENT_TOO_COMPLEX"),
        ("CSV", b"\xff\xfe1\x00", "UNSUPPORTED_FEATURE"),
    ],
)
def test_files_that_cannot_be_rows_are_refused_in_time(
    client: Client, folder: Path, kind: str, data: bytes, condition: str
) -> None:
    assert f"[{condition}]" in str(copied(client, folder, data, kind))


@pytest.mark.parametrize("kind", ["CSV", "JSON"])
def test_files_that_are_held_in_memory_have_a_largest_size(client: Client, folder: Path, kind: str) -> None:
    with (folder / "x").open("wb") as file:
        file.truncate(1 << 40)
    assert "more than 1073741824 bytes" in str(copied(client, folder, b"", kind, name="y"))


@pytest.mark.parametrize(
    "kind, data", [("CSV", b"a\n1\n"), ("JSON", b'{"a": 1}'), ("CSV", gzip.compress(b"1\n" * 10**6))]
)
@pytest.mark.parametrize("end", ["gz", "GZ", "zst", "bz2", "deflate"])
def test_packed_files_are_refused_by_their_names(
    client: Client, folder: Path, kind: str, data: bytes, end: str
) -> None:
    assert "is not supported" in str(copied(client, folder, data, kind, f"x.{end}"))


def test_a_line_without_an_end_and_one_longer_than_a_block_are_rows(client: Client, folder: Path) -> None:
    answer(client, "CREATE OR REPLACE TABLE lines (_c0 STRING, _c1 STRING)")
    for at, text in enumerate(("a,b", f"{'a' * 3_000_000},b")):
        (folder / f"{at}.csv").write_text(text)
        answer(client, f"COPY INTO lines FROM '{folder}' FILEFORMAT = CSV FILES = ('{at}.csv')")
    rows = answer(client, "SELECT length(_c0) AS n, _c1 AS b FROM lines ORDER BY n")
    assert rows == [{"n": 1, "b": "b"}, {"n": 3_000_000, "b": "b"}]


def test_of_two_names_of_the_delimiter_sparks_first_one_counts(client: Client, folder: Path) -> None:
    (folder / "x.csv").write_text("a|b,c\n")
    answer(client, "CREATE OR REPLACE TABLE parts (_c0 STRING, _c1 STRING)")
    options = "'delimiter' = ',', 'sep' = '|'"
    answer(client, f"COPY INTO parts FROM '{folder}' FILEFORMAT = CSV FILES = ('x.csv') FORMAT_OPTIONS ({options})")
    assert answer(client, "SELECT _c0, _c1 FROM parts") == [{"_c0": "a", "_c1": "b,c"}]
