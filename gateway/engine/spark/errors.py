"""Spark's exceptions as errors of ours: condition, SQLSTATE, message and position; never Java's stack."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gateway.errors import (
    CanceledError,
    GatewayError,
    ResourceError,
    ServerError,
    Span,
    UnsupportedError,
    UserError,
    disk_full,
)

_NO_MEMORY = ("OutOfMemoryError", "Total size of serialized results")
NO_SPACE = ("No space left on device", "Disk quota exceeded")
# What py4j and Python raise when the other end of the socket is gone, and pyspark when a Connect server is.
_NETWORK = frozenset({"Py4JNetworkError", "ConnectionError", "EOFError", "RetriesExceeded"})
_RESOURCE_CLASSES = ("53", "54", "57")
_LONGEST_CHAIN = 8
# What an exception tells where only its cause says something: none, or that a write failed, with the place on the server.
_CARRIERS = (None, "", "TASK_WRITE_FAILED")
_LONGEST_TOLD = 500
_UNAVAILABLE = "StatusCode.UNAVAILABLE"
# What Java says of options of functions, which Spark hands on as it is: no number or truth value, empty ones.
_OF_OPTIONS = ("For input string: ", "Delimiter cannot be", "requirement failed: '")
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_SERVER_CLASSES = ("XX", "58", "08", "KD")


def is_lost(error: BaseException) -> bool:
    """Whether the JVM or the Connect server is gone, or has forgotten its sessions. Never judged by a statement's own text."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "Py4JJavaError" in names:
        return False  # the JVM has answered
    if names & _NETWORK:
        return True
    if "PySparkException" in names:
        return is_forgotten(error) or (not error.getCondition() and _UNAVAILABLE in str(error))  # type: ignore[attr-defined]
    if "RpcError" in names:
        return _UNAVAILABLE in str(error)
    return type(error).__name__ == "Py4JError" and "Trace:" not in str(error)  # an empty answer


def is_forgotten(error: BaseException) -> bool:
    """Whether a Connect server does not know the session, or the operation, any more: at least that one is lost."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return "PySparkException" in names and (error.getCondition() or "").startswith("INVALID_HANDLE.")  # type: ignore[attr-defined]


def tells_full_disk(text: str) -> bool:
    """Whether a text of Spark's, or of ours, speaks of a disk that is full."""
    return "no space left" in text.lower() or any(word in text for word in NO_SPACE)


def as_gateway_error(
    error: BaseException, text: str, original: Callable[[int], int], names: Callable[[str], str]
) -> GatewayError:
    """`error` of pyspark or py4j for the client.

    Args:
        text: what Spark was sent.
        original: maps an offset of the text that Spark was sent to one of the user's text. Spark's parser counts code points.
        names: puts the gateway's names of tables in the place of Spark's.
    """
    if isinstance(error, GatewayError):
        return error
    if is_forgotten(error):
        text = "Spark's server has dropped the session of this statement: if it writes, check that before sending it again."
        return ServerError("WORKER_LOST", text, retryable=True)
    if is_lost(error):
        return ServerError("WORKER_LOST", "Spark was lost while running this statement; send it again.", retryable=True)
    shortage = _shortage(error)
    if shortage is not None:
        return shortage
    condition, sqlstate, message, span = _facts(_told(error), text, original)
    if condition == "OPERATION_CANCELED":
        return CanceledError("OPERATION_CANCELED", "The statement was cancelled.")
    if condition is None:
        return _unnamed(error, names)
    kind: type[GatewayError] = UserError
    if sqlstate.startswith("0A"):
        kind = UnsupportedError
    elif sqlstate.startswith(_RESOURCE_CLASSES):
        kind = ResourceError
    elif sqlstate.startswith(_SERVER_CLASSES):
        kind = ServerError
    return kind(condition, names(message), sqlstate=sqlstate, span=span)


def _shortage(error: BaseException) -> ResourceError | None:
    """What a failure is if memory or disk is at its bottom, under whatever condition it comes."""
    texts = _texts(error)
    if any(word in text for text in texts for word in _NO_MEMORY):
        return ResourceError("RESOURCE_EXHAUSTED", "Spark has not enough memory for this statement.")
    if any(word in text for text in texts for word in NO_SPACE):
        return disk_full("There is no space left on a disk that Spark writes to.")
    return None


def _texts(error: Any) -> list[str]:
    """The messages of an exception's causes in the JVM; its own text only if Spark gave it no condition."""
    from pyspark.errors import PySparkException

    named = isinstance(error, PySparkException) and bool(error.getCondition())
    texts = [] if named else [str(error)]
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    java = java.getCause() if java is not None and named else java
    for _ in range(_LONGEST_CHAIN):
        if java is None:
            break
        texts.append(str(java.toString()))
        java = java.getCause()
    return texts


