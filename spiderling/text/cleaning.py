"""From the bytes of a page to clean text: calls the steps of ``text/`` in their order.

judging.py decides which paragraphs are kept; afterwards pipelines.py judges the page and removes duplicates.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

import xxhash

from spiderling.base.link_batch import FOREIGN, WANTED, Link, gathered
from spiderling.text.boilerplate.features import declared_by
from spiderling.text.boilerplate.rules import BAD, GOOD
from spiderling.text.declared import fill_head, language_of_tag
from spiderling.text.documents import ConvertedDocument
from spiderling.text.embedded import MIN_CHARS, SHORT_CHARS, embedded_text, least_chars
from spiderling.text.encoding.detect import decode
from spiderling.text.encoding.labels import query_in
from spiderling.text.encoding.mending import encoded_once
from spiderling.text.fingerprints import digests_of, shingles, sketch
from spiderling.text.html.blocks import MAX_LINKS, Markup, Parsed, RawLink, named_tuples
from spiderling.text.html.links import join
from spiderling.text.html.markup import parse_with
from spiderling.text.html.metadata import FEEDS, Metadata
from spiderling.text.html.zones import Tree
from spiderling.text.judging import Judge
from spiderling.text.language import LanguageModels
from spiderling.text.letters import Mended, mend
from spiderling.text.page import Page, PageLink, Paragraph, TextOptions
from spiderling.text.quality import (
    ENGLISH_CHARS,
    Quality,
    TopWord,
    estimated_words,
    other_hosts,
    packed_share,
    translated,
    words_in,
)
from spiderling.text.steps import PYTHON, Steps
from spiderling.text.withheld import is_shell
from spiderling.text.words import LanguageModel

_DOUBTFUL_SHARE = 0.8
"""Known share below which a text may have been encoded twice; chosen: Czech that was has .64, held-out text 1."""


def process(
    body: bytes,
    *,
    url: str,
    http_charset: str | None,
    refresh: str = "",
    models: LanguageModels,
    options: TextOptions,
    steps: Steps = PYTHON,
) -> Page:
    """The Page of the *body* at *url*; no content makes it raise.  The same one by all *steps* (text/steps.py).

    *refresh* is the HTTP header of that name; where it leads to is a link of the page.

    A good paragraph is kept when it is of a wanted kind, and in an accepted language or too short to tell.
    Requires that *models* hold the accepted languages.
    """
    if options.markup:
        steps = steps._replace(parse=partial(parse_with, options.markup))
    page, text = _process(body, url, http_charset, refresh, models, options, steps)
    once = encoded_once(text) if text and page.known_share < _DOUBTFUL_SHARE else None
    if once is None:
        return page
    if once:
        mended, _ = _process(once.encode("utf-8", "replace"), url, "utf-8", refresh, models, options, steps)
    else:
        mended = Page("html")
        _measure(mended, options, url, steps)
    return replace(
        mended, encoding_declared=page.encoding_declared, utf8_bytes=page.utf8_bytes, raw_digest=page.raw_digest
    )


def _process(
    body: bytes,
    url: str,
    http_charset: str | None,
    refresh: str,
    models: LanguageModels,
    options: TextOptions,
    steps: Steps,
) -> tuple[Page, str | None]:
    """The Page of the *body* and its text with mark-up, as it was decoded."""
    encodings = models.encodings(options.accepted)
    text, declared, detected, is_mended = decode(body, http_charset, encodings, models.spelling)
    page = Page("html", declared, detected, len(body), raw_digest=xxhash.xxh3_128_digest(body))
    if text is not None:
        # undamaged UTF-8 without a byte order mark need not be encoded again
        same = detected == "utf-8" and not is_mended and not body.startswith(BOM_UTF8)
        recoded = body if same else text.encode("utf-8", "replace")
        page.utf8_bytes = len(recoded)
        parsed = _with_queries_in(detected or "", steps.parse(recoded))
        fill_head(page, parsed, url)
        scores = Judge(page, models, options, steps).judge(text, parsed.blocks, parsed.tree, declared_by(parsed))
        if _good_chars(page) < SHORT_CHARS:
            page, parsed, scores = _with_embedded((page, parsed, scores), recoded, text, models, options, steps)
        if refresh and (target := Metadata().read_tag("meta", {"http-equiv": "refresh", "content": refresh})):
            parsed.links.append(RawLink(target, "", "", -1))
        _links(page, parsed, url, options, scores, steps)
        if parsed.markup and options.boilerplate != "justext-stock":  # that cuts paragraphs of its own
            page.paragraphs = list(map(_with_markup, page.paragraphs, parsed.markup))
        feeds = page.meta.pop(FEEDS, "").split()
        if options.recrawls:
            found = (join(join(url, parsed.base or "") or url, query_in(detected or "", href)) for href in feeds)
            page.feeds = tuple(dict.fromkeys(feed for feed in found if feed and feed.startswith("http")))
    clean = _measure(page, options, url, steps)
    if text is not None and clean and page.language is not None:
        page.quality = with_spam_signs(page, clean, text, url, models[page.language], steps.top_word)
    if not options.gathers_links:
        page.links = []
    return page, text


def _with_markup(paragraph: Paragraph, kept: Markup) -> Paragraph:
    """*paragraph* with what is *kept* of its mark-up; an initial may stand before the text that has lines."""
    text, plain = paragraph.text, kept.lines.replace("\n", " ")
    if text.endswith(plain):
        text = text.removesuffix(plain) + kept.lines
    return paragraph._replace(text=text, markup=kept.attributes)


_Judged = tuple[Page, Parsed, "list[float] | None"]


def _with_embedded(
    judged: _Judged, html: bytes, text: str, models: LanguageModels, options: TextOptions, steps: Steps
) -> _Judged:
    """Add the text in the page's JSON after the text that it shows, and judge both; *judged* if no good is added."""
    page, parsed, _ = judged
    before = _good_chars(page)
    found = embedded_text(html, parsed.blocks, before)
    if found is not None:
        longer = replace(page, text_source=found.source)
        both = _with_queries_in(page.encoding_detected or "", steps.parse(html + found.html))
        scores = Judge(longer, models, options, steps).judge(
            text + found.html.decode(), both.blocks, both.tree, declared_by(both)
        )
        _drop_repeats(longer, len(parsed.blocks))
        if _good_chars(longer) >= before + least_chars(found.html.decode()):
            return longer, both, scores
    page.needs_script = before < MIN_CHARS and is_shell(html, parsed.blocks)
    return judged


