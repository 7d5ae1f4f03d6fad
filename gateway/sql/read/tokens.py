"""Tokens of Databricks SQL: sqlglot's tokenizer with Spark's lexical rules, and the words that the grammar looks at.

Differences from sqlglot's Databricks tokenizer: words stay words (no multi-word keywords, no commands that swallow text), a
quote doubles itself inside a string, a number keeps its suffix as one token, comments and hints leave nothing behind but must
be closed, a text between ``$$`` or ``$tag$`` (the body of a function in another language) is one token, and what Spark's
lexer does not know is an error here. ``<<``, ``>>`` and ``>>>`` are adjacent single tokens,
because ``>>`` also closes two type brackets.
"""

from __future__ import annotations

from typing import ClassVar, cast

from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenizerCore, TokenType

from gateway.errors import GatewayError, ResourceError, Span, UserError, unsupported

# The `word` of a token that is not an unquoted word or a symbol; no word or symbol of SQL looks like these.
STRING, NUMBER, QUOTED, END = "'", "0", "`", ""

MOST_TOKENS = 1_000_000

# What follows a pipe: in front of it | is no operator between numbers.
_PIPED = frozenset((
    "AGGREGATE", "ANTI", "AS", "CLUSTER", "CROSS", "DISTRIBUTE", "DROP", "EXCEPT", "EXTEND", "FULL", "INNER",
    "INTERSECT", "JOIN", "LATERAL", "LEFT", "LIMIT", "MINUS", "NATURAL", "OFFSET", "ORDER", "PIVOT", "RIGHT",
    "SELECT", "SEMI", "SET", "SORT", "TABLESAMPLE", "UNION", "UNPIVOT", "WHERE", "WINDOW",
))  # fmt: skip
_SYMBOLS = ("==", "<=>", "<>", "!=", "<=", ">=", "!<", "!>", "||", "|>", "::", "?::", "->", "=>", ":=")
_DIGITS = frozenset("0123456789")
_QUOTES = frozenset("'\"`")
_WINDOW = 128  # characters, of which the end of a comment is sought first


class _Breaks(dict[int, str]):
    """For `str.translate`: a space for each character that ends a word, a letter for any other."""

    def __missing__(self, code: int) -> str:
        return " " if chr(code).isspace() else "w"


def span_of_token(token: Token) -> Span:
    """The characters of `token` in the user's text."""
    return Span(token.start, token.end + 1)


def is_name(word: str) -> bool:
    """Whether the word of a token (`scan`) may be a part of a name."""
    return word == QUOTED or word[:1].isalpha() or word[:1] == "_"


def syntax_error(near: str | None, span: Span | None, hint: str = "") -> UserError:
    """PARSE_SYNTAX_ERROR 42601 as Spark words it; `near` None stands for the end of the input."""
    where = f"'{near}'" if near else "end of input"
    return UserError("PARSE_SYNTAX_ERROR", f"Syntax error at or near {where}{': ' + hint if hint else ''}.", span=span)


class _Bounded(list[Token]):
    """A list that refuses to grow beyond a number of tokens."""

    def __init__(self, most: int) -> None:
        self._most = most

    def append(self, token: Token) -> None:
        if len(self) >= self._most:
            raise ResourceError("STATEMENT_TOO_LARGE", f"The statement has more than {self._most} tokens.")
        super().append(token)


