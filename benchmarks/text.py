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

import gc
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import justext
from lxml import etree
from lxml import html as lxml_html

from benchmarks.common import arguments, result, table
from benchmarks.equality import bundled_pages, differs
from models import boilerplate_fit
from models.boilerplate_fit import Sample
from models.marked_pages import MarkedPage, f1, read, score, words_of
from spiderling import languages
from spiderling.base.options import Options
from spiderling.languages import available, load
from spiderling.text import LanguageModels, TextOptions, clean_text, cleaning, process
from spiderling.text.boilerplate.model import THRESHOLD, BlockModel, NetworkWeights, bundled
from spiderling.text.declared import fill_head
from spiderling.text.judging import Judge
from spiderling.text.page import Page as CleanedPage
from spiderling.text.steps import PYTHON, Steps, choose

PAGES = Path("pages/pages-dev.jsonl.zst")
WCXB = Path("wcxb-dev.jsonl.zst")
TYPES = ("article", "documentation", "forum", "service", "listing", "product", "collection")
RUNNING = TYPES[:4]
"""Types of pages that a corpus wants; what is text of the others is a teaser elsewhere."""
PEERS_STEP = 4
"""Other extractors read every fourth page; they take a quarter of a second a page together."""
_LANGUAGE_STEP = ("learned", "kept")
DEFAULTS = Options()
# stop lists by the pages' languages; where those are not known, lengths and links decide alone
NAMES = {"en": "English", "el": "Greek", "pl": "Polish", "ru": "Russian", "de": "German", "hr": "Croatian"}
_GROUPS = {"zh": "zho"}
"""Some Chinese in traditional letters is taken for Cantonese, so a crawl accepts both."""
Extractor = Callable[[str, str], str]
"""From a page and its language, '' if that is not known, to its text."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A marked page, and what else its file says."""

    page: MarkedPage
    language: str
    url: str = ""
    date: str = ""
    """The day on which it was published by its file; '' where that is not known."""


def cases(data: Path) -> list[Case]:
    """The pages of both files; the group of a page is its set (of DAnIEL: and language), or its type in WCXB."""
    return [_case(*pair) for pair in read([path for path in (data / PAGES, data / WCXB) if path.exists()])]


def _case(page: MarkedPage, record: dict[str, Any]) -> Case:
    if "type" in record:
        return Case(replace(page, group=f"wcxb {record['type']}"), "en", record["url"], record["date"] or "")
    source = record["set"]
    # some sets name hosts in ids
    parts = record["id"].split("_")
    host = {"daniel": parts[1:2], "cleanportal": parts[:1]}.get(source)
    group = f"{source} {record['lang']}" if source == "daniel" else source
    return Case(replace(page, group=group, host=host[0] if host else page.host), record["lang"] or "")


