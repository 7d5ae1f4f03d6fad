"""VARIANT: values made of JSON, and the JSON of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import MAX_TEXT_BYTES, Kernel, RowError, implementation, too_long
from gateway.engine.functions.casts import (
    Caster,
    Variants,
    caster,
    list_parts,
    rebuilt_list,
    rebuilt_map,
    struct_children,
)
from gateway.engine.functions.distinct import per_distinct, scalar
from gateway.engine.functions.lists import Lists, built
from gateway.instants import UTC, Zone, known_zone
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
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructType,
    decimal,
    has_variant,
    is_integral,
    is_nested,
    is_string,
)
from gateway.variant_building import NULL, Document, MalformedError, Members, OddError, of_document, of_json, of_scalar
from gateway.variants import as_json, document_of, is_null, part_of, scalar_of, unwrapped, wrapped

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


def told(error: MalformedError | OddError) -> RowError:
    """The error of the row whose VARIANT it is."""
    if isinstance(error, OddError):
        return _odd(error)
    return RowError("MALFORMED_VARIANT", "Variant binary is malformed. Please check the data source is valid.")


@scalar("variant_json")
def variant_json(value: str, time_zone: str) -> str:
    """The JSON of a VARIANT."""
    return json_of(value, known_zone(time_zone))


def json_of(value: str, zone: Zone) -> str:
    """The JSON of a VARIANT, times as a zone has them."""
    return _json(*unwrapped_value(value), zone)


def _json(metadata: bytes, value: bytes, zone: Zone) -> str:
    """`as_json`, whose error is the row's."""
    try:
        return as_json(metadata, value, zone)
    except (MalformedError, OddError) as error:
        raise told(error) from None


@scalar("variant_get")
def variant_get(value: str, steps: tuple[str | int, ...] | str) -> str | None:
    """What lies within a VARIANT, as one; NULL for nothing. In the place of `steps` what is wrong with the path."""
    if isinstance(steps, str):
        raise RowError("INVALID_VARIANT_GET_PATH", steps)
    try:
        found = part_of(*unwrapped(value), steps)
        return None if found is None else wrapped(*found)
    except (MalformedError, OddError) as error:
        raise told(error) from None


@implementation("variant_cast")
def variant_cast(spec: UdfSpec) -> Kernel:
    """A VARIANT as a value of another type.

    params: zone, whether it only tries, and for each scalar type to be made the names of those that may become it.
    """
    time_zone, tries, castable = spec.params
    zone, target = known_zone(time_zone), spec.returns

    def kernel(array: pa.Array) -> pa.Array:
        encoded = array.dictionary_encode()
        values = [unwrapped_value(text) for text in encoded.dictionary.to_pylist()]
        casts = _Casts(zone, dict(castable))
        try:
            if is_nested(target):
                places: list[_Place] = [(i,) for i in range(len(values))]
                made = casts.cast([document_of(*value) for value in values], places, target)
            else:
                items = [(*scalar_of(value), partial(_json, metadata, value, zone)) for metadata, value in values]
                made = casts.scalars(items, [(i,) for i in range(len(items))], target)
            if casts.failed and not tries:
                _, shown, wanted = min(casts.failed, key=lambda one: one[0])
                text = f'The variant value `{shown()}` cannot be cast into `"{wanted.sql}"`.'
                raise RowError("INVALID_VARIANT_CAST", f"{text} Please use `try_variant_get` instead.")
        except (MalformedError, OddError) as error:
            raise told(error) from None
        return made.take(encoded.indices)

    return kernel


@implementation("cast_within")
def cast_within(spec: UdfSpec) -> Kernel:
    """A value that holds VARIANTs, or that becomes one which does; params as of `variant_cast`."""
    time_zone, tries, _ = spec.params

    def cast(source: DataType, target: DataType) -> Caster:
        made = replace(spec, args=(source,), returns=target)
        return variant_of(made) if target == VARIANT else variant_cast(made)

    kernel: Kernel = caster(spec.args[0], spec.returns, known_zone(time_zone), tries, Variants(cast, _printed))
    return kernel


