"""Encodings: exact decodes over pairs of a language and an encoding, beside chardet and charset-normalizer.

    python -m benchmarks.encoding [--quick] [--data ../shared/data] [--only CODE ...]

The pairs are those that the bundled models name.  Each language is decoded as in a crawl of
it: with its own encodings, and the models of the languages that the crawl recognises.
With --data: NTREX sentences (news; nothing is trained on them), whole pages of manuals of
miniweb/ without their labels, and the UTF-8 pages of pages/.  Without, and for the languages
that NTREX lacks: the sentences of tests/quality and the pages of the bundled miniature web.
A decode is exact when every character is right.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import re
import statistics
import tarfile
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import chardet

from benchmarks.common import ROOT, result, table
from spiderling.base.files import zstd
from spiderling.languages import LanguageInfo, available, load, to_recognise
from spiderling.text import LanguageModel, LanguageModels
from spiderling.text.encoding.detect import decode
from spiderling.text.encoding.labels import codec_of, codecs_of

HELD_OUT = ROOT / "tests" / "quality" / "sentences.tsv"
SIZES = (300, 1000, 5000)
PAGES = "page"
PAGES_OF_LANGUAGE = 20
EVERY = 7
"""Of the pages of a host, which are much alike, every seventh is taken."""
ROOM = 0.7
"""Least share of its non-ASCII characters for which a page's encoding has room."""
SEED = 20
SLOW = 8
"""Of how many texts charset-normalizer, which takes 50 ms for one, sees the first."""
NTREX = {  # names of files that are not the model's ISO 639-3 code
    "ar": "arb", "en": "eng-GB", "ku": "kmr", "lv": "lav", "om": "orm", "sn": "sna-Latn", "sq": "sqi", "sw": "swa",
    "sr": "srp-Cyrl", "sr-Latn": "srp-Latn", "tl": "fil", "zh": "zho-CN", "zh-TW": "zho-TW", "mg": "mlg", "ms": "msa",
    "fa": "fas", "et": "est",
}  # fmt: skip
RARE = {
    "ru": ("x-mac-cyrillic",), "uk": ("x-mac-cyrillic",), "bg": ("x-mac-cyrillic",), "fr": ("macintosh",),
    "de": ("macintosh",), "es": ("macintosh",), "it": ("macintosh",), "lv": ("iso-8859-4",), "lt": ("iso-8859-4",),
    "et": ("iso-8859-4",), "hu": ("iso-8859-16",), "hr": ("iso-8859-16",), "pl": ("iso-8859-16",),
}  # fmt: skip
"""Encodings of few pages, which no model names."""
SIBLINGS = {
    "windows-1252": "iso-8859-15", "iso-8859-15": "windows-1252", "iso-8859-14": "windows-1252",
    "windows-1250": "iso-8859-2", "iso-8859-2": "windows-1250", "cp852": "windows-1250", "iso-8859-16": "iso-8859-2",
    "windows-1254": "windows-1252", "windows-1258": "windows-1252", "iso-8859-3": "windows-1254",
    "windows-1257": "iso-8859-13", "iso-8859-13": "windows-1257",
    "windows-1251": "koi8-r", "koi8-r": "windows-1251", "koi8-u": "windows-1251", "iso-8859-5": "windows-1251",
    "ibm866": "windows-1251", "kz1048": "windows-1251", "windows-1253": "iso-8859-7", "iso-8859-7": "windows-1253",
    "windows-1255": "iso-8859-8", "iso-8859-8": "windows-1255", "windows-1256": "iso-8859-6",
    "iso-8859-6": "windows-1256", "tis-620": "windows-1258", "gb18030": "big5", "big5": "gb18030",
    "shift_jis": "euc-jp", "euc-jp": "shift_jis", "iso-2022-jp": "shift_jis", "euc-kr": "shift_jis",
    "x-mac-cyrillic": "windows-1251", "macintosh": "windows-1252", "iso-8859-4": "windows-1257",
}  # fmt: skip
"""Label -> another with which it is easily confused."""
PLAIN = {
    "‘": "'", "’": "'", "ʻ": "'", "ʼ": "'", "‚": ",", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "–": "-",
    "—": "-", "…": "...", "\xa0": " ", "\u200c": "", "\u200b": "", "\ufeff": "", "\u200e": "", "\u200f": "",
    "ی": "ي", "ک": "ك", "ۀ": "ه",
}  # fmt: skip
"""What stands on a page for a character that its encoding has no room for; any other is a character reference."""


