"""Signals of a document's quality: badness, cheap counts over its good paragraphs, signs of spam.

Badness (Schäfer, Barbaresi, Bildhauer, *The Good, the Bad, and the Hazy: Design Decisions in Web Corpus Construction*,
WAC-8, 2013) says how much rarer the function words of a language are in a text than expected.  For each word w of the
profile, m and s are the mean and standard deviation of log10 of its relative frequency in training documents.  For a
text in which w has the relative frequency f it costs

    min(LIMIT, max(0, (m - log10 f) / s))

The sum of these costs is the text's badness: high for lists, menus and word salad, low
for running text.  In the paper a missing word costs LIMIT, so every short text is bad;
here it counts as half an occurrence, which costs the same in long texts.

The counts follow the heuristics by which large web corpora are filtered (Rae et al., *Scaling Language Models*, 2021,
appendix A; Raffel et al. 2020).  Lists and tables have no function words, and very long or very short sentences; spam
repeats itself; code and price lists consist of digits and symbols.

Suchomel & Pomikálek 2012 (3.2) use only the distance from the seeds against spam.  Spam packs well and repeats one
word (Ntoulas et al. 2006, *Detecting Spam Web Pages through Content Analysis*), it links to many other hosts, and
translation services leave their names in pages.  Of 2,333 good pages these signs refuse one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiderling.base.files import frame_packer
from spiderling.base.option_values import parse_preset
from spiderling.text.ngrams import code_points_of, codepoints
from spiderling.text.ngrams import words as words_of

LIMIT = 10.0  # most that one word may cost (Schäfer et al. 2013).
PROFILE_WORDS = 10  # words of a profile (Schäfer et al. 2013).
_MIN_SD = 0.15  # least standard deviation, so that a word that hardly varies does not weigh too much; chosen
_FUNCTION_WORD_CHARS = 4  # most letters of a frequent word that is likely a function word; chosen
_STOPWORD_SHARE = 0.55  # share of a text's words that its stop words make up; chosen

Expected = tuple[float, float, float]
Profile = Mapping[str, Expected]
"""word -> (mean, standard deviation) of log10 of its relative frequency, and the most it may cost."""


class Listed(NamedTuple):
    """The words of a text, as far as lists of its language know them."""

    number: int  # number of all words
    stop_words: int
    counts: Sequence[int]  # how often each word of the profile occurs


ListWords = Callable[[str, Collection[str], Profile], Listed]


def listed(text: str, stoplist: Collection[str], profile: Profile) -> Listed:
    """How many words *text* has, how many of them are in *stoplist*, and how often those of *profile* occur."""
    words = words_of(text)
    counts = Counter(words)
    return Listed(len(words), sum(map(stoplist.__contains__, words)), [counts[word] for word in profile])


def badness(found: Listed, profile: Profile) -> float:
    """The badness of a text by what was *found* of *profile*: 0 to the sum of the limits; 0 for an empty profile."""
    if not profile:
        return 0.0
    if not found.number:
        return sum(limit for _, _, limit in profile.values())
    each = zip(found.counts, profile.values(), strict=True)
    logs = ((math.log10(max(count, 0.5) / found.number), *expected) for count, expected in each)
    return sum(min(limit, max(0.0, (mean - log) / sd)) for log, mean, sd, limit in logs)


def build_profile(documents: Iterable[Sequence[str]]) -> dict[str, tuple[float, float, float]]:
    """The profile from *documents*, lists of lower-case words: PROFILE_WORDS words that occur in the most documents.

    Short words are preferred, because a frequent long word is likely the topic of the documents.
    """
    logs: dict[str, list[float]] = {}
    for document in documents:
        for word, count in Counter(document).items():
            logs.setdefault(word, []).append(math.log10(count / len(document)))
    least = sorted(map(len, logs.values()), reverse=True)[: 3 * PROFILE_WORDS]
    common = [word for word in logs if len(logs[word]) >= min(least)]
    first = sorted(common, key=lambda word: (-len(logs[word]), -sum(10.0**log for log in logs[word]), word))
    first = first[: 3 * PROFILE_WORDS]
    chosen = sorted(first, key=lambda word: len(word) > _FUNCTION_WORD_CHARS)[:PROFILE_WORDS]
    return {word: _spread(logs[word]) for word in chosen}


def _spread(logs: Sequence[float]) -> tuple[float, float, float]:
    mean = sum(logs) / len(logs)
    sd = math.sqrt(sum((log - mean) ** 2 for log in logs) / len(logs))
    return round(mean, 3), round(max(sd, _MIN_SD), 3), LIMIT


def stoplist_of(words: Mapping[str, int], total: int) -> frozenset[str]:
    """The most frequent of *words* (word -> count): _STOPWORD_SHARE of a text of *total* words."""
    before = accumulate(words.values(), initial=0)
    return frozenset(word for word, covered in zip(words, before, strict=False) if covered <= _STOPWORD_SHARE * total)


END = 1  # the character ends a sentence if a FOLLOWING comes after it
FOLLOWING = 2
FULL_STOP = 4
"""The character always ends a sentence."""
DIGIT = 8
SYMBOL = 16
_DIGITS = re.compile(r"\d+")
SIGNS = {
    END: ".!?…",
    FOLLOWING: " \n\"'»”’)]",
    FULL_STOP: "。｡！？।॥؟۔።։။།༎។៕",
    SYMBOL: "#*|<>{}[]=~^_\\/@+•·»«→←©®™$€%&…",
}
_RATES = ("sentence_words", "outlinks")
"""Fields of Quality that are numbers but no shares."""


class Quality(NamedTuple):
    """The signals of one page; shares are 0 .. 1."""

    stopword_share: float  # words on the language's stop list / words; 1 when there is no stop list
    sentence_words: float  # mean length of a sentence in words
    repeated_share: float  # characters in paragraphs that repeat an earlier one of the document / characters
    digit_share: float  # digits / characters
    symbol_share: float  # symbols that are rare in running text / characters
    good_share: float  # characters in good paragraphs / in all paragraphs of the page
    packed_share: float = 1.0
    """Packed / unpacked bytes of the clean text.  `with_spam_signs` of cleaning.py sets this field and those below."""
    top_word_share: float = 0.0  # the most frequent word that is no stop word / words
    outlinks: float = 0.0  # addresses on other hosts that running text links to, per 1,000 bytes of text
    translated: str = ""  # name of the machine translator, as `translated` finds it; '' for none

    def attributes(self) -> dict[str, str]:
        """The signals as attributes of a document."""
        return {
            name: value if isinstance(value, str) else f"{value:.1f}" if name in _RATES else f"{value:.2f}"
            for name, value in self._asdict().items()
        }


NO_QUALITY = Quality(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)  # the signals of a page without text


@dataclass(frozen=True, slots=True)
class Range:
    """Values from *low* to *high*, both included."""

    low: float = 0.0
    high: float = float("inf")

    def __str__(self) -> str:
        return f"{self.low:g}..{'' if self.high == float('inf') else f'{self.high:g}'}"


@dataclass(frozen=True, slots=True)
class QualityLimits:
    """Ranges of measures, under their names in documents; a document outside of one ends as bad-quality."""

    page_bytes: Range = Range()  # bytes of the page in UTF-8; no limit (texrex: 2000, Schäfer & Bildhauer 2012)
    text_chars: Range = Range(low=250)  # characters of clean text; chosen.  Less new text is near-duplicate.
    badness: Range = Range(high=50.0)
    """Chosen by eye: of 100 pages at 40 to 50, mostly manuals and guides to products, 81 were good prose, of 37 above
    50 about 14; the others were lists, tables, code and close languages."""
    stopword_share: Range = Range(low=0.05)  # share of stop words, if the language has a list; chosen
    sentence_words: Range = Range(high=200.0)  # mean words of a sentence; chosen
    repeated_share: Range = Range(high=0.6)  # share of the text in repeated paragraphs; chosen
    digit_share: Range = Range(high=0.25)  # share of digits; chosen
    symbol_share: Range = Range(high=0.15)  # share of symbols; chosen
    good_share: Range = Range()  # share of the page's text in good paragraphs; no limit
    packed_share: Range = Range(low=0.1)
    """Packed / unpacked bytes, low for repetitions; of 531 good pages the least has .21."""
    top_word_share: Range = Range(high=0.2)
    """Share of the most frequent word that is no stop word; of 531 good pages the most has .13."""
    outlinks: Range = Range(high=20.0)
    """Links to other hosts per kB of text; with the two above it refuses one of 2,333 good pages."""


PRESETS = {"standard": QualityLimits(), "off": QualityLimits(*[Range()] * 12)}


@lru_cache(maxsize=16)
def parse_quality(text: str) -> QualityLimits:
    """The limits that *text* names: a preset, ranges of measures, or both; raises BadInput.

    An end of a range that *text* leaves out is that of the preset; if nothing would be left, there is none.

    >>> parse_quality("standard,sentence_words=5..").sentence_words
    Range(low=5.0, high=200.0)
    """
    return parse_preset("QUALITY", text, PRESETS, _read_range)


def _read_range(limits: QualityLimits, name: str, text: str) -> Range:
    """The range *text* of *name*; an end left out is that of *limits*, or open.  Raises ValueError."""
    former: Range = getattr(limits, name)
    low, dots, high = text.partition("..")
    is_share = name.endswith("_share")
    try:
        found = Range(float(low or former.low), float(high or former.high))
    except ValueError:
        found = Range(-1.0)
    if found.low > found.high and not (low and high):
        found = Range(low=found.low) if low else Range(high=found.high)
    if name == "sentence_words" and found.high < 1:
        raise ValueError("sentence_words must go up to 1 at least, such as sentence_words=..200")
    if not dots or not 0 <= found.low <= found.high or (is_share and (found.low > 1 or 1 < found.high < float("inf"))):
        small, large = ("0.02", "0.8") if is_share else ("20", "200")
        raise ValueError(
            f"{name} must be a range{' of shares from 0 to 1' if is_share else ''}, "
            f"such as {name}={small}.. or {name}=..{large} or {name}={small}..{large}"
        )
    return found


Marks = Callable[[Sequence[str]], tuple[int, int, int, int]]


def quality(paragraphs: Sequence[str], stopword_share: float, page_chars: int, count: Marks | None = None) -> Quality:
    """The quality of the good *paragraphs* of a page, which has *page_chars* characters with its boilerplate."""
    chars = sum(map(len, paragraphs))
    if not chars:
        return NO_QUALITY
    sentences, digits, symbols, words = (count or marks)(paragraphs)
    return Quality(
        stopword_share,
        words / sentences,
        (chars - sum(map(len, set(paragraphs)))) / chars,
        digits / chars,
        symbols / chars,
        min(1.0, chars / max(1, page_chars)),
    )


def marks(paragraphs: Sequence[str]) -> tuple[int, int, int, int]:
    """Numbers of sentences, digits, symbols and words in *paragraphs*; three full stops in a row are a symbol."""
    text = "\n".join(paragraphs)
    kinds = kinds_of_characters().take(codepoints(text), mode="clip")
    # the end of a paragraph ends a sentence without a mark
    stops = np.flatnonzero(kinds & (FULL_STOP | END))
    following = kinds.take(stops + 1, mode="clip")  # the last character is followed by itself; the next line mends that
    following[stops == len(kinds) - 1] = FOLLOWING
    stops = stops[(kinds[stops] & FULL_STOP | following & FOLLOWING) != 0]
    starts = np.cumsum([0, *map(len, paragraphs)]) + np.arange(len(paragraphs) + 1)
    sentences = int(np.maximum(1, np.diff(np.searchsorted(stops, starts))).sum())
    digits = int(np.count_nonzero(kinds & DIGIT))
    symbols = int(np.count_nonzero(kinds & SYMBOL))
    return sentences, digits, symbols + text.count("..."), words_in(text)


def words_in(text: str) -> int:
    r"""Number of words in *text*: paragraphs divided by line feeds, words by single spaces.

    >>> words_in("two words\nthree more words")
    5
    """
    return text.count(" ") + text.count("\n") + 1 if text else 0


_WORD_LETTERS = {
    "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff": 1.61,  # Chinese: GSDSimp (PUD has 1.67)
    "\u3041-\u30ff": 1.75,  # kana, so that Japanese has 1.69 (GSD)
    "吖吗吧呀呢咁咗咩哋唔啦喺喇嗎嗰嘅嘞嘢嚟囉噃㗎佢啲冇乜": 1.0,  # mostly Cantonese, so that it has 1.45 (HK: 1.39)
    "\u0e01-\u0e4e": 4.2,  # Thai (TUD 4.06, PUD 4.39)
    "\u0e81-\u0ecd\u0edc-\u0edf": 3.8,  # Lao: laonlp on the news of NTREX-128 (Federmann et al. 2022)
    "\u1780-\u17d3": 4.9,  # Khmer: khPOS (Ye Kyaw Thu et al. 2017)
    "\u1000-\u103f\u104c-\u109f": 5.4,  # Burmese: myPOS (Khin War War Htike et al. 2017), compounds are words
    "\u0f40-\u0fbc": 4.0,  # Tibetan: Nanhai corpus (Esukhia); Dzongkha is taken for the same
}
"""Letters of scripts that put no spaces between words, and how many of them make a word; by treebanks of Universal
Dependencies, without punctuation, where nothing else is said.  Of two entries with a letter the last counts."""
_OTHER = 1  # kind of a letter or digit of any other script in `word_kinds`
_UNSPACED_SHARE = 0.25  # share of letters of _WORD_LETTERS from which they are counted as words; chosen
_UNSPACED_BYTES = 1 + 2 * _UNSPACED_SHARE  # bytes of UTF-8 a character that such a text has at least
ENGLISH_CHARS = 5.0
"""Characters that English has for one word of a script without spaces; chosen: on NTREX-128 4.1 (Japanese) to 5.6."""

CountWordKinds = Callable[[str], Sequence[int]]


@lru_cache(maxsize=1)
def word_kinds() -> npt.NDArray[np.uint8]:
    """For each code point _OTHER, 2 and more for the entries of _WORD_LETTERS, or 0."""
    table = code_points_of(re.compile(r"\w+")).astype(np.uint8)
    for kind, letters in enumerate(_WORD_LETTERS, _OTHER + 1):
        table[code_points_of(re.compile(f"[{letters}]+"))] = kind
    return table


def count_word_kinds(text: str) -> list[int]:
    """The number of runs of _OTHER in *text*, then of characters of each kind of `word_kinds` but 0."""
    kinds = word_kinds().take(codepoints(text), mode="clip")
    others = np.concatenate(([False], kinds == _OTHER))
    runs = int(np.count_nonzero(others[1:] & ~others[:-1]))
    return [runs, *np.bincount(kinds, minlength=len(_WORD_LETTERS) + 2)[1:].tolist()]


def count_words(text: str, utf8_bytes: int, count: CountWordKinds = count_word_kinds) -> int:
    """Number of words in *text*, which has *utf8_bytes*; an estimate in scripts without spaces between words.

    >>> count_words("吾輩は猫である。名前はまだ無い。 OK", 51)
    9
    """
    estimate = estimated_words(text, utf8_bytes, count)
    return words_in(text) if estimate is None else estimate


def estimated_words(text: str, utf8_bytes: int, count: CountWordKinds = count_word_kinds) -> int | None:
    """`count_words` of a text in a script without spaces between words; None for any other."""
    if utf8_bytes < _UNSPACED_BYTES * len(text):
        return None
    runs, others, *letters = count(text)
    if sum(letters) < _UNSPACED_SHARE * (others + sum(letters)):
        return None
    words = [number / each for number, each in zip(letters, _WORD_LETTERS.values(), strict=True)]
    return runs + round(sum(words))


@lru_cache(maxsize=1)
def kinds_of_characters() -> npt.NDArray[np.uint8]:
    """The kinds (END ...) of each code point, as bits."""
    table = np.zeros(0x110000, np.uint8)
    for kind, marks in SIGNS.items():
        table[list(map(ord, marks))] |= kind
    table[code_points_of(_DIGITS)] |= DIGIT
    return table


GOOGLE = "google"  # value of `translated` for Google Translate
_PLUGINS = ("gtranslate", "weglot", "linguise", "conveythis", "transposh", "bablic")
_SAVED = re.compile(r"<html\b[^>]{0,500}\btranslated-(?:ltr|rtl)\b|x-translated-by", re.IGNORECASE)
_HEAD_CHARS = 4_000  # characters of the page that are searched for the mark of Google Translate; chosen
_PLUGIN_CHARS = 60_000  # characters of the page that are searched for names of plugins; chosen
TEXT_CHARS = 8_000  # characters of the clean text that are looked at; chosen: longer texts pack and repeat alike
_pack = frame_packer(level=1, has_checksum=False)


TopWord = Callable[[str, Collection[str]], float]


def packed_share(text: str) -> float:
    """Packed / unpacked bytes of the first TEXT_CHARS characters; 1 for no text."""
    data = text[:TEXT_CHARS].encode("utf-8", "replace")
    return len(_pack(data)) / len(data) if data else 1.0


def top_word_share(text: str, stoplist: Collection[str]) -> float:
    """Share of the most frequent word that is no stop word, in the first TEXT_CHARS characters."""
    words = text[:TEXT_CHARS].lower().split()
    most = 0
    for word, number in Counter(words).items():
        if number > most and len(word) > 1 and word not in stoplist:
            most = number
    return most / max(1, len(words))


def other_hosts(links: Iterable[str], url: str) -> int:
    """Number of distinct URLs among *links* that are on other hosts than *url*."""
    own = _host(url)
    return len({link for link in links if _host(link) != own})


def _host(url: str) -> str:
    return url.split("/", 3)[2].removeprefix("www.") if url.count("/") > 1 else ""


def translated(html: str, url: str, original: str, canonical: str | None) -> str:
    """The machine translator of the page: GOOGLE if that is sure, the name of a plugin if it is likely, else ''.

    It is likely if the page names the plugin, and another page than its own as the *original* (hreflang x-default).
    """
    head = html[:_HEAD_CHARS]
    if _host(url).endswith(".translate.goog") or ("translated-" in head.lower() and _SAVED.search(head)):
        return GOOGLE
    original = original.rstrip("/")
    if not original or original in (url.rstrip("/"), (canonical or "").rstrip("/")):
        return ""
    start = html[:_PLUGIN_CHARS]
    return next((name for name in _PLUGINS if name in start), "")
