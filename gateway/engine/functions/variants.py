"""VARIANT: values made of JSON, and the JSON of values."""

from __future__ import annotations

from gateway.engine.functions import RowError
from gateway.engine.functions.distinct import scalar
from gateway.instants import known_zone
from gateway.variants import (
    MalformedError,
    OddError,
    as_json,
    as_text,
    is_null,
    of_json,
    part_of,
    unwrapped,
    wrapped,
)


def _odd(error: OddError) -> RowError:
    text = str(error)
    return RowError("UNSUPPORTED_FEATURE", f"{text[:1].upper()}{text[1:]} is not supported.")


@scalar("parse_json")
def parse_json(text: str, tries: bool) -> str | None:
    """The VARIANT of a text; NULL for one that is no JSON if it only `tries`."""
    try:
        return wrapped(*of_json(text))
    except MalformedError:
        if tries:
            return None
        raise RowError(
            "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
            f"Malformed records are detected in record parsing: {text}.\nParse Mode: FAILFAST. To process malformed records "
            "as null result, try setting the option 'mode' as 'PERMISSIVE'. ",
        ) from None
    except OddError as error:
        raise _odd(error) from None


def _told(error: MalformedError | OddError) -> RowError:
    if isinstance(error, OddError):
        return _odd(error)
    return RowError("MALFORMED_VARIANT", "Variant binary is malformed. Please check the data source is valid.")


@scalar("variant_json")
def variant_json(value: str, time_zone: str) -> str:
    """The JSON of a VARIANT."""
    try:
        return as_json(*unwrapped(value), known_zone(time_zone))
    except (MalformedError, OddError) as error:
        raise _told(error) from None


@scalar("variant_get")
def variant_get(value: str, steps: tuple[str | int, ...], time_zone: str, as_string: bool) -> str | None:
    """What lies within a VARIANT, as one or as a STRING; NULL for nothing."""
    try:
        found = part_of(*unwrapped(value), steps)
        if found is None:
            return None
        return as_text(*found, known_zone(time_zone)) if as_string else wrapped(*found)
    except (MalformedError, OddError) as error:
        raise _told(error) from None


@scalar("is_variant_null", strict=False)
def is_variant_null(value: str | None) -> bool:
    """Whether a VARIANT is JSON's null; SQL's NULL is none."""
    try:
        return value is not None and is_null(unwrapped(value)[1])
    except MalformedError as error:
        raise _told(error) from None
