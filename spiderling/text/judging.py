"""Decides which paragraphs of a page are kept, by class, kind and language, and measures its good text.

Kept is what is good (learned mode: a probability from the threshold on; none on a page where no such block is as long
as a sentence), of a wanted kind, and in an accepted language or too short to tell.  Afterwards `_drop_repeats`
(cleaning.py) may leave out text from JSON that the page shows too, and DedupPipeline what was kept before.

Kinds go by rules, no fit: by the paragraph's tag, the purposes that the elements around it are named after
(html/zones.py) and its characters.  They look only at good paragraphs: they can leave out, and never bring back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spiderling.base.option_values import CELL, CODE, COMMENT, HEADING, NOTICE, TEASER, TEXT
from spiderling.text.boilerplate.features import NOTHING_DECLARED, Declared
from spiderling.text.boilerplate.model import bundled
from spiderling.text.boilerplate.rules import BAD, GOOD, JustextRules, choose, classify, length_scale, rules_for, stock
from spiderling.text.declared import WEIGHT, declared_language, lswc_language
from spiderling.text.html.blocks import Block, named_tuples
from spiderling.text.html.zones import BITS, Inherited
from spiderling.text.language import MIN_CHARS, Guesses, LanguageModels
from spiderling.text.page import Page, Paragraph, TextOptions
from spiderling.text.quality import badness, quality
from spiderling.text.steps import PYTHON, Steps

_CODE_CHARS = b"{}[]<>=;_\\|#$&*+~^`"
_CODE_SHARE = 0.03
"""Least share of these characters, and of parentheses, in what the page's markup calls code; chosen.  Plain text stands
in <pre>, too."""
_SIGNATURE_CHARS = 300  # most characters of a signature; chosen
_SURE_CODE_SHARE = 0.12  # the same where the markup says nothing, parentheses not counted; chosen
_MIN_CODE_CHARS = 20  # characters below which only the markup tells code; chosen
_SIGNATURE = re.compile(r"(?:[\w.<>\[\],?&@*]+ )*[\w.:]+\((?:[^()]*[ ,.\[][^()]*)?\)", re.ASCII)
"""A function's name and arguments, with types before it; no "word(s)" and no "name (of something)"."""
_CELL_CHARS = 50  # most characters of a cell without a sentence; chosen
_NOTICE_CHARS = 600  # most characters of a notice; chosen
_PART = 0.3  # most of a page's text that its teasers or notices may make up; chosen
_LINKED = 0.8  # share of characters inside links from which a paragraph leads to other pages; chosen
_INITIAL_TAGS = ("", "div", "p", "center")  # of an initial, and of the paragraph that it begins
_MIN_INITIALLED = 40  # least characters of that paragraph; chosen: entries of an index are shorter
_STOPS = ".!?…。！？।॥؟۔።։:"
_NOTICE = re.compile(
    r"\b(?:enable|activate|turn on|allow|require|aktivier|activ|habilit|włącz|zapn|povol|включ)\w*\b.{0,40}java ?script"
    r"|java ?script\b.{0,40}\b(?:disabled|enabled|turned off|deaktiviert|désactivé|desactivado|wyłączon|vypnut|отключ)"
    r"|\b(?:uses?|using|accept|verwende|nutz|utilis|utiliz|usa|používá|używa|использу)\w*\b.{0,40}\bcookies?\b"
    r"|\b(?:log in|sign in|login|logged in|register\w*)\b.{0,30}\bto (?:reply|post|comment|vote|view)"
    r"|\bpowered by (?:phpbb|vbulletin|discourse|xenforo|smf|mybb|wordpress|invision)",
    re.IGNORECASE,
)
_NOTICE_WORDS = ("avascript", "avaScript", "ookie", " to reply", " to post", " to comment", " to vote", "owered by")
"""One of these stands in each text that _NOTICE matches."""


def initials(blocks: Sequence[Block]) -> list[int]:
    """The places of blocks that are initials: capitals in boxes of their own, which begin the first word of the next.

    Where the next block begins with the same letter, the two are heading and entry of an index.
    """
    capitals = [place for place, block in enumerate(blocks[:-1]) if len(block.text) == 1 and block.text.isupper()]
    return [place for place in capitals if _goes_on(blocks[place], blocks[place + 1])]


