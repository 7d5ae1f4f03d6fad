"""`gateway certificate`: an authority and a server's certificate to try TLS with, and what each client needs to trust it."""

from __future__ import annotations

import argparse
import socket
from pathlib import Path

from gateway.auth import certificates
from gateway.errors import ConfigError

HELP = """\
Serve with it (another `gateway certificate` later renews it; SIGHUP has it read again):

    gateway serve --warehouse ./warehouse --tls-port 8443 --tls-cert {chain} --tls-key {key}

and for Hive's clients over TCP: --tcp-port 10000 --tcp-tls true

Clients trust the authority, {ca}; its key stays here.

Python (databricks-sql-connector):

    sql.connect(server_hostname="{host}", _port=8443, http_path="/sql/1.0/warehouses/gateway",
                _tls_trusted_ca_file="{ca}", access_token="…", enable_telemetry=False)

Programs that cannot be told (dbt, SQLAlchemy, sqlmesh) read it from the environment: SSL_CERT_FILE={ca}

JDBC, first a trust store, then its name in the URL (Databricks' driver, Hive's over HTTP, Hive's over TCP):

    keytool -importcert -noprompt -alias gateway -file {ca} -keystore {store} -storetype PKCS12 -storepass changeit
    jdbc:databricks://{host}:8443/default;ssl=1;transportMode=http;httpPath=/sql/1.0/warehouses/gateway;AuthMech=3;UID=token;PWD=…;UseThriftClient=1;EnableTelemetry=0;SSLTrustStore={store};SSLTrustStorePwd=changeit;CheckCertRevocation=0
    jdbc:hive2://{host}:8443/default;transportMode=http;httpPath=cliservice;ssl=true;sslTrustStore={store};trustStorePassword=changeit
    jdbc:hive2://{host}:10000/default;ssl=true;sslTrustStore={store};trustStorePassword=changeit

curl:     curl --cacert {ca} https://{host}:8443/readyz
Node:     NODE_EXTRA_CA_CERTS={ca} node …
Go:       SSL_CERT_FILE={ca} …
gateway:  SSL_CERT_FILE={ca} gateway query --url https://{host}:8443 "SELECT 1"
impyla:   connect(host="{host}", port=10000, auth_mechanism="PLAIN", use_ssl=True, ca_cert="{ca}", …)"""


def run(arguments: argparse.Namespace) -> int:
    """Make what is missing, renew the rest, and print how to go on."""
    folder = Path(arguments.folder).expanduser().absolute()
    if arguments.client is not None and (
        not arguments.client.isprintable() or "/" in arguments.client or not arguments.client.strip(". ")
    ):
        raise ConfigError("client", "a name that can be part of a file's name is needed")
    certificates.make_folder(folder)
    if arguments.client is not None:
        chain, key = certificates.make_client(folder, arguments.client, arguments.days)
        print(f"{chain}\n{key}\n\nServe with --tls-client-ca {folder / 'ca.pem'}: then clients have to show one.")
        return 0
    names = arguments.name or _own_names()
    chain, key = certificates.make_server(folder, names, arguments.days)
    print(f"{chain}\n{key}\nfor {', '.join(names)}; {arguments.days} days\n")
    print(HELP.format(chain=chain, key=key, ca=folder / "ca.pem", store=folder / "truststore.p12", host=names[0]))
    return 0


def _own_names() -> list[str]:
    """What this machine is called by clients of its own, and by others of its network."""
    host = socket.gethostname()
    return list(dict.fromkeys(["localhost", "127.0.0.1", "::1", *([host] if host.isascii() and host else [])]))


def add(parser: argparse.ArgumentParser) -> None:
    """The grammar of the command."""
    parser.add_argument("--folder", default="tls", metavar="DIR", help="where the files are [tls]")
    parser.add_argument(
        "--name",
        action="append",
        metavar="HOST",
        help="a name or address by which clients call the server; may be repeated [localhost and this machine's]",
    )
    parser.add_argument(
        "--days", type=_days, default=certificates.LEAF_DAYS, metavar="N", help="days that it is valid [397]"
    )
    parser.add_argument(
        "--client", metavar="NAME", help="a client's certificate instead, for servers with --tls-client-ca"
    )


def _days(text: str) -> int:
    days = int(text)
    if not 1 <= days <= certificates.AUTHORITY_DAYS:
        raise ValueError(f"{days} days")
    return days
