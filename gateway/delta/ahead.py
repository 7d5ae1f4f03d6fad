"""Versions behind one that is known, as far as their commits add and remove files and say nothing of the table itself.

Who adds rows asks for no more of a table than that: its files need not be read.
"""

from __future__ import annotations

import json
import os

from gateway.delta import log
from gateway.delta.containment import held_folder
from gateway.errors import UserError

# A table that is further behind, or that has a larger commit, is read as a whole.
_MOST_COMMITS = 32
_MOST_BYTES = 1 << 20

_OF_FILES = frozenset(("commitInfo", "add", "remove", "cdc", "txn"))


def last_of_files(root: str, version: int) -> int | None:
    """The newest version of a table, if all commits behind `version` are of files alone; None if not, or if that is not known.

    Raises ServerError DELTA_LOG_CORRUPT for a commit that readers read in several ways.
    """
    last = version
    try:
        with held_folder(f"{root}/{log.LOG}", root) as folder:
            while _is_of_files(folder, os.path.basename(log.commit_path(root, last + 1))):
                last += 1
                if last - version > _MOST_COMMITS:
                    return None
    except FileNotFoundError:  # the folder is not there, or there is no further commit
        log.check_commits(root, last, version + 1)
        return last
    except (OSError, UserError):  # links, rights
        return None
    return None


def _is_of_files(folder: int, name: str) -> bool:
    """Whether a commit says nothing but of files. Raises FileNotFoundError."""
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        return False
    try:
        actions = [json.loads(line) for line in data.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return False
    return bool(actions) and all(isinstance(action, dict) and _OF_FILES.issuperset(action) for action in actions)
