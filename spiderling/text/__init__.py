"""Text: pure functions from the bytes of a page to clean text with its evidence.

`process` is the door.  The steps, one module each:

    encoding.py     bytes -> text; labels are only evidence
    html.py         one pass: paragraphs, links, metadata
    boilerplate.py  which paragraphs are running text
    language.py     which language, and is it that language at all
    badness.py      do the function words fall short
    documents.py    docx, odt, epub and converted text -> paragraphs; pdf.py: the same for pdf
    training.py     plain text -> a language model

Nothing here reads files, the network or a clock.
"""

from spiderling.text.cleaning import clean_text, process, process_document
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
    "process",
    "process_document",
]
