"""The formats of an export, and their writers.

JSONL and Parquet have the same columns (docs/formats.md), and every record has every column.  A missing value is "" in
a column of text and null in one of numbers or times, so readers that guess types from the first records guess right.

Text formats are packed in frames of about a megabyte (zstd or gzip, by the file's name), so no file need stay open.
"""

from __future__ import annotations

import glob
import gzip
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path, PurePath
from tempfile import SpooledTemporaryFile
from typing import Any
from urllib.parse import quote

from spiderling import __version__
from spiderling.base.errors import BadInput
from spiderling.base.files import frame_packer, part_of
from spiderling.base.option_values import CODE
from spiderling.base.terminal import hint
from spiderling.corpus.receipts import Receipt, receipts_in
from spiderling.corpus.segments import CorpusDocument, StoredDocument, parse_document, unescape
from spiderling.languages import available
from spiderling.text.prevertical import escape, render_attributes, tokens, with_breaks
from spiderling.text.quality import END, FOLLOWING, FULL_STOP, SIGNS

FRAME_CHARS = 1_000_000  # characters of a frame; chosen
_ROW_GROUP_DOCUMENTS = 6_144
"""Documents of a row group of Parquet, a multiple of DuckDB's 2,048 (chosen: some 20 MB of text)."""
_JSON_BYTES = 1 << 24  # bytes of the longest line that DuckDB reads by default
PACKED = (".zst", ".gz")


# -- a document as a record

COLUMNS = {
    **dict.fromkeys(("id", "url", "host", "tld", "title", "lang"), "string"),
    "langs": "shares",
    "text": "text",
    **dict.fromkeys(("words", "length", "distance", "version"), "int"),
    "crawl_date": "time",
    **dict.fromkeys(
        ("published", "modified", "file_type", "text_source", "mended", "enc_declared", "enc_detected", "ip"), "string"
    ),
    **dict.fromkeys(
        ("licence", "licence_basis", "licence_sure", "optout", "translated", "first_seen", "pii"), "string"
    ),
    **dict.fromkeys(("yield", "badness", "known_share", "seen_share", "stopword_share", "sentence_words"), "float"),
    **dict.fromkeys(("repeated_share", "digit_share", "symbol_share", "good_share", "packed_share"), "float"),
    **dict.fromkeys(("top_word_share", "outlinks", "walk_weight"), "float"),
    "other": "string",
    "paragraphs": "paragraphs",
}
"""Name -> type.  ``text`` holds the paragraphs, one a line, ``other`` what pipelines of a user add, as JSON."""

_SQL_TYPES = {
    "string": "VARCHAR",
    "text": "VARCHAR",
    "int": "BIGINT",
    "float": "DOUBLE",
    "time": "VARCHAR",
    "shares": "STRUCT(lang VARCHAR, share DOUBLE)[]",
    "paragraphs": "STRUCT(text VARCHAR, class VARCHAR, kind VARCHAR, heading BOOLEAN, lang VARCHAR, dup BOOLEAN)[]",
}
"""Type of a column -> that of DuckDB in which it is read."""
_MARKS = {"class": False, "kind": False, "heading": True, "lang": False, "dup": True}
"""Attribute of a paragraph -> whether it is a yes or no, written as "1" or left out; the others are text."""
CONDITION_COLUMNS = [name for name, kind in COLUMNS.items() if kind not in ("text", "paragraphs")]
"""The columns that a condition of ``--where`` may name; dates, and languages with their shares, are text."""
_MONTH = re.compile(r"\d{4}-\d\d(?!\d)")
_INT = re.compile(r"-?\d{1,18}")


def record_of(document: CorpusDocument) -> dict[str, Any]:
    """Column -> value of *document*; a malformed value counts as missing."""
    attributes = document.attributes
    record = {name: _READERS.get(kind, str)(attributes.get(name, "")) for name, kind in COLUMNS.items()}
    record["text"] = "\n".join(document.paragraphs)
    record["other"] = _other(attributes)
    record["paragraphs"] = [
        {"text": text}
        | {name: detail.get(name) == "1" if is_mark else detail.get(name, "") for name, is_mark in _MARKS.items()}
        for text, detail in zip(document.paragraphs, document.details, strict=True)
    ]
    return record


