"""The values that leave ``text/``: what one page holds.

A worker process sends them to the event loop.  Paragraphs and links, of which a page
has hundreds, travel as packed columns and are unpacked when they are first used: to
read a pickle of as many objects would cost the event loop more than all else, and half
of the pages are dropped before anybody uses them.
"""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from spiderling.base.link_batch import NONE as NO_LINKS
from spiderling.base.link_batch import LinkBatch
from spiderling.base.options import Options
from spiderling.text.boilerplate.model import BlockModel, load
from spiderling.text.boilerplate.rules import parse_rules
from spiderling.text.html.blocks import named_tuples
from spiderling.text.prevertical import are_elements, details, elements
from spiderling.text.quality import NO_QUALITY, Quality
from spiderling.text.shingles import NO_SHINGLES, Shingles
from spiderling.text.unpickling import read_plain


class Paragraph(NamedTuple):
    """One block of text, in the order of the page."""

    text: str
    """Without tags, white space collapsed to single spaces, no control characters."""
    cls: str
    """'good' (running text) or 'bad'."""
    heading: bool
    language: str | None
    """Recognised language; None for a paragraph that is not good, too short, or in no language that is sure."""
    kept: bool
    """Whether it belongs to the clean text of the page."""
    duplicate: bool = False
    """Whether most of it was kept before; a crawl sets it, for ``text/`` sees one page alone."""


class PageLink(NamedTuple):
    """One link of a page."""

    url: str
    """Absolute http(s) URL without fragment, as the WHATWG URL standard resolves it."""
    anchor: str
    """Text of the link, at most 200 characters."""
    rel_nofollow: bool
    block: int
    """Index of the paragraph that encloses it, -1 when there is none."""
    text_score: float
    """Probability that the paragraph is running text; 1 or 0 by jusText's classes, 0 without a paragraph."""
    text_block: bool
    """Whether that paragraph is good."""


@dataclass(frozen=True, slots=True)
class TextOptions:
    """The options by which pages are judged, one value for a whole crawl."""

    accepted: tuple[str, ...]
    """Codes of the languages whose text is kept."""
    boilerplate: str = "learned"
    """'learned' (a fitted model), 'justext' (the paper's rules) or 'justext-stock' (the justext package)."""
    block_model: BlockModel | None = None
    """For the learned mode; None: the bundled one."""
    block_threshold: float = 0.42
    """Probability from which a block is good in the learned mode."""
    preset: str = "balanced"
    """Rules for the other modes, see boilerplate.parse_rules."""
    min_known_share: float = 0.6
    """A text is in a language only from this known share on; a single paragraph from three quarters of it on.
    By the method 'cosine': the least cosine of a document."""
    language_method: str = "bayes"
    """'bayes' (language/models.py) or 'cosine' (language/cosine.py)."""
    with_shingles: bool = False

    @classmethod
    def from_options(cls, options: Options, accepted: Sequence[str]) -> TextOptions:
        """Take them from the options of a crawl; raises BadInput for a damaged model or unknown rules."""
        parse_rules(options.justext_preset)
        return cls(
            accepted=tuple(accepted),
            boilerplate=options.boilerplate,
            block_model=load(options.boilerplate_model) if options.boilerplate == "learned" else None,
            block_threshold=options.boilerplate_threshold,
            preset=options.justext_preset,
            min_known_share=options.min_likeness(),
            language_method=options.language_method,
            with_shingles=options.knows_shingles(),
        )


