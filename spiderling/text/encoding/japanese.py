"""Decodes the characters that NEC and IBM added to JIS X 0208, such as ①, ㈱ and №, in EUC-JP and ISO-2022-JP.

Browsers know them in all Japanese encodings (WHATWG Encoding Standard, index jis0208),
Python in Shift_JIS (cp932) alone.
"""

from __future__ import annotations

import codecs

LACKING = frozenset({"euc_jp", "iso2022_jp"})
"""Codecs that lack them."""
ADDED = "spiderling-jis-added"
"""Name of the error handler that decodes them, and raises for any other error."""
_CELLS = range(0x21, 0x7F)
"""Numbers of rows, and of cells in a row, of JIS X 0208."""


def _added(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    row, cell = (byte & 0x7F for byte in pair.ljust(2, b"\0"))
    if row not in _CELLS or cell not in _CELLS:
        raise error
    # from JIS X 0208 to Shift_JIS (JIS X 0208:1997, annex 1)
    lead = (row + 1) // 2 + (0x70 if row < 0x5F else 0xB0)
    trail = cell + (0x7E if row % 2 == 0 else 0x20 if cell >= 0x60 else 0x1F)
    return bytes((lead, trail)).decode("cp932"), error.start + 2


codecs.register_error(ADDED, _added)