def condition_values(attributes: Mapping[str, str], columns: Iterable[str]) -> list[str | float | None]:
    """The values of *columns* for a condition."""
    values = {**attributes, "other": _other(attributes) or "{}"}
    readers = {"int": _int, "float": number}
    return [readers.get(COLUMNS[name], str)(values.get(name, "")) for name in columns]


def _other(attributes: Mapping[str, str]) -> str:
    further = {name: value for name, value in attributes.items() if name not in COLUMNS}
    return json.dumps(further, ensure_ascii=False) if further else ""


def number(value: str) -> float | None:
    """*value* as a finite number, else None."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _int(value: str) -> int | None:
    return int(value) if _INT.fullmatch(value) else None


def _time(value: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(value)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # the second: a year before 1 or after 9999 by UTC
        return None


def _shares(value: str) -> list[dict[str, Any]]:
    pairs = (entry.partition(":") for entry in value.split())
    return [{"lang": language, "share": number(share)} for language, _, share in pairs]


_READERS: dict[str, Callable[[str], Any]] = {"int": _int, "float": number, "time": _time, "shares": _shares}
"""Kind of a column -> how a value is read; others are text."""


# -- TEI

TEI_HEAD = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<teiCorpus xmlns="http://www.tei-c.org/ns/1.0">
<teiHeader>
<fileDesc>
<titleStmt><title>Web corpus</title></titleStmt>
<publicationStmt><p>Made by Spiderling {__version__}. The texts belong to their authors.</p></publicationStmt>
<sourceDesc><p>Pages of the web; each text names its own.</p></sourceDesc>
</fileDesc>
</teiHeader>
"""
TEI_TAIL = "</teiCorpus>\n"

_PLACED = {"id", "url", "host", "title", "lang", "langs", "crawl_date", "published", "modified", "words", "licence"}
"""Attributes that have an element of their own."""
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?)?)?)?")
_IPV6 = re.compile(r"^(\w+://)%5B([0-9A-Fa-f:.]+)%5D")
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def tei(document: StoredDocument) -> str:
    """*document* as a ``<TEI>`` of TEI P5; a file is a ``<teiCorpus>`` of these.

    All stands in elements of the schema tei_all: address, dates, licence and languages in those that TEI has for them,
    the other attributes as notes.
    """
    return "".join(f"{line}\n" for line in _lines(document))


def _lines(document: StoredDocument) -> Iterator[str]:
    attributes, paragraphs, details = parse_document(document)
    url = attributes.get("url", "")
    title = f"<title>{escape(attributes.get('title') or url)}</title>"
    yield "<TEI><teiHeader>"
    yield f"<fileDesc><titleStmt>{title}</titleStmt>"
    words = attributes.get("words", "")
    if words.isascii() and words.isdigit():
        yield f'<extent><measure unit="words" quantity="{words}">{words} words</measure></extent>'
    yield f"<publicationStmt><publisher>{escape(attributes.get('host') or 'unknown')}</publisher>"
    licence = attributes.get("licence", "")
    availability = f"<licence{_target(licence)}>{escape(licence)}</licence>" if licence else ""
    availability = availability and f"<availability>{availability}</availability>"
    yield f"<idno>{escape(attributes.get('id', ''))}</idno>{availability}</publicationStmt>"
    notes = [(name, value) for name, value in attributes.items() if name not in _PLACED and value]
    if notes:
        written = "".join(f'<note type="{name}">{escape(value)}</note>' for name, value in notes)
        yield f"<notesStmt>{written}</notesStmt>"
    reference = f"<ref{_target(url)}>{escape(url)}</ref>" if url else ""
    yield f"<sourceDesc><bibl>{title}{_dates(attributes)}{reference}</bibl></sourceDesc></fileDesc>"
    languages = _languages(attributes)
    if languages:
        yield f"<profileDesc><langUsage>{languages}</langUsage></profileDesc>"
    yield "</teiHeader>"
    yield f"<text{_lang(attributes.get('lang', ''))}><body>"
    for container, group in groupby(zip(paragraphs, details, strict=True), _container):
        if container == "row":
            rows = (_items(row, "cell") for _, row in groupby(group, lambda entry: entry[1]["row"]))
            yield from ("<table>", *(f"<row>{row}</row>" for row in rows), "</table>")
        elif container:
            yield f"<list>{_items(group, 'item')}</list>"
        else:
            yield from map(_element, group)
    if not paragraphs:
        yield "<p/>"
    yield "</body></text></TEI>"


