"""Text in JSON: the words gained from pages that show none of them, and what must not be gained.

python -m benchmarks.json_text [--quick] [--data DIR].  Made cases: texts of the bundled web in shells of each of FORMS,
among messages, teasers and settings; the same marked as not free.  Recorded cases, with --data: real pages
(DIR/pages/pages-dev.jsonl.zst, DIR/wcxb-dev.jsonl.zst) with articleBody or a state, of which all is cut out but their
scripts; their gold texts are the measure.  The bundled web's pages show their text: anything gained there is false.
"""

from __future__ import annotations

import html
import io
import json
import random
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.common import arguments, result, table  # noqa: E402
from spiderling.languages import load  # noqa: E402
from spiderling.text import Page, TextOptions, clean_text, process  # noqa: E402

MINIWEB = ROOT / "examples/miniweb/pages.tar.zst"
RECORDED = ("pages/pages-dev.jsonl.zst", "wcxb-dev.jsonl.zst")
STATES = ("articleBody", "__NEXT_DATA__", "__next_f", "__NUXT__", "__INITIAL_STATE__", "__PRELOADED_STATE__", "APOLLO")
LANGUAGES = ("en", "cs", "de", "pl", "el", "ru", "fr", "es", "zh", "it", "pt", "tr")
PAGES, CHARS = 1000, (1500, 12_000)
"""Made pages, and the characters of their texts."""
MESSAGES = {
    "consent.text": "We and our partners use cookies to improve your experience; you may withdraw consent at any time.",
    "error.offline": "It seems that you are offline. Please check your connection to the internet and then try again.",
    "newsletter.pitch": "Sign up for our newsletter and get the best stories of the week every Sunday in your mailbox.",
}
Text = Sequence[str]
"""Paragraphs."""


class Case(NamedTuple):
    """A page with text in its JSON."""

    form: str
    html: str
    gold: str


# -- made cases


def _teasers(text: Text) -> list[dict[str, str]]:
    rng = random.Random(text[0])
    return [
        {"title": one[:40], "excerpt": one[:90], "url": f"/{number}"} for number, one in enumerate(rng.sample(text, 2))
    ]


def _article(text: Text) -> dict[str, Any]:
    return {"@context": "https://schema.org", "@type": "NewsArticle", "headline": text[0][:60],
            "description": text[1][:150], "articleBody": "\n\n".join(text)}  # fmt: skip


def _script(value: Any, head: str = "", before: str = "", behind: str = "") -> str:
    return f"<script{head}>{before}{json.dumps(value)}{behind}</script>"


def _state(text: Text, content: Any) -> dict[str, Any]:
    return {"i18n": MESSAGES, "page": {"id": 7, "article": {"title": text[0][:50], "content": content}},
            "related": _teasers(text), "config": {"analytics": True}}  # fmt: skip


def _as_html(text: Text) -> str:
    return "".join(f"<p>{html.escape(one)}</p>" for one in text)


