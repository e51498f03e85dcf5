"""What opt-outs cost: processor time for each URL that is judged, and for each page that is kept.

    python benchmarks/optouts.py [--quick]

The files are of a usual kind: a robots.txt of 60 lines with Content-Signal, a tdmrep.json of three rules, an ai.txt of
40 kinds of files.  The reference is robots.txt alone, judged by protego alone.  A robots.txt of the largest size
that is read is parsed in a thread; what is left to the event loop then stands beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from protego import Protego

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from spiderling.base.options import Options  # noqa: E402
from spiderling.frontier.robots import Robots, RobotsVerdict  # noqa: E402
from spiderling.frontier.site_files import MAX_FILE_BYTES, FileAnswer, Rules, SiteFile, parsed  # noqa: E402
from spiderling.text.optout import page_statements  # noqa: E402

ORIGIN = "http://a.example"
AGENTS = ("GPTBot", "CCBot", "Bytespider", "AhrefsBot", "SemrushBot")
ROBOTS = (
    "".join(f"User-agent: {agent}\nDisallow: /\n\n" for agent in AGENTS)
    + "User-agent: *\nContent-Signal: search=yes, ai-train=yes\n"
    + "".join(f"Disallow: /section{number}/*/print$\n" for number in range(40))
).encode()
FILES = {
    SiteFile.ROBOTS: ROBOTS,
    SiteFile.TDMREP: json.dumps(
        [{"location": location, "tdm-reservation": 0} for location in ("/a/", "/*.html$", "/")]
    ).encode(),
    SiteFile.AI_TXT: ("User-Agent: *\n" + "".join(f"Disallow: *.x{number}\n" for number in range(40))).encode(),
}
LARGE = ("User-agent: *\n" + "".join(f"Disallow: /{n:x}\n" for n in range(60_000))).encode()[:MAX_FILE_BYTES]
HEADERS = [("X-Robots-Tag", "noarchive, max-snippet: 20"), ("X-Robots-Tag", "googlebot: noindex")]
META = {"robots": "index, follow, noarchive", "tdm-reservation": "0"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    rounds = 5_000 if parser.parse_args().quick else 50_000
    urls = [f"{ORIGIN}/section{number % 50}/{number}/page.html" for number in range(1000)]
    protego, options = Protego.parse(ROBOTS.decode()), Options()
    large = parsed(SiteFile.ROBOTS, LARGE, options)
    rows = {
        "protego alone": per_call(lambda number: protego.can_fetch(urls[number % 1000], "spiderling"), rounds),
        "robots.txt alone": judging(
            urls, rounds, "tdm-file=ignore,ai-txt=ignore,content-signal=ignore,ai-agents=ignore"
        ),
        "all files": judging(urls, rounds, ""),
        "parsing 500 KiB of rules": per_call(lambda _: parsed(SiteFile.ROBOTS, LARGE, options), 5),
        "... left to the event loop": per_call(lambda _: noting(large), 5),
        "a page's headers and head": per_call(lambda _: page_statements(HEADERS, META, options, 1.8e9), rounds),
    }
    for name, us in rows.items():
        print(f"{name:28}{us:8.1f} us")
    print("RESULT " + json.dumps({name.replace(" ", "_"): round(us, 1) for name, us in rows.items()}))


def judging(urls: list[str], rounds: int, optouts: str) -> float:
    """Microseconds for each URL that is judged."""
    robots = Robots(Options(optouts=optouts))
    for file, body in FILES.items():
        robots.note_answer(ORIGIN, FileAnswer(200, body), 0.0, file)
    assert robots.judge(ORIGIN, urls[0], 1.0) is RobotsVerdict.ALLOWED
    return per_call(lambda number: robots.judge(ORIGIN, urls[number % 1000], 1.0), rounds)


def noting(rules: Rules) -> None:
    """The answer to a request for the large robots.txt, which was parsed ahead."""
    robots = Robots(Options())
    robots.parsed_ahead(SiteFile.ROBOTS, LARGE, rules)
    robots.note_answer(ORIGIN, FileAnswer(200, LARGE), 0.0)


def per_call(call: Callable[[int], object], rounds: int) -> float:
    """Microseconds of processor time for each call."""
    begin = time.process_time()
    for number in range(rounds):
        call(number)
    return (time.process_time() - begin) / rounds * 1e6


if __name__ == "__main__":
    main()
