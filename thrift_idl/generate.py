"""Write `gateway/thrift_gen/` anew from `TCLIService.thrift` (`python thrift_idl/generate.py [DIRECTORY]`).

Needs the `thrift` compiler (Debian: thrift-compiler 0.17). The package lives below `gateway`, so it never collides with
the top-level `TCLIService` that other clients install. `dynamic` leaves out generated readers and writers: the gateway's
codec works from each class's `thrift_spec`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
IDL = HERE / "TCLIService.thrift"
TARGET = HERE.parent / "gateway" / "thrift_gen"
OPTIONS = "py:dynamic,slots,package_prefix=gateway.thrift_gen."
# The command-line client that the compiler adds is of no use here.
UNWANTED = "TCLIService-remote"


def generate(target: Path) -> list[Path]:
    """Generate the package `TCLIService` inside `target`; returns its files. Raises FileNotFoundError without compiler."""
    compiler = shutil.which("thrift")
    if compiler is None:
        raise FileNotFoundError("the thrift compiler is not installed (Debian: apt-get install thrift-compiler)")
    package = target / "TCLIService"
    if package.exists():
        shutil.rmtree(package)
    target.mkdir(parents=True, exist_ok=True)
    had_init = (target / "__init__.py").exists()
    # -nowarn: `list<i8>` is what the protocol has, though the compiler would like `binary` better.
    subprocess.run([compiler, "-nowarn", "-gen", OPTIONS, "-out", str(target), str(IDL)], check=True)
    (package / UNWANTED).unlink()
    if not had_init:
        (target / "__init__.py").unlink(missing_ok=True)
    return sorted(p for p in package.iterdir() if p.suffix == ".py")


def main() -> int:
    """Command line: the target directory, by default gateway/thrift_gen."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    for path in generate(target):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