def _told(error: Any) -> Any:
    """The first of an exception and its causes in the JVM that names a condition of its own; else the exception."""
    from pyspark.errors import PySparkException
    from pyspark.errors.exceptions.captured import UnknownException

    if isinstance(error, PySparkException) and error.getCondition() not in _CARRIERS:
        return error
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(_LONGEST_CHAIN):
        if java is None:
            break
        found = UnknownException(origin=java)  # of any class: pyspark's own conversion knows but some
        if found.getCondition() not in _CARRIERS:
            return found
        java = java.getCause()
    return error


def _facts(error: BaseException, text: str, original: Callable[[int], int]) -> tuple[str | None, str, str, Span | None]:
    """Condition, SQLSTATE, message without either, position; condition None if Spark gave none."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None, "", "", None
    condition = error.getCondition()
    if not condition:
        return None, "", "", None
    sqlstate = error.getSqlState() or "XX000"
    message = _without_stack(_message(error)).removeprefix(f"[{condition}]").strip()
    message = message.rpartition(" SQLSTATE: ")[0] or message
    return condition, sqlstate, message, _span(error, text, original)


def _message(error: Any) -> str:
    from py4j.protocol import Py4JError

    try:
        return error.getMessage() or str(error)
    except Py4JError:  # Spark looks the condition up in its own list, where Delta's are not
        return str(error)


def _parse_position(error: BaseException) -> tuple[int, int] | None:
    """Line (from 1) and column (from 0) of a syntax error: they stand only in the exception's text."""
    found = _POSITION.search(str(error))
    return (int(found[1]), int(found[2])) if found else None


def _span(error: BaseException, text: str, original: Callable[[int], int]) -> Span | None:
    contexts = error.getQueryContext() or []  # type: ignore[attr-defined]
    for context in contexts:
        if context.contextType().name == "SQL" and not context.objectName():
            start, stop = context.startIndex(), context.stopIndex()
            if 0 <= start <= stop:
                begin = original(start)
                return Span(begin, max(begin + 1, original(stop) + 1))
    position = _parse_position(error)
    if position is None:
        return None
    line, column = position
    before = text.split("\n")[: line - 1]
    begin = original(sum(len(each) + 1 for each in before) + column)
    return Span(begin, begin + 1)


def _without_stack(message: str) -> str:
    lines = []
    for line in message.splitlines():
        if line.startswith(("\tat ", "JVM stacktrace:", "org.apache.spark.", "== SQL", "Driver stacktrace:")):
            break
        lines.append(line)
    return "\n".join(lines).strip()


def _unnamed(error: BaseException, names: Callable[[str], str]) -> GatewayError:
    """A failure without a condition: the innermost cause's first line, its class without the package."""
    text = next((t.strip() for t in reversed(_texts(error)) if t.strip()), type(error).__name__)
    kind, colon, rest = text.split("\n")[0].partition(": ")
    found = _of_values(kind, names(rest)[:_LONGEST_TOLD])
    if found is not None:
        return found
    line = f"{kind.rpartition('.')[2]}: {rest}" if colon and " " not in kind else kind + colon + rest
    return ServerError("INTERNAL_ERROR", f"Spark failed: {names(line)[:_LONGEST_TOLD]}")


def _of_values(kind: str, rest: str) -> GatewayError | None:
    """A failure for which Spark has no condition, as its values are to blame: the class of its cause, and what that tells."""
    java_class = kind.partition(";")[0]
    if java_class.startswith("java.util.") and "Format" in java_class:  # of Formatter, behind format_string
        told = rest.partition(" != ")[0]
        text = f"The value of parameter `strfmt` is invalid: {java_class.rpartition('.')[2]}, {told}."
        return UserError("INVALID_PARAMETER_VALUE.PATTERN", text)
    if java_class == "org.xml.sax.SAXParseException":
        text = f"Malformed XML: {rest.rpartition('; ')[2]}"
        return UserError("MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION", text)
    if java_class.endswith((".TransformerException", ".XPathExpressionException")):
        text = f"The value of parameter `xpath` is invalid: {rest}"
        return UserError("INVALID_PARAMETER_VALUE.PATTERN", text)
    if java_class == "java.util.regex.PatternSyntaxException":
        return UserError("INVALID_PARAMETER_VALUE.PATTERN", f"The value of parameter `regexp` is invalid: {rest}")
    if java_class.startswith("java.lang.") and rest.startswith(_OF_OPTIONS):
        text = f"The value of an option is invalid: {rest.removeprefix('requirement failed: ')}"
        return UserError("INVALID_OPTIONS", text)
    if java_class.startswith("com.fasterxml.jackson.core.") and java_class.endswith(("EOFException", "ParseException")):
        text = f"A JSON text is malformed: {rest.partition(' (start marker at')[0].partition(' at [Source')[0]}"
        return UserError("MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION", text)
    if java_class.endswith(".StreamConstraintsException"):
        return ResourceError("STATEMENT_TOO_COMPLEX", f"A JSON text is more than Spark reads: {rest}")
    if java_class == "java.lang.StackOverflowError":
        return ResourceError(
            "STATEMENT_TOO_COMPLEX",
            "An expression or a value of this statement is nested deeper than Spark's stack holds.",
        )
    return None
