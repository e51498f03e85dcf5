"""Signs of link farms and of machine-made text.

Suchomel & Pomikálek 2012 (3.2) use only the distance from the seeds against spam.  Spam packs well and repeats one
word (Ntoulas et al. 2006, *Detecting Spam Web Pages through Content Analysis*), it links to many other hosts, and
translation services leave their names in pages.  Of 2,333 good pages these signs refuse one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection

from spiderling.base.zstd import frame_packer
from spiderling.text.language.models import LanguageModel
from spiderling.text.page import Page
from spiderling.text.quality import Quality

GOOGLE = "google"
"""Value of `translated` for Google Translate."""
_PLUGINS = ("gtranslate", "weglot", "linguise", "conveythis", "transposh", "bablic")
_SAVED = re.compile(r"<html\b[^>]{0,500}\btranslated-(?:ltr|rtl)\b|x-translated-by", re.IGNORECASE)
_HEAD_CHARS = 4_000
"""Characters of the page that are searched for the mark of Google Translate; chosen."""
_PLUGIN_CHARS = 60_000
"""Characters of the page that are searched for names of plugins; chosen."""
TEXT_CHARS = 8_000
"""Characters of the clean text that are looked at; chosen: longer texts pack and repeat alike."""
_pack = frame_packer(level=1, has_checksum=False)


TopWord = Callable[[str, Collection[str]], float]
"""Type of `top_word_share`."""


def with_spam_signs(page: Page, text: str, html: str, url: str, model: LanguageModel, top_word: TopWord) -> Quality:
    """The quality of *page* with the signs of spam filled in.

    *text* is its clean text in the language of *model*, *html* the decoded page.  Links are counted per 1,000 bytes
    of UTF-8 and not per word, so that Chinese does not look like a list of links; words only where spaces divide them.
    *top_word* may be a faster `top_word_share`.
    """
    return page.quality._replace(
        packed_share=packed_share(text),
        top_word_share=top_word(text, model.stoplist) if model.spaced else 0.0,
        outlinks=1000 * _other_hosts(page, url) / max(1, page.clean_bytes),
        translated=translated(page, html, url),
    )


def packed_share(text: str) -> float:
    """Packed / unpacked bytes of the first TEXT_CHARS characters; 1 for no text."""
    data = text[:TEXT_CHARS].encode("utf-8", "replace")
    return len(_pack(data)) / len(data) if data else 1.0


def top_word_share(text: str, stoplist: Collection[str]) -> float:
    """Share of the most frequent word that is no stop word, in the first TEXT_CHARS characters."""
    words = text[:TEXT_CHARS].lower().split()
    most = 0
    for word, number in Counter(words).items():
        if number > most and len(word) > 1 and word not in stoplist:
            most = number
    return most / max(1, len(words))


def _other_hosts(page: Page, url: str) -> int:
    """Number of distinct URLs on other hosts that running text links to."""
    own = _host(url)
    return len({url for url, _, _, _, _, text_block in page.links if text_block and _host(url) != own})


def _host(url: str) -> str:
    return url.split("/", 3)[2].removeprefix("www.") if url.count("/") > 1 else ""


def translated(page: Page, html: str, url: str) -> str:
    """The machine translator of the page: GOOGLE if that is sure, the name of a plugin if it is likely, else ''.

    It is likely if the page names the plugin, and another page as the original (hreflang x-default).
    """
    head = html[:_HEAD_CHARS]
    if _host(url).endswith(".translate.goog") or ("translated-" in head.lower() and _SAVED.search(head)):
        return GOOGLE
    original = page.alternates.get("x-default", "").rstrip("/")
    if not original or original in (url.rstrip("/"), (page.canonical or "").rstrip("/")):
        return ""
    start = html[:_PLUGIN_CHARS]
    return next((name for name in _PLUGINS if name in start), "")
