"""Text: pure functions from the bytes of a page to its clean text, links and metadata.

`process` in cleaning.py is the entry point. The modules:

    embedded/        text in the JSON of pages that show little
    encoding/        bytes -> text: labels are only evidence, the spelling decides
    html/            one pass over a page: blocks of text, links, metadata
    boilerplate/     which blocks are running text: by a fitted model, jusText's rules, or the justext package
    documents/       pdf, docx, odt, epub and text from other programs -> blocks of text
    language/        the language of a text, or that it is in none of the known ones
    ngrams.py        character n-grams of a page as hashes, and of a language with their counts
    judging.py       classes, kinds and languages of the blocks of a page
    kinds.py         headings, comments, teasers, code, cells and notices
    declared.py      what the page declares: its address, licence, dates, versions in other languages, language
    quality.py       further signals of a document's quality
    spam.py          signs of link farms and of machine-made text
    shingles.py      hashes of word runs: near-duplicates share many
    paragraph_digests.py  which paragraphs of a page are new since its last version
    sketch.py        one hash of a page's words: soft error pages share it
    optout.py        what the page says about the use of its text
    steps.py         the steps that can be compiled, as one value that `process` is given
    compiled.py      these steps from the distribution spiderling-native (native/), if it is there and fits
    page.py          Page, the value that holds all results
    listing.py       what a sitemap or feed lists, with dates; sitemap.py and feed.py read it
    tokens.py        words and signs, for vertical files
    prevertical.py   a document as it stands in the corpus
    unpickling.py    reads pages from a text worker without trusting it

Nothing here uses the network or a clock.  The only files read are the weights for boilerplate/model.py, and
the sources that the compiled steps stand for.
"""

from spiderling.text.cleaning import clean_text, kept_language, measure_clean, process, process_document
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
    "kept_language",
    "measure_clean",
    "process",
    "process_document",
]
