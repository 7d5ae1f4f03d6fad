"""Whoever writes into the warehouse makes links, pipes and logs that lead elsewhere: nothing outside is read or written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import add_action, answer, contents, log_action, outcome, put_instead
from tests.live.gateway import Server

SECRET = 987654321


@pytest.fixture
def schema(client: Client, server: Server) -> Iterator[Path]:
    """The folder of the schema `paths`, with the table `t` of one row."""
    answer(client, "CREATE SCHEMA paths")
    answer(client, "CREATE TABLE paths.t AS SELECT 1 AS id")
    yield server.warehouse / "paths"
    folder = server.warehouse / "paths"
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)


@pytest.fixture
def outside(client: Client, schema: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder that is none of the server's, with the Delta table `secret`: it is as it was when the test ends."""
    answer(client, f"CREATE TABLE paths.secret AS SELECT {SECRET} AS id")
    folder = tmp_path / "outside"
    folder.mkdir()
    os.rename(schema / "secret", folder / "secret")
    before = contents(folder)
    yield folder
    assert contents(folder) == before


def data_file(table: Path) -> Path:
    (path,) = table.glob("*.parquet")
    return path


def refused(client: Client, text: str, *conditions: str) -> None:
    """The statement fails with one of the conditions, at once, and tells nothing of what is outside."""
    found = outcome(client, text, timeout_seconds=60)
    assert isinstance(found, RemoteError), (text, found)
    assert any(f"[{c}" in str(found) for c in conditions), (text, str(found))
    assert str(SECRET) not in str(found)


MADE = ("CREATE TABLE {} AS SELECT 2 AS id", "CREATE OR REPLACE TABLE {} AS SELECT 2 AS id", "CREATE TABLE {} (id INT)")


def test_a_table_that_is_a_link_to_elsewhere_is_not_there(client: Client, schema: Path, outside: Path) -> None:
    os.symlink(outside / "secret", schema / "lnk")
    for text in MADE:
        refused(client, text.format("paths.lnk"), "LOCATION_ALREADY_EXISTS")
    for text in ("SELECT * FROM paths.lnk", "INSERT INTO paths.lnk VALUES (2)", "DROP TABLE paths.lnk"):
        refused(client, text, "TABLE_OR_VIEW_NOT_FOUND")
    assert outcome(client, "SHOW TABLES IN paths") == [{"database": "paths", "tableName": "t", "isTemporary": False}]
    assert answer(client, "DESCRIBE SCHEMA paths")


@pytest.mark.parametrize("kind", ["link", "dangling", "file", "pipe"])
def test_what_is_no_folder_is_no_schema(client: Client, server: Server, outside: Path, kind: str) -> None:
    place = server.warehouse / "odd"
    put_instead(place, kind, outside)
    try:
        refused(client, "CREATE SCHEMA odd", "LOCATION_ALREADY_EXISTS")
        refused(client, "CREATE TABLE odd.x AS SELECT 1 AS a", "SCHEMA_NOT_FOUND")
        refused(client, "DROP SCHEMA odd CASCADE", "SCHEMA_NOT_FOUND")
    finally:
        place.unlink()


def test_the_default_schema_as_a_link_is_not_written_through(client: Client, server: Server, outside: Path) -> None:
    place, away = server.warehouse / "default", server.warehouse / ".default"
    if place.exists():
        os.rename(place, away)
    os.symlink(outside, place)
    try:
        for text in MADE:
            refused(client, text.format("default.x"), "LOCATION_ALREADY_EXISTS")
        refused(client, "CREATE VIEW default.v AS SELECT 1 AS a", "LOCATION_ALREADY_EXISTS")
        refused(client, "SELECT * FROM default.secret", "TABLE_OR_VIEW_NOT_FOUND")
        assert outcome(client, "SHOW TABLES IN default") == []
    finally:
        place.unlink()
        if away.exists():
            os.rename(away, place)


