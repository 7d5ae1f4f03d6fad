"""Name patterns: JDBC's (``%``, ``_``, backslash) of metadata calls, and Spark's (``*``, ``|``, ``.``) of SHOW … LIKE.

Matched without regular expressions, in time linear in pattern times name.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.errors import unsupported

_REGEX = frozenset("\\^$+?()[]{}")
_MANY, _ONE = "many", "one"
Token = str | tuple[str]


def everything(name: str) -> bool:
    """Matches every name."""
    return True


def jdbc(pattern: str | None) -> Callable[[str], bool]:
    """Matcher of a metadata call's pattern: None and ``*`` and ``.*`` and ``%`` match everything; case does not count."""
    if pattern is None or pattern in ("%", "*", ".*", ""):
        return everything
    return _matcher(_jdbc_tokens(pattern.lower()))


def hive(pattern: str | None) -> Callable[[str], bool]:
    """Matcher of SHOW … LIKE: ``*`` any text, ``.`` any character, alternatives between ``|``; case does not count.

    The rest of what Spark reads as a regular expression is refused (UnsupportedError); ``%`` and ``_`` mean themselves.
    """
    if pattern is None:
        return everything
    if not _REGEX.isdisjoint(pattern):
        raise unsupported("A regular expression as the pattern of SHOW (other than *, | and .)")
    matchers = [_matcher(_hive_tokens(part.lower())) for part in pattern.strip().split("|")]
    return lambda name: any(m(name) for m in matchers)


def _jdbc_tokens(pattern: str) -> tuple[Token, ...]:
    tokens: list[Token] = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\" and index + 1 < len(pattern):
            index += 1
            tokens.append(pattern[index])
        elif char == "%" or char == "*":
            tokens.append((_MANY,))
        elif char == "." and pattern[index : index + 2] == ".*":
            tokens.append((_MANY,))
            index += 1
        elif char == "_":
            tokens.append((_ONE,))
        else:
            tokens.append(char)
        index += 1
    return tuple(tokens)


def _hive_tokens(pattern: str) -> tuple[Token, ...]:
    return tuple((_MANY,) if c == "*" else (_ONE,) if c == "." else c for c in pattern)


def _matcher(tokens: tuple[Token, ...]) -> Callable[[str], bool]:
    return lambda name: matches(tokens, name.lower())


def matches(tokens: tuple[Token, ...], name: str) -> bool:
    """Whether `name` matches; linear in pattern times name (greedy with one point of return)."""
    t = n = 0
    star, mark = -1, 0
    while n < len(name):
        token = tokens[t] if t < len(tokens) else None
        if token == (_MANY,):
            star, mark = t, n
            t += 1
        elif token == (_ONE,) or token == name[n]:
            t += 1
            n += 1
        elif star >= 0:
            t = star + 1
            mark += 1
            n = mark
        else:
            return False
    return all(token == (_MANY,) for token in tokens[t:])