def quality(every: Sequence[Case], step: int) -> dict[str, object]:
    """Print the tables for each *step*-th page; returns the values for RESULT."""
    chosen = every[::step]
    known = {id(case.page): case for case in chosen}
    samples = boilerplate_fit.samples(case.page for case in chosen)
    found = boilerplate_fit.held_out(samples)
    sampled = {id(sample.page): place for place, sample in enumerate(samples)}
    # a page without a block is a miss; of the older sets such pages are left out, as they always were
    counted = [case for case in chosen if id(case.page) in sampled or _is_shell(case)]

    def ours(choose: Callable[[int, Sample], Sequence[bool]]) -> Extractor:
        texts = {id(samples[place].page): _joined(samples[place], choose(place, samples[place])) for place in found}
        return lambda html, _: texts.get(ids[id(html)], "")

    ids = {id(case.page.html): id(case.page) for case in chosen}
    kept = {
        id(sample.page): _kept(known[id(sample.page)], found[place].tolist()) for place, sample in enumerate(samples)
    }
    ways: dict[str, Extractor] = {
        "learned": ours(lambda place, _: (found[place] >= THRESHOLD).tolist()),
        "kept": lambda html, _: kept.get(ids[id(html)], ""),
        "justext": ours(lambda _, sample: _by_rules(sample, DEFAULTS.justext_preset, known)),
        "justext strict": ours(lambda _, sample: _by_rules(sample, "strict", known)),
    }
    means = _print("ours", counted, ways)
    _print_languages(counted, ways)
    some = counted[::PEERS_STEP]
    if step == 1:
        _print(
            f"every {PEERS_STEP}th page, other extractors beside ours", some, {"learned": ways["learned"], **peers()}
        )
    same = [case for case in counted if case.page.text is not None and _is_known(case)]
    spoken = _print("those whose true text is in the language of their set", same, {n: ways[n] for n in _LANGUAGE_STEP})
    learned = means["learned"]
    sizes = Counter(case.page.group for case in counted)
    return {
        "f1_justext": round(_older(means["justext"]), 3),
        "f1_learned": round(_older(learned), 3),
        "f1_kept": round(_older(means["kept"]), 3),
        "f1_kept_known": [round(_older(spoken[name]), 3) for name in _LANGUAGE_STEP],
        "f1_paragraphs": round(_paragraphs(samples, found), 3),
        "f1_wcxb": round(_over(learned, sizes, TYPES), 3),
        "f1_wcxb_running": round(_over(learned, sizes, RUNNING), 3),
        "f1_wcxb_by_type": {kind: round(learned.get(f"wcxb {kind}", 0.0), 3) for kind in TYPES},
    }


def _is_shell(case: Case) -> bool:
    """Whether a page of WCXB has a text, but none of it in its markup."""
    return case.page.group.startswith("wcxb") and len(words_of(case.page.text or "")) >= boilerplate_fit.MIN_WORDS


def _joined(sample: Sample, taken: Sequence[bool]) -> str:
    return "\n".join(block.text for block, yes in zip(sample.blocks, taken, strict=True) if yes)


def _by_rules(sample: Sample, preset: str, known: Mapping[int, Case]) -> list[bool]:
    return boilerplate_fit.by_rules(sample, preset, stoplist(known[id(sample.page)].language))


def _paragraphs(samples: Sequence[Sample], found: Mapping[int, Any]) -> float:
    """F1 over paragraphs, each with its weight in the fit: the mean of the pages of a set, then of the older sets."""
    scores: dict[str, list[float]] = {}
    for place, sample in enumerate(samples):
        if sample.truth is not None and not sample.page.group.startswith("wcxb"):
            taken = found[place] >= THRESHOLD
            both = float((taken * sample.truth) @ sample.weights)
            scores.setdefault(sample.page.group, []).append(
                2 * both / max(1e-9, float(taken @ sample.weights + sample.truth @ sample.weights))
            )
    return sum(sum(one) / len(one) for one in scores.values()) / max(1, len(scores))


# -- what a crawl keeps


@dataclass(frozen=True, slots=True, eq=False)
class _Known(BlockModel):
    """A model that knows the probabilities of the blocks that one page shows; those of its JSON count as no text."""

    known: Sequence[float] = ()

    def probabilities(self, blocks: Any, *_: Any) -> list[float]:
        return [*self.known, *[0.0] * (len(blocks) - len(self.known))]


def _kept(case: Case, probabilities: Sequence[float]) -> str:
    """What a crawl for the language of the page keeps of it; of a page of unknown language what is in a big one."""
    models, accepted = _crawl(case.language)
    model = _Known(bundled().first, bundled().second, known=probabilities)
    options = TextOptions(accepted, block_model=model, block_threshold=THRESHOLD)
    body = case.page.html.encode("utf-8", "replace")
    return clean_text(process(body, url="", http_charset="utf-8", models=models, options=options).paragraphs)


