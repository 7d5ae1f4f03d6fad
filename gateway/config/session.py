"""The settings of a session: what SQL SET, OpenSession and confOverlay may say.

Keys are matched without case; a setting has one canonical key (Databricks' name) and aliases (Spark's name). A setting whose
only answer here is its default is `fixed`: other values would change what statements mean and are refused by name. With Spark
beside the embedded engine, values that only Spark honours are kept, and make the session's statements run there. Tuning keys of
Spark that cannot change an answer are accepted and kept, and have no effect.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial

from gateway.config.values import one_of, parse_bool, parse_int
from gateway.errors import UnsupportedError, UserError

TIMEZONE = "timezone"
DEFAULT_ZONE = "Etc/UTC"  # what Databricks calls UTC
ANSI_MODE = "ansi_mode"
STATEMENT_TIMEOUT = "statement_timeout"
USE_CACHED_RESULT = "use_cached_result"
QUERY_TAGS = "query_tags"
ENGINE = "gateway.engine"
TIMESTAMP_AS_STRING = "spark.thriftserver.arrowBasedRowSet.timestampAsString"
GROUP_BY_ORDINAL = "spark.sql.groupByOrdinal"
GROUP_BY_ALIASES = "spark.sql.groupByAliases"
ORDER_BY_ORDINAL = "spark.sql.orderByOrdinal"
PRECISION_LOSS = "spark.sql.decimalOperations.allowPrecisionLoss"
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
DELETION_VECTORS = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
METRIC_VIEWS = "spark.sql.thriftserver.metadata.metricview.enabled"


@dataclass(frozen=True, slots=True)
class SessionSetting:
    """One setting. `parse` returns the canonical text of a value or raises ValueError; `fixed` allows only the default.

    `on_spark`: Spark may honour other values of a fixed one.
    """

    key: str
    default: str
    parse: Callable[[str], str]
    help: str
    aliases: tuple[str, ...] = ()
    fixed: bool = False
    on_spark: bool = False

    @property
    def sparks_name(self) -> str:
        """Spark's key of a setting that Spark knows."""
        return self.key if self.key.startswith("spark.") else self.aliases[0]


def _bool(text: str) -> str:
    return str(parse_bool(text)).lower()


def _timeout(text: str) -> str:
    return str(parse_int(text, 0, 172_800))


def _text(text: str) -> str:
    return text


# Java's short zone names (java.time.ZoneId.SHORT_IDS), which Spark takes.
_SHORT_ZONES = frozenset(
    {
        *(
            "ACT",
            "AET",
            "AGT",
            "ART",
            "AST",
            "BET",
            "BST",
            "CAT",
            "CNT",
            "CST",
            "CTT",
            "EAT",
            "ECT",
            "EST",
            "HST",
            "IET",
        ),
        *("IST", "JST", "MIT", "MST", "NET", "NST", "PLT", "PNT", "PRT", "PST", "SST", "VST"),
    }
)
_NOT_JAVAS = frozenset({"Factory", "localtime"})


def _is_offset(text: str) -> bool:
    """Whether a text is `+h`, `+hh`, `+hhmm`, `+h:mm` or `+hh:mm[:ss]`, within 18 hours."""
    sign, digits = text[:1], text[1:]
    if sign not in ("+", "-"):
        return False
    parts = digits.split(":") if ":" in digits else [digits[i : i + 2] for i in range(0, len(digits), 2)]
    if not digits or not all(p.isascii() and p.isdigit() and len(p) <= 2 for p in parts) or len(parts) > 3:
        return False
    if ":" not in digits and len(digits) % 2 and len(digits) > 1:
        return False
    if len(parts) == 3 and any(len(p) != 2 for p in parts[1:]):
        return False
    hours, minutes, seconds = (int(p) for p in [*parts, "0", "0"][:3])
    span = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return minutes <= 59 and seconds <= 59 and span <= timedelta(hours=18)


