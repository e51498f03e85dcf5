"""Whether a page withholds its text: because it is not free, or until a script, which is not run here, has filled it.

Sources for what is not free: schema.org/isAccessibleForFree, false for an article or, by hasPart, for a part of it, in
JSON-LD, microdata or RDFa; article:content_tier of the Open Graph protocol (locked, metered); a notice that asks the
reader to subscribe.  Where in doubt the text is not taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spiderling.text.html.blocks import Block

_PROPERTY = b"isaccessibleforfree"
_NEAR = 300  # bytes around the property that are looked at; chosen
_MAX_MARKS = 1000  # occurrences of the property that are looked at; a page with more counts as not free.  Chosen.
_NOT_FREE = re.compile(
    rb"""isaccessibleforfree\\{0,9}["']?\s{0,99}:\s{0,99}                    # "isAccessibleForFree":
    (?:[\[\{]\s{0,99}){0,3}                                                # a list or an object around the value
    (?:\\{0,9}["']@?\w{1,20}\\{0,9}["']\s{0,99}:\s{0,99}\\{0,9}["'][\w:/.]{0,60}\\{0,9}["']\s{0,99},\s{0,99})?
    (?:\\{0,9}["']@(?:id|value)\\{0,9}["']\s{0,99}:\s{0,99})?
    \\{0,9}["']?\s{0,99}(?:(?:https?:)?\\{0,9}/\\{0,9}/(?:www\.)?schema\.org\\{0,9}/|schema:)?(?:(?:false|no|0)\b|!1)""",
    re.VERBOSE,
)
_TAG = re.compile(rb"<[^<>]*isaccessibleforfree[^<>]*>(?:<(?:b|em|span|strong)>)?[^<>]{0,40}")
_SAYS_FALSE = re.compile(rb"\b(?:false|no|0)\b")
_TIER = re.compile(rb"content_tier[^<>]{0,99}\b(?:locked|metered)\b|\b(?:locked|metered)\b[^<>]{0,99}content_tier")
_NOTICE_BLOCKS = 40  # blocks behind the last long one in which a notice may be; chosen: menus and footers may follow
_LONG_CHARS = 200  # characters of a block of running text; chosen
_MAX_NOTICE = 500  # characters of a notice; chosen
_BRIEF = 200  # characters of a notice that need not say what it is for, and of a line of one in several lines; chosen
_BELOW = 2  # blocks below a heading that belong to its notice; chosen
_SUBSCRIBE = re.compile(
    r"""subscri|suscri|suscr[ií]b|abonn|abb?ona|\babo\b|prenumer|předpl|predpl|subskry|assina|iscri|sottoscri|\bmember
    |log\ ?in|sign\ ?in|sign\ ?up|regist|trial|premium|paywall|unlock|freischalt|anmeld|connecte[rz]|vásárol|előfizet
    |tilaa|tilaus|tellimus|pretplat|naroč|συνδρομ|подпис|подпіс|передплат|абона|претплат|абонент|ücretli|abone
    |langgan|đăng\ ký|thành\ viên|مشتر[كک]|اشتراك|اشترك|מנוי|सदस्य|सब्सक्र|সাবস্ক্র|สมัคร|会員|登録|購読|有料|订阅|訂閱|会员
    |會員|付费|付費|구독|회원|유료""",
    re.IGNORECASE | re.VERBOSE,
)
_READ = re.compile(
    r"""\bread|article|stor(?:y|ies)\b|continu|full\ text|access|unlimited|content|exclusive|\blees\b|lezen|verder
    |weiterles|lesen|artikel|zugriff|inhalt|\blire\b|lecture|réservé|suite|accès|\bleer\b|leyendo|artículo|acceso
    |contenido|\bler\b|lendo|leitura|artigo|acesso|conteúdo|leggere|articolo|accesso|contenut|čt[ěet]|číst|člán|obsah
    |pokrač|czyta|artyku|dostęp|treśc|läs|\blæs|\bles\b|innehåll|innhold|indhold|lue\b|lukea|jutut|loe\b|artik|olvas
    |tovább|cikk|citi|citește|articol|čita|članak|članek|διαβ|άρθρ|чита|прочит|стать|доступ|материал|продовж|статт|devam
    |oku|haber|baca|selengkapnya|đọc|مقال|قراءة|ادامه|כתבה|קרי|पढ़|পড়|อ่าน|続き|全文|記事|阅读|閱讀|继续|기사|전문|계속""",
    re.IGNORECASE | re.VERBOSE,
)
_ONLY = re.compile(
    r"""\bonly\b|already|\bnur\b|bereits|exklusiv|seulement|déjà|\bsolo\b|solamente|riservat|\bgià\b|pouze|\bjen\b|\blen\b
    |tylko|alleen|uitsluitend|\bkun\b|\bbar[ae]\b|redan|allerede|\bvain\b|\bcsak\b|exclusiv|numai|\bdoar\b|samo|само
    |только|лише|тільки|yalnız|sadece|özel|zaten|khusus|hanya|dành\ cho|\bchỉ\b|μόνο|فقط|केवल|בלבד|เฉพาะ|限定|专享|專享
    |전용""",
    re.IGNORECASE | re.VERBOSE,
)
"""For subscribers only; or already one?"""


def is_reserved(html: bytes, blocks: Sequence[Block]) -> bool:
    """Whether the page, *html* in UTF-8 with its visible *blocks*, marks text as not free."""
    lower = html.lower()
    is_locked = b"content_tier" in lower and _TIER.search(lower) is not None
    return _is_marked(lower) or is_locked or _ends_in_notice(blocks)


def _is_marked(lower: bytes) -> bool:
    place = lower.find(_PROPERTY)
    for _ in range(_MAX_MARKS):
        if place < 0:
            return False
        near = lower[max(0, place - _NEAR) : place + len(_PROPERTY) + _NEAR].replace(b"&quot;", b'"')
        tags = _TAG.findall(near)
        if _NOT_FREE.search(near) or any(map(_SAYS_FALSE.search, tags)):
            return True
        place = lower.find(_PROPERTY, place + len(_PROPERTY))
    return True


def _ends_in_notice(blocks: Sequence[Block]) -> bool:
    """Whether a block behind the last long one asks the reader to subscribe in order to read."""
    last = max((place for place, block in enumerate(blocks) if len(block.text) >= _LONG_CHARS), default=0)
    behind = blocks[last : last + _NOTICE_BLOCKS]
    return any(_is_notice(block.text) or _heads_notice(behind, place) for place, block in enumerate(behind))


def _is_notice(text: str) -> bool:
    end = text[-_MAX_NOTICE:]
    if not _SUBSCRIBE.search(end):
        return False
    is_brief = len(text) <= _BRIEF and "©" not in text
    return _READ.search(end) is not None or (is_brief and _ONLY.search(text) is not None)


def _heads_notice(blocks: Sequence[Block], place: int) -> bool:
    """Whether the block at *place* is a heading ("Continue reading") of a notice that asks to subscribe."""
    first, *below = blocks[place : place + 1 + _BELOW]
    if not first.heading or len(first.text) > _BRIEF or not _READ.search(first.text):
        return False
    return any(len(block.text) <= _BRIEF and _SUBSCRIBE.search(block.text) for block in below)


_MAX_CHARS = 500  # characters that a shell shows: a title, a menu, a notice; chosen
_MAX_BLOCK = 100  # characters of a block that is no notice; chosen: running text is longer
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
_ASKS = re.compile(r"java\s?script", re.IGNORECASE)  # what a page says in any language that asks for it


def is_shell(html: bytes, blocks: Sequence[Block]) -> bool:
    """Whether the page, *html* with its visible *blocks* and without running text, waits for a script."""
    shown = sum(len(block.text) for block in blocks)
    if shown > _MAX_CHARS or b"<script" not in html.lower():
        return False
    notices = [_ASKS.search(block.text) is not None for block in blocks]
    if any(len(block.text) > _MAX_BLOCK for block, is_notice in zip(blocks, notices, strict=True) if not is_notice):
        return False
    return any(notices) or _MOUNT.search(html) is not None or (not blocks and _PICTURES.search(html) is None)
