"""Encodings: the content decides, labels are evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text.encoding import _KNOWN, codec_of, decode, recode_size

CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy, když se vracel z daleké cesty domů. " * 4
GREEK = "Η γρήγορη καφέ αλεπού πηδάει πάνω από τον τεμπέλη σκύλο και φεύγει. " * 4
ENCODINGS = ("windows-1250", "iso-8859-2")


def page(text: str, label: str | None = None) -> str:
    meta = f'<meta http-equiv="Content-Type" content="text/html; charset={label}">' if label else ""
    return f"<html><head>{meta}</head><body><p>{text}</p></body></html>"


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("latin1", "cp1252"),
        ("ISO-8859-1", "cp1252"),
        ("us-ascii", "cp1252"),
        (" GB2312 ", "gb18030"),
        ("gbk", "gb18030"),
        ("tis-620", "cp874"),
        ("iso-8859-9", "cp1254"),
        ("shift_jis", "cp932"),
        ("ks_c_5601-1987", "cp949"),
        ("x-sjis", "cp932"),
        ("utf8", "utf-8"),
        ("windows-1250", "cp1250"),
        ("rot13", None),
        ("idna", None),
        ("punycode", None),
        ("utf-7", None),
        ("nonsense\x00", None),
        ("", None),
        (None, None),
    ],
)
def test_labels_mean_what_the_standard_says(label, codec):
    assert codec_of(label) == codec


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


@pytest.mark.parametrize("label", ["utf-8", None])
def test_damaged_utf8_stays_utf8(label):
    body = page(CZECH, label).encode().replace("ď".encode(), b"\xc4", 1)
    found = decode(body, None, ENCODINGS)
    assert found.detected == "utf-8"
    assert found.text.count("\ufffd") == 1


def test_one_stray_byte_is_not_utf8():
    found = decode(b"<p>She said \x93yes\x94 and went on with her work.</p>", "utf-8", ())
    assert (found.detected, "“yes”" in found.text) == ("cp1252", True)


def test_binary_is_undecodable():
    found = decode(bytes(range(256)) * 40, "utf-8", ENCODINGS)
    assert found.text is None
    assert found.detected is None


def test_a_nul_byte_does_not_make_a_page_utf16():
    assert decode(page(CZECH + "\0" * 9).encode(), None).detected == "utf-8"


def test_recode_size():
    assert [recode_size(text) for text in ("", "abc", "žluť", "漢")] == [0, 3, 6, 3]


@given(st.binary(max_size=2000), st.one_of(st.none(), st.text(max_size=20), st.sampled_from(["utf-16", "gb2312"])))
def test_decode_never_raises(body, label):
    found = decode(body, label, ENCODINGS)
    assert (found.text is None) == (found.detected is None)


@given(st.text())
def test_utf8_survives_any_label(text):
    body = ("<p>" + text).encode("utf-8", "ignore")
    found = decode(body, "windows-1250", ENCODINGS)
    if b"\0" not in body:
        assert found.text == body.decode()


@pytest.mark.parametrize("label", sorted(_KNOWN))
def test_a_broken_body_under_any_label_is_no_error(label):
    """Reproduces a find of fuzzing: chardet did not know its own ISO-2022-JP by Python's name."""
    for body in (b"\x1b$B\x1b", b"\xff\xfe\x1b$\x81" * 20, b"<p>" + bytes(range(256))):
        decode(body, label, [label])
