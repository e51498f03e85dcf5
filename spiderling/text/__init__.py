"""Text: pure functions from the bytes of a page to clean text with its evidence.

`process` is the door (cleaning.py); it goes through these in turn:

    encoding/        bytes -> text: labels are only evidence, the spelling decides
    html/            one pass over a page: blocks of text, links, metadata
    head.py          address, licence, dates, versions in other languages
    boilerplate/     which blocks are running text: jusText's rules, the package itself, or a fitted model
    documents/       pdf, docx, odt, epub and converted text, as blocks of text
    language/        which language, and is it that language at all
    declared.py      what the page says of its language, and what that weighs
    quality.py       further signals of a document's quality
    spam.py          signs of link farms and of text by machines
    shingles.py      what near-duplicates are known by
    sketch.py        what soft error pages are known by
    optout.py        what the page says of the use of its text
    page.py          what all of them find
    prevertical.py   the document as it is written
    unpickling.py    reading what a text worker sent, without trusting it

Nothing here reads the network or a clock, and no files but the weights of boilerplate/model.py.
"""

from spiderling.text.cleaning import clean_text, measure_clean, process, process_document
from spiderling.text.language.models import LanguageModel, LanguageModels
from spiderling.text.page import Page, PageLink, Paragraph, TextOptions

__all__ = [
    "LanguageModel",
    "LanguageModels",
    "Page",
    "PageLink",
    "Paragraph",
    "TextOptions",
    "clean_text",
    "measure_clean",
    "process",
    "process_document",
]
