"""One text extractor in a process of its own: ``python extractor.py TOOL DIRECTORY OUT``.

Takes the text of each page (``*.html``) in DIRECTORY and writes JSON to OUT: ``load``, seconds of CPU of the import and
the first page, which has one sentence; ``ms``, milliseconds of CPU for each page; ``mb`` of resident memory at its
highest; and the ``texts`` by name.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in workers of a crawl
_FIRST = b"<html><body><p>The first page has one sentence, which is in English, and no other one.</p></body></html>"


def load(tool: str) -> Callable[[bytes], str]:
    """The function of *tool* that gives the text of a page."""
    name, _, option = tool.partition(" ")
    if name == "spiderling":
        import spiderling

        return lambda body: spiderling.extract(body, option).text
    import trafilatura

    return lambda body: trafilatura.extract(body, fast=option == "fast") or ""


def main(tool: str, directory: str, out: str) -> None:
    began = time.process_time()
    extract = load(tool)
    extract(_FIRST)
    ready = time.process_time() - began
    texts = {}
    times = []
    for path in sorted(Path(directory).glob("*.html")):
        body = path.read_bytes()
        start = time.process_time()
        try:
            texts[path.stem] = extract(body)
        except Exception:  # a tool that fails on a page has no text of it
            texts[path.stem] = ""
        times.append(1000 * (time.process_time() - start))
    # of this program alone; getrusage also counts what ran in the process before it
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    found = {"load": ready, "ms": times, "mb": int(peak[1]) / 1000, "texts": texts}
    Path(out).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
