"""The files of a language model, and what reads those that need no n-grams (model_data.py has the rest).

    language.yaml   code, iso3, name, native, aliases, scripts, tlds, neighbours, encodings, origin and licence,
                    spaced, known, unlisted, tokens, badness (word: mean, standard deviation, limit)
    words.txt       word<TAB>count, most frequent first
    contrast.txt    one word a line that a sister language lacks, made by people (not in every model; text/language/
                    sisters.py); characters, where words are not written between spaces
    ngrams.zst      counts of the character 1- to 4-grams, in which a space is a word boundary; zstd of
                    one line of JSON: size -> [number of n-grams, bytes of their text]; then for each size
                    the n-grams joined, in UTF-8, and their counts as four planes of bytes, the lowest first
    seeds.txt       one URL a line; the comment above names its kind (see `Seed`)

importlib.resources reads them, so a model may lie in a zip file.  The same model gives
the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from spiderling.base.errors import BadInput
from spiderling.base.files import read_yaml

if TYPE_CHECKING:
    from importlib.abc import Traversable

DESCRIPTION = "language.yaml"
WORDS = "words.txt"
CONTRAST = "contrast.txt"
NGRAMS = "ngrams.zst"
SEEDS = "seeds.txt"
TRUSTED = "trusted"


class Seed(NamedTuple):
    """A start page of a language."""

    url: str
    kind: str
    """The section of the file that it stands in, such as news."""
    trusted: bool
    """Whether institutions edit such pages; the comment above then ends in '(trusted)'."""

    @property
    def heading(self) -> str:
        """The comment that it stands under."""
        return f"{self.kind} ({TRUSTED})".strip() if self.trusted else self.kind


def read_description(directory: Traversable) -> dict[str, Any]:
    """The values of language.yaml; raises BadInput."""
    try:
        given = read_yaml(directory.joinpath(DESCRIPTION).read_bytes())
    except (BadInput, OSError) as error:
        raise damaged(directory.name, DESCRIPTION, error) from None
    if not isinstance(given, dict):
        raise damaged(directory.name, DESCRIPTION, "it is no table")
    return given


def read_words(directory: Traversable) -> dict[str, int]:
    """Word -> count; raises BadInput."""
    fields = _text(directory, WORDS).replace("\n", "\t").split("\t")[:-1]
    try:
        return dict(zip(fields[::2], map(int, fields[1::2]), strict=True))
    except ValueError:
        raise damaged(directory.name, WORDS, "expected lines of a word, a tab and a number") from None


def read_contrast(directory: Traversable) -> frozenset[str]:
    """The words that a sister language lacks; empty when there is no such file.  Raises BadInput."""
    if not directory.joinpath(CONTRAST).is_file():
        return frozenset()
    return frozenset(_text(directory, CONTRAST).split())


def read_seeds(directory: Traversable) -> list[Seed]:
    """The seeds; empty when there is no such file.  Raises BadInput."""
    if not directory.joinpath(SEEDS).is_file():
        return []
    return [seed for _, seed in seeds_in(_text(directory, SEEDS).splitlines())]


def seeds_in(lines: Iterable[str]) -> Iterator[tuple[int, Seed]]:
    """(number of the line, seed) for each line with a URL; the seed's kind is the comment above it."""
    kind = ""
    for number, line in enumerate(map(str.strip, lines), 1):
        if line.startswith("#"):
            kind = line.lstrip("# ")
        elif line:
            name = kind.removesuffix(f"({TRUSTED})")
            yield number, Seed(line, name.strip(), name != kind)


def damaged(code: str, name: str, reason: object) -> BadInput:
    """The error of a model file that cannot be used."""
    short = " ".join(str(reason).split())[:200]
    return BadInput(f"{name} of the model of {code} cannot be read ({short}); train it again.")


def _text(directory: Traversable, name: str) -> str:
    try:
        return str(directory.joinpath(name).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, OSError) as error:
        raise damaged(directory.name, name, error) from None