@dataclass(slots=True, eq=False)
class Page:
    """What one page holds and what was found out about it."""

    file_type: str = "html"
    """'html', or the kind of document (base/media_types.py) that was converted."""
    encoding_declared: str | None = None
    """Encoding that the HTTP header or else the page names, as Python calls it if it is known."""
    encoding_detected: str | None = None
    """The codec that decoded the bytes; None if none could, and then there are no paragraphs.
    Empty for a document that is not HTML."""
    utf8_bytes: int = 0
    """Size of the body in UTF-8; of an undecodable one as received."""
    title: str = ""
    meta: dict[str, str] = field(default_factory=dict)
    """Lower-case names of <meta> that matter (description, robots, author, dates, og:locale ...)."""
    canonical: str | None = None
    """Absolute URL that the page names as its own (rel=canonical)."""
    html_lang: str | None = None
    licence: str | None = None
    """URL or text that is marked as the page's licence, else the first link to a known free licence."""
    published: str = ""
    """ISO 8601 date, perhaps with time, that the page states; '' for none."""
    modified: str = ""
    alternates: dict[str, str] = field(default_factory=dict)
    """hreflang in lower case -> absolute URL of the page in that language."""
    paragraphs: list[Paragraph] = field(default_factory=list)
    links: list[PageLink] = field(default_factory=list)
    batch: LinkBatch = NO_LINKS
    """The same links in the form that the frontier takes in."""
    links_cut: int = 0
    """Links beyond the limit."""
    languages: dict[str, float] = field(default_factory=dict)
    """Language -> its share of the good text's characters, largest first; the rest is in no known language."""
    language: str | None = None
    """The language of the largest share, else the nearest one."""
    known_share: float = 0.0
    """Share of the 4-grams in that language's good text that are usual in the language; 1 is as in held-out text of it.
    By the method 'cosine': the cosine of its trigrams with the language's."""
    candidates: tuple[str, ...] = ()
    """Languages that the page's long paragraphs together, boilerplate or not, may be in, nearest first."""
    lswc_language: str = ""
    """Its language by the rule of Somboonviwat et al. 2006 (text/declared.py), '' for unknown.  Strategies use it."""
    lswc_relevant: bool = False
    """Whether that is an accepted language."""
    badness: float = 0.0
    """How far the language's function words fall short (language/function_words.py); low is good."""
    quality: Quality = NO_QUALITY
    """Further signals of the good text (text/quality.py); NO_QUALITY if none of it is kept."""
    raw_digest: bytes = b""
    """xxh3_128 of the body as received."""
    text_digest: bytes = b""
    """xxh3_128 of the clean text."""
    sketch: int = 0
    """Hash of the whole text, apart from numbers and words of the URL (text/sketch.py)."""
    clean_bytes: int = 0
    """UTF-8 bytes of the clean text: its paragraphs joined by line feeds."""
    clean_chars: int = 0
    words: int = 0
    """White-space separated words of the clean text."""
    has_text: bool = False
    """Whether a paragraph is good, kept or not."""
    shingles: Shingles = NO_SHINGLES
    """The shingles of the kept paragraphs (text/shingles.py), if they are asked for."""

    _packed: dict[str, bytes] = field(default_factory=dict, init=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        values = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        packed = {name: pickle.dumps(list(zip(*values.pop(name), strict=True)), 5) for name in _ROWS}
        shingles = values.pop("shingles")
        packed["hashes"] = shingles.hashes.tobytes()
        packed["counts"] = shingles.counts.tobytes()
        packed["repeats"] = b"1" if shingles.repeats else b""
        packed["document"] = kept_elements(self.paragraphs) if self.clean_bytes else b""
        values["_packed"] = packed
        return copyreg.__newobj__, (Page,), (None, values)  # type: ignore[attr-defined]  # the stubs leave it out

    def kept_elements(self) -> bytes:
        """The kept paragraphs as prevertical; ready from the worker, unless the paragraphs were unpacked since."""
        ready = self._packed["document"] if "paragraphs" in self._packed else None
        return ready if ready is not None and are_elements(ready) else kept_elements(self.paragraphs)

    def __getattr__(self, name: str) -> Any:
        """Unpack a field when it is first used."""
        if name in _ROWS:
            setattr(self, name, named_tuples(_ROWS[name], zip(*read_plain(self._packed.pop(name)), strict=True)))
        elif name == "shingles":
            hashes, counts, repeats = map(self._packed.pop, ("hashes", "counts", "repeats"))
            self.shingles = Shingles(np.frombuffer(hashes, np.uint64), np.frombuffer(counts, np.uint32), bool(repeats))
        else:
            raise AttributeError(name)
        return getattr(self, name)


def kept_elements(paragraphs: Iterable[Paragraph]) -> bytes:
    """The kept ones of *paragraphs* as prevertical."""
    kept = ((p.text, details(p.cls, p.heading, p.language, p.duplicate)) for p in paragraphs if p.kept)
    return elements(kept).encode("utf-8", "replace")


_ROWS: dict[str, type[tuple[Any, ...]]] = {"paragraphs": Paragraph, "links": PageLink}