class _Core(TokenizerCore):
    """sqlglot's scanner with Spark's numbers and comments."""

    most = MOST_TOKENS
    breaks: _Breaks
    followers: dict[str, frozenset[str]]  # symbols, and what may follow each within a longer one

    def _scan(self, check_semicolon: bool = False) -> None:
        """sqlglot's loop with a short way for most tokens: words, and symbols that are no part of a longer one."""
        if self.size > self.most:  # else it cannot have as many
            self.tokens = _Bounded(self.most)
        sql, size, add, types, followers = self.sql, self.size, self.tokens.append, self.single_tokens, self.followers
        breaks = sql.translate(self.breaks)
        at = 0
        while at < size:
            char = sql[at]
            if breaks[at] == "w":
                if char not in _DIGITS and not (char in "rR" and sql[at + 1 : at + 2] in _QUOTES):
                    stop = breaks.find(" ", at)
                    if stop < 0:
                        stop = size
                    add(Token(TokenType.VAR, sql[at:stop], 1, 1, at, stop - 1))
                    at = stop
                    continue
            elif char in followers:
                if sql[at + 1 : at + 2] not in followers[char]:
                    add(Token(types[char], char, 1, 1, at, at))
                    at += 1
                    continue
            elif char.isspace():
                at += 1
                continue
            self._start = at
            self._move(at + 1)
            if char in _DIGITS:
                self._scan_number()
            elif char in self.identifiers:
                self._scan_identifier(self.identifiers[char])
            else:
                self._scan_keywords()
            at = self._current

    def _scan_number(self) -> None:
        """A number with its suffix (L S Y F D BD), or an identifier that starts with a digit; the longest match wins."""
        sql, start, size = self.sql, self._start, self.size
        end = start + 1
        while end < size and sql[end] in _DIGITS:
            end += 1
        kind = TokenType.NUMBER
        word = end
        while word < size and (sql[word].isalnum() or sql[word] == "_"):
            word += 1
        if word > end:
            tail = sql[end:word].upper()
            exponent = _exponent(sql, end)
            if exponent and _closed(sql, exponent):
                end = exponent
            elif exponent and (stop := _suffix(sql, exponent, ("F", "D", "BD"))):
                end = stop
            elif tail in ("L", "S", "Y", "F", "D", "BD"):
                end = word
            else:
                end, kind = word, TokenType.VAR
        elif end < size and sql[end] == ".":
            end = _fraction(sql, end) or end
        self._move(end)
        self._add(kind, sql[start:end])

    def _scan_keywords(self) -> None:
        if self._char == "$":
            self._move(_dollar_quoted(self.sql, self._start))
            self._add(TokenType.HEREDOC_STRING, self.sql[self._start : self._current])
            return
        if self._char == "." and self._peek in _DIGITS:
            end = _fraction(self.sql, self._start)
            if end:
                self._move(end)
                self._add(TokenType.NUMBER, self.sql[self._start : end])
                return
        super()._scan_keywords()

    def _scan_comment(self, comment_start: str) -> bool:
        if comment_start not in self.comments:
            return False
        sql, start = self.sql, self._start
        if comment_start == "--":
            self._move(_line_end(sql, start))
            return True
        if sql.startswith("/*+", start) and not (self.tokens and self.tokens[-1].text.upper() == "SELECT"):
            raise syntax_error("/*+", Span(start, start + 3))
        if sql.startswith("/*+", start):
            _check_hint(sql, start)
        depth, at, close = 1, start + 2, -1
        while depth:
            close = sql.find("*/", at) if close < at else close
            if close < 0:
                message = "Found an unclosed bracketed comment. Please, append */ at the end of the comment."
                raise UserError("UNCLOSED_BRACKETED_COMMENT", message, span=Span(start, start + 2))
            inner = sql.find("/*", at, close + 1)  # of /*/ Spark takes the first two
            if inner < 0:
                depth, at = depth - 1, close + 2
            else:  # a hint's opening opens no comment
                depth, at = depth + (sql[inner + 2 : inner + 3] != "+"), inner + 2
        self._move(at)
        return True

    def _move(self, end: int) -> None:
        """Stand behind `end` without counting lines: positions are offsets."""
        self._current = end
        self._char = self.sql[end - 1]
        self._end = end >= self.size
        self._peek = "" if self._end else self.sql[end]


def _line_end(sql: str, start: int) -> int:
    """Where the comment of a line ends: at a line feed that no backslash precedes, or at a carriage return."""
    at, width = start, _WINDOW
    while at < len(sql):
        found = [end for end in (sql.find("\n", at, at + width), sql.find("\r", at, at + width)) if end >= 0]
        if not found:
            at, width = at + width, 2 * width  # not to the end of the text at once, which each comment would search
        elif sql[min(found)] == "\n" and sql[min(found) - 1] == "\\":
            at, width = min(found) + 1, _WINDOW
        else:
            return min(found)
    return len(sql)


def _check_hint(sql: str, start: int) -> None:
    """Refuse a hint in which Spark, that reads it as tokens, may see another end than the first ``*/``."""
    stop = sql.find("*/", start)
    hint = sql[start + 2 : stop if stop >= 0 else len(sql)]
    if any(mark in hint for mark in ("'", '"', "/*", "--", "$")) or hint.count("`") % 2:
        raise unsupported("a hint with texts or comments in it", Span(start, start + 3))


def _dollar_quoted(sql: str, start: int) -> int:
    """End of the text in dollar quotes that starts at `start`; that of the dollar alone if there is none."""
    stop = sql.find("$", start + 1)
    tag = sql[start : stop + 1]
    closing = sql.find(tag, stop + 1) if stop > 0 and (tag == "$$" or tag[1:-1].isidentifier()) else -1
    return closing + len(tag) if closing > 0 else start + 1


def _closed(sql: str, end: int) -> bool:
    """Whether nothing that continues a word stands at `end`."""
    return end >= len(sql) or not (sql[end].isalnum() or sql[end] == "_")


