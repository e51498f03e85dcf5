"""The function that converts each kind of document."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spiderling.text.documents.document import Document
from spiderling.text.documents.office import from_docx, from_epub, from_odt


def from_pdf(body: bytes) -> Document:
    """PDF by PDFium; see pdf.py."""
    from spiderling.text.documents import pdf  # its library is large, and few crawls need it

    return pdf.convert(body)


CONVERTERS: Mapping[str, Callable[[bytes], Document]] = {
    "pdf": from_pdf,
    "docx": from_docx,
    "odt": from_odt,
    "epub": from_epub,
}
"""Kind (base/media_types.py) -> function; each raises DocumentError and nothing else."""