def _goes_on(initial: Block, block: Block) -> bool:
    first = block.text[0]
    is_word = first.islower() and first != initial.text.lower() and len(block.text) >= _MIN_INITIALLED
    return is_word and initial.tag in _INITIAL_TAGS and block.tag in _INITIAL_TAGS


def kinds(blocks: Sequence[Block], tree: Inherited, good: Sequence[int]) -> list[str]:
    """The kind of each of *blocks* whose indices are *good*, in their order; *tree* is the page's.

    What is named comment or teaser is one only below other text: posts of a forum are named comments, leads teasers.
    """
    zones = tree.zones[[blocks[index].element for index in good]].tolist()
    parts = _parts([len(blocks[index].text) for index in good], zones)
    found: list[str] = []
    is_below_text = False
    for index, zone in zip(good, zones, strict=True):
        purposes = zone & parts
        kind = _alone(blocks[index], purposes if is_below_text else purposes & ~BITS["teaser"])
        if kind == TEXT and zone & BITS["comment"] and is_below_text:
            kind = COMMENT
        is_other = zone & BITS["comment"] or purposes & BITS["teaser"]
        is_below_text = is_below_text or (kind == TEXT and not is_other)
        found.append(kind)
    return found


def _parts(lengths: Sequence[int], zones: Sequence[int]) -> int:
    """The purposes, as bits, of small parts of the page: a name around most of the text says nothing about it."""
    most = _PART * sum(lengths)
    held = {
        purpose: sum([length for length, zone in zip(lengths, zones, strict=True) if zone & BITS[purpose]])
        for purpose in ("teaser", "notice")
    }
    return ~sum(BITS[purpose] for purpose, size in held.items() if size > most)


def _alone(block: Block, zone: int) -> str:
    """The kind of *block* in *zone*, without the blocks before it."""
    text = block.text
    if _is_code(text, block.tag == "pre" or zone & BITS["code"] > 0):
        return CODE
    if len(text) <= _NOTICE_CHARS and _is_notice(text, zone):
        return NOTICE
    is_linked = block.link_chars >= _LINKED * len(text)
    if zone & BITS["teaser"] or (is_linked and not block.heading):
        return TEASER
    if block.heading:
        return HEADING
    is_cell = block.tag in ("td", "th") and len(text) <= _CELL_CHARS and text[-1] not in _STOPS
    return CELL if is_cell else TEXT


def _is_code(text: str, is_marked: bool) -> bool:
    """Whether *text* is code; *is_marked*: the page's markup says so."""
    if text[-1] == ")" and _SIGNATURE.fullmatch(text[:_SIGNATURE_CHARS]):
        return True
    if not is_marked and len(text) < _MIN_CODE_CHARS:
        return False
    body = text.encode("utf-8", "replace")
    number = len(body) - len(body.translate(None, _CODE_CHARS + b"()" if is_marked else _CODE_CHARS))
    return number >= (_CODE_SHARE if is_marked else _SURE_CODE_SHARE) * len(text) and number > 0


def _is_notice(text: str, zone: int) -> bool:
    if zone & BITS["notice"]:
        return True
    for word in _NOTICE_WORDS:  # a search for each is faster than one by the pattern
        if word in text:
            return _NOTICE.search(text) is not None
    return False


_SAMPLE_BLOCKS = 12  # longest blocks of a page, by which the stop words and lengths of jusText's rules are set; chosen
_SAMPLE_CHARS = 1000  # characters of each of these blocks that are read; chosen
_GLANCE_CHARS = 3000  # characters of a page without text by which its language is guessed; chosen
_MAX_LINK_SHARE = 0.5  # share of a block's characters inside links up to which it may be text; chosen
_PARAGRAPH_LENIENCE = 0.75  # factor of the least known share for a single paragraph, which varies more; chosen


