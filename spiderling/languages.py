"""Language models as files: where they are found, how they are read and written.

A model is a directory named by its code:

    language.yaml   code, iso3, name, native, tlds, neighbours, encodings, origin and licence, spaced, known, badness
    words.txt       word<TAB>count, most frequent first
    ngrams.gz       the same for character n-grams (a space is a word boundary), gzip-compressed
    seeds.txt       one URL a line, # comments

Searched in this order: the directories of ``SPIDERLING_MODELS``, the package
``spiderling.models`` (an egg), ``models/`` beside the package (a checkout).  All
reading goes through importlib.resources, so a model may lie in a zip file.
"""

from __future__ import annotations

import difflib
import gzip
import importlib.util
import zlib
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from spiderling.errors import BadInput
from spiderling.text.language import LanguageModel, LanguageModels
from spiderling.text.training import stoplist_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.abc import Traversable

BIG_WEB_LANGUAGES = ("en", "de", "fr", "es", "ru", "pt", "it", "pl", "ja", "zh", "tr", "nl", "ar", "fa", "vi", "id")


@dataclass(frozen=True, slots=True)
class LanguageInfo:
    """One model's description; the model itself is read by `load`."""

    code: str
    """ISO 639-1 where there is one, else ISO 639-3."""
    name: str
    iso3: str = ""
    native: str = ""
    tlds: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    """Codes of the languages it is easily taken for."""
    encodings: tuple[str, ...] = ()
    spaced: bool = True
    known: float = 1.0
    """See LanguageModel."""
    profile: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    origin: Mapping[str, Any] = field(default_factory=dict, repr=False)
    directory: Traversable | None = field(default=None, repr=False, compare=False)

    def seeds(self) -> list[str]:
        """The model's seed URLs."""
        lines = (line.strip() for line in _read(self, "seeds.txt", "").splitlines())
        return [line for line in lines if line and not line.startswith("#")]

    def words(self) -> dict[str, int]:
        """Word forms with their counts, most frequent first."""
        return _counts(_read(self, "words.txt"), f"{self.code}/words.txt")

    def model(self) -> LanguageModel:
        """The model; raises BadInput when a file is missing or damaged."""
        words = self.words()
        stoplist = _stoplist(self, words)
        return LanguageModel(
            self.code, _ngrams(self), words, self.profile, stoplist, self.spaced, self.encodings, self.known
        )


def available(dirs: str = "") -> dict[str, LanguageInfo]:
    """All models by code; a directory named earlier hides the same code further on."""
    found: dict[str, LanguageInfo] = {}
    for root in _roots(dirs):
        for directory in sorted(root.iterdir(), key=lambda entry: entry.name):
            description = directory.joinpath("language.yaml")
            if directory.name not in found and description.is_file():
                found[directory.name] = _info(directory, description)
    return found


def resolve(text: str, dirs: str = "") -> list[LanguageInfo]:
    """The languages that 'cs,slk,German' names, each once.

    Raises BadInput for one without a model, with near matches and how to train one.
    """
    models = available(dirs)
    names = {name.lower(): info for info in models.values() for name in (info.name, info.native, info.iso3, info.code)}
    names.pop("", None)
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    if not wanted:
        raise BadInput(f"no language is named; give codes such as {', '.join(models)} with -a lang=.")
    return list({info.code: info for info in (_named(part, names, models) for part in wanted)}.values())


def to_recognise(accepted: Sequence[LanguageInfo], extra: str = "", dirs: str = "") -> list[str]:
    """Codes to tell apart: the accepted ones, *extra*, their neighbours and the big languages of the web.

    Neighbours and big languages count as far as they have a model.
    """
    models = available(dirs)
    wanted = [info.code for info in (*accepted, *(resolve(extra, dirs) if extra.strip() else ()))]
    wanted += [code for info in accepted for code in info.neighbours if code in models]
    wanted += [code for code in BIG_WEB_LANGUAGES if code in models]
    return list(dict.fromkeys(wanted))


def load(codes: Iterable[str], dirs: str = "") -> LanguageModels:
    """The models of *codes*, ready to tell them apart; raises BadInput for an unknown code."""
    return LanguageModels(tuple(info.model() for info in resolve(",".join(codes), dirs)))


