"""Nobody comes in without one of the tokens, and no message shows one."""

import base64
import hashlib
from pathlib import Path

import pytest

from gateway.auth.authenticators import (
    ANONYMOUS,
    AllowAll,
    StaticTokens,
    new_token,
    read_tokens,
    token_line,
)
from gateway.auth.base import AuthenticationError, Identity
from gateway.errors import ConfigError

TOKEN = new_token()


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def tokens(tmp_path: Path) -> StaticTokens:
    file = tmp_path / "tokens"
    lines = [
        "# people",
        "",
        token_line("ann", TOKEN),
        f"  {token_line('bob', 'dapi-bob')}  ",
        token_line("ann", "second"),
    ]
    file.write_text("\n".join(lines))
    return read_tokens(file)


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        (bearer(TOKEN), "ann"),
        (bearer("second"), "ann"),
        (bearer(f"  {TOKEN}  "), "ann"),
        ({"authorization": f"bearer {TOKEN}"}, "ann"),
        (basic("token", TOKEN), "ann"),
        (basic("ann", TOKEN), "ann"),
        (basic("token", "dapi-bob"), "bob"),
        ({"authorization": basic("token", TOKEN)["authorization"].replace(" ", "")}, "ann"),  # Databricks JDBC 2.x
    ],
)
def test_tokens_that_are_accepted(tokens: StaticTokens, headers: dict[str, str], name: str) -> None:
    assert tokens.authenticate(headers) == Identity(name)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        bearer(""),
        bearer("wrong"),
        bearer(TOKEN + "x"),
        bearer(TOKEN[:-1]),
        bearer(hashlib.sha256(TOKEN.encode()).hexdigest()),
        bearer("é"),
        basic("token", ""),
        basic("", ""),
        basic("bob", TOKEN),  # somebody else's
        basic("token", "wrong"),
        {"authorization": "Basic !!!"},
        {"authorization": "Basic"},
        {"authorization": "Basic!!!"},
        {"authorization": "Basic" + base64.b64encode(b"token:wrong").decode()},
        {"authorization": "BasicToken " + base64.b64encode(f"token:{TOKEN}".encode()).decode()},
        {"authorization": "Basic " + base64.b64encode(b"no colon").decode()},
        {"authorization": "Basic " + base64.b64encode(b"\xff\xfe:x").decode()},
        {"authorization": f"Digest {TOKEN}"},
        {"authorization": "Negotiate YII="},
        {"x-forwarded-user": "ann", "x-databricks-token": TOKEN},
    ],
)
def test_everything_else_is_refused(tokens: StaticTokens, headers: dict[str, str]) -> None:
    with pytest.raises(AuthenticationError) as caught:
        tokens.authenticate(headers)
    assert caught.value.sqlstate == "28000"
    assert TOKEN not in str(caught.value)
    for name in ("ann", "bob"):
        assert name not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({}, ANONYMOUS),
        (bearer("anything"), ANONYMOUS),
        (basic("ann", "x"), "ann"),
        (basic("token", "x"), ANONYMOUS),
        (basic("", "x"), ANONYMOUS),
        ({"authorization": "Basic !!!"}, ANONYMOUS),
    ],
)
def test_mode_none_accepts_everything(headers: dict[str, str], name: str) -> None:
    assert AllowAll().authenticate(headers) == Identity(name)


def test_names_without_end_are_refused_in_mode_none_too() -> None:
    assert AllowAll().authenticate(basic("x" * 512, "")) == Identity("x" * 512)
    with pytest.raises(AuthenticationError, match="longer than 512 characters"):
        AllowAll().authenticate(basic("x" * 513, ""))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        TOKEN,
        f"ann:{TOKEN}",
        ":" + "a" * 64,
        "ann:" + "g" * 64,
        "ann:" + "a" * 63,
        token_line("ann", ""),
    ],
    ids=["empty", "comment", "bare token", "named token", "no name", "no hex", "too short", "empty token"],
)
def test_bad_token_files_are_refused_without_showing_them(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_tokens(file)
    assert caught.value.setting == "token-file"
    assert TOKEN not in str(caught.value)


def test_missing_token_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="token-file: cannot read"):
        read_tokens(tmp_path / "none")


def test_new_tokens_differ_and_are_not_in_their_lines() -> None:
    made = {new_token() for _ in range(50)}
    assert len(made) == 50
    assert all(t.startswith("dapi") and len(t) == 36 and t not in token_line("a", t) for t in made)
