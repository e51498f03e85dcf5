"""Encodings: the content decides, labels are evidence."""

from __future__ import annotations

import codecs
import math
import unicodedata
from dataclasses import replace
from encodings.aliases import aliases
from itertools import product
from urllib.parse import unquote_to_bytes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text.encoding.detect import decode
from spiderling.text.encoding.labels import codec_of, codecs_of, encodings_for, query_in
from spiderling.text.encoding.mending import encoded_once
from spiderling.text.encoding.spelling import SAMPLE_BYTES, Spelling, telling_words
from spiderling.text.language import LanguageModels
from spiderling.text.ngrams import NgramCounts, codepoints, count_ngrams
from spiderling.training import sentences, train

CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy, když se vracel z daleké cesty domů. " * 4
GREEK = "Η γρήγορη καφέ αλεπού πηδάει πάνω από τον τεμπέλη σκύλο και φεύγει. " * 4
ENCODINGS = ("windows-1250", "iso-8859-2")
CODECS = sorted({codec for name in {*aliases, *aliases.values(), "koi8-u"} if (codec := codec_of(name))})
RUSSIAN = "Съешь же еще этих мягких французских булок, да выпей чаю, и возвращайся домой поскорее. " * 4
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗い所で泣いていた。" * 4


def spelling_of(code: str, text: str, labels: tuple[str, ...]) -> Spelling:
    return LanguageModels((replace(train(code, sentences([text])), encodings=labels),)).spelling


SPELLING = spelling_of("cs", CZECH, ENCODINGS)


def page(text: str, label: str | None = None) -> str:
    meta = f'<meta http-equiv="Content-Type" content="text/html; charset={label}">' if label else ""
    return f"<html><head>{meta}</head><body><p>{text}</p></body></html>"


LABELS = {
    "latin1": "cp1252", "ISO-8859-1": "cp1252", "us-ascii": "cp1252", " GB2312 ": "gb18030", "gbk": "gb18030",
    "tis-620": "cp874", "iso-8859-9": "cp1254", "shift_jis": "cp932", "ks_c_5601-1987": "cp949", "x-sjis": "cp932",
    "utf8": "utf-8", "windows-1250": "cp1250",
    **{name: codecs.lookup(name).name for name in ("iso8859_2", "utf_8", "iso8859_16", "euc_jp", "macroman", "852")},
    **dict.fromkeys(("rot13", "idna", "punycode", "utf-7", "nonsense\x00", "", None)),
    **dict.fromkeys(("replacement", "x-user-defined", "hz-gb-2312", "iso-2022-kr")),
}  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
def test_labels_mean_what_the_standard_says(label):
    assert codec_of(label) == LABELS[label]


@pytest.mark.parametrize(
    ("alphabet", "labels"),
    [
        ("abcäöüß", "windows-1252 iso-8859-15"), ("abc", "windows-1252 iso-8859-15"),
        ("aąbcćeęlłnńoósśzźż", "windows-1250 iso-8859-2 cp852"), ("abcçgğhıiöşü", "windows-1254"),
        ("aābcčeēgģiīkķ", "windows-1257 iso-8859-13"), ("абвгдеёжзя", "windows-1251 koi8-r koi8-u iso-8859-5 ibm866"),
        ("абвгґдеєжзиії", "windows-1251 koi8-u"), ("aâăbcdeghiîjlmnoprsștțşţuvxz", "windows-1250 iso-8859-2 cp852"),
        ("ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی", "windows-1256"), ("aăâbcdđeêghiơưắềộỡ", "windows-1258"),
        ("กขคงจ", "tis-620"), ("한국어", "euc-kr"), ("漢字かな", "shift_jis euc-jp iso-2022-jp"),
        ("漢國語", "gb18030 big5"), ("ሀለሐ", ""),
    ],
)  # fmt: skip
def test_encodings_for_an_alphabet(alphabet, labels):
    assert encodings_for(alphabet) == tuple(labels.split())


