"""Whether a page is a shell: it shows nothing until a script, which is not run here, has filled it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spiderling.text.html.blocks import Block

_MAX_CHARS = 500
"""Characters that a shell shows: a title, a menu, a notice; chosen."""
_MAX_BLOCK = 100
"""Characters of a block that is no notice; chosen: running text is longer."""
_MOUNT = re.compile(
    rb"""(?:<(?:div|main|section|span|body)\b[^<>]{0,200}\bid\s{0,9}=\s{0,9}["']?
    (?:root|app|__next|__nuxt|___gatsby|q-app|svelte|react-?\w{0,9}|app-\w{1,9}|\w{1,20}-(?:root|app)|\w{1,20}root)
    ["'\s>][^<>]{0,200}>?|<[a-z]{1,20}(?:-[a-z]{1,20}){1,3}\b[^<>]{0,200}>)
    \s{0,99}(?:</?(?:div|span|p|i|img|svg|g|path|circle|rect)\b[^<>]{0,200}>\s{0,99}){0,6}   # a sign that turns
    (?:[^<>]{0,30}(?:\.\.|\xe2\x80\xa6)|loading)?\s{0,99}</                                   # "One moment..."
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""An element without text that a framework fills, by the names that frameworks give it, or a custom element."""
_PICTURES = re.compile(rb"<(?:img|i?frame|picture|video|canvas|object|embed|svg)\b", re.IGNORECASE)
_ASKS = re.compile(r"java\s?script", re.IGNORECASE)
"""What a page says in any language that asks for it."""


def is_shell(html: bytes, blocks: Sequence[Block]) -> bool:
    """Whether the page, *html* with its visible *blocks* and without running text, waits for a script."""
    shown = sum(len(block.text) for block in blocks)
    if shown > _MAX_CHARS or b"<script" not in html.lower():
        return False
    notices = [_ASKS.search(block.text) is not None for block in blocks]
    if any(len(block.text) > _MAX_BLOCK for block, is_notice in zip(blocks, notices, strict=True) if not is_notice):
        return False
    return any(notices) or _MOUNT.search(html) is not None or (not blocks and _PICTURES.search(html) is None)
