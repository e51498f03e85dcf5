"""Makes a language model from lines or files of plain text, and checks it on held-out lines."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from pathlib import Path
from typing import Any

import xxhash
import yaml

from spiderling.base.errors import BadInput
from spiderling.base.files import part_of
from spiderling.base.terminal import progress_bar
from spiderling.languages import BIG_WEB_LANGUAGES, GROUPS, LanguageInfo, available
from spiderling.languages.registry import CONTRAST, DESCRIPTION, NGRAMS, WORDS
from spiderling.text.boilerplate.rules import is_unspaced
from spiderling.text.encoding.detect import decode
from spiderling.text.encoding.labels import codec_of, encodings_for
from spiderling.text.language import LanguageModels
from spiderling.text.ngrams import ORDER, NgramCounts, count_ngrams, normalise, pack
from spiderling.text.quality import build_profile, stoplist_of
from spiderling.text.words import NOT_MEASURED, LanguageModel, short_chars

MAX_NGRAMS = 40_000  # n-grams of a model for each alphabet; chosen
MAX_WORDS = 5_000  # words of a model's word list; chosen
MAX_CHARS = 500_000  # characters of text that a model is made from; chosen: more change nothing
_DOCUMENT_WORDS = 500  # words of a stretch of text that counts as one document of the profile; chosen: a short article
_HELD_OUT = 10  # one of this many lines is held out; chosen
_MIN_HELD_OUT_WORDS = 30  # held-out short words by which a share is measured; chosen


def sentences(texts: Iterable[str]) -> list[str]:
    """The lines of *texts* with letters, each once, in pseudo-random order: that of their hashes."""
    lines = {line.strip() for text in texts for line in text.splitlines()}
    return sorted((line for line in lines if any(map(str.isalpha, line))), key=_shuffle_key)


def train(code: str, lines: Sequence[str], further: Sequence[str] = ()) -> LanguageModel:
    """The model of the language *code* from *lines*, sentences or paragraphs (see `sentences`).

    *further* lines are counted with them, beyond MAX_CHARS too, and are not held out.
    """
    written = [line for line, end in zip(lines, accumulate(map(len, lines)), strict=True) if end <= MAX_CHARS]
    lines = [*written, *further]
    texts = list(map(normalise, lines))
    spaced = not is_unspaced(" ".join(lines[:1000]))
    ngrams = _ngrams(texts)
    words = _words(texts)
    held_out = _words(map(normalise, split(written)[1]))
    frequent = first(words if spaced else _pairs(ngrams), MAX_WORDS)
    return LanguageModel(
        code,
        ngrams,
        frequent,
        build_profile(_documents(texts)) if spaced else {},
        stoplist_of(frequent, words.total()) if spaced else frozenset(),
        spaced,
        known=_measure_known(lines),
        unlisted=unlisted(frequent, held_out, first(words - held_out, MAX_WORDS)) if spaced else NOT_MEASURED,
        tokens=words.total(),
    )


def _pairs(ngrams: NgramCounts) -> Counter[str]:
    """Word -> count in a language without spaces: all 2-grams (most Chinese words have two letters)."""
    return Counter({gram: count for gram, count in ngrams.as_dict().items() if len(gram) == 2 and " " not in gram})


def _words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in text.split())


def _ngrams(texts: Sequence[str]) -> NgramCounts:
    return count_ngrams(texts, ORDER).first(MAX_NGRAMS)


def _measure_known(lines: Sequence[str]) -> float:
    """`LanguageModel.known`: share of n-grams in held-out *lines* that are usual in the other lines."""
    rest, test = split(lines)
    if not rest or not test:
        return 1.0
    ngrams = _ngrams(list(map(normalise, rest)))
    trial = LanguageModels((LanguageModel("", ngrams, {}, {}, spaced=not is_unspaced(" ".join(rest[:1000]))),))
    return max(0.01, round(trial.usual_share("", test), 3))


def unlisted(frequent: Mapping[str, int], tried: Mapping[str, int], kept: Collection[str]) -> float:
    """`LanguageModel.unlisted`: share of the short words among *tried* (word -> count) that are not in *kept*.

    The *frequent* words of the model tell which are short.  Fewer than MAX_WORDS are too few to tell anything.
    """
    max_chars = short_chars(frequent) if len(frequent) >= MAX_WORDS else 0
    short = {word: count for word, count in tried.items() if len(word) <= max_chars}
    total = sum(short.values())
    if total < _MIN_HELD_OUT_WORDS:
        return NOT_MEASURED
    return round(sum(count for word, count in short.items() if word not in kept) / total, 3)


def held_out_check(code: str, lines: Sequence[str], rivals: Iterable[LanguageModel]) -> tuple[int, Counter[str]]:
    """Train on nine of ten *lines*, and tell the others from the languages of *rivals*.

    Returns how many lines were tried, and how many of them were taken for which wrong language.
    """
    rest, test = split(lines)
    models = LanguageModels((train(code, rest), *(rival for rival in rivals if rival.code != code)))
    guesses = models.identify(test)
    named = [name for name in (guesses.nearest([row]) for row in range(len(test))) if name]
    return len(named), Counter(name for name in named if name != code)


def split(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """(lines to train on, held-out lines); the same lines are always held out."""
    test = [line for line in lines if _shuffle_key(line)[0] % _HELD_OUT == 0]
    return [line for line in lines if _shuffle_key(line)[0] % _HELD_OUT], test


def alphabet(words: Mapping[str, int]) -> str:
    """Letters of *words* (word -> count), the most frequent first, without those rarer than one in 2,000."""
    letters = Counter[str]()
    for word, count in words.items():
        for letter in word:
            letters[letter] += count
    return "".join(letter for letter, count in letters.most_common() if count * 2000 > letters.total())


def _shuffle_key(line: str) -> tuple[int, str]:
    return xxhash.xxh3_64_intdigest(line.encode("utf-8", "replace")), line


def first(counts: Counter[str], number: int) -> dict[str, int]:
    """The *number* most frequent words, equal ones in the order of code points."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number])


