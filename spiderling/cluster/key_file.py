"""The key by which the shards of a crawl know each other: a file that only its owner can read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import urlsplit

from spiderling.base.errors import BadInput
from spiderling.base.option_values import PREFIX

MIN_KEY_BYTES = 16
"""The shortest key; chosen: 128 bits, as many as the code of a message has."""
_OPTION = f"{PREFIX}CLUSTER_KEY_FILE"
_MAKE = "head -c 32 /dev/urandom > cluster.key; chmod 600 cluster.key"


def read_key(path: str, url: str) -> bytes:
    """The key in the file *path*; b'' if none is given and none is needed for the Redis at *url*.

    None is needed for a Unix socket of this user, to which nobody else can give orders.  Raises BadInput.
    """
    if not path:
        if is_own_socket(url):
            return b""
        path_of_socket = urlsplit(url).path if urlsplit(url).scheme == "unix" else ""
        if path_of_socket and not Path(path_of_socket).exists():
            raise BadInput(
                f"there is no socket {path_of_socket}, at which Redis should listen: start Redis first, or mend "
                f"{PREFIX}CLUSTER."
            )
        raise BadInput(
            f"{_OPTION} is missing: whoever can write to that Redis could give this crawl orders. Make a key with "
            f"`{_MAKE}`, and give the same file to every shard; only for a Unix socket of yours none is needed."
        )
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            key = file.read(1 << 16)
    except OSError as error:
        raise BadInput(f"{_OPTION}: {path} cannot be read: {error.strerror}. Make it with `{_MAKE}`.") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadInput(f"{_OPTION}: others may read or change {path}; make a new key with `{_MAKE}`.")
    if len(key) < MIN_KEY_BYTES:
        raise BadInput(f"{_OPTION}: {path} has {len(key)} bytes, a key needs {MIN_KEY_BYTES}; make it with `{_MAKE}`.")
    return key


def is_own_socket(url: str) -> bool:
    """Whether *url* is that of a Unix socket which belongs to this user."""
    parts = urlsplit(url)
    try:
        found = os.stat(parts.path) if parts.scheme == "unix" else None
    except OSError:
        return False
    return found is not None and stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()
