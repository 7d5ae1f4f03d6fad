"""VARIANT: values made of JSON, and the JSON of values."""

from __future__ import annotations

from gateway.engine.functions import RowError
from gateway.engine.functions.distinct import scalar
from gateway.instants import known_zone
from gateway.variants import MalformedError, OddError, as_json, of_json, unwrapped, wrapped


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


@scalar("variant_json")
def variant_json(value: str, time_zone: str) -> str:
    """The JSON of a VARIANT."""
    try:
        return as_json(*unwrapped(value), known_zone(time_zone))
    except MalformedError:
        text = "Variant binary is malformed. Please check the data source is valid."
        raise RowError("MALFORMED_VARIANT", text) from None
    except OddError as error:
        raise _odd(error) from None
