"""Encodings: exact decodes over pairs of a language and an encoding, beside chardet; cost and harm on UTF-8 pages.

    python benchmarks/encoding.py [--quick] [--data ../shared/data]

With --data: models trained from texts/, tried on NTREX sentences (news; nothing is
trained on them) without any label, and UTF-8 pages of pages/.  Without: the bundled
models, the sentences of tests/quality and the pages of the bundled miniature web.
A decode is exact when every character is right.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import statistics
import sys
import tarfile
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import chardet
import zstandard

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.common import result, table  # noqa: E402
from spiderling.languages import available, load  # noqa: E402
from spiderling.text import LanguageModels  # noqa: E402
from spiderling.text.encoding.detect import decode  # noqa: E402
from spiderling.text.encoding.labels import codec_of, codecs_of  # noqa: E402
from spiderling.text.encoding.spelling import Spelling  # noqa: E402
from spiderling.training.counting import sentences, train  # noqa: E402

QUALITY = ROOT / "tests" / "quality" / "encodings.tsv"
TRAINING_CHARS = 400_000
TRAINING_WORDS = 20_000
QUICK = 10  # times less of both
SIZES = (200, 1000, 5000)
SEED = 20
NTREX = {  # names of files
    "ar": "arb", "be": "bel", "bg": "bul", "ca": "cat", "cs": "ces", "da": "dan", "de": "deu", "el": "ell",
    "es": "spa", "et": "est", "fa": "fas", "fi": "fin", "fr": "fra", "he": "heb", "hr": "hrv", "hu": "hun",
    "is": "isl", "ja": "jpn", "kk": "kaz", "ko": "kor", "lt": "lit", "lv": "lav", "mk": "mkd", "pl": "pol",
    "pt": "por", "ro": "ron", "ru": "rus", "sk": "slk", "sl": "slv", "sr": "srp-Cyrl", "th": "tha", "tr": "tur",
    "uk": "ukr", "ur": "urd", "vi": "vie", "zh": "zho-CN", "zh-TW": "zho-TW",
}  # fmt: skip
TEXTS = {"zh": "common-voice/zh-CN.txt"}


@dataclass(slots=True)
class Language:
    """One language of the test."""

    code: str
    labels: list[str]
    text: str
    spelling: Spelling | None = None

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

    def row(self, name: str, chars: int) -> list[object]:
        return [name, chars, self.tried, 100 * self.right / self.tried, 1000 * self.cpu_s / self.tried]


def languages(data: Path | None, less: int) -> list[Language]:
    """The languages with their models, and text that these have not seen."""
    rows = [line.split("\t") for line in QUALITY.read_text("utf-8").splitlines()]
    found = [Language(code, labels.split(), text) for code, labels, text in rows]
    if data is None:
        bundled = available()
        models = load(bundled)
        for language in found:
            language.spelling = models.spelling if language.code in bundled else None
        return found
    training, tests = archive(data / "texts/texts.tar.zst"), archive(data / "test-texts/ntrex-128.tar.zst")
    for language in found:
        language.text = next(text for name, text in tests.items() if name.endswith(f"ref.{NTREX[language.code]}.txt"))
        language.spelling = spelling(language, training, less)
    return found


def archive(path: Path) -> dict[str, str]:
    """Text files of a tar.zst by their names."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with (
        path.open("rb") as packed,
        unpacker.stream_reader(packed) as raw,
        tarfile.open(fileobj=io.BytesIO(raw.read())) as files,
    ):
        members = ((member.name, files.extractfile(member)) for member in files)
        return {name: body.read().decode("utf-8", "replace") for name, body in members if body}


