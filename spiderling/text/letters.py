"""Mends documents whose fonts have wrong characters for their letters, or none, by what the language spells.

A PDF draws glyphs, and a table of each font says which characters they are.  Where that table is damaged

- some glyphs have no character (*lost*); pdf.py gives each of them a letter of SYMBOLS;
- all characters are the same number of places off (*shifted*);
- the letters are exchanged (*permuted*).

A shift is found by trying.  The others are simple substitutions, with few unknown symbols or with many (cipher.py).

Text in which words of a known language are read is never changed, but for its SYMBOLS.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from spiderling.text.cipher import BMP, FOREIGN, Cipher, LetterChain, script_of
from spiderling.text.documents import SYMBOL, SYMBOLS, ConvertedDocument
from spiderling.text.encoding.mending import LOST, MAX_BAD_SHARE
from spiderling.text.html.blocks import normal_form
from spiderling.text.language import MIN_CHARS, LanguageModels
from spiderling.text.ngrams import ORDER, lower_letters
from spiderling.text.words import LanguageModel

_SYMBOL = re.compile(SYMBOL)
_NONSENSE = 0.15  # known share below which a text may be damaged; chosen, as are those below
_MIN_NONSENSE = 600  # least characters of such texts in which a shift or permutation is sought
_MIN_KNOWN = 0.8  # least known share of mended text
_MAX_CHARACTERS = 500  # different characters of a text in which a shift is sought
_MAX_SHIFT = 1500  # places among all characters that are tried
_STEPS = np.array([-3, -2, -1, 1, 2, 3])[:, None]  # places among the characters of a text that are tried
_FEW_SPACES = 0.08  # share of spaces below which a text may have other characters for them
_ONE_SCRIPT = 0.9  # share of letters in the script of the language, from which others are not exchanged with them
_MAX_LETTERS = 120  # letters of a language at most: syllables and ideographs are too many
_SIGN = -7.0  # log P of a sign in ASCII
_SPACE = -1.9  # log P of a space


class Mended(NamedTuple):
    """What became of a document."""

    document: ConvertedDocument | None  # None if too many letters are lost
    how: str = ""  # what was mended: 'lost', 'shifted' or 'permuted'


def mend(document: ConvertedDocument, models: LanguageModels, accepted: Sequence[str]) -> Mended:
    """The *document* with its letters.

    A shift or permutation is sought in the *accepted* languages, lost letters in the language of the rest.
    """
    texts = [block.text for block in document.blocks]
    symbols = any(map(_SYMBOL.search, texts))
    shares = [] if symbols or not models.models else _known_shares(texts, models)
    nonsense = [text for text, share in zip(texts, shares, strict=False) if share < _NONSENSE and len(text) > MIN_CHARS]
    if not symbols and sum(map(len, nonsense)) < _MIN_NONSENSE:
        return Mended(document)
    best = max(_readings(nonsense or texts, models, accepted), key=itemgetter(0), default=_UNREAD)
    if best.share < _MIN_KNOWN and not symbols:
        return Mended(document)
    if best.share >= _MIN_KNOWN:
        after = [text.translate(best.table) for text in texts]
        if shares:  # texts in another font may be whole
            each = zip(texts, after, shares, _known_shares(after, models), strict=True)
            after = [new if share >= before else old for old, new, before, share in each]
        texts = after
    texts = [_SYMBOL.sub(LOST, text) for text in texts]
    if sum(text.count(LOST) for text in texts) > MAX_BAD_SHARE * sum(map(len, texts)):
        return Mended(None)
    blocks = [block._replace(text=normal_form(text)) for block, text in zip(document.blocks, texts, strict=True)]
    return Mended(replace(document, blocks=blocks), best.how if best.share >= _MIN_KNOWN else "")


def _known_shares(texts: Sequence[str], models: LanguageModels) -> list[float]:
    """The known share of each of *texts* in the language nearest to it."""
    guesses = models.identify(texts)
    nearest = [guesses.codes[place] for place in guesses.scores.argmax(1).tolist()]
    return guesses.known_shares(nearest, range(len(texts)))


class _Reading(NamedTuple):
    """A way to read damaged texts."""

    share: float  # known share of what is read
    how: str
    table: dict[int, str]  # for `str.translate`


_UNREAD = _Reading(0.0, "", {})


def _readings(texts: Sequence[str], models: LanguageModels, accepted: Sequence[str]) -> Iterator[_Reading]:
    """Ways to read damaged *texts*."""

    def reading(how: str, table: dict[int, str]) -> _Reading:
        read = [_SYMBOL.sub(" ", text.translate(table)) for text in texts]
        return _Reading(models.identify(read).known_share(code), how, table)

    guesses = models.identify([_SYMBOL.sub(" ", text) for text in texts])
    nearest = guesses.nearest()
    is_nonsense = nearest is None or guesses.known_share(nearest) < _NONSENSE
    for code in accepted if is_nonsense or nearest is None else [nearest]:
        chain = _chain(models, code)
        if chain is None:
            continue
        shift = reading("shifted", _shift(texts, chain)) if is_nonsense else _UNREAD
        if shift.share >= _MIN_KNOWN:
            yield shift
        else:
            shift = _UNREAD
        left = [text.translate(shift.table) for text in texts] if shift.table else texts
        symbols = set(_SYMBOL.findall("".join(left)))
        if symbols:
            yield reading("lost", {**shift.table, **str.maketrans(Cipher(left, chain, symbols).fill())})
        elif not shift.table:
            letters = Counter(filter(str.isalpha, "".join(texts)))
            unknown = {char for char in letters if script_of(char) == chain.script}
            if sum(letters[char] for char in unknown) < _ONE_SCRIPT * letters.total():
                unknown = set(letters)
            yield reading("permuted", str.maketrans(Cipher(texts, chain, unknown).solve()))


def _shift(texts: Sequence[str], chain: LetterChain) -> dict[int, str]:
    """The table by which all characters but spaces are the same number of places off.

    Places among all characters, among those of the texts, or among these in the order in which they occur first, as
    some programs number glyphs.
    """
    counts = Counter("".join(texts))
    if len(counts) > _MAX_CHARACTERS:
        return {}
    codes = {char: ord(char) - SYMBOLS[0] if ord(char) in SYMBOLS else ord(char) for char in counts}
    mine = np.array([codes[char] for char in counts if char != " "])
    numbers = np.array([counts[char] for char in counts if char != " "])
    letters = chain.places.take(lower_letters(np.arange(BMP, dtype=np.uint32)))
    logs = np.where(letters > 0, np.log(chain.shares)[letters], FOREIGN)
    for signs in (slice(0x21, 0x7F), slice(0xA1, 0xC0), slice(0x2010, 0x2027)):
        logs[signs] = np.maximum(logs[signs], _SIGN)
    logs[0x20] = _SPACE if counts[" "] < _FEW_SPACES * counts.total() else 2 * FOREIGN
    shifts = np.arange(-_MAX_SHIFT, _MAX_SHIFT)[:, None]
    tried = [np.clip(mine + shifts, 0, len(logs) - 1)]
    given = list(codes.values())
    for order in (given, sorted(given), mine.tolist(), sorted(mine.tolist())):
        places = np.array([order.index(code) for code in mine.tolist()])
        tried.append(np.array(order)[(places + _STEPS) % len(order)])
    every = np.concatenate(tried)
    best = every[(logs.take(every, mode="clip") @ numbers).argmax()].tolist()
    olds = [ord(char) for char in counts if char != " "]
    return {old: chr(new) for old, new in zip(olds, best, strict=True) if new >= 0x20}


_CHAINS: dict[str, tuple[LanguageModel, LetterChain | None]] = {}
"""The last chain of each language, with its model."""


def _chain(models: LanguageModels, code: str) -> LetterChain | None:
    """The letters of the language; None if these are too many."""
    model = models[code]
    if code not in _CHAINS or _CHAINS[code][0] is not model:
        fits = model.ngrams.letters <= _MAX_LETTERS and ORDER in model.ngrams.sizes
        _CHAINS[code] = model, LetterChain(model) if fits else None
    return _CHAINS[code][1]
