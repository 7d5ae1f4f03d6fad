"""Spark's regular-expression functions: by RE2 where a constant pattern means the same to it, else on translated Java
patterns per distinct value of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import MAX_TEXT_BYTES, Kernel, RowError, implementation, too_long
from gateway.engine.functions.distinct import per_distinct, scalar, vectorised
from gateway.engine.functions.java_patterns import PatternError, compiled
from gateway.engine.functions.linear_patterns import Linear, linear, rewritten


def _pattern(function: str, pattern: str) -> Any:
    try:
        return compiled(pattern)
    except PatternError as error:
        if error.refused:
            raise RowError(
                "UNSUPPORTED_FEATURE", f"{error} in the regular expression '{pattern}' is not supported."
            ) from None
        raise RowError(
            "INVALID_PARAMETER_VALUE.PATTERN",
            f"The value of parameter(s) `regexp` in `{function}` is invalid: '{pattern}'.",
        ) from None


# A search that may take exponential time is given up after so many seconds, and not begun again: plans are made in several
# turns. To look at the clock costs more than a short search.
_SEARCH_SECONDS = 5.0
_given_up: set[int] = set()
_MOST_GIVEN_UP = 1000
_SHORT_VALUE, _FEW_REPEATS = 200, 3
_REPEATS = frozenset("*+{")


@lru_cache(maxsize=1024)
def _is_simple(pattern: str) -> bool:
    """Whether a search takes at most cubic time: few repeats, none of a group, no reference back."""
    repeats = [i for i, char in enumerate(pattern) if char in _REPEATS]
    return (
        len(repeats) <= _FEW_REPEATS and not any(pattern[i - 1 : i] == ")" for i in repeats) and "(?P=" not in pattern
    )


def _search(matcher: Any, value: str, at: int = 0) -> Any:
    """The first match from `at` on, None without one."""
    if len(value) <= _SHORT_VALUE and _is_simple(matcher.pattern):
        return matcher.search(value, at)
    search = hash((matcher.pattern, value, at))
    if search not in _given_up:
        try:
            return matcher.search(value, at, timeout=_SEARCH_SECONDS)
        except TimeoutError:
            if len(_given_up) >= _MOST_GIVEN_UP:
                _given_up.clear()
            _given_up.add(search)
    text = f"The search for a regular expression in a value of {len(value)} characters takes more than"
    raise RowError("STATEMENT_TOO_COMPLEX", f"{text} {_SEARCH_SECONDS:g} seconds of computing.")


def _matches(matcher: Any, value: str, apart: bool = False) -> Iterator[Any]:
    """All matches as java.util.regex.Matcher.find gives them: after an empty one the search goes on one UTF-16 unit later.

    That is inside of a character beyond the BMP. A match there is given with `apart`, and refused without: its place is none.
    """
    at = 0
    while at <= len(value):
        found = _search(matcher, value, at)
        if found is None:
            return
        yield found
        at = found.end()
        if found.end() > found.start():
            continue
        within = _within(matcher, value, at)
        if within is not None and (not apart or within.end() > within.start()):
            raise RowError("UNSUPPORTED_FEATURE", "A match inside of a character beyond the BMP is not supported.")
        if within is not None:
            yield within
        at += 1


def _within(matcher: Any, value: str, at: int) -> Any:
    """The match that begins between the two UTF-16 units of the character at `at`, if it has two."""
    if value[at : at + 1] <= "\uffff":
        return None
    units = value[at].encode("utf-16-le")
    high, low = (units[i : i + 2].decode("utf-16-le", "surrogatepass") for i in (0, 2))
    return matcher.match(f"{value[:at]}{high}{low}{value[at + 1 :]}", at + 1, timeout=_SEARCH_SECONDS)


Fast = Callable[..., tuple[Linear, Callable[[pa.Array], pa.Array]] | None]

_SAMPLE = 512
_TERMINATED = "[\\n\\r\\x{85}\\x{2028}\\x{2029}]\\z"  # where Java's $ is not the very end


def _regular(name: str, fast: Fast) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a Python function of values as the implementation `name`, and what does the same to an array of texts.

    `fast` gets the arguments behind the text, which must be constants, and gives None for those it is not made for.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def factory(spec: UdfSpec) -> Kernel:
            returns = spec.returns.arrow()

            def kernel(*arrays: pa.Array) -> pa.Array:
                constants = [_constant(a) for a in arrays[1:]]
                found = None if None in constants else fast(*constants)
                if found is None:
                    return per_distinct(function, arrays, returns)

                def slow(texts: pa.Array) -> pa.Array:
                    return per_distinct(function, (texts, *(a.slice(0, len(texts)) for a in arrays[1:])), returns)

                return _matched(arrays[0], *found, slow)

            return kernel

        implementation(name)(factory)
        return function

    return register


def _constant(array: pa.Array) -> Any:
    """The one value of all rows, None unless there is one."""
    if not len(array) or array.null_count or not pc.all(pc.equal(array, array[0])).as_py():
        return None
    return array[0].as_py()


def _matched(
    values: pa.Array, pattern: Linear, run: Callable[[pa.Array], pa.Array | None], slow: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """`run` over the distinct values if they are few, and `slow` over those that RE2 reads differently.

    `slow` over all, if `run` gives None.
    """
    texts, indices = values, None
    if len(values.slice(0, _SAMPLE).unique()) * 2 < min(_SAMPLE, len(values)):
        encoded = values.dictionary_encode()
        texts, indices = encoded.dictionary, encoded.indices
    result = run(texts)
    if result is None:
        return slow(values)
    if pattern.ends:
        odd = np.flatnonzero(pc.fill_null(pc.match_substring_regex(texts, _TERMINATED), False))
        if len(odd):
            order = np.arange(len(texts))
            order[odd] = len(texts) + np.arange(len(odd))
            result = pa.concat_arrays([result, slow(texts.take(pa.array(odd)))]).take(pa.array(order))
    return result if indices is None else result.take(indices)


def _fast_rlike(pattern: str) -> Any:
    found = linear(pattern)
    return found and (found, lambda texts: pc.match_substring_regex(texts, found.text))


@_regular("rlike", _fast_rlike)
def rlike(value: str, pattern: str) -> bool:
    """Whether the pattern is found in the value."""
    return _search(_pattern("rlike", pattern), value) is not None


def _group_index(function: str, found: Any, index: int) -> None:
    count = found.re.groups
    if not 0 <= index <= count:
        raise RowError(
            "INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX",
            f"The value of parameter(s) `idx` in `{function}` is invalid: Expects group index between 0 and {count}, but "
            f"got {index}.",
        )


def _fast_extract(pattern: str, index: int) -> Any:
    found = linear(pattern, index)
    if found is None or not 0 <= index <= found.groups or (index and found.looped):
        return None

    def run(texts: pa.Array) -> pa.Array:
        group = pc.struct_field(pc.extract_regex(texts, found.text), "wanted")
        return pc.if_else(texts.is_valid(), pc.fill_null(group, ""), pa.scalar(None, pa.string()))

    return found, run


@_regular("regexp_extract", _fast_extract)
def regexp_extract(value: str, pattern: str, index: int) -> str:
    """The group of the first match; empty without a match or where the group took no part."""
    found = _search(_pattern("regexp_extract", pattern), value)
    if found is None:
        return ""
    _group_index("regexp_extract", found, index)
    return found.group(index) or ""


def first_group(function: str, pattern: str, value: str, index: int) -> str | None:
    """A group of the first match, for a function that makes a pattern of what it is given; None without a match."""
    found = _search(_pattern(function, pattern), value)
    return None if found is None else found.group(index)


@scalar("regexp_extract_all")
def regexp_extract_all(value: str, pattern: str, index: int) -> list[str]:
    """The group of every match."""
    out = []
    for found in _matches(_pattern("regexp_extract_all", pattern), value, apart=True):
        _group_index("regexp_extract_all", found, index)
        out.append(found.group(index) or "")
    return out


def _fast_count(pattern: str) -> Any:
    found = linear(pattern)
    if found is None or not found.least or found.begins:  # Arrow takes what is left of a text for another one
        return None
    return found, lambda texts: pc.count_substring_regex(texts, found.text).cast(pa.int32())


@_regular("regexp_count", _fast_count)
def regexp_count(value: str, pattern: str) -> int:
    """How often the pattern matches."""
    return sum(1 for _ in _matches(_pattern("regexp_count", pattern), value, apart=True))


def _fast_substr(pattern: str) -> Any:
    found = linear(pattern, 0)
    if found is None or not found.least:
        return None
    return found, lambda texts: pc.struct_field(pc.extract_regex(texts, found.text), "wanted")


@_regular("regexp_substr", _fast_substr)
def regexp_substr(value: str, pattern: str) -> str | None:
    """The first match; NULL if there is none or it is empty."""
    found = _search(_pattern("regexp_substr", pattern), value)
    return (found.group() or None) if found else None


@scalar("regexp_instr")
def regexp_instr(value: str, pattern: str, index: int) -> int:
    """Where the first match begins, from 1, in UTF-16 units as Java counts; 0 without one. The group index is not used."""
    found = _search(_pattern("regexp_instr", pattern), value)
    return _units(value[: found.start()]) + 1 if found else 0


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _fast_replace(pattern: str, replacement: str, position: int) -> Any:
    found = linear(pattern)
    if found is None or not found.least or position != 1:
        return None
    try:
        pieces = _replacement(replacement, compiled(pattern))
    except PatternError:
        return None
    text = rewritten(pieces)
    if text is None or (found.looped and any(isinstance(p, int) and p for p in pieces)):
        return None
    inserted = sum(len(p.encode()) if isinstance(p, str) else 0 for p in pieces)
    groups = sum(isinstance(p, int) for p in pieces)

    def run(texts: pa.Array) -> pa.Array | None:
        size = pc.sum(pc.binary_length(texts)).as_py() or 0
        if size * (1 + groups) + size // found.least * inserted > MAX_TEXT_BYTES:
            return None  # it may grow beyond what an array holds: the other way counts
        return pc.replace_substring_regex(texts, found.text, text)

    return found, run


@_regular("regexp_replace", _fast_replace)
def regexp_replace(value: str, pattern: str, replacement: str, position: int) -> str:
    """All matches from `position` (UTF-16 units, from 1) replaced; ``$1``, ``${name}`` and backslashes as Java reads them."""
    matcher = _pattern("regexp_replace", pattern)
    skip = position - 1
    if skip and skip >= _units(value):
        return value
    head = value[:skip] if value.isascii() else value.encode("utf-16-le")[: 2 * skip].decode("utf-16-le", "replace")
    rest = value[len(head) :]
    parts: list[str] = [head]
    size = at = 0
    pieces: list[str | int] | None = None
    for found in _matches(matcher, rest):
        if pieces is None:
            try:
                pieces = _replacement(replacement, matcher)
            except PatternError as error:
                raise RowError(
                    "INVALID_REGEXP_REPLACE",
                    f"Could not perform regexp_replace for source = '{value}', pattern = '{pattern}', replacement = "
                    f"'{replacement}' and position = {position}: {error}.",
                ) from None
        parts.append(rest[at : found.start()])
        inserted = "".join(p if isinstance(p, str) else (found.group(p) or "") for p in pieces)
        parts.append(inserted)
        size += len(inserted)
        if size > MAX_TEXT_BYTES:
            raise too_long("regexp_replace")
        at = found.end()
    parts.append(rest[at:])
    return "".join(parts)


def _replacement(text: str, matcher: Any) -> list[str | int]:
    """Literal texts and group numbers of a Java replacement string."""
    out: list[str | int] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\":
            if at == len(text):
                raise PatternError("character to be escaped is missing")
            out.append(text[at])
            at += 1
        elif char == "$":
            if at == len(text):
                raise PatternError("Illegal group reference: group index is missing")
            if text[at] == "{":
                stop = text.find("}", at)
                name = text[at + 1 : stop] if stop >= 0 else ""
                if name not in matcher.groupindex:
                    raise PatternError(f"No group with name {{{name}}}")
                out.append(matcher.groupindex[name])
                at = stop + 1
                continue
            if text[at] not in "0123456789":
                raise PatternError("Illegal group reference")
            number = int(text[at])
            at += 1
            if number > matcher.groups:
                raise PatternError(f"No group {number}")
            while at < len(text) and text[at] in "0123456789" and number * 10 + int(text[at]) <= matcher.groups:
                number = number * 10 + int(text[at])
                at += 1
            out.append(number)
        else:
            out.append(char)
    return out


def _fast_split(pattern: str, limit: int) -> Any:
    found = linear(pattern)
    if found is None or not found.least or found.begins:
        return None
    most = limit - 1 if limit > 0 else None
    return found, lambda texts: pc.split_pattern_regex(texts, found.text, max_splits=most)


@_regular("split", _fast_split)
def split(value: str, pattern: str, limit: int) -> list[str]:
    """java.lang.String.split without dropping trailing empty parts; an empty pattern gives the characters."""
    if not pattern and value:
        count = len(value) if limit <= 0 or limit > len(value) else limit
        return [*value[: count - 1], value[count - 1 :]]
    parts: list[str] = []
    at = 0
    for found in _matches(_pattern("split", pattern), value):
        if 0 < limit <= len(parts) + 1:
            break
        if at == 0 and found.start() == found.end() == 0:
            continue
        parts.append(value[at : found.start()])
        at = found.end()
    parts.append(value[at:])
    return parts


@vectorised("split_literal")
def split_literal(value: pa.Array, separator: str, limit: int) -> pa.Array:
    """split by a plain text."""
    return pc.split_pattern(value, separator, max_splits=limit - 1 if limit > 0 else None)
