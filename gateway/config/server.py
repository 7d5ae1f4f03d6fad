"""The server's settings: defaults < TOML file < environment < flags.

`SETTINGS` is the only list: the flags of `gateway serve`, the environment names, the keys of the file, `Config` and
docs/settings.md all follow from it. An unknown key or a bad value is a ConfigError that names the setting.
"""

from __future__ import annotations

import difflib
import importlib.util
import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config.values import (
    DatabaseUrl,
    format_bytes,
    one_of,
    parse_bool,
    parse_bytes,
    parse_history,
    parse_int,
    parse_seconds,
)
from gateway.errors import ConfigError

ENVIRONMENT_PREFIX = "GATEWAY_"
# Set by others under our prefix: what tests are told, and what Kubernetes injects for a service that is called "gateway".
_FOREIGN_ENVIRONMENT = ("GATEWAY_SHARED", "GATEWAY_TEST_", "GATEWAY_CONFORMANCE_", "GATEWAY_SERVICE_", "GATEWAY_PORT_")
_MOST_BYTES = 1 << 50  # what is computed from it still fits into 64 bits
_MOST_SECONDS = 36500 * 86400  # a lock can be waited for as long


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `parse` turns text into the value and raises ValueError; `default` is text, None means unset."""

    name: str  # flag without dashes, TOML key; the Config field has underscores
    parse: Callable[[str], Any]
    default: str | None
    help: str
    metavar: str = ""
    repeatable: bool = False

    @property
    def field(self) -> str:
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.field.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All server settings, checked; made by `load_config`. Sizes in bytes, times in seconds."""

    warehouse: Path
    host: str
    port: int
    tcp_port: int | None
    tls_port: int | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_client_ca: Path | None
    tcp_tls: bool
    auth: str
    token_file: Path | None
    allow_path: tuple[Path, ...]
    state: Path
    confine: bool
    memory_limit: int
    slots: int
    queue_limit: int
    statement_timeout: float
    deletion_vectors: bool
    session_idle: float
    operation_idle: float
    spool_limit: int
    public_url: str | None
    link_lifetime: float
    result_bucket: str | None
    max_request_body: int
    max_volume_file: int
    max_statement: int
    drain_timeout: float
    slow_statement: float
    spark: str | None
    spark_jars: Path | None
    spark_memory: int
    spark_properties: Path | None
    spark_above: int
    ready_file: Path | None
    log_format: str
    log_level: str
    log_sql: bool
    history: bool | DatabaseUrl
    history_age: float
    history_size: int
    admins: tuple[str, ...]
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)  # of what is not a default, by setting

    def __post_init__(self) -> None:
        _check(self)


def _path(text: str) -> Path:
    if not text:
        raise ValueError("the path is empty")
    if "\0" in text:
        raise ValueError("the path holds a null character")
    return Path(text).expanduser().absolute()


def _int(low: int, high: int) -> Callable[[str], int]:
    return lambda text: parse_int(text, low, high)


def _bytes(low: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        size = parse_bytes(text)
        if size < low:
            raise ValueError(f"{text} is less than the minimum of {format_bytes(low)}")
        if size > _MOST_BYTES:
            raise ValueError(f"{text} is more than the maximum of {format_bytes(_MOST_BYTES)}")
        return size

    return parse


def _seconds(low: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        seconds = parse_seconds(text)
        if seconds < low:
            raise ValueError(f"{text} is less than the minimum of {low:g}s")
        if seconds > _MOST_SECONDS:
            raise ValueError(f"{text} is more than the maximum of {_MOST_SECONDS // 86400}d")
        return seconds

    return parse


_MASTERS = re.compile(
    r"local(\[(\*|[1-9]\d*)(, *\d+)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]|yarn|(spark|k8s|sc)://\S+"
)


def _master(text: str) -> str:
    if not _MASTERS.fullmatch(text):
        raise ValueError(f"'{text}' is no Spark master: local[*], spark://HOST:PORT, yarn, k8s://… or sc://HOST:PORT")
    return text


_BUCKETS = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.=-]+)*/?", re.ASCII)
_ORIGINS = re.compile(r"https?://[\w.-]+(:\d{1,5})?|https?://\[[0-9a-fA-F:.]+\](:\d{1,5})?", re.ASCII)


