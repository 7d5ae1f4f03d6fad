"""Masters: which kind one is, where its cluster or server is, and whether that answers."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from gateway.engine.spark import setup
from gateway.errors import ConfigError

_CONNECT, _STANDALONE, _KUBERNETES, _YARN = "sc://", "spark://", "k8s://", "yarn"
_REACH_SECONDS = 10.0
_YARN_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_YARN_PORT = 8032
_MANAGER = "yarn.resourcemanager"
_REFERENCE = re.compile(r"\$\{([^}]+)\}")


def is_connect(master: str) -> bool:
    """Whether `master` names a Connect server instead of a cluster manager."""
    return master.startswith(_CONNECT)


def is_local(master: str) -> bool:
    """Whether everything runs in one JVM on this machine."""
    return master == "local" or master.startswith("local[")


def has_executors(master: str) -> bool:
    """Whether a cluster gives processes that run tasks, and may be gone while the JVM of our own stays."""
    return master == _YARN or master.startswith((_STANDALONE, _KUBERNETES))


def find(master: str) -> str | None:
    """Where a cluster is; None if there is nothing to be told before Spark asks it. Raises ConfigError if it is not found."""
    if master != _YARN and not master.startswith((_STANDALONE, _KUBERNETES, _CONNECT)):
        return None
    return f"{reach(master)} accepts connections"


def reach(master: str) -> str:
    """The address of a cluster or Connect server at which something listens. Raises ConfigError unless there is one.

    Spark itself would try for minutes. Addresses are told without the URL, which may hold a token.
    """
    problem: OSError | None = None
    where = ""
    for host, port in _addresses(master):
        where = f"{host}:{port}"
        try:
            socket.create_connection((host, port), _REACH_SECONDS).close()
            return where
        except OSError as error:
            problem = error
    reason = None if problem is None else problem.strerror or problem
    raise ConfigError("spark", f"{where} does not answer: {reason}") from problem


def _addresses(master: str) -> list[tuple[str, int]]:
    if master == _YARN:
        return _resource_managers()
    if is_connect(master):
        return [setup.connect_address(master)]
    if master.startswith(_KUBERNETES):
        url = master.removeprefix(_KUBERNETES)
        return [_kubernetes(url if "://" in url else f"https://{url}", master)]
    found = []
    for address in master.removeprefix(_STANDALONE).split(","):
        try:
            parts = urlsplit(f"//{address}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or not port:
            raise ConfigError("spark", f"{master} is not spark://HOST:PORT")
        found.append((host, port))
    return found


def _kubernetes(url: str, master: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host:
        raise ConfigError("spark", f"{master} is not k8s://HOST:PORT")
    return host, port or (80 if parts.scheme == "http" else 443)


def _resource_managers() -> list[tuple[str, int]]:
    """Addresses of YARN's resource managers, by the folder that Spark itself reads them from."""
    folder = next((os.environ[name] for name in _YARN_FOLDERS if os.environ.get(name)), None)
    if folder is None:
        names = " or ".join(_YARN_FOLDERS)
        raise ConfigError("spark", f"the master yarn needs {names}: the folder with the cluster's yarn-site.xml")
    file = Path(folder) / "yarn-site.xml"
    try:
        properties = ElementTree.parse(file).getroot().iter("property")
        values = {p.findtext("name", "").strip(): p.findtext("value", "").strip() for p in properties}
    except (OSError, ElementTree.ParseError) as error:
        raise ConfigError("spark", f"YARN's configuration cannot be read: {file}: {error}") from error

    def value(name: str) -> str | None:
        found = values.get(name)
        return None if found is None else _REFERENCE.sub(lambda m: values.get(m[1], m[0]), found)

    ids = (value(f"{_MANAGER}.ha.rm-ids") or "").split(",") if value(f"{_MANAGER}.ha.enabled") == "true" else [""]
    found = []
    for suffix in (f".{i.strip()}" if i else "" for i in ids):
        address = value(f"{_MANAGER}.address{suffix}") or value(f"{_MANAGER}.hostname{suffix}") or "0.0.0.0"
        try:
            parts = urlsplit(f"//{address}")
            host, port = parts.hostname, parts.port or _YARN_PORT
        except ValueError:
            host = None
        if not host:
            raise ConfigError("spark", f"{_MANAGER}.address{suffix} in {file} is not HOST:PORT")
        found.append((host, port))
    return found
