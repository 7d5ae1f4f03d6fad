"""The Databricks CLI (the program `databricks`): its `api` calls, warehouses and the history of queries."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.authenticators import token_line
from tests.live.gateway import Server, start_server

CLI = os.environ.get("GATEWAY_TEST_DATABRICKS_CLI") or shutil.which("databricks")
pytestmark = pytest.mark.skipif(
    CLI is None, reason="there is no Databricks CLI on the path or in GATEWAY_TEST_DATABRICKS_CLI"
)
STATEMENTS = "/api/2.0/sql/statements"


class Cli:
    """The program, with a home and a configuration of its own."""

    def __init__(self, home: Path, url: str, token: str) -> None:
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "DATABRICKS_HOST": url, "DATABRICKS_TOKEN": token}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What it prints."""
        return subprocess.run(
            [str(CLI), *arguments], env=self.env, capture_output=True, text=True, timeout=90, check=False
        )

    def json(self, *arguments: str) -> Any:
        """What it prints, which is JSON."""
        done = self.run(*arguments, "--output", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def execute(self, statement: str, **fields: Any) -> Any:
        """The answer to a statement."""
        return self.json(
            "api", "post", STATEMENTS, "--json", json.dumps({"statement": statement, "warehouse_id": "w", **fields})
        )


@pytest.fixture
def cli(server: Server, tmp_path: Path) -> Cli:
    return Cli(tmp_path, server.url, "none-needed")


def test_statements(cli: Cli) -> None:
    answer = cli.execute("SELECT :a + 1 AS a", parameters=[{"name": "a", "value": "2", "type": "INT"}])
    assert answer["result"]["data_array"] == [["3"]]
    assert answer["manifest"]["schema"]["columns"][0]["type_name"] == "INT"
    failed = cli.execute("SELECT 1 / 0")
    assert failed["status"]["state"] == "FAILED"
    assert "DIVIDE_BY_ZERO" in failed["status"]["error"]["message"]
    started = cli.execute(
        "SELECT count(*) FROM range(4000000) a CROSS JOIN range(4000000) b WHERE a.id * b.id = 1", wait_timeout="0s"
    )
    assert cli.run("api", "post", f"{STATEMENTS}/{started['statement_id']}/cancel").returncode == 0
    assert cli.json("api", "get", f"{STATEMENTS}/{started['statement_id']}")["status"]["state"] == "CANCELED"


def test_errors_are_shown(cli: Cli) -> None:
    for arguments, words in (
        (("api", "get", f"{STATEMENTS}/none"), "INVALID_OPERATION_HANDLE"),
        (("api", "post", STATEMENTS, "--json", '{"statement": "SELECT 1", "no_such": 1}'), "no_such"),
        (("clusters", "list"), "No API found for 'GET /api/2.1/clusters/list'"),
    ):
        done = cli.run(*arguments)
        assert done.returncode != 0
        assert words in done.stderr


def test_warehouses_and_queries(cli: Cli) -> None:
    assert [warehouse["id"] for warehouse in cli.json("warehouses", "list")] == ["gateway"]
    assert cli.json("warehouses", "start", "gateway")["state"] == "RUNNING"
    assert cli.json("current-user", "me")["userName"]
    asked = cli.execute("SELECT 'of the history' AS a")
    assert asked["statement_id"] in [query["query_id"] for query in cli.json("query-history", "list")["res"]]


def test_a_token_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(token_line("alice", "dapi-right") + "\n")
    (tmp_path / "tokens").chmod(0o600)
    server = start_server(tmp_path / "server", "--auth", "token", "--token-file", str(tmp_path / "tokens"))
    try:
        assert Cli(tmp_path, server.url, "dapi-right").json("current-user", "me")["userName"] == "alice"
        done = Cli(tmp_path, server.url, "dapi-wrong").run("current-user", "me")
        assert done.returncode != 0
        assert "token is not valid" in done.stderr
    finally:
        server.stop()


def test_the_examples_of_the_documentation_work(cli: Cli) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
    section = text.partition("\n## REST\n")[2].partition("\n## ")[0]
    calls = re.findall(r"^databricks (.*)$", section, re.MULTILINE)
    assert len(calls) == 3
    for call in calls:
        done = subprocess.run(
            ["sh", "-c", f"{CLI} {call}"], env=cli.env, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
