"""Text: pure functions from the bytes of a page to clean text with its evidence.

`process` is the door.  The steps, one module each:

    encoding.py     bytes -> text; labels (labels.py) are only evidence, the spelling (spelling.py) decides
    html.py         one pass: paragraphs, links, metadata (tags.py, zones.py: names of the elements around)
    metadata.py     what the head says, tag by tag
    head.py         address, licence, dates, versions in other languages
    resolving.py    links as absolute URLs
    normal.py       the normal form of all text that leaves
    boilerplate.py  which paragraphs are running text, by jusText's rules ...
    aspackage.py    ... or, for comparisons, as the justext package has them ...
    learned.py      ... or by a fitted model on the features of features.py
    language.py     which language, and is it that language at all (cosine.py: the papers' way)
    declared.py     what the page says of its language, and what that weighs
    badness.py      do the function words fall short
    documents.py    docx, odt, epub and converted text -> paragraphs; pdf.py: the same for pdf
    quality.py      further signals of a document's quality
    spam.py         signs of link farms and of text by machines
    shingles.py     what near-duplicates are known by
    training.py     plain text -> a language model (ngrams.py, counts.py: character n-grams as arrays)
    fitting.py      marked pages (marking.py) -> a boilerplate model

Nothing here reads the network or a clock, and no files but the weights of learned.py.
"""

from spiderling.text.cleaning import clean_text, measure_clean, process, process_document
from spiderling.text.language import LanguageModel, LanguageModels
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