def _origin(text: str) -> str:
    if not _ORIGINS.fullmatch(text.rstrip("/")):
        raise ValueError(f"'{text}' is not of the form https://NAME or http://NAME:PORT")
    return text.rstrip("/")


def _bucket(text: str) -> str:
    if not _BUCKETS.fullmatch(text):
        raise ValueError(f"'{text}' is not of the form s3://BUCKET or s3://BUCKET/PREFIX")
    return text.rstrip("/")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _state_default() -> str:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "delta-sql-gateway")


_PORT = _int(0, 65535)

SETTINGS: tuple[Setting, ...] = (
    Setting("warehouse", _path, None, "folder of the catalog main: DIR/<schema>/<table>/ are Delta tables", "DIR"),
    Setting("host", str, "127.0.0.1", "address to listen on; other than loopback needs --auth token", "ADDR"),
    Setting("port", _PORT, "8080", "HTTP port; 0 takes any free one", "N"),
    Setting("tcp-port", _PORT, None, "port for Thrift over TCP (Hive's clients), with SASL PLAIN or without SASL", "N"),
    Setting("tcp-tls", parse_bool, "false", "TLS on the TCP port, with the same certificate", "BOOL"),
    Setting("tls-port", _PORT, None, "HTTPS port, beside that of HTTP", "N"),
    Setting("tls-cert", _path, None, "certificate chain, PEM; SIGHUP has it read again", "FILE"),
    Setting("tls-key", _path, None, "private key of the certificate, PEM, without a password", "FILE"),
    Setting(
        "tls-client-ca", _path, None, "who signs the certificates that clients have to show beside a token, PEM", "FILE"
    ),
    Setting("auth", one_of("none", "token"), "none", "who may connect: everybody on loopback, or holders of a token"),
    Setting(
        "token-file",
        _path,
        None,
        "hashed tokens, one a line (`gateway token`); SIGHUP has it read again",
        "FILE",
    ),
    Setting("allow-path", _path, None, "folder whose files SQL may name; may be repeated", "ROOT", repeatable=True),
    Setting("state", _path, "", "folder for sample data, spooled results and spilled memory", "DIR"),
    Setting(
        "confine",
        parse_bool,
        "true",
        "engine processes can open files of these folders only, where the kernel sees to it (Linux 5.19 with Landlock)",
        "BOOL",
    ),
    Setting("memory-limit", _bytes(64 * 1024**2), "4GiB", "memory of all engine processes before they spill", "SIZE"),
    Setting(
        "slots",
        _int(0, 1024),
        "0",
        "statements that run at once, beside one that is short; 0: one per core, at least two",
        "N",
    ),
    Setting("queue-limit", _int(0, 1_000_000), "1000", "statements that may wait for a slot", "N"),
    Setting("statement-timeout", _seconds(0), "1h", "longest run of a statement; 0: no limit", "TIME"),
    Setting(
        "deletion-vectors",
        parse_bool,
        "true",
        "new tables have deletion vectors, if neither CREATE TABLE nor their session says otherwise",
        "BOOL",
    ),
    Setting("session-idle", _seconds(1), "8h", "a session without requests ends after this time", "TIME"),
    Setting("operation-idle", _seconds(1), "20min", "a result that nobody reads is dropped after this time", "TIME"),
    Setting(
        "spool-limit",
        _bytes(1024**2),
        "40GiB",
        "disk for results that wait to be fetched, or what there is of it; one caller has half",
        "SIZE",
    ),
    Setting("public-url", _origin, None, "scheme and name in links to results, where a proxy stands before it", "URL"),
    Setting("link-lifetime", _seconds(60), "4h", "a link to a part of a result may be followed for this time", "TIME"),
    Setting(
        "result-bucket",
        _bucket,
        None,
        "large results are read from this bucket, by presigned links, with the credentials of AWS's environment variables",
        "s3://BUCKET/PREFIX",
    ),
    Setting("max-request-body", _bytes(1024), "32MiB", "largest request, over HTTP and TCP", "SIZE"),
    Setting("max-volume-file", _bytes(0), "1GiB", "largest file that may be put into a volume", "SIZE"),
    Setting("max-statement", _bytes(1024), "16MiB", "longest SQL text", "SIZE"),
    Setting("drain-timeout", _seconds(0), "300s", "after SIGTERM, running statements may end within this time", "TIME"),
    Setting("slow-statement", _seconds(0), "10s", "statements that take longer are logged as slow", "TIME"),
    Setting("spark", _master, None, "second engine: local[*], spark://…, yarn, k8s://… or sc://HOST:PORT", "MASTER"),
    Setting("spark-jars", _path, None, "folder of Spark's Delta jars [$XDG_CACHE_HOME/delta-sql-gateway/spark]", "DIR"),
    Setting("spark-memory", _bytes(512 * 1024**2), "2GiB", "heap of the Spark driver", "SIZE"),
    Setting(
        "spark-properties", _path, None, "further settings of Spark, as for spark-submit --properties-file", "FILE"
    ),
    Setting(
        "spark-above", _bytes(0), "0", "queries that read more than this go to Spark; 0: none for its size", "SIZE"
    ),
    Setting("ready-file", _path, None, "file written once requests are served: pid and addresses as JSON", "FILE"),
    Setting("log-format", one_of("text", "json"), "text", "log lines for people or for machines"),
    Setting("log-level", one_of("debug", "info", "warning", "error"), "info", "least severe line that is logged"),
    Setting(
        "log-sql", parse_bool, "false", "put statement texts into the log, and with literals into the history", "BOOL"
    ),
    Setting(
        "history",
        parse_history,
        "true",
        "record statements and sign-ins, for system.query.history and system.access.audit: in SQLite files of the state "
        "folder, or in a PostgreSQL database that several gateways share (`postgresql://…`)",
        "BOOL|URL",
    ),
    Setting("history-age", _seconds(60), "30d", "a statement is in the history for this time", "TIME"),
    Setting("history-size", _bytes(1024**2), "256MiB", "disk for the history; the oldest statements go first", "SIZE"),
    Setting(
        "admins",
        _names,
        "",
        "who sees and ends everybody's statements, and sees these settings, with --auth token",
        "NAME,…",
    ),
)
_BY_NAME = {s.name: s for s in SETTINGS}


