"""From the bytes of a page to clean text: calls the steps of ``text/`` in their order."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import xxhash

from spiderling.base.link_batch import FOREIGN, WANTED, Link, gathered
from spiderling.text.boilerplate.features import NOTHING_DECLARED, Declared, declared_by
from spiderling.text.boilerplate.model import bundled
from spiderling.text.boilerplate.rules import BAD, GOOD, Rules, choose, classify, length_scale, rules_for, stock
from spiderling.text.declared import WEIGHT, declared_language, fill_head, language_of_tag, lswc_among
from spiderling.text.documents.document import Document
from spiderling.text.embedded import LEAST_CHARS, SHORT_CHARS, embedded_text
from spiderling.text.embedded.shell import is_shell
from spiderling.text.encoding.detect import decode
from spiderling.text.html.blocks import MAX_LINKS, Block, Parsed, named_tuples
from spiderling.text.html.links import resolve
from spiderling.text.html.parser import parse
from spiderling.text.html.zones import Tree
from spiderling.text.kinds import kinds
from spiderling.text.language.cosine import CosineGuesses
from spiderling.text.language.function_words import badness
from spiderling.text.language.models import MIN_CHARS, Guesses, LanguageModels
from spiderling.text.ngrams import words as words_of
from spiderling.text.page import Page, PageLink, Paragraph, TextOptions
from spiderling.text.quality import quality, words_in
from spiderling.text.shingles import shingles
from spiderling.text.sketch import sketch
from spiderling.text.spam import with_spam_signs

_SAMPLE_BLOCKS = 12
"""Longest blocks of a page, by which the stop words and lengths of jusText's rules are set; chosen."""
_SAMPLE_CHARS = 1000
"""Characters of each of these blocks that are read; chosen."""
_GLANCE_CHARS = 3000
"""Characters of a page without text by which its language is guessed; chosen."""
_MAX_LINK_SHARE = 0.5
"""Share of a block's characters inside links up to which it may be text; chosen."""
_PARAGRAPH_LENIENCE = 0.75
"""Factor of the least known share for a single paragraph, because paragraphs vary more than documents; chosen."""


def process(body: bytes, *, url: str, http_charset: str | None, models: LanguageModels, options: TextOptions) -> Page:
    """The Page of the *body* at *url*; no content makes it raise.

    A good paragraph is kept when it is of a wanted kind, and in an accepted language or too short to tell.
    Requires that *models* hold the accepted languages.
    """
    text, declared, detected = decode(body, http_charset, models.encodings(options.accepted), models.spelling)
    page = Page("html", declared, detected, len(body), raw_digest=xxhash.xxh3_128_digest(body))
    if text is not None:
        # undamaged UTF-8 without a byte order mark need not be encoded again
        same = detected == "utf-8" and "\ufffd" not in text and not body.startswith(BOM_UTF8)
        recoded = body if same else text.encode("utf-8", "replace")
        page.utf8_bytes = len(recoded)
        parsed = parse(recoded)
        fill_head(page, parsed, url)
        scores = _Judge(page, models, options).judge(text, parsed.blocks, parsed.tree, declared_by(parsed))
        if _good_chars(page) < SHORT_CHARS:
            page, parsed, scores = _with_embedded((page, parsed, scores), recoded, text, models, options)
        _links(page, parsed, url, options, scores)
    clean = _measured(page, options, url)
    if text is not None and clean and page.language is not None:
        page.quality = with_spam_signs(page, clean, text, url, models[page.language])
    return page


_Judged = tuple[Page, Parsed, "list[float] | None"]


def _with_embedded(judged: _Judged, html: bytes, text: str, models: LanguageModels, options: TextOptions) -> _Judged:
    """The page with the text in its JSON behind its own, judged together; *judged* if there is no such good text.

    *html* are the bytes of *text*.
    """
    page, parsed, _ = judged
    before = _good_chars(page)
    found = embedded_text(html, parsed.blocks, before)
    if found is not None:
        longer = replace(page, text_source=found.source)
        both = parse(html + found.html)
        scores = _Judge(longer, models, options).judge(
            text + found.html.decode(), both.blocks, both.tree, declared_by(both)
        )
        _drop_repeats(longer, len(parsed.blocks))
        if _good_chars(longer) >= before + LEAST_CHARS:
            return longer, both, scores
    page.needs_script = is_shell(html, parsed.blocks)
    return judged


def _drop_repeats(page: Page, start: int) -> None:
    """Make the paragraphs from number *start* on bad that repeat a good one before: teasers begin texts."""
    shown = {paragraph.text for paragraph in page.paragraphs[:start] if paragraph.cls == GOOD}
    for index, paragraph in enumerate(page.paragraphs[start:], start):
        if paragraph.text in shown:
            page.paragraphs[index] = paragraph._replace(cls=BAD, kind="", kept=False)


def _good_chars(page: Page) -> int:
    return sum([len(paragraph.text) for paragraph in page.paragraphs if paragraph.cls == GOOD])


