"""dbt-spark builds and tests a project on a server with Spark, by Thrift over TCP and over HTTPS.

It turns ANSI mode off in each of its sessions, which only Spark honours. dbt is looked for in GATEWAY_TEST_DBT_SPARK, the path
of its program, which lives in an environment of its own (`pip install 'dbt-spark[PyHive]'`).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.doors import Certificates
from tests.live.gateway import Server, connect_to
from tests.live.spark import start_with_spark

DBT = os.environ.get("GATEWAY_TEST_DBT_SPARK", "")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not DBT, reason="GATEWAY_TEST_DBT_SPARK names no dbt"),
]
METHODS = {
    "thrift": "method: thrift, host: {tcp_host}, port: {tcp_port}, auth: LDAP, user: token, password: any",
    "http": "method: http, host: localhost, port: {tls_port}, token: any, organization: '0', cluster: gateway",
}
FILES = {
    "dbt_project.yml": "{name: shop, version: '1.0', profile: gateway, config-version: 2, models: {+file_format: delta}}",
    "seeds/orders.csv": "id,amount\n1,1.5\n2,2.5\n",
    "models/priced.sql": "{{ config(materialized='view') }} select id, amount * 2 as amount from {{ ref('orders') }}",
    "models/kept.sql": "{{ config(materialized='table') }} select * from {{ ref('priced') }} where amount > 0",
    "models/merged.sql": (
        "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }} "
        "select id, amount from {{ ref('orders') }}"
    ),
    "models/models.yml": (
        "models: [{name: kept, description: 'What is kept', columns: [{name: id, data_tests: [unique, not_null]}]}]"
    ),
    "snapshots/amounts.sql": (
        "{% snapshot amounts %}{{ config(unique_key='id', strategy='check', check_cols=['amount'], "
        "target_schema=target.schema, file_format='delta') }}select id, amount from {{ ref('orders') }}{% endsnapshot %}"
    ),
}


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory, spark_here: None, certificates: Certificates) -> Iterator[Server]:
    """A gateway with Spark, HTTP, HTTPS and TCP."""
    server = start_with_spark(
        tmp_path_factory.mktemp("doors"), "--tcp-port", "0", "--tls-port", "0", *certificates.flags
    )
    yield server
    assert server.stop() == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_project_is_built_again_tested_and_documented(
    tmp_path: Path, doors: Server, certificates: Certificates, method: str
) -> None:
    schema = f"shop_{method}"
    host, port = doors.tcp_address
    target = METHODS[method].format(tcp_host=host, tcp_port=port, tls_port=(doors.https or "").rpartition(":")[2])
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    profile = f"gateway: {{target: dev, outputs: {{dev: {{type: spark, threads: 2, schema: {schema}, {target}}}}}}}"
    (tmp_path / "profiles.yml").write_text(profile)

    def dbt(*arguments: str) -> dict[str, str]:
        done = subprocess.run(
            [DBT, "--no-use-colors", *arguments],
            cwd=tmp_path,
            env={**os.environ, "DBT_PROFILES_DIR": str(tmp_path), "SSL_CERT_FILE": str(certificates.authority)},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
        results = json.loads((tmp_path / "target" / "run_results.json").read_text())["results"]
        return {r["unique_id"].split(".", 2)[2].split(".")[0]: r["status"] for r in results}

    built = dbt("build")
    assert built.keys() >= {"orders", "priced", "kept", "merged", "amounts"}
    assert set(built.values()) == {"success", "pass"}
    (tmp_path / "seeds" / "orders.csv").write_text("id,amount\n1,9.5\n3,3.5\n")
    assert set(dbt("build").values()) == {"success", "pass"}
    dbt("docs", "generate")
    nodes = json.loads((tmp_path / "target" / "catalog.json").read_text())["nodes"]
    assert set(nodes["model.shop.kept"]["columns"]) == {"id", "amount"}
    with connect_to(doors, schema=schema) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT CAST(id AS INT), CAST(amount AS DOUBLE) FROM merged ORDER BY 1")
        assert [tuple(row) for row in cursor.fetchall()] == [(1, 9.5), (2, 2.5), (3, 3.5)]
        cursor.execute("SELECT count(*), count(dbt_valid_to) FROM amounts")
        assert [tuple(row) for row in cursor.fetchall()] == [(4, 1)]
