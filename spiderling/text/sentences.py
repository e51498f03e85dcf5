"""Divides paragraphs into sentences, by one rule for all languages and without a dictionary."""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(
    r"""
      [。！？।॥؟។]+["'»”“’‘)\]」』]*\s*                             # these always end a sentence
    | (?P<stop>[.!?…]+)["'»”“’‘)\]]*\s+(?=["'«„“‘(\[¿¡]*(?P<next>\w))
    """,
    re.VERBOSE,
)
_SHORT = re.compile(r"(?:^|[^\w])(?:[^\W\d_]|\d{1,2})$")
"""An initial or an ordinal number: the full stop behind it is part of it."""


def sentences(paragraph: str) -> Iterator[str]:
    """The sentences of *paragraph*, which lose nothing but the space between them.

    A sentence ends at a stop before a space and anything but a small letter, unless the stop belongs to an initial or
    to a number of one or two digits.

    >>> list(sentences("It was J. Novák. He came on 5. May at 3.15 p.m. to us! Why?"))
    ['It was J. Novák.', 'He came on 5. May at 3.15 p.m. to us!', 'Why?']
    """
    begin = 0
    for match in _END.finditer(paragraph):
        if match["stop"] == "." and _SHORT.search(paragraph, max(0, match.start() - 3), match.start()):
            continue
        if match["next"] is None or not match["next"].islower():
            yield paragraph[begin : match.end()].strip()
            begin = match.end()
    if rest := paragraph[begin:].strip():
        yield rest