def _with_queries_in(codec: str, parsed: Parsed) -> Parsed:
    """*parsed*, of a page in *codec*, with the queries of its addresses in it."""
    if codec.startswith("utf"):
        return parsed
    return parsed._replace(
        links=[
            link if link.href.isascii() else link._replace(href=query_in(codec, link.href)) for link in parsed.links
        ],
        rels={rel: query_in(codec, href) for rel, href in parsed.rels.items()},
        base=parsed.base and query_in(codec, parsed.base),
        alternates={language: query_in(codec, href) for language, href in parsed.alternates.items()},
    )


def _drop_repeats(page: Page, start: int) -> None:
    """Make the paragraphs from number *start* on bad that repeat a good one before: teasers begin texts."""
    shown = {paragraph.text for paragraph in page.paragraphs[:start] if paragraph.cls == GOOD}
    for index, paragraph in enumerate(page.paragraphs[start:], start):
        if paragraph.text in shown:
            page.paragraphs[index] = paragraph._replace(cls=BAD, kind="", kept=False)


def _good_chars(page: Page) -> int:
    return sum([len(paragraph.text) for paragraph in page.paragraphs if paragraph.cls == GOOD])


def with_spam_signs(page: Page, text: str, html: str, url: str, model: LanguageModel, top_word: TopWord) -> Quality:
    """The quality of *page* with the signs of spam filled in.

    *text* is its clean text in the language of *model*, *html* the decoded page.  Links are counted per 1,000 bytes
    of UTF-8 and not per word, so that Chinese does not look like a list of links; the most frequent word is sought only
    where spaces divide words.
    *top_word* may be a faster `top_word_share`.
    """
    outlinks = other_hosts((link.url for link in page.links if link.text_block), url)
    sentence_words = page.quality.sentence_words
    if not model.spaced:
        sentence_words *= page.words / max(1, words_in(text))
    return page.quality._replace(
        sentence_words=sentence_words,
        packed_share=packed_share(text),
        top_word_share=top_word(text, model.stoplist) if model.spaced else 0.0,
        outlinks=1000 * outlinks / max(1, page.clean_bytes),
        translated=translated(html, url, page.alternates.get("x-default", ""), page.canonical),
    )


def measure_clean(page: Page, steps: Steps = PYTHON) -> str:
    """Set the sizes of the clean text of *page*; returns that text."""
    clean = clean_text(page.paragraphs)
    page.clean_bytes = len(clean) if clean.isascii() else len(clean.encode("utf-8"))
    estimate = estimated_words(clean, page.clean_bytes, steps.word_kinds)
    page.words = words_in(clean) if estimate is None else estimate
    page.clean_chars = max(len(clean), round(ENGLISH_CHARS * (estimate or 0)))
    return clean


