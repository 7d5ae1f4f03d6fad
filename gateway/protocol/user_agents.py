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


# ADBC's Go driver closes the rows that databricks-sql-go has been answered with and goes on to read them: only the first batch
# of them is left. It has no name of its own.
READ_ONE_BATCH = ("godatabrickssqlconnector/",)


def reads_one_batch(client: str) -> bool:
    """Whether a program may read no batch of a page but the first."""
    return client.startswith(READ_ONE_BATCH)
