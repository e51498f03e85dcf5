"""What some tests need and a bare machine lacks: how each thing is looked for, how one gets it, and who may lack it.

    @needs("gs")
    def test_postscript(): ...

Such a test skips where the thing is missing; with NOTHING_IS_MISSING=1 it fails instead, unless the thing may be
missing everywhere. ``.ci/run`` uses this file as a program, without anything installed:

    python -m tests.needs hide DIRECTORY   links in DIRECTORY to all programs on PATH but those that are named here
    python -m tests.needs packages         the packages of Debian and Ubuntu that bring these programs
    python -m tests.needs missing          which tests have skipped, as an expression for pytest -m
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

DATA = Path(os.environ.get("SHARED_DATA") or Path(__file__).resolve().parents[2] / "shared/data")
"""Real pages, documents and texts, which are no part of the checkout."""
STRICT = "NOTHING_IS_MISSING"  # the environment variable with which a need that is not met is a failure


class Need(NamedTuple):
    """One thing that a test may need."""

    is_here: Callable[[], bool]
    how: str  # how one gets it
    programs: tuple[str, ...] = ()  # names on PATH under which it is looked for; one is enough
    package: str = ""  # that of Debian and Ubuntu which brings them
    may_be_missing: bool = False  # whether it is more than an installation can give


def found(*programs: str) -> str:
    """The path of the first of *programs* that is on PATH, '' if none is."""
    return next(filter(None, map(shutil.which, programs)), "")


def program(*names: str, package: str = "") -> Need:
    package = package or names[0]
    return Need(lambda: bool(found(*names)), f"Debian and Ubuntu: apt install {package}", names, package)


def module(name: str, minimum: str = "") -> Need:
    """A Python package, of *minimum* or later."""

    def is_here() -> bool:
        if not importlib.util.find_spec(name):
            return False
        return not minimum or int(importlib.import_module(name).__version__.split(".")[0]) >= int(minimum)

    return Need(is_here, "make setup-test")


def right(is_granted: Callable[[], bool], how: str) -> Need:
    return Need(is_granted, how, may_be_missing=True)


def data(path: str) -> Need:
    return Need((DATA / path).exists, f"{path} in ../shared/data or SHARED_DATA", may_be_missing=True)


# -- how the less simple ones are looked for


def has_minhash() -> bool:
    """Whether datatrove is here with what its MinHash imports."""
    return all(map(importlib.util.find_spec, ("datatrove", "orjson", "regex", "tokenizers")))


def has_redis() -> bool:
    """A server and its client."""
    return bool(found("redis-server")) and module("redis").is_here()


def has_redis_with_tls() -> bool:
    """A server with nowhere to listen ends at once; one without TLS complains of the option."""
    if not (server := found("redis-server")):
        return False
    ended = subprocess.run([server, "--port", "0", "--tls-port", "0"], capture_output=True, check=False, timeout=60)
    return b"Bad directive" not in ended.stdout + ended.stderr and module("redis").is_here()


def has_compiled_steps() -> bool:
    from spiderling.text.steps import PYTHON, choose

    return choose().steps is not PYTHON


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


def may_sniff() -> bool:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM).close()
    except (OSError, AttributeError):  # not allowed; not Linux
        return False
    return True


def may_mount() -> bool:
    with tempfile.TemporaryDirectory() as place:
        mount = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], capture_output=True, check=False)
        return mount.returncode == 0 and not subprocess.run(["umount", place], check=True).returncode


def may_watch_sqlite() -> bool:
    """Whether its functions can be called from here, which are in the module itself in some builds of Python."""
    import _sqlite3

    return hasattr(ctypes.CDLL(getattr(_sqlite3, "__file__", None)), "sqlite3_vfs_find")


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NEEDS = {
    # programs
    "chromium": program(*BROWSERS),
    "fish": program("fish"),
    "jq": program("jq"),
    "redis": program("redis-server")._replace(is_here=has_redis),
    "redis with TLS": program("redis-server")._replace(is_here=has_redis_with_tls),
    "sqlite3": program("sqlite3"),
    "systemd-analyze": program("systemd-analyze", package="systemd"),
    "zsh": program("zsh"),
    "zstd": program("zstd"),
    "compiled steps": Need(has_compiled_steps, "make native", ("cc", "gcc", "clang"), "python3-dev"),
    # packages of Python
    "conllu": module("conllu"),
    "datatrove": module("datatrove"),
    "datatrove's MinHash": Need(has_minhash, "pip install orjson regex tokenizers", may_be_missing=True),
    "duckdb": module("duckdb"),
    "fakeredis": module("fakeredis"),
    "nbclient": module("nbclient"),
    "phonenumbers": module("phonenumbers"),
    "pypdfium2": module("pypdfium2"),
    "scrapyd": module("scrapyd"),
    "setuptools": module("setuptools", "77"),
    # rights, and what a kernel has
    "/proc": right(Path("/proc/self/stat").exists, "Linux has it"),
    "IPv6 on loopback": right(has_ipv6, "a matter of the machine's network"),
    "packet sockets": right(may_sniff, "root on Linux may open them"),
    "SQLite's VFS": right(may_watch_sqlite, "Python's SQLite is a library of its own in most builds"),
    "mounting": right(may_mount, "root on Linux may, but not in each container"),
    # data
    "NTREX-128": data("test-texts/ntrex-128.tar.zst"),
    "real documents": data("docs/documents.tar.zst"),
    "real pages": data("pages/pages-dev.jsonl.zst"),
}


def needs(name: str):
    """The marker of a test that needs *name*, which stands in ``NEEDS``."""
    import pytest  # not there when the machine is looked at

    assert name in NEEDS, f"say in tests/needs.py what {name} is"
    return pytest.mark.needs(name=name)


@cache
def why_not(name: str) -> str:
    """Why a test that needs *name* cannot run; '' if it can."""
    return "" if NEEDS[name].is_here() else f"{name} is missing here ({NEEDS[name].how})"


def is_wanted(name: str) -> bool:
    """Whether it is a failure that *name* is missing."""
    return bool(os.environ.get(STRICT)) and not NEEDS[name].may_be_missing


# -- the program


def hide(directory: Path) -> None:
    """Fill *directory*: taken as PATH, it has all programs but those of ``NEEDS``."""
    hidden = {name for need in NEEDS.values() for name in need.programs}
    for place in os.get_exec_path():
        for path in sorted(Path(place).glob("*")):
            link = directory / path.name
            if path.name in hidden or link.is_symlink() or not os.access(path, os.X_OK) or path.is_dir():
                continue
            link.symlink_to(path.absolute())


def main(arguments: list[str]) -> None:
    match arguments:
        case ["hide", directory]:
            Path(directory).mkdir()
            hide(Path(directory))
        case ["packages"]:
            print(*sorted({need.package for need in NEEDS.values() if need.package}))
        case ["missing"]:
            print(" or ".join(f"needs(name={name!r})" for name in NEEDS if why_not(name)))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