def _exponent(sql: str, at: int) -> int:
    """End of an exponent (`e`, sign, digits) that starts at `at`; 0 if there is none."""
    size = len(sql)
    if at >= size or sql[at] not in "eE":
        return 0
    at += 1
    if at < size and sql[at] in "+-":
        at += 1
    first = at
    while at < size and sql[at] in _DIGITS:
        at += 1
    return at if at > first else 0


def _suffix(sql: str, at: int, suffixes: tuple[str, ...]) -> int:
    """End of one of `suffixes` at `at` that closes the word; 0 if there is none."""
    for suffix in suffixes:
        end = at + len(suffix)
        if sql[at:end].upper() == suffix and _closed(sql, end):
            return end
    return 0


def _fraction(sql: str, dot: int) -> int:
    """End of a fraction with exponent and suffix that starts with the dot at `dot`; 0 if a word follows (no number then)."""
    end = dot + 1
    size = len(sql)
    while end < size and sql[end] in _DIGITS:
        end += 1
    exponent = _exponent(sql, end)
    if exponent:
        end = exponent
    if _closed(sql, end):
        return end
    return _suffix(sql, end, ("F", "D", "BD"))


class Tokenizer(Databricks.Tokenizer):
    """Databricks SQL with single-word tokens; every word is a VAR token, whatever it means."""

    SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {**Databricks.Tokenizer.SINGLE_TOKENS, "$": TokenType.UNKNOWN}
    KEYWORDS: ClassVar[dict[str, TokenType]] = dict.fromkeys(_SYMBOLS, TokenType.OPERATOR)
    COMMANDS: ClassVar[set[TokenType]] = set()
    HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
    STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    def _init_core(self) -> TokenizerCore:
        made = super()._init_core()
        core = _Core.__new__(_Core)
        for name in TokenizerCore.__slots__:
            setattr(core, name, getattr(made, name))
        # No N'…' literals and no Jinja comments: both would be taken silently.
        core.format_strings = {k: v for k, v in made.format_strings.items() if v[1] is TokenType.RAW_STRING}
        core.comments = {"--": None, "/*": "*/"}
        symbols = core.single_tokens.keys() - _QUOTES
        core.followers = {s: frozenset(c for c in core.keyword_trie.get(s, ()) if c) for s in symbols}
        core.followers["."] = _DIGITS
        del core.followers["$"]
        core.breaks = _Breaks(dict.fromkeys(map(ord, core.single_tokens), " "))
        return core


_TOKENIZER: list[Tokenizer] = []


def scan(text: str, most: int = MOST_TOKENS) -> tuple[list[Token], list[str], UserError | None]:
    """Tokens of `text` with their words, both closed by an end token; the error, if any, that stopped the scan.

    The word of an unquoted word is its upper case, of a symbol the symbol (``|>`` of a pipe), else STRING, NUMBER, QUOTED or
    END.
    Raises ResourceError STATEMENT_TOO_LARGE for more than `most` tokens.
    """
    if not _TOKENIZER:
        _TOKENIZER.append(Tokenizer(dialect=Databricks))
    core = cast(_Core, _TOKENIZER[0]._core)  # noqa: SLF001 (sqlglot's own names)
    core.most = most
    error: UserError | None = None
    try:
        core.tokenize(text)
    except TokenError as e:
        if isinstance(e.__cause__, UserError):
            error = e.__cause__
        elif isinstance(e.__cause__, GatewayError):
            core.reset()
            raise e.__cause__ from None
        else:
            start = core._start  # noqa: SLF001
            error = syntax_error(text[start], Span(start, start + 1), "unclosed quotation")
    tokens = core.tokens
    core.reset()
    words: list[str] = []
    add = words.append
    for index, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.VAR:
            word = token.text
            if not word.isidentifier() and not (word[0] in _DIGITS and ("_" + word).isidentifier()):
                error = syntax_error(_printable(word), span_of_token(token))
                del tokens[index:]
                break
            word = word.upper()
            if word in _PIPED and words and words[-1] == "|":
                words[-1] = "|>"  # which Spark 4.2 writes as one character, too
            add(word)
        elif kind is TokenType.STRING or kind is TokenType.RAW_STRING:
            add(STRING)
        elif kind is TokenType.NUMBER:
            add(NUMBER)
        elif kind is TokenType.IDENTIFIER:
            add(QUOTED)
        else:
            add(token.text)
    tokens.append(Token(TokenType.SENTINEL, "", start=len(text), end=len(text) - 1))
    add(END)
    return tokens, words, error


def _printable(word: str) -> str:
    """`word` with what can't be shown in a message escaped."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in word[:64])
