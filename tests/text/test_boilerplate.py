"""jusText's rules, against hand-made cases, the package, and in linear time."""

from __future__ import annotations

import time

import justext
import pytest
from hypothesis import given
from hypothesis import strategies as st
from justext.core import revise_paragraph_classification
from justext.paragraph import Paragraph as StockParagraph

from spiderling.text.boilerplate.rules import PRESETS, Rules, classify, length_scale, rules_for, stock
from spiderling.text.html.blocks import Block

STOP = frozenset(word.lower() for word in justext.get_stoplist("English"))
RULES = Rules()
LONG = "the man who was in the house had been there for some time and " * 5
NEAR = "the man who was in the house had been there for some time and was not at home"
MENU = "Products Prices Contact Imprint Newsletter Login Register Basket Checkout Shipping"


def block(text: str, heading: bool = False, link_chars: int = 0) -> Block:
    return Block(text, heading, link_chars)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([block(LONG)], "G"),
        ([block(NEAR)], "b"),  # near-good alone
        ([block(LONG), block(NEAR), block("Short one.")], "GGb"),
        ([block(LONG), block("Short one."), block(LONG)], "GGG"),
        ([block(MENU), block("Short one."), block(LONG)], "bbG"),
        ([block(MENU), block(NEAR), block("Short one."), block(LONG)], "bGGG"),
        ([block("Home", link_chars=4), block(LONG)], "bG"),
        ([block(LONG, link_chars=100)], "b"),
        ([block(LONG + "©")], "b"),
        ([block(MENU * 4)], "b"),
        ([block(MENU), block("A title", heading=True), block(LONG)], "bGG"),
        ([block(MENU), block("A title", heading=True), block(MENU * 3), block(LONG)], "bbbG"),  # too far
        ([], ""),
    ],
)
def test_classes(blocks, expected):
    assert "".join("G" if cls == "good" else "b" for cls in classify(blocks, STOP, RULES)) == expected


def stock_classes(classes: list[str], headings: list[bool]) -> list[str]:
    """The package's second pass, with the classes copied before it looks ahead (its issue 45)."""

    class Path:
        dom = xpath = ""

    paragraphs = []
    for cls, heading in zip(classes, headings, strict=True):
        paragraph = StockParagraph(Path)
        paragraph.text_nodes, paragraph.heading = ["x" * 70], heading
        paragraph.cf_class = paragraph.class_type = cls
        paragraphs.append(paragraph)
    revise_paragraph_classification(paragraphs)
    return [paragraph.class_type for paragraph in paragraphs]


TEXTS = {"good": LONG, "neargood": NEAR, "short": "Short one.", "bad": MENU}


@given(st.lists(st.sampled_from(sorted(TEXTS)), max_size=12))
def test_the_second_pass_is_the_packages(classes):
    blocks = [block(TEXTS[cls]) for cls in classes]
    assert classify(blocks, STOP, RULES) == stock_classes(classes, [False] * len(classes))


def test_the_package_itself():
    html = f"<p>{LONG}</p><p>Home</p>"
    assert stock(html, STOP, RULES) == [(Block(LONG.strip(), False, 0), "good"), (Block("Home", False, 0), "bad")]
    assert stock("", STOP, RULES) is None


def test_presets_are_ordered():
    strict, balanced, permissive = (PRESETS[name] for name in ("strict", "balanced", "permissive"))
    assert strict == Rules(70, 200, 0.30, 0.32, 0.2, 200)
    for mild, milder in ((strict, balanced), (balanced, permissive)):
        assert (mild.length_low, mild.length_high, mild.stopwords_high) > (
            milder.length_low,
            milder.length_high,
            milder.stopwords_high,
        )
        assert mild.max_link_density < milder.max_link_density


# article 1 of the Universal Declaration of Human Rights (public domain)
ARTICLE = {
    "zh": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを"
    "授けられており、互いに同胞の精神をもって行動しなければならない。",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ",
    "lo": "ມະນຸດທຸກຄົນເກີດມາມີກຽດສັກສີ, ສິດທິ, ເສລີພາບ ແລະ ຄວາມສະເໝີພາບເທົ່າທຽມກັນ. ທຸກໆຄົນມີເຫດຜົນ ແລະ "
    "ຄວາມຄິດຄວາມເຫັນສ່ວນຕົວຂອງໃຜຂອງມັນ, ແຕ່ວ່າມະນຸດທຸກໆຄົນຕ້ອງປະພຶດຕໍ່ກັນ ຄືກັນກັບເປັນອ້າຍນ້ອງກັນ.",
    "km": "មនុស្សទាំងអស់កើតមកមានសេរីភាព និងភាពស្មើៗគ្នាក្នុងសេចក្ដីថ្លៃថ្នូរនិងសិទ្ធិ។ មនុស្សមានវិចារណញ្ញាណនិងសតិសម្បជញ្ញៈ"
    "ជាប់ពីកំណើត ហើយគប្បីប្រព្រឹត្ដចំពោះគ្នាទៅវិញទៅមកក្នុងស្មារតីភាតរភាពជាបងប្អូន។",
    "my": "လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် လည်းကောင်း၊ တူညီလွတ်လပ်သော အခွင့်အရေးများဖြင့် လည်းကောင်း၊ "
    "မွေးဖွားလာသူများ ဖြစ်သည်။ ထိုသူတို့၌ ပိုင်းခြား ဝေဖန်တတ်သော ဉာဏ်နှင့် ကျင့်ဝတ် သိတတ်သော စိတ်တို့ရှိကြ၍ "
    "ထိုသူတို့သည် အချင်းချင်း မေတ္တာထား၍ ဆက်ဆံကျင့်သုံးသင့်၏။",
}


@pytest.mark.parametrize("code", ARTICLE)
def test_scripts_without_spaces(code):
    """Without stop words, and long enough by the measure of their script, in each preset."""
    text = ARTICLE[code]
    scale = length_scale(text)
    menu, teaser = block(text[:12], link_chars=12), block(text[: int(30 * scale)])
    for preset in PRESETS:
        rules = rules_for(preset, scale)
        assert classify([menu, teaser, block(text * 2), menu, teaser, menu], frozenset(), rules) == [
            "bad", "bad", "good", "bad", "bad", "bad",
        ]  # fmt: skip
        assert classify([block(text * 2)], frozenset(), rules_for(preset, None)) == ["bad"]


def test_lengths_of_scripts():
    rules = {code: rules_for("strict", length_scale(text)) for code, text in ARTICLE.items()}
    assert [(one.length_low, one.length_high) for one in rules.values()] == [
        (24, 70), (32, 90), (70, 200), (77, 220), (80, 230), (88, 250),
    ]  # fmt: skip
    assert [length_scale(text) for text in ("Příliš žluťoučký", "한국어 문장", "", "ABC 人")] == [None] * 4


def test_without_a_stop_list_lengths_and_links_decide():
    assert classify([block(LONG)], frozenset(), rules_for("strict", None, stopwords=False)) == ["good"]
    assert classify([block(LONG)], frozenset(), rules_for("strict", None)) == ["bad"]


def test_linear_time():
    start = time.process_time()
    classify([block("Heading", heading=True), block("Short.")] * 100_000, STOP, RULES)
    assert time.process_time() - start < 3
