"""A Redis of the crawl's own: on a Unix socket that only this user can open, with nothing on disk."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import tempfile
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from pathlib import Path

from spiderling.base.errors import BadInput
from spiderling.cluster.child_process import how_ended, start_child

SERVER = "redis-server"
MOST_PATH_BYTES = 107
"""Bytes of the longest path of a Unix socket on Linux (unix(7))."""
PATIENCE_S = 30.0
"""Seconds in which it must answer (chosen: it takes .02 s on an idle machine)."""
_LOOK_S = 0.02
_PLAIN = re.compile(r"[\w./~+=,@-]+")
"""A path that means the same in an address."""
_SHORT = "/tmp"  # noqa: S108 - a directory of our own is made in it


def executable() -> str:
    """``redis-server`` on PATH; raises BadInput if there is none."""
    if found := shutil.which(SERVER):
        return found
    raise BadInput(
        f"there is no {SERVER} on PATH, and the shards of a crawl exchange links over Redis: install version 6.2 or "
        "later (Debian and Ubuntu: apt install redis-server), or give the address of one with -s SPIDERLING_CLUSTER="
    )


class OwnRedis:
    """``start`` it, also again after it has died; ``close`` follows in any case."""

    process: Process

    def __init__(self, directory: Path) -> None:
        """*directory* is there, and the crawl's own; raises BadInput if there is no server."""
        self._executable = executable()
        self._log = directory / "log"
        self._private: Path | None = None
        self._socket = (directory / "socket").absolute()
        if len(bytes(self._socket)) > MOST_PATH_BYTES or not _PLAIN.fullmatch(str(self._socket)):
            self._private = Path(tempfile.mkdtemp(prefix="spiderling-", dir=_SHORT))
            self._socket = self._private / "socket"
        self.url = f"unix://{self._socket}"

    async def start(self) -> None:
        """Returns when it answers; raises BadInput if it does not."""
        options = ["--port", "0", "--unixsocket", str(self._socket), "--unixsocketperm", "700"]
        options += ["--save", "", "--appendonly", "no", "--dir", str(self._socket.parent)]
        with self._log.open("wb") as log:
            command = [self._executable, *options]
            self.process = await start_child(command, stdin=DEVNULL, stdout=log, stderr=log, umask=0o077)
        ends = asyncio.get_running_loop().time() + PATIENCE_S
        while not self._answers():
            if self.process.returncode is not None or asyncio.get_running_loop().time() > ends:
                raise BadInput(f"{self._executable} does not start ({self._why()}); {self._log} has more.")
            await asyncio.sleep(_LOOK_S)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
            client.settimeout(PATIENCE_S)
            client.connect(str(self._socket))
            client.sendall(b"PING\r\n")
            return client.recv(len(b"+PONG")) == b"+PONG"
        return False

    def _why(self) -> str:
        """What it said last, or how it ended."""
        code = self.process.returncode
        lines = ["no answer" if code is None else how_ended(code), *self._log.read_text("utf-8", "replace").split("\n")]
        return next(line.strip() for line in reversed(lines) if line.strip())

    async def close(self) -> None:
        """End it; what it holds is lost, and no loss."""
        if hasattr(self, "process") and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        self._socket.unlink(missing_ok=True)
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)
