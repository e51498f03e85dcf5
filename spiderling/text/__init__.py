"""Text: pure functions from the bytes of a page to its clean text, links and metadata.

`process` in cleaning.py is the door; it calls these in turn:

    encoding/        bytes -> text: labels are only evidence, the spelling decides
    html/            one pass over a page: blocks of text, links, metadata
    boilerplate/     which blocks are running text: a fitted model, jusText's rules, or the justext package
    documents/       pdf, docx, odt, epub and text from other programs -> blocks of text
    language/        the language of a text, or that it is in none of the known ones
    ngrams.py        character n-grams as arrays: those of a page, and the counts of those of a language
    declared.py      what the page says of itself: address, licence, dates, versions in other languages, its language
    quality.py       further signals of a document's quality
    spam.py          signs of link farms and of machine-made text
    shingles.py      hashes that near-duplicates share
    sketch.py        hashes that soft error pages share
    optout.py        what the page says of the use of its text
    page.py          the value that holds what all of them find
    sitemap.py       the URLs in a sitemap
    tokens.py        words and signs, for vertical files
    prevertical.py   a document as it stands in the corpus
    unpickling.py    pages from a text worker, read without trust

Nothing here reads the network or a clock, nor any file but the weights of boilerplate/model.py.
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
