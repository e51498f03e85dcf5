"""jusText's rules, against hand-made cases, the package, and in linear time."""

from __future__ import annotations

import time

import justext
import pytest
from hypothesis import given
from hypothesis import strategies as st
from justext.core import revise_paragraph_classification
from justext.paragraph import Paragraph as StockParagraph

from spiderling.text.boilerplate import PRESETS, Rules, classify, is_unspaced, rules_for, stock
from spiderling.text.html import Block

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


def test_scripts_without_spaces():
    chinese = "今天天气很好,我们一起去公园散步,看到了很多美丽的花和树,大家都很高兴,晚上才回到家里吃饭休息。" * 2
    assert [is_unspaced(text) for text in (chinese, "ภาษาไทยเขียนติดกัน", "Příliš žluťoučký", "한국어 문장", "")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert classify([block(chinese)], frozenset(), rules_for("strict", unspaced=True)) == ["good"]
    assert classify([block(chinese)], frozenset(), rules_for("strict", unspaced=False)) == ["bad"]


def test_linear_time():
    start = time.process_time()
    classify([block("Heading", heading=True), block("Short.")] * 100_000, STOP, RULES)
    assert time.process_time() - start < 3
