"""Letters that the font of a PDF lost or changed, and what is left as it is."""

from __future__ import annotations

import difflib
import random
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from spiderling.languages import load
from spiderling.text import TextOptions
from spiderling.text.cleaning import process_document
from spiderling.text.documents import SYMBOLS, ConvertedDocument
from spiderling.text.letters import mend
from spiderling.workers.converter import CONVERTERS
from tests import made_documents as made

MODELS = load(["cs", "en", "pl", "ru"])
_ROWS = (Path(__file__).parent.parent / "quality" / "sentences.tsv").read_text(encoding="utf-8").splitlines()


def text_of(code: str) -> str:
    """Sentences of the language that no model is made of, in paragraphs."""
    rows = [row.split("\t")[1] for row in _ROWS if row.startswith(f"{code}\t")]
    return "\n".join(" ".join(rows[start : start + 5]) for start in range(0, len(rows), 5))


def body_of(text: str, said: dict[str, str | None]) -> bytes:
    lines = [line for paragraph in text.split("\n") for line in textwrap.wrap(paragraph, 80)]
    return made.pdf([[(40, 760 - 14 * row, 10, line) for row, line in enumerate(lines)]], said=said)


def read(text: str, said: dict[str, str | None], code: str):
    found = mend(CONVERTERS["pdf"](body_of(text, said)), MODELS, [code])
    return "".join(block.text for block in found.document.blocks) if found.document else None, found.how


def right_share(text: str, found: str) -> float:
    """Characters that are right and in their order, spaces not counted, / characters."""
    expected, found = ("".join(each.split()) for each in (text, found))
    same = difflib.SequenceMatcher(None, expected, found, autojunk=False).get_matching_blocks()
    return sum(one.size for one in same) / max(len(expected), len(found))


def letters_of(text: str) -> list[str]:
    return sorted({char for char in text if char.isalpha()})


def often(text: str) -> str:
    """Its letters, the most frequent first."""
    return "".join(char for char, _ in Counter(text).most_common() if char.isalpha())


def permuted(text: str) -> dict[str, str]:
    table = {}
    for letters in ([c for c in letters_of(text) if c.islower()], [c for c in letters_of(text) if c.isupper()]):
        mixed = letters[:]
        random.Random(1).shuffle(mixed)
        table |= zip(letters, mixed, strict=True)
    return table


def next_one(chars: list[str]) -> dict[str, str]:
    return dict(zip(chars, chars[1:] + chars[:1], strict=True))


def next_in_use(text: str) -> dict[str, str]:
    return next_one(list(dict.fromkeys("".join(text.split()))))


def in_text(text: str) -> list[str]:
    return sorted(set(text) - {" ", "\n"})


DAMAGES = {
    "one letter has no character": (lambda text: {often(text)[1]: None}, "lost", 1),
    "five": (lambda text: dict.fromkeys(often(text)[:10:2]), "lost", 0.999),
    "nothing but the replacement character": (lambda text: dict.fromkeys(often(text)[1], "\ufffd"), "lost", 1),
    "NUL": (lambda text: {often(text)[1]: "\0"}, "lost", 1),
    "private use": (lambda text: {often(text)[1]: "\ue123", often(text)[5]: "\ue124"}, "lost", 1),
    "the character behind": (lambda text: {c: chr(ord(c) + 1) for c in in_text(text)}, "shifted", 0.99),
    "glyphs numbered from the space": (
        lambda text: {c: chr(ord(c) - 29) if ord(c) > 29 else c for c in in_text(text)},
        "shifted",
        0.99,
    ),
    "the next of the font": (lambda text: next_one(in_text(text)), "shifted", 0.99),
    "the next in the order of use": (
        lambda text: next_one(list(dict.fromkeys("".join(text.split())))),
        "shifted",
        0.99,
    ),
    "permuted": (permuted, "permuted", 0.97),
}


@pytest.mark.parametrize("code", ["cs", "en", "ru"])
@pytest.mark.parametrize("name", DAMAGES)
def test_letters_are_mended(name, code):
    said, how, least = DAMAGES[name]
    text = text_of(code)
    found = read(text, said(text), code)
    assert found[1] == how
    assert right_share(text, found[0]) >= least