def spellings(secret: Path, table: Path) -> dict[str, str]:
    """A file as a log may spell it."""
    up = os.path.relpath(secret, table)
    return {
        "URL": f"file://{secret}",
        "URL of the host": f"file://localhost{secret}",
        "one slash": f"file:{secret}",
        "capitals": f"FILE://{secret}",
        "absolute": str(secret),
        "up": up,
        "up, encoded": up.replace("..", "%2e%2E"),
        "slashes encoded": up.replace("/", "%2F"),
        "through a folder": f"x/../{up}",
        "http": "http://127.0.0.1:1/secret.parquet",
        "no URL": "file://[secret",
        "relative URL": "file:secret.parquet",
    }


@pytest.mark.parametrize("spelt", list(spellings(Path("/"), Path("/"))))
def test_logs_cannot_list_files_of_others(client: Client, schema: Path, outside: Path, spelt: str) -> None:
    secret = data_file(outside / "secret")
    path = spellings(secret, schema / "t")[spelt]
    log_action(schema / "t", 1, add=add_action(path, secret.stat().st_size))
    for text in ("SELECT * FROM paths.t", "INSERT INTO paths.t VALUES (2)", f"SELECT * FROM delta.`{schema / 't'}`"):
        refused(client, text, "PATH_NOT_ALLOWED")


@pytest.mark.parametrize("path", ["a\0b", "x" * 300, "", ".", "_delta_log", "\u202e/../" * 50])
def test_logs_with_odd_paths_are_told(client: Client, schema: Path, path: str) -> None:
    log_action(schema / "t", 1, add=add_action(path, 10))
    refused(client, "SELECT * FROM paths.t", "DELTA_LOG_CORRUPT", "DELTA_FILE_NOT_FOUND", "FAILED_READ_FILE")


@pytest.mark.parametrize("instead", ["link", "device", "pipe", "folder"])
def test_a_data_file_must_be_a_file_of_the_server(client: Client, schema: Path, outside: Path, instead: str) -> None:
    path = data_file(schema / "t")
    good = path.read_bytes()
    path.unlink()
    put_instead(path, instead, data_file(outside / "secret"))
    refused(client, "SELECT * FROM paths.t", "PATH_NOT_ALLOWED", "FAILED_READ_FILE")
    if instead == "folder":
        path.rmdir()
    else:
        path.unlink()
    (schema / "elsewhere.parquet").write_bytes(good)
    os.symlink("../elsewhere.parquet", path)  # inside of the warehouse
    assert outcome(client, "SELECT * FROM paths.t") == [{"id": 1}]


def test_a_log_that_is_a_link_is_neither_read_elsewhere_nor_written_through(
    client: Client, schema: Path, outside: Path
) -> None:
    answer(client, "CREATE TABLE paths.other AS SELECT 1 AS id")
    log = schema / "other" / "_delta_log"
    shutil.rmtree(log)
    os.symlink(outside / "secret" / "_delta_log", log)
    for text in ("SELECT * FROM paths.other", "INSERT INTO paths.other VALUES (2)", MADE[1].format("paths.other")):
        refused(client, text, "PATH_NOT_ALLOWED")
    kept = schema / "t" / "_delta_log"
    os.rename(kept, schema / ".log")
    os.symlink("../.log", kept)
    assert outcome(client, "SELECT * FROM paths.t") == [{"id": 1}]
    refused(client, "INSERT INTO paths.t VALUES (2)", "PATH_NOT_ALLOWED")


@pytest.mark.parametrize("name", [f"{1:020d}.json", "_last_checkpoint"])
@pytest.mark.parametrize("instead", ["link", "pipe"])
def test_files_of_the_log_must_be_files_of_the_server(
    client: Client, schema: Path, tmp_path: Path, name: str, instead: str
) -> None:
    """A line that is no action is quoted in the reader's error: of a token file it would be told."""
    place = schema / "t" / "_delta_log" / name
    if instead == "link":
        (tmp_path / "tokens").write_text(f"admin:{SECRET}\n")
        os.symlink(tmp_path / "tokens", place)
    else:
        os.mkfifo(place)
    refused(client, "SELECT * FROM paths.t", "PATH_NOT_ALLOWED", "FAILED_READ_FILE")