def _documents(texts: Sequence[str]) -> list[list[str]]:
    """The words in stretches of _DOCUMENT_WORDS or more; a shorter last one only if there is no other."""
    documents: list[list[str]] = [[]]
    for text in texts:
        documents[-1] += text.split()
        if len(documents[-1]) >= _DOCUMENT_WORDS:
            documents.append([])
    return documents[:-1] or documents


MIN_BYTES = 5_000  # bytes of text that a model needs at least; chosen, as are the constants below without a source
GOOD_BYTES = 50_000  # bytes of text below which the report warns (SpiderLing's manual)
_MIN_LINES = 20  # different lines that a model needs at least
_FREQUENT_WORDS = 250  # words of a model's word list, at least (Suchomel 2017, 2.1)
_SAMPLE_LINES = 1000  # lines that are searched for text in other languages
_LEGACY = ("windows-1250", "windows-1251", "windows-1252", "windows-1254", "windows-1256", "windows-1257", "gb18030")
"""Encodings to guess from for a text that is not UTF-8, in a language without a model."""
_OWN_SHARE = 0.7  # least known share of a line that counts as in another language
_FOREIGN_SHARE = 0.05  # share of such lines at which the report warns
_TWIN_SHARE = 0.8  # share of such lines at which the two languages can hardly be told apart
_TOLD_APART = 0.9  # share of recognised held-out lines below which the report warns
_MARKUP = re.compile(r"</?(?:html|head|body|div|p|br|span|a|li|td|script|style|h[1-6])\b[^<>]*>", re.I)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The model that the user asks for."""

    code: str
    paths: Sequence[Path]
    out: Path  # directory in which the model's directory is made
    neighbours: Sequence[str] = ()
    name: str = ""
    encodings: Sequence[str] = ()  # labels of legacy encodings; empty: those that can encode the alphabet
    force: bool = False  # replace the model in `out`, and train in spite of foreign text
    dirs: str = ""  # the option SPIDERLING_MODELS


def make_model(wanted: ModelRequest) -> str:
    """Train, check and write the model ``out/code``; returns the report.  Raises BadInput."""
    with progress_bar("steps", 4) as bar:
        bar.set_description("reading")
        own = [str(wanted.out)] if (wanted.out / wanted.code / DESCRIPTION).exists() else []
        known = available(":".join([*own, wanted.dirs]))
        _check(wanted, known)
        old = known.get(wanted.code)
        texts = [_read(path, old) for path in wanted.paths]
        size = sum(len(text.encode()) for text in texts)
        lines = sentences(texts)
        if size < MIN_BYTES or len(lines) < _MIN_LINES:
            raise BadInput(
                f"{', '.join(map(str, wanted.paths))}: {size} bytes in {len(lines)} different lines are too little for "
                f"a model; give at least {MIN_BYTES} bytes (better {GOOD_BYTES}) in {_MIN_LINES} lines."
            )
        bar.update()
        bar.set_description("looking for lines in other languages")
        foreign = _foreign(wanted, lines, known)
        bar.update()
        bar.set_description("counting")
        model = train(wanted.code, lines)
        description = _description(wanted, old, texts, model)
        written = save(wanted.out / wanted.code, description, model)
        bar.update()
        bar.set_description("checking on held-out lines")
        rivals = [known[code].model() for code in description["neighbours"] or known if code in known]
        tried, wrong = held_out_check(wanted.code, lines, rivals)
        bar.update()
    report = [
        f"Model of {model.code} from {size / 1000:.0f} kB of text, written to {wanted.out / wanted.code} "
        f"({written / 1000:.0f} kB).",
        f"Frequent words: {', '.join(list(model.words)[:20])}",
        f"Alphabet: {alphabet(model.words)}",
        f"Legacy encodings: {', '.join(description['encodings']) or 'none has room for the alphabet'}",
    ]
    if size < GOOD_BYTES:
        report.append(f"WARNING: less than {GOOD_BYTES // 1000} kB of text; it works, more text makes it surer.")
    if model.spaced and len(model.words) < _FREQUENT_WORDS:
        report.append(
            f"WARNING: the text has {len(model.words)} different words; a model needs the {_FREQUENT_WORDS} most "
            "frequent ones of the language at least, so what follows says little. Give more running text."
        )
    return "\n".join([*report, *foreign, *_confusion(tried, wrong, model)])


def _check(wanted: ModelRequest, known: Mapping[str, LanguageInfo]) -> None:
    code = wanted.code
    if not (code.isascii() and code.isalpha() and code.islower() and 2 <= len(code) <= 3):
        raise BadInput(f"{code!r} is not an ISO 639 code; give two or three small letters such as cs or hsb.")
    same = next((info for info in known.values() if code == info.iso3 != info.code), None)
    if same:
        raise BadInput(f"{code} is {same.name}, which goes by {same.code} here; say: scrapy train {same.code} ...")
    if code in GROUPS:
        raise BadInput(f"{code} is a group of languages ({', '.join(GROUPS[code])}); train one of them.")
    if (wanted.out / code / DESCRIPTION).exists() and not wanted.force:
        raise BadInput(
            f"there is a model in {wanted.out / code} already; say --force to replace it by one from all of the texts "
            "that you give, or name another directory with --out and put that into SPIDERLING_MODELS, where it hides "
            "this one."
        )
    for neighbour in wanted.neighbours:
        if neighbour not in known:
            raise BadInput(f"--neighbours: there is no model of {neighbour!r}; there are {', '.join(known)}.")
    for label in wanted.encodings:
        if codec_of(label) is None:
            raise BadInput(f"--encodings: {label!r} is not an encoding; give labels such as windows-1250, koi8-r.")


def _read(path: Path, old: LanguageInfo | None) -> str:
    """The text of a file, in NFC as most web pages are.

    Raises BadInput for a file that is no plain UTF-8; an *old* model of the language helps to name its encoding.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}); give files of plain text.") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        spelling = LanguageModels((old.model(),)).spelling if old else None
        found = decode(data[:100_000], None, old.encodings if old else _LEGACY, spelling).detected
        meant = f"it may be in {found}; " if found and found != "utf-8" else ""
        raise BadInput(
            f"{path} is not UTF-8 text (byte {error.start}); {meant}convert it first, e.g. with: "
            f"iconv -f {found or 'ENCODING'} -t utf-8."
        ) from None
    if "\0" in text or text.count("\ufffd") * 100 > len(text):
        raise BadInput(f"{path} is not plain text, or was converted with losses; give files of plain UTF-8 text.")
    if 100 * len("".join(_MARKUP.findall(text))) > len(text):
        raise BadInput(
            f"{path} is HTML rather than plain text; give the text alone (`scrapy page FILE -a lang=...` shows what a "
            "page's text is)."
        )
    return unicodedata.normalize("NFC", text)