def normalise_zone(text: str) -> str:
    """A zone id of Java's, as it is spelled: sessions tell it by its own name. ValueError for one that nobody knows."""
    zone = name = text.strip()
    if zone in ("Z", "UTC", "GMT", "UT"):
        return name
    for prefix in ("UTC", "GMT", "UT"):
        if zone.startswith((prefix + "+", prefix + "-")):
            zone = zone[len(prefix) :]
            break
    if _is_offset(zone) or zone in _SHORT_ZONES or zone in zoneinfo.available_timezones() - _NOT_JAVAS:
        return name
    raise ValueError(f"cannot resolve the given timezone '{text}'")


def _fixed(key: str, default: str, what: str, *aliases: str, on_spark: bool = False) -> SessionSetting:
    parse = _bool if default in ("true", "false") else one_of(default)
    return SessionSetting(key, default, parse, what, aliases, True, on_spark)


_sparks = partial(_fixed, on_spark=True)


SESSION_SETTINGS: tuple[SessionSetting, ...] = (
    SessionSetting(
        TIMEZONE,
        DEFAULT_ZONE,
        normalise_zone,
        "zone of timestamp texts and of current_date",
        ("spark.sql.session.timeZone", "time_zone"),
    ),
    SessionSetting(
        STATEMENT_TIMEOUT,
        "0",
        _timeout,
        "longest run of a statement in seconds, 0 to 172800; 0: the server's",
    ),
    SessionSetting(
        USE_CACHED_RESULT,
        "true",
        _bool,
        "`false`: computed anew, even if the tables have not changed",
    ),
    SessionSetting(QUERY_TAGS, "", _text, "accepted, key:value,…; no effect yet"),
    SessionSetting(ENGINE, "auto", one_of("auto", "datafusion", "spark"), "which engine runs a statement"),
    SessionSetting(TIMESTAMP_AS_STRING, "false", _bool, "Arrow results carry timestamps as text"),
    SessionSetting(METRIC_VIEWS, "false", _bool, "accepted; there are no metric views"),
    SessionSetting(
        "max_file_partition_bytes",
        "128m",
        _text,
        "accepted, no effect",
        ("spark.sql.files.maxPartitionBytes",),
    ),
    SessionSetting("read_only_external_metastore", "false", _bool, "accepted, no effect"),
    _sparks(ANSI_MODE, "true", "ANSI errors on overflow, bad casts and division by zero", "spark.sql.ansi.enabled"),
    _sparks("legacy_time_parser_policy", "corrected", "datetime patterns", "spark.sql.legacy.timeParserPolicy"),
    _fixed("enable_photon", "true", "vectorised execution"),
    _fixed("spark.sql.caseSensitive", "false", "names are matched without case"),
    _sparks("spark.sql.storeAssignmentPolicy", "ansi", "casts on INSERT"),
    _sparks("spark.sql.timestampType", "timestamp_ltz", "meaning of TIMESTAMP"),
    _sparks("spark.sql.crossJoin.enabled", "true", "joins without a condition"),
    SessionSetting(GROUP_BY_ORDINAL, "true", _bool, "GROUP BY 1 names the first select item"),
    SessionSetting(GROUP_BY_ALIASES, "true", _bool, "GROUP BY may name aliases of select items"),
    SessionSetting(ORDER_BY_ORDINAL, "true", _bool, "ORDER BY 1 names the first select item"),
    _fixed("spark.sql.parser.escapedStringLiterals", "false", "backslash escapes in string literals"),
    _sparks("spark.sql.parser.quotedRegexColumnNames", "false", "regular expressions as column names"),
    SessionSetting(PRECISION_LOSS, "true", _bool, "decimal arithmetic beyond 38 digits gives up fractional digits"),
    _sparks("spark.sql.function.eltOutputAsString", "false", "type of elt"),
    _sparks("spark.sql.function.concatBinaryAsString", "false", "type of concat"),
    _sparks("spark.sql.mapKeyDedupPolicy", "exception", "duplicate map keys"),
    _sparks("spark.sql.ansi.enforceReservedKeywords", "false", "reserved words as names"),
    _fixed("spark.sql.ansi.doubleQuotedIdentifiers", "false", "double quotes enclose strings"),
    SessionSetting(
        OVERWRITE_MODE,
        "static",
        one_of("static", "dynamic"),
        "`dynamic`: INSERT OVERWRITE replaces the partitions that get rows, not all",
    ),
    SessionSetting(
        DELETION_VECTORS,
        "true",
        _bool,
        "`true`: new tables have deletion vectors, if CREATE TABLE does not say otherwise",
    ),
)

