"""The corpora beside the checkout: recorded answers and wire exchanges, which are not part of the project."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def shared_folder() -> Path | None:
    """The folder of the corpora: GATEWAY_SHARED, else ../shared; None if it is not there."""
    folder = Path(os.environ.get("GATEWAY_SHARED") or ROOT.parent / "shared")
    return folder if folder.is_dir() else None
