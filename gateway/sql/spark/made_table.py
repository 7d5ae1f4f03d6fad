"""CREATE TABLE of other formats than Delta by its tokens: which format, and which options of its files may be given."""

from __future__ import annotations

from gateway.errors import unsupported
from gateway.sql.read.statement import Kind, Statement, read_statement
from gateway.sql.read.tokens import END, NUMBER, STRING, span_of_token

# Formats of tables beside Delta. Spark's Avro is no part of its distribution.
TABLE_FORMATS = frozenset({"PARQUET", "CSV", "JSON", "ORC", "TEXT"})
# Options of their files, lower case; all others are refused, as some name places or classes.
#: Options of Spark's files that say how they are read and written, in lower case.
FILE_OPTIONS = frozenset(
    {
        *("sep", "delimiter", "encoding", "charset", "quote", "quoteall", "escape", "comment", "header", "inferschema"),
        *("prefersdate", "preferdate", "enforceschema", "ignoreleadingwhitespace", "ignoretrailingwhitespace"),
        *("nullvalue", "emptyvalue", "nanvalue", "positiveinf", "negativeinf", "dateformat", "timestampformat"),
        *("timestampntzformat", "enabledatetimeparsingfallback", "maxcolumns", "maxcharspercolumn", "mode"),
        *("columnnameofcorruptrecord", "multiline", "chartoescapequoteescaping", "samplingratio", "locale", "linesep"),
        *("unescapedquotehandling", "compression", "codec", "extension", "timezone", "primitivesasstring"),
        *("prefersdecimal", "allowcomments", "allowunquotedfieldnames", "allowsinglequotes", "ignorenullfields"),
        *("allownumericleadingzeros", "allowbackslashescapinganycharacter", "allowunquotedcontrolchars"),
        *("allownonnumericnumbers", "dropfieldifallnull", "wholetext", "mergeschema", "datetimerebasemode"),
        *("int96rebasemode", "orc.compress", "parquet.compression"),
    }
)


# Words outside of parentheses with which a CREATE TABLE names a place, a class or a query.
_NOT_KEPT = frozenset(
    {"AS", "SELECT", "FROM", "TABLE", "WITH", "VALUES", "LOCATION", "LIKE", "CLONE", "STORED", "ROW", "SERDE"}
)


def table_format(statement: Statement) -> str | None:
    """The format of the table that a statement makes, upper case; None for one of Delta, and for other statements."""
    words = statement.words
    if words[0] not in ("CREATE", "REPLACE") or "TABLE" not in words[:4]:
        return None
    depth = 0
    for i, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if not depth and word in ("AS", "SELECT"):
            break
        if not depth and word == "USING":
            return words[i + 1] if words[i + 1] in TABLE_FORMATS else None
    return None


_HEAD = 2  # the last word of CREATE TABLE and a name


def check_definition(text: str, format_: str) -> None:
    """Refuse what stands behind the name of a kept table of another format than Delta unless it is as Spark tells it.

    Raises UnsupportedError: columns, format, options, partitions, comment and properties are fine, a place or a query is not.
    """
    statement = read_statement(f"CREATE TABLE kept {text}")
    words, depth = statement.words, 0
    for i, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if i > _HEAD and not depth and word in _NOT_KEPT:
            raise unsupported(f"{word} in the definition of a kept table", span_of_token(statement.tokens[i]))
        if word == "OPTIONS" and words[i + 1] == "(":
            check_options(statement, i + 2)
    if statement.kind is not Kind.DDL or table_format(statement) != format_.upper() or ";" in words:
        raise unsupported(f"A kept table of the format {format_} with the definition {text[:200]}")


def check_options(statement: Statement, at: int) -> None:
    """Refuse an option of a new table that is none of how its files are written and read (``path`` would be one)."""
    words, tokens = statement.words, statement.tokens
    while words[at] not in (")", END):
        start = at
        while words[at] not in ("=", ",", ")", "TRUE", "FALSE", STRING, NUMBER, END) or at == start:
            at += 1
        name = "".join(str(t.text) for t in tokens[start:at])
        if name.lower() not in FILE_OPTIONS:
            raise unsupported(f"the option {name} of a table", span_of_token(tokens[start]))
        at += 2 if words[at] == "=" else 1
        if words[at] == ",":
            at += 1
