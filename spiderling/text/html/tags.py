"""What tags mean for the text of a page."""

from __future__ import annotations

from spiderling.text.html.zones import ZONED

INLINE = 0
"""Its text belongs to the text around it."""
BOX = 1
"""It ends a block and may hold blocks, so it stands in the page's tree."""
BLOCK = 2
"""It ends a block."""
HEADING = 3
LINK = 4
INSIDE = 5
"""It ends no block, but a browser shows its text apart from the text around it."""
LINE_BREAK = 6
AREA = 7
"""A link without text."""
THROUGH = 8
"""The tag is ignored; its content counts."""
DEAD = 9
"""It is ignored with all its content: no running text."""
FIELD = 10
"""It is ignored likewise, and is seen between the texts around it."""
HEAD = 11
"""Added to one of the kinds above for tags that say something about the page."""
_BLOCKS = """
body blockquote caption center col colgroup dd div dl dt fieldset legend optgroup option p pre table td tfoot th thead
tr ul li
"""
_APART = """
address audio canvas details dir figure hgroup hr img listing menu search summary svg video xmp
"""
KINDS = {
    **dict.fromkeys((*ZONED, *_APART.split()), INSIDE),
    "a": LINK,
    "br": LINE_BREAK,
    "area": AREA,
    "frame": AREA,
    **{tag: BOX if tag in ZONED else BLOCK for tag in _BLOCKS.split()},
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), HEADING),
    **dict.fromkeys(("head", "applet", "style", "desc"), DEAD),
    **dict.fromkeys(("button", "input", "select", "textarea"), FIELD),
    **dict.fromkeys(("form", "iframe", "embed", "layer", "object", "param", "wbr"), THROUGH),
    **dict.fromkeys(("meta", "link", "html", "time"), HEAD + INLINE),
    **dict.fromkeys(("base", "script", "title"), HEAD + DEAD),
}
