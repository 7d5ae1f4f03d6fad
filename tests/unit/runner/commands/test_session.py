"""USE, SET, RESET and SET TIME ZONE: what they answer as Spark 4.2 does, what they do to the session, and every refusal."""

from __future__ import annotations

import pytest

from gateway.config.session import SESSION_SETTINGS
from gateway.errors import GatewayError, UnsupportedError, UserError
from gateway.runner import Runner
from tests.unit.runner.session import Session, refused

SET = [("key", "string", False), ("value", "string", False)]


@pytest.mark.parametrize(
    ("text", "catalog", "schema"),
    [
        ("USE default", "main", "default"),
        ("USE SHOP", "main", "shop"),
        ("USE SCHEMA shop", "main", "shop"),
        ("USE DATABASE shop", "main", "shop"),
        ("USE main.shop", "main", "shop"),
        ("USE samples", "samples", "default"),
        ("USE Samples.TPCH", "samples", "tpch"),
        ("USE CATALOG samples", "samples", "default"),
        ("SET CATALOG samples", "samples", "default"),
    ],
)
def test_use(session: Session, text: str, catalog: str, schema: str) -> None:
    result = session.run(text)
    assert result.rows == []
    assert not result.planned.is_query
    assert (session.state.catalog, session.state.schema) == (catalog, schema)
    assert session.rows("SELECT current_catalog(), current_schema()") == [(catalog, schema)]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("USE nope", "SCHEMA_NOT_FOUND"),
        ("USE SCHEMA samples", "SCHEMA_NOT_FOUND"),
        ("USE main.nope", "SCHEMA_NOT_FOUND"),
        ("USE nope.shop", "NO_SUCH_CATALOG_EXCEPTION"),
        ("USE CATALOG nope", "NO_SUCH_CATALOG_EXCEPTION"),
    ],
)
def test_use_of_what_is_missing(session: Session, text: str, condition: str) -> None:
    error = refused(session, text)
    assert error.condition == condition
    assert "nope" in error.message or "samples" in error.message


def test_names_follow_use(shop: Session) -> None:
    shop.run("USE samples.tpch")
    assert shop.rows("SELECT count(*) FROM region") == [(5,)]
    assert refused(shop, "SELECT * FROM t").condition == "TABLE_OR_VIEW_NOT_FOUND"
    shop.run("USE CATALOG main")
    assert refused(shop, "SELECT * FROM t").condition == "TABLE_OR_VIEW_NOT_FOUND"
    assert shop.rows("SELECT count(*) FROM shop.t") == [(0,)]


def test_a_dropped_current_schema(session: Session) -> None:
    session.run("DROP SCHEMA shop")
    assert session.rows("SELECT current_schema()") == [("shop",)]
    assert refused(session, "SHOW TABLES").condition == "SCHEMA_NOT_FOUND"
    assert refused(session, "CREATE TABLE t (a INT)").condition == "SCHEMA_NOT_FOUND"


def test_set_and_reset(session: Session) -> None:
    result = session.run("SET use_cached_result = FALSE")
    assert (result.columns, result.rows) == (SET, [("use_cached_result", "FALSE")])
    assert session.state.settings == {"use_cached_result": "false"}
    assert session.rows("SET USE_CACHED_RESULT") == [("USE_CACHED_RESULT", "false")]
    assert session.run("RESET use_cached_result").rows == []
    assert session.state.settings == {}
    assert session.rows("SET use_cached_result") == [("use_cached_result", "true")]
    session.run("SET statement_timeout = 5")
    session.run("SET TIME ZONE 'Asia/Tokyo'")
    session.run("RESET")
    assert session.state.settings == {}


def test_set_alone_lists_everything(session: Session) -> None:
    session.run("SET spark.sql.shuffle.partitions = 7")
    shown = dict(session.rows("SET"))
    assert set(shown) == {s.key for s in SESSION_SETTINGS} | {"spark.sql.shuffle.partitions"}
    assert shown["spark.sql.shuffle.partitions"] == "7"
    result = session.run("SET -v")
    assert [c[0] for c in result.columns] == ["key", "value", "meaning"]
    assert {r[0] for r in result.rows} == {s.key for s in SESSION_SETTINGS}