def measure_clean(page: Page) -> str:
    """Set the sizes of the clean text of *page*; returns that text."""
    clean = clean_text(page.paragraphs)
    page.clean_bytes = len(clean) if clean.isascii() else len(clean.encode("utf-8"))
    page.clean_chars = len(clean)
    page.words = words_in(clean)
    return clean


def kept_language(page: Page) -> str | None:
    """The language of most characters of the kept paragraphs whose language is known; the page's if there are none."""
    chars: Counter[str] = Counter()
    for paragraph in page.paragraphs:
        if paragraph.kept and paragraph.language:
            chars[paragraph.language] += len(paragraph.text)
    return max(chars, key=lambda code: chars[code], default=page.language)


def _measured(page: Page, options: TextOptions, url: str = "") -> str:
    """Set the fields that depend on the paragraphs of *page*; returns the clean text."""
    page.has_text = any(p.cls == GOOD and p.kind in options.kinds for p in page.paragraphs)
    page.sketch = sketch((paragraph.text for paragraph in page.paragraphs), url)
    clean = measure_clean(page)
    page.text_digest = xxhash.xxh3_128_digest(clean.encode("utf-8"))
    if options.with_shingles and clean:
        page.shingles = shingles([paragraph.text for paragraph in page.paragraphs if paragraph.kept])
    return clean


def process_document(
    document: Document | None, kind: str, body: bytes, *, models: LanguageModels, options: TextOptions
) -> Page:
    """The Page of a document in the file *body*; without text if *document* is None (it could not be converted).

    A document has no navigation, so jusText's rules with the preset 'permissive' judge
    it, whatever *options* say.
    """
    page = Page(kind, utf8_bytes=len(body), raw_digest=xxhash.xxh3_128_digest(body))
    if document is not None:
        page = replace(page, encoding_detected="", title=document.title, meta=document.meta, html_lang=document.lang)
        lenient = replace(options, boilerplate="justext", preset="permissive")
        _Judge(page, models, lenient).judge("", document.blocks, Tree())
    _measured(page, options)
    return page


def clean_text(paragraphs: Collection[Paragraph]) -> str:
    """The kept paragraphs, one a line."""
    return "\n".join(paragraph.text for paragraph in paragraphs if paragraph.kept)


def _links(page: Page, parsed: Parsed, url: str, options: TextOptions, scores: Sequence[float] | None) -> None:
    """Set the links of *page*, each with the paragraph that encloses it.

    The justext package cuts its own paragraphs; the one of a block of *parsed* is found by its text.
    """
    paragraphs = page.paragraphs
    same = len(paragraphs) == len(parsed.blocks)
    places = {} if same else {paragraph.text: index for index, paragraph in enumerate(paragraphs)}
    # index -1: links in no paragraph
    good = [*(paragraph.cls == GOOD and paragraph.kind in options.kinds for paragraph in paragraphs), False]
    chances = [*scores, 0.0] if scores is not None else list(map(float, good))
    page.links_cut = parsed.links_cut + max(0, len(parsed.links) - MAX_LINKS)
    rows: list[tuple[str, str, bool, int, float, bool]] = []
    said: dict[str, int] = {}  # URL -> flag of its hreflang
    for (_, rel, anchor, block, language), target in resolve(parsed.links[:MAX_LINKS], url, parsed.base):
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
    given = [
        (target, is_text, score, len(anchor), nofollow, said.get(target, 0))
        for target, anchor, nofollow, _, score, is_text in rows
    ]
    page.batch = gathered(named_tuples(Link, given))


def _flag(language: str, options: TextOptions) -> int:
    """WANTED or FOREIGN by a link's hreflang; 0 when that names no language ("x-default")."""
    code = language_of_tag(language)
    return 0 if code is None else WANTED if code in options.accepted else FOREIGN


