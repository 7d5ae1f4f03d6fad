"""The libraries whose exact version decides whether answers are right.

Other pairs of datafusion and deltalake return wrong rows on deletion vectors. The compiled build of sqlglot refuses
subclasses of its parser and dies of deep nesting, so its presence is refused too. The generated code is that of one thrift.
Only package metadata is read: nothing is imported, so the front process stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import metadata

from gateway.errors import ConfigError

PINS: Mapping[str, str] = {
    "datafusion": "55.0.0",
    "deltalake": "1.6.6",
    "pyarrow": "26.0.1",
    "sqlglot": "30.30.0",
    "thrift": "0.25.0",
}
REFUSED: Mapping[str, str] = {
    "sqlglotc": "the compiled build of sqlglot cannot be extended and crashes on deep nesting; run: pip uninstall sqlglotc",
    "sqlglotrs": "the Rust tokenizer of sqlglot is not supported; run: pip uninstall sqlglotrs",
}


def check_pins(version_of: Callable[[str], str] = metadata.version) -> None:
    """Raise ConfigError, naming the package, unless the installed libraries are those of `PINS` and none is refused."""
    for package, wanted in PINS.items():
        try:
            found = version_of(package)
        except metadata.PackageNotFoundError:
            raise ConfigError(package, f"not installed; version {wanted} is needed") from None
        if found != wanted:
            raise ConfigError(package, f"version {found} is installed, but {wanted} is needed for right answers")
    for package, reason in REFUSED.items():
        try:
            version_of(package)
        except metadata.PackageNotFoundError:
            continue
        raise ConfigError(package, reason)
