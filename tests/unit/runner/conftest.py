"""Runners and sessions for the tests beside this file."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.session import DELETION_VECTORS
from gateway.runner import Runner, make_runner
from tests.unit.runner.session import Session


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the catalog `samples`, built once."""
    return tmp_path_factory.mktemp("samples")


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Runner:
    """A warm runner over an empty warehouse."""
    folder = tmp_path_factory.mktemp("runner")
    (folder / "files").mkdir()
    made = make_runner(
        warehouse=str(folder / "warehouse"),
        samples=str(samples),
        allow_paths=(str(folder / "files"),),
        spill=str(folder / "spill"),
        memory_limit=1 << 28,
    )
    made.warm_up()
    return made


@pytest.fixture
def session(runner: Runner, request: pytest.FixtureRequest) -> Session:
    """A new session in a new schema ``shop``, dropped with all that is in it before the next one."""
    one = Session(runner)
    one.run("DROP SCHEMA IF EXISTS shop CASCADE")
    one.run("CREATE SCHEMA shop COMMENT 'things'")
    one.run("USE shop")
    if request.node.get_closest_marker("rewrites"):
        one.run(f"SET {DELETION_VECTORS} = false")
    return one
