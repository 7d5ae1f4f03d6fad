"""A prompt to live in: statements and shortcuts are read, rows are shown, until one leaves."""

from gateway.cli.shell.shell import Shell
from gateway.cli.shell.terminal import run_prompt
from gateway.cli.shell.view import View

__all__ = ["Shell", "View", "run_prompt"]