@dataclass(slots=True)
class Language:
    """One language of the test, as a crawl of it has it."""

    code: str
    encodings: tuple[str, ...]
    text: str
    models: LanguageModels

    def samples(self, chars: int, number: int) -> Iterator[str]:
        """Stretches of the text, the same ones each time."""
        chooser = random.Random(f"{SEED} {self.code}")
        for _ in range(number):
            start = chooser.randrange(max(1, len(self.text) - chars))
            yield self.text[start : start + chars]


@dataclass(slots=True)
class Tally:
    """Decodes by one method."""

    right: int = 0
    tried: int = 0
    cpu_s: float = 0.0
    misses: Counter[str] = field(default_factory=Counter)
    tries: Counter[str] = field(default_factory=Counter)

    def try_one(self, pair: str, truth: str, method: Callable[[], str | None]) -> None:
        began = time.thread_time()
        text = method()
        self.cpu_s += time.thread_time() - began
        self.tried += 1
        self.right += text == truth
        self.misses[pair] += text != truth
        self.tries[pair] += 1

    @property
    def exact(self) -> float:
        return 100 * self.right / max(1, self.tried)

    @property
    def ms(self) -> float:
        return 1000 * self.cpu_s / max(1, self.tried)

    def exact_in(self, label: str) -> float | str:
        """Exact % of the pairs of a language and this encoding."""
        tried = sum(count for pair, count in self.tries.items() if pair.split()[1] == label)
        missed = sum(count for pair, count in self.misses.items() if pair.split()[1] == label)
        return 100 * (1 - missed / tried) if tried else "-"

    def missed(self) -> str:
        return ", ".join(f"{pair} {count}" for pair, count in self.misses.most_common() if count) or "none"


def languages(data: Path | None, only: list[str]) -> Iterator[Language]:
    """The languages that have legacy encodings and a text that their models were not made from, one by one."""
    news = archive(data / "test-texts/ntrex-128.tar.zst") if data else {}
    news = {name.rpartition("ref.")[2].removesuffix(".txt"): text for name, text in news.items()}
    held_out: dict[str, list[str]] = defaultdict(list)
    for line in HELD_OUT.read_text("utf-8").splitlines():
        code, _, sentence = line.partition("\t")
        held_out[code].append(sentence)
    every = available()
    loaded: dict[str, LanguageModel] = {}
    for code, info in every.items():
        if not info.encodings or (only and code not in only):
            continue
        codes = to_recognise([info])
        loaded |= {other: every[other].model() for other in codes if other not in loaded}
        models = LanguageModels(tuple(loaded[other] for other in codes))
        for name, labels in scripts(info):
            text = news.get(NTREX.get(name, info.iso3)) or "\n".join(held_out[name])
            if len(text) >= 1000:
                yield Language(name, labels, text, models)


def scripts(info: LanguageInfo) -> list[tuple[str, tuple[str, ...]]]:
    """Names of a language's texts, one for each script, and its encodings for it."""
    apart = {
        "sr": (("sr", ("windows-1251", "iso-8859-5")), ("sr-Latn", ("windows-1250", "iso-8859-2"))),
        "zh": (("zh", ("gb18030",)), ("zh-TW", ("big5",))),
    }
    return [(name, labels) for name, labels in apart.get(info.code, ((info.code, info.encodings),))]


def manuals(data: Path | None) -> dict[str, list[str]]:
    """Language -> pages whose text declares no encoding."""
    found: dict[str, list[str]] = defaultdict(list)
    if data is None:
        return found
    with (data / "miniweb/index.csv").open(encoding="utf-8") as rows:
        codes = {row["host"]: row["declared_lang"].partition("-")[0].lower() for row in csv.DictReader(rows)}
    numbers: Counter[str] = Counter()
    with (
        zstd.open(data / "miniweb/miniweb-subset.tar.zst") as raw,
        tarfile.open(fileobj=raw, mode="r|") as files,
    ):
        for member in files:
            host = next((part for part in member.name.split("/") if part in codes), "")
            numbers[host] += member.isfile()
            pages = found[{"no": "nb"}.get(codes.get(host, ""), codes.get(host, ""))]
            if member.isfile() and numbers[host] % EVERY == 0 and len(pages) < PAGES_OF_LANGUAGE:
                page = files.extractfile(member).read()  # type: ignore[union-attr]
                text = page.decode("utf-8", "ignore")
                if not text.isascii() and len(text.encode()) == len(page) > 2000:
                    pages.append(re.sub(r"(?i)(charset|encoding)\s*=", r"\1-of=", text))
    return found


