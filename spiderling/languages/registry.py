"""Finds, names, groups and loads the languages that have a model.

A model is a directory with the language's code as name.
It is searched in turn in: the directories of ``SPIDERLING_MODELS``, the package
``spiderling.models`` (an egg), ``models/`` beside the package (a checkout).  In each, a
directory ``cc-by-sa`` holds the models whose texts have that licence.  Its files:

    language.yaml   code, iso3, name, native, aliases, scripts, tlds, neighbours, encodings, origin and licence,
                    spaced, known, unlisted, tokens, badness (word: mean, standard deviation, limit)
    words.txt       word<TAB>count, most frequent first
    contrast.txt    one word a line that a sister language lacks, made by people (not in every model; text/words.py);
                    characters, where words are not written between spaces
    ngrams.zst      counts of the character 1- to 4-grams, in which a space is a word boundary (text/ngrams.py)
    seeds.txt       one URL a line; the comment above names its kind (see `Seed`)

importlib.resources reads them, so a model may lie in a zip file.  The same model gives
the same bytes.
"""

from __future__ import annotations

import importlib.util
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spiderling.base.errors import BadInput
from spiderling.base.files import read_yaml
from spiderling.base.option_values import PREFIX, parse_tlds
from spiderling.base.options import Options
from spiderling.base.terminal import entries_of, nearest

if TYPE_CHECKING:  # a language is found by its name without the text chain, which takes half a second to import
    from importlib.abc import Traversable

    from spiderling.text import LanguageModel, LanguageModels

DESCRIPTION = "language.yaml"
WORDS = "words.txt"
CONTRAST = "contrast.txt"
NGRAMS = "ngrams.zst"
SEEDS = "seeds.txt"
TRUSTED = "trusted"


class Seed(NamedTuple):
    """A start page of a language."""

    url: str
    kind: str  # the section of the file that it stands in, such as news
    trusted: bool  # whether institutions edit such pages; the comment above then ends in '(trusted)'


def read_description(directory: Traversable) -> dict[str, Any]:
    """The values of language.yaml; raises BadInput."""
    try:
        given = read_yaml(directory.joinpath(DESCRIPTION).read_bytes())
    except (BadInput, OSError) as error:
        raise damage_error(directory.name, DESCRIPTION, error) from None
    if not isinstance(given, dict):
        raise damage_error(directory.name, DESCRIPTION, "it is no table")
    return given


def seeds_in(lines: Iterable[str]) -> Iterator[tuple[int, Seed]]:
    """(number of the line, seed) for each line with a URL; the seed's kind is the comment above it."""
    kind = ""
    for number, line in enumerate(map(str.strip, lines), 1):
        if line.startswith("#"):
            kind = line.lstrip("# ")
        elif line:
            name = kind.removesuffix(f"({TRUSTED})")
            yield number, Seed(line, name.strip(), name != kind)


def damage_error(code: str, name: str, reason: object) -> BadInput:
    """The error of a model file that cannot be used."""
    short = " ".join(str(reason).split())[:200]
    return BadInput(f"{name} of the model of {code} cannot be read ({short}); train it again.")


BIG_WEB_LANGUAGES = ("en", "de", "fr", "es", "ru", "pt", "it", "pl", "ja", "zh", "tr", "nl", "ar", "fa", "vi", "id")
"""Languages with the most pages on the web; chosen.  Every crawl recognises them (`to_recognise`)."""
GROUPS: Mapping[str, tuple[str, ...]] = {
    "hbs": ("bs", "hr", "sr", "cnr"),
    "kur": ("ku", "ckb"),
    "msa": ("id", "ms"),
    "nguni": ("xh", "zu", "ss", "nr"),
    "nor": ("nb", "nn"),
    "sotho": ("st", "nso", "tn"),
    "zho": ("zh", "yue"),
}
"""Code of a macrolanguage (ISO 639-3), or name of a group of close languages -> its languages, which may be accepted
together."""
GROUP_ONLY = {"bs": "hbs", "ms": "msa"}
"""Language that can hardly be told from others -> the group to accept in its place (docs/languages.md has figures)."""
_GROUP_NAMES = {
    "sh": "hbs",
    "serbo-croatian": "hbs",
    "montenegrin": "hbs",
    "cnr": "hbs",
    "no": "nor",
    "norwegian": "nor",
}
"""Other name, in lower case -> code of a group."""
_NEAR = 3  # most languages that the message about an unknown one proposes; chosen
_SHARED_LICENCE = "cc-by-sa"
_LISTS = ("aliases", "scripts", "tlds", "neighbours", "encodings")