# Spark settings that change speed or layout, never an answer.
_TUNING_KEYS = frozenset(
    {
        "spark.sql.autobroadcastjointhreshold",
        "spark.sql.broadcasttimeout",
        "spark.sql.leafnodedefaultparallelism",
        "spark.sql.shuffle.partitions",
        "spark.sql.files.maxrecordsperfile",
        "spark.sql.files.opencostinbytes",
        "spark.sql.join.prefersortmergejoin",
        "spark.sql.cbo.enabled",
        "spark.sql.inmemorycolumnarstorage.batchsize",
        "spark.sql.execution.arrow.pyspark.enabled",
        "spark.app.name",
        "spark.default.parallelism",
    }
)
_TUNING_PREFIXES = (
    "spark.sql.adaptive.",
    "spark.sql.codegen.",
    "spark.sql.statistics.",
    "spark.databricks.adaptive.",
    "spark.databricks.io.cache.",
    "spark.databricks.optimizer.",
    "spark.databricks.delta.optimizewrite.",
    "spark.databricks.delta.autocompact.",
    "spark.databricks.photon.",
)
# Of these each statement on Spark would plan as many tasks, in the memory of all.
_COUNTS_OF_TASKS = frozenset(
    {
        "spark.sql.shuffle.partitions",
        "spark.sql.leafnodedefaultparallelism",
        "spark.sql.adaptive.coalescepartitions.initialpartitionnum",
        "spark.sql.adaptive.coalescepartitions.minpartitionnum",
    }
)
_MOST_TASKS = 10_000
_NANOSECONDS = "spark.sql.timestampnanostypes.enabled"
# Spark settings that change answers, and that only Spark honours.
_SPARK_KEYS = frozenset(
    {
        "spark.sql.binaryoutputstyle",
        "spark.sql.prioritizeordinalresolutioninsort.enabled",
        _NANOSECONDS,
    }
)
_SPARK_PREFIXES = ("spark.sql.legacy.", "spark.sql.optimizer.")
_NOT_OF_A_SESSION = (
    "parser.",
    "escape",
    "quot",
    "path",
    "catalog",
    "reject",
    "location",
    "excludedrules",
    "viewschema",
)
_BY_KEY = {alias.lower(): s for s in SESSION_SETTINGS for alias in (s.key, *s.aliases)}


def is_tuning(key: str) -> bool:
    """Whether `key` is one of Spark's settings that cannot change an answer."""
    lower = key.lower()
    # A class would be loaded into the JVM of all.
    return lower in _TUNING_KEYS or (lower.startswith(_TUNING_PREFIXES) and "class" not in lower)


def find_setting(key: str) -> SessionSetting | None:
    """The setting that `key` (any spelling, any alias) names."""
    return _BY_KEY.get(key.strip().lower())


def is_sparks(key: str) -> bool:
    """Whether `key` is one of Spark's settings that change answers, but neither how a text is read nor what it may reach."""
    lower = key.lower()
    legacy = lower.startswith(_SPARK_PREFIXES) and not any(word in lower for word in _NOT_OF_A_SESSION)
    return lower in _SPARK_KEYS or legacy


def honoured_by_spark(settings: Mapping[str, str]) -> dict[str, str]:
    """Those of a session's settings whose values only Spark honours, by Spark's keys."""
    found = {}
    for key, value in settings.items():
        setting = _BY_KEY.get(key.lower())
        if setting is None and is_sparks(key):
            found[key] = value
        elif setting is not None and setting.fixed and value != setting.default:
            found[setting.sparks_name] = value
    return found


def is_honoured(key: str) -> bool:
    """Whether `key` is one that `honoured_by_spark` may answer."""
    return is_sparks(key) or any(s.fixed and key in (s.key, *s.aliases) for s in SESSION_SETTINGS)


