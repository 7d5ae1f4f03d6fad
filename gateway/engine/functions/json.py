"""JSON functions: Spark's path evaluation, typed reading and writing, on trees made by the standard library's scanner.

Jackson's habits are kept: single quotes and control characters are accepted, text after the document is not read, the first
of equal keys is found by paths, numbers with a fraction are written as Java writes doubles.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import pyarrow as pa

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.distinct import per_distinct, scalar
from gateway.engine.functions.numbers import java_double, java_float
from gateway.engine.functions.patterns import offset_text
from gateway.instants import date_text, known_zone, local_of, parse_date
from gateway.sqltypes import ArrayType, DataType, DecimalType, MapType, StructType, is_integral, struct


@dataclass(slots=True)
class Real:
    """A number with a fraction or exponent, as written."""

    text: str


@dataclass(slots=True)
class Members:
    """An object: its members in order, equal keys included."""

    pairs: list[tuple[str, Any]]


def _constant(text: str) -> Any:
    raise ValueError(text)


_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_float=Real, parse_constant=_constant, strict=False)
#: from_json takes NaN and the infinities, but no control characters.
_TYPED = json.JSONDecoder(object_pairs_hook=Members, parse_float=Real, parse_constant=Real, strict=True)
_SPACE = " \t\n\r"
_DEEPEST = 1000


def parsed(text: str, decoder: json.JSONDecoder = _DECODER) -> Any:
    """The document at the start of `text`; raises ValueError where Jackson would."""
    start = 0
    while start < len(text) and text[start] in _SPACE:
        start += 1
    try:
        return _decoded(text, start, decoder)
    except ValueError:
        if "'" not in text:
            raise
        return _decoded(_double_quoted(text[start:]), 0, decoder)


def _decoded(text: str, start: int, decoder: json.JSONDecoder) -> Any:
    if text.count("[") + text.count("{") > _DEEPEST and _is_too_deep(text, start):
        raise ValueError("nested too deeply")
    try:
        return decoder.raw_decode(text, start)[0]
    except RecursionError:
        raise ValueError("nested too deeply") from None


_MARK = re.compile(r'[\[\]{}"]|\\.', re.DOTALL)


def _is_too_deep(text: str, start: int) -> bool:
    """Whether the document at `start` has more levels than Jackson reads."""
    depth, inside = 0, False
    for found in _MARK.finditer(text, start):
        mark = found[0]
        if mark == '"':
            inside = not inside
        elif not inside and mark in "[{":
            depth += 1
            if depth > _DEEPEST:
                return True
        elif not inside and mark in "]}":
            depth -= 1
            if depth <= 0:
                return False
    return False


def _double_quoted(text: str) -> str:
    """Single-quoted strings rewritten as double-quoted ones."""
    out, at = [], 0
    quote = ""
    while at < len(text):
        char = text[at]
        at += 1
        if not quote:
            quote = char if char in "'\"" else ""
            out.append('"' if quote else char)
        elif char == "\\":
            following = text[at : at + 1]
            out.append(following if following == "'" else char + following)
            at += 1
        elif char == quote:
            quote = ""
            out.append('"')
        else:
            out.append('\\"' if char == '"' else char)
    return "".join(out)


_ESCAPES = {i: f"\\u{i:04X}" for i in range(32)}
_ESCAPES |= {ord("\b"): "\\b", ord("\t"): "\\t", ord("\n"): "\\n", ord("\f"): "\\f", ord("\r"): "\\r"}
_ESCAPES |= {ord('"'): '\\"', ord("\\"): "\\\\"}


def quoted(text: str) -> str:
    """A JSON string as Jackson writes it."""
    return f'"{text.translate(_ESCAPES)}"'


def written(tree: Any) -> str:
    """Compact JSON of a tree."""
    if tree is None:
        return "null"
    if isinstance(tree, bool):
        return "true" if tree else "false"
    if isinstance(tree, int):
        return str(tree)
    if isinstance(tree, Real):
        number = float(tree.text)
        return java_double(number) if math.isfinite(number) else quoted(java_double(number))
    if isinstance(tree, str):
        return quoted(tree)
    if isinstance(tree, list):
        return f"[{','.join(map(written, tree))}]"
    return "{" + ",".join(f"{quoted(k)}:{written(v)}" for k, v in tree.pairs) + "}"


def _utf8(text: str | None) -> str | None:
    """Lone surrogates, which Arrow cannot hold, become question marks."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")