LIGATURES = ("ffi", "fi", "fl", "ff")
STORY = (
    "The officer at the first office found the final offer difficult. A flat field of flowers lies before the fifth "
    "floor, and five staff officers, different in profile, filled the coffee. The fish finally fled from the fire. "
)


def test_a_glyph_may_be_several_letters():
    plain = text = f"{text_of('en')} {STORY}"
    for place, letters in enumerate(LIGATURES):
        text = text.replace(letters, chr(0x160 + place))
    found, how = read(text, {chr(0x160 + place): None for place in range(len(LIGATURES))}, "en")
    assert ("".join(found.split()), how) == ("".join(plain.split()), "lost")


@pytest.mark.parametrize("code", ["cs", "en", "pl", "ru", "de", "fi", "vi", "ar", "ka", "zh"])
@pytest.mark.parametrize("accepted", ["cs", "ru"])
def test_what_is_whole_stays(code, accepted):
    """In known languages, in others of the same script, and in other scripts."""
    document = ConvertedDocument()
    for paragraph in text_of(code).split("\n"):
        document.add_block(paragraph)
    found = mend(document, MODELS, [accepted])
    assert found.document is document and not found.how


def test_paragraphs_in_a_whole_font_stay():
    czech, english = text_of("cs").split("\n"), text_of("en").split("\n")
    document = ConvertedDocument()
    for whole, damaged in zip(czech, english, strict=True):
        document.add_block(whole)
        document.add_block(damaged.translate({ord(c): chr(ord(c) + 1) for c in set(damaged) - {" "}}))
    found = mend(document, MODELS, ["en"])
    assert [block.text for block in found.document.blocks[::2]] == czech
    assert right_share("".join(english), "".join(block.text for block in found.document.blocks[1::2])) > 0.99


def test_what_cannot_be_mended_is_undecodable():
    """All letters come as one character."""
    text = text_of("cs")
    page = process_document(
        CONVERTERS["pdf"](body_of(text, dict.fromkeys(letters_of(text), "\ufffd"))),
        "pdf",
        b"",
        models=MODELS,
        options=TextOptions(accepted=("cs",)),
    )
    assert page.encoding_detected is None and not page.paragraphs and not page.mended


def test_the_page_says_what_was_done():
    text = text_of("cs")
    document = CONVERTERS["pdf"](body_of(text, {"o": None}))
    page = process_document(document, "pdf", b"", models=MODELS, options=TextOptions(accepted=("cs",)))
    assert (page.mended, page.language, page.encoding_detected) == ("lost", "cs", "")


def test_few_glyphs_that_are_not_sure_are_lost_characters():
    document = ConvertedDocument()
    document.add_block(text_of("en"))
    document.add_block(f"Xqz{chr(SYMBOLS[0])}k")
    found = mend(document, MODELS, ["en"])
    assert "\ufffd" in found.document.blocks[1].text
    assert found.document.blocks[0] == document.blocks[0]


def test_the_language_of_several_is_found():
    text = text_of("pl")
    document = CONVERTERS["pdf"](body_of(text, permuted(text)))
    assert mend(document, MODELS, ["cs", "pl", "en", "ru"]).how == "permuted"


@pytest.mark.parametrize(
    "text",
    [
        "".join(map(chr, range(0x4E00, 0x6E00))),
        "\U0001f600\U00020000 " * 700,
        "0123 " * 700,
        "\ua001" * 30_000,
        "".join(map(chr, SYMBOLS)) * 20,
        " ".join("zqxj"[number % 4] * (number % 50) for number in range(2000)),
    ],
    ids=["ideographs", "beyond the first plane", "digits", "one word", "all symbols", "no language"],
)
def test_no_text_is_too_much(text):
    document = ConvertedDocument()
    for start in range(0, len(text), 5000):
        document.add_block(text[start : start + 5000])
    assert not mend(document, MODELS, ["cs", "ru"]).how
