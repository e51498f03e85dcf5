"""Small documents of each kind, made from paragraphs, and ways to spoil them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
HEADING = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
ODF = "urn:oasis:names:tc:opendocument:xmlns"
CORE = """<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">
<dc:title>Kočka &amp; pes</dc:title><dc:creator>A. B.</dc:creator><dc:language>cs-CZ</dc:language>
<dcterms:created>2020-02-03T04:05:06Z</dcterms:created></cp:coreProperties>"""


def zipped(members: Mapping[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data, zipfile.ZIP_STORED if name == "mimetype" else compression)
    return buffer.getvalue()


def docx(paragraphs: Sequence[str], extra: str = "", **parts: str) -> bytes:
    """A paragraph that begins with # is a heading; *extra* is WordprocessingML, *parts* are that of other parts."""
    body = "".join(
        f"<w:p>{HEADING if text[:1] == '#' else ''}<w:r><w:t>{escape(text.lstrip('#'))}</w:t></w:r></w:p>"
        for text in paragraphs
    )
    main = f'<?xml version="1.0"?><w:document xmlns:w="{W}"><w:body>{body}{extra}</w:body></w:document>'
    others = {f"word/{name}.xml": f'<w:{name} xmlns:w="{W}">{xml}</w:{name}>' for name, xml in parts.items()}
    return zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": main, "docProps/core.xml": CORE, **others})


def odt(paragraphs: Sequence[str], extra: str = "", styles: str = "") -> bytes:
    body = "".join(
        f"<text:h>{escape(text[1:])}</text:h>" if text[:1] == "#" else f"<text:p>{escape(text)}</text:p>"
        for text in paragraphs
    )
    main = f"""<office:document-content xmlns:office="{ODF}:office:1.0" xmlns:text="{ODF}:text:1.0"
        xmlns:style="{ODF}:style:1.0" xmlns:svg="{ODF}:svg-compatible:1.0">{styles}
        <office:body><office:text>{body}{extra}</office:text></office:body></office:document-content>"""
    return zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": main, "meta.xml": CORE})


def epub(chapters: Sequence[str]) -> bytes:
    """*chapters* are HTML."""
    items = "".join(f'<item id="c{i}" href="text/c%20{i}.html"/>' for i in range(len(chapters)))
    refs = "".join(f'<itemref idref="c{i}"/>' for i in reversed(range(len(chapters))))
    package = f'<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Kniha</dc:title></metadata>\
<manifest>{items}</manifest><spine>{refs}<itemref idref="none"/></spine></package>'
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/p.opf"/></rootfiles></container>',
            "OPS/p.opf": package,
            **{f"OPS/text/c {i}.html": html for i, html in enumerate(chapters)},
        }
    )


def pdf(
    pages: Sequence[Sequence[tuple[float, float, float, str]]],
    title: str = "",
    said: Mapping[str, str | None] | None = None,
) -> bytes:
    """Pages of lines (x, y, size in points, text).

    In latin-1, if *said* is not given.  It is what the font says of its characters: others are right, and None has no
    character at all.  Glyphs have numbers from 3 on, in the order of the characters.
    """
    every = sorted({char for page in pages for *_, text in page for char in text})
    glyphs = {char: number + (number > 31) for number, char in enumerate(every, 3)}  # PDFium takes 32 for a space
    count = len(pages)
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
    after = 5 + 2 * count
    if said is not None:
        font = b"<</Type/Font/Subtype/Type0/BaseFont/AAAAAA+Made/Encoding/Identity-H"
        font += b"/DescendantFonts[%d 0 R]/ToUnicode %d 0 R>>" % (after, after + 1)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (count, b" ".join(b"%d 0 R" % (5 + 2 * i) for i in range(count))),
        font,
        b"<</Title(%s)/Author(A. B.)/CreationDate(D:20200203040506Z)>>" % title.encode("latin-1"),
    ]
    for i, lines in enumerate(pages):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources<</Font<</F 3 0 R>>>>>>"
            % (6 + 2 * i)
        )
        content = b"\n".join(
            b"BT /F %g Tf %g %g Td %s Tj ET" % (size, x, y, _string(text, glyphs if said is not None else None))
            for x, y, size, text in lines
        )
        objects.append(_stream(content))
    if said is not None:
        objects += [
            b"<</Type/Font/Subtype/CIDFontType2/BaseFont/AAAAAA+Made/DW 500/CIDSystemInfo<</Registry(Adobe)"
            b"/Ordering(Identity)/Supplement 0>>/FontDescriptor<</Type/FontDescriptor/FontName/AAAAAA+Made/Flags 4"
            b"/FontBBox[0 -200 900 800]/ItalicAngle 0/Ascent 800/Descent -200/CapHeight 700/StemV 80>>>>",
            _stream(_to_unicode({glyphs[char]: said.get(char, char) for char in every})),
        ]
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, data in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, data)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer<</Size %d/Root 1 0 R/Info 4 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return bytes(out)


def _string(text: str, glyphs: Mapping[str, int] | None) -> bytes:
    if glyphs is None:
        return b"(%s)" % text.encode("cp1252").replace(b"(", b"\\(").replace(b")", b"\\)")
    return b"<%s>" % b"".join(b"%04X" % glyphs[char] for char in text)


def _stream(data: bytes) -> bytes:
    return b"<</Length %d>>stream\n%s\nendstream" % (len(data), data)


def _to_unicode(table: Mapping[int, str | None]) -> bytes:
    rows = [
        b"<%04X> <%s>" % (glyph, said.encode("utf-16-be").hex().encode())
        for glyph, said in table.items()
        if said is not None
    ]
    parts = [rows[start : start + 100] for start in range(0, len(rows), 100)]
    tables = b"\n".join(b"%d beginbfchar\n%s\nendbfchar" % (len(part), b"\n".join(part)) for part in parts)
    head = (
        b"/CIDInit/ProcSet findresource begin 12 dict begin begincmap/CMapName/M def 1 begincodespacerange<0000><FFFF>"
    )
    return head + b"endcodespacerange\n" + tables + b"\nendcmap end end"


def set_lines(
    texts: Sequence[str], size: float = 11, x: float = 72, y: float = 700
) -> list[tuple[float, float, float, str]]:
    """*texts* one below the other."""
    return [(x, y - 1.2 * size * i, size, text) for i, text in enumerate(texts)]
