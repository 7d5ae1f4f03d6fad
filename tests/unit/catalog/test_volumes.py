"""Volumes and the folders of their files: each that is made has its own, whatever became of the one before it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gateway.catalog import removal
from gateway.catalog.base import TableName
from gateway.catalog.local import LocalCatalog
from gateway.catalog.objects import StoredVolume, new_volume
from gateway.errors import ServerError

NAME = TableName("main", "default", "Inbox")


@pytest.fixture
def catalog(tmp_path: Path) -> LocalCatalog:
    return LocalCatalog("main", str(tmp_path))


def files(catalog: LocalCatalog) -> Path:
    """The folder of a volume's files, made with one in it if it is not there."""
    folder = catalog.volume_folder("default", "inbox")
    assert folder is not None
    if not os.path.isdir(folder):
        os.makedirs(folder)
        (Path(folder) / "a").touch()
    return Path(folder)


def test_a_volume_whose_drop_was_killed_leaves_nothing_to_the_next(
    catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.put(new_volume(NAME, None), False)
    left = files(catalog)

    def killed(folder: str, root: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(removal, "remove", killed)
        catalog.drop(StoredVolume, "default", "inbox")
    assert catalog.volume_folder("default", "inbox") is None
    catalog.put(new_volume(NAME, None), False)
    assert catalog.volume_folder("default", "inbox") not in (None, str(left))


def test_a_volume_without_a_mark_keeps_its_files(catalog: LocalCatalog) -> None:
    catalog.put(StoredVolume(NAME), False)
    folder = files(catalog)
    assert folder == Path(catalog.root) / "default" / "_volumes" / "inbox"
    assert catalog.drop(StoredVolume, "default", "inbox")
    assert not folder.exists()


@pytest.mark.parametrize("made", ["../../../x", "x/0123456789", "ABCDEF0123", "", 7])
def test_a_mark_that_is_none_is_refused_and_can_be_dropped(catalog: LocalCatalog, made: object) -> None:
    catalog.put(new_volume(NAME, None), False)
    path = Path(catalog.root) / "default" / "_objects" / "inbox.volume.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"made": made}))
    with pytest.raises(ServerError) as caught:
        catalog.volume_folder("default", "inbox")
    assert caught.value.condition == "CATALOG_FILE_CORRUPT"
    assert catalog.drop(StoredVolume, "default", "inbox")
    assert catalog.volume_folder("default", "inbox") is None
