"""VARIANT: values made of JSON, and the JSON of values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.casts import caster
from gateway.engine.functions.distinct import per_distinct, scalar
from gateway.instants import Zone, known_zone
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    decimal,
    is_integral,
    is_string,
)
from gateway.variants import (
    MalformedError,
    OddError,
    as_json,
    is_null,
    of_json,
    of_scalar,
    part_of,
    scalar_of,
    unwrapped,
    wrapped,
)

_TYPES = {t.name: t for t in (BOOLEAN, BIGINT, DOUBLE, FLOAT, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ)}


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
    return _json(*_unwrapped(value), known_zone(time_zone))


def _json(metadata: bytes, value: bytes, zone: Zone) -> str:
    """`as_json`, whose error is the row's."""
    try:
        return as_json(metadata, value, zone)
    except (MalformedError, OddError) as error:
        raise _told(error) from None


@scalar("variant_get")
def variant_get(value: str, steps: tuple[str | int, ...]) -> str | None:
    """What lies within a VARIANT, as one; NULL for nothing."""
    try:
        found = part_of(*unwrapped(value), steps)
        return None if found is None else wrapped(*found)
    except (MalformedError, OddError) as error:
        raise _told(error) from None


@implementation("variant_cast")
def variant_cast(spec: UdfSpec) -> Kernel:
    """A VARIANT as a value of another type; params: zone, whether it only tries, the names of the types that may become it."""
    time_zone, tries, castable = spec.params
    zone, target = known_zone(time_zone), spec.returns

    def kernel(array: pa.Array) -> pa.Array:
        encoded = array.dictionary_encode()
        values = [_unwrapped(text) for text in encoded.dictionary.to_pylist()]
        groups: dict[DataType, tuple[list[int], list[Any]]] = {}
        failed: list[int] = []
        for i, (metadata, value) in enumerate(values):
            try:
                name, found = scalar_of(value)
            except (MalformedError, OddError) as error:
                raise _told(error) from None
            if name in ("OBJECT", "ARRAY") and target == STRING:
                name, found = "STRING", _json(metadata, value, zone)
            if name == "VOID":
                continue
            if name not in castable or (target == TIMESTAMP and _leaves_time(name, found)):
                failed.append(i)
                continue
            places, members = groups.setdefault(_type_of(name, found), ([], []))
            places.append(i)
            members.append(found)
        arrays, order = [pa.nulls(1, target.arrow())], np.zeros(len(values), dtype=np.int64)
        size = 1
        for source, (places, members) in groups.items():
            done = caster(source, target, zone, True)(pa.array(members, source.arrow()))
            failed += [places[i] for i in np.flatnonzero(pc.is_null(done).to_numpy(zero_copy_only=False))]
            order[places] = np.arange(size, size + len(places))
            size += len(places)
            arrays.append(done)
        if failed and not tries:
            shown = _json(*values[min(failed)], zone)
            raise RowError(
                "INVALID_VARIANT_CAST",
                f"The variant value `{shown}` cannot be cast into `{target.sql}`. Please use `try_variant_get` instead.",
            )
        return pa.concat_arrays(arrays).take(pa.array(order)).take(encoded.indices)

    return kernel


def _unwrapped(text: str) -> tuple[bytes, bytes]:
    """`unwrapped`, whose error is the row's."""
    try:
        return unwrapped(text)
    except MalformedError as error:
        raise _told(error) from None


def _type_of(name: str, value: Any) -> DataType:
    if name != "DECIMAL":
        return _TYPES[name]
    _, digits, exponent = value.as_tuple()
    scale = max(-exponent, 0)
    return decimal(max(len(digits) + max(exponent, 0), scale), scale)


def _leaves_time(name: str, value: Any) -> bool:
    """Whether seconds are more than a TIMESTAMP holds, to which a cast of other values gives its last one."""
    return name in ("BIGINT", "DECIMAL") and not -(2**63) <= value * 1_000_000 < 2**63


@implementation("variant_of")
def variant_of(spec: UdfSpec) -> Kernel:
    """A value of another type as a VARIANT."""
    source = spec.args[0]
    name = "BIGINT" if is_integral(source) else "STRING" if is_string(source) else source.name
    stored = {"DATE": pa.int32(), "TIMESTAMP": pa.int64(), "TIMESTAMP_NTZ": pa.int64()}.get(name)

    def kernel(array: pa.Array) -> pa.Array:
        plain = array if stored is None else array.cast(stored)
        return per_distinct(lambda value: wrapped(*of_scalar(name, value)), (plain,), pa.string())

    return kernel


@scalar("is_variant_null", strict=False)
def is_variant_null(value: str | None) -> bool:
    """Whether a VARIANT is JSON's null; SQL's NULL is none."""
    try:
        return value is not None and is_null(unwrapped(value)[1])
    except MalformedError as error:
        raise _told(error) from None
