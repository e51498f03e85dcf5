"""A rehearsal of a live crawl: a generated web of 5,000 hosts, 100 seeds, the default intervals, one hour.

    python benchmarks/rehearsal.py [--quick]     # --quick: one minute

Prints pages/s, yield rate and hosts by minute, from the progress lines that a user sees.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, arguments, crawl, result, served, table
from webs.synthetic import SyntheticWeb, read_words

HOSTS, SEEDS = 5000, 100
_LINE = re.compile(
    r"progress: ([\d,]+) pages \(([\d.]+)/s\), ([\d.,]+) MB down, ([\d.,]+) MB kept, yield rate ([\d.]+), .*?; "
    r"([\d,]+) URLs wait; hosts: (.*); bottleneck: (.*)"
)
HEAD = ("minute", "pages", "pages/s", "MB down", "MB kept", "yield rate", "URLs waiting", "active hosts", "retired",
        "bottleneck")  # fmt: skip


def main() -> None:
    options = arguments(__doc__)
    seconds, step = (60, 10) if options.quick else (3600, 60)
    web = SyntheticWeb(HOSTS, 1, read_words(ROOT / "models", ("cs", "sk", "pl", "en", "de")))
    with served(f"synthetic:{HOSTS}:1") as hosts, tempfile.TemporaryDirectory() as directory:
        seeds = Path(directory, "seeds.txt")
        seeds.write_text("\n".join(web.seeds(SEEDS, "cs")))
        settings = {
            "SPIDERLING_ALLOW_NETWORKS": "127.0.0.0/8",
            "SPIDERLING_HOSTS": hosts,
            "SPIDERLING_PROGRESS_S": step,
            "JOBDIR": f"{directory}/job",
            "CLOSESPIDER_TIMEOUT": seconds + 2,
            "LOG_LEVEL": "INFO",
        }
        run = crawl(["crawl", "spiderling", "-a", "lang=cs", "-a", f"seeds={seeds}"], settings)
        log = Path(directory, "job/crawl.log").read_text()
    rows = [_row(number, match) for number, match in enumerate(_LINE.finditer(log), 1)]
    table(HEAD, rows)
    result(
        hosts=HOSTS, seeds=SEEDS, seconds=round(run.wall_s), pages=run.pages,
        pages_per_s=round(run.pages / run.wall_s, 2), yield_rate=round(run.kept_mb / max(run.mb, 1e-9), 4),
        cpu_ms_per_page=round(run.cpu_ms_per_page, 2), main_cpu_ms_per_page=round(run.main_cpu_ms_per_page, 2),
        main_rss_mb=round(run.main_rss_mb),
    )  # fmt: skip


def _row(number: int, match: re.Match[str]) -> tuple[object, ...]:
    pages, rate, down, kept, yield_rate, waiting, hosts, bottleneck = match.groups()
    states = {name: int(count) for count, name in re.findall(r"(\d+) ([a-z ]+)", hosts)}
    active = sum(states.get(name, 0) for name in ("ready", "in process", "snoozed", "resolving"))
    return number, pages, rate, down, kept, yield_rate, waiting, active, states.get("retired", 0), bottleneck


if __name__ == "__main__":
    main()