class _Judge:
    """Finds the classes and languages of a page's blocks.

    The language models look at all blocks that may be text before these are classified,
    because jusText's rules need the stop words of the page's own language, too.  Without them
    an English page would be boilerplate rather than English.
    """

    def __init__(self, page: Page, models: LanguageModels, options: TextOptions) -> None:
        self._page = page
        self._models = models
        self._options = options

    def judge(
        self, html: str, blocks: list[Block], tree: Tree, declared: Declared = NOTHING_DECLARED
    ) -> list[float] | None:
        """Set paragraphs, languages and signals; returns the blocks' probabilities in the learned mode, else None."""
        self._identify(blocks)
        inherited = tree.inherited()
        scores = None
        if self._options.boilerplate == "learned":
            model = self._options.block_model or bundled()
            scores = model.probabilities(blocks, inherited, declared)
            classes = choose(blocks, scores, self._options.block_threshold)
        else:
            blocks, classes = self._by_rules(html, blocks)
        good = [index for index, cls in enumerate(classes) if cls == GOOD]
        kind_of = dict(zip(good, kinds(blocks, inherited, good), strict=True))
        wanted = [index for index in good if kind_of[index] in self._options.kinds]
        self._measure(blocks, wanted)
        self._page.candidates = self._candidates(blocks)
        found = lswc_among(self._page, self._options.accepted)
        self._page.lswc_language = found
        self._page.lswc_relevant = found in self._options.accepted
        rows = [
            [block.text, cls, "", block.heading, None, False, False] for block, cls in zip(blocks, classes, strict=True)
        ]
        for index, kind in kind_of.items():
            rows[index][2] = kind
        for index in wanted:
            rows[index][4:6] = self._language.get(index), self._is_kept(index)
        self._page.paragraphs = named_tuples(Paragraph, rows)
        return scores

    def _by_rules(self, html: str, blocks: list[Block]) -> tuple[list[Block], list[str]]:
        """Blocks and their classes by jusText's rules; the justext package makes its own blocks."""
        stoplist, rules = self._rules(blocks)
        found = stock(html, stoplist, rules) if self._options.boilerplate == "justext-stock" else None
        if found is None:
            return blocks, classify(blocks, stoplist, rules)
        self._identify([block for block, _ in found])
        return [block for block, _ in found], [cls for _, cls in found]

    def _identify(self, blocks: Sequence[Block]) -> None:
        """Guess the languages of the blocks that may be text."""
        long = [index for index, block in enumerate(blocks) if _may_be_text(block)]
        self._guesses = self._guessed([blocks[index].text for index in long])
        self._row = {index: row for row, index in enumerate(long)}
        self._sure = {index: code for index, code in zip(long, self._guesses.sure(), strict=True) if code}

    def _guessed(self, texts: Sequence[str]) -> Guesses | CosineGuesses:
        identify = self._models.compare if self._options.language_method == "cosine" else self._models.identify
        return identify(texts).leaning(declared_language(self._page), WEIGHT)

    def _candidates(self, blocks: Sequence[Block]) -> tuple[str, ...]:
        """Languages that the page may be in, nearest first: by its text, else by all its words, menus and all."""
        least = self._options.min_known_share
        found = self._guesses.candidates(least)
        if found:
            return found
        everything = " ".join([block.text for block in blocks])[:_GLANCE_CHARS]
        return self._guessed([everything]).candidates(least)

    def _recognise(self, good: Sequence[int]) -> None:
        """Set the language of each good block whose language is sure.

        Its known share must be large enough, and so must that of all blocks in the language together.
        """
        least = self._options.min_known_share
        lenience = 0.0 if self._options.language_method == "cosine" else _PARAGRAPH_LENIENCE
        sure = [index for index in good if index in self._sure]
        codes = [self._sure[index] for index in sure]
        shares = self._guesses.known_shares(codes, [self._row[index] for index in sure])
        groups: dict[str, list[int]] = {}
        for index, code, share in zip(sure, codes, shares, strict=True):
            if share >= least * lenience:
                groups.setdefault(code, []).append(index)
        self._language = {
            index: code for code, group in groups.items() if self._known_share(code, group) >= least for index in group
        }

    def _known_share(self, code: str, indices: Sequence[int]) -> float:
        return self._guesses.known_share(code, [self._row[index] for index in indices if index in self._row])

    def _rules(self, blocks: Sequence[Block]) -> tuple[frozenset[str], Rules]:
        """Stop words and thresholds for this page, by its longest blocks."""
        sample = sorted(self._row, key=lambda index: -len(blocks[index].text))[:_SAMPLE_BLOCKS]
        own = self._guesses.nearest([self._row[index] for index in sample])
        codes = {*self._options.accepted, *([own] if own else [])}
        scale = length_scale("".join(blocks[index].text[:_SAMPLE_CHARS] for index in sample))
        stoplist = frozenset().union(*(self._models[code].stoplist for code in codes))
        return stoplist, rules_for(self._options.preset, scale, bool(stoplist))

    def _measure(self, blocks: Sequence[Block], good: Sequence[int]) -> None:
        """Set languages, badness and quality of the good text; short blocks count as in its nearest language."""
        page = self._page
        self._recognise(good)
        nearest = self._guesses.nearest([self._row[index] for index in good if index in self._row])
        if nearest is None:
            return
        rest = nearest if self._known_share(nearest, good) >= self._options.min_known_share else None
        chars: dict[str, int] = {}
        for index in good:
            code = self._language.get(index) if index in self._sure else rest
            if code:
                chars[code] = chars.get(code, 0) + len(blocks[index].text)
        total = sum(len(blocks[index].text) for index in good)
        page.languages = {code: count / total for code, count in sorted(chars.items(), key=lambda item: -item[1])}
        page.language = next(iter(page.languages), nearest)
        own = [index for index in good if self._language.get(index, page.language) == page.language]
        page.known_share = self._known_share(page.language, own)
        model = self._models[page.language]
        words = words_of(" ".join([blocks[index].text for index in own]))
        page.badness = badness(words, model.profile)
        if any([self._is_kept(index) for index in good]):
            texts = [blocks[index].text for index in good]
            page.quality = quality(texts, words, model.stoplist, sum([len(block.text) for block in blocks]))

    def _is_kept(self, index: int) -> bool:
        """Whether the good block at *index* is in an accepted language, or too short to tell."""
        language = self._language.get(index)
        return language in self._options.accepted if language else index not in self._sure


def _may_be_text(block: Block) -> bool:
    length = len(block.text)
    return length >= MIN_CHARS and block.link_chars <= _MAX_LINK_SHARE * length
