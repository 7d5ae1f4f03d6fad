"""`gateway token`: make an access token."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gateway.auth.authenticators import new_token, token_line
from gateway.errors import ConfigError


def run(arguments: argparse.Namespace) -> int:
    """Add a line to the token file, readable by its owner only, and print the token: it is not kept anywhere."""
    user = arguments.user.strip()
    if not user or any(c in user for c in ":#\r\n"):
        raise ConfigError("user", "a name without ':', '#' and line breaks is needed")
    token = new_token()
    path = Path(arguments.token_file)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(token_line(user, token) + "\n")
    except OSError as error:
        raise ConfigError("token-file", f"{path} cannot be written: {error.strerror}") from error
    print(token)
    return 0
