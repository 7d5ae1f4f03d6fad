"""What the server remembers of statements that have ended, by whoever sends large ones: as much as it may, and no more."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import outcome, resident_mib
from tests.live.gateway import Server, start_server

_MOST_MIB = 140  # of which some is what one statement needs while it runs


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_server(tmp_path_factory.mktemp("kept"), "--memory-limit", "512MiB", "--slots", "2")
    yield server
    assert server.stop() == 0


@pytest.fixture
def before(own: Server) -> Iterator[float]:
    """What the server takes; afterwards it has not grown by much."""
    taken = resident_mib(own.process.pid)
    yield taken
    assert resident_mib(own.process.pid) < taken + _MOST_MIB


def _columns(number: int, length: int) -> str:
    return ", ".join(f"{i} AS `{number:04d}{i:04d}{'x' * length}`" for i in range(100))


def test_texts_of_statements_that_nobody_closes_are_let_go_of(own: Server, before: float) -> None:
    for number in range(40):
        text = f"SELECT {number} AS x -- {'x' * 8_000_000}"
        body = json.dumps({"statement": text, "wait_timeout": "50s"}).encode()
        request = urllib.request.Request(f"{own.url}/api/2.0/sql/statements", body)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["status"]["state"] == "SUCCEEDED"


def test_definitions_that_were_replaced_are_let_go_of(own: Server, before: float) -> None:
    with Client(own.thrift_url).open() as client:
        for number in range(40):
            made = outcome(
                client, f"CREATE OR REPLACE TEMPORARY VIEW v AS SELECT {number} AS x, '{'x' * 8_000_000}' AS y"
            )
            assert isinstance(made, list)


def test_a_session_is_no_larger_than_it_is_sent_along_at_once(own: Server) -> None:
    """Each of its statements takes all of it along: with hundreds of MiB others' calls waited for seconds."""
    with Client(own.thrift_url).open() as client:
        view = f"AS SELECT '{'x' * 8_000_000}' AS y"
        made = [outcome(client, f"CREATE TEMPORARY VIEW v{number} {view}") for number in range(10)]
        refused = [each for each in made if isinstance(each, RemoteError)]
        assert len(refused) >= 2 and all("64 MiB at most" in str(each) for each in refused)
        assert outcome(client, "SELECT 1 AS x FROM v0") == [{"x": 1}]
        assert outcome(client, "DROP VIEW v0") == []
        assert not isinstance(outcome(client, f"CREATE TEMPORARY VIEW w {view}"), RemoteError)


def test_long_names_of_callers_are_not_remembered(own: Server, before: float) -> None:
    for number in range(300):
        with pytest.raises(RemoteError, match="longer than 512 characters"):
            Client(own.thrift_url, user=f"{number}{'x' * 60_000}").open()


def test_names_of_columns_are_not_kept_beside_their_results(own: Server, before: float) -> None:
    for number in range(40):
        with Client(own.thrift_url).open() as client:
            assert isinstance(outcome(client, f"SELECT {_columns(number, 40_000)}"), list)


def test_names_of_columns_count_for_answers_that_are_kept(own: Server) -> None:
    with Client(own.thrift_url).open() as client:
        assert isinstance(outcome(client, f"CREATE TABLE wide AS SELECT {_columns(0, 50_000)}"), list)
        taken = resident_mib(own.process.pid)
        for number in range(60):
            assert isinstance(outcome(client, f"SELECT * FROM wide -- {number}"), list)
    assert resident_mib(own.process.pid) < taken + _MOST_MIB
