"""A command that starts a gateway for itself opens the tables to nobody else on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.embedded import embedded_gateway
from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer


def test_who_has_not_started_it_is_not_let_in(tmp_path: Path) -> None:
    flags = {"warehouse": str(tmp_path / "warehouse"), "state": str(tmp_path / "state"), "memory-limit": "512MiB"}
    with embedded_gateway({**flags, "slots": "1"}, None) as (url, token):
        for wrong in (None, "none-needed", token[:-1], token + "0"):
            with pytest.raises(RemoteError, match=r"401|required|not valid"):
                Client(url, token=wrong).open()
        with Client(url, token=token).open() as client:
            assert answer(client, "SELECT current_user() AS me, 1 AS one") == [{"me": "anonymous", "one": 1}]