_Entry = tuple[str, dict[str, str]]  # text and attributes of a paragraph


def _container(entry: _Entry) -> str:
    """What the paragraph is in: "row" for a table, its number for a list, else nothing."""
    return "row" if "row" in entry[1] else entry[1].get("list", "")


def _items(group: Iterable[_Entry], name: str) -> str:
    """The elements *name* of a list or a row."""
    items = groupby(group, lambda entry: entry[1].get("item", ""))
    return "".join(f"<{name}>{''.join(map(_element, item))}</{name}>" for _, item in items)


def _element(entry: _Entry) -> str:
    """The element of a paragraph."""
    text, detail = entry
    name = "heading" if detail.get("heading") == "1" else detail.get("kind", "")
    element, kind = ("p", "") if name in ("", "text") else ("ab", f' type="{escape(name)}"')
    double = ' rend="duplicate"' if detail.get("dup") == "1" else ""
    return f"<{element}{kind}{double}{_lang(detail.get('lang', ''))}>{with_breaks(text)}</{element}>"


def _dates(attributes: Mapping[str, str]) -> str:
    said = [(name, attributes.get(name, "")) for name in ("published", "modified")]
    said.append(("crawled", attributes.get("crawl_date", "").replace(" ", "T")))
    return "".join(f'<date type="{name}"{_when(date)}>{escape(date)}</date>' for name, date in said if date)


def _when(date: str) -> str:
    """*date* as an attribute, if it is a year, month, day or time by the rules of XML Schema."""
    with suppress(ValueError):
        datetime.fromisoformat(date if len(date) > 7 else f"{date}-01-01"[:10])  # a year or month by its first day
        return f' when="{date}"' if _DATE.fullmatch(date) else ""
    return ""


def _languages(attributes: Mapping[str, str]) -> str:
    pairs = (entry.partition(":") for entry in attributes.get("langs", "").split())
    shares = ((code, re.fullmatch(r"[01](?:\.\d+)?", share)) for code, _, share in pairs if _LANGUAGE.fullmatch(code))
    return "".join(
        f'<language ident="{code}" usage="{100 * float(share[0]):.0f}"/>' if share else f'<language ident="{code}"/>'
        for code, share in shares
    )


def _lang(code: str) -> str:
    return f' xml:lang="{code}"' if _LANGUAGE.fullmatch(code) else ""


def _target(url: str) -> str:
    """*url* as an attribute, if it is one of the web; what may not stand in an anyURI is percent-encoded."""
    if not url.startswith(("http://", "https://")):
        return ""
    address, *fragment = (quote(part, safe="%/:?@!$&'()*+,;=-._~") for part in _NO_ESCAPE.sub("%25", url).split("#", 1))
    pointer = "#".join([_IPV6.sub(r"\1[\2]", address), *fragment])
    return f' target="{escape(pointer)}"'


# -- text formats: a document as it stands in a file


def _jsonl(document: StoredDocument) -> str:
    """One line; times as ISO 8601."""
    record = record_of(parse_document(document))
    time = record["crawl_date"]
    date = time and time.isoformat(timespec="seconds").replace("+00:00", "Z")
    return json.dumps(record | {"crawl_date": date}, ensure_ascii=False) + "\n"


def _text(document: StoredDocument) -> str:
    return "".join(f"{paragraph}\n" for paragraph in parse_document(document).paragraphs) + "\n"


