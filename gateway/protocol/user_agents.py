"""What programs are known to do that no version or field tells, by the beginning of their User-Agent."""

from __future__ import annotations

# Those that follow links to results over plain HTTP too. databricks-jdbc 2.6 to 2.8 asks for links and then fails on them
# ("SSL must be enabled when result file download is enabled"), so who is not known to do better gets them over TLS only.
FOLLOWS_PLAIN_LINKS = (
    "PyDatabricksSqlConnector/",
    "DatabricksJDBCDriverOSS/",
    "NodejsDatabricksSqlConnector/",
    "DeltaSqlGateway",  # ours, which asks for what it takes
)


def follows(client: str, origin: str) -> bool:
    """Whether a program can be given links that begin with `origin` (``scheme://name``; "" if there are none)."""
    return origin.startswith("https:") or (origin != "" and client.startswith(FOLLOWS_PLAIN_LINKS))


# databricks-sql-go closes an operation once it has its last page, and follows the links of that page afterwards. ADBC's Go
# driver, which has no name of its own, closes its rows as soon as it has the first batch or link: those that came with
# it are lost to it, the pages behind them it fetches.
READ_ON = ("godatabrickssqlconnector/",)


def reads_on(client: str) -> bool:
    """Whether a program may go on to read what it has closed: see `ResultOptions.reads_on`."""
    return client.startswith(READ_ON)