def _foreign(wanted: ModelRequest, lines: Sequence[str], known: Mapping[str, LanguageInfo]) -> list[str]:
    """Warnings about lines in other languages with a model; raises BadInput when most lines are in one of them."""
    rivals = dict.fromkeys((*wanted.neighbours, *BIG_WEB_LANGUAGES)) if wanted.neighbours else known
    others = LanguageModels(tuple(known[code].model() for code in rivals if code in known and code != wanted.code))
    own = LanguageModels((known[wanted.code].model(),)) if wanted.code in known else LanguageModels(())
    sample = [line for line in lines[:_SAMPLE_LINES] if any(map(str.isalpha, line))]
    guesses = others.identify(sample)
    mine = own.identify(sample)
    sure = [(row, code) for row, code in enumerate(guesses.sure()) if code]
    found: dict[str, list[str]] = {}
    for row, code in sure:
        share = guesses.known_share(code, [row])
        if share >= _OWN_SHARE and not (own.codes and mine.known_share(wanted.code, [row]) >= share):
            found.setdefault(code, []).append(sample[row])
    warnings = []
    for code, examples in sorted(found.items(), key=lambda item: -len(item[1])):
        share = len(examples) / len(sure)
        name = known[code].name
        if share >= _TWIN_SHARE and not wanted.force and wanted.code in known:
            raise BadInput(
                f"{share:.0%} of the lines are {name} ({code}) rather than {known[wanted.code].name}; is the code "
                f"right? Say --force to train {wanted.code} from them all the same."
            )
        if share >= _TWIN_SHARE:
            warnings.append(f"WARNING: the text is hard to tell from {name}: {share:.0%} of the lines could be {code}.")
        elif share >= _FOREIGN_SHARE:
            warnings.append(
                f"WARNING: {share:.0%} of the lines look like {name} ({code}), such as: {examples[0][:80]!r}; "
                f"if they are {name}, take them out and train again."
            )
    return warnings


