"""Server settings, session settings, pins."""

from importlib import metadata
from pathlib import Path

import pytest

from gateway import config as configuration
from gateway.config import (
    PINS,
    SESSION_SETTINGS,
    SETTINGS,
    check_pins,
    default_settings,
    format_bytes,
    load_config,
    normalise_setting,
    normalise_zone,
    parse_bytes,
    parse_seconds,
)
from gateway.config.server import Config, is_loopback, settings_in_force
from gateway.config.session import ANSI_MODE, honoured_by_spark, is_honoured
from gateway.errors import ConfigError, UnsupportedError, UserError
from gateway.instants import zone_of

ENV: dict[str, str] = {}


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('warehouse = "/w/file"\nport = 1\nslots = 3\nmemory_limit = "1GiB"\nallow-path = ["/a", "/b"]\n')
    environment = {"GATEWAY_CONFIG": str(file), "GATEWAY_PORT": "2", "GATEWAY_SLOTS": "4"}
    config = load_config({"port": "3", "host": None}, environment)
    assert (config.warehouse, config.slots, config.port) == (Path("/w/file"), 4, 3)
    assert config.memory_limit == 1024**3
    assert config.allow_path == (Path("/a"), Path("/b"))
    assert config.host == "127.0.0.1"


def test_repeatable_in_environment_and_flags() -> None:
    assert load_config({"warehouse": "/w"}, {"GATEWAY_ALLOW_PATH": "/a:/b"}).allow_path == (Path("/a"), Path("/b"))
    assert load_config({"warehouse": "/w", "allow-path": ["/c"]}, ENV).allow_path == (Path("/c"),)