def _markdown(document: StoredDocument) -> str:
    """Headings, code and paragraphs of lists as such, under the title."""
    attributes, paragraphs, details = parse_document(document)
    parts = [f"# {attributes['title']}"] if "title" in attributes else []
    for text, detail in zip(paragraphs, details, strict=True):
        mark = "## " if "heading" in detail else "- " if "list" in detail else ""
        broken = text.replace("\n", "\\\n")
        parts.append(f"```\n{text}\n```" if detail.get("kind") == CODE else f"{mark}{broken}")
    return "\n\n".join(parts) + "\n\n"


def _vertical(document: StoredDocument) -> str:
    """One token a line, with ``<g/>`` between two tokens without a space; ``<doc>`` gets the month of its fetch."""
    found = _MONTH.match(document.attributes.get("crawl_date", ""))
    month = "" if "month" in document.attributes else render_attributes({"month": found[0] if found else ""})
    head, _, body = document.text.partition("\n")
    lines = [head.removesuffix(">") + month + ">"]
    for line in body.replace("<lb/>", "\n<lb/>\n").split("\n"):
        if line.startswith("<") or not line:
            lines.append(line)
            continue
        for token in tokens(unescape(line)):
            lines += ["<g/>", escape(token.text)] if token.glued else [escape(token.text)]
    return "\n".join(lines)


# -- CoNLL-U

Annotate = Callable[[str, str], str]
"""From the text of a paragraph and the code of its language, '' if that is not known, to its sentences in CoNLL-U."""
_CLOSING = re.escape(SIGNS[FOLLOWING].strip() + "」』》】）")
_QUOTES = _CLOSING + "“‘«»"  # in languages with spaces, where a quote behind a sign closes
_END = re.compile(
    rf"[{SIGNS[FULL_STOP]}][{_CLOSING}{SIGNS[END]}{SIGNS[FULL_STOP]}]*\s*"
    rf"|(?<![{_QUOTES}{SIGNS[END]}])(?:(?<!\b\w)(?<!\b\d\d)|(?!\.\s))"  # but "J. Novák", "5. Mai"
    rf"(?=[{_QUOTES}]*[{SIGNS[END]}])[{_QUOTES}{SIGNS[END]}]++\s+"
)
"""What ends a sentence: signs of text/quality.py with quotes and brackets at them; each run of these is read once."""
_ROW = re.compile(r"\d+([-.]\d+)?(\t[^\t]+){9}")
_NOT_SAID = 7 * "\t_"  # the columns from the lemma on, but for the last one


def conllu(document: StoredDocument, annotate: Annotate | None = None) -> str:
    """*document* in CoNLL-U (universaldependencies.org/format.html); without *annotate* only tokens and sentences.

    Attributes are comments named ``meta::``.  Raises BadInput for what *annotate* raises, and if it gives no CoNLL-U.
    """
    attributes, paragraphs, details = parse_document(document)
    name = attributes.get("id") or attributes.get("url", "")
    head = [f"# newdoc id = {name}"]
    head += [f"# meta::{key} = {' '.join(value.split())}" for key, value in attributes.items() if key != "id"]
    lines = []
    for place, (text, detail) in enumerate(zip(paragraphs, details, strict=True), 1):
        head.append(f"# newpar id = {name}-p{place}")
        said = _annotated(annotate or _plain, text, detail.get("lang") or attributes.get("lang", ""))
        for number, sentence in enumerate(filter(None, said.strip().split("\n\n")), 1):
            rows = [row for row in sentence.split("\n") if not row.startswith(("# newdoc", "# newpar", "# sent_id"))]
            lines += [*head, f"# sent_id = {name}-p{place}s{number}", *rows, ""]
            head = []
        if head:  # a paragraph without a sentence
            head.pop()
    return "".join(f"{line}\n" for line in lines)


