"""The corpora beside the checkout: recorded answers and wire exchanges, which are not part of the project."""

import os
import tarfile
from pathlib import Path

TABLES = "delta-tables.tar.gz"
ROOT = Path(__file__).resolve().parents[2]


def shared_folder() -> Path | None:
    """The folder of the corpora: GATEWAY_SHARED, else ../shared; None if it is not there."""
    folder = Path(os.environ.get("GATEWAY_SHARED") or ROOT.parent / "shared")
    return folder if folder.is_dir() else None


def unpacked(folder: Path) -> Path | None:
    """Delta tables that others wrote, below `folder`, with `manifest.json`; None if there is no archive."""
    shared = shared_folder()
    if shared is None or not (shared / TABLES).is_file():
        return None
    with tarfile.open(shared / TABLES) as archive:
        archive.extractall(folder, filter="data")
    return folder / "delta-tables"
