"""The results of ``text/`` for one page.

A worker process sends a Page to the event loop.  A page has hundreds of paragraphs; a pickle
of that many objects would cost the event loop more time than all else.  So they travel as
packed columns, which `Page` unpacks at first use.  Half of the pages are dropped before that.
Of the links only `Page.batch` travels.

A worker parses hostile bytes with libraries in C.  A page that takes the worker over can send
pickles that call anything.  So `read_page` knows only the types that make up a Page.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from spiderling.base.link_batch import NONE as NO_LINKS
from spiderling.base.link_batch import LinkBatch, received
from spiderling.base.option_values import COMMENT, HEADING, TEXT, parse_markup, parse_paragraph_kinds, parse_recrawl
from spiderling.base.options import Options
from spiderling.text.boilerplate.model import THRESHOLD, BlockModel, load
from spiderling.text.fingerprints import NO_SHINGLES, Shingles
from spiderling.text.html.blocks import named_tuples
from spiderling.text.prevertical import are_elements, details, elements
from spiderling.text.quality import NO_QUALITY, Quality


class Paragraph(NamedTuple):
    """One block of text, in the order of the page."""

    text: str
    """In normal form (text/html/blocks.py): no tags, single spaces, no control characters; a line feed for each <br> by
    TextOptions.markup."""
    cls: str  # 'good' (running text) or 'bad'
    kind: str  # what it is (base/option_values.py) if it is good, else ''
    heading: bool
    language: str | None  # None if the paragraph is not good or too short, or its language not sure
    kept: bool  # whether it belongs to the clean text of the page
    duplicate: bool = False  # whether most of it was kept before: the crawl sets it, ``text/`` knows only one page
    markup: tuple[tuple[str, str], ...] = ()  # further attributes (MARKUP_ATTRIBUTES), by TextOptions.markup


class PageLink(NamedTuple):
    """One link of a page."""

    url: str  # absolute http(s) URL without fragment, as the WHATWG URL standard resolves it
    anchor: str  # text of the link, at most 200 characters
    rel_nofollow: bool
    block: int  # index of the paragraph that encloses it, -1 when there is none
    text_score: float  # probability that the paragraph is text; 1 or 0 by jusText's classes, 0 without a paragraph
    text_block: bool  # whether that paragraph is good and of a wanted kind


@dataclass(frozen=True, slots=True)
class TextOptions:
    """The options by which pages are judged, one value for a whole crawl."""

    accepted: tuple[str, ...]  # codes of the languages whose text is kept
    boilerplate: str = "learned"  # 'learned' (fitted model), 'justext' (rules) or 'justext-stock' (that package)
    block_model: BlockModel | None = None  # for the learned mode; None: the bundled one
    block_threshold: float = THRESHOLD  # probability from which a block is good in the learned mode
    preset: str = "balanced"  # rules for the other modes (PRESETS of boilerplate/rules.py)
    min_known_share: float = 0.6  # least known share of a text in its language; .75 of it for a single paragraph
    with_shingles: bool = False
    kinds: frozenset[str] = frozenset((TEXT, HEADING, COMMENT))  # kinds (base/option_values.py) that are kept
    markup: frozenset[str] = frozenset()  # which mark-up is kept (base/option_values.py)
    gathers_links: bool = True  # whether a page's links are wanted; its quality counts them all the same
    shards: int = 1  # shards of the crawl; if there are several, the owners of linked hosts are looked up
    recrawls: bool = False  # whether pages are revisited: then feeds and digests of paragraphs are wanted

    @classmethod
    def from_options(cls, options: Options, accepted: Sequence[str], gathers_links: bool = True) -> TextOptions:
        """The text options of a crawl; raises BadInput for a damaged model."""
        return cls(
            accepted=tuple(accepted),
            boilerplate=options.boilerplate,
            block_model=load(options.boilerplate_model) if options.boilerplate == "learned" else None,
            preset=options.justext_preset,
            min_known_share=options.min_known_share,
            with_shingles=options.knows_shingles(),
            kinds=parse_paragraph_kinds(options.paragraph_kinds),
            markup=parse_markup(options.markup),
            gathers_links=gathers_links,
            shards=options.shards,
            recrawls=parse_recrawl(options.recrawl) > 0,
        )


@dataclass(slots=True, eq=False)
class Page:
    """What one page holds and what was found out about it."""

    file_type: str = "html"  # 'html', or the kind of document (base/media_types.py) that was converted
    encoding_declared: str | None = None
    """Encoding that the HTTP header names, else the page; Python's name of it if Python knows it."""
    encoding_detected: str | None = None
    """The codec that decoded the bytes; None if none could, and then there are no paragraphs.
    Empty for a document that is not HTML."""
    utf8_bytes: int = 0  # bytes of the body in UTF-8; of an undecodable body as received
    title: str = ""
    meta: dict[str, str] = field(default_factory=dict)
    """Name in lower case -> content of the <meta> that html/metadata.py keeps (description, robots, dates ...)."""
    canonical: str | None = None  # absolute URL that the page names as its own (rel=canonical)
    html_lang: str | None = None
    licence: str | None = None  # URL or text marked as the licence, else the first link to a known free one
    licence_basis: str = ""  # where it stands (declared.py)
    licence_sure: str = ""  # that licence, if it surely holds for the text
    published: str = ""  # date of publication that the page states, in ISO 8601, perhaps with time; '' for none
    modified: str = ""
    alternates: dict[str, str] = field(default_factory=dict)
    """hreflang in lower case -> absolute URL of the page in that language."""
    paragraphs: list[Paragraph] = field(default_factory=list)
    links: list[PageLink] = field(default_factory=list)  # empty in a page from a worker
    batch: LinkBatch = NO_LINKS  # the same links in the form that the frontier accepts
    links_cut: int = 0  # number of links left out, beyond MAX_LINKS
    languages: dict[str, float] = field(default_factory=dict)
    """Language -> share of the good text's characters, largest first; the rest is in no known language."""
    language: str | None = None  # the language with the largest share, else the nearest one
    known_share: float = 0.0  # known share (language.py) of the good text in that language; 1 is as in held-out text
    candidates: tuple[str, ...] = ()
    """Languages that the page may be in, nearest first: all its long paragraphs together, else all its words."""
    lswc_language: str = ""  # by Somboonviwat et al. 2006 (declared.py), '' for unknown; strategies use it
    lswc_relevant: bool = False  # whether `lswc_language` is accepted
    badness: float = 0.0  # how far the language's function words fall short (text/quality.py); 0 is best
    quality: Quality = NO_QUALITY  # other signals of the good text (text/quality.py); NO_QUALITY if none of it is kept
    raw_digest: bytes = b""  # xxh3_128 of the body as received
    text_digest: bytes = b""  # xxh3_128 of the clean text
    sketch: int = 0  # hash of the whole text without numbers and words of the URL (text/fingerprints.py)
    clean_bytes: int = 0  # UTF-8 bytes of the clean text: its paragraphs joined by line feeds
    clean_chars: int = 0
    """Its characters; in scripts without spaces those that English has for as many words, if these are more."""
    words: int = 0  # words of the clean text, estimated in scripts without spaces (text/quality.py)
    has_text: bool = False  # whether a paragraph is good and of a wanted kind, whatever its language
    text_source: str = ""  # where text was found that no element holds: 'json-ld' or 'state', '' for nowhere
    mended: str = ""  # what was done to the letters of a document: 'lost', 'shifted' or 'permuted' (text/letters.py)
    needs_script: bool = False  # whether the page shows nothing until a script has run, and its JSON has no text
    feeds: tuple[str, ...] = ()  # feeds that the page names; empty unless `TextOptions.recrawls`, as the following
    paragraph_digests: bytes = b""  # digests of the kept paragraphs (text/fingerprints.py)
    shingles: Shingles = NO_SHINGLES  # of the kept paragraphs; empty unless `TextOptions.with_shingles`

    _packed: dict[str, bytes] = field(default_factory=dict, init=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        values = {name: getattr(self, name) for name in _FIELDS}
        packed = {"paragraphs": pickle.dumps(list(zip(*values.pop("paragraphs"), strict=True)), 5)}
        values["links"] = []
        shingles = values.pop("shingles")
        if self.batch is NO_LINKS:  # to check it would take the event loop as long as to read all the rest
            del values["batch"]
        packed["hashes"] = shingles.hashes.tobytes()
        packed["counts"] = shingles.counts.tobytes()
        packed["repeats"] = b"1" if shingles.repeats else b""
        packed["document"] = kept_elements(self.paragraphs) if self.clean_bytes else b""
        values["_packed"] = packed
        return copyreg.__newobj__, (Page,), (None, values)  # type: ignore[attr-defined]  # the stubs leave it out

    def kept_elements(self) -> bytes:
        """The kept paragraphs as prevertical: the worker's bytes, or made anew once the paragraphs are unpacked."""
        ready = self._packed["document"] if "paragraphs" in self._packed else None
        return ready if ready is not None and are_elements(ready) else kept_elements(self.paragraphs)

    def __getattr__(self, name: str) -> Any:
        """Unpack a field when it is first used."""
        if name == "paragraphs":
            self.paragraphs = named_tuples(Paragraph, zip(*read_page(self._packed.pop(name)), strict=True))
        elif name == "batch":
            self.batch = NO_LINKS
        elif name == "shingles":
            hashes, counts, repeats = map(self._packed.pop, ("hashes", "counts", "repeats"))
            self.shingles = Shingles(np.frombuffer(hashes, np.uint64), np.frombuffer(counts, np.uint32), bool(repeats))
        else:
            raise AttributeError(name)
        return getattr(self, name)


def kept_elements(paragraphs: Iterable[Paragraph]) -> bytes:
    """The kept *paragraphs* as prevertical."""
    kept = (p for p in paragraphs if p.kept)
    pairs = ((p.text, details(p.cls, p.kind, p.heading, p.language, p.duplicate, p.markup)) for p in kept)
    return elements(pairs).encode("utf-8", "replace")


_FIELDS = tuple(spec.name for spec in fields(Page))
_TYPES = {(kind.__module__, kind.__name__): kind for kind in (Page, Quality, received)}
"""What a Page is unpickled with, by module and name."""


class _PageReader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _TYPES:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a page")
        return _TYPES[module, name]


def read_page(data: bytes | memoryview) -> Any:
    """Unpickle a Page or a plain value; raises what pickle raises for anything else."""
    return _PageReader(io.BytesIO(data)).load()
