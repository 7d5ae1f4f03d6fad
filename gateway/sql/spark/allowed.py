"""What must not reach Spark: code and files from elsewhere, what would tell or change Spark's own session.

Decided on tokens alone, as the respelling is, and with positions in the user's text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from gateway.errors import UnsupportedError, UserError, unsupported
from gateway.sql.bind.logged import reads_tables, shown
from gateway.sql.read.statement import Kind, Statement, read_statement
from gateway.sql.read.tokens import END, NUMBER, QUOTED, STRING, is_name, scan, span_of_token
from gateway.sql.spark.made_table import TABLE_FORMATS, check_options

_BEFORE_STRING = ("LOCATION", "INPATH", "JAR", "FILE", "ARCHIVE", "SERDE")
# Words of Delta's commands that take a path as a string; VACUUM removes files.
_BEFORE_PATH = frozenset({"OPTIMIZE", "VACUUM", "DETAIL", "HISTORY", "REORG", "TABLE", "CLONE"})
# Statements of scripts that would change what later statements of the Spark session mean, or places that no name tells.
_REFUSED_IN_SCRIPTS = frozenset(
    {
        "ADD",
        "ALTER",
        "CACHE",
        "CALL",
        "CLEAR",
        "CONVERT",
        "COPY",
        "CREATE",
        "DROP",
        "GENERATE",
        "LIST",
        "LOAD",
        "MSCK",
        "REFRESH",
    }
    | {"REPAIR", "REPLACE", "RESET", "UNCACHE", "USE"}
)
_BEFORE_STATEMENT = frozenset({";", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", "ATOMIC"})

# Functions that run code of the driver or tell Spark's own idea of the session.
_REFUSED_FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(("REFLECT", "JAVA_METHOD", "TRY_REFLECT"), "calls Java methods"),
    **dict.fromkeys(("CURRENT_USER", "SESSION_USER", "USER", "CURRENT_CATALOG"), "would tell Spark's own"),
    **dict.fromkeys(("CURRENT_DATABASE", "CURRENT_SCHEMA", "CURRENT_PATH"), "would tell Spark's own"),
    **dict.fromkeys(
        ("READ_FILES", "READ_KAFKA", "READ_PUBSUB", "READ_KINESIS", "HTTP_REQUEST"), "reads from elsewhere"
    ),
    **dict.fromkeys(("FROM_PROTOBUF", "TO_PROTOBUF"), "reads a file that its arguments name"),
    **dict.fromkeys(("READ_STATESTORE", "STATE_METADATA", "TABLE_CHANGES_BY_PATH"), "reads from elsewhere"),
    "TABLE_CHANGES": "would not find the gateway's tables",
}
# Functions whose options, a map, may name a file or host; and those options.
_HAVE_OPTIONS = frozenset({"FROM_XML", "SCHEMA_OF_XML", "TO_XML", "FROM_AVRO", "SCHEMA_OF_AVRO", "TO_AVRO"})
_NAME_PLACES = frozenset({"rowvalidationxsdpath", "avroschemaurl"})
# Spark counts in 2^p registers for a deviation of 1.106 / sqrt(2^p) and checks no end: from p = 32 on it writes beyond them,
# into memory of others, and before that the registers alone fill the driver. This is p = 16.
_SMALLEST_DEVIATION = 0.005
# The same for count_min_sketch: 2 / eps counters of 8 bytes for each half that its confidence lacks to 1, here 32 MB at most.
_SMALLEST_ERROR, _LARGEST_CONFIDENCE = 0.00001, 0.999999
# Partitions of one range, or of a hint: as many tasks are planned in the driver, whose loop serves all.
_MOST_TASKS = 100_000
_LANGUAGES = frozenset({"PYTHON", "JAVA", "SCALA", "R"})
_TIME_LITERALS = frozenset({"TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"})
# Functions of a point in time that no fraction of a second changes.
_WHOLE_PARTS = frozenset(
    {"YEAR", "QUARTER", "MONTH", "MONTHNAME", "WEEK", "WEEKOFYEAR", "DAY", "DAYNAME", "DAYOFMONTH"}
)
_WHOLE_PARTS |= {"DAYOFWEEK", "DAYOFYEAR", "WEEKDAY", "HOUR", "MINUTE", "SECOND"}
_BARE_FUNCTIONS = frozenset({"CURRENT_USER", "SESSION_USER", "CURRENT_CATALOG", "CURRENT_DATABASE", "CURRENT_SCHEMA"})
_OPENS, _CLOSES = frozenset({"(", "[", "{"}), frozenset({")", "]", "}"})
# Behind a parenthesis: what makes it a subquery.
_BEGINS_QUERY = frozenset({"SELECT", "FROM", "WITH", "VALUES", "TABLE", "REDUCE"})
# What means the user where no column has that name, in backticks as well.
_USER_NAMES = frozenset({"USER", "CURRENT_USER", "SESSION_USER"})


def check_allowed(statement: Statement, nanoseconds: bool = False, tells_user: bool = True) -> None:
    """Raise UnsupportedError for what must not reach Spark: code, foreign sources, what would tell its own session.

    Unless Spark keeps `nanoseconds`, that is also what it would cut off from literals without a word. Unless it `tells_user`
    of the gateway's session, that is also a name by which it would tell its own, though a column may have it.
    """
    words, tokens = statement.words, statement.tokens
    script = statement.kind is Kind.SCRIPT
    handlers: frozenset[int] = _handler_statements(words) if script else frozenset()
    makes = statement.kind is Kind.DDL and words[0] in ("CREATE", "REPLACE")
    for i, word in enumerate(words):
        before, behind = words[i - 1] if i else END, words[i + 1] if i + 1 < len(words) else END
        what = _told_by(statement, i, before, behind, tells_user)
        if what is None and word in _RULES:
            what = _RULES[word](words, i, behind)
        if what is None and word == "SELECT":
            what = _hint_of_tasks(statement, i)
        if what is None and not nanoseconds and word in _TIME_LITERALS and behind == STRING:
            what = _cut_off(statement, i)
        if what is None and script and (before in _BEFORE_STATEMENT or i in handlers):
            what = _refused_in_script(words, i)
        if what is None and script and word == "LOOP" and before != "END" and _runs_nothing(words, i + 1):
            what = "a LOOP without a statement"  # which no cancel ends, as Spark looks for one between statements
        if what is not None:
            raise unsupported(what, span_of_token(tokens[i]))
        if word == "WITH" and behind == "(":  # options of one relation, which would go before its own: `path` is one
            check_options(statement, i + 2)
        if makes and word in ("OPTIONS", "USING") and "SELECT" not in words[:i]:
            _check_made_table(statement, i, behind)


def check_expression(text: str) -> None:
    """Raise what keeps Spark from evaluating an expression of a table: EXPRESSION_NOT_ALLOWED for one that reads others,
    UnsupportedError for what must not reach it."""
    try:
        statement = read_statement(f"SELECT {text}")
        check_allowed(statement)
    except (UserError, UnsupportedError) as error:
        raise unsupported(f"an expression of a table ({shown(text)}: {error.message.rstrip('.')})") from error
    words = statement.words
    if statement.kind is not Kind.QUERY or any(a == "(" and w in _BEGINS_QUERY for a, w in itertools.pairwise(words)):
        raise reads_tables(text)


def _told_by(statement: Statement, i: int, before: str, behind: str, tells_user: bool) -> str | None:
    """What of Spark's own a name would tell: a call, or, unless it `tells_user` of the gateway's, a bare one."""
    word, text = statement.words[i], statement.tokens[i].text
    name = str(text).upper() if word == QUOTED else word
    reason = _REFUSED_FUNCTIONS.get(name)
    if reason is not None and (behind == "(" or (word in _BARE_FUNCTIONS and _stands_alone(before, behind))):
        return f"{text}() in a statement for Spark, where it {reason},"
    if name in _HAVE_OPTIONS and behind == "(" and not _options_are_known(statement, i + 1):
        return f"{text}() with an option that names a file, or whose name is no plain text,"
    if behind == "(" and name in _SIZES and (problem := _SIZES[name](_arguments(statement, i + 1))) is not None:
        return f"{text}() {problem}"
    if not tells_user and name in _USER_NAMES and statement.words[0] != "SHOW" and _may_be_value(before, behind):
        return f"{text} without its table's name in a statement for Spark, where it may tell Spark's own user,"
    return None


def _arguments(statement: Statement, opened: int) -> list[float | None]:
    """The arguments of the call whose parenthesis is at `opened`: those that are plain numbers, None for all others."""
    words, depth, first, found = statement.words, 0, opened + 1, list[float | None]()
    for i in range(opened, len(words)):
        depth += (words[i] in _OPENS) - (words[i] in _CLOSES)
        if not depth or (depth == 1 and words[i] == ","):
            plain = i == first + 1 and words[first] == NUMBER
            found.append(_number(statement.tokens[first].text) if plain else None)
            first = i + 1
        if not depth:
            break
    return found


def _number(text: str) -> float | None:
    """A number as it is written, None if it is none without its suffix."""
    try:
        return float(text.rstrip("dDfFbBlLsSyY"))
    except ValueError:
        return None


def _in(found: float | None, low: float, high: float) -> bool:
    return found is not None and low <= found <= high


def _deviation(arguments: Sequence[float | None]) -> str | None:
    known = len(arguments) < 2 or _in(arguments[1], _SMALLEST_DEVIATION, math.inf)
    return None if known else f"with a deviation that is no number from {_SMALLEST_DEVIATION} on"


def _counters(arguments: Sequence[float | None]) -> str | None:
    error, confidence = (*arguments[1:3], None, None)[:2]
    known = _in(error, _SMALLEST_ERROR, 1) and _in(confidence, 0, _LARGEST_CONFIDENCE)
    return (
        None
        if known
        else f"with an eps that is no number from {_SMALLEST_ERROR:f} on, or a confidence beyond {_LARGEST_CONFIDENCE}"
    )


def _tasks(arguments: Sequence[float | None]) -> str | None:
    known = len(arguments) < 4 or _in(arguments[3], 1, _MOST_TASKS)
    return None if known else f"with a number of partitions that is no number from 1 to {_MOST_TASKS}"


# Calls that take as much memory of the driver, or plan as many tasks in it, as one of their arguments says.
_SIZES: Mapping[str, Callable[[Sequence[float | None]], str | None]] = {
    "APPROX_COUNT_DISTINCT": _deviation,
    "COUNT_MIN_SKETCH": _counters,
    "RANGE": _tasks,
}


def _hint_of_tasks(statement: Statement, i: int) -> str | None:
    """A hint behind the SELECT at `i`, one of several, that asks for more tasks than Spark has room for."""
    gap = statement.text[statement.tokens[i].end + 1 : max(statement.tokens[i + 1].start, statement.tokens[i].end + 1)]
    for hint in gap.split("/*+")[1:]:
        tokens, words, _ = scan(hint.partition("*/")[0])
        asked = (_number(token.text) for token, word in zip(tokens, words, strict=True) if word == NUMBER)
        if not all(_in(n, 0, _MOST_TASKS) for n in asked):
            return f"a hint with a number beyond {_MOST_TASKS}"
    return None


def _options_are_known(statement: Statement, opened: int) -> bool:
    """Whether all maps in the call whose parenthesis is at `opened` are of texts that name no place.

    Spark takes options from nothing but a call of map(), and computes its arguments: names may be put together there.
    """
    words, depth = statement.words, 0
    for i in range(opened, len(words)):
        depth += (words[i] == "(") - (words[i] == ")")
        if not depth:
            break
        is_map = words[i] == "MAP" or (words[i] == QUOTED and str(statement.tokens[i].text).upper() == "MAP")
        if is_map and words[i + 1] == "(" and not _plain_options(statement, i + 2):
            return False
    return True


def _plain_options(statement: Statement, first: int) -> bool:
    """Whether the arguments of a map(), the first at `first`, are texts, and its keys letters and digits that name no place."""
    last = statement.words.index(")", first) if ")" in statement.words[first:] else len(statement.words)
    words = statement.words[first:last]
    if any(word != (STRING if i % 2 == 0 else ",") for i, word in enumerate(words)):
        return False
    spans = (span_of_token(token) for token in statement.tokens[first:last:4])
    # As they were sent: what an escape stands for is not known here.
    keys = [statement.text[span.start + 1 : span.stop - 1] for span in spans]
    return all(key.isascii() and key.isalnum() and key.lower() not in _NAME_PLACES for key in keys)


def _cut_off(statement: Statement, i: int) -> str | None:
    """A literal of which Spark would lose digits, unless only a part that they do not change is asked for."""
    words = statement.words
    if not _beyond_micros(statement.tokens[i + 1].text) or (
        i > 1 and words[i - 1] == "(" and words[i - 2] in _WHOLE_PARTS
    ):
        return None
    return "a literal with digits beyond microseconds"


def _check_made_table(statement: Statement, i: int, behind: str) -> None:
    """Raise UnsupportedError for a format, or options of one, that a table cannot be made with."""
    if statement.words[i] == "OPTIONS":
        if behind == "(":
            check_options(statement, i + 2)
    elif is_name(behind) and str(statement.tokens[i + 1].text).upper() not in ("DELTA", *TABLE_FORMATS):
        given = statement.tokens[i + 1]
        raise unsupported(f"a table of the format {given.text}", span_of_token(given))


# ---- words of a statement, and what of it they refuse: the words, the place of the one, and the word behind it

_Rule = Callable[[Sequence[str], int, str], str | None]


def _with_string(what: str) -> _Rule:
    return lambda words, i, behind: what if _is_string(behind) else None


def _with(follower: str, what: str) -> _Rule:
    return lambda words, i, behind: what if behind == follower else None


def _directory(words: Sequence[str], i: int, behind: str) -> str | None:
    return "DIRECTORY in a statement for Spark" if i and words[i - 1] in ("OVERWRITE", "LOCAL") else None


def _class(words: Sequence[str], i: int, behind: str) -> str | None:
    makes = _is_string(behind) and words[0] == "CREATE" and _makes_function(words[:i])
    return "CREATE FUNCTION of a class" if makes else None


def _language(words: Sequence[str], i: int, behind: str) -> str | None:
    makes = behind in _LANGUAGES and words[0] == "CREATE" and _makes_function(words[:i])
    return f"CREATE FUNCTION in the language {behind}" if makes else None


def _changed_options(words: Sequence[str], i: int, behind: str) -> str | None:
    return "OPTIONS of a table" if words[0] == "ALTER" else None


_RULES: Mapping[str, _Rule] = {
    **{w: _with_string(f"{w} in a statement for Spark") for w in _BEFORE_STRING},
    **{w: _with_string(f"{w} with a path in a statement for Spark") for w in _BEFORE_PATH},
    "USING": _with_string("TRANSFORM … USING a script"),
    "DIRECTORY": _directory,
    "IDENTIFIER": _with("(", "IDENTIFIER() of anything but strings and parameters"),
    "AS": _class,
    "LANGUAGE": _language,
    "OPTIONS": _changed_options,
    "SERDEPROPERTIES": _with("(", "SERDEPROPERTIES in a statement for Spark"),
    "EXECUTE": _with("IMMEDIATE", "EXECUTE IMMEDIATE in a statement for Spark"),
}


def _beyond_micros(text: str) -> bool:
    """Whether the fraction of a second has more digits than Spark keeps."""
    fraction = text.rpartition(".")[2]
    digits = fraction[: next((i for i, c in enumerate(fraction) if not c.isdigit()), len(fraction))]
    return "." in text and bool(digits[6:].strip("0"))


def _makes_function(head: Sequence[str]) -> bool:
    return "FUNCTION" in head[:5] and "RETURN" not in head


def _stands_alone(before: str, behind: str) -> bool:
    return before not in (".", "AS") and behind != "."


def _may_be_value(before: str, behind: str) -> bool:
    """Whether a name may be an expression of its own: it is no alias, relation, field, parameter or part of a longer name."""
    return before not in (".", ":", "AS", "JOIN", "INTO", "TABLE", "UPDATE", "VIEW") and behind not in (".", ":", "=>")


def _is_string(word: str) -> bool:
    """A string, or a parameter marker that becomes one."""
    return word in (STRING, "?", ":")


def _handler_statements(words: Sequence[str]) -> frozenset[int]:
    """Where the statements of a script's handlers begin: behind ``HANDLER FOR`` and its conditions."""
    found = set()
    for i, word in enumerate(words):
        if word != "HANDLER" or words[i + 1] != "FOR":
            continue
        at = i + 1
        while at == i + 1 or words[at] in (",", "."):
            at += 1
            at += 1 if words[at] in ("SQLSTATE", "NOT") else 0  # of two words, or three with VALUE
            at += 1 if words[at] == "VALUE" and words[at + 1] == STRING else 0
            at = min(at + 1, len(words) - 1)
        found.add(at)
    return frozenset(found)


def _refused_in_script(words: Sequence[str], index: int) -> str | None:
    """What of a script's statement must not reach Spark."""
    word, behind = words[index], words[index + 1 : index + 4]
    if word in _REFUSED_IN_SCRIPTS:
        return f"{word} in a script"
    # Variables are set by their bare name; all that has dots may be a setting of Spark.
    if word == "SET" and (
        behind[:1] == [QUOTED] or behind[1:2] == ["."] or behind[:1] in (["TIME"], ["CATALOG"], ["PATH"])
    ):
        return "SET of anything but a variable in a script"
    return None


def _runs_nothing(words: Sequence[str], index: int) -> bool:
    """Whether the body of a loop, which begins there, has nothing but labels, blocks, and ways on."""
    depth = 1
    while depth and index + 1 < len(words):
        word, behind = words[index], words[index + 1]
        if word == "END":
            depth -= behind == "LOOP"
            index += 1 if behind == "LOOP" else 0
            index += 1 if index + 1 < len(words) and words[index + 1] != ";" else 0  # a label
        elif word == "LOOP":
            depth += 1
        elif word in ("ITERATE", "LEAVE") or behind == ":":
            index += 1
        elif word not in (";", "BEGIN"):
            return False
        index += 1
    return not depth
