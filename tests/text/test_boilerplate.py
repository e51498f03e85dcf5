"""jusText's rules, against hand-made cases, the package, and in linear time."""

from __future__ import annotations

import json
import pickle
import time

import justext
import numpy as np
import pytest
from cleaned_pages import CZECH, cleaned
from hypothesis import given
from hypothesis import strategies as st

from models import boilerplate_fit
from models.boilerplate_fit import written
from models.marked_pages import MarkedPage, f1, labels, score
from spiderling.base.errors import BadInput
from spiderling.base.options import Options
from spiderling.text import TextOptions
from spiderling.text.boilerplate.features import NAMES, features
from spiderling.text.boilerplate.model import NAMES as CONTEXT_NAMES
from spiderling.text.boilerplate.model import BlockModel, bundled, context
from spiderling.text.boilerplate.model import load as load_weights
from spiderling.text.boilerplate.rules import PRESETS, JustextRules, choose, classify, length_scale, rules_for, stock
from spiderling.text.html.blocks import Block
from spiderling.text.html.parser import parse
from spiderling.text.html.zones import Tree

CHINESE = "今天天气很好，我们一起去公园散步，看到了很多美丽的花和树，大家都很高兴。"
MENU = "".join(f"<li><a href=/{word}>{word}</a>" for word in ["Domů", "Zprávy", "Sport", "Kultura", "Kontakt"])
PAGE = f"<nav><ul>{MENU}</ul></nav><h1>O kočce</h1><p>{CZECH * 3}<p>{CZECH * 2}</p><footer><p>© 2026 Redakce</footer>"


def column(html: str, name: str) -> list[float]:
    parsed = parse(html)
    return [round(float(value), 3) for value in features(parsed.blocks, parsed.tree)[:, NAMES.index(name)]]


def chances(html: str) -> list[float]:
    parsed = parse(html)
    return bundled().probabilities(parsed.blocks, parsed.tree)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("link density", [1.0, 0.0, 0.5]), ("no links", [0.0, 1.0, 0.0]), ("heading", [0.0, 1.0, 0.0]),
        ("ends in a stop", [0.0, 0.0, 1.0]), ("tag p", [0.0, 0.0, 1.0]), ("tag li", [1.0, 0.0, 0.0]),
        ("in navigation", [1.0, 0.0, 0.0]), ("in text", [0.0, 1.0, 1.0]), ("tag h1", [0.0, 1.0, 0.0]),
        ("is the title", [0.0, 1.0, 0.0]), ("behind the title", [0.0, 1.0, 1.0]), ("-1: heading", [0.0, 0.0, 1.0]),
        ("+1: heading", [1.0, 0.0, 0.0]), ("place", [0.0, 0.333, 0.667]), ("digits", [0.0, 0.0, 0.1]),
    ],
)  # fmt: skip
def test_features(name, expected):
    html = "<nav><li><a href=x>abc</a></li></nav><div class=article><h1>DEFG</h1><p><a href=y>abcde</a>fg 1.</p></div>"
    assert column(html, name) == expected


def test_the_words_of_scripts_without_spaces():
    (row,) = features([Block(CHINESE, False, 0)], Tree().inherited())
    assert [row[NAMES.index(f"{least} or more words")] for least in (12, 50)] == [1, 0]


TEXTS = st.text(min_size=1).filter(str.strip)


@given(st.lists(st.tuples(TEXTS, st.booleans(), st.integers(0, 50), st.integers(0, 3)), min_size=1), st.floats(0, 1))
def test_features_are_finite(rows, chance):
    tree = Tree()
    for tag in ("div", "nav", "ul"):
        tree.enter(tag, {"class": "main menu"})
    blocks = [Block(text, heading, links, "p", 1, element) for text, heading, links, element in rows]
    found = features(blocks, tree.inherited())
    assert found.shape == (len(blocks), len(NAMES))
    around = context(found, np.full(len(blocks), chance, np.float32), blocks, tree.inherited())
    assert around.shape == (len(blocks), len(CONTEXT_NAMES))
    assert np.isfinite(found).all()
    assert np.isfinite(around).all()
    assert all(0 <= one <= 1 for one in bundled().probabilities(blocks, tree.inherited()))


