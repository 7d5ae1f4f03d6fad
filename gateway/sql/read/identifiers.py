"""``IDENTIFIER(…)`` with constants: the name that it stands for, put in its place before a text is read.

Strings, parameter markers and ``||`` between them are known then; anything else is refused by name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import Token

from gateway.errors import GatewayError, Span, UserError, unsupported
from gateway.sql.read.tokens import END, STRING, is_name, scan, span_of_token, syntax_error
from gateway.sqltypes import quote_part
from gateway.worker_jobs import Parameter, Statement

_CLAUSE = "IDENTIFIER"
_STRINGS = ("STRING", "VARCHAR", "CHAR")
_NO_VALUE = ("VOID", "NULL")


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause in the text, the name for it, and which of the ``?`` in the text are in it, counted from 0."""

    span: Span
    name: str
    questions: tuple[int, ...]


@contextmanager
def identified(job: Statement) -> Iterator[Statement]:
    """The statement with names for its IDENTIFIER clauses; positions of errors in the block are those of its own text.

    Raises UserError: NOT_A_CONSTANT_STRING, UNBOUND_SQL_PARAMETER, PARSE_SYNTAX_ERROR. UnsupportedError for variables and
    functions.
    """
    clauses = _clauses(job) if _CLAUSE in job.text.upper() else []
    if not clauses:
        yield job
        return
    used = {number for clause in clauses for number in clause.questions}
    positional = (number for number, _ in enumerate(job.parameters))
    kept = tuple(p for p in job.parameters if p.name or next(positional) not in used)
    text, starts, origins = "", [0], [Span(0, 0)]
    at = 0
    for clause in clauses:
        text += job.text[at : clause.span.start]
        starts += [len(text), len(text) + len(clause.name)]
        origins += [clause.span, Span(clause.span.stop, clause.span.stop)]
        text += clause.name
        at = clause.span.stop
    text += job.text[at:]
    try:
        yield replace(job, text=text, parameters=kept)
    except GatewayError as error:
        if error.span is not None:
            first, last = (bisect_right(starts, place) - 1 for place in (error.span.start, error.span.stop - 1))
            start, stop = origins[first].start, origins[last].stop
            if first % 2 == 0:  # between the clauses, where every character is one of the text
                start += error.span.start - starts[first]
            if last % 2 == 0:
                stop += error.span.stop - starts[last]
            error.span = Span(start, stop)
        raise


def _clauses(job: Statement) -> list[_Clause]:
    tokens, words, error = scan(job.text)
    found: list[_Clause] = []
    if error is not None:  # told where the text is read
        return found
    questions = 0
    at = 0
    while words[at] != END:
        if words[at] != _CLAUSE or words[at + 1] != "(":
            questions += words[at] == "?"
            at += 1
            continue
        first = at
        value = ""
        inside = []
        at += 1
        while at == first + 1 or words[at] == "||":
            at += 1
            if words[at] == STRING:
                while words[at] == STRING:
                    value += str(tokens[at].text)
                    at += 1
                continue
            named = words[at] == ":" and is_name(words[at + 1])
            if not named and words[at] != "?":
                raise unsupported("IDENTIFIER() of anything but strings and parameters", _inside(tokens, words, at))
            if not named:
                inside.append(questions)
                questions += 1
            span = Span(tokens[at].start, tokens[at + named].end + 1)
            value += _value(str(tokens[at + 1].text) if named else inside[-1], job.parameters, span)
            at += 1 + named
        if words[at] != ")":
            raise unsupported("IDENTIFIER() of anything but strings and parameters", _inside(tokens, words, at))
        span = Span(tokens[first].start, tokens[at].end + 1)
        found.append(_Clause(span, _name(value, span), tuple(inside)))
        at += 1
    return found


def _inside(tokens: Sequence[Token], words: Sequence[str], at: int) -> Span:
    return span_of_token(tokens[at if words[at] != END else at - 1])


def _value(key: str | int, parameters: Sequence[Parameter], span: Span) -> str:
    """The text of a parameter, by its name or its number among those without one."""
    if isinstance(key, str):
        found = [p for p in parameters if p.name and p.name.lower() == key.lower()]
    else:
        found = [p for p in parameters if not p.name][key : key + 1]
    shown = f":{key}" if isinstance(key, str) else "?"
    if not found:
        raise UserError("UNBOUND_SQL_PARAMETER", f"Found the unbound parameter: {shown}.", span=span)
    kind, value = found[-1].type.strip().upper() or "STRING", found[-1].value
    if value is None or kind in _NO_VALUE:
        raise _not_constant("NULL", shown, "The expression evaluates to NULL.", span)
    if kind.partition("(")[0].strip() not in _STRINGS:
        raise _not_constant("WRONG_TYPE", shown, f'The data type of the expression is "{kind}".', span)
    return value


def _not_constant(why: str, shown: str, text: str, span: Span) -> UserError:
    message = f"The expression {shown} used for the routine or clause `IDENTIFIER` must be a constant STRING which is NOT NULL."
    return UserError(f"NOT_A_CONSTANT_STRING.{why}", f"{message} {text}", span=span)


def _name(value: str, span: Span) -> str:
    """The dotted name in a string, each part in quotes."""
    tokens, words, error = scan(value)
    names, dots = words[:-1:2], words[1:-1:2]
    if error is not None or len(words) % 2 or not all(map(is_name, names)) or any(dot != "." for dot in dots):
        raise syntax_error(value[:64], span)
    return ".".join(quote_part(str(token.text)) for token in tokens[:-1:2])


__all__ = ["identified"]
