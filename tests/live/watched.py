"""A crawl with a live page, and questions to it as any program may ask them."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from conftest import Crawl, Running, page


def web() -> dict[str, Any]:
    """Two hosts with more pages than a test waits for."""
    return {
        host: {f"/{n}": page(f"{host}{n}", f"/{n + 1}", f"/{2 * n}") for n in range(3000)}
        for host in ("calm.test", "loud.test")
    }


def asked(server, host: str, since: float) -> int:
    return sum(entry.host == host and entry.time_s >= since for entry in server.log_entries)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Watched:
    """A running crawl that serves its page."""

    def __init__(self, crawl: Crawl, running: Running) -> None:
        self.crawl = crawl
        self.running = running
        self.running.until(lambda: "The live page: " in self.running.output())
        (self.url,) = re.findall(r"The live page: (\S+) ", self.running.output())
        self.host = self.url.removeprefix("http://").rstrip("/")

    @property
    def token(self) -> str:
        return (self.crawl.directory / "page.token").read_text().strip()

    @property
    def control(self) -> Path:
        return self.crawl.directory / "control.yaml"

    def ask(self, path: str, body: Any = None, method: str = "", **headers: str) -> Answer:
        """Ask with *headers*, named with underscores; *body* is sent as JSON, or as it is if that is text."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            sent = body if body is None or isinstance(body, str) else json.dumps(body)
            connection.request(method or ("GET" if body is None else "POST"), path, sent, given)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read().decode())
        finally:
            connection.close()

    def command(self, body: Any = None, **control: Any) -> Answer:
        """Send a control, or *body* in its place, as a program with the token does."""
        return self.ask("/control", control if body is None else body, Authorization=f"Bearer {self.token}")


@contextmanager
def watching(directory: Path, server, **settings) -> Iterator[Watched]:
    """A crawl with a page on a free port, which ends with the context."""
    given = {"PAGE": "127.0.0.1:0", "HOST_INTERVAL_S": 0.1, "LOGSTATS_INTERVAL": 1, **settings}
    crawl = Crawl(directory, server, **given)
    running = crawl.start("http://calm.test/1 http://loud.test/1")
    try:
        yield Watched(crawl, running)
    finally:
        running.process.kill()
        running.process.wait()
