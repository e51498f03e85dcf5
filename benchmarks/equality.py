"""Whether pages are the same by Python's steps and by the compiled ones, to the last bit.

python -m benchmarks.equality [--quick] [--data DIR] [--mutated N] [--fuzz SECONDS].  The bundled web's pages and, with
--data, those of DIR/pages/pages-dev.jsonl.zst and DIR/wcxb-dev.jsonl.zst are processed both ways with each of SETTINGS;
then N pages (10,000) that are made of these, cut, doubled and broken, drawn by seed.  A page that differs is written
to /tmp/unequal-*.html.  With --fuzz only broken pages are compared, others in each run, until that time is over, and
the growth of the resident memory is told; native/README.md says how to do that with a build that watches memory.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, result
from spiderling.base.files import zstd
from spiderling.base.terminal import with_progress
from spiderling.languages import load
from spiderling.text import LanguageModels, Page, TextOptions, process
from spiderling.text.steps import PYTHON, REQUIRED, Steps, choose

MINIWEB = ROOT / "examples/miniweb/pages.tar.zst"
FILES = ("pages/pages-dev.jsonl.zst", "wcxb-dev.jsonl.zst")
URL = "http://www.example.org/news/2026/page.html"
LANGUAGES = ("en", "cs", "de", "pl", "el", "ru", "fr", "es", "zh", "ja", "ar", "hi")
SETTINGS = (
    (LANGUAGES, TextOptions(LANGUAGES, with_shingles=True)),
    (("cs", "en"), TextOptions(("cs",), "justext", preset="permissive")),
    (("en", "de", "ru"), TextOptions(("ru", "de"), block_threshold=0.2, with_shingles=True)),
    (("en", "pl"), TextOptions(("pl",), "justext-stock", min_known_share=0.3)),
)
"""Languages told apart, and options."""
_WARM = 2000
"""Pages after which memory grows no more by what is remembered; chosen."""
_LEFT_OUT = 7
"""Of the last setting, which takes several times as long, every seventh page is enough; chosen."""
PIECES = (
    *"""
