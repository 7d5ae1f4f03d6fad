"""USE, SET, RESET and SET TIME ZONE: statements that change the session and nothing else."""

from __future__ import annotations

from gateway.config.session import (
    DEFAULT_ZONE,
    SESSION_SETTINGS,
    find_setting,
    is_tuning,
    normalise_setting,
)
from gateway.engine.base import Emit, SessionChange, Statement
from gateway.errors import UnsupportedError, UserError
from gateway.runner.answer import Answer, done, rows_of, strings
from gateway.runner.environment import Environment, Queries
from gateway.sql.bind import literals
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import IntervalType

_ZONE_KEY = "spark.sql.session.timeZone"
_LARGEST_OFFSET = 18 * 3600


def use_catalog(command: c.UseCatalog, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """USE CATALOG."""
    catalog = env.tables.catalog_of(command.name)
    return done("USE", SessionChange("use", catalog.name, "default"))


def use_schema(command: c.UseSchema, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """USE and USE SCHEMA; a bare name may be a catalog's."""
    parts = command.name.parts
    if len(parts) > 2:
        raise UserError("SCHEMA_NOT_FOUND", f"The schema `{command.name}` cannot be found.", span=command.name.span)
    if command.bare and len(parts) == 1 and not env.tables.catalog_of(env.session.catalog).has_schema(parts[0]):
        known = env.tables.catalogs.get(parts[0].lower())
        if known is not None:
            return done("USE", SessionChange("use", known.name, "default"))
    catalog, schema = env.tables.readable_schema_of(parts, command.name.span)
    return done("USE", SessionChange("use", catalog.name, schema))


def kill(command: c.Kill, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """CALL system.kill: the front process knows which statements there are, and whether the caller may."""
    return done("CALL", SessionChange("kill", command.statement_id))


def set_conf(command: c.SetConf, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SET: shows settings, or sets one."""
    pairs = strings("key", "value")
    if command.key is None:
        shown = {s.key: env.setting(s.key) for s in SESSION_SETTINGS} | dict(env.session.settings)
        if command.verbose:
            documented = [(s.key, env.setting(s.key), s.help) for s in SESSION_SETTINGS]
            return rows_of("SET", strings("key", "value", "meaning"), list(zip(*documented, strict=True)))
        return rows_of("SET", pairs, [list(shown), list(shown.values())])
    if command.value is None:
        key = _stored_key(command.key, env)
        value = env.setting(key) if find_setting(key) is not None else env.session.settings.get(key)
        return rows_of("SET", pairs, [[command.key], [value if value is not None else "<undefined>"]])
    value = _unquoted(command.value)
    known = normalise_setting(command.key, value, runner.has_spark)
    if known is None and not is_tuning(command.key):
        raise UnsupportedError("CONFIG_NOT_AVAILABLE", f"Configuration {command.key} is not available.")
    assert known is not None
    key, text = known
    changes = (SessionChange("reset", _stored_key(key, env)), SessionChange("set", key, text))
    return rows_of("SET", pairs, [[command.key], [value]], changes=changes)


def _stored_key(key: str, env: Environment) -> str:
    """The key under which the session has a setting, however it is spelt here."""
    setting = find_setting(key)
    if setting is not None:
        return setting.key
    return next((known for known in env.session.settings if known.lower() == key.lower()), key.lower())


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def set_zone(command: c.SetTimeZone, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """SET TIME ZONE."""
    if command.interval is not None:
        literal = (
            literals.interval_text(command.interval.this, None)
            if "parts" not in command.interval.args
            else literals.interval_parts(command.interval.args["parts"], command.interval.args.get("to"), None)
        )
        months = not isinstance(literal.type, IntervalType) or literal.type.is_year_month
        seconds, rest = (0, 1) if months else divmod(abs(literal.value), 1_000_000)
        if rest or seconds > _LARGEST_OFFSET:
            raise UserError(
                "INVALID_INTERVAL_FORMAT.TIMEZONE_INTERVAL_OUT_OF_RANGE",
                "The interval value must be in the range of [-18, +18] hours with second precision.",
            )
        zone = f"{'-' if literal.value < 0 else '+'}{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
        zone += f":{seconds % 60:02d}" if seconds % 60 else ""
    else:
        zone = command.zone if command.zone is not None else DEFAULT_ZONE
    known = normalise_setting(_ZONE_KEY, zone)
    assert known is not None
    return rows_of(
        "SET",
        strings("key", "value"),
        [[_ZONE_KEY], [zone]],
        changes=(SessionChange("set", *known),),
    )


def reset(command: c.Reset, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """RESET: of one setting, or of all."""
    if command.key is None:
        return done("RESET", SessionChange("reset"))
    return done("RESET", SessionChange("reset", _stored_key(command.key, env)))