def _is_known(case: Case) -> bool:
    """Whether the language step would take the page's true text; it refuses lorem ipsum, and rightly."""
    models, accepted = _crawl(case.language)
    guesses = models.identify((case.page.text or "").splitlines())
    nearest = guesses.nearest()
    return nearest in accepted and guesses.known_share(nearest) >= DEFAULTS.min_known_share


@lru_cache(maxsize=8)
def _crawl(code: str) -> tuple[LanguageModels, tuple[str, ...]]:
    """The models that a crawl for the language *code* loads, and the languages that it accepts."""
    accepted = languages.find_languages(_GROUPS.get(code, code)) if code in languages.available() else []
    models = languages.load(languages.to_recognise(accepted))
    return models, tuple(info.code for info in accepted) or models.codes


# -- other extractors


def peers() -> dict[str, Extractor]:
    """Other tools that find the text of a page, as far as they are installed."""
    found: dict[str, Extractor] = {"justext-stock": _stock}
    with suppress(ImportError):
        import trafilatura

        found["trafilatura"] = lambda html, _: trafilatura.extract(html) or ""
        found["trafilatura, fast"] = lambda html, _: trafilatura.extract(html, fast=True) or ""
        found["trafilatura, recall"] = lambda html, _: trafilatura.extract(html, favor_recall=True) or ""
    with suppress(ImportError):
        import readability

        found["readability"] = lambda html, _: _text_of(readability.Document(html).summary())
    with suppress(ImportError):
        from resiliparse.extract.html2text import extract_plain_text

        found["resiliparse"] = lambda html, _: extract_plain_text(html, main_content=True)
    return found


def _text_of(html: str) -> str:
    return "\n".join(map(str, lxml_html.fromstring(html).itertext()))


def _stock(html: str, code: str) -> str:
    words = stoplist(code)
    densities = {} if words else {"stopwords_low": 0.0, "stopwords_high": 0.0}
    paragraphs = justext.justext(html, words, **densities)
    return "\n".join(paragraph.text for paragraph in paragraphs if not paragraph.is_boilerplate)


@lru_cache(maxsize=32)
def stoplist(code: str) -> frozenset[str]:
    name = NAMES.get(code)
    return frozenset(map(str.lower, justext.get_stoplist(name))) if name else frozenset()


# -- tables


def _scores(every: Sequence[Case], extract: Extractor, group: Callable[[Case], str]) -> dict[str, float]:
    """Group -> F1 of what *extract* finds."""
    scores: dict[str, list[tuple[float, float, float]]] = {}
    stretches: dict[str, bool] = {}
    for case in every:
        try:
            text = extract(case.page.html, case.language)
        except Exception:  # a tool that fails on a page has no text of it
            text = ""
        scores.setdefault(group(case), []).append(score([text], case.page))
        stretches[group(case)] = case.page.text is None
    return {name: f1(found, stretches[name]) for name, found in scores.items()}


def _print(what: str, every: Sequence[Case], ways: Mapping[str, Extractor]) -> dict[str, dict[str, float]]:
    """Print F1 by set and type; returns it by tool."""
    columns = {name: _scores(every, way, lambda case: case.page.group) for name, way in ways.items()}
    sizes = Counter(case.page.group for case in every)
    rows: list[list[object]] = [
        [group, sizes[group], *(f"{one[group]:.3f}" for one in columns.values())] for group in sorted(sizes)
    ]
    older = sum(number for group, number in sizes.items() if not group.startswith("wcxb"))
    rows.append(["mean of the older sets", older, *(f"{_older(one):.3f}" for one in columns.values())])
    for name, kinds in (("wcxb, four types", RUNNING), ("wcxb, all types", TYPES)):
        number = sum(sizes[f"wcxb {kind}"] for kind in kinds)
        rows.append([name, number, *(f"{_over(one, sizes, kinds):.3f}" for one in columns.values())])
    hosts = len({case.page.host for case in every})
    print(f"F1 of {len(every)} pages of {hosts} hosts: {what}; learned on hosts that its fit did not see")
    table(["set", "pages", *columns], rows)
    print()
    return columns