def _annotated(annotate: Annotate, text: str, language: str) -> str:
    """What *annotate* says of a paragraph, with one empty line between sentences."""
    try:
        lines = [line.rstrip("\r ") for line in annotate(text, language).split("\n")]
    except Exception as error:  # it is the user's
        raise BadInput(f"the annotator failed at {text[:80]!r}: {type(error).__name__}: {error}") from error
    for line in lines:
        if line and not line.startswith("#") and not _ROW.fullmatch(line):
            raise BadInput(f"the annotator gave {line!r} for {text[:80]!r}, which is no row of ten columns of CoNLL-U.")
    return re.sub("\n{3,}", "\n\n", "\n".join(lines))


def _plain(text: str, _language: str) -> str:
    """Sentences end at _END, if no small letter follows; tokens are those of vertical files."""
    ends = [match.end() for match in _END.finditer(text) if not text[match.end() :][:1].islower()]
    sentences = []
    for start, end in pairwise([0, *ends, len(text)]):
        found = list(tokens(text[start:end]))
        glued = [token.glued for token in found[1:]] + [end < len(text) and not text[end - 1].isspace()]
        rows, words = [], ""
        for number, (token, is_glued) in enumerate(zip(found, glued, strict=False), 1):
            words += token.text + ("" if is_glued else " ")
            rows.append(f"{number}\t{token.text}{_NOT_SAID}\t{'SpaceAfter=No' if is_glued else '_'}\n")
        if rows:
            sentences.append(f"# text = {words.rstrip()}\n{''.join(rows)}")
    return "\n".join(sentences)


ENCODERS: dict[str, Callable[[StoredDocument], str]] = {
    "prevertical": attrgetter("text"),
    "vertical": _vertical,
    "conllu": conllu,
    "jsonl": _jsonl,
    "text": _text,
    "markdown": _markdown,
    "tei": tei,
}
FORMATS = (*ENCODERS, "parquet")
ENDINGS = {
    ".prevert": "prevertical",
    ".vert": "vertical",
    ".conllu": "conllu",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".txt": "text",
    ".md": "markdown",
    ".tei.xml": "tei",
    ".xml": "tei",
}


def split_name(name: str) -> tuple[str, str]:
    """(name without endings, endings): ``cs.jsonl.zst`` -> ``cs``, ``.jsonl.zst``."""
    match = re.fullmatch(rf"(.+?)((?:{'|'.join(map(re.escape, ENDINGS))})?(?:\.zst|\.gz)?)", name)
    return (match[1], match[2]) if match else (name, "")


def format_of(name: str, wanted: str = "") -> str:
    """The format by a file's name; without an ending that says it *wanted*, or prevertical.

    Raises BadInput for an unknown ending, and for one of another format than *wanted*.
    """
    stem, ending = split_name(name)
    said = next((found for known, found in ENDINGS.items() if re.match(rf"{known}\b", ending)), wanted)
    if wanted:
        if said != wanted:
            raise BadInput(f"the ending of {name} says {said}, not {wanted}; leave --format out, or give another name.")
        return wanted
    unknown = PurePath(stem).suffix
    if unknown and ending in ("", *PACKED):
        raise BadInput(f"the ending {unknown} of {name} says no format; {hint(unknown, ENDINGS, likeness=0.7)}")
    return said or "prevertical"


def packer(name: str) -> Callable[[bytes], bytes]:
    """A function that packs bytes into a frame, by the ending of *name*; a file is a sequence of frames."""
    if name.endswith(".zst"):
        return frame_packer(level=9)
    return (lambda data: gzip.compress(data, mtime=0)) if name.endswith(".gz") else bytes


# -- registry files

_TAG = re.compile(r"^<([a-z][^<>]*?)/?>$", re.MULTILINE)
_NAME = re.compile(r' ([\w:.-]+)="')
_UNPACKERS = {".gz": "| zcat", ".zst": "| zstd -dcq"}
_ROOT = "/corpora"
_LOWER_CASE = """\
ATTRIBUTE "lc" {
\tDYNAMIC "utf8lowercase"
\tDYNLIB "internal"
\tARG1 "C"
\tFUNTYPE "s"
\tFROMATTR "word"
\tTYPE "index"
\tTRANSQUERY "yes"
}"""
_GLUE = ['\tDISPLAYTAG "0"', '\tDISPLAYBEGIN "_EMPTY_"']  # between the tokens beside a ``<g/>`` no space is shown