@pytest.mark.parametrize(
    ("flags", "environment", "named"),
    [
        ({}, {}, "warehouse"),
        ({"warehouse": "/w", "port": "70000"}, {}, "port"),
        ({"warehouse": "/w", "port": "x"}, {}, "port"),
        ({"warehouse": "/w", "memory-limit": "lots"}, {}, "memory-limit"),
        ({"warehouse": "/w", "memory-limit": "1KiB"}, {}, "memory-limit"),
        ({"warehouse": "/w", "auth": "kerberos"}, {}, "auth"),
        ({"warehouse": "/w", "host": "0.0.0.0"}, {}, "auth"),
        ({"warehouse": "/w", "host": "example.org"}, {}, "auth"),
        ({"warehouse": "/w", "auth": "token"}, {}, "token-file"),
        ({"warehouse": "/w", "token-file": "/t"}, {}, "token-file"),
        ({"warehouse": "/w", "tcp-port": "70000"}, {}, "tcp-port"),
        ({"warehouse": "/w", "tls-port": "8443"}, {}, "tls-cert"),
        ({"warehouse": "/w", "tls-port": "8443", "tls-cert": "/c"}, {}, "tls-key"),
        ({"warehouse": "/w", "tls-cert": "/c", "tls-key": "/k"}, {}, "tls-cert"),
        ({"warehouse": "/w", "tls-client-ca": "/c"}, {}, "tls-client-ca"),
        ({"warehouse": "/w", "tcp-tls": "true"}, {}, "tcp-tls"),
        ({"warehouse": "/w", "tcp-tls": "true", "tcp-port": "0"}, {}, "tls-cert"),
        ({"warehouse": "/w", "spark": "mesos://h:1"}, {}, "spark"),
        ({"warehouse": "/w", "statement-timeout": "soon"}, {}, "statement-timeout"),
        ({"warehouse": "/w", "log-sql": "maybe"}, {}, "log-sql"),
        ({"warehouse": "/w", "memory-limit": "9" * 400}, {}, "memory-limit"),
        ({"warehouse": "/w", "spool-limit": "999999999999TiB"}, {}, "spool-limit"),
        ({"warehouse": "/w", "session-idle": "9" * 400}, {}, "session-idle"),
        ({"warehouse": "/w", "statement-timeout": "36501d"}, {}, "statement-timeout"),
        ({"warehouse": ""}, {}, "warehouse"),
        ({"warehouse": "/w\0"}, {}, "warehouse"),
        ({"warehous": "/w"}, {}, "warehous"),
        ({"warehouse": "/w"}, {"GATEWAY_PROT": "1"}, "GATEWAY_PROT"),
        ({"warehouse": "/w"}, {"GATEWAY_PORT": "tcp://10.0.0.1:80"}, "port"),
    ],
)
def test_bad_settings_are_named(flags: dict[str, str], environment: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(flags, environment)
    assert caught.value.setting == named


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("warehuose = '/w'", "warehuose"),
        ("port = [1]", "port"),
        ("port = ", "config"),
        ("[server]\nport = 1", "server"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "g.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config({"warehouse": "/w"}, ENV, str(file))
    assert caught.value.setting == named
    with pytest.raises(ConfigError, match="cannot read"):
        load_config({"warehouse": "/w"}, ENV, str(tmp_path / "missing.toml"))


def test_unknown_setting_gets_a_hint() -> None:
    with pytest.raises(ConfigError, match="did you mean GATEWAY_PORT"):
        load_config({"warehouse": "/w"}, {"GATEWAY_PORTT": "1"})


def test_every_setting_is_a_field_and_reverse() -> None:
    assert {s.field for s in SETTINGS} | {"origins"} == set(Config.__dataclass_fields__)


def test_loopback() -> None:
    assert [is_loopback(h) for h in ("localhost", "127.0.0.1", "::1", "127.8.8.8")] == [True] * 4
    assert [is_loopback(h) for h in ("0.0.0.0", "::", "10.0.0.1", "myhost")] == [False] * 4


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1048576", 1 << 20), ("4GiB", 4 << 30), ("512 MB", 512 << 20), ("64k", 65536), ("1.5g", 3 << 29)],
)
def test_parse_bytes(text: str, size: int) -> None:
    assert parse_bytes(text) == size
    assert parse_bytes(format_bytes(size)) == size


@pytest.mark.parametrize("text", ["", "GiB", "4 GiB x", "-1", "1e9", "1.2.3"])
def test_bad_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("300", 300), ("20min", 1200), ("8h", 28800), ("500ms", 0.5), ("1d", 86400)]
)
def test_parse_seconds(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds
    with pytest.raises(ValueError, match="is not a duration"):
        parse_seconds(text + "x")


def test_installed_pins_are_right() -> None:
    check_pins()


def test_other_pins_are_refused() -> None:
    def other(package: str) -> str:
        return "0.0.1" if package == "deltalake" else metadata.version(package)

    def missing(package: str) -> str:
        if package == "sqlglot":
            raise metadata.PackageNotFoundError(package)
        return metadata.version(package)

    def compiled(package: str) -> str:
        return "30.30.0" if package == "sqlglotc" else metadata.version(package)

    for version_of, named in ((other, "deltalake"), (missing, "sqlglot"), (compiled, "sqlglotc")):
        with pytest.raises(ConfigError) as caught:
            check_pins(version_of)
        assert caught.value.setting == named


def test_pins_equal_the_project_file() -> None:
    project = (Path(configuration.__file__).parents[2] / "pyproject.toml").read_text()
    for package, version in PINS.items():
        assert f'"{package}=={version}"' in project


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("spark.sql.session.timeZone", "America/Los_Angeles", ("timezone", "America/Los_Angeles")),
        ("TIMEZONE", "GMT+1", ("timezone", "GMT+1")),
        ("ANSI_MODE", "True", ("ansi_mode", "true")),
        ("spark.sql.ansi.enabled", "true", ("ansi_mode", "true")),
        ("STATEMENT_TIMEOUT", "172800", ("statement_timeout", "172800")),
        ("use_cached_result", "FALSE", ("use_cached_result", "false")),
        ("QUERY_TAGS", "team:a,b", ("query_tags", "team:a,b")),
        ("gateway.engine", "AUTO", ("gateway.engine", "auto")),
        ("spark.sql.shuffle.partitions", "10", ("spark.sql.shuffle.partitions", "10")),
        ("spark.sql.adaptive.enabled", "false", ("spark.sql.adaptive.enabled", "false")),
        (" spark.sql.autoBroadcastJoinThreshold", "-1", ("spark.sql.autoBroadcastJoinThreshold", "-1")),
        ("spark.sql.caseSensitive", "false", ("spark.sql.caseSensitive", "false")),
        ("no.such.key", "1", None),
    ],
)
def test_session_settings(key: str, value: str, wanted: tuple[str, str] | None) -> None:
    assert normalise_setting(key, value) == wanted


@pytest.mark.parametrize(
    ("key", "value", "error", "sqlstate"),
    [
        ("ansi_mode", "false", UnsupportedError, "0A000"),
        ("spark.sql.ansi.enabled", "0", UnsupportedError, "0A000"),
        ("spark.sql.ansi.enabled", "perhaps", UnsupportedError, "0A000"),
        ("spark.sql.caseSensitive", "true", UnsupportedError, "0A000"),
        ("legacy_time_parser_policy", "LEGACY", UnsupportedError, "0A000"),
        ("statement_timeout", "172801", UserError, "22022"),
        ("statement_timeout", "-1", UserError, "22022"),
        ("timezone", "Mars/Olympus", UserError, "22022"),
        ("gateway.engine", "presto", UserError, "22022"),
    ],
)
def test_bad_session_settings(key: str, value: str, error: type[Exception], sqlstate: str) -> None:
    with pytest.raises(error) as caught:
        normalise_setting(key, value)
    assert getattr(caught.value, "sqlstate", None) == sqlstate
    assert key in str(caught.value)


def test_defaults_are_canonical() -> None:
    assert len(default_settings()) == len(SESSION_SETTINGS)
    for key, value in default_settings().items():
        assert normalise_setting(key, value) == (key, value)
    spellings = [alias.lower() for s in SESSION_SETTINGS for alias in (s.key, *s.aliases)]
    assert len(set(spellings)) == len(spellings)


ZONES = [
    "UTC",
    "Etc/UTC",
    "GMT",
    "Z",
    "+0",
    "+1",
    "-0830",
    "+5:30",
    "+18:00",
    "UTC+8",
    "GMT-1",
    "+01:02:03",
    "PST",
    "EST",
]


