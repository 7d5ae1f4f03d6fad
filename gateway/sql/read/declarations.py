"""DECLARE, SET VARIABLE, CREATE and DROP TEMPORARY FUNCTION by their tokens: which names they make, set and drop."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.sql.read.statement import Kind, Statement
from gateway.sql.read.tokens import END

_TEMPORARY = ("TEMPORARY", "TEMP")
_VARIABLE = ("VARIABLE", "VAR")


@dataclass(frozen=True, slots=True)
class Made:
    """A definition: `key` as in `jobs.Definition`, `text` makes it alone, replacing one of its name."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Defined:
    """What a statement makes and drops (keys), and whether it sets variables."""

    made: tuple[Made, ...] = ()
    dropped: tuple[str, ...] = ()
    sets: bool = False


def defined(statement: Statement) -> Defined:
    """The definitions that a statement touches; nothing for other statements."""
    words = statement.words
    if words[0] == "DECLARE":
        return Defined(made=_declared(statement))
    if words[:2] in (["SET", "VAR"], ["SET", "VARIABLE"]):
        return Defined(sets=True)
    if statement.kind is Kind.SCRIPT:
        return Defined(sets="SET" in words or "INTO" in words)
    if words[0] == "DROP" and words[1] in _TEMPORARY and words[2] in (*_VARIABLE, "FUNCTION"):
        at = 5 if words[3:5] == ["IF", "EXISTS"] else 3
        kind = "variable" if words[2] in _VARIABLE else "function"
        return Defined(dropped=(f"{kind} {_name(statement, at)[0]}",))
    if words[0] == "CREATE":
        at = 3 if words[1:3] == ["OR", "REPLACE"] else 1
        if words[at] in _TEMPORARY and words[at + 1] == "FUNCTION":
            at += 2
            at += 3 if words[at : at + 3] == ["IF", "NOT", "EXISTS"] else 0
            rest = statement.text[statement.tokens[at].start : statement.span.stop]
            return Defined(
                made=(Made(f"function {_name(statement, at)[0]}", f"CREATE OR REPLACE TEMPORARY FUNCTION {rest}"),)
            )
    return Defined()


def _declared(statement: Statement) -> tuple[Made, ...]:
    """One text for each name of ``DECLARE [OR REPLACE] [VARIABLE] a, b TYPE DEFAULT …``."""
    words = statement.words
    at = 3 if words[1:3] == ["OR", "REPLACE"] else 1
    if words[at] in _VARIABLE and words[at + 1] not in (END, ",", "="):
        at += 1
    names = []
    while True:
        name, at = _name(statement, at)
        names.append(name)
        if words[at] != ",":
            break
        at += 1
    rest = statement.text[statement.tokens[at].start : statement.span.stop] if words[at] != END else ""
    return tuple(Made(f"variable {n}", f"DECLARE OR REPLACE VARIABLE `{n.replace('`', '``')}` {rest}") for n in names)


def _name(statement: Statement, at: int) -> tuple[str, int]:
    """The last part of the dotted name at a token, lower case, and the token behind it."""
    while statement.words[at + 1] == ".":
        at += 2
    return str(statement.tokens[at].text).lower(), at + 1
