"""New tables of another engine, which knows folders by their paths alone: made where nobody looks, then given their name.

A schema that is dropped meanwhile takes nothing of them along, and is not made anew by who goes on to write.
"""

from __future__ import annotations

import errno
import os
import uuid

from gateway.catalog import removal
from gateway.catalog.base import Draft
from gateway.delta.containment import held_folder, remove_tree
from gateway.delta.log import has_log
from gateway.delta.write import STAGING
from gateway.errors import UserError, storage_told


def new(root: str) -> Draft:
    """A draft in the warehouse `root`."""
    number = uuid.uuid4().hex
    with storage_told("Cannot make a table", root), held_folder(os.path.join(root, removal.DRAFTS), root, []):
        return Draft(os.path.join(root, removal.DRAFTS, f"{STAGING}{number}"), f"made_{number}")


def settle(draft: Draft, target: str, replace: bool = False) -> None:
    """Give what was made the folder `target` (a real path), in one step.

    Raises UserError TABLE_OR_VIEW_ALREADY_EXISTS, or WRITE_CONFLICT with `replace`, LOCATION_ALREADY_EXISTS, SCHEMA_NOT_FOUND;
    ServerError WRITE_FAILED.
    """
    parent, name = os.path.split(target)
    shown = f"`{os.path.basename(parent)}`.`{name}`"
    try:
        with held_folder(os.path.dirname(draft.folder), draft.root) as old, held_folder(parent, draft.root) as new:
            os.rename(os.path.basename(draft.folder), name, src_dir_fd=old, dst_dir_fd=new)
    except FileNotFoundError:
        text = f"The schema `{os.path.basename(parent)}` cannot be found: it was dropped while a table was made in it."
        raise UserError("SCHEMA_NOT_FOUND", text) from None
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise removal.failed("make", target, error) from error
        if not has_log(target):
            text = f"The folder of {shown} exists and is not a Delta table."
            raise UserError("LOCATION_ALREADY_EXISTS", text) from error
        if replace:
            text = f"Others have made a table {shown} meanwhile. Send the statement again."
            raise UserError("WRITE_CONFLICT", text, retryable=True) from error
        text = f"Cannot create the table {shown} because it already exists."
        raise UserError("TABLE_OR_VIEW_ALREADY_EXISTS", text) from error


def discard(draft: Draft) -> None:
    """Remove what was made and is not to be a table."""
    with held_folder(os.path.dirname(draft.folder), draft.root) as held:
        remove_tree(os.path.basename(draft.folder), held)