@dataclass(frozen=True, slots=True)
class LanguageInfo:
    """The description of a language's model, without the model itself."""

    code: str  # ISO 639-1 where there is one, else ISO 639-3
    name: str
    iso3: str = ""
    native: str = ""
    aliases: tuple[str, ...] = ()  # further names and codes
    scripts: tuple[str, ...] = ()  # codes of ISO 15924
    tlds: tuple[str, ...] = ()  # national top-level domains, in Unicode; first that of its main country
    neighbours: tuple[str, ...] = ()  # codes of languages with which it is easily confused
    encodings: tuple[str, ...] = ()
    spaced: bool = True
    known: float = 1.0
    unlisted: float = 1.0  # see LanguageModel
    tokens: int = 0  # see LanguageModel
    profile: Mapping[str, tuple[float, float, float]] = field(default_factory=dict, repr=False)
    origin: Mapping[str, Any] = field(default_factory=dict, repr=False)
    directory: Traversable | None = field(default=None, repr=False, compare=False)

    def seeds(self) -> list[Seed]:
        """The model's seeds with their kinds, if it has any; raises BadInput."""
        return [seed for _, seed in seeds_in(self._text(SEEDS).splitlines())]

    def words(self) -> dict[str, int]:
        """Word -> count, the most frequent first; raises BadInput."""
        fields = self._text(WORDS, required=True).replace("\n", "\t").split("\t")[:-1]
        try:
            return dict(zip(fields[::2], map(int, fields[1::2]), strict=True))
        except ValueError:
            raise damage_error(self.code, WORDS, "expected lines of a word, a tab and a number") from None

    def model(self) -> LanguageModel:
        """Read the model; raises BadInput when a file is missing or damaged."""
        from spiderling.text import LanguageModel
        from spiderling.text.ngrams import unpack

        words = self.words()
        try:
            ngrams = unpack(self._place.joinpath(NGRAMS).read_bytes())
        except (OSError, ValueError) as error:
            raise damage_error(self.code, NGRAMS, error) from None
        return LanguageModel(
            code=self.code,
            ngrams=ngrams,
            words=words,
            profile=self.profile,
            stoplist=_stoplist(self, words),
            spaced=self.spaced,
            encodings=self.encodings,
            known=self.known,
            unlisted=self.unlisted,
            tokens=self.tokens,
            contrast=frozenset(self._text(CONTRAST).split()),
        )

    def _text(self, name: str, required: bool = False) -> str:
        """The text of the file *name*; '' if it is not there and not *required*."""
        path = self._place.joinpath(name)
        try:
            return str(path.read_text(encoding="utf-8")) if required or path.is_file() else ""
        except (UnicodeDecodeError, OSError) as error:
            raise damage_error(self.code, name, error) from None

    @property
    def _place(self) -> Traversable:
        assert self.directory is not None
        return self.directory


def codes_of() -> tuple[str, ...]:
    """The codes of all languages with a bundled model."""
    return tuple(_directories(""))


def available(dirs: str = "") -> dict[str, LanguageInfo]:
    """Code -> language; *dirs* is SPIDERLING_MODELS.  Of several models with one code the first place counts."""
    return {code: _info(directory) for code, directory in _directories(dirs).items()}


