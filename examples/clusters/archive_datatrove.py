"""Parts of archives through ``scrapy crawl archive``, as tasks of datatrove: docs/clusters.md.

    python examples/clusters/archive_datatrove.py crawls/cc 4 -a lang=cs -s SPIDERLING_CONTACT=you@example.org

The directory holds the lists of the parts, *.paths.  Four tasks run at once; what follows goes to their crawls.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep

SCRAPY = (sys.executable, "-m", "scrapy")


class ArchiveCrawl(PipelineStep):
    """The task of a rank crawls the lists whose number, divided by the tasks, leaves the rank."""

    type = "CRAWL"
    name = "archives"

    def __init__(self, lists: Sequence[Path], arguments: Sequence[str]) -> None:
        super().__init__()
        self.lists = [str(path.resolve()) for path in lists]
        self.arguments = list(arguments)

    def run(self, data: Any, rank: int = 0, world_size: int = 1) -> Any:
        """Raises RuntimeError for a crawl that did not finish, so that its task is not taken for done."""
        for path in self.lists[rank::world_size]:
            directory = path.removesuffix(".paths")
            self._crawl("-a", f"warc={path}", "-s", f"JOBDIR={directory}", *self.arguments)
            told = subprocess.run([*SCRAPY, "inspect", directory, "--json"], check=True, capture_output=True)
            status = json.loads(told.stdout)
            if status["phase"] != "finished":  # a crawl that was paused ends with exit code 0, too
                raise RuntimeError(f"{directory} is {status['phase']}; start this again to go on")
            self.stat_update("documents", value=status["totals"]["documents"])
            self.stat_update("words", value=status["totals"]["words"])
        return data

    def _crawl(self, *arguments: str) -> None:
        with subprocess.Popen([*SCRAPY, "crawl", "archive", *arguments]) as crawl:

            def stop(*_: object) -> None:
                crawl.terminate()
                sys.exit(1)

            # when one task fails, datatrove ends the processes of the others by this signal; their crawls pause
            before = signal.signal(signal.SIGTERM, stop)
            try:
                code = crawl.wait()
            finally:
                signal.signal(signal.SIGTERM, before)
        if code:
            raise RuntimeError(f"scrapy crawl archive {' '.join(arguments)} ended with exit code {code}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", type=Path, help="directory of the lists")
    parser.add_argument("at_once", type=int, help="number of tasks")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of scrapy crawl archive")
    options = parser.parse_args()
    lists = sorted(options.parts.glob("*.paths"))
    if not lists:
        sys.exit(f"there is no *.paths in {options.parts}; docs/clusters.md says how to make the parts.")
    LocalPipelineExecutor(
        [ArchiveCrawl(lists, options.arguments)],
        tasks=len(lists),
        workers=options.at_once,
        logging_dir=str(options.parts / ".datatrove"),
    ).run()


if __name__ == "__main__":
    main()