class Judge:
    """Finds the classes and languages of a page's blocks.

    The language models look at all blocks that may be text before these are classified,
    because jusText's rules need the stop words of the page's own language, too.  Without them
    an English page would be boilerplate rather than English.
    """

    def __init__(self, page: Page, models: LanguageModels, options: TextOptions, steps: Steps = PYTHON) -> None:
        self._page = page
        self._models = models
        self._options = options
        self._steps = steps

    def judge(
        self, html: str, blocks: list[Block], tree: Inherited, declared: Declared = NOTHING_DECLARED
    ) -> list[float] | None:
        """Set paragraphs, languages and signals; returns the blocks' probabilities in the learned mode, else None."""
        capitals = initials(blocks) if self._options.boilerplate != "justext-stock" else []
        if capitals:
            blocks = blocks.copy()
            for place in capitals:
                blocks[place + 1] = blocks[place + 1]._replace(text=blocks[place].text + blocks[place + 1].text)
        self._identify(blocks)
        scores = None
        if self._options.boilerplate == "learned":
            model = self._options.block_model or bundled()
            scores = model.probabilities(blocks, tree, declared, self._steps.features, self._steps.context)
            classes = choose(blocks, scores, self._options.block_threshold)
        else:
            blocks, classes = self._by_rules(html, blocks)
        for place in capitals:
            classes[place] = BAD
        good = [index for index, cls in enumerate(classes) if cls == GOOD]
        kind_of = dict(zip(good, kinds(blocks, tree, good), strict=True))
        wanted = [index for index in good if kind_of[index] in self._options.kinds]
        self._measure(blocks, wanted)
        self._page.candidates = self._candidates(blocks)
        found = lswc_language(self._page, self._options.accepted)
        self._page.lswc_language = found
        self._page.lswc_relevant = found in self._options.accepted
        pairs = zip(blocks, classes, strict=True)
        rows = [[block.text, cls, "", block.heading, None, False, False, ()] for block, cls in pairs]
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
        sizes = [len(block.text) for block in blocks]
        pairs = enumerate(zip(blocks, sizes, strict=True))
        long = [i for i, (block, n) in pairs if n >= MIN_CHARS and block.link_chars <= _MAX_LINK_SHARE * n]
        self._guesses = self._guess([blocks[index].text for index in long])
        self._row = {index: row for row, index in enumerate(long)}
        self._sure = {index: code for index, code in zip(long, self._guesses.sure(), strict=True) if code}

    def _guess(self, texts: Sequence[str]) -> Guesses:
        guesses = self._models.identify(texts, self._steps.score, self._steps.short_words)
        return guesses.leaning(declared_language(self._page), WEIGHT)

    def _candidates(self, blocks: Sequence[Block]) -> tuple[str, ...]:
        """Languages that the page may be in, nearest first: by its text, else by all its words, menus and all."""
        least = self._options.min_known_share
        found = self._guesses.candidates(least)
        if found:
            return found
        everything = " ".join([block.text for block in blocks])[:_GLANCE_CHARS]
        return self._guess([everything]).candidates(least)

    def _recognise(self, good: Sequence[int]) -> None:
        """Set the language of each good block where it is sure and usual enough, in the block and in all of them."""
        least = self._options.min_known_share
        sure = [index for index in good if index in self._sure]
        codes = [self._sure[index] for index in sure]
        shares = self._guesses.known_shares(codes, [self._row[index] for index in sure])
        groups: dict[str, list[int]] = {}
        for index, code, share in zip(sure, codes, shares, strict=True):
            if share >= least * _PARAGRAPH_LENIENCE:
                groups.setdefault(code, []).append(index)
        self._language = {
            index: code for code, group in groups.items() if self._known_share(code, group) >= least for index in group
        }

    def _known_share(self, code: str, indices: Sequence[int]) -> float:
        return self._guesses.known_share(code, [self._row[index] for index in indices if index in self._row])

    def _rules(self, blocks: Sequence[Block]) -> tuple[frozenset[str], JustextRules]:
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
        text = " ".join([blocks[index].text for index in own])
        found = self._steps.listed(text, model.stoplist, model.profile)
        page.badness = badness(found, model.profile)
        if any(map(self._is_kept, good)):
            texts = [blocks[index].text for index in good]
            share = found.stop_words / max(1, found.number) if model.stoplist else 1.0
            page.quality = quality(texts, share, sum([len(block.text) for block in blocks]), self._steps.marks)

    def _is_kept(self, index: int) -> bool:
        """Whether the good block at *index* is in an accepted language, or too short to tell."""
        language = self._language.get(index)
        return language in self._options.accepted if language else index not in self._sure
