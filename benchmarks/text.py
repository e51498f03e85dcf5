"""The text chain: CPU milliseconds a page by step beside stock jusText, and the quality of boilerplate removal.

python -m benchmarks.text [--quick] [--data DIR].  Without --data the bundled web's pages are
timed and nothing is said about quality (its floor is in tests/quality); with it,
DIR/pages/pages-dev.jsonl.zst: 1359 real pages.  The learned mode is measured on hosts that
its fit did not see.  jusText mode has the package's stop list of the page's language, none
where that is not known or the script has no spaces.  Times are of this process alone, best of
three; OPENBLAS_NUM_THREADS=1 as in the crawl's workers.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported

import io
import resource
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import justext
import zstandard

from benchmarks.common import arguments, result, table
from spiderling.languages import available, load
from spiderling.markedpages import read
from spiderling.options import Options
from spiderling.text import LanguageModels, TextOptions, fitting, process
from spiderling.text.boilerplate import classify, rules_for
from spiderling.text.encoding import decode
from spiderling.text.html import parse
from spiderling.text.learned import bundled
from spiderling.text.marking import MarkedPage
from spiderling.text.resolving import resolve

PAGES = Path("pages/pages-dev.jsonl.zst")
MINIWEB = Path(__file__).resolve().parent.parent / "examples/miniweb/pages.tar.zst"
LANGUAGES = 12
REPEATS = 3
URL = "http://www.example.org/news/2026/page.html"
SUM, JUSTEXT, STOCK = "all, learned", "all, justext", "stock justext + cosine"
DEFAULTS = Options()
# stop lists by the pages' languages; where those are not known, lengths and links decide alone
NAMES = {"en": "English", "el": "Greek", "pl": "Polish", "ru": "Russian", "de": "German", "hr": "Croatian"}


def main() -> None:
    given = arguments(__doc__)
    marked = [_labelled(*pair) for pair in read([given.data / PAGES])] if given.data else []
    bodies = [page.html.encode("utf-8", "replace") for page, _ in marked] or _bundled_bodies()
    number = 15 if given.quick else 60
    found = {kb: _times(_nearest(bodies, kb * 1000, number)) for kb in (131, 30)}
    print(f"CPU ms a page; {len(_models().codes)} languages told apart")
    table(
        ["step", *(f"{kb} kB" for kb in found)], [[step, *(one[step] for one in found.values())] for step in found[131]]
    )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB\n")
    rules, learned = _quality(marked[:: 3 if given.quick else 1]) if marked else (None, None)
    result(
        ms_131k=round(found[131][SUM], 2),
        ms_30k=round(found[30][SUM], 2),
        ratio_stock=round(found[131][STOCK] / found[131][SUM], 1),
        f1_justext=rules,
        f1_learned=learned,
    )


# -- time


def _times(bodies: Sequence[bytes]) -> dict[str, float]:
    """CPU milliseconds a page by step."""
    models, codes = _models(), _models().codes[:1]
    texts = [decode(body, None).text or "" for body in bodies]
    parsed = [parse(text) for text in texts]
    blocks = [one.blocks for one in parsed]
    good = [[block.text for block in some if len(block.text) > 100] for some in blocks]
    stop, rules = frozenset(justext.get_stoplist("English")), rules_for(DEFAULTS.justext_preset, None)
    modes = {name: TextOptions(codes, mode) for name, mode in ((SUM, "learned"), (JUSTEXT, "justext"))}

    def whole(name: str) -> Callable[[bytes], object]:
        return lambda body: process(body, url=URL, http_charset=None, models=models, options=modes[name])

    steps: dict[str, tuple[Callable[[Any], object], Sequence[Any]]] = {
        "decode": (lambda body: decode(body, None), bodies),
        "parse": (parse, texts),
        "links resolved": (lambda one: resolve(one.links, URL, one.base), parsed),
        "learned classes": (lambda one: bundled().probabilities(one.blocks, one.tree), parsed),
        "jusText classes": (lambda some: classify(some, stop, rules), blocks),
        "languages": (models.identify, good),
        SUM: (whole(SUM), bodies),
        JUSTEXT: (whole(JUSTEXT), bodies),
        STOCK: (_stock, bodies),
    }
    times = {name: _milliseconds(*step) for name, step in steps.items()}
    return {"page, kB": sum(map(len, bodies)) / len(bodies) / 1000, **times}


def _milliseconds(step: Callable[[Any], object], values: Sequence[Any]) -> float:
    """The best of some passes: others use the machine too."""
    step(values[0])
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        for value in values:
            step(value)
        best = min(best, time.process_time() - start)
    return 1000 * best / len(values)


def _stock(body: bytes) -> str:
    """The package and a cosine of character trigrams in plain Python, as in the papers."""
    try:
        paragraphs = justext.justext(body, frozenset(justext.get_stoplist("English")), encoding="utf-8")
    except ValueError:  # it fails on control characters
        return ""
    text = "\n".join(paragraph.text for paragraph in paragraphs if not paragraph.is_boilerplate)
    counts = Counter(text[place : place + 3] for place in range(len(text) - 2))
    vectors = _vectors()
    return max(vectors, key=lambda code: sum(count * vectors[code].get(gram, 0) for gram, count in counts.items()))


@lru_cache(maxsize=1)
def _models() -> LanguageModels:
    return load(tuple(available())[:LANGUAGES])


@lru_cache(maxsize=1)
def _vectors() -> dict[str, dict[str, float]]:
    """Trigram vectors of unit length."""
    vectors = {}
    for model in _models().models:
        grams = {gram: count for gram, count in model.ngrams.items() if len(gram) == 3}
        norm = sum(count * count for count in grams.values()) ** 0.5
        vectors[model.code] = {gram: count / norm for gram, count in grams.items()}
    return vectors


def _nearest(bodies: Sequence[bytes], size: int, number: int) -> list[bytes]:
    return sorted(bodies, key=lambda body: abs(len(body) - size))[:number]


def _bundled_bodies() -> list[bytes]:
    web = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj().decompress(MINIWEB.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(web)) as archive:
        files = (archive.extractfile(member) for member in archive if member.isfile())
        return [file.read() for file in files if file]


# -- quality


def _labelled(page: MarkedPage, record: dict[str, Any]) -> tuple[MarkedPage, str]:
    """The page with its set (of DAnIEL: and language) as group, and its language.  Some sets name hosts in ids."""
    source, code = record["set"], record["lang"] or "unknown"
    parts = record["id"].split("_")
    host = {"daniel": parts[1:2], "cleanportal": parts[:1]}.get(source)
    group = f"{source} {code}" if source == "daniel" else source
    return replace(page, group=group, host=host[0] if host else page.host), code


def _quality(marked: Sequence[tuple[MarkedPage, str]]) -> tuple[float, float]:
    """Print F1 by set and by language; returns the means over the sets of jusText mode and learned mode."""
    every = fitting.samples(page for page, _ in marked)
    codes = {id(page): code for page, code in marked}
    found = fitting.held_out(every)

    def learned(place: int, _: fitting.Sample) -> list[bool]:
        return [bool(one >= DEFAULTS.boilerplate_threshold) for one in found[place]]

    def rules(preset: str) -> Callable[[int, fitting.Sample], list[bool]]:
        return lambda _, sample: fitting.by_rules(sample, preset, _stoplist(codes[id(sample.page)]))

    ways = {
        "learned": learned,
        "justext": rules(DEFAULTS.justext_preset),
        "justext strict": rules("strict"),
        "justext, no stop words": lambda _, sample: fitting.by_rules(sample, DEFAULTS.justext_preset, ()),
    }
    by_set = {name: fitting.table(every, way) for name, way in ways.items()}
    _print(by_set, "set", every)
    means = {name: fitting.mean(column) for name, column in by_set.items()}
    spoken = [replace(one, page=replace(one.page, group=codes[id(one.page)])) for one in every]
    for one, old in zip(spoken, every, strict=True):
        codes[id(one.page)] = codes[id(old.page)]
    whole = [one for one in spoken if one.page.text is not None]
    found = {place: found[spoken.index(one)] for place, one in enumerate(whole)}
    _print({name: fitting.table(whole, way) for name, way in ways.items()}, "language", whole)
    return round(means["justext"], 3), round(means["learned"], 3)


def _print(columns: dict[str, dict[str, float]], what: str, every: Sequence[fitting.Sample]) -> None:
    pages = Counter(one.page.group for one in every)
    rows: list[list[object]] = [
        [group, pages[group], *(f"{one[group]:.3f}" for one in columns.values())] for group in pages
    ]
    rows.append(["mean", len(every), *(f"{fitting.mean(one):.3f}" for one in columns.values())])
    hosts = len({one.page.host for one in every})
    print(f"F1 of {len(every)} pages of {hosts} hosts, the learned mode on hosts that it was not fitted to")
    table([what, "pages", *columns], rows)
    print()


@lru_cache(maxsize=32)
def _stoplist(code: str) -> frozenset[str]:
    name = NAMES.get(code)
    return frozenset(map(str.lower, justext.get_stoplist(name))) if name else frozenset()


if __name__ == "__main__":
    main()
