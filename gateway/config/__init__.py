"""Settings: of the server (file, environment, flags), of a session (SET, OpenSession), and the pinned libraries."""

from gateway.config.pins import PINS, check_pins
from gateway.config.server import (
    SETTINGS,
    Config,
    ServerSetting,
    Setting,
    load_config,
    settings_in_force,
    settings_markdown,
)
from gateway.config.session import (
    SESSION_SETTINGS,
    SessionSetting,
    default_settings,
    find_setting,
    normalise_setting,
    normalise_zone,
    session_settings_markdown,
)
from gateway.config.values import format_bytes, parse_bytes, parse_seconds

__all__ = [
    "PINS",
    "SESSION_SETTINGS",
    "SETTINGS",
    "Config",
    "ServerSetting",
    "SessionSetting",
    "Setting",
    "check_pins",
    "default_settings",
    "find_setting",
    "format_bytes",
    "load_config",
    "normalise_setting",
    "normalise_zone",
    "parse_bytes",
    "parse_seconds",
    "session_settings_markdown",
    "settings_in_force",
    "settings_markdown",
]
