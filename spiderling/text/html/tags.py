"""What tags mean for the text of a page, and what stands between texts."""

from __future__ import annotations

from spiderling.text.html.zones import ZONED

# what a start tag means for the text; INSIDE ones do nothing to it but may hold blocks, as those of a BOX do
INLINE, BOX, BLOCK, HEADING, LINK, INSIDE, LINE_BREAK, AREA, THROUGH, DEAD, HEAD = range(11)
_BLOCKS = """
body blockquote caption center col colgroup dd div dl dt fieldset legend optgroup option p pre table td tfoot th thead
tr ul li
"""
KINDS = {
    **dict.fromkeys(ZONED, INSIDE),
    "a": LINK,
    "br": LINE_BREAK,
    "area": AREA,
    "frame": AREA,
    **{tag: BOX if tag in ZONED else BLOCK for tag in _BLOCKS.split()},
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), HEADING),
    # subtrees that hold no running text
    **dict.fromkeys(("head", "applet", "button", "input", "select", "style", "textarea"), DEAD),
    # tags that are ignored while their content counts
    **dict.fromkeys(("form", "iframe", "embed", "layer", "object", "param"), THROUGH),
    # tags that tell of the page, and what they are besides
    **dict.fromkeys(("title", "meta", "link", "html", "time"), HEAD + INLINE),
    **dict.fromkeys(("base", "script"), HEAD + DEAD),
}
# Between the texts of two tags, and what stands for a <br>.  Both count as white space; pages hold them only as
# numbers (&#28;), for RUBBISH has them
EDGE, BREAK = "\x1c", "\x1d"
RUBBISH = bytes(code for code in range(32) if code not in (9, 10, 12, 13)) + b"\x7f"
