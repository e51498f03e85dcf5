"""What a page says of its own language, and what that weighs."""

from __future__ import annotations

import pytest

from spiderling.base.options import Options
from spiderling.engine.outcomes import DropPage
from spiderling.languages import load
from spiderling.pipelines import check_language
from spiderling.text import Page, TextOptions, process
from spiderling.text.declared import (
    declared_language,
    guess_among,
    language_of_charset,
    language_of_tag,
    lswc_among,
    lswc_language,
    table_1,
)

MODELS = load(("cs", "sk", "en", "de"))
CZECH = "Když se kočka vrátila domů, bylo už tma a všichni spali, jen pes seděl u dveří a čekal na ni. " * 3
ENGLISH = "When the cat came home it was already dark and everybody was asleep, only the dog was waiting. " * 3
SHORT = "Pes sedel pri robote a na stole je nový pohár."  # Slovak, and nearly Czech


def run(html: str, *, accepted: tuple[str, ...] = ("cs",), **options: object) -> Page:
    judged = TextOptions(accepted, **options)
    return process(html.encode(), url="http://127.0.0.1/", http_charset=None, models=MODELS, options=judged)


@pytest.mark.parametrize(
    ("declared", "guessed", "language"),
    [
        ("th", "ja", "th"),  # Thai, X
        ("ja", "th", "th"),  # X, Thai
        ("ja", None, "ja"),  # Y, unknown
        (None, "ja", "ja"),  # unknown, Z
        (None, None, None),  # unknown, unknown
        ("ja", "zh", "ja"),  # Y, Z
        # X is any language, the unknown one among them
        ("th", None, "th"),
        (None, "th", "th"),
        ("th", "th", "th"),
    ],
)
def test_table_1(declared, guessed, language):
    assert table_1(declared, guessed, "th") == language


@pytest.mark.parametrize(
    ("candidates", "guess"),
    [(("ja", "en", "th"), "th"), (("ja", "en"), "en"), (("ja", "zh"), "ja"), ((), None)],
)
def test_a_list_of_guesses_is_the_target_then_english_then_its_first(candidates, guess):
    assert guess_among(candidates, "th") == guess


@pytest.mark.parametrize(
    ("tag", "code"),
    [("cs", "cs"), ("cs-CZ", "cs"), ("EN_us", "en"), ("hsb", "hsb"), ("", None), (None, None), ("čeština", None),
     ("english", None), ("x-default", None), ("c", None)],
)  # fmt: skip
def test_language_of_tag(tag, code):
    assert language_of_tag(tag) == code


def test_language_of_charset():
    found = [language_of_charset(codec) for codec in ("cp874", "euc_jp", "cp949", "cp1250", "utf-8", None)]
    assert found == ["th", "ja", "ko", None, None, None]


def test_the_paper_needs_either_charset_or_text():
    thai = Page(encoding_declared="cp874", candidates=("en",))
    english = Page(encoding_declared="utf-8", candidates=("de", "en"))
    assert (lswc_language(thai, "th"), lswc_language(english, "th")) == ("th", "en")
    assert lswc_language(Page(encoding_declared="cp949", candidates=("de",)), "th") == "ko"
    assert lswc_language(Page(), "th") is None


def test_the_paper_with_several_targets():
    english = Page(encoding_declared="utf-8", candidates=("de", "en"))
    assert [lswc_among(english, targets) for targets in (("cs", "de"), ("cs", "sk"), ())] == ["de", "en", ""]
    assert lswc_among(Page(), ("cs",)) == ""
    page = run(f"<p>{ENGLISH}</p><p>{ENGLISH}</p>")
    assert (page.lswc_language, page.lswc_relevant) == ("en", False)


def test_candidates_are_the_languages_of_the_whole_page():
    page = run(f"<p>{CZECH}</p><p>{ENGLISH}</p><p>{CZECH}</p>")
    assert page.candidates == ("cs",)
    assert lswc_language(page, "cs") == "cs"
    assert run("<p>Nic.</p>").candidates == ()
    greek = "Η γρήγορη καφέ αλεπού πηδάει πάνω από τον τεμπέλη σκύλο και φεύγει μακριά από το σπίτι της. " * 3
    assert run(f"<p>{greek}</p>").candidates == ()


def test_a_page_of_menus_and_headlines_is_in_their_language():
    menu = "".join(f"<li><a href=/{n}>{word}</a></li>" for n, word in enumerate(CZECH.split()))
    page = run(f"<ul>{menu}</ul>")
    assert not any(paragraph.kept for paragraph in page.paragraphs)
    assert (page.candidates, page.language, page.lswc_relevant) == (("cs",), None, True)


def test_lang_goes_before_charset():
    assert declared_language(Page(html_lang="cs", encoding_declared="cp874")) == "cs"
    assert declared_language(Page(html_lang="?", encoding_declared="cp874")) == "th"


def test_a_declaration_decides_what_is_near():
    guesses = MODELS.identify([SHORT, CZECH, ""])
    margin = (guesses.scores[0].max() - guesses.scores[0][MODELS.codes.index("cs")]) / 4
    assert guesses.nearest([0]) == "sk"
    assert guesses.leaning("cs", float(margin) + 1).nearest([0]) == "cs"
    assert guesses.leaning("cs", float(margin) - 1).nearest([0]) == "sk"
    assert guesses.leaning("xx", 100).scores is guesses.scores
    assert guesses.leaning("en", 100).nearest([2]) is None


def test_a_wrong_declaration_does_not_turn_a_page():
    page = run(f"<html lang=en><p>{CZECH}</p>", accepted=("cs", "en"))
    assert (page.language, page.languages) == ("cs", {"cs": 1.0})


def test_a_page_of_two_languages_keeps_the_paragraphs_of_the_accepted_one():
    html = f"<p>{CZECH}</p><p>{ENGLISH}</p><p>{CZECH}</p>"
    page = run(html)
    assert [one.kept for one in page.paragraphs] == [True, False, True]
    check_language(page, ("cs",), Options())  # the page is kept
    with pytest.raises(DropPage):
        check_language(run(html, accepted=("en",)), ("en",), Options())
    both = run(html, accepted=("cs", "en"))
    assert [(one.language, one.kept) for one in both.paragraphs] == [("cs", True), ("en", True), ("cs", True)]
    check_language(both, ("cs", "en"), Options())
