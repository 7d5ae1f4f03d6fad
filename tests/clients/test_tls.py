"""HTTPS beside HTTP: the connector over it, certificates of clients, and certificates that are exchanged while served."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from pathlib import Path
from typing import Any

import pytest

from gateway.auth import certificates as authority
from gateway.cli import main
from gateway.protocol.client import Client
from tests.live.doors import Certificates, make_certificates, tcp_client
from tests.live.gateway import HTTP_PATH, Server, clean_environment, connect_to, start_server


def port_of(server: Server) -> int:
    return int((server.https or "").rpartition(":")[2])


def page(server: Server, context: ssl.SSLContext) -> bytes:
    with urllib.request.urlopen(f"https://localhost:{port_of(server)}/healthz", context=context, timeout=20) as answer:
        return bytes(answer.read())


def serial(server: Server, certificates: Certificates) -> str:
    """Of the certificate that a new connection gets."""
    with (
        socket.create_connection(("localhost", port_of(server)), 10) as peer,
        certificates.trust().wrap_socket(peer, server_hostname="localhost") as secured,
    ):
        facts: Any = secured.getpeercert()
        return str(facts["serialNumber"])


def test_the_connector_over_https(tls_server: Server, certificates: Certificates) -> None:
    trusting = {
        "_connection_uri": None,
        "_port": port_of(tls_server),
        "_tls_trusted_ca_file": str(certificates.authority),
    }
    with connect_to(tls_server, **trusting) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, repeat('x', 100) AS t FROM range(200000)")
        assert cursor.fetchall_arrow().num_rows == 200_000
        cursor.execute("SELECT :a + 1 AS b", {"a": 41})
        assert cursor.fetchall()[0].b == 42


def test_http_is_served_beside_it(tls_server: Server, certificates: Certificates) -> None:
    with connect_to(tls_server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchall()[0][0] == 1
    assert json.loads(page(tls_server, certificates.trust())) == {"status": "ok"}


def test_both_versions_of_tls(tls_server: Server, certificates: Certificates) -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = certificates.trust()
        context.minimum_version = context.maximum_version = version
        assert page(tls_server, context)


def test_older_versions_and_ciphers_are_refused_by_an_alert(tls_server: Server, certificates: Certificates) -> None:
    """In words of TLS: a client that only sees the connection end would not know why."""
    old, weak = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificates.trust()
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that they are old
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    weak.maximum_version = ssl.TLSVersion.TLSv1_2
    weak.set_ciphers("AES128-SHA:@SECLEVEL=0")
    for context, alert in ((old, "protocol version"), (weak, "handshake failure")):
        began = time.monotonic()
        with pytest.raises(urllib.error.URLError, match=f"(?i)alert {alert}"):
            page(tls_server, context)
        assert time.monotonic() - began < 10
    assert page(tls_server, certificates.trust())


def test_who_does_not_trust_the_authority_is_not_served(tls_server: Server) -> None:
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        page(tls_server, ssl.create_default_context())


@pytest.mark.parametrize(
    ("name", "days", "why"),
    [("elsewhere.example", 9, "Hostname mismatch"), ("localhost", 0, "certificate has expired")],
    ids=["another name", "expired"],
)
def test_a_certificate_that_clients_cannot_take(tmp_path: Path, name: str, days: int, why: str) -> None:
    """They say why, the server says that it was refused, and whoever comes without TLS is served throughout."""
    certificates = make_certificates(tmp_path / "tls")
    authority.make_server(certificates.folder, [name], days)
    server = start_server(tmp_path, "--tls-port", "0", *certificates.flags)
    try:
        for _ in range(3):
            with pytest.raises(urllib.error.URLError, match=f"CERTIFICATE_VERIFY_FAILED.*{why}"):
                page(server, certificates.trust())
            with Client(server.url).open() as client:
                assert client.execute("SELECT 1 AS n").table().to_pydict() == {"n": [1]}
        assert "connection refused" in server.log.read_text()
    finally:
        assert server.stop() == 0


def test_gateway_query_over_https(tls_server: Server, certificates: Certificates) -> None:
    command = [sys.executable, "-m", "gateway", "query", "--url", f"https://localhost:{port_of(tls_server)}{HTTP_PATH}"]
    environment = {**clean_environment(), "SSL_CERT_FILE": str(certificates.authority)}
    done = subprocess.run([*command, "SELECT 41 + 1 AS n"], env=environment, capture_output=True, text=True, timeout=60)
    assert "42" in done.stdout, done.stderr
    done = subprocess.run([*command, "SELECT 1"], env=clean_environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "certificate verify failed" in done.stderr


def test_a_renewed_certificate_is_read_on_sighup(tmp_path: Path) -> None:
    """Without a drain; connections of before go on, and files that cannot be used change nothing."""
    certificates = make_certificates(tmp_path / "tls")
    server = start_server(tmp_path, "--tls-port", "0", *certificates.flags)
    try:
        trusting = {
            "_connection_uri": None,
            "_port": port_of(server),
            "_tls_trusted_ca_file": str(certificates.authority),
        }
        with connect_to(server, **trusting) as connection, connection.cursor() as cursor:
            first = serial(server, certificates)
            assert main(["certificate", "--folder", str(certificates.folder)]) == 0
            assert serial(server, certificates) == first
            server.process.send_signal(signal.SIGHUP)
            end = time.monotonic() + 10
            while serial(server, certificates) == first and time.monotonic() < end:
                time.sleep(0.05)
            second = serial(server, certificates)
            assert second != first
            certificates.chain.write_text("no certificate")
            server.process.send_signal(signal.SIGHUP)
            while "cannot be read again" not in server.log.read_text() and time.monotonic() < end:
                time.sleep(0.05)
            assert "tls-cert" in server.log.read_text().partition("cannot be read again")[2]
            assert serial(server, certificates) == second
            cursor.execute("SELECT 1")
            assert cursor.fetchall()[0][0] == 1
    finally:
        assert server.stop() == 0


def test_certificates_of_clients(tmp_path: Path) -> None:
    """With `tls-client-ca` whoever has none is not served, on either port."""
    certificates = make_certificates(tmp_path / "tls")
    flags = ("--tls-client-ca", str(certificates.authority), "--tcp-port", "0", "--tcp-tls", "true")
    server = start_server(tmp_path, "--tls-port", "0", *certificates.flags, *flags)
    try:
        assert main(["certificate", "--folder", str(certificates.folder), "--client", "alice"]) == 0
        known = certificates.trust()
        known.load_cert_chain(certificates.folder / "client-alice.pem", certificates.folder / "client-alice-key.pem")
        assert page(server, known)
        with tcp_client(server, "me", tls=known).open() as client:
            assert client.execute("SELECT 1", arrow=False).columns == ["1"]
        stranger = make_certificates(tmp_path / "other")
        foreign = certificates.trust()
        foreign.load_cert_chain(stranger.chain, stranger.key)
        for context, alert in ((certificates.trust(), "certificate required"), (foreign, "unknown ca")):
            with pytest.raises((urllib.error.URLError, OSError), match=f"(?i)alert {alert}"):
                page(server, context)
            with pytest.raises(OSError, match=f"(?i)alert {alert}"):
                tcp_client(server, "me", tls=context).open()
        with Client(server.thrift_url).open() as client:
            assert client.execute("SELECT 1").table().num_rows == 1
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda c: c.key.write_text("none"), "tls-cert"),
        (lambda c: c.key.unlink(), "tls-key"),
        (lambda c: c.chain.write_bytes(c.authority.read_bytes()), "tls-cert"),
        (
            lambda c: subprocess.run(
                ["openssl", "ec", "-aes256", "-passout", "pass:x", "-in", str(c.key), "-out", str(c.key)],
                check=True,
                capture_output=True,
            ),
            "tls-key",
        ),
    ],
    ids=["no key", "missing", "another's", "encrypted"],
)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, spoil: Any, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    certificates = make_certificates(tmp_path / "tls")
    spoil(certificates)
    command = ["serve", "--warehouse", str(tmp_path / "w"), "--state", str(tmp_path / "s"), "--port", "0"]
    assert main([*command, "--tls-port", "0", *certificates.flags]) == 2
    assert f"{named}:" in capsys.readouterr().err


def test_gateway_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cryptography")
    folder = tmp_path / "a" / "tls"
    names = ["--name", "warehouse.example", "--name", "10.1.2.3", "--name", "[::1]"]
    assert main(["certificate", "--folder", str(folder), *names]) == 0
    said = capsys.readouterr().out
    for words in ("_tls_trusted_ca_file", "keytool -importcert", "curl --cacert", "NODE_EXTRA_CA_CERTS", "Go: "):
        assert words in said
    assert str(folder / "server.pem") in said
    for key in ("ca-key.pem", "server-key.pem"):
        assert os.stat(folder / key).st_mode & 0o777 == 0o600
    shown = subprocess.run(
        [
            *("openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", str(folder / "ca.pem")),
            *("-verify_hostname", "warehouse.example", str(folder / "server.pem")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    authority = (folder / "ca.pem").read_bytes()
    first = (folder / "server.pem").read_bytes()
    assert main(["certificate", "--folder", str(folder)]) == 0
    assert (folder / "ca.pem").read_bytes() == authority
    assert (folder / "server.pem").read_bytes() != first
    (folder / "ca-key.pem").unlink()
    assert main(["certificate", "--folder", str(folder)]) == 2
    assert main(["certificate", "--folder", str(folder), "--client", "../x"]) == 2


@pytest.mark.parametrize("instead", ["a pipe", "a folder", "/dev/zero"])
def test_what_is_no_file_is_not_waited_for_on_sighup(tmp_path: Path, instead: str) -> None:
    """A pipe in the place of the certificate or of the token file: the old ones stay, and the server still ends when asked."""
    certificates = make_certificates(tmp_path / "tls")
    tokens = tmp_path / "tokens"
    tokens.write_text(f"me:{'a' * 64}\n")
    flags = ("--tls-port", "0", "--auth", "token", "--token-file", str(tokens), *certificates.flags)
    server = start_server(tmp_path, *flags)
    for path in (certificates.chain, tokens):
        path.unlink()
        if instead == "a pipe":
            os.mkfifo(path)
        elif instead == "a folder":
            path.mkdir()
        else:
            path.symlink_to(instead)
    server.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 10
    while "the old tokens stay" not in server.log.read_text() and time.monotonic() < end:
        time.sleep(0.05)
    said = server.log.read_text()
    assert "the old one stays" in said
    assert "the old tokens stay" in said
    assert serial(server, certificates)
    assert server.stop() == 0