@pytest.mark.parametrize(
    ("text", "zone", "stored"),
    [
        ("SET TIME ZONE 'Europe/Berlin'", "Europe/Berlin", "Europe/Berlin"),
        ("SET TIME ZONE LOCAL", "Etc/UTC", "Etc/UTC"),
        ("SET TIME ZONE '+2'", "+2", "+2"),
        ("SET TIME ZONE INTERVAL 2 HOURS", "+02:00", "+02:00"),
        ("SET TIME ZONE INTERVAL '-02:30' HOUR TO MINUTE", "-02:30", "-02:30"),
        ("SET TIME ZONE INTERVAL '1:30:15' HOUR TO SECOND", "+01:30:15", "+01:30:15"),
    ],
)
def test_set_time_zone(session: Session, text: str, zone: str, stored: str) -> None:
    result = session.run(text)
    assert (result.columns, result.rows) == (SET, [("spark.sql.session.timeZone", zone)])
    assert session.state.settings == {"timezone": stored}
    assert session.rows("SELECT current_timezone()") == [(stored,)]
    for key in ("timezone", "spark.sql.session.timeZone"):
        assert session.rows(f"SET {key}") == [(key, stored)]


@pytest.mark.parametrize(
    ("text", "kind", "condition", "sqlstate"),
    [
        ("SET no_such_key = 1", UnsupportedError, "CONFIG_NOT_AVAILABLE", "42K0I"),
        ("SET spark.no.such = 1", UnsupportedError, "CONFIG_NOT_AVAILABLE", "42K0I"),
        ("SET spark.sql.warehouse.dir = /x", UnsupportedError, "CONFIG_NOT_AVAILABLE", "42K0I"),
        ("SET use_cached_result = maybe", UserError, "INVALID_CONF_VALUE.REQUIREMENT", "22022"),
        ("SET statement_timeout = -1", UserError, "INVALID_CONF_VALUE.REQUIREMENT", "22022"),
        ("SET TIME ZONE 'Mars'", UserError, "INVALID_CONF_VALUE.TIME_ZONE", "22022"),
        ("SET timezone = Mars", UserError, "INVALID_CONF_VALUE.TIME_ZONE", "22022"),
        *(
            (
                f"SET TIME ZONE INTERVAL {i}",
                UserError,
                "INVALID_INTERVAL_FORMAT.TIMEZONE_INTERVAL_OUT_OF_RANGE",
                "22006",
            )
            for i in ("'20' HOURS", "'1' YEAR", "'1' DAY", "1.5 SECONDS")
        ),
        *(
            (f"SET {s.key} = other", UnsupportedError, "UNSUPPORTED_FEATURE.SET_VALUE", "0A000")
            for s in SESSION_SETTINGS
            if s.fixed
        ),
        ("SET spark.sql.ansi.enabled = false", UnsupportedError, "UNSUPPORTED_FEATURE.SET_VALUE", "0A000"),
        ("SET x y z", UserError, "INVALID_SET_SYNTAX", "42000"),
    ],
)
def test_set_refusals(session: Session, text: str, kind: type, condition: str, sqlstate: str) -> None:
    error = refused(session, text)
    assert isinstance(error, kind)
    assert (error.condition, error.sqlstate) == (condition, sqlstate)


def test_fixed_settings_may_be_set_to_what_they_are(session: Session) -> None:
    for setting in SESSION_SETTINGS:
        if setting.fixed:
            session.run(f"SET {setting.key} = {setting.default.upper()}")
    assert session.rows("SET ansi_mode") == [("ansi_mode", "true")]


def test_unknown_keys_read_and_reset(session: Session) -> None:
    assert session.rows("SET no_such_key") == [("no_such_key", "<undefined>")]
    assert session.run("RESET no_such_key").rows == []


def test_settings_matter(runner: Runner) -> None:
    session = Session(runner)
    session.run("SET TIME ZONE 'Asia/Tokyo'")
    assert session.rows("SELECT CAST(TIMESTAMP'2020-01-01 00:00:00Z' AS STRING)") == [("2020-01-01 09:00:00",)]
    session.run("SET spark.sql.groupByOrdinal = false")
    with pytest.raises(GatewayError):
        session.run("SELECT id % 2, count(*) FROM range(4) GROUP BY 1")
