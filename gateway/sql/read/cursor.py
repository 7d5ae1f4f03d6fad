"""A place in a statement's tokens: what the parsers of types, expressions, queries and commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from gateway.errors import ResourceError, Span, UserError
from gateway.sql.read.tokens import END, MOST_TOKENS, NUMBER, QUOTED, STRING, span_of_token, syntax_error
from gateway.sql.read.tree import mark

N = TypeVar("N", bound=exp.Expr)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a statement may cost before it is looked at.

    `text` is in characters (`max-statement` is asked before); `depth` counts open brackets and CASEs; `chain` is the length of
    a run of one-level operators
    (``a + b + …``, UNION) other than AND and OR, whose trees are built balanced; `digits` is the length of a number.
    """

    text: int = 1 << 26
    tokens: int = MOST_TOKENS
    depth: int = 500
    chain: int = 2_000
    digits: int = 1_000


DEFAULT_LIMITS = Limits()

# Words that can't be a table alias (Spark's strictNonReserved).
STRICT = frozenset(
    {
        *("ANTI", "CROSS", "EXCEPT", "FULL", "INNER", "INTERSECT", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON", "RIGHT"),
        *("SEMI", "SETMINUS", "MINUS", "UNION", "USING"),
    }
)

_BY = frozenset({"BY"})
_DIGITS = 1000  # of a whole number; Python reads some thousand at most
_OPERAND = frozenset({"SELECT", "ALL", "DISTINCT", "(", "VALUES", "TABLE", "FROM"})
# Words that open the next clause if one of these words follows (None: anything but the end of a list item).
_CLAUSES: dict[str, frozenset[str] | None] = {
    "FROM": None,
    "SELECT": None,
    "WHERE": None,
    "GROUP": _BY,
    "HAVING": None,
    "ORDER": _BY,
    "SORT": _BY,
    "CLUSTER": _BY,
    "DISTRIBUTE": _BY,
    "LIMIT": None,
    "OFFSET": None,
    "QUALIFY": None,
    "WINDOW": None,
    "LATERAL": frozenset({"VIEW"}),
    "UNION": _OPERAND,
    "EXCEPT": _OPERAND,
    "MINUS": _OPERAND,
    "SETMINUS": _OPERAND,
    "INTERSECT": _OPERAND,
}
_STOPS = frozenset({END, ")", ",", ".", ";", "|>"})


class Cursor:
    """Tokens, their words, and the index of the next one; `word` is always `words[index]`."""

    def __init__(self, tokens: list[Token], words: list[str], limits: Limits, index: int = 0) -> None:
        self.tokens = tokens
        self.words = words
        self.limits = limits
        self.index = index
        self.word = words[index]

    def advance(self, count: int = 1) -> None:
        self.index += count
        self.word = self.words[self.index]

    def seek(self, index: int) -> None:
        self.index = index
        self.word = self.words[index]

    def peek(self, distance: int = 1) -> str:
        """The word `distance` tokens ahead; END behind the last one."""
        index = self.index + distance
        return self.words[index] if index < len(self.words) else END

    def match(self, *words: str) -> bool:
        """Step over `words` if they come next."""
        index = self.index
        for offset, word in enumerate(words):
            if index + offset >= len(self.words) or self.words[index + offset] != word:
                return False
        self.advance(len(words))
        return True

    def expect(self, *words: str) -> None:
        """Step over `words` or raise PARSE_SYNTAX_ERROR at the first that is missing."""
        for word in words:
            if self.word != word:
                self.fail()
            self.advance()

    def fail(self, hint: str = "", index: int | None = None) -> NoReturn:
        """PARSE_SYNTAX_ERROR at the token `index` (default: the next one)."""
        token = self.tokens[self.index if index is None else index]
        at = (self.words[self.index if index is None else index]) == END
        raise syntax_error(None if at else self._source(token), span_of_token(token), hint)

    def _source(self, token: Token) -> str:
        text = token.text
        return text if len(text) <= 80 else text[:77] + "..."

    def span(self, start: int) -> Span:
        """From the token `start` to the last one consumed (at least that token)."""
        last = max(start, self.index - 1)
        return Span(self.tokens[start].start, self.tokens[last].end + 1)

    def too_complex(self, what: str, limit: int) -> NoReturn:
        message = f"The statement has more than {limit} {what}."
        raise ResourceError("STATEMENT_TOO_COMPLEX", message, span=span_of_token(self.tokens[self.index]))

    def place(self, node: N, start: int) -> N:
        """`node` with the position from token `start` to the last token consumed."""
        node._meta = {"start": self.tokens[start].start, "end": self.tokens[self.index - 1].end}  # noqa: SLF001 (hot)
        return node

    def is_name(self, distance: int = 0) -> bool:
        """Whether an identifier (any word, or a back-quoted one) stands there; words are not reserved."""
        word = self.peek(distance)
        return word == QUOTED or word[:1].isalpha() or word[:1] == "_" or (len(word) > 1 and word[0].isdigit())

    def identifier(self) -> exp.Identifier:
        """A name; what is not ASCII has to stand in back quotes."""
        token = self.tokens[self.index]
        if self.word != QUOTED and not token.text.isascii() and self.is_name():
            message = f"The unquoted identifier {token.text} is invalid and must be back quoted as: `{token.text}`."
            raise UserError("INVALID_IDENTIFIER", message, span=self.span(self.index))
        return self.parameter_name()

    def parameter_name(self) -> exp.Identifier:
        """A name behind a colon, in letters of any script."""
        word = self.words[self.index]
        if not (word[:1].isalpha() or self.is_name()):
            self.fail()
        token = self.tokens[self.index]
        node = exp.Identifier(this=token.text, quoted=word == QUOTED)
        mark(node, token.start, token.end)
        self.advance()
        return node

    def string(self) -> str:
        """One string literal's value (adjacent literals are joined)."""
        if self.word != STRING:
            self.fail()
        parts = []
        while self.word == STRING:
            parts.append(self.tokens[self.index].text)
            self.advance()
        return parts[0] if len(parts) == 1 else "".join(parts)

    def integer(self) -> int:
        """An unsigned integer literal without suffix."""
        text = self.tokens[self.index].text
        if self.word != NUMBER or not text.isdigit() or len(text) > _DIGITS:
            self.fail()
        self.advance()
        return int(text)

    def clause_ahead(self) -> bool:
        """Whether the next word opens a clause (and so is neither a column nor an alias here)."""
        word = self.word
        if word not in _CLAUSES:
            return False
        after = _CLAUSES[word]
        if after is not None:
            return self.peek() in after
        if word == "WINDOW":
            return self.is_name(1) and self.peek(2) == "AS"
        return self.peek() not in _STOPS and (word == "FROM" or self.peek() != "FROM")

    def names(self) -> list[exp.Identifier]:
        """``(a, b, …)``."""
        self.expect("(")
        found = [self.identifier()]
        while self.match(","):
            found.append(self.identifier())
        self.expect(")")
        return found

    def dotted(self) -> list[exp.Identifier]:
        """``a.b.c``."""
        parts = [self.identifier()]
        while self.word == "." and self.is_name(1):
            self.advance()
            parts.append(self.identifier())
        return parts


def user_error(condition: str, message: str, span: Span | None) -> UserError:
    """A `UserError` with a position."""
    return UserError(condition, message, span=span)
