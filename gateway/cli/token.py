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
    if not user or not user.isprintable() or any(c in user for c in ":#"):
        raise ConfigError("user", "a name without ':', '#', line breaks and other control characters is needed")
    token = new_token()
    path = Path(arguments.token_file)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            # A line of before without its end would become one with this one.
            begin = b"\n" if end and os.pread(descriptor, 1, end - 1) not in b"\r\n" else b""
            file.write(begin + f"{token_line(user, token)}\n".encode())
    except OSError as error:
        raise ConfigError("token-file", f"{path} cannot be written: {error.strerror}") from error
    print(token)
    return 0
