"""What says that Spark is gone: never a text that a statement could make. The rest of `errors` is tested on Spark."""

from __future__ import annotations

import pytest

from gateway.engine.spark.errors import as_gateway_error, is_lost


class PySparkException(Exception):  # noqa: N818 (pyspark's name: it is not imported here)
    """As pyspark's, with a condition."""

    def __init__(self, text: str, condition: str | None = None) -> None:
        super().__init__(text)
        self.condition = condition

    def getCondition(self) -> str | None:  # noqa: N802
        return self.condition


class Py4JError(Exception):
    """As py4j's."""


class Py4JJavaError(Py4JError):
    """As py4j's."""


class Py4JNetworkError(Py4JError):
    """As py4j's."""


class RetriesExceeded(PySparkException):
    """As pyspark's Connect client's."""


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (ConnectionRefusedError(111, "Connection refused"), True),
        (BrokenPipeError(), True),
        (Py4JNetworkError("Answer from Java side is empty"), True),
        (Py4JError("An error occurred while calling o25.sql"), True),
        (
            Py4JError("An error occurred while calling o25.x. Trace:\npy4j.Py4JException: Method x does not exist"),
            False,
        ),
        (Py4JJavaError("Connection refused"), False),
        (PySparkException("Connection refused", "USER_RAISED_EXCEPTION"), False),
        (PySparkException("StatusCode.UNAVAILABLE", "USER_RAISED_EXCEPTION"), False),
        (PySparkException("status = StatusCode.UNAVAILABLE"), True),
        (PySparkException("Session not found", "INVALID_HANDLE.SESSION_NOT_FOUND"), True),
        (RetriesExceeded("retries"), True),
        (ValueError("Connection reset"), False),
    ],
)
def test_a_lost_spark(error: Exception, lost: bool) -> None:
    assert is_lost(error) is lost


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PySparkException("Session was closed", "INVALID_HANDLE.SESSION_CLOSED"), "if it writes, check that"),
        (BrokenPipeError(), "send it again"),
    ],
)
def test_a_loss_may_be_sent_again(error: Exception, told: str) -> None:
    found = as_gateway_error(error, "", lambda offset: offset, str)
    assert (found.condition, found.sqlstate, found.retryable) == ("WORKER_LOST", "08006", True)
    assert told in found.message


@pytest.mark.parametrize(
    ("text", "condition", "sqlstate"),
    [
        (
            "java.util.IllegalFormatConversionException: d != org.apache.spark.unsafe.types.UTF8String",
            "INVALID_PARAMETER_VALUE.PATTERN",
            "22023",
        ),
        ("java.util.IllegalFormatWidthException: -2147483648", "INVALID_PARAMETER_VALUE.PATTERN", "22023"),
        (
            "org.xml.sax.SAXParseException; lineNumber: 1; columnNumber: 3; XML document structures must start and end.",
            "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
            "22023",
        ),
        (
            "javax.xml.transform.TransformerException: Could not find function: document",
            "INVALID_PARAMETER_VALUE.PATTERN",
            "22023",
        ),
        (
            "com.fasterxml.jackson.core.exc.StreamConstraintsException: Document nesting depth (1001) exceeds the maximum",
            "STATEMENT_TOO_COMPLEX",
            "54001",
        ),
        ("java.lang.StackOverflowError", "STATEMENT_TOO_COMPLEX", "54001"),
        ('java.lang.IllegalArgumentException: For input string: "x"', "INVALID_OPTIONS", "42K06"),
        ('java.lang.NumberFormatException: For input string: "x"', "INVALID_OPTIONS", "42K06"),
        ("java.lang.IllegalArgumentException: Delimiter cannot be empty string", "INVALID_OPTIONS", "42K06"),
        ("java.lang.IllegalArgumentException: requirement failed: 'rowTag' option", "INVALID_OPTIONS", "42K06"),
        ("java.lang.IllegalArgumentException: something", "INTERNAL_ERROR", "XX000"),
        ("java.util.regex.PatternSyntaxException: Unclosed group", "INVALID_PARAMETER_VALUE.PATTERN", "22023"),
        (
            "com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input: expected close marker (start marker at",
            "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
            "22023",
        ),
        ("java.lang.IllegalStateException: something", "INTERNAL_ERROR", "XX000"),
    ],
)
def test_values_that_java_has_no_room_or_no_word_for(text: str, condition: str, sqlstate: str) -> None:
    pytest.importorskip("pyspark")
    found = as_gateway_error(Py4JJavaError(text), "", lambda offset: offset, str)
    assert (found.condition, found.sqlstate) == (condition, sqlstate)
    assert "org.apache.spark" not in found.message
