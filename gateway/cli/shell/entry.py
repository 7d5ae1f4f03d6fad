"""What has been typed: whether it is whole, and which statements it is."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import GatewayError
from gateway.sql.read.statement import statement_spans
from gateway.sql.read.tokens import scan

LEAVE = frozenset({"exit", "quit", ":q"})


@dataclass(frozen=True, slots=True)
class Entry:
    r"""One statement without its end; `vertical` where it ended in ``\G``."""

    text: str
    vertical: bool = False


def is_shortcut(text: str) -> bool:
    """Whether the line is for the prompt and not for the gateway."""
    word = text.strip().rstrip(";").strip().lower()
    return text.lstrip().startswith("\\") or word in LEAVE or word in ("help", "?")


def is_whole(text: str) -> bool:
    r"""Whether Enter runs it: a shortcut, nothing, or statements of which the last one is closed.

    Statements end with ``;`` or ``\G``, those of a script (``BEGIN … END``) as a whole. What no scan can take (a quote that
    stays open) is whole after an empty line, so that the gateway may say what is wrong with it.
    """
    if not text.strip() or is_shortcut(text):
        return True
    plain = text.rstrip()
    if plain.endswith("\\G"):
        return True
    error: GatewayError | None
    try:
        tokens, words, error = scan(plain)
        spans = list(statement_spans(plain))
    except GatewayError as raised:
        error = raised
    if error is not None:
        return text.endswith("\n\n")
    return not spans or (words[-2] == ";" and spans[-1].stop <= tokens[-2].start)


def entries(text: str) -> list[Entry]:
    """The statements of a text; what cannot be told apart is one statement, for the gateway to judge."""
    plain = text.strip()
    vertical = plain.endswith("\\G")
    if vertical:
        plain = plain[:-2]
    try:
        found = [plain[span.start : span.stop] for span in statement_spans(plain)]
    except GatewayError:
        found = [plain]
    return [Entry(one, vertical and number == len(found)) for number, one in enumerate(found, 1)]
