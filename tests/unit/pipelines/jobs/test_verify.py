"""What is told of a query that one engine refuses."""

from gateway.errors import ServerError, UserError
from gateway.pipelines.jobs.verify import told
from gateway.protocol.client import RemoteError


def test_the_gateways_error_keeps_its_condition_and_loses_advice_for_servers() -> None:
    text = "[UNSUPPORTED_FUNCTION] `f` is not supported. Spark may run it: start the gateway with --spark. SQLSTATE: 0A000 (l"
    error = told(RemoteError(text, "0A000"))
    assert isinstance(error, UserError) and str(error) == "[UNSUPPORTED_FUNCTION] `f` is not supported. SQLSTATE: 0A000"


def test_what_is_no_sql_error_is_told_as_it_is() -> None:
    error = told(RemoteError("HTTP 502 from a proxy", "08000"))
    assert isinstance(error, ServerError) and "HTTP 502 from a proxy" in str(error)
