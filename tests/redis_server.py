"""A real Redis for tests, on a Unix socket; it can be killed, stopped and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from spiderling.cluster.launcher import executable, with_parent

DEADLINE_S = 60


class RedisServer:
    """A server with nothing on disk: what it holds is lost when it is killed."""

    def __init__(self, *arguments: str, port: int = 0) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="redis"))  # a socket's path must be short
        self.socket = self.directory / "s"
        self.url = f"unix://{self.socket}"
        self._arguments = ["--port", str(port), "--unixsocket", str(self.socket), "--save", "", "--dir",
                           str(self.directory), "--appendonly", "no", *arguments]  # fmt: skip
        self.start()

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        command = [executable(), *self._arguments]
        is_main = threading.current_thread() is threading.main_thread()  # a server ends with the thread that starts it
        bound = with_parent(signal.SIGKILL) if is_main else None
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, preexec_fn=bound)
        end = time.monotonic() + DEADLINE_S
        while not self._answers():
            assert self.process.poll() is None and time.monotonic() < end, "redis-server does not start"
            time.sleep(0.01)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return bool(client.recv(10))
            except OSError:
                return False

    def command(self, *words: str) -> bytes:
        """The first bytes of the answer to a command."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.socket))
            client.sendall(" ".join(words).encode() + b"\r\n")
            return client.recv(1 << 20)

    def names(self) -> list[str]:
        """All keys; few enough to come in one piece."""
        return [line for line in self.command("KEYS", "*").decode().splitlines() if line.startswith("spiderling:")]

    def length(self, stream: str) -> int:
        """The number of entries of a stream."""
        return int(self.command("XLEN", stream)[1:])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def pause(self, is_paused: bool) -> None:
        os.kill(self.process.pid, signal.SIGSTOP if is_paused else signal.SIGCONT)

    def __enter__(self) -> RedisServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