def spelling(language: Language, training: dict[str, str], less: int) -> Spelling | None:
    """Of a model trained as `scrapy train` does, from sentences and a frequency list."""
    code = language.code.partition("-")[0]
    wanted = (TEXTS.get(language.code, f"common-voice/{language.code}.txt"), f"udhr/{code}-")
    text = "".join(
        body[: TRAINING_CHARS // less] for name, body in training.items() if any(part in name for part in wanted)
    )
    lists = (body for name, body in training.items() if name.endswith((f"/{code}.tsv", f"FrequencyWords_{code}.txt")))
    rows = (line.split() for line in next(lists, "").splitlines()[: TRAINING_WORDS // less] if line[:1] != "#")
    words = {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}
    model = replace(train(code, sentences([text]), words), encodings=tuple(language.labels))
    return LanguageModels((model,)).spelling


def encoded(code: str, label: str, text: str) -> bytes:
    """*text* as it stood on pages in that encoding; characters that it has no room for are left out."""
    if code == "ro":
        pair = ("şţŞŢ", "șțȘȚ") if label == "iso-8859-16" else ("șțȘȚ", "şţŞŢ")
        text = text.translate(str.maketrans(*pair))
    if label == "windows-1258":
        text = "".join(map(_tone_apart, unicodedata.normalize("NFC", text)))
    return text.encode(codec_of(label) or "", "ignore")


def _tone_apart(letter: str) -> str:
    base, *marks = unicodedata.normalize("NFD", letter)
    tones = "".join(mark for mark in marks if mark in "\u0300\u0301\u0303\u0309\u0323")
    return unicodedata.normalize("NFC", base + "".join(mark for mark in marks if mark not in tones)) + tones


def ours(language: Language, body: bytes) -> str | None:
    return decode(body, None, language.labels, language.spelling).text


def by_chardet(language: Language, body: bytes, *, hinted: bool) -> str | None:
    names = [name.replace("_", "-") for name in codecs_of(language.labels) if name != "iso2022_jp"]
    hint = {"include_encodings": sorted({*names, "cp1252"})} if hinted else {}
    codec = codec_of(chardet.detect(body, compat_names=False, **hint)["encoding"])
    return body.decode(codec, "replace") if codec else None


METHODS = {
    "spiderling": ours,
    "chardet, encodings of the language": partial(by_chardet, hinted=True),
    "chardet, all encodings": partial(by_chardet, hinted=False),
}


def measure(tested: list[Language], chars: int, number: int) -> tuple[dict[str, Tally], dict[str, int]]:
    """Tallies by method; our misses by pair."""
    tallies = {name: Tally() for name in METHODS}
    misses: dict[str, int] = {}
    for language in tested:
        for label in language.labels:
            for sample in language.samples(chars, number):
                body = encoded(language.code, label, sample)
                truth = body.decode(codec_of(label) or "")
                for name, method in METHODS.items():
                    tally = tallies[name]
                    began = time.thread_time()
                    text = method(language, body)
                    tally.cpu_s += time.thread_time() - began
                    tally.tried += 1
                    tally.right += text == truth
                    if text != truth and name == "spiderling":
                        misses[f"{language.code} {label}"] = misses.get(f"{language.code} {label}", 0) + 1
    return tallies, misses


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
    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with (data / "pages/pages-dev.jsonl.zst").open("rb") as packed, unpacker.stream_reader(packed) as raw:
        yield from (json.loads(line)["html"].encode("latin-1") for line in io.TextIOWrapper(raw, "utf-8"))


def utf8_cost(data: Path | None, number: int, models: LanguageModels) -> tuple[int, int, float]:
    """Pages, those that were not read as UTF-8, and the median of the milliseconds."""
    harmed, costs = 0, []
    for body in utf8_pages(data, number):
        began = time.thread_time()
        found = decode(body, None, ("windows-1250",), models.spelling)
        costs.append(1000 * (time.thread_time() - began))
        harmed += found.text != body.decode("utf-8").removeprefix("\ufeff")
    return len(costs), harmed, statistics.median(costs)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer samples; ends within a minute")
    parser.add_argument("--data", type=Path, help="folder with texts/, test-texts/ and pages/")
    arguments = parser.parse_args()
    tested = languages(arguments.data, QUICK if arguments.quick else 1)
    pairs = sum(len(language.labels) for language in tested)
    print(f"{pairs} pairs of {len(tested)} languages; no labels\n")
    exact = 0.0
    rows: list[list[object]] = []
    for chars in SIZES[: 3 if arguments.data else 2]:
        tallies, misses = measure(tested, chars, 4 if arguments.quick else 25)
        rows += [tally.row(name, chars) for name, tally in tallies.items()]
        if chars == 1000:
            exact = 100 * tallies["spiderling"].right / tallies["spiderling"].tried
            worst = misses
    table(["method", "characters", "texts", "exact %", "ms a text"], rows)
    print("\nmissed at 1000 characters:", ", ".join(f"{pair} {count}" for pair, count in worst.items()) or "none")
    pages, harmed, ms = utf8_cost(arguments.data, 300 if arguments.quick else 5000, load(available()))
    print(f"{pages} pages in UTF-8: {harmed} harmed, median {ms:.3f} ms\n")
    result(pairs=pairs, exact_1000=round(exact, 2), utf8_harmed=harmed, ms_utf8=round(ms, 4))


if __name__ == "__main__":
    main()