def corpora_xml(names: Iterable[str]) -> str:
    """The corpora *names*, as KonText reads them (corplist.rng of its plugin default_corparch)."""
    entries = "".join(f'<corpus ident="{name}" sentence_struct="p"/>\n' for name in names)
    return f"<kontext>\n<corplist>\n{entries}</corplist>\n</kontext>\n"


class Registry:
    """Collects what one part of a vertical corpus declares, for its registry file.

    Sketch Engine and NoSketch Engine read that to compile and show a corpus.  It declares each structure and attribute
    that occurs, and no other (documentation of the corpus configuration file on sketchengine.eu).  PATH and VERTICAL
    are those of a server that keeps each corpus in a directory of /corpora.
    """

    def __init__(self) -> None:
        self._structures: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """Structure -> its attributes, in the order in which they came."""
        self._languages: Counter[str] = Counter()

    def noted(self, document: StoredDocument) -> str:
        """*document* as it stands in a vertical file, whose structures are noted."""
        text = _vertical(document)
        self._languages[document.attributes.get("lang", "")] += 1
        for tag in dict.fromkeys(_TAG.findall(text)):
            self._structures[tag.partition(" ")[0]] |= dict.fromkeys(_NAME.findall(tag))
        return text

    def text(self, name: str, files: Sequence[str]) -> str:
        """The registry file of the corpus *name*, whose vertical *files* follow one another."""
        return "\n".join(self._lines(name, files)) + "\n"

    def _lines(self, name: str, files: Sequence[str]) -> Iterator[str]:
        place = f"{_ROOT}/{name}"
        verticals = " ".join(f"{place}/vertical/{file}" for file in files)
        ending = re.sub(r".*(?=\.)", "", files[0])
        unpacker = _UNPACKERS.get(ending, "| cat" if len(files) > 1 else "")
        (code, _), *_ = self._languages.most_common(1) or [("", 0)]
        language = available("").get(code)
        yield f"# Registry file; it becomes {name} in the directory of registry files."
        yield "# Change PATH (for the compiled corpus) and VERTICAL if your server has other places for them."
        yield f'NAME "{name}"'
        yield f'PATH "{place}/indexed/"'
        yield f'VERTICAL "{unpacker} {verticals}"' if unpacker else f'VERTICAL "{verticals}"'
        yield 'ENCODING "UTF-8"'
        if language is not None:
            yield f'LANGUAGE "{language.name}"'
        yield 'DOCSTRUCTURE "doc"'
        yield 'ATTRIBUTE "word"'
        yield _LOWER_CASE
        for structure, attributes in self._structures.items():
            inside = _GLUE if structure == "g" else [f'\tATTRIBUTE "{attribute}"' for attribute in attributes]
            yield from [f'STRUCTURE "{structure}" {{', *inside, "}"] if inside else [f'STRUCTURE "{structure}"']


# -- writers

GiveReceipt = Callable[[bytes, StoredDocument], bytes]
"""From a document as it stands in a file, and where it came from, to its receipt (corpus/receipts.py)."""
_RECEIPTS_BYTES = 16_000_000  # bytes of a file's receipts that are in memory, those of 400,000 documents; chosen


def writer(
    path: Path, format_name: str, registry: Registry, annotate: Annotate | None, receipt: GiveReceipt
) -> TextWriter:
    """A writer to the new file *path*; *registry* collects what stands in a vertical file, *annotate* is for CoNLL-U.

    Raises OSError, and BadInput if the file exists.
    """
    if format_name == "parquet":
        return ParquetWriter(path, receipt)
    if format_name == "vertical":
        return TextWriter(path, receipt, registry.noted)
    if format_name == "tei":
        return TextWriter(path, receipt, tei, TEI_HEAD, TEI_TAIL)
    if format_name == "conllu":
        return TextWriter(path, receipt, partial(conllu, annotate=annotate))
    return TextWriter(path, receipt, ENCODERS[format_name])