@pytest.mark.parametrize("zone", [*ZONES, "Asia/Hong_Kong"])
def test_zones_keep_their_own_names(zone: str) -> None:
    assert normalise_zone(f" {zone} ") == zone
    assert zone_of(zone) is not None
    assert default_settings()["timezone"] == "Etc/UTC"


@pytest.mark.parametrize(
    "zone",
    ["", "+", "+19", "+18:01", "+1:60", "+123", "+1:2:3", "+9:5:07", "Factory", "utc+x", "invalid/zone", "\u0661"],
)
def test_bad_zones(zone: str) -> None:
    with pytest.raises(ValueError, match="cannot resolve"):
        normalise_zone(zone)


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("spark.sql.ansi.enabled", "False", (ANSI_MODE, "false")),
        ("SPARK.SQL.mapKeyDedupPolicy", "LAST_WIN", ("spark.sql.mapKeyDedupPolicy", "last_win")),
        ("spark.sql.legacy.nullInEmptyListBehavior", "true", ("spark.sql.legacy.nullInEmptyListBehavior", "true")),
        ("spark.sql.timestampNanosTypes.enabled", "true", ("spark.sql.timestampNanosTypes.enabled", "true")),
    ],
)
def test_values_that_only_spark_honours(key: str, value: str, wanted: tuple[str, str]) -> None:
    assert normalise_setting(key, value, spark=True) == wanted
    assert list(honoured_by_spark(dict([wanted])).values()) == [wanted[1]]
    try:
        assert normalise_setting(key, value) is None
    except UnsupportedError as error:
        assert error.condition == "UNSUPPORTED_FEATURE.SET_VALUE"


def test_defaults_and_tuning_are_honoured_by_both_engines() -> None:
    assert honoured_by_spark({**default_settings(), "spark.sql.shuffle.partitions": "7"}) == {}


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.parser.escapedStringLiterals",
        "spark.sql.ansi.doubleQuotedIdentifiers",
        "spark.sql.caseSensitive",
        "spark.sql.legacy.parser.havingWithoutGroupByAsWhere",
        "spark.sql.legacy.setCommandRejectsSparkCoreConfs",
        "spark.sql.warehouse.dir",
        "spark.sql.runSQLOnFiles",
    ],
)
def test_settings_of_how_a_text_is_read_and_what_it_may_reach_are_never_sparks(key: str) -> None:
    try:
        assert normalise_setting(key, "true", spark=True) is None
    except UnsupportedError as error:
        assert error.condition == "UNSUPPORTED_FEATURE.SET_VALUE"


@pytest.mark.parametrize(
    ("master", "is_one"),
    [
        *(("local", True), ("local[*]", True), ("local[2]", True), ("local[2,3]", True), ("yarn", True)),
        *(("spark://a:7077,b:7077", True), ("k8s://https://a:443", True), ("sc://a:15002", True)),
        *(
            ("local[", False),
            ("local[]", False),
            ("local[0]", False),
            ("local[x]", False),
            ("spark://", False),
            ("", False),
        ),
    ],
)
def test_masters_of_spark(master: str, is_one: bool) -> None:
    if is_one:
        assert load_config({"warehouse": ".", "spark": master}, {}).spark == master
    else:
        with pytest.raises(ConfigError, match=r"^\[INVALID_CONF_VALUE\] spark"):
            load_config({"warehouse": ".", "spark": master}, {})


def test_settings_that_spark_may_honour_are_told_by_name() -> None:
    assert all(is_honoured(key) for key in ("spark.sql.ansi.enabled", "spark.sql.legacy.timeParserPolicy"))
    assert not any(is_honoured(key) for key in ("", "nosuch", "spark.driver.memory", "gateway.engine"))


@pytest.mark.parametrize(
    "variable", ["GATEWAY_SHARED", "GATEWAY_TEST_DRIVERS", "GATEWAY_CONFORMANCE_STATE", "GATEWAY_SERVICE_HOST"]
)
def test_what_others_set_under_our_prefix_is_no_unknown_setting(variable: str) -> None:
    assert load_config({"warehouse": "/w"}, {variable: "/x"}) == load_config({"warehouse": "/w"}, {})


def test_settings_in_force_tell_where_they_come_from(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('slots = 3\nmemory-limit = "1GiB"\n')
    environment = {"GATEWAY_SLOTS": "4", "GATEWAY_HISTORY_AGE": "1d"}
    config = load_config({"warehouse": str(tmp_path), "slots": "5", "port": None}, environment, str(file))
    told = {setting.name: (setting.value, setting.origin) for setting in settings_in_force(config)}
    assert set(told) == {setting.name for setting in SETTINGS}
    assert told["slots"] == ("5", "flag")
    assert told["history-age"] == ("86400s", "environment")
    assert told["memory-limit"] == ("1GiB", f"file {file}")
    assert told["port"] == ("8080", "default")
    assert (told["spark"], told["history"]) == ((None, "default"), ("true", "default"))