def _rich(text: Text) -> list[dict[str, Any]]:
    """Paragraphs of pieces between which the look changes."""
    return [
        {
            "type": "paragraph",
            "children": [{"text": one[: len(one) // 2]}, {"text": one[len(one) // 2 :], "bold": True}],
        }
        for one in text
    ]


def _rows(text: Text) -> str:
    tree = ["$", "article", None, {"children": [["$", "p", str(n), {"children": one}] for n, one in enumerate(text)]}]
    state = f'1:I[4711,[],""]\n2:{json.dumps(tree)}\n'
    return "".join(
        f"<script>self.__next_f.push([1,{json.dumps(state[start : start + 3000])}])</script>"
        for start in range(0, len(state), 3000)
    )


def _function(text: Text) -> str:
    body = json.dumps(_as_html(text)).replace("<", "\\u003C")
    state = f"{{data:[{{post:{{id:a,body:{body},hidden:b}}}}]}}"
    return f"<script>window.__NUXT__=(function(a,b){{return {state}}}(7,false));</script>"


def _flat(text: Text) -> list[Any]:
    """As Nuxt 3 writes it: numbers are places in the list."""
    head = [["ShallowReactive", 1], {"post": 2, "also": 3}, {"title": 4, "paragraphs": 5}, {"teaser": 6}, text[0][:30]]
    places = [7 + number for number in range(len(text))]
    return [*head, places, MESSAGES["newsletter.pitch"] * 3, *text]


FORMS: dict[str, Callable[[Text], str]] = {
    "JSON-LD": lambda text: _script(_article(text), " type=application/ld+json"),
    "JSON-LD in a graph": lambda text: _script(
        {"@graph": [{"@type": "Organization", "description": MESSAGES["consent.text"]}, _article(text)]},
        ' type="application/ld+json"',
    ),
    "Next.js, HTML": lambda text: _script(
        {"props": {"pageProps": _state(text, _as_html(text))}}, ' id="__NEXT_DATA__" type="application/json"'
    ),
    "Next.js, paragraphs": lambda text: _script(
        {"props": {"pageProps": _state(text, [{"type": "text", "value": one} for one in text])}},
        ' id="__NEXT_DATA__" type="application/json"',
    ),
    "Next.js, pushed": _rows,
    "Nuxt, function": _function,
    "Nuxt, flat": lambda text: _script(
        _flat(text), ' type="application/json" id="__NUXT_DATA__"'
    ),
    "Redux, rich text": lambda text: _script(_state(text, _rich(text)), before="window.__PRELOADED_STATE__ = "),
    "Redux, undefined": lambda text: _script(
        _state(text, _as_html(text)), before='window.__INITIAL_STATE__={"u":undefined,"s":', behind="}"
    ),
    "Redux, JSON.parse": lambda text: _script(
        json.dumps(_state(text, _as_html(text))), before="window.__INITIAL_STATE__=JSON.parse(", behind=");"
    ),
    "Apollo": lambda text: _script(
        {**{f"Paragraph:{n}": {"__typename": "Paragraph", "text": one} for n, one in enumerate(text)},
         "Translation:1": MESSAGES},
        before="window.__APOLLO_STATE__ = ",
    ),
}  # fmt: skip
RESERVED = {
    "JSON-LD": '<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":"False"}</script>',
    "a part": '<script type=application/ld+json>{"hasPart":{"isAccessibleForFree":false}}</script>',
    "an address": '<script type=application/ld+json>{"isAccessibleForFree":"http://schema.org/False"}</script>',
    "microdata": '<meta itemprop="isAccessibleForFree" content="false">',
    "a notice": "<p>Subscribe to continue reading this article.</p>",
}


def shell(script: str, mark: str = "") -> str:
    return (
        f'<!DOCTYPE html><html><head><title>News</title>{script}</head><body><nav><a href="/">Home</a> <a href="/a">All'
        f'</a></nav><div id="root"></div>{mark}<noscript>Please enable JavaScript.</noscript><script src="/main.js">'
        "</script></body></html>"
    )


def made(texts: Sequence[Text]) -> Iterator[Case]:
    for number, text in enumerate(texts):
        form = list(FORMS)[number % len(FORMS)]
        yield Case(form, shell(FORMS[form](text)), "\n".join(text))


# -- real pages


def bundled() -> Iterator[tuple[str, bytes]]:
    with MINIWEB.open("rb") as file:
        packed = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        with tarfile.open(fileobj=packed, mode="r|") as archive:
            for entry in archive:
                if entry.isfile() and (page := archive.extractfile(entry)):
                    yield entry.name, page.read()


def recorded(data: Path) -> Iterator[Case]:
    for name in RECORDED:
        with (data / name).open("rb") as file:
            lines = io.TextIOWrapper(zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(file), "utf-8")
            for row in map(json.loads, lines):
                page = row["html"].encode("latin-1").decode("utf-8", "replace")
                scripts = "".join(re.findall(r"<script\b.*?</script\s*>", page, re.DOTALL | re.IGNORECASE))
                found = next((state for state in STATES if state in scripts), "")
                gold = row["gold"] or ""
                if found and isinstance(gold, str) and holds(scripts, gold):
                    yield Case(f"recorded, {found}", shell(scripts), gold)


def holds(scripts: str, gold: str) -> bool:
    """Whether most of 20 places of *gold* stand in *scripts*."""
    words = re.findall(r"\w+", gold)
    text = " ".join(re.findall(r"\w+", scripts.replace("\\n", " ")))
    places = [" ".join(words[place : place + 4]) for place in range(0, len(words) - 4, max(1, len(words) // 20))]
    return sum(place in text for place in places) > len(places) / 2


# -- measure


def main() -> None:
    given = arguments(__doc__)
    models = load(LANGUAGES)
    options = TextOptions(LANGUAGES)

    def run(body: bytes) -> Page:
        return process(body, url="http://www.example.org/", http_charset=None, models=models, options=options)

    pages = list(bundled())[:: 5 if given.quick else 1]
    whole = [run(body) for _, body in pages]
    false = sum(bool(page.text_source) for page in whole)
    texts = [text for page in whole if (text := _text(page))]
    texts = [texts[number % len(texts)] for number in range(200 if given.quick else PAGES)]
    reserved = Counter(
        mark
        for number, mark in enumerate([*RESERVED] * len(FORMS))
        if run(shell([*FORMS.values()][number % len(FORMS)](texts[number]), RESERVED[mark]).encode()).text_source
    )
    cases = [*made(texts), *(recorded(given.data) if given.data else ())]
    gained, possible, wrong, taken = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    number_of = Counter(case.form for case in cases)
    for case in cases:
        page = run(case.html.encode("utf-8", "replace"))
        words = Counter(clean_text(page.paragraphs).split()) if page.text_source else Counter[str]()
        gold = Counter(case.gold.split())
        gained[case.form] += (words & gold).total()
        wrong[case.form] += (words - gold).total()
        possible[case.form] += gold.total()
        taken[case.form] += bool(page.text_source)
    table(
        ["form", "pages", "with text", "words in gold", "gained", "of them", "others gained"],
        [
            [
                form,
                pages_of,
                taken[form],
                possible[form],
                gained[form],
                f"{gained[form] / max(1, possible[form]):.3f}",
                wrong[form],
            ]
            for form, pages_of in number_of.items()
        ],
    )
    not_free = len(RESERVED) * len(FORMS)
    print(
        f"\nGained of {len(pages):,} pages of the bundled web: {false}; of {not_free} not free: {reserved.total()}.\n"
    )
    made_forms = [form for form in number_of if form in FORMS]
    result(
        json_gain=gained.total(),
        json_pages=len(cases),
        json_recall=round(sum(gained[form] for form in made_forms) / sum(possible[form] for form in made_forms), 3),
        json_precision=round(gained.total() / max(1, gained.total() + wrong.total()), 3),
        json_false=false,
        json_not_free=reserved.total(),
    )


def _text(page: Page) -> Text | None:
    """The text of a page of the bundled web if it has a usual length."""
    text = list(dict.fromkeys(paragraph.text for paragraph in page.paragraphs if paragraph.kept))
    return text if len(text) >= 4 and CHARS[0] <= sum(map(len, text)) <= CHARS[1] else None


if __name__ == "__main__":
    main()