def keeps_nanoseconds(settings: Mapping[str, str]) -> bool:
    """Whether a session has Spark's types of timestamps with nanoseconds."""
    return any(key.lower() == _NANOSECONDS and value.strip().lower() == "true" for key, value in settings.items())


def normalise_setting(key: str, value: str, spark: bool = False) -> tuple[str, str] | None:
    """Canonical key and value; None for a key that is unknown (the caller decides whether that is an error).

    With `spark`, values that only Spark honours are taken too.

    Raises UserError (INVALID_CONF_VALUE…) for a bad value and UnsupportedError for a known one that is not available here.
    """
    setting = find_setting(key)
    if setting is None and spark and is_sparks(key.strip()):
        return key.strip(), value
    if setting is None:
        return (
            (key.strip(), _tuning(key.strip(), value)) if is_tuning(key.strip()) else None
        )  # Spark tells its keys apart by case
    try:
        text = setting.parse(value.strip())
    except ValueError as error:
        if spark and setting.on_spark and setting.parse is not _bool:
            return setting.key, value.strip().lower()
        if setting.fixed:
            raise _refusal(setting, key, value) from None
        if setting.key == TIMEZONE:
            raise UserError(
                "INVALID_CONF_VALUE.TIME_ZONE",
                f"The value '{value}' in the config \"{key}\" is invalid. Cannot resolve the given timezone.",
            ) from None
        raise UserError(
            "INVALID_CONF_VALUE.REQUIREMENT", f"The value '{value}' in the config \"{key}\" is invalid: {error}."
        ) from None
    if setting.fixed and text != setting.default and not (spark and setting.on_spark):
        raise _refusal(setting, key, value)
    return setting.key, text


def _tuning(key: str, value: str) -> str:
    """The value of a tuning setting; UserError for a number of tasks that Spark has no room for."""
    text = value.strip()
    if (
        key.lower() not in _COUNTS_OF_TASKS or text.lower() == "auto"
    ):  # Databricks' word, by which Spark finds it itself
        return value
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST_TASKS))
    if digits and 1 <= int(text) <= _MOST_TASKS:
        return value
    raise UserError(
        "INVALID_CONF_VALUE.REQUIREMENT",
        f"The value '{value}' in the config \"{key}\" is invalid: it is a whole number from 1 to {_MOST_TASKS}.",
    )


def _refusal(setting: SessionSetting, key: str, value: str) -> UnsupportedError:
    return UnsupportedError(
        "UNSUPPORTED_FEATURE.SET_VALUE",
        f"Setting {key} to '{value}' is not supported ({setting.help}); only '{setting.default}' is.",
    )


@cache
def default_settings() -> Mapping[str, str]:
    """Canonical key to default, of all settings."""
    return {s.key: s.default for s in SESSION_SETTINGS}


def session_settings_markdown() -> str:
    """The part of docs/settings.md about sessions, made from `SESSION_SETTINGS`."""
    lines = [
        "## Session settings",
        "",
        "For `SET key = value`, the session configuration of clients and per-statement overlays. Keys are matched without",
        "case. Other values of those marked *fixed* would change what statements mean and are refused. With `--spark`,",
        "other values of those marked *Spark* are taken, as are `spark.sql.legacy.*` and `spark.sql.optimizer.*`: the",
        "session's statements then run on Spark until the setting is RESET, and no temporary function can be made. Its pure",
        "tuning keys (`spark.sql.shuffle.partitions`, `spark.sql.adaptive.*`, …) hold for what runs on Spark, spelt with the",
        "case that Spark gives them; on the embedded engine they have no effect. Numbers of partitions end at 10,000, and none",
        "names a class.",
        "",
        "| key | also | default | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for s in SESSION_SETTINGS:
        also = ", ".join(f"`{a}`" for a in s.aliases)
        default = f"`{s.default}`" if s.default else ""
        lines.append(
            f"| `{s.key}` | {also} | {default}{' *Spark*' if s.on_spark else ' *fixed*' if s.fixed else ''} | {s.help} |"
        )
    return "\n".join(lines) + "\n"
