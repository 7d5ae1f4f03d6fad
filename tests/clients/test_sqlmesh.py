"""sqlmesh plans, changes, compares and cleans a project without Spark, over HTTPS on port 443, as it takes no other.

sqlmesh is looked for in GATEWAY_TEST_SQLMESH, the path of its program, which lives in an environment of its own
(`pip install 'sqlmesh[databricks]'`).
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.live.doors import Certificates
from tests.live.gateway import start_server

SQLMESH = os.environ.get("GATEWAY_TEST_SQLMESH", "")
PORT = 443

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SQLMESH, reason="GATEWAY_TEST_SQLMESH names no sqlmesh"),
]
CONFIG = """
gateways:
  gateway:
    connection:
      type: databricks
      server_hostname: localhost
      http_path: /sql/1.0/warehouses/gateway
      access_token: none-needed
      catalog: main
      disable_databricks_connect: true
      disable_spark_session: true
    state_connection: {type: duckdb, database: state.db}
default_gateway: gateway
model_defaults: {dialect: databricks}
"""
MODELS = {
    "regions": "MODEL (name shop.regions, kind FULL, audits (not_null(columns := (id))));\n"
    "SELECT r_regionkey AS id, r_name AS name FROM samples.tpch.region",
    "daily": "MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), start '1998-07-01', end '1998-07-09');\n"
    "SELECT CAST(o_orderdate AS DATE) AS ds, COUNT(*) AS n FROM samples.tpch.orders\n"
    "WHERE o_orderdate BETWEEN @start_date AND @end_date GROUP BY 1",
    "last": "MODEL (name shop.last, kind VIEW);\nSELECT name FROM shop.regions WHERE id > 2",
}


def is_free() -> bool:
    """Whether a server may take the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return False
    return True


def test_a_project_is_planned_changed_and_compared(tmp_path: Path, certificates: Certificates) -> None:
    if not is_free():
        pytest.skip(f"port {PORT} cannot be taken here")
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "config.yaml").write_text(CONFIG)
    for name, text in MODELS.items():
        (project / "models" / f"{name}.sql").write_text(text)

    def sqlmesh(*arguments: str) -> str:
        done = subprocess.run(
            [SQLMESH, "--log-file-dir", str(tmp_path / "logs"), *arguments],
            cwd=project,
            env={
                **os.environ,
                "SSL_CERT_FILE": str(certificates.authority),
                "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",  # it looks for a host in the internet
            },
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout

    server = start_server(tmp_path / "gateway", "--tls-port", str(PORT), *certificates.flags)
    try:
        assert "Virtual layer updated" in sqlmesh("plan", "--auto-apply", "--no-prompts")
        assert "EUROPE" in sqlmesh("fetchdf", "SELECT * FROM shop.last")
        (project / "models" / "regions.sql").write_text(MODELS["regions"].replace("r_name", "lower(r_name)"))
        sqlmesh("plan", "dev", "--auto-apply", "--no-prompts", "--include-unmodified")
        assert "europe" in sqlmesh("fetchdf", "SELECT * FROM shop__dev.last")
        assert "0 audit errors" in sqlmesh("audit")
        assert "5 rows" in sqlmesh("table_diff", "prod:dev", "shop.regions", "-o", "id")
        sqlmesh("invalidate", "dev")
        sqlmesh("janitor")
        assert "shop__dev" not in sqlmesh("fetchdf", "SHOW SCHEMAS")
    finally:
        server.stop()