def _unknown(name: str, known: Mapping[str, object] | list[str], where: str) -> ConfigError:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return ConfigError(name, f"unknown setting in {where}{hint}")


def _from_file(path: Path) -> dict[str, str | list[str]]:
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise ConfigError("config", f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError("config", f"{path} is not valid TOML: {error}") from error
    values: dict[str, str | list[str]] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        setting = _BY_NAME.get(name)
        if setting is None:
            raise _unknown(key, _BY_NAME, str(path))
        if isinstance(value, list) and setting.repeatable and all(isinstance(v, str) for v in value):
            values[name] = value
        elif isinstance(value, bool):
            values[name] = str(value).lower()
        elif isinstance(value, (str, int, float)):
            values[name] = str(value)
        else:
            raise ConfigError(key, f"a value of type {type(value).__name__} in {path}")
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, str | list[str]]:
    variables = {s.variable: s for s in SETTINGS} | {"GATEWAY_CONFIG": None}
    values: dict[str, str | list[str]] = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable.startswith(_FOREIGN_ENVIRONMENT):
            continue
        if variable not in variables:
            raise _unknown(variable, list(variables), "the environment")
        setting = variables[variable]
        if setting is not None:
            values[setting.name] = text.split(os.pathsep) if setting.repeatable else text
    return values