def has_room(label: str, text: str) -> bool:
    """Whether the encoding can be that of the text."""
    others = [char for char in text if not char.isascii()]
    return sum(1 for char in others if char.encode(codec_of(label) or "", "ignore")) >= ROOM * len(others)


def archive(path: Path) -> dict[str, str]:
    """Text files of a tar.zst by their names."""
    with (
        zstd.open(path) as raw,
        tarfile.open(fileobj=io.BytesIO(raw.read())) as files,
    ):
        members = ((member.name, files.extractfile(member)) for member in files)
        return {name: body.read().decode("utf-8", "replace") for name, body in members if body}


def encoded(code: str, label: str, text: str) -> bytes:
    """*text* as it stood on pages in that encoding."""
    codec = codec_of(label) or ""
    if code == "ro":
        pair = ("şţŞŢ", "șțȘȚ") if label == "iso-8859-16" else ("șțȘȚ", "şţŞŢ")
        text = text.translate(str.maketrans(*pair))
    if label == "windows-1258":
        text = "".join(map(_tone_apart, unicodedata.normalize("NFC", text)))
    missing = {char for char in set(text) if not char.encode(codec, "ignore")}
    text = text.translate({ord(char): PLAIN.get(char, f"&#{ord(char)};") for char in missing})
    return text.encode(codec, "ignore")


def _tone_apart(letter: str) -> str:
    base, *marks = unicodedata.normalize("NFD", letter)
    tones = "".join(mark for mark in marks if mark in "\u0300\u0301\u0303\u0309\u0323")
    return unicodedata.normalize("NFC", base + "".join(mark for mark in marks if mark not in tones)) + tones


def by_chardet(body: bytes, include: list[str] | None = None) -> str | None:
    hint = {"include_encodings": include} if include else {}
    name = chardet.detect(body, compat_names=False, **hint)["encoding"]
    return body.decode(codec_of(name) or name, "replace") if name else None


def by_charset_normalizer(body: bytes) -> str | None:
    from charset_normalizer import from_bytes  # a package to compare with

    best = from_bytes(body).best()
    return body.decode(codec_of(best.encoding) or best.encoding, "replace") if best else None


ELSE_ENCODINGS = ("windows-1250", "iso-8859-2", "cp852")
OURS = "spiderling"
RIGHT = "spiderling, right label"
WRONG = "spiderling, wrong label"
ELSEWHERE = "spiderling, right label, crawl of another language"
RARELY = "spiderling, rare encodings"
RARELY_LABELLED = "spiderling, rare encodings, right label"
CHARDET = "chardet"
HINTED = "chardet, encodings of the language"
NORMALIZER = "charset-normalizer"


def measure(tested: Language, other: LanguageModels, texts: list[str], tallies: dict[str, Tally]) -> None:
    """Count the decodes of *texts* in one language."""
    code, spelling = tested.code, tested.models.spelling
    decode(b"\xe9t\xe9", None, tested.encodings, spelling)  # builds the tables

    def ours(body: bytes, label: str | None) -> Callable[[], str | None]:
        return lambda: decode(body, label, tested.encodings, spelling).text

    names = (name.replace("_", "-").replace("iso2022", "iso-2022") for name in codecs_of(tested.encodings))
    hint = sorted({*names, "cp1252"})
    for label in (*tested.encodings, *RARE.get(code, ())):
        pair, rare = f"{code} {label}", label in RARE.get(code, ())
        for place, text in enumerate(texts):
            body = encoded(code, label, text)
            if not has_room(label, text):
                continue
            truth = body.decode(codec_of(label) or "")
            tallies[RARELY if rare else OURS].try_one(pair, truth, ours(body, None))
            tallies[RARELY_LABELLED if rare else RIGHT].try_one(pair, truth, ours(body, label))
            tallies[ELSEWHERE].try_one(
                pair, truth, lambda body=body, label=label: decode(body, label, ELSE_ENCODINGS, other.spelling).text
            )
            if rare:
                continue
            tallies[CHARDET].try_one(pair, truth, lambda body=body: by_chardet(body))
            tallies[HINTED].try_one(pair, truth, lambda body=body: by_chardet(body, hint))
            if place % SLOW == 0:
                tallies[NORMALIZER].try_one(pair, truth, lambda body=body: by_charset_normalizer(body))
            for wrong in ("utf-8", "iso-8859-1", SIBLINGS[label]):
                if codec_of(wrong) != codec_of(label):
                    tallies[WRONG].try_one(f"{pair} as {wrong}", truth, ours(body, wrong))


