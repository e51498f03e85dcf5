"""Builds the twin into the environment of the Python that runs this: python native/install.py [--zig].

It is built against the lxml that is installed there, with the tools of pyproject.toml in a directory that is removed
again.  Without a compiler nothing is built, and one line says so; with --zig a compiler comes from PyPI (ziglang), and
the exit code says whether it was built.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from compilers import ZIG, compiler

NATIVE = Path(__file__).resolve().parent
LOG = NATIVE / "build/install.log"
TOOLS = ("setuptools>=77", "cython>=3.1")


def main() -> int:
    with_zig = "--zig" in sys.argv[1:]
    obstacle = build(with_zig)
    if obstacle:
        print(f"The text workers run without compiled steps, in 2.5 times the time: {obstacle}.", file=sys.stderr)
    return int(bool(obstacle) and with_zig)


def build(with_zig: bool) -> str:
    """Build and install it; returns what hinders that, '' for nothing."""
    own = compiler()
    if not own and not with_zig:
        return "there is no C compiler (cc, gcc, clang); `make native` takes one from PyPI"
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        return "Python's headers are missing (Debian and Ubuntu: apt install python3-dev)"
    LOG.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as tools, LOG.open("w", encoding="utf-8") as log:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        pip_tools = [*pip, "--target", tools, "-c", str(NATIVE.parent / "constraints.txt")]
        environment = {**os.environ, "PYTHONPATH": tools}
        for command in (
            [*pip_tools, *TOOLS, *([] if own else [ZIG])],
            [*pip, "--no-build-isolation", "--no-deps", "--force-reinstall", str(NATIVE)],
        ):
            log.flush()
            if subprocess.run(command, stdout=log, stderr=log, env=environment, check=False).returncode:
                return f"they could not be built ({LOG} says why)"
    return ""


if __name__ == "__main__":
    sys.exit(main())
