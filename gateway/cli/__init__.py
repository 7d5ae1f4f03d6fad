"""The command line: `gateway serve | demo | query | check-sql | bench | doctor | spark | token | pipeline`."""

from gateway.cli.main import main

__all__ = ["main"]
