"""A prompt to live in: statements and shortcuts are read, rows are shown, until one leaves."""

from gateway.cli.shell.shell import Shell, View
from gateway.cli.shell.terminal import run_prompt

__all__ = ["Shell", "View", "run_prompt"]