_KEY, _SUBSCRIPT, _WILDCARD = "key", "subscript", "*"


@lru_cache(maxsize=256)
def path_steps(path: str) -> list[Any] | None:
    """Steps of a path, Spark's JsonPathParser: markers "key" / "subscript", then ("name", n), an index or "*"; None: bad."""
    if not path.startswith("$"):
        return None
    at = 1
    steps: list[Any] = []
    while True:
        ahead = _skip(path, at)  # Spark's parser skips blanks before some of its tokens only
        if ahead == len(path):
            return steps
        if path.startswith("['", ahead):
            step = _named(path, ahead)
        elif path.startswith(".*", ahead):
            step = [_WILDCARD], ahead + 2
        elif path[at] == "[":
            step = _subscript(path, at)
        else:
            step = _dotted(path, at) if path[at] == "." else None
        if step is None:
            return None
        steps += step[0]
        at = step[1]


def _skip(path: str, at: int) -> int:
    """Where the next character that is not blank stands."""
    while at < len(path) and path[at] in " \t\n\r\f\v":
        at += 1
    return at


def _named(path: str, at: int) -> tuple[list[Any], int] | None:
    start = _skip(path, at + 2)
    stop = path.find("'", start)
    name = path[start:stop] if stop >= 0 else ""
    if path[stop : stop + 2] != "']" or not name or "?" in name:
        return None
    return ([_WILDCARD] if name == "*" else [_KEY, ("name", name)]), stop + 2


def _subscript(path: str, at: int) -> tuple[list[Any], int] | None:
    if path.startswith("[*]", at):
        return [_SUBSCRIPT, _WILDCARD], at + 3
    start = stop = _skip(path, at + 1)
    while stop < len(path) and path[stop] in "0123456789":
        stop += 1
    if stop == start or path[stop : stop + 1] != "]":
        return None
    return [_SUBSCRIPT, int(path[start:stop])], stop + 1


def _dotted(path: str, at: int) -> tuple[list[Any], int] | None:
    start = _skip(path, at + 1)
    stop = start
    while stop < len(path) and path[stop] not in ".[":
        stop += 1
    name = path[start:stop]
    if not name:
        return None
    return [_KEY, ("name", name)], stop


_RAW, _QUOTED, _FLATTEN = "raw", "quoted", "flatten"


def _evaluate(tree: Any, steps: list[Any], style: str, out: list[str]) -> bool:
    """Spark's GetJsonObject.evaluatePath on a tree: appends what it finds to `out`, says whether it found something."""
    if not steps:
        if isinstance(tree, str) and style == _RAW:
            out.append(tree)
            return True
        if isinstance(tree, list) and style == _FLATTEN:
            found = False
            for item in tree:
                found = _evaluate(item, [], style, out) or found
            return found
        out.append(written(tree))
        return True
    if isinstance(tree, Members) and steps[0] == _KEY:
        return any(_member(name, value, steps[1:], style, out) for name, value in tree.pairs)
    if isinstance(tree, list) and steps[0] == _SUBSCRIPT:
        return _elements(tree, steps[1], steps[2:], style, out)
    return False


def _member(name: str, value: Any, steps: list[Any], style: str, out: list[str]) -> bool:
    if steps[0] == _WILDCARD:
        return _evaluate(value, steps[1:], style, out)
    return steps[0] == ("name", name) and value is not None and _evaluate(value, steps[1:], style, out)


