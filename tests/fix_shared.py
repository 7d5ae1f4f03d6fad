"""The corpora beside the checkout: recorded answers and wire exchanges, which are not part of the project."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def shared_folder() -> Path | None:
    """The folder of the corpora: GATEWAY_SHARED, else ../shared; None if it is not there."""
    folder = Path(os.environ.get("GATEWAY_SHARED") or ROOT.parent / "shared")
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the corpora; skips the test where it is missing."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("the corpora are not here (set GATEWAY_SHARED)")
    return folder