def kept_language(page: Page) -> str | None:
    """The language of most characters of the kept paragraphs whose language is known; the page's if there are none."""
    chars: Counter[str] = Counter()
    for paragraph in page.paragraphs:
        if paragraph.kept and paragraph.language:
            chars[paragraph.language] += len(paragraph.text)
    return max(chars, key=lambda code: chars[code], default=page.language)


def _measure(page: Page, options: TextOptions, url: str = "", steps: Steps = PYTHON) -> str:
    """Set the fields that depend on the paragraphs of *page*; returns the clean text."""
    page.has_text = any(p.cls == GOOD and p.kind in options.kinds for p in page.paragraphs)
    page.sketch = sketch([paragraph.text for paragraph in page.paragraphs], url, steps.long_words)
    clean = measure_clean(page, steps)
    page.text_digest = xxhash.xxh3_128_digest(clean.encode("utf-8"))
    if options.recrawls:
        page.paragraph_digests = digests_of(paragraph.text for paragraph in page.paragraphs if paragraph.kept)
    if options.with_shingles and clean:
        page.shingles = shingles([paragraph.text for paragraph in page.paragraphs if paragraph.kept])
    return clean


def process_document(
    document: ConvertedDocument | None, kind: str, body: bytes, *, models: LanguageModels, options: TextOptions
) -> Page:
    """The Page of a document in the file *body*; without text if *document* is None (it could not be converted)."""
    document, how = mend(document, models, options.accepted) if document else Mended(None)
    page = Page(kind, utf8_bytes=len(body), raw_digest=xxhash.xxh3_128_digest(body), mended=how)
    if document is not None:
        page = replace(page, encoding_detected="", title=document.title, meta=document.meta, html_lang=document.lang)
        # a document has no navigation, so lenient rules judge it
        lenient = replace(options, boilerplate="justext", preset="permissive")
        Judge(page, models, lenient).judge("", document.blocks, Tree().inherited())
    _measure(page, options)
    return page


def clean_text(paragraphs: Collection[Paragraph]) -> str:
    """The kept paragraphs, one a line."""
    return "\n".join(paragraph.text for paragraph in paragraphs if paragraph.kept)


def _links(
    page: Page, parsed: Parsed, url: str, options: TextOptions, scores: Sequence[float] | None, steps: Steps
) -> None:
    """Set the links of *page*, each with the paragraph that encloses it.

    The justext package cuts its own paragraphs; the one of a block of *parsed* is found by its text.
    """
    paragraphs = page.paragraphs
    same = len(paragraphs) == len(parsed.blocks)
    places = {} if same else {paragraph.text: index for index, paragraph in enumerate(paragraphs)}
    # index -1: links in no paragraph
    good = [*(paragraph.cls == GOOD and paragraph.kind in options.kinds for paragraph in paragraphs), False]
    if not options.gathers_links and same and not any([good[link.block] for link in parsed.links]):
        return
    chances = [*scores, 0.0] if scores is not None else list(map(float, good))
    page.links_cut = parsed.links_cut + max(0, len(parsed.links) - MAX_LINKS)
    rows: list[tuple[str, str, bool, int, float, bool]] = []
    said: dict[str, int] = {}  # URL -> flag of its hreflang
    for (_, rel, anchor, block, language), target in steps.resolve(parsed.links[:MAX_LINKS], url, parsed.base):
        block = block if same or block < 0 else places.get(parsed.blocks[block].text, -1)
        rows.append((target, anchor, "nofollow" in rel, block, chances[block], good[block]))
        if language:
            said[target] = _flag(language, options)
    known = {row[0] for row in rows} if page.alternates else set()
    for language, target in page.alternates.items():
        flag = _flag(language, options)
        if said.setdefault(target, flag) != WANTED:
            said[target] = flag or said[target]
        if flag == WANTED and target not in known:
            rows.append((target, "", False, -1, 0.0, False))
            known.add(target)
    page.links = named_tuples(PageLink, rows)
    if not options.gathers_links:
        return
    given = [
        (target, is_text, score, len(anchor), nofollow, said.get(target, 0))
        for target, anchor, nofollow, _, score, is_text in rows
    ]
    page.batch = gathered(named_tuples(Link, given), options.shards, steps.gather)


def _flag(language: str, options: TextOptions) -> int:
    """WANTED or FOREIGN by a link's hreflang; 0 when that names no language ("x-default")."""
    code = language_of_tag(language)
    return 0 if code is None else WANTED if code in options.accepted else FOREIGN
