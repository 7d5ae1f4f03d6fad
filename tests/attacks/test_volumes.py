"""Files of volumes: nothing outside of a volume is put, got, removed or listed, and a link opens one file for one verb."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer, resident_mib
from tests.clients.test_volumes import asked, folder_of, link
from tests.live.disk import Disk
from tests.live.gateway import Server, start_server
from tests.live.processes import eventually


@pytest.fixture
def name(server: Server) -> Iterator[str]:
    """The name of a new volume, which holds the file `f`."""
    name = f"files_{uuid.uuid4().hex[:8]}"
    with Client(server.thrift_url).open() as client:
        client.execute(f"CREATE VOLUME main.default.{name}").close()
        assert asked(server, "PUT", link(client, f"PUT 'f' INTO '/Volumes/main/default/{name}/f'"), b"mine")[0] == 200
        yield name
        client.execute(f"DROP VOLUME main.default.{name}").close()


@pytest.mark.parametrize(
    "path",
    [
        "{v}/../../../../../etc/passwd",
        "{v}/a/../../x",
        "{v}/..",
        "{v}/./f",
        "{v}//f",
        "{v}/a\\0b",
        "{v}/a\\nb",
        "{v}/" + "x" * 256,
        "{v}/" + "x/" * 3000 + "x",
        "/Volumes/main/default/../x",
        "/Volumes/main/../main/default/v",
        "/Volumes/main/default/.drafts/x",
        "/Volumes/main/default/_volumes/x",
        "/volumes/main/default/v/f",
        "file:{v}/f",
        "s3://bucket/f",
        "/etc/passwd",
    ],
)
@pytest.mark.parametrize("statement", ["PUT 'f' INTO '{}' OVERWRITE", "GET '{}' TO 'f'", "REMOVE '{}'", "LIST '{}'"])
def test_paths_stay_in_their_volume(server: Server, name: str, statement: str, path: str) -> None:
    with Client(server.thrift_url).open() as client, pytest.raises(RemoteError) as caught:
        client.execute(statement.format(path.format(v=f"/Volumes/main/default/{name}")))
    assert "INVALID_STAGING_PATH" in str(caught.value) or "VOLUME_DOES_NOT_EXIST" in str(caught.value)


def test_links_on_the_disk_are_not_followed(server: Server, name: str, tmp_path: Path) -> None:
    """Who else writes into the warehouse may put some there, before or after a link was given."""
    (tmp_path / "secret").write_text("secret")
    folder, path = folder_of(server, name), f"/Volumes/main/default/{name}"
    with Client(server.thrift_url).open() as client:
        early = {
            "PUT": link(client, f"PUT 'f' INTO '{path}/out/new'"),
            "GET": link(client, f"GET '{path}/out/secret' TO 'x'"),
            "DELETE": link(client, f"REMOVE '{path}/out/secret'"),
        }
        file = link(client, f"GET '{path}/leads' TO 'x'")
        (folder / "out").symlink_to(tmp_path)
        (folder / "leads").symlink_to(tmp_path / "secret")
        os.mkfifo(folder / "pipe")
        for verb, there in early.items():
            status, body = asked(server, verb, there, b"x" if verb == "PUT" else None)
            assert status in (403, 404, 500) and b"secret" not in body.replace(b"out/secret", b""), verb
        assert asked(server, "GET", file)[0] in (403, 404, 500)
        assert asked(server, "GET", link(client, f"GET '{path}/pipe' TO 'x'"))[0] == 404
        for statement in (
            f"GET '{path}/out/secret' TO 'x'",
            f"PUT 'x' INTO '{path}/out/new'",
            f"REMOVE '{path}/leads'",
            f"LIST '{path}/out'",
            f"SELECT * FROM parquet.`{path}/out`",
        ):
            with pytest.raises(RemoteError, match="PATH_NOT_ALLOWED"):
                client.execute(statement)
        assert client.execute(f"LIST '{path}'").table().column("name").to_pylist() == ["f", "pipe"]
    assert [p.name for p in tmp_path.iterdir()] == ["secret"]


def test_no_error_tells_where_a_volume_lies(server: Server, name: str, tmp_path: Path) -> None:
    """Links and files in the place of folders, before a link is given and behind it."""
    folder, path = folder_of(server, name), f"/Volumes/main/default/{name}"
    told = []
    with Client(server.thrift_url).open() as client:
        early = link(client, f"PUT 'f' INTO '{path}/sub/new'")
        for target in (folder / "other", tmp_path):
            (folder / "sub").symlink_to(target)
            told.append(asked(server, "PUT", early, b"x"))
            (folder / "sub").unlink()
        (folder / "sub").symlink_to("sub")
        told.append(asked(server, "GET", link(client, f"GET '{path}/sub' TO 'x'")))
        (folder / "sub").unlink()
        assert {status for status, _ in told} == {403}
        (folder / "sub").write_text("x")
        told.append(asked(server, "PUT", early, b"x"))
        assert told[-1][0] == 409
        for at in ("sub/new", "sub/deep/er"):
            with pytest.raises(RemoteError, match="INVALID_STAGING_PATH"):
                client.execute(f"PUT 'f' INTO '{path}/{at}'")
        folder.rename(tmp_path / "away")
        for make in (folder.write_text, folder.symlink_to):
            make(str(tmp_path))
            for statement in ("PUT 'f' INTO '{}/g'", "LIST '{}'"):
                with pytest.raises(RemoteError, match=r"CATALOG_FILE_CORRUPT|PATH_NOT_ALLOWED") as caught:
                    client.execute(statement.format(path))
                told.append((0, str(caught.value).encode()))
            folder.unlink()
        (tmp_path / "away").rename(folder)
    assert not [body for _, body in told if str(server.warehouse).encode() in body or str(tmp_path).encode() in body]


def test_a_link_opens_one_file_for_one_verb(server: Server, name: str) -> None:
    path = f"/Volumes/main/default/{name}/f"
    with Client(server.thrift_url).open() as client:
        got, put = link(client, f"GET '{path}' TO 'x'"), link(client, f"PUT 'x' INTO '{path}2'")
    for verb in ("PUT", "DELETE", "POST", "HEAD"):
        assert asked(server, verb, got, b"x" if verb != "HEAD" else None)[0] == 405
    assert asked(server, "GET", put)[0] == 405
    for at in range(0, len(got), 7):
        changed = got[:at] + ("A" if got[at] != "A" else "B") + got[at + 1 :]
        if "/sql/1.0/files/" in changed and changed.startswith(server.url):
            assert asked(server, "GET", changed) == (
                403,
                b'{"error_code": "PERMISSION_DENIED", "message": "The link is not valid."}',
            )
    assert asked(server, "PUT", put, b"x")[0] == 200
    assert asked(server, "PUT", put, b"y")[0] == 409  # it was to take no other file's place
    assert asked(server, "GET", got) == (200, b"mine")


def test_who_vanishes_while_a_file_is_put_leaves_nothing(server: Server, name: str) -> None:
    path = f"/Volumes/main/default/{name}/f"
    with Client(server.thrift_url).open() as client:
        place = urlsplit(link(client, f"PUT 'x' INTO '{path}' OVERWRITE"))
        assert place.hostname is not None
        drafts = server.warehouse / "default" / "_volumes" / ".drafts"
        for sent in (b"", b"half", b"x" * 3_000_000):
            with socket.create_connection((place.hostname, place.port or 80)) as peer:
                peer.sendall(f"PUT {place.path} HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n".encode() + sent)
                eventually(lambda: drafts.is_dir() and list(drafts.iterdir()), 20)
            eventually(lambda: not list(drafts.iterdir()), 20)
        assert asked(server, "GET", link(client, f"GET '{path}' TO 'x'")) == (200, b"mine")


def test_who_may_only_read_is_given_no_link(server: Server, name: str) -> None:
    path = f"/Volumes/main/default/{name}"
    for statement, refused in (
        (f"PUT 'x' INTO '{path}/f' OVERWRITE", True),
        (f"REMOVE '{path}/f'", True),
        (f"GET '{path}/f' TO 'x'", True),
        (f"LIST '{path}'", False),
    ):
        call = {"name": "execute_sql_read_only", "arguments": {"query": statement}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
        status, answer = asked(server, "POST", "/api/2.0/mcp/sql", body, **{"Content-Type": "application/json"})
        assert status == 200 and (b"NOT_READ_ONLY" in answer) is refused, answer


def begun(url: str, verb: str, *more: bytes) -> socket.socket:
    """A connection on which a link is followed, from its head on."""
    place = urlsplit(url)
    assert place.hostname is not None
    peer = socket.create_connection((place.hostname, place.port or 80), 20)
    lines = [f"{verb} {place.path} HTTP/1.1".encode(), b"Host: x", *more]
    peer.sendall(b"\r\n".join(lines) + b"\r\n\r\n")
    return peer


def test_files_that_are_half_sent_are_on_the_disk(server: Server, name: str) -> None:
    with Client(server.thrift_url).open() as client:
        put = link(client, f"PUT 'x' INTO '/Volumes/main/default/{name}/f' OVERWRITE")
        before = resident_mib(server.process.pid)
        peers = []
        for _ in range(200):
            peers.append(begun(put, "PUT", b"Content-Length: 4000000"))
            peers[-1].sendall(b"x" * 1_040_000)
            time.sleep(0.02)  # else it is what the system's buffers hold that is measured
        time.sleep(1)
        assert resident_mib(server.process.pid) - before < 120
        assert answer(client, "SELECT 1 AS x") == [{"x": 1}]
        for peer in peers:
            peer.close()


def test_a_file_is_read_no_further_than_somebody_takes_it(server: Server, name: str) -> None:
    with Client(server.thrift_url).open() as client:
        path = f"/Volumes/main/default/{name}/large"
        assert asked(server, "PUT", link(client, f"PUT 'x' INTO '{path}'"), bytes(30_000_000))[0] == 200
        got = link(client, f"GET '{path}' TO 'x'")
        assert len(asked(server, "GET", got)[1]) == 30_000_000

        def read_bytes() -> int:
            return int(Path(f"/proc/{server.process.pid}/io").read_text().split()[1])

        before = read_bytes()
        for _ in range(20):
            with begun(got, "GET") as peer:
                assert peer.recv(12) == b"HTTP/1.1 200"
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # it ends at once
        time.sleep(3)
        assert read_bytes() - before < 200_000_000  # of 600


def test_a_disk_that_takes_no_file_is_told_as_what_it_is(tmp_path: Path, small_disk: Disk) -> None:
    disk = small_disk(tmp_path / "warehouse", 8)
    server = start_server(tmp_path)
    with Client(server.thrift_url).open() as client:
        answer(client, "CREATE VOLUME full")
        disk.fill()
        to = "PUT 'f' INTO '/Volumes/main/default/full/f'"
        status, told = asked(server, "PUT", link(client, to), bytes(1 << 20))
        assert (status, json.loads(told)["error_code"]) == (507, "RESOURCE_EXHAUSTED")
        subprocess.run(["mount", "-o", "remount,ro", str(disk.folder)], check=True)
        status, told = asked(server, "PUT", link(client, to), b"x")
        assert (status, json.loads(told)["error_code"]) == (503, "TEMPORARILY_UNAVAILABLE")
        assert "Read-only file system" in json.loads(told)["message"]
        subprocess.run(["mount", "-o", "remount,rw", str(disk.folder)], check=True)
        disk.make_room(16)
        assert asked(server, "PUT", link(client, to), b"x")[0] == 200
    assert server.stop() == 0