def _description(
    wanted: ModelRequest, old: LanguageInfo | None, texts: Sequence[str], model: LanguageModel
) -> dict[str, Any]:
    """The values of language.yaml; those of an *old* model of the language are kept."""
    if old is None:
        code = model.code
        encodings = encodings_for(alphabet(model.words))
        old = LanguageInfo(code, code, iso3=code if len(code) == 3 else "", encodings=encodings)
    return {
        "iso3": old.iso3,
        "name": wanted.name or old.name,
        "native": old.native,
        "aliases": list(old.aliases),
        "scripts": list(old.scripts),
        "tlds": list(old.tlds),
        "neighbours": list(wanted.neighbours or old.neighbours),
        "encodings": list(wanted.encodings or old.encodings),
        "origin": {
            "texts": [{"source": path.name, "licence": "unknown: state it here"} for path in wanted.paths],
            "bytes": sum(len(text.encode()) for text in texts),
            "digest": f"xxh3_128:{xxhash.xxh3_128_hexdigest(chr(0).join(texts).encode())}",
            "date": date.today().isoformat(),
        },
    }


def _confusion(tried: int, wrong: Counter[str], model: LanguageModel) -> list[str]:
    """Lines of the report about `held_out_check`."""
    if not tried:
        return []
    right = tried - wrong.total()
    share = right / tried
    lines = [f"Check: {right} of {tried} held-out lines recognised ({share:.1%})."]
    lines += [f"  taken for {code}: {count}" for code, count in wrong.most_common()]
    if share < _TOLD_APART and wrong:
        twin = wrong.most_common(1)[0][0]
        lines.append(
            f"WARNING: {model.code} and {twin} are hard to tell apart; give more text, or accept both with "
            f"-a lang={model.code},{twin}."
        )
    return [*lines, f"Share of usual 4-grams in held-out text: {model.known:.2f}."]


def save(directory: Path, description: Mapping[str, Any], model: LanguageModel) -> int:
    """Write a model's files but its seeds, with values of *description*; returns their bytes.  Raises BadInput."""
    values = {
        "code": model.code,
        **description,
        "spaced": model.spaced,
        "known": model.known,
        "unlisted": model.unlisted,
        "tokens": model.tokens,
        "badness": {word: list(expected) for word, expected in model.profile.items()},
    }
    document = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=120, default_flow_style=None)
    table = "".join(f"{word}\t{count}\n" for word, count in model.words.items())
    parts = {DESCRIPTION: document.encode(), WORDS: table.encode(), NGRAMS: pack(model.ngrams)}
    if model.contrast:
        parts[CONTRAST] = "".join(f"{word}\n" for word in sorted(model.contrast)).encode()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in parts.items():
            part_of(directory / name).write_bytes(data)
        for name in parts:  # when all are there: a full disk leaves the former model whole
            part_of(directory / name).replace(directory / name)
    except OSError as error:
        for name in parts:
            with suppress(OSError):
                part_of(directory / name).unlink()
        reason = f"the model cannot be written to {directory} ({error.strerror})"
        raise BadInput(f"{reason}; name another directory with --out.") from None
    return sum(map(len, parts.values()))