@pytest.mark.parametrize(
    ("body", "http", "declared", "detected"),
    [
        (page(CZECH).encode(), None, None, "utf-8"),
        (page(CZECH, "windows-1250").encode(), None, "cp1250", "utf-8"),  # the label lies
        (page(CZECH).encode(), "iso-8859-2", "iso8859-2", "utf-8"),
        (page(CZECH, "windows-1250").encode("cp1250"), None, "cp1250", "cp1250"),
        (page(CZECH, "iso-8859-2").encode("cp1250"), "windows-1250", "cp1250", "cp1250"),  # HTTP first
        (page(CZECH).encode("cp1250"), None, None, "cp1250"),
        (page(CZECH).encode("cp1250"), "utf-8", "utf-8", "cp1250"),
        (page(CZECH).encode("iso8859-2"), None, None, "iso8859-2"),
        (page(CZECH).encode("utf-8-sig"), "windows-1250", "cp1250", "utf-8"),
        (page(CZECH).encode("utf-16"), None, None, "utf-16-le"),
        (page(CZECH).encode("utf-16-be"), None, None, "utf-16-be"),
        (page(GREEK, "x-unknown").encode(), None, "x-unknown", "utf-8"),
        (page("漢字とかな" * 20, "iso-2022-jp").encode("iso2022_jp"), None, "iso2022_jp", "iso2022_jp"),
        (page("plain").encode(), None, None, "utf-8"),
        (b"", None, None, "utf-8"),
    ],
)
def test_decode(body, http, declared, detected):
    found = decode(body, http, ENCODINGS)
    assert (found.declared, found.detected) == (declared, detected)
    if CZECH.encode() in body or detected == "cp1250":
        assert CZECH in found.text


@pytest.mark.parametrize("label", [None, "windows-1252", "windows-1251", "iso-8859-2", "utf-8", "shift_jis"])
def test_the_spelling_overrules_a_wrong_label(label):
    found = decode(page(CZECH, label).encode("cp1250"), None, ENCODINGS, SPELLING)
    assert (found.declared, found.detected) == (codec_of(label), "cp1250")
    assert CZECH in found.text


ESCAPED = page("漢字とかな交じりの文です。" * 3).encode("iso2022_jp")
GERMAN = page("Die Maße fürs Gerät, schön groß und grün, dazu Öl.").encode("cp1252")


@pytest.mark.parametrize(
    ("body", "label", "accepted", "spelling", "detected"),
    [
        # the spelling of another language overrules nothing
        (page(GREEK).encode("cp1253"), "windows-1253", ENCODINGS, SPELLING, "cp1253"),
        (page(GREEK).encode("iso8859-7"), "iso-8859-7", ENCODINGS, SPELLING, "iso8859-7"),
        # a label that does not fit the bytes
        (page(CZECH, "big5").encode("cp1250"), None, ENCODINGS, None, "cp1250"),
        # where the spelling knows nothing chardet decides
        (page(GREEK).encode("cp1253"), None, ("windows-1253",), SPELLING, "cp1253"),
        # what reads the same keeps its label
        (GERMAN, "iso-8859-15", ENCODINGS, SPELLING, "iso8859-15"),
        # Japanese escapes need no label, and a stray escape is no Japanese
        (ESCAPED, None, (), None, "iso2022_jp"),
        (ESCAPED, "utf-8", (), None, "iso2022_jp"),
        (page(CZECH + "\x1b$").encode(), None, (), None, "utf-8"),
        # a NUL byte does not make a page UTF-16
        (page(CZECH + "\0" * 9).encode(), None, (), None, "utf-8"),
        # binary is undecodable
        (bytes(range(256)) * 40, "utf-8", ENCODINGS, None, None),
    ],
)
def test_which_encoding_is_detected(body, label, accepted, spelling, detected):
    found = decode(body, label, accepted, spelling)
    assert (found.detected, found.text is None) == (detected, detected is None)


@pytest.mark.parametrize(
    ("label", "body"),
    [("euc-jp", b"\xad\xa1 \xad\xea \xf9\xa1"), ("iso-2022-jp", b"\x1b$B\x2d\x21 \x2d\x6a \x79\x21\x1b(B")],
)
def test_the_characters_that_vendors_added_to_japanese(label, body):
    """Browsers read them in every Japanese encoding, Python in Shift_JIS alone."""
    text = "漢字とかな交じりの文です。" * 3
    found = decode(text.encode(label) + body.replace(b" ", b""), label)
    assert (found.text, found.detected) == (text + "①㈱纊", codec_of(label))


