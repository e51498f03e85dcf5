"""The text chain: CPU milliseconds a page by step beside other tools, and the quality of boilerplate removal.

python -m benchmarks.text [--quick] [--data DIR].  Without --data the bundled web's pages are
timed and nothing is said about quality (its floor is in tests/quality); with it,
DIR/pages/pages-dev.jsonl.zst, 1359 real pages of 15 sets, and DIR/wcxb-dev.jsonl.zst, 1358 of seven types
(cleaning.py).  The learned mode is measured on hosts that its fit did not see.  jusText mode has the package's stop
list of the page's language, none where that is not known or the script has no spaces.

*compiled* are the steps of native/ where they are built, in turn with Python's; the ratio to jusText is that of those
which run here.  *unequal* counts the pages of the timed sizes that are not the same both ways.

The rows of the steps are taken inside the whole chain and add up to their sum; the whole is timed
again without those clocks.  Times are of this process alone, for each page the best of some passes,
because others use the machine too; as in the crawl's workers, OPENBLAS_NUM_THREADS=1 and garbage is
collected between pages only, for every tool.  Those that benchmarks/requirements.txt names are left
out where they are not installed; they do not tell languages apart and find no links.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported

import gc
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import justext
from lxml import etree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cleaning import bodies, cases, quality, stoplist  # noqa: E402
from benchmarks.common import arguments, result, table  # noqa: E402
from benchmarks.equality import bundled_pages, differs  # noqa: E402
from spiderling.languages import available, load  # noqa: E402
from spiderling.text import LanguageModels, TextOptions, cleaning, process  # noqa: E402
from spiderling.text.boilerplate.model import Network  # noqa: E402
from spiderling.text.compiled import choose  # noqa: E402
from spiderling.text.judging import Judge  # noqa: E402
from spiderling.text.steps import PYTHON, Steps  # noqa: E402

LANGUAGES = ("en", "cs", "de", "pl", "el", "ru", "fr", "es", "zh", "ja", "ar", "hi")
URL = "http://www.example.org/news/2026/page.html"
SUM, COMPILED_SUM, STOCK = "all, learned", "all, learned, compiled", "stock justext + cosine"
LXML, EVENTS = "lxml, a tree and no more", "lxml, each tag and text to an empty function"
STEPS = {
    "decode": (cleaning, "decode"),
    "head": (cleaning, "fill_head"),
    "languages": (Judge, "_identify"),
    "networks": (Network, "__call__"),
    "signals of the good text": (Judge, "_measure"),
    "links": (cleaning, "_links"),
    "clean text": (cleaning, "_measured"),
}
"""The steps of `process` that are always Python's, by the function that does each; `Steps` has the others."""
COMPILED = choose()
Page = tuple[bytes, str]
"""Body and language, '' when that is not known."""


def main() -> None:
    given = arguments(__doc__)
    marked = cases(given.data) if given.data else []
    pages = list(bodies(marked)) or [(body, "") for body in bundled_pages()]
    number, passes, step = (8, 3, 6) if given.quick else (60, 5, 1)
    found = {kb: _times(_nearest(pages, kb * 1000, number), passes) for kb in (131, 30)}
    print(f"CPU ms a page; {len(_models().codes)} languages told apart; text steps: {COMPILED.words}")
    table(
        ["step", *(f"{kb} kB" for kb in found)], [[step, *(one[step] for one in found.values())] for step in found[131]]
    )
    print()
    result(
        ms_131k=round(found[131][SUM], 2),
        ms_30k=round(found[30][SUM], 2),
        ratio_stock=round(found[131][STOCK] / found[131].get(COMPILED_SUM, found[131][SUM]), 1),
        **(_compared(found, pages, number) if COMPILED.steps is not PYTHON else {}),
        **(quality(marked, step) if marked else {}),
    )


def _compared(found: dict[int, dict[str, float]], pages: Sequence[Page], number: int) -> dict[str, float]:
    options = TextOptions(_models().codes, with_shingles=True)
    timed = [body for kb in found for body, _ in _nearest(pages, kb * 1000, number)]
    ratios = {f"compiled_ratio_{kb}k": round(one[COMPILED_SUM] / one[SUM], 3) for kb, one in found.items()}
    return {**ratios, "unequal": sum(differs(body, COMPILED.steps, _models(), options) for body in timed)}


# -- time


def _times(pages: Sequence[Page], passes: int) -> dict[str, float]:
    """CPU milliseconds a page by step and by tool."""
    models = _models()
    modes = {mode: TextOptions(models.codes[:1], mode) for mode in ("learned", "justext")}

    def whole(mode: str, steps: Steps = PYTHON) -> Callable[[bytes, str], object]:
        return lambda body, _: process(
            body, url=URL, http_charset=None, models=models, options=modes[mode], steps=steps
        )

    with _workers_garbage():
        models.warm_up()
        memory = _memory_mb(lambda: [whole("learned")(*page) for page in pages])
        sums = {
            "page, kB": sum(len(body) for body, _ in pages) / len(pages) / 1000,
            **_steps(lambda steps: whole("learned", steps), PYTHON, pages, passes),
        }
        tools = {SUM: whole("learned"), "all, justext": whole("justext"), STOCK: _stock}
        if COMPILED.steps is not PYTHON:
            by_compiled = _steps(lambda steps: whole("learned", steps), COMPILED.steps, pages, passes)
            sums |= {f"{name}, compiled": by_compiled[name] for name in (*Steps._fields, "sum of the steps")}
            tools[COMPILED_SUM] = whole("learned", COMPILED.steps)
        tools |= {LXML: _tree, EVENTS: _events, **_rivals()}
        sums |= _milliseconds(tools, pages, passes)
    return {**sums, "memory for a page at most, MB": memory}


