"""docker/: what Dockerfile and compose file name is there, and the container is not root, checked and stopped in time."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.cli.main import COMMANDS, make_parser
from gateway.config import SETTINGS, load_config
from gateway.transport.http import HttpApp

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE, COMPOSE = ROOT / "docker" / "Dockerfile", ROOT / "docker" / "compose.yaml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def instructions() -> list[list[tuple[str, str]]]:
    """Each stage of the Dockerfile: its instructions with their words, FROM first."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    stages: list[list[tuple[str, str]]] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, rest = line.partition(" ")
            if word == "FROM":
                stages.append([])
            stages[-1].append((word, rest.strip()))
    return stages


def last(word: str) -> str:
    """What the final stage says with an instruction."""
    return [rest for name, rest in instructions()[-1] if name == word][-1]


def environment() -> dict[str, str]:
    """The variables of the final stage."""
    pairs = [pair.partition("=") for name, rest in instructions()[-1] if name == "ENV" for pair in shlex.split(rest)]
    return {name: value for name, _, value in pairs}


def service() -> dict[str, Any]:
    """The one service of the compose file."""
    yaml = pytest.importorskip("yaml")
    (one,) = yaml.safe_load(COMPOSE.read_text())["services"].values()
    assert isinstance(one, dict)
    return one


def test_the_image_does_not_run_as_root() -> None:
    words = [(name, rest) for name, rest in instructions()[-1]]
    user = last("USER")
    assert user not in ("", "root", "0")
    made = next(rest for name, rest in words if name == "RUN" and "useradd" in rest)
    assert re.search(rf"useradd .*--uid [1-9]\d* .*\b{user}\b", made)
    names = [name for name, _ in words]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert "RUN" not in names[names.index("USER") :]
    for folder in json.loads(last("VOLUME")):
        assert re.search(rf"chown {user}: .*{folder}\b", made)


def test_its_health_check_asks_a_page_that_is_served() -> None:
    options, _, command = last("HEALTHCHECK").partition("CMD ")
    assert {"--interval", "--timeout", "--start-period"} <= {word.partition("=")[0] for word in options.split()}
    program, _, code = json.loads(command)
    assert program == "python"
    compile(code, "HEALTHCHECK", "exec")
    (url,) = re.findall(r"http://[^']+", code)
    parts = urlsplit(url)
    assert parts.hostname == "127.0.0.1"
    assert parts.port == int(last("EXPOSE")) == load_config({"warehouse": "/w"}, {}).port
    assert callable(getattr(HttpApp, parts.path.removeprefix("/")))


def test_every_file_that_is_copied_is_there_and_sent_to_the_build() -> None:
    rules = (ROOT / ".dockerignore").read_text().split()
    assert rules[0] == "**"
    sent = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    copied = []
    for stage in instructions():
        for name, rest in stage:
            if name == "COPY" and not rest.startswith("--from="):
                copied += rest.split()[:-1]
    assert copied
    for path in copied:
        assert (ROOT / path).exists(), path
        assert PurePosixPath(path).parts[0] in sent, path
    wanted = {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "gateway"}
    assert wanted <= set(copied)
    for stage in instructions():
        for name, rest in stage:
            if name == "RUN":
                assert set(re.findall(r"-r (\S+)", rest)) <= set(copied)


def test_its_stages_and_programs_fit_together() -> None:
    build, final = instructions()
    assert build[0][1].split()[-1] == "build"
    folder = "/opt/gateway"
    assert any(name == "RUN" and f"python -m venv {folder}" in rest for name, rest in build)
    assert ("COPY", f"--from=build {folder} {folder}") in final
    assert environment()["PATH"].split(":")[0] == f"{folder}/bin"
    # one image: the environment has the Python that it was made with
    (image,) = {stage[0][1].split()[0] for stage in (build, final)}
    version = tuple(map(int, re.findall(r"python:(\d+)\.(\d+)", image)[0]))
    assert version >= tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))
    (program,), (command,) = json.loads(last("ENTRYPOINT")), json.loads(last("CMD"))
    assert program in PROJECT["scripts"]
    assert command in COMMANDS
    # without build isolation, what builds the package must be in the lock that is installed for it
    locked = (ROOT / "requirements" / "demo.txt").read_text()
    assert re.search(r"^hatchling==", locked, re.MULTILINE)


def test_every_variable_is_a_setting_and_has_a_value_for_it() -> None:
    known = {setting.variable for setting in SETTINGS}
    given = {name: value for name, value in environment().items() if name.startswith("GATEWAY_")}
    inside = service()["environment"]
    assert given and set(given) | set(inside) <= known
    config = load_config({}, {**given, **inside})
    assert (config.host, config.auth) == ("0.0.0.0", "token")
    folders = set(json.loads(last("VOLUME")))
    assert {str(config.warehouse), str(config.state)} == folders


def test_the_compose_file_builds_this_image_and_names_what_is_there() -> None:
    yaml = pytest.importorskip("yaml")
    whole, one = yaml.safe_load(COMPOSE.read_text()), service()
    context = (COMPOSE.parent / one["build"]["context"]).resolve()
    assert context == ROOT
    assert (context / one["build"]["dockerfile"]) == DOCKERFILE
    assert [port.split(":")[-1] for port in one["ports"]] == [last("EXPOSE")]
    mounts = dict(volume.split(":") for volume in one["volumes"])
    assert set(mounts) == set(whole["volumes"])
    assert set(mounts.values()) == set(json.loads(last("VOLUME")))
    (secret,) = one["secrets"]
    assert one["environment"]["GATEWAY_TOKEN_FILE"] == f"/run/secrets/{secret}"
    kept_out = (ROOT / ".gitignore").read_text().split()
    assert f"docker/{whole['secrets'][secret]['file']}" in kept_out
    assert one["read_only"] is True and one["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in one["ports"])


def test_the_container_is_given_time_to_drain() -> None:
    grace = re.fullmatch(r"(\d+)s", service()["stop_grace_period"])
    assert grace is not None
    assert int(grace[1]) > load_config({"warehouse": "/w"}, {}).drain_timeout
    assert last("STOPSIGNAL") == "SIGTERM"


def test_commands_in_the_comments_are_commands() -> None:
    comments = [
        line for path in (DOCKERFILE, COMPOSE) for line in path.read_text().splitlines() if line.startswith("#")
    ]
    text = "\n".join(comments)
    for path in re.findall(r"-f (\S+)", text):
        assert (ROOT / path).is_file(), path
    (command,) = re.findall(r"gateway (token .*)$", text, re.MULTILINE)
    arguments = make_parser().parse_args(shlex.split(command))
    assert str(arguments.token_file).startswith("docker/")