def _elements(items: list[Any], which: Any, rest: list[Any], style: str, out: list[str]) -> bool:
    if which != _WILDCARD:
        if which >= len(items):
            return False
        multiple = rest[:2] == [_SUBSCRIPT, _WILDCARD]
        return _evaluate(items[which], rest, _QUOTED if multiple else style, out)
    inner: list[str] = []
    if rest[:2] == [_SUBSCRIPT, _WILDCARD]:
        found = False
        for item in items:
            found = _evaluate(item, rest[2:], _FLATTEN, inner) or found
        out.append(f"[{','.join(inner)}]")
        return found
    if style == _QUOTED:
        found = False
        for item in items:
            found = _evaluate(item, rest, _QUOTED, inner) or found
        out.append(f"[{','.join(inner)}]")
        return found
    hits = sum(_evaluate(item, rest, _QUOTED if style == _RAW else _FLATTEN, inner) for item in items)
    if hits > 1:
        out.append(f"[{','.join(inner)}]")
    elif hits == 1:
        out.append(",".join(inner))
    return hits > 0


@scalar("get_json_object")
def get_json_object(text: str, path: str) -> str | None:
    """What a path finds in a document, as text; NULL for nothing, a bad path or a malformed document."""
    steps = path_steps(path)
    if steps is None:
        return None
    try:
        tree = parsed(text)
    except ValueError:
        return None
    out: list[str] = []
    return _utf8("".join(out)) if _evaluate(tree, steps, _RAW, out) else None


@scalar("json_path")
def json_path(text: str, steps: tuple[tuple[str | int, bool], ...]) -> str | None:
    """What ``text:path`` finds in a document, as text; NULL for nothing and of what is no document.

    A name counts in either case, unless it stands in brackets.
    """
    try:
        tree = parsed(text)
    except ValueError:
        return None
    for step, is_exact in steps:
        if isinstance(step, int):
            tree = tree[step] if isinstance(tree, list) and step < len(tree) else None
            continue
        pairs = tree.pairs if isinstance(tree, Members) else []
        found = [value for key, value in pairs if key == step or (not is_exact and key.lower() == step.lower())]
        if len(found) > 1:
            text = f"A path to the field `{step}`, which is there more than once, is not supported."
            raise RowError("UNSUPPORTED_FEATURE", text)
        tree = found[0] if found else None
    return None if tree is None else _utf8(tree if isinstance(tree, str) else written(tree))


@scalar("json_array_length")
def json_array_length(text: str) -> int | None:
    """Elements of the outermost array; NULL if it is none."""
    try:
        tree = parsed(text)
    except ValueError:
        return None
    return len(tree) if isinstance(tree, list) else None


@scalar("json_object_keys")
def json_object_keys(text: str) -> list[str | None] | None:
    """Keys of the outermost object; NULL if it is none."""
    try:
        tree = parsed(text)
    except ValueError:
        return None
    return [_utf8(k) for k, _ in tree.pairs] if isinstance(tree, Members) else None


@implementation("json_tuple")
def json_tuple(spec: UdfSpec) -> Kernel:
    """One row of the members named by the other arguments, as a list of one struct c0, c1, …."""
    returns = spec.returns.arrow()

    def pick(text: str | None, *names: str | None) -> list[dict[str, str | None]]:
        row: dict[str, str | None] = {f"c{i}": None for i in range(len(names))}
        try:
            tree = parsed(text) if text is not None else None
        except ValueError:
            tree = None
        if isinstance(tree, Members):
            for key, value in tree.pairs:
                for i, name in enumerate(names):
                    if key == name and row[f"c{i}"] is None and value is not None:
                        row[f"c{i}"] = _utf8(value if isinstance(value, str) else written(value))
        return [row]

    def kernel(*arrays: pa.Array) -> pa.Array:
        return per_distinct(pick, arrays, returns, strict=False)

    return kernel


