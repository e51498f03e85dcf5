"""Builds the bundled models:  python models/build.py [--texts DIR ...] [--seeds FILE] [CODE ...]

DIR holds the texts that languages.yaml names, or archives with them (ARCHIVES): sentences one a line
(common-voice/, hornmt/, bible-corpus/, udhr/, sona/, ud/) and frequency lists (unilex/, cc-by-sa/);
FILE is a table with the columns language, section, url.  models/texts adds what is hard to
come by.  The same input gives the same bytes.  A language whose texts are not there keeps
its model.  One Common Voice sentence in fifty is left out, so that tests can be made of
them: --held-out FILE writes these.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import tarfile
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import xxhash
import yaml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from models.spellings import both_serbian, latin_crimean_tatar, unmarked  # noqa: E402
from spiderling.base.files import zstd  # noqa: E402
from spiderling.languages.registry import CONTRAST, SEEDS, TRUSTED  # noqa: E402
from spiderling.text.boilerplate.rules import is_unspaced  # noqa: E402
from spiderling.text.ngrams import normalise  # noqa: E402
from spiderling.text.words import NOT_MEASURED, LanguageModel  # noqa: E402
from spiderling.training import MAX_WORDS, alphabet, first, save, sentences, train, unlisted  # noqa: E402

DATA = HERE.parent.parent / "shared" / "data"
SOURCES = {
    "common-voice": ("Mozilla Common Voice, sentences", "CC0-1.0"),
    "unilex": ("Unicode Unilex, frequency list", "Unicode-DFS-2016"),
    "hornmt": ("HornMT, sentences", "CC-BY-4.0"),
    "bible-corpus": ("Multilingual Bible Parallel Corpus", "CC0-1.0"),
    "udhr": ("Universal Declaration of Human Rights", "public domain"),
    "sona": ("State of the Nation addresses of South Africa, sentences", "CC-BY-4.0"),
    "ud": ("Universal Dependencies, sentences", "CC-BY-SA-4.0"),
    "cc-by-sa": ("FrequencyWords, from OpenSubtitles 2016 and 2018", "CC-BY-SA-4.0"),
}
ARCHIVES = ("texts.tar.zst", "more-texts.tar.zst")
SHARED_LICENCE = "cc-by-sa"
SHARED = {folder for folder, (_, licence) in SOURCES.items() if licence == "CC-BY-SA-4.0"}
LISTS = ("unilex", "cc-by-sa")
HELD_OUT = 50
HELD_OUT_SENTENCES = 30
HELD_OUT_CHARS = range(30, 200)
DRAWN_WORDS = 80_000
"""Words of the text that is made from a frequency list; chosen."""
LINE_WORDS = 10
"""Words of a line of that text; chosen."""
GOLDEN = 0.6180339887
"""Fraction of the golden ratio, whose multiples are spread evenly between 0 and 1."""
MAX_LIST_COUNT = 10**9
MAX_SEEDS = 400
TRUSTED_KINDS = ("news", "government", "universities", "education", "culture / history")
SCRIPTS = {
    "LATIN": "Latn", "CYRILLIC": "Cyrl", "GREEK": "Grek", "ARABIC": "Arab", "HEBREW": "Hebr", "DEVANAGARI": "Deva",
    "BENGALI": "Beng", "GUJARATI": "Gujr", "TAMIL": "Taml", "TELUGU": "Telu", "KANNADA": "Knda", "MALAYALAM": "Mlym",
    "SINHALA": "Sinh", "THAI": "Thai", "LAO": "Laoo", "KHMER": "Khmr", "MYANMAR": "Mymr", "ETHIOPIC": "Ethi",
    "ARMENIAN": "Armn", "GEORGIAN": "Geor", "ORIYA": "Orya",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Texts:
    """What a language's model is made of."""

    paths: tuple[str, ...]
    sentences: list[str]
    held_out: list[str]
    words: Counter[str]
    digest: str


def is_held_out(sentence: str) -> bool:
    """Whether a sentence is kept for tests."""
    return xxhash.xxh3_64_intdigest(sentence.encode(), seed=1) % HELD_OUT == 0


