"""Signs of link farms and of text by machines: what Suchomel & Pomikálek 2012 (3.2) left to a cut by distance.

Cheap looks at the clean text and its page, each harmless to the pages that people write (benchmarks/results.md):
text that packs too well says little in many words, and one that names a word over and over wants to be found by it
(Ntoulas et al. 2006, *Detecting Spam Web Pages through Content Analysis*); running text has few links to other hosts;
services that translate pages leave their mark in them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from collections.abc import Collection

    from spiderling.text.language.models import LanguageModel
    from spiderling.text.page import Page
    from spiderling.text.quality import Quality

GOOGLE = "google"
_PLUGINS = ("gtranslate", "weglot", "linguise", "conveythis", "transposh", "bablic")
_SAVED = re.compile(r"<html\b[^>]{0,500}\btranslated-(?:ltr|rtl)\b|x-translated-by", re.IGNORECASE)
_HEAD_CHARS, _PLUGIN_CHARS, _TEXT_CHARS = 4_000, 60_000, 8_000
_compressor = zstandard.ZstdCompressor(level=1)


def with_spam_signs(page: Page, text: str, html: str, url: str, model: LanguageModel) -> Quality:
    """The page's quality with the signs in it.

    *text* is its clean text in the language of *model*, *html* the page as decoded.  Links are counted by bytes of
    UTF-8 and words only where spaces part them, so that Chinese is not taken for a list of links.
    """
    return page.quality._replace(
        packed_share=packed_share(text),
        top_word_share=top_word_share(text, model.stoplist) if model.spaced else 0.0,
        outlinks=1000 * _other_hosts(page, url) / max(1, page.clean_bytes),
        translated=translated(page, html, url),
    )


def packed_share(text: str) -> float:
    """Packed / unpacked bytes of the first 8,000 characters; 1 for no text."""
    data = text[:_TEXT_CHARS].encode("utf-8", "replace")
    return len(_compressor.compress(data)) / len(data) if data else 1.0


def top_word_share(text: str, stoplist: Collection[str]) -> float:
    """The most frequent word that is no stop word / words, over the first 8,000 characters."""
    words = text[:_TEXT_CHARS].lower().split()
    most = 0
    for word, number in Counter(words).items():
        if number > most and len(word) > 1 and word not in stoplist:
            most = number
    return most / max(1, len(words))


def _other_hosts(page: Page, url: str) -> int:
    """Distinct addresses on other hosts that running text links to."""
    own = _host(url)
    return len({url for url, _, _, _, _, text_block in page.links if text_block and _host(url) != own})


def _host(url: str) -> str:
    return url.split("/", 3)[2].removeprefix("www.") if url.count("/") > 1 else ""


def translated(page: Page, html: str, url: str) -> str:
    """Who translated the page by machine: ``google`` where that is sure; the name of a plugin where it is likely,
    since the page is not the one that it names as its site's original; else empty."""
    head = html[:_HEAD_CHARS]
    if _host(url).endswith(".translate.goog") or ("translated-" in head.lower() and _SAVED.search(head)):
        return GOOGLE
    original = page.alternates.get("x-default", "").rstrip("/")
    if not original or original in (url.rstrip("/"), (page.canonical or "").rstrip("/")):
        return ""
    start = html[:_PLUGIN_CHARS]
    return next((name for name in _PLUGINS if name in start), "")