class TextWriter:
    """Writes a text format; until the export is complete the file has a temporary name, and is open only in a write."""

    growth = 1.0  # bytes of the complete file for each that is written before ``close`` (measured)

    def __init__(
        self,
        path: Path,
        receipt: GiveReceipt,
        encode: Callable[[StoredDocument], str],
        head: str = "",
        tail: str = "",
    ) -> None:
        """*head* and *tail* stand before the first document, to whose receipt it belongs, and behind the last."""
        if path.exists():
            raise BadInput(f"{path} exists; remove it, or give another name.")
        self.path = path
        self.temporary = part_of(path)
        self.documents = 0  # number of those that were added
        self.waiting = 0  # characters that were added and are not in the file yet
        self._receipts = SpooledTemporaryFile(_RECEIPTS_BYTES)  # noqa: SIM115 - closed when they are written
        self._receipt = receipt
        self._encode = encode
        self._pack = packer(path.name)
        self._texts: list[str] = []
        self._head = head
        self._tail = tail
        self.temporary.write_bytes(b"")

    def add(self, document: StoredDocument) -> bool:
        """Write *document*; False if nothing of it stands in this format, as of one without a sentence in CoNLL-U."""
        text = self._encode(document)
        if not text:
            return False
        text = self._head + text
        self._head = ""
        self._receipts.write(self._receipt(text.encode(), document))
        self._texts.append(text)
        self.documents += 1
        self.waiting += len(text)
        if self.waiting >= FRAME_CHARS:
            self.flush()
        return True

    def flush(self) -> None:
        if self._texts:
            with self.temporary.open("ab") as file:
                file.write(self._pack("".join(self._texts).encode()))
        self._texts = []
        self.waiting = 0

    def close(self) -> None:
        self._texts += [self._tail] if self._tail else []
        self.flush()

    def take_receipts(self) -> Iterator[Receipt]:
        """The receipts of its documents, once."""
        with self._receipts as file:
            file.seek(0)
            while data := file.read(_RECEIPTS_BYTES):
                yield from receipts_in(data)

    @property
    def size(self) -> float:
        """Bytes of the complete file, if nothing is added."""
        return self.growth * self.temporary.stat().st_size


class ParquetWriter(TextWriter):
    """Writes Apache Parquet, packed by zstd; until ``close`` the documents stand in the file as lines of JSON."""

    growth = 1.5

    def __init__(self, path: Path, receipt: GiveReceipt) -> None:
        super().__init__(path, receipt, self._noted)
        self._pack = frame_packer(level=1)
        self._longest = _JSON_BYTES  # bytes of the longest document, at least those for which DuckDB is ready

    def _noted(self, document: StoredDocument) -> str:
        line = _jsonl(document)
        self._longest = max(self._longest, len(line.encode()))
        return line

    def close(self) -> None:
        import duckdb  # large, and most runs do not need it

        super().close()
        types = {name: _SQL_TYPES[kind] for name, kind in COLUMNS.items()}
        columns = part_of(self.temporary)
        try:
            with duckdb.connect(config={"threads": 1}) as connection:
                connection.execute("SET TimeZone = 'UTC'")
                lines = connection.read_json(
                    glob.escape(str(self.temporary)),
                    columns=types,
                    format="newline_delimited",
                    compression="zstd",
                    maximum_object_size=self._longest,
                    hive_partitioning=False,  # a directory named lang=cs says nothing of the documents
                )
                rows = lines.project("* REPLACE (TRY_CAST(crawl_date AS TIMESTAMPTZ) AS crawl_date)")
                rows.write_parquet(str(columns), compression="zstd", row_group_size=_ROW_GROUP_DOCUMENTS)
            columns.replace(self.temporary)
        except duckdb.Error as error:
            raise OSError(str(error).partition("\n")[0]) from error
        finally:
            columns.unlink(missing_ok=True)