ITEMS = "".join(f"<div class=item{number}><p>word word</p></div>" for number in range(3))
LIST = f"<div class=list>{ITEMS}</div><div class=other><p>one two three four five six</p></div>"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chance", [0.5, 0.25, 0.25, 1.0]),
        ("-1: chance", [0.0, 0.5, 0.25, 0.25]),
        ("+2: chance", [0.25, 1.0, 0.0, 0.0]),
        ("box 0: chance a block", [0.5, 0.25, 0.25, 1.0]),
        ("box 2: chance a block", [0.333, 0.333, 0.333, 0.5]),  # the three in their list; the last in its page
        ("same shape: chance a block", [0.333, 0.333, 0.333, 1.0]),  # digits of class names do not count
        ("same shape: share of the text", [0.5, 0.5, 0.5, 0.5]),
        ("common with the longest", [0.25, 0.25, 0.25, 1.0]),
        ("levels below common", [0.375, 0.375, 0.375, 0.0]),
        ("levels of the longest below common", [0.25, 0.25, 0.25, 0.0]),
        ("page: highest chance", [1.0] * 4),
        ("highest before", [0.0, 0.167, 0.167, 0.167]),
        ("highest after", [1.0, 1.0, 1.0, 0.0]),
        ("chances before", [0.0, 0.125, 0.187, 0.25]),
    ],
)
def test_context(name, expected):
    parsed = parse(LIST)
    guesses = np.array([0.5, 0.25, 0.25, 1.0], np.float32)
    rows = context(features(parsed.blocks, parsed.tree), guesses, parsed.blocks, parsed.tree)
    assert [round(float(value), 3) for value in rows[:, CONTEXT_NAMES.index(name)]] == expected


def test_a_page():
    found = chances(PAGE)
    assert max(found[:5]) < 0.3
    assert min(found[6:8]) > 0.8
    assert found[8] < 0.4
    assert chances("") == []


def test_a_page_of_snippets_is_no_text():
    blocks = [Block("Kontakt", False, 0), Block("Praha 1", False, 0)]
    assert choose(blocks, [1.0, 1.0], 0.4) == ["bad", "bad"]
    long = Block(CZECH, False, 0)
    assert choose([*blocks, long], [1.0, 0.3, 0.9], 0.4) == ["good", "bad", "good"]
    assert choose([Block(CZECH, False, len(CZECH))], [1.0], 0.4) == ["bad"], "a list of links"
    assert choose([Block(CHINESE[:16], False, 0)], [0.9], 0.4) == ["good"]


def test_links_carry_the_probability_of_their_block():
    html = PAGE.replace("čekal na ni.", "čekal <a href=/b>na ni</a>.", 1)
    scores = {link.url: (link.text_score, link.text_block) for link in cleaned(html).links}
    assert scores["http://h.test/b"][0] > 0.8 and scores["http://h.test/b"][1]
    assert scores["http://h.test/Sport"][0] < 0.3 and not scores["http://h.test/Sport"][1]
    assert not any(link.text_block for link in cleaned(html, block_threshold=1.0).links)
    assert {link.text_score for link in cleaned(html, boilerplate="justext").links} == {0.0, 1.0}


def marked(number: int) -> list[MarkedPage]:
    titles = {f"h{place}": f"O kočce {place}" for place in range(number)}
    return [
        MarkedPage(PAGE.replace("O kočce", title), f"{title} {CZECH * 5}", host=host, group="g")
        for host, title in titles.items()
    ]


@pytest.mark.slow
def test_training_learns_and_repeats():
    every = boilerplate_fit.samples(marked(60))
    found = boilerplate_fit.held_out(every)
    scores = boilerplate_fit.table(every, lambda place, _: [bool(one > 0.4) for one in found[place]])
    assert scores["g"] > 0.95
    assert written(boilerplate_fit.fit(every)) == written(boilerplate_fit.fit(every))


def test_hosts_are_never_on_both_sides():
    one, other = boilerplate_fit.samples([MarkedPage(PAGE, CZECH * 5, host="a.test")] * 2)
    assert one.fold == other.fold
    assert boilerplate_fit.held_out([one, other]) == {}, "one host alone cannot be checked"


def test_labels_and_scores():
    page = MarkedPage("", "one two three four. Five six", host="h")
    assert labels(["One two three", "three four", "six", "four seven", "one two eight nine ten"], page) == [
        True, True, False, False, False,
    ]  # fmt: skip
    # what the text holds once is text once: where the long blocks are
    long = MarkedPage("", f"a short title\n{CZECH}\n{CZECH}", host="h")
    assert labels(["a short title", "x", "x", CZECH, "a short title", "x", CZECH, CZECH], long) == [
        None, False, False, True, True, False, True, None,
    ]  # fmt: skip
    assert f1([score(["one two three"], page)]) == pytest.approx(2 * 3 / (3 + 6))
    stretches = MarkedPage("", None, ("one", "two"), ("menu",))
    assert score(["one menu"], stretches) == (1, 2, 2)
    assert f1([(1, 2, 2), (1, 1, 2)], stretches=True) == pytest.approx(4 / 7)