def _printed(array: pa.Array) -> pa.Array:
    """The JSON of VARIANTs, times as UTC has them: so Spark prints them within other values."""
    return per_distinct(partial(json_of, zone=UTC), (array,), pa.string())


@implementation("variants_shown")
def variants_shown(spec: UdfSpec) -> Kernel:
    """A value with the JSON of each VARIANT in its place; params: the session's time zone."""
    (time_zone,) = spec.params
    zone = known_zone(time_zone)

    def shown(array: pa.Array) -> pa.Array:
        return per_distinct(partial(json_of, zone=zone), (array,), pa.string())

    return _replaced(spec.args[0], shown)


def _replaced(source: DataType, change: Caster) -> Caster:
    """What gives values of a type with each VARIANT changed to another text."""
    if source == VARIANT:
        return change
    if not has_variant(source):
        return lambda array: array
    arrow, inner = source.arrow(), [_replaced(child, change) for child in source.children()]

    def kernel(array: pa.Array) -> pa.Array:
        if isinstance(source, StructType):
            members = [f(a) for f, a in zip(inner, struct_children(array), strict=True)]
            return pa.StructArray.from_arrays(members, fields=list(arrow), mask=array.is_null())
        offsets, values = list_parts(array)
        if isinstance(source, ArrayType):
            return rebuilt_list(array, offsets, inner[0](values), arrow)
        keys, items = (f(a) for f, a in zip(inner, struct_children(values), strict=True))
        return rebuilt_map(array, offsets, keys, items, arrow)

    return kernel


_Place = tuple[int, ...]  # of a value: the row, then where it lies within
_Item = tuple[str, Any, Callable[[], str]]  # a scalar's type and what it is, and its JSON