def save(directory: Path, description: Mapping[str, Any], model: LanguageModel, seeds: str = "") -> int:
    """Write a model's directory; returns its size in bytes.  *description* is the rest of language.yaml."""
    profile = {word: list(values) for word, values in model.profile.items()}
    document = {
        "code": model.code,
        **description,
        "spaced": model.spaced,
        "known": model.known,
        "badness": profile,
    }
    parts = {
        "language.yaml": yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=120).encode(),
        "words.txt": _table(model.words),
        # without a time stamp, so that the same text gives the same file
        "ngrams.gz": gzip.compress(_table(model.ngrams), mtime=0),
        "seeds.txt": seeds.encode(),
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in parts.items():
            if data or not (directory / name).exists():
                (directory / name).write_bytes(data)
    except OSError as error:
        reason = f"the model cannot be written to {directory} ({error.strerror})"
        raise BadInput(f"{reason}; name another directory with --out.") from None
    return sum(map(len, parts.values()))


def _roots(dirs: str) -> list[Traversable]:
    roots: list[Traversable] = []
    for name in filter(None, (part.strip() for part in dirs.split(":"))):
        path = Path(name).expanduser()
        if not path.is_dir():
            raise BadInput(f"SPIDERLING_MODELS names {name}, which is not a directory.")
        roots.append(path)
    if importlib.util.find_spec("spiderling.models"):
        roots.append(files("spiderling.models"))
    beside = Path(__file__).parent.parent / "models"
    if beside.is_dir():
        roots.append(beside)
    return roots


def _info(directory: Traversable, description: Traversable) -> LanguageInfo:
    where = f"{directory.name}/language.yaml"
    try:
        given = yaml.safe_load(description.read_text(encoding="utf-8"))
        profile = {str(word): (float(mean), float(sd)) for word, (mean, sd) in given.get("badness", {}).items()}
        return LanguageInfo(
            code=directory.name,
            name=str(given.get("name") or directory.name),
            iso3=str(given.get("iso3") or ""),
            native=str(given.get("native") or ""),
            tlds=tuple(map(str, given.get("tlds") or ())),
            neighbours=tuple(map(str, given.get("neighbours") or ())),
            encodings=tuple(map(str, given.get("encodings") or ())),
            spaced=bool(given.get("spaced", True)),
            known=float(given.get("known") or 1.0),
            profile=profile,
            origin=dict(given.get("origin") or {}),
            directory=directory,
        )
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadInput(f"the model description {where} cannot be read ({reason}); train the model again.") from None


def _named(part: str, names: Mapping[str, LanguageInfo], models: Mapping[str, LanguageInfo]) -> LanguageInfo:
    info = names.get(part.lower())
    if info is None:
        near = difflib.get_close_matches(part.lower(), names, n=3, cutoff=0.6)
        meant = " or ".join(f"{names[name].code} ({names[name].name})" for name in near)
        meant = f" Did you mean {meant}?" if meant else ""
        raise BadInput(
            f"there is no model for the language {part!r}.{meant} There are models for {', '.join(models)}; "
            f"make one from plain text with: scrapy train {part.lower()[:3]} text.txt"
        )
    return info


def _read(info: LanguageInfo, name: str, missing: str | None = None) -> str:
    assert info.directory is not None
    try:
        return str(info.directory.joinpath(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        if missing is not None:
            return missing
        raise BadInput(f"the model of {info.code} has no {name}; train it again.") from None
    except (UnicodeDecodeError, OSError) as error:
        raise BadInput(f"{name} of the model of {info.code} cannot be read ({error}); train it again.") from None


def _ngrams(info: LanguageInfo) -> dict[str, int]:
    assert info.directory is not None
    try:
        text = gzip.decompress(info.directory.joinpath("ngrams.gz").read_bytes()).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BadInput(f"ngrams.gz of the model of {info.code} cannot be read ({error}); train it again.") from None
    return _counts(text, f"{info.code}/ngrams.gz")


def _counts(text: str, where: str) -> dict[str, int]:
    rows = [line.split("\t") for line in text.split("\n") if line]
    try:
        return {form: int(count) for form, count in rows}
    except ValueError:
        raise BadInput(f"{where} is damaged: expected lines of a form, a tab and a number; train it again.") from None


def _table(counts: Mapping[str, int]) -> bytes:
    return "".join(f"{key}\t{count}\n" for key, count in counts.items()).encode()


def _stoplist(info: LanguageInfo, words: Mapping[str, int]) -> frozenset[str]:
    """The justext package's list for the language, else the most frequent words of the model."""
    if not info.spaced:
        return frozenset()
    try:
        stoplists = files("justext").joinpath("stoplists")
        listed = stoplists.joinpath(f"{info.name.replace(' ', '_')}.txt").read_text(encoding="utf-8")
    except (OSError, ModuleNotFoundError):
        return stoplist_of(words, int(info.origin.get("tokens", sum(words.values()))))
    return frozenset(word.lower() for word in listed.split())