def test_partition_folders_are_not_written_through(client: Client, schema: Path, outside: Path) -> None:
    answer(client, "CREATE TABLE paths.p USING delta PARTITIONED BY (p) AS SELECT 1 AS id, 1 AS p")
    os.rename(schema / "p" / "p=1", schema / ".away")
    os.symlink(outside, schema / "p" / "p=1")
    refused(client, "INSERT INTO paths.p VALUES (2, 1)", "PATH_NOT_ALLOWED")
    refused(client, "SELECT * FROM paths.p", "PATH_NOT_ALLOWED", "DELTA_FILE_NOT_FOUND")
    answer(client, "INSERT INTO paths.p VALUES (2, 2)")


@pytest.mark.parametrize("instead", ["link", "pipe", "link to a folder"])
def test_folders_of_files_hold_files_of_the_server(client: Client, schema: Path, outside: Path, instead: str) -> None:
    folder = schema / "files"
    folder.mkdir()
    target = outside / "secret"
    put_instead(folder / "x.parquet", instead.split()[0], target if "folder" in instead else data_file(target))
    for path in (folder, folder / "x.parquet"):
        refused(client, f"SELECT * FROM parquet.`{path}`", "PATH_NOT_ALLOWED", "FAILED_READ_FILE")


NAMES = ["a\tb", "a\nb", "a\x7fb", "a\x85b", "a\\\\b", "İ" * 100, "x" * 201, "..", ".x", "_x", "a/b", "a%2e"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_could_not_be_used_are_refused_where_they_are_made(client: Client, schema: Path, name: str) -> None:
    before = contents(schema)
    for text in (
        "CREATE SCHEMA `{}`",
        "CREATE TABLE paths.`{}` AS SELECT 1 AS id",
        "CREATE VIEW paths.`{}` AS SELECT 1 AS a",
    ):
        refused(client, text.format(name), "INVALID_IDENTIFIER")
    assert contents(schema) == before


@pytest.mark.parametrize(
    "name", ["x" * 200, "İ" * 66, "a b", "a?b#c", "a*[b]{c}", "日本", "e\u0301", "a'\"b", "a:b;c,d", "a=b&c"]
)
def test_all_other_names_work(client: Client, schema: Path, name: str) -> None:
    answer(client, f"CREATE TABLE paths.`{name}` AS SELECT 1 AS id")
    answer(client, f"INSERT INTO paths.`{name}` VALUES (2)")
    assert outcome(client, f"SELECT sum(id) AS s FROM paths.`{name}`") == [{"s": 3}]
    answer(client, f"DROP TABLE paths.`{name}`")
    answer(client, f"CREATE VIEW paths.`{name}` AS SELECT 7 AS id")
    assert outcome(client, f"SELECT * FROM paths.`{name}`") == [{"id": 7}]
    answer(client, f"DROP VIEW paths.`{name}`")


@pytest.mark.parametrize("target", ["itself", "/proc/1/root/x", "/proc/1/cwd"])
def test_links_that_nobody_can_follow_break_nothing_around_them(server: Server, client: Client, target: str) -> None:
    """Of a process of somebody else's the system tells nobody where the links of its folder in /proc end."""
    answer(client, "CREATE SCHEMA around")
    answer(client, "CREATE TABLE around.t AS SELECT 1 AS a")
    schema, folder = server.warehouse / "around", server.warehouse.parent / "files" / "unreadable"
    folder.mkdir()
    links = [server.warehouse / "linked", schema / "linked", folder / "linked.parquet"]
    for link in links:
        link.symlink_to(link if target == "itself" else target)
    try:
        assert {"databaseName": "around"} in answer(client, "SHOW SCHEMAS")
        assert [row["tableName"] for row in answer(client, "SHOW TABLES IN around")] == ["t"]
        assert answer(client, "SELECT a FROM around.T") == [{"a": 1}]
        for text, condition in {
            "SELECT * FROM around.linked": "TABLE_OR_VIEW_NOT_FOUND",
            "SELECT * FROM linked.x": "TABLE_OR_VIEW_NOT_FOUND",
            "CREATE TABLE around.linked (a INT)": "LOCATION_ALREADY_EXISTS",
            f"SELECT * FROM parquet.`{folder}`": "FAILED_READ_FILE" if target == "itself" else "PATH_NOT_ALLOWED",
            "SELECT * FROM parquet.`/proc/1/root/x`": "PATH_NOT_ALLOWED",
        }.items():
            error = outcome(client, text)
            assert isinstance(error, RemoteError), text
            assert f"[{condition}" in str(error), text
            assert "INTERNAL_ERROR" not in str(error), text
    finally:
        for link in links:
            link.unlink()
        folder.rmdir()
        answer(client, "DROP SCHEMA around CASCADE")


@pytest.mark.parametrize("place", ["_delta_log", "_delta_log/_last_checkpoint", f"_delta_log/{0:020d}.json", "deep"])
def test_logs_that_nobody_can_read_hide_no_other_table(
    server: Server, client: Client, schema: Path, place: str
) -> None:
    """A link to itself in the place of a log or a file of it, folders in each other deeper than a path is long."""
    answer(client, "CREATE TABLE paths.other AS SELECT 1 AS beside")
    folder = schema / "t"
    if place == "deep":
        at = os.open(folder / "_delta_log", os.O_RDONLY)
        for _ in range(30):
            os.mkdir("x" * 200, dir_fd=at)
            below = os.open("x" * 200, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
    else:
        if (folder / place).exists():
            os.rename(folder / place, folder / "away")
        (folder / place).symlink_to(Path(place).name)
    told = outcome(client, "SELECT * FROM paths.t")
    assert isinstance(told, RemoteError) and "INTERNAL_ERROR" not in str(told), told
    assert "other" in [row["tableName"] for row in answer(client, "SHOW TABLES IN paths")]
    for text in (
        "SELECT table_name AS t FROM information_schema.tables WHERE table_schema = 'paths'",
        "SELECT table_name AS t FROM information_schema.columns WHERE table_schema = 'paths'",
    ):
        assert {"t": "other"} in answer(client, text)
    assert "beside" in str(outcome(client, "SHOW TABLE EXTENDED IN paths LIKE '*'"))


def test_names_that_are_no_text_break_nothing_around_them(server: Server, client: Client, schema: Path) -> None:
    answer(client, "CREATE VOLUME paths.v")
    answer(client, "CREATE VIEW paths.w AS SELECT 1 AS id")
    volume = schema / "_volumes" / f"v.{json.loads((schema / '_objects' / 'v.volume.json').read_text())['made']}"
    volume.mkdir(parents=True, exist_ok=True)
    (volume / "a.csv").write_text("id\n1\n")
    odd = os.fsdecode(b"\xff")
    for folder in (schema / odd, server.warehouse / odd / "t"):
        shutil.copytree(schema / "t", folder)
    for name in ("w.view.json", "v.volume.json"):
        shutil.copy(schema / "_objects" / name, schema / "_objects" / f"{odd}{name}")
    for folder in (volume, schema / "t"):
        (folder / f"{odd}.csv").write_text("id\n2\n")
        os.utime(folder / f"{odd}.csv", (0, 0))
    try:
        assert [row["tableName"] for row in answer(client, "SHOW TABLES IN paths")] == ["t", "w"]
        assert "paths" in [row["databaseName"] for row in answer(client, "SHOW SCHEMAS")]
        assert [row["volume_name"] for row in answer(client, "SHOW VOLUMES IN paths")] == ["v"]
        found = answer(client, "SELECT table_name AS n FROM information_schema.tables WHERE table_schema = 'paths'")
        assert sorted(row["n"] for row in found) == ["t", "w"]
        assert [row["name"] for row in answer(client, "LIST '/Volumes/main/paths/v'")] == ["a.csv"]
        assert "?.csv" in str(answer(client, "VACUUM paths.t DRY RUN"))
        for text in (
            "COPY INTO paths.t FROM '/Volumes/main/paths/v' FILEFORMAT = CSV FORMAT_OPTIONS ('header' = 'true')",
            f"SELECT * FROM parquet.`{volume}`",
        ):
            refused(client, text, "UNSUPPORTED_FEATURE")
    finally:
        shutil.rmtree(server.warehouse / odd)