<p>
</p>
<div class='nav x1'>
<div id=main role=list style='display: none'>
</div>
<a href=/x>
<a href=y rel='nofollow License' alt=z>
<a href=z hreflang=de><b>
</a>
<br>
<button>
</button>
<title>
</title>
<script type=application/ld+json>
<script type=application/rsl+xml>
<script>
</script>
<html lang=de class=q>
<body hidden>
</html>
</body>
<head>
<!--
-->
<![CDATA[
<td>
<table>
<li>
<ul>
</ul>
<h2>
</h2>
<select><option>
</select>
<textarea>
<svg>
</svg>
<desc>
<input>
<b hidden>
<i>
</i>
<iframe src=y>
<area href=z alt=q>
<frameset>
<frame src=f>
<base href=b>
<meta name=description content=k>
<meta http-equiv=refresh content='0;url=/r'>
<meta name=a content=NoIndex>
<link rel=alternate hreflang=de href=/de>
<link rel=Canonical href=c>
<time pubdate datetime=2020>
<noscript>
<form>
<hr>
<img alt=a>
<img alt=K>
<img alt=Ř>
<sup>
</sup>
<a href=#n>
<a role=doc-noteref href=#n>
¶
[1]
<s>
</s>
<del>
</del>
<template>
<template shadowrootmode=open>
</template>
<span class='x sr-only'>
</span>
<p hidden>
<div style='display:none' class=x>
<ruby>
<rt>
ﻻ

fooBar
Žižka
Жук
猫
ﬁ
ｶﾞ
ὐ
&#28;
&#29;
&#30;
&#150;
&nbsp;
&shy;
&#xd800;
&#x1F600;
&#0;
&amp;
<
>
"
'
/
""".strip().splitlines(),
    *"\t\n \u00a0\u2003\u00ad\u0301\u0085\u200d\u200b\ufeff\x00\x1c",
)
"""What broken pages are made of."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="end within 60 seconds")
    parser.add_argument("--data", type=Path, help="directory with more pages")
    parser.add_argument("--mutated", type=int, default=10_000, help="broken pages")
    parser.add_argument("--fuzz", type=float, default=0, help="compare broken pages for so many seconds")
    given = parser.parse_args()
    compiled = choose(REQUIRED)
    print(compiled.words)
    pages = [*bundled_pages(), *(_read(given.data) if given.data else ())]
    if given.fuzz:
        _fuzz(pages, compiled.steps, given.fuzz)
        return
    number = 300 if given.quick else given.mutated
    every: dict[str, Iterable[bytes]] = {"whole": pages[:: 20 if given.quick else 1], "broken": mutated(pages, number)}
    found = {name: unequal(bodies, compiled.steps) for name, bodies in every.items()}
    result(pages=len(pages), mutated=number, unequal=sum(found.values()))


def unequal(bodies: Iterable[bytes], steps: Steps) -> int:
    """How many of *bodies* differ with any setting."""
    models = [load(codes) for codes, _ in SETTINGS]
    count = 0
    for number, body in enumerate(with_progress(bodies, "pages")):
        some = len(SETTINGS) if number % _LEFT_OUT == 0 else len(SETTINGS) - 1
        if any(
            differs(body, steps, model, options) for model, (_, options) in zip(models[:some], SETTINGS, strict=False)
        ):
            count += 1
            Path(f"/tmp/unequal-{count}.html").write_bytes(body)  # noqa: S108 - for a person to look at
    return count


def _fuzz(pages: list[bytes], steps: Steps, seconds: float) -> None:
    codes, options = SETTINGS[0]
    models = load(codes)
    found: list[bool] = []
    most = 0.0
    until = time.monotonic() + seconds
    for body in mutated(pages, sys.maxsize, seed=time.time_ns()):
        found.append(differs(body, steps, models, options))
        if found[-1]:
            Path(f"/tmp/unequal-{len(found)}.html").write_bytes(body)  # noqa: S108 - for a person to look at
        if len(found) == _WARM:
            most = resident_mb()
        if time.monotonic() > until:
            break
    result(mutated=len(found), unequal=sum(found), grown_mb=round(resident_mb() - most, 1))


def resident_mb() -> float:
    """The most resident memory up to now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def differs(body: bytes, steps: Steps, models: LanguageModels, options: TextOptions) -> bool:
    """Whether the Page of *body* is another one by *steps* than by Python's."""
    both = [
        values(process(body, url=URL, http_charset=None, models=models, options=options, steps=one))
        for one in (PYTHON, steps)
    ]
    return repr(both[0]) != repr(both[1])


def values(page: Page) -> dict[str, Any]:
    """All that a page says, with lists in place of arrays."""
    found = {spec.name: getattr(page, spec.name) for spec in fields(page) if spec.init}
    found["shingles"] = [*(part.tolist() for part in page.shingles[:2]), page.shingles.repeats]
    return found


def bundled_pages() -> list[bytes]:
    """The pages of the bundled web."""
    web = zstd.decompress(MINIWEB.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(web)) as archive:
        files = (archive.extractfile(member) for member in archive if member.isfile())
        return [file.read() for file in files if file]


def mutated(pages: list[bytes], number: int, seed: int = 1) -> Iterator[bytes]:
    """*number* broken pages: each has up to 30 pieces put in, taken out, doubled or overwritten."""
    rng = random.Random(seed)
    pieces = [piece.encode() for piece in PIECES]
    short = [page for page in pages if len(page) < 60_000]
    for _ in range(number):
        page = bytearray(rng.choice(short))
        for _ in range(rng.randint(1, 30)):
            at, other = rng.randrange(len(page) + 1), rng.randrange(len(page) + 1)
            match rng.randrange(5):
                case 0 | 1:
                    page[at:at] = rng.choice(pieces)
                case 2:
                    del page[at : at + rng.randint(1, 200)]
                case 3:
                    page[at:at] = page[other : other + rng.randint(1, 300)]
                case _:
                    page[at : at + 1] = bytes((rng.randrange(256),))
        yield bytes(page)


def _read(data: Path) -> Iterator[bytes]:
    # needs what only the data sets need
    from models.marked_pages import read

    for page, _ in read([data / name for name in FILES if (data / name).exists()]):
        yield page.html.encode("utf-8", "replace")


if __name__ == "__main__":
    main()