def find_languages(text: str, dirs: str = "") -> list[LanguageInfo]:
    """The languages that *text* names, such as 'cs,slk,German', each once; raises BadInput for one without a model."""
    places = _directories(dirs)
    wanted = entries_of(text)
    if not wanted:
        raise BadInput(f"no language is named; give codes such as {', '.join(places)} with -a lang=.")
    if all(part.lower() in places for part in wanted):  # by codes: no other model need be read
        return [_info(places[code]) for code in dict.fromkeys(part.lower() for part in wanted)]
    models = available(dirs)
    names = _names(models)
    return list({info.code: info for part in wanted for info in _find_named(part, names, models)}.values())


def to_recognise(accepted: Sequence[LanguageInfo], extra: str = "", dirs: str = "") -> list[str]:
    """Codes to tell apart: *accepted*, *extra*, and the neighbours and BIG_WEB_LANGUAGES that have a model."""
    models = _directories(dirs)
    wanted = [info.code for info in (*accepted, *(find_languages(extra, dirs) if extra.strip() else ()))]
    others = (*(code for info in accepted for code in info.neighbours), *BIG_WEB_LANGUAGES)
    return list(dict.fromkeys((*wanted, *(code for code in others if code in models))))


def only_as_group(accepted: Sequence[LanguageInfo]) -> list[str]:
    """A warning for each of the *accepted* languages that can hardly be told from others, which are not accepted."""
    codes = {info.code for info in accepted}
    warnings = []
    for info in accepted:
        group = GROUP_ONLY.get(info.code, "")
        twins = [member for member in GROUPS.get(group, ()) if member not in (info.code, "cnr")]
        if not codes.issuperset(twins):
            named = " and ".join(f"{twin.name} ({twin.code})" for twin in find_languages(",".join(twins)))
            warnings.append(
                f"{info.name} ({info.code}) is hard to tell from {named}: half of its pages and more will be taken for "
                f"those languages and dropped. Accept them together: -a lang={group}."
            )
    return warnings


def spell_out(options: Options, accepted: Sequence[LanguageInfo], documents: Iterable[str]) -> Options:
    """The options as the frontier takes them: codes of languages, names of top-level domains, usable document kinds."""
    national = [tld for info in accepted for tld in info.tlds]
    if "national" in options.tlds and not national:
        raise BadInput(
            f"{PREFIX}TLDS is {options.tlds!r}, but the model of {options.lang} names no national top-level "
            "domain; write them, such as -a tlds=cz,sk."
        )
    only = parse_tlds(options.tlds, "TLDS", national)
    first = parse_tlds(options.prefer_tlds, "PREFER_TLDS", national) or ()
    return replace(
        options,
        lang=",".join(info.code for info in accepted),
        documents=",".join(sorted(documents)),
        tlds="all" if only is None else ",".join(sorted(only)),
        prefer_tlds=",".join(sorted(first)),
    )


def load(codes: Iterable[str], dirs: str = "") -> LanguageModels:
    """The models of *codes*; raises BadInput for an unknown code."""
    from spiderling.text import LanguageModels

    return LanguageModels(tuple(info.model() for info in find_languages(",".join(codes), dirs)))


def _roots(dirs: str) -> list[Traversable]:
    roots: list[Traversable] = []
    for name in filter(None, (part.strip() for part in dirs.split(":"))):
        path = Path(name).expanduser()
        if not path.is_dir():
            raise BadInput(f"SPIDERLING_MODELS names {name}, which is not a directory.")
        roots.append(path)
    if importlib.util.find_spec("spiderling.models"):
        roots.append(files("spiderling.models"))
    roots.append(Path(__file__).parents[2] / "models")
    both = (place for root in roots for place in (root, root.joinpath(_SHARED_LICENCE)))
    return [place for place in both if place.is_dir()]