def by_label(tallies: dict[str, Tally]) -> Iterator[list[object]]:
    """A row for each encoding."""
    for name in (OURS, RARELY):
        languages: dict[str, list[str]] = defaultdict(list)
        for pair in tallies[name].tries:
            code, label = pair.split()
            languages[label].append(code)
        for label, codes in languages.items():
            methods = (name, WRONG, CHARDET, NORMALIZER) if name == OURS else (name, "", "", "")
            cells = (tallies[method].exact_in(label) if method else "-" for method in methods)
            yield [label, " ".join(codes), *cells]


def utf8_pages(data: Path | None, number: int) -> Iterator[bytes]:
    """Real pages in valid UTF-8 with non-ASCII characters."""
    for body in islice(_pages(data), number):
        if not body.isascii() and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
            try:
                body.decode("utf-8")
            except UnicodeDecodeError:
                continue
            yield body


def _pages(data: Path | None) -> Iterator[bytes]:
    if data is None:
        yield from (body.encode() for body in archive(ROOT / "examples/miniweb/pages.tar.zst").values())
        return
    with zstd.open(data / "pages/pages-dev.jsonl.zst", "rt", encoding="utf-8") as lines:
        yield from (json.loads(line)["html"].encode("latin-1") for line in lines)


def utf8_cost(data: Path | None, number: int, models: LanguageModels) -> tuple[int, int, float]:
    """Pages, those that were not read as UTF-8, and the median of the milliseconds."""
    harmed, costs = 0, []
    for body in utf8_pages(data, number):
        truth = body.decode("utf-8").removeprefix("\ufeff")
        for label in (None, "iso-8859-1", "gbk"):
            began = time.thread_time()
            found = decode(body, label, ("windows-1250",), models.spelling)
            costs.append(1000 * (time.thread_time() - began))
            harmed += found.text != truth
    return len(costs), harmed, statistics.median(costs)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer samples; ends within a minute")
    parser.add_argument("--data", type=Path, help="folder with test-texts/ and pages/")
    parser.add_argument("--only", nargs="*", default=[], help="codes of languages")
    arguments = parser.parse_args()
    sizes = SIZES[1:2] if arguments.quick else SIZES if arguments.data else SIZES[:2]
    by_size: dict[int | str, dict[str, Tally]] = {chars: defaultdict(Tally) for chars in (*sizes, PAGES)}
    pages_of = manuals(None if arguments.quick else arguments.data)
    other = load(to_recognise([available()["cs"]]))
    pairs = 0
    codes = []
    for language in languages(arguments.data, arguments.only):
        pairs += len(language.encodings)
        codes.append(language.code)
        for chars in sizes:
            texts = list(language.samples(chars, 2 if arguments.quick else 25))
            measure(language, other, texts, by_size[chars])
        measure(language, other, pages_of[language.code], by_size[PAGES])
    print(f"{pairs} pairs of {len(codes)} languages and scripts: {' '.join(codes)}\n")
    rows = [
        [name, chars, tally.tried, tally.exact, tally.ms]
        for chars, tallies in by_size.items()
        for name, tally in tallies.items()
    ]
    table(["method", "characters", "texts", "exact %", "ms a text"], rows)
    at_1000 = by_size[1000]
    print("\nexact % by encoding, at 1000 characters\n")
    table(
        ["encoding", "languages", "no label", "wrong label", "chardet", "charset-normalizer"], list(by_label(at_1000))
    )
    for name in (OURS, RIGHT, ELSEWHERE, WRONG, RARELY, RARELY_LABELLED, CHARDET):
        print(f"\nmissed at 1000 characters, {name}: {at_1000[name].missed()}")
        print(f"of pages: {by_size[PAGES][name].missed()}")
    pages, harmed, ms = utf8_cost(arguments.data, 300 if arguments.quick else 5000, load(available()))
    print(f"\n{pages} decodes of pages in UTF-8: {harmed} harmed, median {ms:.3f} ms\n")
    result(
        pairs=pairs,
        exact_1000=round(at_1000[OURS].exact, 2),
        exact_1000_wrong_label=round(at_1000[WRONG].exact, 2),
        exact_1000_right_label=round(at_1000[RIGHT].exact, 2),
        ms_1000=round(at_1000[OURS].ms, 3),
        ratio_chardet=round(at_1000[OURS].cpu_s / at_1000[CHARDET].cpu_s, 3),
        exact_pages=round(by_size[PAGES][OURS].exact, 2),
        ms_page=round(by_size[PAGES][OURS].ms, 3),
        utf8_harmed=harmed,
        ms_utf8=round(ms, 4),
    )


if __name__ == "__main__":
    main()