def _writer(t: DataType, zone_name: str) -> Callable[[Any], str]:
    """A function that writes one non-NULL Arrow value of type `t` as Spark's to_json does."""
    if t.name == "STRING" or t.name in ("CHAR", "VARCHAR"):
        return quoted
    if t.name == "BOOLEAN":
        return lambda v: "true" if v else "false"
    if is_integral(t):
        return str
    if isinstance(t, DecimalType):
        return str  # as BigDecimal's text: with an exponent where more than five zeros stand behind the point
    if t.name in ("DOUBLE", "FLOAT"):
        text = java_double if t.name == "DOUBLE" else java_float
        return lambda v: text(v) if math.isfinite(v) else quoted(text(v))
    if t.name == "BINARY":
        return lambda v: quoted(base64.b64encode(v).decode("ascii"))
    if t.name == "DATE":
        return lambda v: quoted(date_text(v))
    if t.name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return _stamp_writer(t.name == "TIMESTAMP", zone_name)
    if t.name == "VOID":
        return lambda v: "null"
    if isinstance(t, ArrayType):
        item = _writer(t.element, zone_name)
        return lambda v: f"[{','.join('null' if x is None else item(x) for x in v)}]"
    if isinstance(t, MapType):
        value = _writer(t.value, zone_name)
        return lambda v: "{" + ",".join(f"{quoted(k)}:{'null' if x is None else value(x)}" for k, x in v) + "}"
    if isinstance(t, StructType):
        fields = [(f'"{f.name.translate(_ESCAPES)}":', _writer(f.type, zone_name)) for f in t.fields]
        return lambda v: "{" + ",".join(k + w(x) for (k, w), x in zip(fields, v, strict=True) if x is not None) + "}"
    raise TypeError(t.sql)