@dataclass(slots=True)
class _Casts:
    """Values on their way to another type, one array for all of one depth."""

    zone: Zone
    castable: Mapping[str, Sequence[str]]
    failed: list[tuple[_Place, Callable[[], str], DataType]] = field(default_factory=list)

    def cast(self, documents: Sequence[Document | None], places: Sequence[_Place], target: DataType) -> pa.Array:
        """`documents` as `target`, None and what fails as NULL."""
        if target == VARIANT:
            texts = [None if d is None else wrapped(*of_document(d)) for d in documents]
            if sum(len(text) for text in texts if text is not None) > MAX_TEXT_BYTES:
                raise too_long("CAST")
            return pa.array(texts, pa.string())
        match target:
            case ArrayType():
                return self._arrays(documents, places, target)
            case MapType():
                return self._maps(documents, places, target)
            case StructType():
                return self._structs(documents, places, target)
        return self.scalars([self._item(document) for document in documents], places, target)

    def _item(self, document: Document | None) -> _Item:
        shown = partial(self._shown, document)
        if document is None:
            return "VOID", None, shown
        if isinstance(document, bytes):
            return (*scalar_of(document), shown)
        return ("OBJECT" if isinstance(document, Members) else "ARRAY"), None, shown

    def _shown(self, document: Document | None) -> str:
        return _json(*of_document(NULL if document is None else document), self.zone)

    def scalars(self, items: Sequence[_Item], places: Sequence[_Place], target: DataType) -> pa.Array:
        """Scalars as another type."""
        groups: dict[DataType, tuple[list[int], list[Any]]] = {}
        failed: list[int] = []
        known = self.castable[target.name]
        for i, (name, found, shown) in enumerate(items):
            if name in ("OBJECT", "ARRAY") and target == STRING:
                name, found = "STRING", shown()
            if name == "VOID":
                continue
            if name not in known or (target == TIMESTAMP and _leaves_time(name, found)):
                failed.append(i)
                continue
            at, members = groups.setdefault(_type_of(name, found), ([], []))
            at.append(i)
            members.append(found)
        arrays, order = [pa.nulls(1, target.arrow())], np.zeros(len(items), dtype=np.int64)
        size = 1
        for source, (at, members) in groups.items():
            done = caster(source, target, self.zone, True, doubled=True)(pa.array(members, source.arrow()))
            failed += [at[i] for i in np.flatnonzero(pc.is_null(done).to_numpy(zero_copy_only=False))]
            order[at] = np.arange(size, size + len(at))
            size += len(at)
            arrays.append(done)
        self.failed += [(places[i], items[i][2], target) for i in failed]
        return pa.concat_arrays(arrays).take(pa.array(order))

    def _mask(
        self, documents: Sequence[Document | None], places: Sequence[_Place], kind: type, target: DataType
    ) -> npt.NDArray[np.bool_]:
        """Which of the values are none of a kind; but for NULLs they are failures."""
        missing = [not isinstance(document, kind) for document in documents]
        for i, document in enumerate(documents):
            if missing[i] and document is not None and not (isinstance(document, bytes) and is_null(document)):
                self.failed.append((places[i], partial(self._shown, document), target))
        return np.array(missing, dtype=np.bool_)

    def _arrays(self, documents: Sequence[Document | None], places: Sequence[_Place], target: ArrayType) -> pa.Array:
        missing = self._mask(documents, places, list, target)
        lists: list[list[Document]] = [d if isinstance(d, list) else [] for d in documents]
        inner = [(*places[i], j) for i, one in enumerate(lists) for j in range(len(one))]
        values = self.cast([e for one in lists for e in one], inner, target.element)
        return built(np.array([len(one) for one in lists], dtype=np.int64), values, missing, target.arrow())

    def _maps(self, documents: Sequence[Document | None], places: Sequence[_Place], target: MapType) -> pa.Array:
        missing = self._mask(documents, places, Members, target)
        pairs: list[list[tuple[str, Document]]] = [d.pairs if isinstance(d, Members) else [] for d in documents]
        inner = [(*places[i], j) for i, one in enumerate(pairs) for j in range(len(one))]
        values = self.cast([value for one in pairs for _, value in one], inner, target.value)
        keys = pa.array([name for one in pairs for name, _ in one], pa.string())
        type_ = target.arrow()
        entries = pa.StructArray.from_arrays([keys, values], fields=[type_.key_field, type_.item_field])
        return built(np.array([len(one) for one in pairs], dtype=np.int64), entries, missing, type_)

    def _structs(self, documents: Sequence[Document | None], places: Sequence[_Place], target: StructType) -> pa.Array:
        missing = self._mask(documents, places, Members, target)
        found = [dict(d.pairs) if isinstance(d, Members) else {} for d in documents]
        order = sorted(range(len(target.fields)), key=lambda i: target.fields[i].name)
        made: dict[int, pa.Array] = {}
        for rank, i in enumerate(order):
            one = target.fields[i]
            made[i] = self.cast([d.get(one.name) for d in found], [(*place, rank) for place in places], one.type)
        arrays = [made[i] for i in range(len(target.fields))]
        return pa.StructArray.from_arrays(arrays, fields=list(target.arrow()), mask=pa.array(missing))


def unwrapped_value(text: str) -> tuple[bytes, bytes]:
    """`unwrapped`, whose error is the row's."""
    try:
        return unwrapped(text)
    except MalformedError as error:
        raise told(error) from None


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
    if is_nested(source):
        return _nested_of(source)
    name, stored = _stored(source)

    def kernel(array: pa.Array) -> pa.Array:
        plain = array if stored is None else array.cast(stored)
        return per_distinct(lambda value: wrapped(*of_scalar(name, value)), (plain,), pa.string())

    return kernel


def _stored(source: DataType) -> tuple[str, pa.DataType | None]:
    """What `of_scalar` calls a type, and as what its values are read."""
    name = "BIGINT" if is_integral(source) else "STRING" if is_string(source) else source.name
    return name, {"DATE": pa.int32(), "TIMESTAMP": pa.int64(), "TIMESTAMP_NTZ": pa.int64()}.get(name)


