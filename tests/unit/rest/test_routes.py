"""What is told of the one warehouse."""

from __future__ import annotations

import pytest

from gateway.protocol.handler import Caller
from gateway.rest.routes import list_warehouses
from gateway.service.api import Principal


@pytest.mark.parametrize(
    ("origin", "there"),
    [("http://[::1]:8080", "[::1]:8080"), ("https://[fe80::1]", "[fe80::1]:443"), ("http://name", "name:80")],
)
def test_addresses_are_written_as_urls_have_them(origin: str, there: str) -> None:
    (told,) = list_warehouses(Caller(Principal("me"), "", origin), {}, {})["warehouses"]
    assert told["jdbc_url"].startswith(f"jdbc:databricks://{there}/default;")
    assert "[" not in told["odbc_params"]["hostname"]