@contextmanager
def _workers_garbage() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _milliseconds(
    tools: dict[str, Callable[[bytes, str], object]], pages: Sequence[Page], passes: int
) -> dict[str, float]:
    """Of each tool, in turn on every page, so that what else the machine does meets all.

    Their order is drawn, since each finds the caches that the one before has left.
    """
    best = {name: [float("inf")] * len(pages) for name in tools}
    order = list(tools)
    rng = random.Random(1)
    for _ in range(passes):
        for place, page in enumerate(pages):
            rng.shuffle(order)
            for name in order:
                start = time.process_time()
                tools[name](*page)
                best[name][place] = min(best[name][place], time.process_time() - start)
        gc.collect()
    return {name: 1000 * sum(times) / len(pages) for name, times in best.items()}


def _steps(
    whole: Callable[[Steps], Callable[[bytes, str], object]], steps: Steps, pages: Sequence[Page], passes: int
) -> dict[str, float]:
    """Time inside each of *steps* and STEPS, of the best pass over each page, and what the rest of it takes.

    A step that another one calls counts on its own alone.
    """
    clock: Counter[str] = Counter()
    inner = 0.0

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            nonlocal inner
            before, inner = inner, 0.0
            start = time.process_time()
            try:
                return function(*given, **named)
            finally:
                took = time.process_time() - start
                clock[name] += took - inner
                inner = before + took

        return wrapped

    run = whole(Steps(**{name: timed(name, function) for name, function in steps._asdict().items()}))
    best: dict[int, dict[str, float]] = {}
    patches = [mock.patch.object(*where, timed(name, getattr(*where))) for name, where in STEPS.items()]
    for patch in patches:
        patch.start()
    for place, page in [*enumerate(pages)] * passes:
        clock.clear()
        start = time.process_time()
        run(*page)
        total = time.process_time() - start
        if place not in best or total < best[place]["sum of the steps"]:
            best[place] = {**clock, "the rest": total - clock.total(), "sum of the steps": total}
    mock.patch.stopall()
    rows = ("decode", *Steps._fields, *(name for name in STEPS if name != "decode"), "the rest", "sum of the steps")
    return {name: 1000 * sum(one.get(name, 0) for one in best.values()) / len(pages) for name in rows}


def _memory_mb(run: Callable[[], object]) -> float:
    """How much more resident memory *run* had at most than there was before; 0 where the system does not tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = _status_mb("VmRSS")
        run()
        return _status_mb("VmHWM") - before
    except OSError:
        return 0.0


def _status_mb(name: str) -> float:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) / 1024


def _stock(body: bytes, code: str) -> str:
    """The package and a cosine of character trigrams in plain Python, as in the papers."""
    try:
        paragraphs = justext.justext(body, stoplist(code or "en"), encoding="utf-8")
    except ValueError:  # it fails on control characters
        return ""
    text = "\n".join(paragraph.text for paragraph in paragraphs if not paragraph.is_boilerplate)
    counts = Counter(text[place : place + 3] for place in range(len(text) - 2))
    vectors = _vectors()
    return max(vectors, key=lambda code: sum(count * vectors[code].get(gram, 0) for gram, count in counts.items()))


def _tree(body: bytes, _: str) -> object:
    return etree.fromstring(body, etree.HTMLParser(encoding="utf-8", huge_tree=True))


class _Nobody:
    """Takes what the parser finds and makes nothing of it: no chain in Python can be faster."""

    def start(self, tag: str, attributes: object) -> None:
        pass

    def end(self, tag: str) -> None:
        pass

    def data(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


def _events(body: bytes, _: str) -> object:
    return etree.fromstring(body, etree.HTMLParser(target=_Nobody(), encoding="utf-8", huge_tree=True))


def _rivals() -> dict[str, Callable[[bytes, str], object]]:
    """Other tools that find the text of a page, as far as they are installed."""
    found: dict[str, Callable[[bytes, str], object]] = {}
    with suppress(ImportError):
        import trafilatura

        found["trafilatura"] = lambda body, _: trafilatura.extract(body)
        found["trafilatura, fast"] = lambda body, _: trafilatura.extract(body, fast=True)
    with suppress(ImportError):
        from resiliparse.extract.html2text import extract_plain_text

        found["resiliparse, main content"] = lambda body, _: extract_plain_text(
            body.decode("utf-8", "replace"), main_content=True
        )
    return found


@lru_cache(maxsize=1)
def _models() -> LanguageModels:
    return load(tuple(code for code in LANGUAGES if code in available()))


@lru_cache(maxsize=1)
def _vectors() -> dict[str, dict[str, float]]:
    """Trigram vectors of unit length."""
    vectors = {}
    for model in _models().models:
        grams = {gram: count for gram, count in model.ngrams.as_dict().items() if len(gram) == 3}
        norm = sum(count * count for count in grams.values()) ** 0.5
        vectors[model.code] = {gram: count / norm for gram, count in grams.items()}
    return vectors


def _nearest(pages: Sequence[Page], size: int, number: int) -> list[Page]:
    return sorted(pages, key=lambda page: abs(len(page[0]) - size))[:number]


if __name__ == "__main__":
    main()