def _nested_of(source: DataType) -> Kernel:
    def kernel(array: pa.Array) -> pa.Array:
        try:
            values = [None if d is None else wrapped(*of_document(d)) for d in _documents(array, source)]
        except (MalformedError, OddError) as error:
            raise told(error) from None
        if sum(len(v) for v in values if v is not None) > MAX_TEXT_BYTES:
            raise too_long("to_variant_object")
        return pa.array(values, pa.string())

    return kernel


def _documents(array: pa.Array, source: DataType) -> list[Document | None]:
    """Values of a type in parts; None for NULL."""
    valid = array.is_valid().to_pylist()
    if isinstance(source, StructType):
        columns = [_within(c, f.type) for c, f in zip(struct_children(array), source.fields, strict=True)]
        names = [f.name for f in source.fields]
        rows = zip(*columns, strict=True) if columns else iter(())
        made: list[Document | None] = [Members(list(zip(names, row, strict=True))) for row in rows]
        return [d if there else None for d, there in zip(made or [Members([])] * len(array), valid, strict=True)]
    if isinstance(source, (ArrayType, MapType)):
        lists = Lists(array)
        if isinstance(source, ArrayType):
            inner: list[Any] = _within(lists.values, source.element)
        else:
            keys, values = struct_children(lists.values)
            inner = list(zip(keys.to_pylist(), _within(values, source.value), strict=True))
        ends = lists.starts + lists.lengths
        parts = [inner[a:b] for a, b in zip(lists.starts.tolist(), ends.tolist(), strict=True)]
        of = list if isinstance(source, ArrayType) else Members
        return [of(part) if there else None for part, there in zip(parts, valid, strict=True)]
    if source == VARIANT:
        return [None if text is None else document_of(*unwrapped_value(text)) for text in array.to_pylist()]
    name, stored = _stored(source)
    scalars = (array if stored is None else array.cast(stored)).to_pylist()
    return [None if value is None else of_scalar(name, value)[1] for value in scalars]


def _within(array: pa.Array, source: DataType) -> list[Document]:
    """The same within another value, where NULL is JSON's null."""
    return [NULL if document is None else document for document in _documents(array, source)]


@implementation("variant_rows")
def variant_rows(spec: UdfSpec) -> Kernel:
    """The values within a VARIANT with their places and names, as ARRAY<STRUCT<…>>; params: whether none is a row of NULLs."""
    (outer,) = spec.params
    type_ = spec.returns.arrow()
    nothing: list[tuple[int | None, str | None, str | None]] = [(None, None, None)] if outer else []

    def parts(text: str | None) -> list[tuple[int | None, str | None, str | None]]:
        if text is None:
            return nothing
        try:
            document = document_of(*unwrapped_value(text))
            pairs: Iterable[tuple[str | None, Document]] = (
                document.pairs
                if isinstance(document, Members)
                else ((None, inner) for inner in (document if isinstance(document, list) else ()))
            )
            return [(i, name, wrapped(*of_document(inner))) for i, (name, inner) in enumerate(pairs)] or nothing
        except (MalformedError, OddError) as error:
            raise told(error) from None

    def kernel(array: pa.Array) -> pa.Array:
        rows = [parts(text) for text in array.to_pylist()]
        flat = [row for one in rows for row in one]
        if sum(len(text) for _, _, text in flat if text is not None) > MAX_TEXT_BYTES:
            raise too_long("variant_explode")
        columns = [pa.array([row[i] for row in flat], one.type) for i, one in enumerate(type_.value_type)]
        structs = pa.StructArray.from_arrays(columns, fields=list(type_.value_type))
        return built(
            np.array([len(one) for one in rows], dtype=np.int64), structs, np.zeros(len(rows), np.bool_), type_
        )

    return kernel


@scalar("is_variant_null", strict=False)
def is_variant_null(value: str | None) -> bool:
    """Whether a VARIANT is JSON's null; SQL's NULL is none."""
    try:
        return value is not None and is_null(unwrapped(value)[1])
    except MalformedError as error:
        raise told(error) from None