@pytest.mark.parametrize("label", ["euc-jp", "iso-2022-jp"])
@given(st.binary(max_size=200))
def test_damaged_japanese_is_no_error(label, body):
    decode(b"\x1b$B" + body, label)
    decode("漢字".encode(label) + body, label)


@pytest.mark.parametrize("label", ["utf-8", None])
def test_damaged_utf8_stays_utf8(label):
    body = page(CZECH, label).encode().replace("ď".encode(), b"\xc4", 1)
    found = decode(body, None, ENCODINGS)
    assert found.detected == "utf-8"
    assert found.text.count("\ufffd") == 1


PARTS = ("<p>{0}</p><p>{1}</p>", "<!-- {1} --><p>{0}</p>", "{1}\n{0}")
WORDS = (*PARTS, "<p>{0} {1}</p>")  # without spaces a part of a paragraph is no word of its own


@pytest.mark.parametrize("http", ["utf-8", "iso-8859-1", None])
@pytest.mark.parametrize(
    ("code", "text", "labels", "mixtures"),
    [
        ("cs", CZECH, ENCODINGS, WORDS),
        ("ru", RUSSIAN, ("windows-1251", "koi8-r"), WORDS),
        ("el", GREEK, ("windows-1253", "iso-8859-7"), WORDS),
        ("ja", JAPANESE, ("shift_jis", "euc-jp"), PARTS),
    ],
)
def test_a_part_in_another_encoding_does_not_spoil_a_page_in_utf8(http, code, text, labels, mixtures):
    """A comment, a footer or a quotation in an older encoding made all of the page be read in that."""
    spelling = spelling_of(code, text, labels)
    text, part = text * 2, text[: len(text) // 4]
    for label, mixture in product(labels, mixtures):
        head, tail = (half.format(text).encode() for half in mixture.split("{1}"))
        found = decode(head + part.encode(codec_of(label)) + tail, http, labels, spelling)
        assert (found.text, found.detected) == (mixture.format(text, part), "utf-8")
        assert found.is_mended


@pytest.mark.parametrize(
    ("damage", "read"),
    [
        (b"\xc5", "\ufffd"),  # a character that was cut
        (b"\xe2\x82", "\ufffd\ufffd"),
        (b"\xed\xa0\xbd\xed\xb8\x80", "😀"),  # CESU-8
        (b"\xed\xa0\xbd", "\ufffd" * 3),  # a surrogate alone
        (b"\xc0\x80", "\ufffd" * 2),  # NUL as Java writes it
    ],
)
def test_damage_costs_its_own_character_alone(damage, read):
    text = "Všichni naši sousedé ještě spali"
    body = f"<p>{CZECH} {text}".encode() + damage + b"</p>"
    found = decode(body, "utf-8", ENCODINGS, SPELLING)
    assert found.text.replace("\ufffd", "") == f"<p>{CZECH} {text}{read}</p>".replace("\ufffd", "")
    assert bool(found.text.count("\ufffd")) == ("\ufffd" in read)


def test_a_page_of_which_much_is_lost_is_not_read_at_all():
    body = (CZECH * 4).encode().replace("ě".encode(), b"\xc4").replace("ý".encode(), b"\xc3")
    assert decode(body, "utf-8", ENCODINGS, SPELLING).text is None


@pytest.mark.parametrize(
    ("text", "codec"), [(CZECH, "cp1250"), (GREEK, "cp1252"), (RUSSIAN, "cp1251"), (JAPANESE, "latin-1")]
)
def test_what_was_encoded_twice_is_mended(text, codec):
    """UTF-8 that somebody took for an older encoding, and wrote again as UTF-8, was kept as a text in its language."""
    twice = "".join(bytes((byte,)).decode(codec, "ignore") or chr(byte) for byte in text.encode())
    right = f"<title>{GREEK}</title><h1>CAFÉ\xa0Ö</h1>"
    assert encoded_once(f"{right}<p>{twice}</p>") == f"{right}<p>{text}</p>"
    assert encoded_once(f"{right}<p>{text}</p>") is None


@pytest.mark.parametrize("stray", [b"\xb4", b"\xa0\xbd", b"\x92"])
def test_a_stray_byte_is_not_utf8_and_does_not_spoil_a_page(stray):
    body = b"<p>" + b"plain text in English " * 100 + stray + b" and more</p>"
    assert decode(body, None)[:3] == (body.decode("cp1252"), None, "cp1252")
    found = decode(b"<p>She said \x93yes\x94 and went on with her work.</p>", "utf-8", ())
    assert (found.detected, "“yes”" in found.text) == ("cp1252", True)


@given(st.binary(max_size=2000), st.one_of(st.none(), st.text(max_size=20), st.sampled_from(["utf-16", "gb2312"])))
def test_decode_never_raises(body, label):
    for spelling in (None, SPELLING):
        found = decode(body, label, ENCODINGS, spelling)
        assert (found.text is None) == (found.detected is None)


@given(st.text())
def test_utf8_survives_any_label(text):
    body = ("<p>" + text).encode("utf-8", "ignore")
    found = decode(body, "windows-1250", ENCODINGS, SPELLING)
    if b"\0" not in body and b"\x1b$" not in body:
        assert found.text == body.decode()


@pytest.mark.parametrize("label", CODECS)
def test_a_broken_body_under_any_label_is_no_error(label):
    """Reproduces a find of fuzzing: chardet did not know its own ISO-2022-JP by Python's name."""
    for body in (b"\x1b$B\x1b", b"\xff\xfe\x1b$\x81" * 20, b"<p>" + bytes(range(256)), b"<p>\x81\xe9\xff t\x8a text"):
        assert decode(body, label, [label]).declared == label


@pytest.mark.parametrize("codec", CODECS)
@given(st.text(), st.text("ab/ž"), st.text("č#&"))
def test_a_query_is_sent_in_the_encoding_of_its_page_and_all_else_in_utf_8(codec, query, path, fragment):
    """``<a href="/hledat?q=žlutý">`` of a page in windows-1250 was asked in UTF-8: the site's search found nothing."""
    query = "".join(char for char in query if char not in "#\t\r\n" and not "\ud800" <= char <= "\udfff") + "!"
    written = f"/{path}?{query}#{fragment}"
    found = query_in(codec, written)
    if query.isascii() or codec.startswith("utf"):
        assert found == written
        return
    sent = found.removeprefix(f"/{path}?").removesuffix(f"#{fragment}")
    assert sent.isascii() and not set(sent) & set("\"#<>' ")
    expected = "".join(char if _is_in(char, codec) else f"&#{ord(char)};" for char in query)
    received = unquote_to_bytes(sent.replace("%26%23", "&#").replace("%3B", ";") if ";" not in query else sent)
    assert received.decode(codec) == unquote_to_bytes(expected.encode(codec)).decode(codec)


def _is_in(char: str, codec: str) -> bool:
    try:
        return bool(char.encode(codec))
    except UnicodeEncodeError:
        return False


def test_queries_of_multi_byte_encodings_keep_what_the_standard_keeps():
    assert query_in("cp932", "?q=表") == "?q=%95\\"
    assert query_in("iso2022_jp", "?q=日a") == "?q=%1B$BF|%1B(Ba"
    assert query_in("gb18030", " a?q=中文 x ") == "a?q=%D6%D0%CE%C4%20x"
    assert query_in("cp1250", "?q=ж&r=ž") == "?q=%26%231078%3B&r=%9E"


CZECH_TEXT = "příliš žluťoučký kůň úpěl ďábelské ódy, když se šel napít k řece. "
RUSSIAN = "быстрая лиса прыгнула через ленивую собаку и убежала в лес. "


def spelling_by(*languages: tuple[str, str]) -> Spelling:
    """Each language: a text, and its encodings."""
    return Spelling([(count_ngrams([text], 3), tuple(names.split())) for text, names in languages])


CS = spelling_by((CZECH_TEXT, "cp1250 iso8859-2"))
BOTH = spelling_by((CZECH_TEXT, "cp1250 iso8859-2"), (RUSSIAN, "cp1251 koi8-r"))


def counted(counts: dict[str, int]) -> NgramCounts:
    sizes = {size: [gram for gram in counts if len(gram) == size] for size in sorted(set(map(len, counts)))}
    numbers = {size: np.array([counts[gram] for gram in grams], np.uint32) for size, grams in sizes.items()}
    return NgramCounts({size: (codepoints("".join(sizes[size])).reshape(-1, size), numbers[size]) for size in sizes})


def best(spelling: Spelling, body: bytes) -> str:
    fits = spelling.fits(body)
    return max(fits, key=lambda name: fits[name].score)


@pytest.mark.parametrize(
    ("codec", "text"), [("cp1250", CZECH_TEXT), ("iso8859-2", CZECH_TEXT), ("cp1251", RUSSIAN), ("koi8-r", RUSSIAN)]
)
def test_the_encoding_that_makes_words_fits_best(codec, text):
    assert best(BOTH, text.encode(codec)) == codec
    assert best(BOTH, text.upper().encode(codec)) == codec


def test_a_known_language_explains_its_words_better_than_an_unknown_one():
    own, other = CS.fits(CZECH_TEXT.encode("cp1250"))["cp1250"], CS.fits(RUSSIAN.encode("cp1251"), ["cp1250"])["cp1250"]
    assert own.score > own.unknown + own.size
    assert other.score < other.unknown - other.size


def test_the_score_by_hand():
    spelling = Spelling([(counted({" ": 2, "ž": 2, " ž": 2, "ž ": 2, " ž ": 2}), ("cp1250",))])
    pair = 0.8 * 1 + 0.2 * 0.5  # a space is sure to follow; half of the letters are spaces
    triple = 0.8 * 1 + 0.2 * pair
    assert spelling.fits("ž".encode("cp1250"), ["cp1250"])["cp1250"].score == pytest.approx(math.log(triple), abs=1e-3)


CAFE, CAFES, MAC = b"caf\xe9", b"caf\xe9 h\xe9l\xe9 s\xe9m\xe9", RUSSIAN.encode("mac-cyrillic")
ODD = {"C1 control": ("iso8859-2", b"\x93"), "box": ("cp852", b"\xdb"), "undefined": ("cp1250", b"\x81"),
       "dagger": ("cp1250", b"\x86")}  # fmt: skip
CAPITALS = {"cp1251": ("слово яма", "словО ямА"), "cp1250": ("kůň šel", "kŮň ŠeL")}
BETTER = {
    "of two that read the same the one in use": (10, (CS, CAFE, "cp1250", (), ("cp1250",)),
                                                 (CS, CAFE, "cp1252", (), ("cp1250",))),
    "of two in use the one of an accepted language": (3, (CS, CAFE, "iso8859-2", (), ("iso8859-2",)),
                                                      (CS, CAFE, "cp1250", (), ("iso8859-2",))),
    "a relative of those in use": (4, (CS, CAFES, "iso8859-16"), (CS, CAFES, "cp1252")),
    "a seldom one with its label": (10, (BOTH, MAC, "mac-cyrillic", ["mac-cyrillic"]), (BOTH, MAC, "mac-cyrillic")),
    "a fraction behind a digit": (5, (CS, b"2\xbd", "cp1252", ["cp1252"]), (CS, b"s\xbdur", "cp1252", ["cp1252"])),
    **{f"no {name}": (5, (CS, b"abc\x93", "cp1250", ["cp1250"]), (CS, b"abc" + odd, codec, [codec]))
       for name, (codec, odd) in ODD.items()},
    **{f"no capital inside a word in {codec}": (6, *((BOTH, text.encode(codec), codec, [codec]) for text in texts))
       for codec, texts in CAPITALS.items()},
}  # fmt: skip
"""By how many nats; spelling, body, codec, labels and accepted codecs of what fits better, and of what fits worse."""


@pytest.mark.parametrize("name", BETTER)
def test_what_fits_better(name):
    margin, *both = BETTER[name]
    better, worse = (spelling.fits(body, *rest)[codec].score for spelling, body, codec, *rest in both)
    assert better > worse + margin


def test_an_encoding_that_no_language_names_needs_clear_evidence():
    assert best(BOTH, "лиса убежала в яму".encode("mac-cyrillic")) == "cp1251"
    assert best(BOTH, RUSSIAN.title().encode("mac-cyrillic")) == "mac-cyrillic"


def test_letters_of_hashes_that_meet_make_no_words():
    """A letter that the language lacks is unseen, even if its hash is that of a usual n-gram."""
    letters = "".join(chr(code) for code in range(0x410, 0x450))
    fits = CS.fits(letters.encode("cp1251"), ["cp1251"])
    assert fits["cp1251"].score < 60 * math.log(1e-6)


def test_accents_apart_are_read_with_their_letters():
    """windows-1258 has tones as characters of their own."""
    vietnamese = "tiếng việt có sáu thanh điệu và những chữ cái "
    apart = unicodedata.normalize("NFD", vietnamese).replace("e\u0302", "ê").replace("u\u031b", "ư")
    spelling = spelling_by((vietnamese, "cp1258"))
    body = apart.replace("a\u0302", "â").replace("\u0323\u0302", "\u0302\u0323").encode("cp1258", "ignore")
    assert best(spelling, body) == "cp1258"
    fit = spelling.fits(body)["cp1258"]
    assert fit.score > fit.unknown + fit.size


@pytest.mark.parametrize("label", ["iso8859-16", "iso8859-2"])
def test_the_comma_or_cedilla_of_romanian_tells_no_encoding(label):
    romanian = "și țara își știe puținele înțelesuri "
    spelling = spelling_by((romanian, "cp1250 iso8859-2 iso8859-16"))
    fits = spelling.fits(romanian.encode("iso8859-16"), [label], spelling.codecs)
    assert fits["iso8859-16"].score == pytest.approx(fits["iso8859-2"].score)


def test_english_words_on_a_page_in_another_language_harm_nothing():
    """A no-break space before each makes them words of the sample."""
    english = "layer paint colour window "
    three = spelling_by((RUSSIAN, "cp1251"), (english, "cp1252"))
    body = "лиса через собаку ".encode("cp1251") + b"\xa0Layer \xa0Paint \xa0Colour \xa0Window"
    assert best(three, body) == "cp1251"
    fit = three.fits(body)["cp1251"]
    assert fit.score > fit.unknown


def test_characters_of_several_bytes_are_tried_where_bytes_stand_side_by_side():
    chinese = "今日在国外的清真寺唤拜塔的功能"
    spelling = spelling_by((chinese, "gb18030"), (CZECH_TEXT, "cp1250"))
    body = b"\xa0Layer " * 9 + chinese.encode("gb18030")
    assert best(spelling, body) == "gb18030"
    assert "gb18030" not in spelling.fits(CZECH_TEXT.encode("cp1250"))
    assert "gb18030" in spelling.fits(CZECH_TEXT.encode("cp1250"), ["gb18030"])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<p>plain <b>\xe9t\xe9</b> and\n\x8a. ASCII", b"\xe9t\xe9 \x8a"),
        (b'<a href="x.htm" title="\xe9t\xe9">a=b;c="\xe8"', b"\xe9t\xe9 \xe8"),
        (b"plain", b""), (b"\xe9 \xe8 \xe9 ", b"\xe9 \xe8"), (b"plain " * 20_000 + b"\xe9t\xe9", b"\xe9t\xe9"),
    ],
)  # fmt: skip
def test_only_words_that_could_differ_are_looked_at(body, words):
    assert telling_words(body) == words
    assert bool(CS.fits(body)) is bool(words)


def test_a_long_page_costs_no_more_than_its_sample():
    words = b" ".join(b"\xe9%d" % number for number in range(2 * SAMPLE_BYTES))
    assert len(telling_words(words)) == SAMPLE_BYTES
    assert CS.fits(words) == CS.fits(words * 9)


def test_a_model_without_ngrams_of_some_size():
    for counts in ({"žluť": 3}, {"ž": 1}, {"žl": 2}):
        assert np.isfinite(Spelling([(counted(counts), ())]).fits(b"\xbe", ["cp1250"])["cp1250"].score)


@given(
    st.binary(max_size=300), st.lists(st.sampled_from(codecs_of(["big5", "gb2312", "latin2", "koi8-r"])), max_size=3)
)
def test_any_bytes_have_a_score(body, codecs):
    fits = BOTH.fits(body, codecs)
    assert all(fit.score <= 0 and fit.size for fit in fits.values())
    assert fits.keys() >= ({*codecs} if not body.isascii() else set())