def load_config(
    flags: Mapping[str, str | list[str] | None],
    environment: Mapping[str, str] | None = None,
    config_file: str | None = None,
) -> Config:
    """The settings in force. `flags` maps setting names to text (None: not given); `environment` defaults to os.environ.

    The file is `config_file`, else GATEWAY_CONFIG. Raises ConfigError.
    """
    environment = os.environ if environment is None else environment
    config_file = config_file or environment.get("GATEWAY_CONFIG")
    texts: dict[str, str | list[str]] = {}
    if config_file:
        texts |= _from_file(Path(config_file))
    origins = dict.fromkeys(texts, f"file {config_file}")
    from_environment = _from_environment(environment)
    texts |= from_environment
    origins |= dict.fromkeys(from_environment, "environment")
    for name, value in flags.items():
        if name not in _BY_NAME:
            raise _unknown(name, _BY_NAME, "the flags")
        if value is not None:
            texts[name] = value
            origins[name] = "flag"
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        text = texts.get(setting.name, setting.default)
        if setting.name == "state" and not text:
            text = _state_default()
        if text is None:
            values[setting.field] = () if setting.repeatable else None
            continue
        try:
            if setting.repeatable:
                parts = text if isinstance(text, list) else [text]
                values[setting.field] = tuple(setting.parse(part) for part in parts if part)
            else:
                values[setting.field] = setting.parse(str(text))
        except ValueError as error:
            raise ConfigError(setting.name, str(error)) from None
    if values["warehouse"] is None:
        raise ConfigError("warehouse", "is needed: the folder that holds the tables, e.g. --warehouse ./warehouse")
    if values["slots"] == 0:
        values["slots"] = max(2, os.cpu_count() or 2)
    return Config(**values, origins=origins)


class ServerSetting(NamedTuple):
    """A setting as it is in force. The fields are the columns of `system.runtime.settings`, in this order."""

    name: str
    value: str | None
    origin: str
    meaning: str


def settings_in_force(config: Config) -> tuple[ServerSetting, ...]:
    """All settings, and where each comes from: `default`, a file, `environment` or `flag`."""
    return tuple(
        ServerSetting(s.name, _shown(s, getattr(config, s.field)), config.origins.get(s.name, "default"), s.help)
        for s in SETTINGS
    )


def _shown(setting: Setting, value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    told: Callable[[Any], str] = {"SIZE": format_bytes, "TIME": "{:g}s".format}.get(setting.metavar, str)
    return told(value)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`; names other than localhost count as reachable from outside."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check(config: Config) -> None:
    if config.auth == "none" and not is_loopback(config.host):
        raise ConfigError("auth", f"'none' is only for loopback, not for host '{config.host}'; use --auth token")
    if config.auth == "token" and config.token_file is None:
        raise ConfigError("token-file", "is needed with auth 'token'")
    if config.auth == "none" and config.token_file is not None:
        raise ConfigError("token-file", "has no effect with auth 'none'; use --auth token")
    if config.auth == "none" and config.admins:
        raise ConfigError("admins", "has no effect with auth 'none': everybody sees everything")
    _check_tls(config)
    if config.result_bucket is not None and importlib.util.find_spec("obstore") is None:
        raise ConfigError("result-bucket", "needs the package obstore: pip install '.[bucket]'")
    for name, given in (("spark-jars", config.spark_jars), ("spark-properties", config.spark_properties)):
        if given is not None and config.spark is None:
            raise ConfigError(name, "has no effect without --spark")


def _check_tls(config: Config) -> None:
    files = (("tls-cert", config.tls_cert), ("tls-key", config.tls_key))
    if config.tcp_tls and config.tcp_port is None:
        raise ConfigError("tcp-tls", "has no effect without --tcp-port")
    if config.tls_port is not None or config.tcp_tls:
        for name, path in files:
            if path is None:
                raise ConfigError(name, "is needed for TLS; `gateway certificate` makes one to try")
        return
    for name, path in (*files, ("tls-client-ca", config.tls_client_ca)):
        if path is not None:
            raise ConfigError(name, "has no effect without --tls-port or --tcp-tls")


def settings_markdown() -> str:
    """docs/settings.md: the reference of all settings, made from `SETTINGS`."""
    lines = [
        "# Settings",
        "",
        "Made by `python -m gateway.config > docs/settings.md`; a test keeps it true.",
        "",
        "Each setting is a flag of `gateway serve`, an environment variable, and a key of the TOML file (`--config FILE`",
        "or `GATEWAY_CONFIG`). Defaults < file < environment < flags. An unknown key or a bad value ends the start with exit",
        "code 2 and names the setting. Sizes: `512MiB`, `4GiB`. Times: `300s`, `20min`, `8h`.",
        "",
        "| flag and key | environment | default | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for s in SETTINGS:
        default = "`$XDG_STATE_HOME/delta-sql-gateway`" if s.name == "state" else f"`{s.default}`" if s.default else ""
        lines.append(f"| `{s.name}` | `{s.variable}` | {default} | {s.help} |")
    return "\n".join(lines) + "\n"
