"""What more a crawl gets by asking hosts of little yield seldom, and by second chances when the web is dry.

    python benchmarks/dry.py [--quick]

The real frontier on a virtual clock crawls a generated web from 475 seed hosts (as many
as the Tajik crawl of Suchomel & Pomikálek 2012 had), with the intervals of a live crawl
and room for ten requests a second: once with thousands of other hosts within reach, so
that there is too much to do, and once the seed hosts alone, which run dry.
Words kept are text bytes in the target language / 7.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import urljoin, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, arguments, result, table
from simulator.replay import Replay, world
from spiderling.base.link_batch import Link
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from webs.answers import ServedAnswers
from webs.synthetic import SyntheticWeb, read_words
from webs.web import WebResponse

SEEDS, TARGET, HOSTS, PAGES_PER_S = 475, "cs", 4000, 10.0
PROFILE = "0.03"
"""A strict threshold, t(100) = .03: more than lists of links are retired."""
BYTES_PER_WORD = 7
_LINK = re.compile(r'href="(https?://[^"]+|/[^"]*)"')
_TEXT = re.compile(r"<p>(.*?)</p>")
FLOOR = 50
CASES: dict[str, tuple[dict[str, object], tuple[int, ...]]] = {
    "4,000 hosts in turn": ({"strategy": "yield"}, (300, 900)),
    "4,000 hosts by rank, the poor ones seldom": ({}, (300, 900)),
    "475 hosts, no second chances": ({"strategy": "yield", "max_distance": 0}, (1200, 5400)),
    "475 hosts, second chances": ({"strategy": "yield", "max_distance": 0, "min_active_hosts": FLOOR}, (1200, 5400)),
}
"""Name -> options, and the seconds at which is counted."""


def judged(web: SyntheticWeb) -> ServedAnswers:
    """*web* with its truth about languages in place of a text worker."""

    def judge(url_id: int, url: str, answer: WebResponse) -> Outcome:
        parts, location = urlsplit(url), answer.headers.get("Location")
        text = answer.body.decode() if answer.status == 200 else ""
        kept = 0
        if web.language_of(parts.hostname or "", parts.path) == TARGET:
            kept = sum(len(paragraph.encode()) for paragraph in _TEXT.findall(text) if len(paragraph) > 200)
        reason = Reason.KEPT if kept else Reason.WRONG_LANGUAGE if text else Reason.HTTP_ERROR
        return Outcome(
            url_id, url, Reason.REDIRECTED if location else reason, answer.status, redirect_to=location,
            body_bytes=len(answer.body), kept_bytes=kept, words=kept // BYTES_PER_WORD,
            links=tuple(Link(urljoin(url, link)) for link in _LINK.findall(text)),
        )  # fmt: skip

    return ServedAnswers(web, judge)


def main() -> None:
    quick = arguments(__doc__).quick
    web = SyntheticWeb(HOSTS, 1, read_words(ROOT / "models"), median_pages=5, mean_page_bytes=15_000)
    seeds = web.seeds(SEEDS, TARGET)
    rows, words = [], {}
    for name, (settings, marks) in CASES.items():
        replay = Replay(
            judged(web), world(ip_interval_s=0.0, yield_profile=PROFILE, **settings), pages_per_s=PAGES_PER_S
        )
        for until in (60, 180) if quick else marks:
            sample = replay.run(seeds if replay.now == 0 else [], until=until)
            row = f"{sample.pages:,}", f"{sample.words:,}", f"{sample.yield_rate:.4f}", sample.retired
            rows.append((name, until, *row))
            words[name] = sample.words
    table(("web and variant", "second", "pages", "words kept", "yield rate", "hosts retired"), rows)
    turns, ranks, without, chances = words.values()
    result(
        turns=turns, ranks=ranks, gain_ranks=round(ranks / turns, 3),
        without=without, second_chances=chances, gain_second_chances=round(chances / without, 3),
    )  # fmt: skip


if __name__ == "__main__":
    main()