def _directories(dirs: str) -> dict[str, Traversable]:
    """Code -> directory of its model; reads no file."""
    found: dict[str, Traversable] = {}
    for root in _roots(dirs):
        for directory in sorted(root.iterdir(), key=lambda entry: entry.name):
            if directory.joinpath(DESCRIPTION).is_file():
                found.setdefault(directory.name, directory)
    return found


def _info(directory: Traversable) -> LanguageInfo:
    given = read_description(directory)
    try:
        badness = (given.get("badness") or {}).items()
        return LanguageInfo(
            code=directory.name,
            name=str(given.get("name") or directory.name),
            iso3=str(given.get("iso3") or ""),
            native=str(given.get("native") or ""),
            **{key: tuple(map(str, given.get(key) or ())) for key in _LISTS},
            spaced=bool(given.get("spaced", True)),
            known=float(given.get("known") or 1.0),
            unlisted=float(given.get("unlisted", 1.0)),
            tokens=int(given.get("tokens") or 0),
            profile={str(word): (float(mean), float(sd), float(limit)) for word, (mean, sd, limit) in badness},
            origin=dict(given.get("origin") or {}),
            directory=directory,
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise damage_error(directory.name, DESCRIPTION, error) from None


def _names(models: Mapping[str, LanguageInfo]) -> dict[str, list[LanguageInfo]]:
    """Name of a language or group, in lower case -> languages; a code always means its own language."""
    names: dict[str, list[LanguageInfo]] = {}
    for info in models.values():
        names |= {name.lower(): [info] for name in (*info.aliases, info.native, info.name) if name}
    names |= {info.iso3: [info] for info in models.values() if info.iso3}
    groups = {code: [models[member] for member in members if member in models] for code, members in GROUPS.items()}
    names |= groups
    names |= {name: groups[code] for name, code in _GROUP_NAMES.items()}
    return names | {info.code: [info] for info in models.values()}


def _find_named(
    part: str, names: Mapping[str, list[LanguageInfo]], models: Mapping[str, LanguageInfo]
) -> list[LanguageInfo]:
    found = names.get(part.lower())
    if not found:
        meant = " or ".join(f"{info.code} ({info.name})" for info in _near(part.lower(), names, models)[:_NEAR])
        meant = f" Did you mean {meant}?" if meant else ""
        code = part.lower() if part.isascii() and part.isalpha() and 2 <= len(part) <= 3 else "CODE"
        raise BadInput(
            f"there is no model for the language {part!r}.{meant} `scrapy languages` lists the {len(models)} that have "
            f"one; make one from plain text with: scrapy train {code} text.txt --out my-models"
        )
    return found


def _near(part: str, names: Mapping[str, list[LanguageInfo]], models: Mapping[str, LanguageInfo]) -> list[LanguageInfo]:
    """Languages that *part* may mean: by the TLD of a country (cz), a tag with a region (pt-BR), or a misspelt name."""
    country = [info for info in models.values() if info.tlds[:1] == (part,)]
    tagged = names.get(part.replace("_", "-").partition("-")[0], [])
    similar = [info for name in nearest(part, names, most=3) for info in names[name]]
    certain = country or tagged  # a short code is similar to many others
    return list({info.code: info for info in certain or similar}.values())


def _stoplist(info: LanguageInfo, words: Mapping[str, int]) -> frozenset[str]:
    """The justext package's list for the language, else the most frequent words of the model."""
    if not info.spaced:
        return frozenset()
    name = unicodedata.normalize("NFD", info.name).encode("ascii", "ignore").decode().replace(" ", "_")
    try:
        listed = files("justext").joinpath("stoplists").joinpath(f"{name}.txt").read_text(encoding="utf-8")
    except (OSError, ModuleNotFoundError):
        from spiderling.text.quality import stoplist_of

        return stoplist_of(words, info.tokens or sum(words.values()))
    return frozenset(listed.lower().split())
