"""Text: pure functions from the bytes of a page to its clean text, links and metadata.

`process` in cleaning.py is the entry point. The modules:

    encoding/        bytes -> text: labels are only evidence, the spelling decides
    html/            one pass over a page: blocks of text, links, metadata
    boilerplate/     which blocks are running text: by a fitted model, jusText's rules, or the justext package
    embedded.py      text in the JSON of pages that show little
    withheld.py      whether a page withholds its text: by a paywall, or until a script has filled it
    documents.py     docx, odt, epub and text from other programs -> blocks of text
    pdf.py           PDF -> blocks of text; layout.py: its columns; hyphens.py: words over the ends of lines
    letters.py       letters that the fonts of a document lost or changed; cipher.py: which symbol is which letter
    judging.py       classes, kinds and languages of the blocks of a page
    language.py      the language of a text, or that it is in none of the known ones
    words.py         what the words of a text tell: a relative of the language, one of several sisters
    ngrams.py        character n-grams of a page as hashes, and of a language with their counts
    declared.py      what the page declares: its address, licence, dates, versions in other languages, language
    dates.py         dates as pages write them
    optout.py        what the page says about the use of its text
    quality.py       badness, further signals of a document's quality, signs of spam
    fingerprints.py  hashes by which texts are compared: shingles, the sketch of a page, digests of paragraphs
    steps.py         the steps that can be compiled, in Python and from spiderling-native (native/)
    page.py          Page, the value that holds all results, and how it comes from a text worker
    listing.py       what a sitemap or feed lists, with dates
    prevertical.py   a document as it stands in the corpus; tokens

Nothing here uses the network or a clock.  The only files read are boilerplate/model.json, encoding/labels.txt and
months.txt.
"""

from spiderling.text.cleaning import clean_text, kept_language, measure_clean, process, process_document
from spiderling.text.language import LanguageModels
from spiderling.text.page import Page, PageLink, Paragraph, TextOptions
from spiderling.text.words import LanguageModel

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