def _print_languages(every: Sequence[Case], ways: Mapping[str, Extractor]) -> None:
    whole = [case for case in every if case.page.text is not None and not case.page.group.startswith("wcxb")]
    sizes = Counter(case.language or "unknown" for case in whole)
    columns = {name: _scores(whole, way, lambda case: case.language or "unknown") for name, way in ways.items()}
    table(
        ["language", "pages", *columns],
        [[code, sizes[code], *(f"{one[code]:.3f}" for one in columns.values())] for code in sorted(sizes)],
    )
    print()


def dates(every: Sequence[Case]) -> dict[str, float]:
    """Print how well the dates of WCXB's pages are found, and how many are found where none is known; returns ours.

    Where a page names two, some of the known ones are those of its last change.
    """
    ways: dict[str, Callable[[Case], str]] = {"ours": _published}
    with suppress(ImportError):
        from htmldate import find_date

        for name, is_extensive in (("htmldate, fast", False), ("htmldate", True)):
            ways[name] = partial(_by_htmldate, find_date, is_extensive)
    dated = [case for case in every if case.date]
    others = [case for case in every if case.url and not case.date]
    rows = []
    for name, way in ways.items():
        found = [(case.date[:10], day) for case in dated if (day := way(case)[:10])]
        right = sum(known == day for known, day in found)
        rows.append([name, right / len(dated), right / len(found), sum(bool(way(case)) for case in others)])
    print(f"dates of {len(dated)} pages of WCXB")
    table(["", "recall", "precision", f"of {len(others)} without a known one"], rows)
    print()
    return {"dates_recall": round(float(rows[0][1]), 3), "dates_precision": round(float(rows[0][2]), 3)}


def _published(case: Case) -> str:
    page = CleanedPage()
    fill_head(page, COMPILED.steps.parse(case.page.html), case.url)
    return page.published


def _by_htmldate(find: Callable[..., str | None], is_extensive: bool, case: Case) -> str:
    return find(case.page.html, url=case.url, original_date=True, extensive_search=is_extensive) or ""


def _older(means: Mapping[str, float]) -> float:
    return boilerplate_fit.mean({group: value for group, value in means.items() if not group.startswith("wcxb")})


def _over(means: Mapping[str, float], sizes: Mapping[str, int], kinds: Sequence[str]) -> float:
    """The mean over the pages of WCXB that are of *kinds*."""
    groups = [f"wcxb {kind}" for kind in kinds]
    return sum(means.get(group, 0.0) * sizes[group] for group in groups) / max(1, sum(sizes[group] for group in groups))


def bodies(every: Sequence[Case]) -> Iterator[tuple[bytes, str]]:
    """The pages of the older sets as bytes, with their languages."""
    return (
        (case.page.html.encode("utf-8", "replace"), case.language)
        for case in every
        if not case.page.group.startswith("wcxb")
    )


os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported


LANGUAGES = ("en", "cs", "de", "pl", "el", "ru", "fr", "es", "zh", "ja", "ar", "hi")
URL = "http://www.example.org/news/2026/page.html"
SUM, COMPILED_SUM, STOCK = "all, learned", "all, learned, compiled", "stock justext + cosine"
LXML, EVENTS = "lxml, a tree and no more", "lxml, each tag and text to an empty function"
STEPS = {
    "decode": (cleaning, "decode"),
    "head": (cleaning, "fill_head"),
    "languages": (Judge, "_identify"),
    "networks": (NetworkWeights, "__call__"),
    "signals of the good text": (Judge, "_measure"),
    "links": (cleaning, "_links"),
    "clean text": (cleaning, "_measure"),
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
        **({**dates(marked), **quality(marked, step)} if marked else {}),
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
        tools = {SUM: whole("learned"), "all, justext": whole("justext"), STOCK: _stock_and_language}
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


def _stock_and_language(body: bytes, code: str) -> str:
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
