"""A rehearsal of a live crawl: a generated web of 5,000 hosts, 100 seeds, the default intervals, one hour.

    python benchmarks/rehearsal.py [--quick] [--strategy spiderling] [--minutes 60]     # --quick: one minute

Prints pages/s, yield rate and hosts by minute, from the progress lines that a user sees.  RESULT: words kept and words
for each downloaded MB are what strategies are compared by.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, crawl, result, served, table
from webs.synthetic import SyntheticWeb, read_words

HOSTS, SEEDS = 5000, 100
_LINE = re.compile(
    r"progress: ([\d,]+) pages \(([\d.]+)/s\), ([\d.,]+) MB downloaded, ([\d,]+) words, yield rate ([\d.]+); "
    r"([\d,]+) URLs? waiting; bottleneck: (.*)"
)
HEAD = ("minute", "pages", "pages/s", "MB down", "words", "yield rate", "URLs waiting", "bottleneck")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one minute")
    parser.add_argument("--data", help="not needed")
    parser.add_argument("--strategy", default="spiderling", help="as -a strategy= takes it (default spiderling)")
    parser.add_argument("--minutes", type=float, default=60, help="length of the crawl (default 60)")
    options = parser.parse_args()
    seconds, step = (60, 10) if options.quick else (round(60 * options.minutes), 60)
    web = SyntheticWeb(HOSTS, 1, read_words(ROOT / "models", ("cs", "sk", "pl", "en", "de")))
    with served(f"synthetic:{HOSTS}:1") as hosts, tempfile.TemporaryDirectory() as directory:
        seeds = Path(directory, "seeds.txt")
        seeds.write_text("\n".join(web.seeds(SEEDS, "cs")))
        settings = {
            "SPIDERLING_ALLOW_NETWORKS": "127.0.0.0/8",
            "SPIDERLING_HOSTS": hosts,
            "SPIDERLING_PROGRESS_S": step,
            "SPIDERLING_STRATEGY": options.strategy,
            "JOBDIR": f"{directory}/job",
            "CLOSESPIDER_TIMEOUT": seconds + 2,
            "LOG_LEVEL": "INFO",
        }
        run = crawl(["crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={seeds}"], settings)
        log = Path(directory, "job/crawl.log").read_text()
    rows = [(number, *found) for number, found in enumerate(_LINE.findall(log), 1)]
    table(HEAD, rows)
    result(
        hosts=HOSTS, seeds=SEEDS, seconds=round(run.wall_s), pages=run.pages, strategy=options.strategy,
        words=run.words, words_per_mb=round(run.words / max(run.mb, 1e-9)),
        pages_per_s=round(run.pages / run.wall_s, 2), yield_rate=round(run.kept_mb / max(run.mb, 1e-9), 4),
        cpu_ms_per_page=round(run.cpu_ms_per_page, 2), main_cpu_ms_per_page=round(run.main_cpu_ms_per_page, 2),
        main_rss_mb=round(run.main_rss_mb),
    )  # fmt: skip


if __name__ == "__main__":
    main()
