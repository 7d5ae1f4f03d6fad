"""Functions in an interpreter of their own: what counts threads and descriptors shares them with nobody."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def in_own_process(function: Callable[[], None], seconds: float = 120.0) -> None:
    """Run a function of a module without arguments in a new interpreter; its AssertionError fails with its traceback."""
    program = f"from {function.__module__} import {function.__qualname__} as function\nfunction()"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=_ROOT, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr
