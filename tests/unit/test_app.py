"""The parts put together: start, serve, drain, stop, and what the front process may not import."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import pickle
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.app import Gateway, Named, prepare_folders, runner_factory, write_ready_file
from gateway.auth.authenticators import token_line
from gateway.config import Config, load_config
from gateway.config.values import DatabaseUrl
from gateway.engine.base import Handler
from gateway.engine.launch import Launched
from gateway.errors import ConfigError, GatewayError
from gateway.observability import METRICS
from gateway.protocol.client import Client, RemoteError
from tests.live.fakes import FakeHandler

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Settings for a gateway inside `tmp_path`."""
    flags = {"port": "0", "warehouse": str(tmp_path / "w"), "state": str(tmp_path / "s")}
    return load_config({**flags, "ready-file": str(tmp_path / "ready.json"), "log-level": "error"}, {})


def get(url: str) -> tuple[int, bytes]:
    """Status and body."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def children() -> set[int]:
    """Process ids of our children."""
    found: set[int] = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has ended meanwhile
            found.update(map(int, (task / "children").read_text().split()))
    return found


def test_a_whole_life(config: Config) -> None:
    before = children()
    gateway = Gateway(config, FakeHandler)
    gateway.start()
    assert config.ready_file is not None
    facts = json.loads(config.ready_file.read_text())
    assert facts == {"pid": os.getpid(), "http": gateway.url, "tcp": None, "https": None}
    assert get(gateway.url + "/healthz")[0] == 200
    assert get(gateway.url + "/readyz")[0] == 200
    assert get(gateway.url + "/nonsense")[0] == 404
    with Client(gateway.url).open() as client:
        assert client.execute("rows 3").table().column("id").to_pylist() == [0, 1, 2]
        assert client.execute("rows 200000").table().num_rows == 200_000
        text = get(gateway.url + "/metrics")[1].decode()
        for wanted in ("sessions_open 1.0", 'engine_up{engine="datafusion"}', "result_rows_total", "rpc_seconds_count"):
            assert wanted in text
    assert gateway.drain(5)
    assert get(gateway.url + "/readyz")[0] == 503
    with pytest.raises(RemoteError):
        Client(gateway.url).open()
    gateway.stop()
    gateway.stop()
    assert not config.ready_file.exists()
    assert children() <= before
    assert [p for p in (config.state / "spool").iterdir() if p.is_file()] == []


def no_handler() -> Handler:
    """What no worker can make a handler of."""
    raise RuntimeError("no handler")


def test_a_failed_start_leaves_nothing(config: Config, capfd: pytest.CaptureFixture[str]) -> None:
    before = children()
    assert config.ready_file is not None
    config.ready_file.write_text("of a gateway that was killed")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for changes, factory, named in (
            ({"ready_file": Path("/proc/none/ready")}, FakeHandler, "ready-file: "),
            ({"ready_file": config.state}, FakeHandler, "ready-file: .* is a folder"),
            ({"warehouse": config.ready_file}, FakeHandler, "warehouse: .* is not a folder"),
            ({"port": taken.getsockname()[1]}, FakeHandler, "port: "),
            ({"host": "192.0.2.1", "auth": "token", "token_file": token_file(config)}, FakeHandler, "host: "),
            ({}, no_handler, "no handler"),
        ):
            bad = replace(config, **changes)
            bad.state.mkdir(exist_ok=True)
            with pytest.raises(GatewayError, match=named):
                Gateway(bad, factory, first=Launched()).start()
            assert children() <= before
            if factory is FakeHandler:
                assert capfd.readouterr() == ("", "")
    assert not config.ready_file.exists()


def token_file(config: Config) -> Path:
    """A file that holds one token's hash."""
    path = config.state.parent / "tokens.txt"
    path.write_text(token_line("alice", "secret") + "\n")
    return path


def test_ready_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.write_text("old")
    write_ready_file(path, "http://127.0.0.1:1")
    assert json.loads(path.read_text())["http"] == "http://127.0.0.1:1"
    assert [p.name for p in tmp_path.iterdir()] == ["ready"]


def test_the_handler_is_named_not_imported(config: Config) -> None:
    assert pickle.loads(pickle.dumps(Named("json:dumps"))) is json.dumps
    assert Named("json:dumps")(obj=1) == "1"
    assert b"gateway.runner" in pickle.dumps(runner_factory(config))


def test_the_front_process_imports_no_engine_and_no_parser() -> None:
    code = "import sys, gateway.app, gateway.cli.serve; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"sqlglot", "datafusion", "deltalake", "pandas", "databricks", "gateway.runner", "gateway.sql"}


def test_every_metric_that_is_used_is_declared_with_its_labels() -> None:
    declared = {m.name: m for m in METRICS}
    kinds = {"counter": "counter", "gauge": "gauge", "gauge_from": "gauge", "histogram": "histogram"}
    used = 0
    for path in (ROOT / "gateway").rglob("*.py"):
        if "thrift_gen" in path.parts or path.name == "observability.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in kinds:
                used += 1
                metric = declared[str(node.args[0].value)]
                labels = {k.arg for k in node.keywords} - {"amount", "seconds", "value", "read"}
                assert metric.kind == kinds[name], f"{path}:{node.lineno}"
                assert None in labels or labels == set(metric.labels), f"{path}:{node.lineno}"
    assert used > 5


def test_a_history_whose_driver_is_missing_is_said_by_name(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    url = DatabaseUrl("postgresql://ann:secret@127.0.0.1/h")
    with pytest.raises(ConfigError, match=r"psycopg: pip install '\.\[postgresql\]'") as caught:
        Gateway(replace(config, history=url), FakeHandler).start()
    assert caught.value.setting == "history" and "secret" not in str(caught.value) + repr(replace(config, history=url))


def test_a_warehouse_that_was_not_there_is_noticed(config: Config, tmp_path: Path) -> None:
    slip = replace(config, warehouse=tmp_path / "wharehouse")
    assert [prepare_folders(slip), prepare_folders(slip)] == [True, False]
