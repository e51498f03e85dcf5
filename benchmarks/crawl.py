"""How fast the whole crawl is: the real spider, everything on, intervals so short that the CPU is the bound.

    python benchmarks/crawl.py [--quick]

(a) the bundled miniature web, (b) synthetic pages of 30 kB under many hosts, every page
over a fresh connection; beside them the naive crawler (peers/naive.py) on the same webs
in the same run.  CPU is that of all the crawl's processes from the spider's opening to
its end; the server's is not counted, but it shares the cores.  ``ratio_naive`` is naive
CPU a page / ours, on (b).
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, Measured, arguments, crawl, result, served, table
from spiderling.simulation.synthetic import SyntheticWeb, read_words

FAST = {
    "SPIDERLING_ALLOW_NETWORKS": "127.0.0.0/8",
    "SPIDERLING_HOST_INTERVAL_S": 0.02,
    "SPIDERLING_IP_INTERVAL_S": 0,
    "SPIDERLING_DELAY_FACTOR": 0,
    "SPIDERLING_RETRY_DELAY_S": 0.2,
    "SPIDERLING_RAMP_UP_PER_S": 1000,
    "CLOSESPIDER_TIMEOUT": 600,
}
HEAD = ("web", "crawler", "pages", "MB", "pages/s", "MB/s", "CPU ms/page", "main ms/page", "main RSS MB")


def main() -> None:
    options = arguments(__doc__)
    pages, naive_pages, hosts = (500, 150, 2000) if options.quick else (6000, 1500, 20000)
    mini = _measure(str(ROOT / "examples/miniweb"), ["http://portal.test/"], pages, naive_pages)
    web = SyntheticWeb(hosts, 1, read_words(ROOT / "models", ("cs", "sk", "pl", "en", "de")))
    seeds = web.seeds(hosts // 10)
    many = _measure(f"synthetic:{hosts}:1", seeds, pages, naive_pages)
    rows = [_row(web, who, run) for web, runs in (("miniweb", mini), ("synthetic 30 kB", many)) for who, run in runs]
    table(HEAD, rows)
    ours, naive = many[0][1], many[1][1]
    result(
        pages_per_s=round(ours.pages / ours.wall_s, 1),
        mb_per_s=round(ours.mb / ours.wall_s, 2),
        cpu_ms_per_page=round(ours.cpu_ms_per_page, 2),
        main_cpu_ms_per_page=round(ours.main_cpu_ms_per_page, 2),
        ratio_naive=round(naive.cpu_ms_per_page / ours.cpu_ms_per_page, 2),
    )


def _measure(web: str, seeds: list[str], pages: int, naive_pages: int) -> list[tuple[str, Measured]]:
    """Ours over *pages*, then the naive crawler over *naive_pages*, on the same server."""
    with served(web) as hosts, tempfile.TemporaryDirectory() as directory:
        seed_file = Path(directory, "seeds.txt")
        seed_file.write_text("\n".join(seeds))
        settings = {**FAST, "SPIDERLING_HOSTS": hosts, "JOBDIR": f"{directory}/job", "CLOSESPIDER_PAGECOUNT": pages}
        ours = crawl(["crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={seed_file}"], settings)
        address, port = re.search(r"=([0-9.]+):(\d+)", hosts).groups()  # type: ignore[union-attr]
        spider = ["runspider", "benchmarks/peers/naive.py", "-a", f"seeds={','.join(seeds[:200])}"]
        settings = {"CLOSESPIDER_PAGECOUNT": naive_pages, "CLOSESPIDER_TIMEOUT": 600, "ADDONS": "{}"}
        naive = crawl(spider, settings, {"http_proxy": f"http://{address}:{port}"})
    return [("spiderling", ours), ("naive", naive)]


def _row(web: str, who: str, run: Measured) -> tuple[object, ...]:
    return (
        web, who, run.pages, run.mb, run.pages / run.wall_s, run.mb / run.wall_s,
        run.cpu_ms_per_page, run.main_cpu_ms_per_page, run.main_rss_mb,
    )  # fmt: skip


if __name__ == "__main__":
    main()
