"""Words of scripts that put no spaces between them: how many we count, and what that costs.

    python -m benchmarks.scripts [--quick] [--data DIR]

We count letters (text/quality.py); beside that stands ICU's break iterator (icu4py), which divides Thai, Lao, Khmer,
Burmese, Chinese and Japanese by dictionaries, and Tibetan into syllables.  The reference is what people divided, where
DIR has it: files LANG_NAME.conllu of Universal Dependencies, and LANG_NAME.words with a sentence a line and a space
between words (khPOS and myPOS of Ye Kyaw Thu, the Nanhai corpus of Esukhia without its marks of particles).  No
punctuation or symbol is a word.  In languages without these it is a segmenter on the sentences of NTREX-128: jieba,
PyThaiNLP's newmm, laonlp, khmer-nltk.  For Dzongkha there is neither.

Costs are of the words of one page: the sentences of an article of the news in that language, 2,700 characters in
English.  What is counted where words have spaces is the floor of that.
"""

from __future__ import annotations

import contextlib
import importlib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from timeit import repeat
from typing import NamedTuple

from benchmarks.common import arguments, result, table
from benchmarks.language import archive
from spiderling.text.quality import count_word_kinds, count_words
from spiderling.text.steps import choose

NEWS = {
    "ja": "jpn", "zh": "zho-CN", "yue": "yue", "th": "tha", "lo": "lao", "km": "khm", "my": "mya",
    "bo": "bod", "dz": "dzo",
}  # fmt: skip
"""Language -> its name in NTREX-128."""
SEGMENTERS = {
    "zh": ("jieba", "cut"),
    "yue": ("jieba", "cut"),
    "th": ("pythainlp", "word_tokenize"),
    "lo": ("laonlp.tokenize", "word_tokenize"),
    "km": ("khmernltk", "word_tokenize"),
}
"""Language -> module and function that gives the words of a text."""
PAGE_SENTENCES = 20
TARGET = 0.05  # share of the words of the reference by which ours may be off
QUICK = 10  # with --quick every tenth sentence is read
SPACED = "ces"

Divide = Callable[[str], Iterable[str]]


class Divided(NamedTuple):
    """A text, and the number of its words as the reference has them."""

    language: str
    name: str
    text: str
    words: int


def main() -> None:
    args = arguments(__doc__)
    step = QUICK if args.quick else 1
    news = archive(args.data / "test-texts/ntrex-128.tar.zst") if args.data else {}
    texts = list(treebanks(args.data, step)) if args.data else []
    texts += by_segmenters(news, step, {text.language for text in texts})
    rows = []
    words: Counter[tuple[str, str]] = Counter()  # by language and who counted
    for text in texts:
        ours = count_words(text.text, len(text.text.encode()), choose().steps.word_kinds)
        peer = number(icu(text.language)(text.text))
        rows.append([text.language, text.name, text.words, f"{ours / text.words:.3f}", f"{peer / text.words:.3f}"])
        words += Counter({(text.language, "ours"): ours, (text.language, "icu"): peer})
        words[text.language, "reference"] += text.words
    table(["language", "reference", "words", "ours / reference", "ICU / reference"], rows)
    off, icu_off = ({
        language: round(words[language, who] / reference - 1, 3)
        for (language, name), reference in words.items() if name == "reference"
    } for who in ("ours", "icu"))  # fmt: skip
    costs = dict(costs_of(news))
    table(["language", "us a page", "in Python", "ICU"], [[language, *found] for language, found in costs.items()])
    result(
        languages=len(off),
        languages_within_5_percent=sum(abs(share) <= TARGET for share in off.values()),
        difference=off,
        icu_difference=icu_off,
        us_per_page=round(max((found[0] for found in costs.values()), default=0.0), 2),
        icu_us_per_page=round(max((found[2] for found in costs.values()), default=0.0), 2),
    )


def treebanks(data: Path, step: int) -> Iterator[Divided]:
    """The texts below *data* that people divided, every *step*-th sentence; parts of one come together."""
    found: dict[tuple[str, str], tuple[list[str], int]] = {}
    for path in sorted([*data.rglob("*_*.conllu"), *data.rglob("*_*.words")]):
        language, name = path.stem.split("-")[0].split("_", 1)
        read = of_treebank if path.suffix == ".conllu" else of_words
        sentences = list(read(path))[::step]
        texts, words = found.get((language, name), ([], 0))
        found[language, name] = texts + [text for text, _ in sentences], words + sum(size for _, size in sentences)
    for (language, name), (texts, words) in found.items():
        yield Divided(language, name, "\n".join(texts), words)


def of_treebank(path: Path) -> Iterator[tuple[str, int]]:
    """The sentences of a file of Universal Dependencies, and the number of words of each."""
    for sentence in path.read_text("utf-8").split("\n\n"):
        lines = sentence.split("\n")
        tokens = [line.split("\t") for line in lines if line[:1].isdigit()]
        text = next((line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")), "")
        if text:
            yield text, sum(token[0].isdigit() and token[3] not in ("PUNCT", "SYM") for token in tokens)


def of_words(path: Path) -> Iterator[tuple[str, int]]:
    for line in path.read_text("utf-8").splitlines():
        yield "".join(line.split()), number(line.split())


def by_segmenters(news: Mapping[str, Sequence[str]], step: int, without: Collection[str]) -> Iterator[Divided]:
    """The news in languages with a segmenter, but for some, divided by it."""
    for language, name in NEWS.items():
        divide = None if language in without else segmenter(language)
        sentences = news.get(name, [])[::step]
        if divide and sentences:
            yield Divided(language, divide.__module__.split(".")[0], "\n".join(sentences), sum(
                number(divide(sentence)) for sentence in sentences
            ))  # fmt: skip


def segmenter(language: str) -> Divide | None:
    """The function that divides *language*; None where its package is not installed."""
    module, name = SEGMENTERS.get(language, ("", ""))
    with contextlib.suppress(ImportError):
        return getattr(importlib.import_module(module), name) if module else None
    return None


def icu(language: str) -> Divide:
    from icu4py.breakers import WordBreaker

    return lambda text: WordBreaker(text, language)


def number(tokens: Iterable[str]) -> int:
    """How many of *tokens* are words."""
    return sum(any(char.isalnum() or unicodedata.category(char)[0] == "L" for char in token) for token in tokens)


def costs_of(news: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, list[float]]]:
    """Microseconds for the words of a page: by the steps that run, by Python's, and by ICU."""
    counted = choose().steps.word_kinds
    for language, name in {"cs": SPACED, **NEWS}.items():
        if name in news:
            page = "\n".join(news[name][:PAGE_SENTENCES])
            size = len(page.encode())
            divide = icu(language)
            ways: list[Callable[[], object]] = [
                lambda page=page, size=size: count_words(page, size, counted),
                lambda page=page, size=size: count_words(page, size, count_word_kinds),
                lambda page=page, divide=divide: number(divide(page)),
            ]
            yield language, [1e6 * min(repeat(way, number=100, repeat=9)) / 100 for way in ways]


if __name__ == "__main__":
    main()