def read_all(places: Iterable[Path]) -> dict[str, bytes]:
    """Files by their path below 'texts', from directories or the archives in them."""
    found: dict[str, bytes] = {}
    for place in places:
        archives = [place / name for name in ARCHIVES if (place / name).is_file()]
        for archive in archives:
            with zstd.open(archive) as raw, tarfile.open(fileobj=raw, mode="r|") as tar:
                for member in tar:
                    if body := tar.extractfile(member):
                        found[member.name.partition("texts/")[2]] = body.read()
        if not archives:
            found |= {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*.t[xs][tv]")}
    return found


def texts_of(code: str, about: Mapping[str, Any], files: Mapping[str, bytes]) -> Texts | None:
    """The texts of a language; None when one of them is not there."""
    usual = (f"common-voice/{code}.txt", f"unilex/{code}.tsv")
    paths = tuple(about.get("texts") or (path for path in usual if path in files))
    if not paths or any(path not in files for path in paths):
        return None
    words: Counter[str] = Counter()
    limits = about.get("limits", {})
    lines, held_out = [], []
    for path in paths:
        text = unicodedata.normalize("NFC", files[path].decode("utf-8-sig"))
        if path.startswith(LISTS):
            words.update(frequencies(text))
            continue
        mine: list[str] = []
        for line in sentences([text]):
            (held_out if path.startswith("common-voice") and is_held_out(line) else mine).append(line)
        ends = accumulate(map(len, mine))
        lines += [line for line, end in zip(mine, ends, strict=True) if end <= limits.get(path, end)]
    if about.get("both_alphabets"):
        lines = sentences(both_serbian(lines))
    for option, spelling in (("also_latin", latin_crimean_tatar), ("also_unmarked", unmarked)):
        if about.get(option):
            lines = sentences([*lines, *map(spelling, lines)])
            for word, count in list(words.items()):
                words[spelling(word)] += count * (spelling(word) != word)
    digest = xxhash.xxh3_128_hexdigest(b"\0".join(files[path] for path in paths))
    return Texts(paths, lines, held_out, words, f"xxh3_128:{digest}")


def frequencies(text: str) -> Counter[str]:
    """The forms of a list with their counts, as shares of MAX_LIST_COUNT so that lists of any size can be added."""
    rows = [line.rsplit(None, 1) for line in text.splitlines() if line[:1] != "#"]
    counts = {form: int(count) for form, count in (row for row in rows if len(row) == 2)}
    total = max(1, sum(counts.values()))
    return Counter({form: count * MAX_LIST_COUNT // total for form, count in counts.items()})


def build(code: str, about: Mapping[str, Any], encodings: Mapping[str, list[str]], day: str) -> str:
    """Write one model; returns a line of report."""
    texts = texts_of(code, about, FILES)
    if texts is None:
        lacking = ", ".join(path for path in about.get("texts") or [f"texts of {code}"] if path not in FILES)
        return f"{code}  LEFT AS IT IS: {lacking} not in the directory of texts"
    model = model_of(code, texts.sentences, texts.words, about.get("drawn", DRAWN_WORDS))
    folders = dict.fromkeys(path.partition("/")[0] for path in texts.paths)
    legacy = about["encodings"]
    description = {
        **{key: about[key] for key in ("iso3", "name", "native")},
        "aliases": about.get("aliases", []),
        "scripts": about.get("scripts") or scripts(model.words),
        "tlds": about["tlds"],
        "neighbours": about["neighbours"],
        "encodings": encodings[legacy] if isinstance(legacy, str) else legacy,
        "origin": {
            "texts": [{"source": SOURCES[folder][0], "licence": SOURCES[folder][1]} for folder in folders],
            "sentences": len(texts.sentences),
            "listed": len(texts.words),
            "bytes": sum(len(FILES[path]) for path in texts.paths),
            "digest": texts.digest,
            "date": day,
        },
    }
    places = (HERE / SHARED_LICENCE, HERE) if SHARED & set(folders) else (HERE, HERE / SHARED_LICENCE)
    directory, other = (place / code for place in places)
    size = save(directory, description, model)
    (directory / SEEDS).write_text(seeds(code, about), encoding="utf-8")
    if (other / CONTRAST).exists():
        (other / CONTRAST).rename(directory / CONTRAST)
    shutil.rmtree(other, ignore_errors=True)
    return f"{code}  {size / 1000:.0f} kB  known {model.known}"


def model_of(code: str, lines: Sequence[str], listed: Mapping[str, int], number: int = DRAWN_WORDS) -> LanguageModel:
    """The model from *lines*, and from *listed*, a frequency list that counts as a text of *number* words.

    Some languages have a list that is better than their texts.
    """
    model = train(code, lines, drawn(listed, number))
    if not listed:
        return model
    if not model.spaced:
        plain = Counter({word: count for word, count in listed.items() if normalise(word) == f" {word} "})
        return replace(model, words=first(plain, MAX_WORDS))
    shares = (model.unlisted, unlisted(model.words, listed, model.words))
    return replace(model, unlisted=max((share for share in shares if share < NOT_MEASURED), default=NOT_MEASURED))


def drawn(listed: Mapping[str, int], number: int) -> list[str]:
    """Lines of *number* words together, in which words are as frequent as in the list *listed* (word -> count).

    The same list gives the same lines: word i stands in the cumulated counts at the
    fractional part of i times the golden ratio.
    """
    words = list(listed)
    total = sum(listed.values())
    between = "" if is_unspaced("".join(words[:1000])) else " "
    ends = list(accumulate(listed.values()))
    places = (int((index * GOLDEN) % 1 * total) for index in range(number if words else 0))
    text = [words[bisect_right(ends, place)] for place in places]
    return [between.join(text[start : start + LINE_WORDS]) for start in range(0, len(text), LINE_WORDS)]


def scripts(words: Mapping[str, int]) -> list[str]:
    """ISO 15924 codes of the scripts of at least a twentieth of the letters."""
    counts: Counter[str] = Counter()
    for letter in alphabet(words):
        counts[SCRIPTS.get(unicodedata.name(letter, "").partition(" ")[0], "Zyyy")] += 1
    return [script for script, count in counts.most_common() if script != "Zyyy" and count * 20 >= counts.total()]


def seeds(code: str, about: Mapping[str, Any]) -> str:
    """seeds.txt of a language: its Wikipedia, then the sections, the trusted kinds first."""
    names = about.get("seeds") or [str(about["name"]).lower()]
    rows = [row for row in SEED_ROWS if row[0] in names]
    text = (
        "# Start pages of the public list commoncrawl/web-languages (CC0-1.0), made by speakers of the language, and\n"
        f"# its Wikipedia.  '({TRUSTED})' marks kinds of pages that institutions edit.\n"
        f"# encyclopedia ({TRUSTED})\nhttps://{about.get('wikipedia', code)}.wikipedia.org/\n"
    )
    kinds = dict.fromkeys(row[1] for row in rows)
    for kind in sorted(kinds, key=lambda kind: kind not in TRUSTED_KINDS):
        urls = dict.fromkeys(row[2] for row in rows if row[1] == kind and row[2].startswith("http"))
        mark = f" ({TRUSTED})" if kind in TRUSTED_KINDS else ""
        text += f"# {kind}{mark}\n" + "".join(f"{url}\n" for url in list(urls)[:MAX_SEEDS])
    return text


def read_seeds(path: Path) -> list[list[str]]:
    """The table's rows."""
    with path.open(encoding="utf-8") as lines:
        table = csv.reader((line for line in lines if line[0] != "#"), delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row for row in table if len(row) == 3]


def held_out(languages: Mapping[str, Any]) -> Iterator[str]:
    """Rows of test sentences: code, tab, sentence."""
    for code, about in languages.items():
        texts = texts_of(code, about, FILES)
        fitting = [line for line in texts.held_out if len(line) in HELD_OUT_CHARS] if texts else []
        yield from (f"{code}\t{' '.join(line.split())}\n" for line in fitting[:HELD_OUT_SENTENCES])


def main() -> None:
    """Command line."""
    global FILES, SEED_ROWS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, action="append", metavar="DIR")
    parser.add_argument("--seeds", type=Path, default=DATA / "seeds" / "web-languages.tsv", metavar="FILE")
    parser.add_argument("--held-out", type=Path, metavar="FILE")
    parser.add_argument("codes", nargs="*")
    arguments = parser.parse_args()
    given = yaml.safe_load((HERE / "languages.yaml").read_text(encoding="utf-8"))
    languages = {code: given["languages"][code] for code in arguments.codes or given["languages"]}
    FILES, SEED_ROWS = read_all([HERE / "texts", *(arguments.texts or [DATA / "texts"])]), read_seeds(arguments.seeds)
    if arguments.held_out:
        arguments.held_out.write_text("".join(held_out(languages)), encoding="utf-8")
        return
    with Pool() as pool:
        work = partial(_build, encodings=given["encodings"], day=given["date"])
        for line in pool.imap(work, languages.items()):
            print(line, flush=True)


def _build(item: tuple[str, dict[str, Any]], encodings: Mapping[str, list[str]], day: str) -> str:
    return build(*item, encodings, day)


FILES: dict[str, bytes] = {}
SEED_ROWS: list[list[str]] = []

if __name__ == "__main__":
    main()