def test_weights_survive_a_file(tmp_path):
    path = tmp_path / "weights.json"
    path.write_text(written(bundled()))
    parsed = parse(PAGE)
    page = parsed.blocks, parsed.tree
    options = TextOptions.from_options(Options(boilerplate_model=str(path)), ["cs"])
    assert options.block_model is not None
    again = pickle.loads(pickle.dumps(options.block_model))
    assert again.probabilities(*page) == bundled().probabilities(*page)
    assert bundled().origin["hosts"] > 500


def test_weights_that_no_sum_keeps_are_zero():
    """Units that the fit has given up have weights near 1e-43; with them some processors took 7 ms more a page."""
    values = json.loads(written(bundled()))
    first = next(iter(values["second"]["hidden"].values()))
    first[0], first[1] = 2e-43, -1e-21
    found = BlockModel.from_json(json.dumps(values)).second.hidden
    assert found[0, :2].tolist() == [0, 0]
    assert np.abs(found[found != 0]).min() >= 1e-20


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"first": {"hidden": {"a": [1]}}}', "short", "nan"])
def test_damaged_weights(tmp_path, content):
    path = tmp_path / "weights.json"
    values = json.loads(written(bundled()))
    if content == "short":
        values["second"]["output"].pop()
    elif content == "nan":
        values["first"]["output_bias"] = float("nan")
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(values).encode())
    with pytest.raises(BadInput, match=r"python -m models\.block_model"):
        load_weights(str(path))
    with pytest.raises(BadInput, match="cannot be read"):
        load_weights(str(tmp_path / "nothing"))
    with pytest.raises(ValueError, match=r"match|Error|Expecting|decode"):
        BlockModel.from_json(path.read_bytes())


STOP = frozenset(word.lower() for word in justext.get_stoplist("English"))
RULES = JustextRules()
LONG = "the man who was in the house had been there for some time and " * 5
NEAR = "the man who was in the house had been there for some time and was not at home"
RULES_MENU = "Products Prices Contact Imprint Newsletter Login Register Basket Checkout Shipping"


def block(text: str, heading: bool = False, link_chars: int = 0) -> Block:
    return Block(text, heading, link_chars)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([block(LONG)], "G"),
        ([block(NEAR)], "b"),  # near-good alone
        ([block(LONG), block(NEAR), block("Short one.")], "GGb"),
        ([block(LONG), block("Short one."), block(LONG)], "GGG"),
        ([block(RULES_MENU), block("Short one."), block(LONG)], "bbG"),
        ([block(RULES_MENU), block(NEAR), block("Short one."), block(LONG)], "bGGG"),
        ([block("Home", link_chars=4), block(LONG)], "bG"),
        ([block(LONG, link_chars=100)], "b"),
        ([block(LONG + "©")], "b"),
        ([block(RULES_MENU * 4)], "b"),
        ([block(RULES_MENU), block("A title", heading=True), block(LONG)], "bGG"),
        ([block(RULES_MENU), block("A title", heading=True), block(RULES_MENU * 3), block(LONG)], "bbbG"),  # too far
        ([], ""),
    ],
)
def test_classes(blocks, expected):
    assert "".join("G" if cls == "good" else "b" for cls in classify(blocks, STOP, RULES)) == expected


def test_the_package_itself():
    html = f"<p>{LONG}</p><p>Home</p>"
    assert stock(html, STOP, RULES) == [(Block(LONG.strip(), False, 0), "good"), (Block("Home", False, 0), "bad")]
    assert stock("", STOP, RULES) is None


def test_presets_are_ordered():
    rules = [PRESETS[name] for name in ("strict", "balanced", "permissive")]
    assert rules[0] == JustextRules(70, 200, 0.30, 0.32, 0.2, 200)
    for name, falls in (
        ("length_low", True),
        ("length_high", True),
        ("stopwords_high", True),
        ("max_link_density", False),
    ):
        values = [getattr(one, name) for one in rules]
        assert values == sorted(values, reverse=falls) and values[0] != values[2]


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
