"""JSON functions: Spark's path evaluation, on trees made by the standard library's scanner; typed values are in `json_values`.

Jackson's habits are kept: single quotes and control characters are accepted, text after the document is not read, the first
of equal keys is found by paths, numbers with a fraction are written as Java writes doubles.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any

import pyarrow as pa

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.distinct import per_distinct, scalar
from gateway.engine.functions.numbers import java_double
from gateway.variant_building import Members, Real


def _constant(text: str) -> Any:
    raise ValueError(text)


_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_float=Real, parse_constant=_constant, strict=False)
#: from_json takes NaN and the infinities, but no control characters.
TYPED = json.JSONDecoder(object_pairs_hook=Members, parse_float=Real, parse_constant=Real, strict=True)
SPACE = " \t\n\r"
_DEEPEST = 1000


def parsed(text: str, decoder: json.JSONDecoder = _DECODER) -> Any:
    """The document at the start of `text`; raises ValueError where Jackson would."""
    start = 0
    while start < len(text) and text[start] in SPACE:
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
        tree, end = decoder.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(tree, (str, list, Members)) and not _ends(tree, text[end : end + 1]):
        raise ValueError("no number and no word of JSON")
    return tree


def _ends(tree: Any, follower: str) -> bool:
    """Whether a number or word that is the whole document may be followed by this, as Jackson has it."""
    if isinstance(tree, (int, Real)) and not isinstance(tree, bool):
        return follower in SPACE  # or nothing
    return follower < "0" or not f"a{follower}".isidentifier()


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


ESCAPES = {i: f"\\u{i:04X}" for i in range(32)}
ESCAPES |= {ord("\b"): "\\b", ord("\t"): "\\t", ord("\n"): "\\n", ord("\f"): "\\f", ord("\r"): "\\r"}
ESCAPES |= {ord('"'): '\\"', ord("\\"): "\\\\"}


def quoted(text: str) -> str:
    """A JSON string as Jackson writes it."""
    return f'"{text.translate(ESCAPES)}"'


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


def utf8(text: str | None) -> str | None:
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
    return utf8("".join(out)) if _evaluate(tree, steps, _RAW, out) else None


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
    return None if tree is None else utf8(tree if isinstance(tree, str) else written(tree))


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
    return [utf8(k) for k, _ in tree.pairs] if isinstance(tree, Members) else None


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
                        row[f"c{i}"] = utf8(value if isinstance(value, str) else written(value))
        return [row]

    def kernel(*arrays: pa.Array) -> pa.Array:
        return per_distinct(pick, arrays, returns, strict=False)

    return kernel
