"""Other ways of writing the same text, which build.py adds to the texts of some languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_SERBIAN = str.maketrans("абвгдђежзијклмнопрстћуфхцчш", "abvgdđežzijklmnoprstćufhcčš")
_SERBIAN_CYRILLIC = {latin: letter for letter, latin in _SERBIAN.items()}
_DIGRAPHS = {"lj": "љ", "nj": "њ", "dž": "џ"}
_SERBIAN |= str.maketrans({letter: latin for latin, letter in _DIGRAPHS.items()})
_TATAR_DIGRAPHS = {"дж": "c", "гъ": "ğ", "къ": "q", "нъ": "ñ"}
_TATAR = str.maketrans("абвгджзийклмнопрстуфхчшыэеёюя", "abvgdjziyklmnoprstufhçşıeeöüâ")
_TATAR |= str.maketrans({"щ": "şç", "ц": "ts", "ъ": "", "ь": ""})
_TATAR_J = {"е": "ye", "ё": "yo", "ю": "yu", "я": "ya"}
"""Letters that stand for two sounds at the beginning of a word and behind a vowel."""


def both_serbian(lines: Iterable[str]) -> list[str]:
    """The lines in small letters, each in Cyrillic and in Latin letters; a few words such as injekcija are spoilt."""
    single = map(_single_letters, lines)
    return [line.translate(table) for line in single for table in (_SERBIAN, _SERBIAN_CYRILLIC)]


def latin_crimean_tatar(word: str) -> str:
    """A word of Cyrillic Crimean Tatar in Latin letters; о and у of the first syllable become ö and ü by the vowels
    and the soft sign behind them."""
    word = word.lower()
    for cyrillic, latin in _TATAR_DIGRAPHS.items():
        word = word.replace(cyrillic, latin)
    is_front = re.search("(?<!^)[еэиюёь]", word) and not re.search("[ыqğа]", word)
    word = re.sub("(^|(?<=[аеёиоуыэюя]))[еёюя]", lambda found: _TATAR_J[found[0]], word)
    if is_front:
        word = re.sub("^([^аеёиоуыэюя]*?)([оуou])", lambda found: found[1] + ("ö" if found[2] in "оo" else "ü"), word)
    return word.translate(_TATAR)


def unmarked(text: str) -> str:
    """*text* without marks above and below its letters, as many people type it."""
    return "".join(char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char))


def _single_letters(line: str) -> str:
    line = line.lower()
    for latin, letter in _DIGRAPHS.items():
        line = line.replace(latin, letter)
    return line
