"""Spiderling without a crawl: the text of a page, the language of a text, the documents of a corpus.

    import spiderling

    document = spiderling.extract("page.html", lang="cs")
    print(document.title, document.text)

The names of `spiderling.__all__` are public.  They keep their meaning until the next major version
(docs/library.md).  Nothing here imports Scrapy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from spiderling.base.errors import BadInput
from spiderling.base.files import saving
from spiderling.base.option_values import parse_size
from spiderling.base.options import Options
from spiderling.base.terminal import hint
from spiderling.languages import codes_of, find_languages, load, to_recognise
from spiderling.text import LanguageModels, Page, Paragraph
from spiderling.text.html.blocks import MARKUP_ATTRIBUTES
from spiderling.text.page import kept_elements
from spiderling.text.prevertical import render_attributes
from spiderling.text.quality import Quality
from spiderling.workers.process import Task, WorkerConfig, text_process

if TYPE_CHECKING:  # what handles corpora takes as long to import as the text chain
    from spiderling.export.deduplication import DedupTotals

__all__ = ["Document", "Identified", "Paragraph", "dedup", "extract", "identify", "read"]

NO_URL = "http://file.invalid/"  # stands for an address that is not known, so that links are read all the same
FORMATS = {"txt": "text", "json": "jsonl", "xmltei": "tei"} | {
    name: name for name in ("markdown", "prevertical", "vertical", "conllu")
}
"""Name of a format, of those that trafilatura has too as there -> its name in export/formats.py."""

_SIGNALS = ("badness", "known_share", *Quality._fields)


@dataclass(frozen=True, slots=True)
class Document:
    """A text and what is known about it."""

    attributes: dict[str, str]
    """What docs/formats.md lists, such as ``url``, ``title``, ``lang``, ``published``; what is unknown is left out."""
    paragraphs: tuple[Paragraph, ...]
    """In the order of the page.  Of an extracted page these are all; what belongs to its text is ``kept``."""
    links: tuple[str, ...] = field(default=(), repr=False)
    """Absolute addresses, each once; a document of a corpus has none."""

    @property
    def text(self) -> str:
        """The kept paragraphs, one a line."""
        return "\n".join(paragraph.text for paragraph in self.paragraphs if paragraph.kept)

    @property
    def title(self) -> str:
        """The title, or ''."""
        return self.attributes.get("title", "")

    @property
    def author(self) -> str:
        """Who wrote it, as the page says; or ''."""
        return self.attributes.get("author", "")

    @property
    def date(self) -> str:
        """When it was published, by ISO 8601, as the page says; or ''."""
        return self.attributes.get("published", "")

    @property
    def language(self) -> str:
        """The code of the language that most of the text is in; '' if that is none of the languages asked for."""
        return self.attributes.get("lang", "")

    @property
    def encoding(self) -> str:
        """The encoding that the page was read in; '' if that is not known."""
        return self.attributes.get("enc_detected", "")

    @property
    def quality(self) -> dict[str, float]:
        """Signals of the text by their names in docs/corpus.md, such as ``badness``; those that are known."""
        from spiderling.export.formats import number

        said = {name: number(self.attributes.get(name, "")) for name in _SIGNALS}
        return {name: value for name, value in said.items() if value is not None}

    def to(self, format_name: str) -> str:
        """The document as 'txt', 'markdown', 'json' (one line), 'xmltei', or in another format of FORMATS.

        Raises BadInput for another name.
        """
        from spiderling.corpus.segments import StoredDocument
        from spiderling.export.formats import ENCODERS, TEI_HEAD, TEI_TAIL

        if format_name not in FORMATS:
            raise BadInput(f"{format_name} is no format; {hint(format_name, FORMATS)}")
        head = f"<doc{render_attributes(self.attributes)}>\n"
        stored = StoredDocument(self.attributes, f"{head}{kept_elements(self.paragraphs).decode()}</doc>\n")
        text = ENCODERS[FORMATS[format_name]](stored)
        return f"{TEI_HEAD}{text}{TEI_TAIL}" if format_name == "xmltei" else text


class Identified(NamedTuple):
    """The language of a text."""

    language: str | None  # code of the nearest language; None for a text without letters
    known_share: float
    """How usual the text's character 4-grams and words are for the language: 1 is as in its own texts, and a crawl
    keeps what reaches .6."""
    candidates: tuple[str, ...]  # the languages that it may be in, nearest first; none if it is too short or unusual


def extract(
    page: str | bytes | PathLike[str],
    lang: str = "",
    url: str | None = None,
    *,
    kinds: str = Options().paragraph_kinds,
    markup: str = "",
) -> Document:
    """The document in *page*: HTML, PDF, Word, OpenDocument or EPUB, as bytes or the path of a file; or HTML as text.

    A str with a ``<`` in it is HTML, any other is a path.  *lang* names the languages that are kept, such as 'cs,sk';
    by default all that are known.  Relative links need the page's *url*.  *kinds* of paragraphs and *markup* are
    named as in the settings SPIDERLING_PARAGRAPH_KINDS and SPIDERLING_MARKUP.  A page without text gives a document
    without kept paragraphs.

    Raises BadInput for an unknown language, kind or mark-up, and for a file that cannot be read.
    """
    body, charset = _read(page)
    accepted, process = _chain(lang, kinds, markup)
    return document_of(process(Task(body, url or NO_URL, charset)), url, accepted)


def document_of(page: Page, url: str | None, accepted: Sequence[str]) -> Document:
    """The document of *page*, which was found at *url*, if that is known."""
    attributes = {
        "url": url,
        "title": page.title,
        "author": page.meta.get("author", ""),
        "lang": page.language if page.language in accepted and page.clean_chars else "",
        "langs": " ".join(f"{code}:{share:.2f}" for code, share in page.languages.items()),
        "published": page.published,
        "modified": page.modified,
        "enc_declared": page.encoding_declared,
        "enc_detected": page.encoding_detected,
        "length": str(page.clean_bytes),
        "words": str(page.words),
        "file_type": page.file_type,
        "text_source": page.text_source,
        "mended": page.mended,
        "licence": page.licence,
        "licence_basis": page.licence_basis,
        "licence_sure": page.licence_sure,
        "badness": f"{page.badness:.1f}",
        "known_share": f"{page.known_share:.2f}",
        **page.quality.attributes(),
    }
    links = dict.fromkeys(link.url for link in page.links if not link.url.startswith(NO_URL))
    return Document({name: value for name, value in attributes.items() if value}, tuple(page.paragraphs), tuple(links))


def identify(text: str, among: str = "") -> Identified:
    """The language of *text*, of those that *among* names, such as 'cs,sk,pl'; by default of all that are known.

    Raises BadInput for an unknown language.
    """
    guesses = _models(_accepted(among)).identify(text.splitlines())
    nearest = guesses.nearest()
    share = guesses.known_share(nearest) if nearest else 0.0
    return Identified(nearest, share, guesses.candidates(Options().min_known_share))


def read(name: str | PathLike[str]) -> Iterator[Document]:
    """The documents of a crawl's directory, with all its shards, or of a file of prevertical, one after the other.

    A crawl may be running: these are the documents that it has acknowledged.  Raises BadInput, JobdirError for a
    damaged crawl, and DamageError where a file cannot be read on.
    """
    from spiderling.corpus.segments import parse_document
    from spiderling.export.sources import corpus_of

    for stored in corpus_of([str(name)]).left():
        attributes, texts, details = parse_document(stored)
        paragraphs = (
            Paragraph(
                text,
                detail.get("class", "good"),
                detail.get("kind", ""),
                "heading" in detail,
                detail.get("lang"),
                True,
                "dup" in detail,
                tuple((name, detail[name]) for name in MARKUP_ATTRIBUTES if name in detail),
            )
            for text, detail in zip(texts, details, strict=True)
        )
        yield Document(attributes, tuple(paragraphs))


def dedup(
    sources: Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    window: int = 7,
    threshold: float = 0.5,
    unit: str = "paragraph",
    mark: bool = False,
    memory: str = "2G",
    temp: str | PathLike[str] = "",
    warn: Callable[[str], object] = print,
) -> tuple[DedupTotals, int]:
    """Write the documents of *sources*, crawls and files of prevertical, without near-duplicates to the file *out*.

    A *unit*, 'paragraph' or 'document', is one if more than *threshold* of its tuples of *window* words stand in those
    before it, kept or not (export/deduplication.py); with *mark* it stays and says so.  *memory* is the most that is
    used, *temp* where a directory is made for the work, and *warn* gets what is wrong with a source.  Returns totals,
    and how many documents were written.  Raises BadInput, and StorageError.
    """
    from spiderling.export.deduplication import Deduplication, Rule
    from spiderling.export.export import ExportPlan
    from spiderling.export.formats import format_of
    from spiderling.export.sources import corpus_of

    out = Path(out)
    if out.exists():
        raise BadInput(f"{out} exists; remove it, or give another name.")
    corpus = corpus_of(map(str, sources))
    for trouble in corpus.troubles:
        warn(trouble)
    plan = ExportPlan(out, format_of(out.name))
    place = Path(temp or out.parent)
    with saving(place):
        place.mkdir(parents=True, exist_ok=True)
        work = TemporaryDirectory(".work", f"{out.name}.", place)
    with work as directory:
        run = Deduplication(Rule(window, threshold, unit, mark), Path(directory), parse_size(memory))
        run.collect(corpus)
        run.compare()
        totals, kept = run.write(corpus, plan)
    if not kept:
        raise BadInput("there is no document in the corpora, so nothing is written.")
    return totals, kept


def config_of(lang: str, kinds: str, markup: str = "") -> WorkerConfig:
    """What `extract` judges pages by, for a text worker; raises BadInput."""
    infos = find_languages(lang) if lang else []
    accepted = [info.code for info in infos] or codes_of()
    options = replace(Options(), lang=",".join(accepted), paragraph_kinds=kinds, markup=markup)
    return WorkerConfig.from_options(options, accepted, tuple(to_recognise(infos) if infos else accepted))


def _read(page: str | bytes | PathLike[str]) -> tuple[bytes, str | None]:
    """The bytes of *page*, and their encoding if that is known."""
    if isinstance(page, bytes):
        return page, None
    if isinstance(page, str) and "<" in page:
        return page.encode("utf-8", "replace"), "utf-8"
    try:
        return Path(page).read_bytes(), None
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(page)[:200]!r} cannot be read ({error}); give a file, bytes, or HTML as text.") from None


@cache
def _accepted(lang: str) -> tuple[str, ...]:
    """Codes of the languages that *lang* names; of all if it names none."""
    return tuple(info.code for info in find_languages(lang)) if lang else codes_of()


@cache
def _models(codes: tuple[str, ...]) -> LanguageModels:
    return load(codes)


@cache
def _chain(lang: str, kinds: str, markup: str) -> tuple[Sequence[str], Callable[[Task], Page]]:
    """The codes of the languages that are kept, and the text chain, whose models are loaded once."""
    config = config_of(lang, kinds, markup)
    return config.options.accepted, text_process(config)
