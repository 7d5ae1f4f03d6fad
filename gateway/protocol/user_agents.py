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