def _stamp_writer(zoned: bool, zone_name: str) -> Callable[[int], str]:
    zone = known_zone(zone_name)

    def text(micros: int) -> str:
        local = local_of(micros, zone) if zoned else micros
        days, rest = divmod(local // 1000, 86_400_000)
        seconds, millis = divmod(rest, 1000)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis:03d}"
        suffix = ""
        if zoned:
            suffix = offset_text((local - micros) // 1_000_000, "X", 5)
        return quoted(f"{date_text(days)}T{clock}{suffix}")

    return text


def _plain_values(array: pa.Array, t: DataType) -> list[Any]:
    """Python values that the writers take: dates and timestamps as integers, structs as tuples."""
    if t.name == "DATE":
        return list(array.cast(pa.int32()).to_pylist())
    if t.name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return list(array.cast(pa.int64()).to_pylist())
    if isinstance(t, StructType):
        columns = [_plain_values(c, f.type) for c, f in zip(array.flatten(), t.fields, strict=True)]
        valid = array.is_valid().to_pylist()
        rows = zip(*columns, strict=True) if columns else iter([()] * len(array))
        return [row if ok else None for ok, row in zip(valid, rows, strict=True)]
    if isinstance(t, ArrayType):
        values = _plain_values(array.flatten(), t.element)
        return _regrouped(array, values)
    if isinstance(t, MapType):
        keys, items = _plain_values(array.keys, t.key), _plain_values(array.items, t.value)
        offsets = array.offsets.to_pylist()
        base = offsets[0]
        pairs = list(zip(keys, items, strict=True))
        valid = array.is_valid().to_pylist()
        return [
            pairs[a - base : b - base] if ok else None
            for ok, a, b in zip(valid, offsets[:-1], offsets[1:], strict=True)
        ]
    return list(array.to_pylist())


def _regrouped(array: pa.ListArray, values: list[Any]) -> list[Any]:
    out: list[Any] = []
    at = 0
    for size in array.value_lengths().to_pylist():
        if size is None:
            out.append(None)
        else:
            out.append(values[at : at + size])
            at += size
    return out


@implementation("to_json")
def to_json(spec: UdfSpec) -> Kernel:
    """to_json of an ARRAY, MAP or STRUCT; params: the session's time zone."""
    (zone_name,) = spec.params
    write = _writer(spec.args[0], zone_name)

    def kernel(value: pa.Array) -> pa.Array:
        rows = _plain_values(value, spec.args[0])
        return pa.array([None if row is None else write(row) for row in rows], pa.string())

    return kernel


CORRUPT = "_corrupt_record"  # the field of from_json's schema that is given a document which does not fit


class _MisfitError(Exception):
    """A JSON value that does not fit its type: NULL in PERMISSIVE mode."""


def _reader(t: DataType, misfits: list[str]) -> Callable[[Any], Any]:
    """A function from a non-null JSON tree to a Python value for Arrow type `t`; raises _MisfitError.

    Fields of structs that do not fit are NULL, and told in `misfits`.
    """
    if t.name == "STRING":
        return _read_string
    if t.name == "BOOLEAN":
        return lambda v: v if isinstance(v, bool) else _bad()
    if is_integral(t):
        half = 1 << (t.arrow().bit_width - 1)
        return lambda v: v if type(v) is int and -half <= v < half else _bad()
    if t.name in ("DOUBLE", "FLOAT"):
        return _read_float
    if isinstance(t, DecimalType):
        return _decimal_reader(t)
    if t.name == "DATE":
        return _read_date
    if isinstance(t, ArrayType):
        item = _reader(t.element, misfits)
        return lambda v: [None if x is None else item(x) for x in v] if isinstance(v, list) else _bad()
    if isinstance(t, MapType):
        value = _reader(t.value, misfits)
        return lambda v: (
            [(k, None if x is None else value(x)) for k, x in v.pairs] if isinstance(v, Members) else _bad()
        )
    if isinstance(t, StructType):
        return _struct_reader(t, misfits)
    raise TypeError(t.sql)


def _bad() -> Any:
    raise _MisfitError


def _read_string(v: Any) -> str | None:
    return _utf8(v if isinstance(v, str) else written(v))


def _read_float(v: Any) -> float:
    if isinstance(v, Real):
        return float(v.text)
    if type(v) is int:
        return float(v)
    special = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
    special |= {"+INF": math.inf, "-INF": -math.inf}
    return special[v] if isinstance(v, str) and v in special else _bad()


def _decimal_reader(t: DecimalType) -> Callable[[Any], Decimal]:
    limit = Decimal(10) ** (t.precision - t.scale)
    step = Decimal(1).scaleb(-t.scale)
    context = Context(prec=100)

    def read(v: Any) -> Decimal:
        text = v.text if isinstance(v, Real) else v.replace(",", "") if isinstance(v, str) else v
        if isinstance(v, bool) or not isinstance(text, (int, str)) or not set(str(text)) <= set("0123456789+-.eE"):
            raise _MisfitError
        try:
            value = Decimal(text).quantize(step, rounding=ROUND_HALF_UP, context=context)
        except InvalidOperation:
            raise _MisfitError from None
        if abs(value) >= limit:
            raise _MisfitError
        return value

    return read


def _read_date(v: Any) -> int:
    if not isinstance(v, str):
        return _bad()  # type: ignore[no-any-return]
    days = parse_date(v)
    if days is None or len(v) != 10:
        raise RowError("UNSUPPORTED_FEATURE", f"from_json of '{v}' as DATE is not supported.")
    return days


def _struct_reader(t: StructType, misfits: list[str]) -> Callable[[Any], Any]:
    readers = {f.name: (f.name, _reader(f.type, misfits)) for f in t.fields}

    def read(v: Any) -> dict[str, Any]:
        if not isinstance(v, Members):
            return _bad()  # type: ignore[no-any-return]
        row: dict[str, Any] = dict.fromkeys(readers)
        for key, value in v.pairs:
            known = readers.get(key)
            if known is None:
                continue
            try:
                row[known[0]] = None if value is None else known[1](value)
            except _MisfitError:  # an earlier member of the same name stays
                misfits.append(key)
        return row

    return read


@implementation("from_json")
def from_json(spec: UdfSpec) -> Kernel:
    """from_json in PERMISSIVE mode: a document that does not fit is a struct of NULLs, or NULL for arrays and maps."""
    target = spec.returns
    returns = target.arrow()
    misfits: list[str] = []
    nothing, readable = None, target
    if isinstance(target, StructType):
        nothing = dict.fromkeys(f.name for f in target.fields)
        readable = struct(*(f for f in target.fields if f.name != CORRUPT))
    corrupt = nothing is not None and CORRUPT in nothing
    read = _reader(readable, misfits)

    def convert(text: str) -> Any:
        if not text.strip():
            return None
        misfits.clear()
        found = nothing
        try:
            tree = parsed(text, _TYPED)
            if isinstance(target, ArrayType) and isinstance(target.element, StructType) and isinstance(tree, Members):
                tree = [tree]
            if tree is not None:
                found = read(tree)
            elif corrupt:
                misfits.append(text)
        except (ValueError, _MisfitError):
            misfits.append(text)
        return {**found, CORRUPT: text if misfits else None} if corrupt and found is not None else found

    def kernel(value: pa.Array) -> pa.Array:
        return per_distinct(convert, (value,), returns)

    return kernel
