"""The way of one page through the code: the calls of the main process from its answer to the end of its Outcome.

    python -m benchmarks.trace [--dropped] [--list]

Crawls three pages on loopback under ``sys.setprofile`` and follows the second one, which is kept.  With --dropped all
pages have the same text, so it is dropped as a near-duplicate.  --list prints each call, with the depth of its stack.

Counted are the calls of functions of spiderling: also each time that a coroutine goes on, and generator expressions,
comprehensions and lambdas; the second row leaves these out.  A move is a call that stands in another module than the
call before it.  The engine's idle look for the next request is left out.  The calls of timers fall into it by chance,
so the least of three runs counts.  Python 3.12 and later make no call for a comprehension: compare runs of one release.
Plain Scrapy takes none of these steps; beside ours stand the figures of an earlier commit.
"""

from __future__ import annotations

import argparse
import http.server
import itertools
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

from scrapy import signals
from scrapy.cmdline import execute
from scrapy.crawler import Crawler

from benchmarks.common import ROOT, result, table

START, END, IDLE = "DirectDownloader.fetch_page", "Dispatcher.settle", "PlainEngine._start_scheduled_request"
"""Where a page's way begins (for the last time before its end, so with its answer) and ends, and the look for the next
request.  Who renames one names its successor here."""
PACKAGE = f"{ROOT / 'spiderling'}/"
NAMELESS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")
HEAD = ("page", "calls", "modules", "moves between modules", "between packages", "deepest stack")
BEFORE = {
    False: ("kept, in aded69f0", 495, 92, 248, 122, 34),
    True: ("dropped, in aded69f0", 433, 94, 249, 123, 34),
}
"""By --dropped the figures of commit aded69f0, by this script with Python 3.11 and that time's name for END
(InTransit.settle); the least of three runs."""
SENTENCES = (
    "Každý web má svou vlastní výtěžnost, a proto se ti, kteří dávají málo textu, opouštějí dříve.",
    "Na podzim jsme v lese za vesnicí nasbírali plný koš hub, které babička usušila na zimu.",
    "Vlak do Brna měl dnes ráno zpoždění, protože na trati u České Třebové spadl po bouřce strom.",
)
TEXT = f"Spiderling je program, který sbírá texty z webu a ukládá je do korpusu. {SENTENCES[0]} "
PATHS = ("/", "/b.html", "/c.html")


class Call(NamedTuple):
    """One call: the file in the package, the function, the frames on the stack."""

    module: str
    function: str
    depth: int


calls: list[Call] = []
ends: list[bool] = []
"""Whether each page was kept, in the order of their ends."""


class Ends:
    """A Scrapy extension that fills `ends`."""

    def __init__(self, crawler: Crawler) -> None:
        crawler.signals.connect(self._kept, signals.item_scraped)
        crawler.signals.connect(self._dropped, signals.item_dropped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Ends:
        return cls(crawler)

    def _kept(self) -> None:
        ends.append(True)

    def _dropped(self) -> None:
        ends.append(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dropped", action="store_true", help="follow a page that is dropped as a near-duplicate")
    parser.add_argument("--list", action="store_true", help="print all calls")
    options = parser.parse_args()
    with served(options.dropped) as port:
        crawl(port)
    if len(ends) < 2 or ends[1] is options.dropped:
        sys.exit(f"the second page was not {'dropped' if options.dropped else 'kept'}: {ends}")
    way = way_of_second_page()
    if options.list:
        print("\n".join(f"{call.depth:3} {call.module} {call.function}" for call in way))
        print(Counter(call.module.partition("/")[0] for call in way).most_common())
    named = [call for call in way if not call.function.endswith(NAMELESS)]
    kind = "dropped" if options.dropped else "kept"
    table(HEAD, [(kind, *counts(way)), (f"{kind}, named functions alone", *counts(named)), BEFORE[options.dropped]])
    names = ("calls", "modules", "moves", "package_moves", "deepest")
    result(**dict(zip(names, counts(way), strict=True)), named_calls=len(named))


@contextmanager
def served(is_same: bool) -> Iterator[int]:
    """Three pages that link to each other, all with one text if *is_same*; gives the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            kind, body = "text/plain", "User-agent: *\nDisallow: /x\n"
            if self.path in PATHS:
                kind, body = "text/html", page(self.path, is_same)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()


def page(path: str, is_same: bool) -> str:
    text = TEXT if is_same else f"{SENTENCES[PATHS.index(path)]} Tak to dnes stálo v novinách. "
    links = '<a href="/b.html">Další stránka</a> <a href="/c.html">Třetí</a>'
    body = f"<p>{(text * 6).replace('Spiderling', path)}</p>{links}"
    return f'<html lang="cs"><head><meta charset=utf-8><title>Stránka {path}</title></head><body>{body}</body></html>'


def crawl(port: int) -> None:
    """Crawl the three pages in this process, and note its calls."""
    with tempfile.TemporaryDirectory() as directory:
        settings = {
            "JOBDIR": f"{directory}/job", "EXTENSIONS": json.dumps({"trace.Ends": 0}), "LOG_LEVEL": "WARNING",
            "SPIDERLING_ALLOW_NETWORKS": "127.0.0.0/8", "SPIDERLING_HOSTS": f"*=127.0.0.1:{port}",
            "SPIDERLING_WORKERS": 1, "SPIDERLING_MAX_PAGES": 3, "SPIDERLING_HOST_INTERVAL_S": 0.5,
            "SPIDERLING_TLDS": "all",
        }  # fmt: skip
        command = ["scrapy", "crawl", "spiderling", "-a", "lang=cs", "-a", "seeds=http://a.test/"]
        command += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        sys.modules["trace"] = sys.modules[
            __name__
        ]  # Scrapy shall find this module's Ends, not that of a second import
        sys.setprofile(note)
        try:
            execute(command)
        except SystemExit:
            pass
        finally:
            sys.setprofile(None)


def note(frame: FrameType, event: str, _: object) -> None:
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(PACKAGE):
        depth = 0
        below: FrameType | None = frame
        while below is not None:
            depth, below = depth + 1, below.f_back
        calls.append(Call(code.co_filename[len(PACKAGE) :], code.co_qualname, depth))


def way_of_second_page() -> list[Call]:
    """The calls from START to the end of END, without those from IDLE on."""
    known = {call.function for call in calls}
    if missing := {START, END, IDLE} - known:
        sys.exit(f"no call of {', '.join(sorted(missing))}: name what took its place in {__file__} (START, END, IDLE)")
    end = [place for place, call in enumerate(calls) if call.function == END][1]
    start = [place for place, call in enumerate(calls[:end]) if call.function == START][-1]
    depth = calls[end].depth
    last = next((place for place in range(end + 1, len(calls)) if calls[place].depth <= depth), len(calls))
    way: list[Call] = []
    idle_at: int | None = None
    for call in calls[start:last]:
        if idle_at is not None and call.depth > idle_at:
            continue
        idle_at = call.depth if call.function == IDLE else None
        if idle_at is None:
            way.append(call)
    return way


def counts(way: Sequence[Call]) -> tuple[int, int, int, int, int]:
    """Calls, modules, moves between modules and between packages, depth."""
    modules = [call.module for call in way]
    packages = [module.partition("/")[0] for module in modules]
    return len(way), len(set(modules)), moves(modules), moves(packages), max(call.depth for call in way)


def moves(names: Sequence[str]) -> int:
    return sum(one != other for one, other in itertools.pairwise(names))


if __name__ == "__main__":
    main()
