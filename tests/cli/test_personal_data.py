"""``scrapy export --pii``: what counts as personal data, where it stands, and what is written in its place."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest
from conftest import scrapy
from needs import needs

from spiderling.base.errors import BadInput
from spiderling.base.machine import EXTRAS
from spiderling.corpus.segments import Source, StoredDocument, attributes_of, parse_document, stored_documents
from spiderling.export.formats import FORMATS
from spiderling.export.personal_data import PersonalData, find
from spiderling.export.records import documents_of
from spiderling.text.prevertical import render

pytestmark = needs("phonenumbers")

FOUND = [
    # language, top-level domain, text with what is found in brackets
    ("cs", "cz", "Volejte tel.: [777 123 456], [+420 222 333 444] nebo pište na [jan.novak@posta.cz]."),
    ("sk", "sk", "Mobil [0905 123 456], e-mail [a+b@obec.sk]; rodné číslo [755101/1237]"),
    ("pl", "pl", "tel. [22 201 41 00], PESEL [44051401359], konto [PL61 1090 1014 0000 0712 1981 2874]"),
    (
        "de",
        "de",
        "Telefon: [030 22756128] oder [(030) 22756-129]; IBAN: [DE68 1002 0500 0001 0379 00] BIC: BFSWDE33BER",
    ),
    ("de", "de", "Steuer-ID [86 095 742 719], Karte: [4111 1111 1111 1111]"),
    ("fr", "fr", "Appelez le [01 42 68 53 00]. Sécurité sociale : [1 55 08 75 116 001 25]"),
    ("es", "es", "Teléfono [912 345 678], DNI [12345678Z], NIE [X1234567L], cuenta [ES91 2100 0418 4502 0005 1332]"),
    ("it", "it", "Codice fiscale [RSSMRA85T10A562S], cell. [347 123 4567]"),
    ("pt", "br", "CPF [111.444.777-35] e telefone [(11) 3071-0000]"),
    ("nl", "nl", "BSN [111222333], bel [+31 20 624 1111]"),
    ("sv", "se", "Personnummer [811218-9876], tel [08-508 00 500]"),
    ("fi", "fi", "Henkilötunnus [131052-308T], puh. [09 1234567]"),
    ("bg", "bg", "ЕГН [7523169263], тел. [02 980 1234]"),
    ("ro", "ro", "CNP [1800101221144], telefon [021 312 3456]"),
    ("tr", "tr", "T.C. Kimlik No: [10000000146], telefon [0212 526 1234]"),
    ("et", "ee", "isikukood [49403136526]; telefon [631 6300]"),
    ("ru", "ru", "СНИЛС [112-233-445 95], Телефон: [+7 (495) 646-57-57]"),
    ("el", "gr", "τηλ. [210 327 0000], ΑΜΚΑ [01010112348]"),
    ("zh", "cn", "电话：[010-82612286]，身份证 [11010519491231002X]"),
    ("ja", "jp", "電話 [03-3581-5111] まで"),
    ("nb", "no", "fødselsnummer [010100 50053], tlf. [22 03 50 00]"),
    ("nl", "be", "Rijksregister [93.05.18-223.61]; [0470 12 34 56]"),
    ("de", "ch", "AHV [756.9217.0769.85]"),
    ("en", "com", "Call [(212) 555-2368], [212-555-2369]; from [193.55.130.208] or [2603:400a:ffff:bb8::801f:3e]."),
    ("en", "uk", "Card [378282246310005] of Visa; account [GB29 NWBK 6016 1331 9268 19]"),
]
OTHERS = """
ISBN 978-80-7203-123-4, ISBN 0-306-40615-2; from 2010-05-12 to 31.12.2019, 1990-1995, 2019-11-27 13:33:34
version 10.0.191.208, Firefox/115.120.130.140, 192.168.100.200, 127.0.0.1, 224.0.0.251, std::string, abc::def
1 000 000 Kč, 12 345 678, 3.14159265358979, 0800 to 1700, order 123456789012, barcode 4006381333931
foo@localhost, icon@2x.png, git@github.com:spider/ling.git, @handle, a @ b.com, price@12.50, $1,234,567.89
4111111111111111 alone, 4111 1111 1111 1112, DE68 1002 0500 0001 0379 01, 123456/0800, http://a.test/id=2125552368
12345678Z, 99999999999, 777 123 456, UTC+01 2345678, ID 7523169263, #2125552368
"""


@pytest.mark.parametrize(("language", "tld", "marked"), FOUND)
def test_personal_data_is_found_in_many_languages(language, tld, marked):
    text = marked.replace("[", "").replace("]", "")
    expected = [part.partition("]")[0] for part in marked.split("[")[1:]]
    assert [text[one.start : one.end] for one in find(text, tld, language)] == expected


@pytest.mark.parametrize("line", OTHERS.strip().splitlines())
@pytest.mark.parametrize(("tld", "language"), [("cz", "cs"), ("com", "en"), ("de", "de")])
def test_other_numbers_and_signs_are_left_alone(line, tld, language):
    assert [line[one.start : one.end] for one in find(line, tld, language)] == []


NUMBERS = [
    ("PESEL", "44051401359"), ("BSN", "111222333"), ("CPF", "111.444.777-35"), ("ЕГН", "7523169263"),
    ("AHV", "756.9217.0769.85"),
    ("CNP", "1800101221144"), ("kimlik", "10000000146"), ("СНИЛС", "112-233-445 95"), ("", "DE68100205000001037900"),
    ("card", "4111111111111111"), ("DNI", "12345678Z"), ("isikukood", "49403136526"), ("", "RSSMRA85T10A562S"),
]  # fmt: skip


@pytest.mark.parametrize(("word", "number"), NUMBERS)
def test_a_number_with_another_digit_is_none(word, number):
    assert [one.kind for one in find(f"{word} {number}")] != []
    for place, char in enumerate(number):
        if char.isdigit():
            other = f"{word} {number[:place]}{(int(char) + 1) % 10}{number[place + 1 :]}"
            assert find(other) == [], other


TEXTS = ["Pište na jan@posta.cz &amp; <b>", "řádek\ndruhý řádek: tel. 777 123 456, konec", "Nic tu není."]
ATTRIBUTES = {
    "id": "a1", "url": "http://a.cz/?q=x@posta.cz", "host": "a.cz", "tld": "cz", "title": "Jan <jan@posta.cz>",
    "lang": "cs", "crawl_date": "2026-11-22 05:06:07", "length": "99", "words": "17",
}  # fmt: skip
CORPUS = render(ATTRIBUTES, [(text, ' class="good"') for text in TEXTS])
CLEAN = render(ATTRIBUTES | {"id": "b2", "title": ""}, [("Nic & nikdo.", "")])
VALUES = ("jan@posta.cz", "777 123 456")


@pytest.fixture
def corpus(tmp_path) -> Path:
    path = tmp_path / "in.prevert"
    path.write_text(CORPUS + CLEAN, "utf-8")
    return path


@pytest.mark.parametrize("name", ["c.jsonl", "c.parquet"])
def test_marks_are_places_in_the_text(corpus, tmp_path, name):
    assert scrapy("export", str(corpus), "-o", f"{tmp_path / name}", "--pii", "mark").code == 0
    if name.endswith("parquet"):
        rows = pyarrow.parquet.read_table(tmp_path / name).to_pylist()
    else:
        rows = [json.loads(line) for line in (tmp_path / name).read_text("utf-8").splitlines()]
    spans = [span.split(":") for span in rows[0]["pii"].split()]
    assert [(kind, rows[0]["text"][int(start) : int(end)]) for kind, start, end in spans] == [
        ("email", VALUES[0]), ("phone", VALUES[1])
    ]  # fmt: skip
    assert rows[1]["pii"] == ""
    assert next(documents_of(Source(tmp_path / name))).attributes["pii"] == rows[0]["pii"]


def test_marking_changes_nothing_else():
    document = StoredDocument(attributes_of(CORPUS.partition("\n")[0]), CORPUS)
    marked = PersonalData("mark").treated(document)
    assert parse_document(marked)[1:] == parse_document(document)[1:]
    assert {name: value for name, value in marked.attributes.items() if name != "pii"} == document.attributes
    assert parse_document(marked).attributes == marked.attributes


@pytest.mark.parametrize("between", range(1, 30))
def test_an_address_is_found_whole_however_near_another_is(between):
    address = "2001:4860:4860::8888"
    assert [one.end - one.start for one in find(f"{address}{between * ' '}{address}")] == 2 * [len(address)]


def test_signs_that_a_file_escapes_may_stand_around_it():
    texts = ['tel: "777 123 456"', "<+420 777 123 456>", "R&D +420 777 123 456", '"93.184.216.34" <jan@posta.cz>']
    masked = ['tel: "<PHONE>"', "<<PHONE>>", "R&D <PHONE>", '"<IP>" <<EMAIL>>']
    document = render(ATTRIBUTES, [(text, "") for text in texts])
    stored = StoredDocument(attributes_of(document.partition("\n")[0]), document)
    assert parse_document(PersonalData("mask").treated(stored)).paragraphs == masked
    marked = parse_document(PersonalData("mark").treated(stored))
    text = "\n".join(marked.paragraphs)
    spans = [span.split(":") for span in marked.attributes["pii"].split()]
    assert [(kind, text[int(start) : int(end)]) for kind, start, end in spans] == [
        ("phone", "777 123 456"), *[("phone", "+420 777 123 456")] * 2, ("ip", "93.184.216.34"), ("email", VALUES[0]),
    ]  # fmt: skip


@pytest.mark.parametrize("format_name", FORMATS)
def test_masked_texts_hold_none_of_it_in_any_format(corpus, tmp_path, format_name):
    out = tmp_path / "out"
    done = scrapy("export", str(corpus), "-o", str(out), "--format", format_name, "--pii", "mask")
    assert done.code == 0, done.log
    data = str(pyarrow.parquet.read_table(out).to_pylist()) if format_name == "parquet" else out.read_text("utf-8")
    assert not any(value in data for value in (*VALUES, "777\n"))
    assert "EMAIL" in data and "PHONE" in data and "nikdo" in data


def test_masked_documents_are_as_long_as_they_say(corpus, tmp_path):
    scrapy("export", str(corpus), "-o", str(tmp_path / "c.prevert"), "--pii", "mask")
    first, second = stored_documents(Source(tmp_path / "c.prevert"))
    text = "\n".join(parse_document(first).paragraphs)
    assert text == "\n".join(TEXTS).replace(VALUES[0], "<EMAIL>").replace(VALUES[1], "<PHONE>")
    assert first.attributes["title"] == "Jan <<EMAIL>>" and first.attributes["url"] == ATTRIBUTES["url"]
    assert int(first.attributes["length"]) == len(text.encode())
    assert second.text == CLEAN


def test_the_card_counts_what_was_found(corpus, tmp_path):
    scrapy("export", str(corpus), "-o", str(tmp_path / "c.txt"), "--pii", "mask")
    told = json.loads((tmp_path / "c.txt.json").read_text("utf-8"))["personal_data"]
    assert told == {"mode": "mask", "documents": 1, "found": {"email": 2, "phone": 1}}
    page = (tmp_path / "c.txt.README.md").read_text("utf-8")
    assert "Words such as &lt;EMAIL> stand in the place of: 2 `email`, 1 `phone`, in 1 documents." in page
    scrapy("export", str(corpus), "-o", str(tmp_path / "d.txt"))
    assert "Personal data" not in (tmp_path / "d.txt.README.md").read_text("utf-8")


def test_without_the_package_a_sentence_names_it(monkeypatch):
    monkeypatch.setitem(EXTRAS, "pii", ("no_such_package", EXTRAS["pii"][1]))
    with pytest.raises(BadInput, match="pip install 'phonenumbers>=9'"):
        PersonalData("mask")
