"""The papers' cosine of trigrams."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from spiderling.base.options import Options
from spiderling.engine.outcomes import DropPage
from spiderling.languages import load
from spiderling.pipelines import check_language
from spiderling.text import LanguageModel, LanguageModels, Page, TextOptions, process
from spiderling.text.ngrams import NgramCounts

MODELS = load(("cs", "sk", "en", "de"))
_LINES = (Path(__file__).parent.parent / "quality" / "sentences.tsv").read_text("utf-8").splitlines()


def paragraphs(code: str) -> list[str]:
    """Two paragraphs of ten sentences: the cosine needs variety."""
    sentences = [line.partition("\t")[2] for line in _LINES if line.startswith(f"{code}\t")]
    return [" ".join(sentences[start : start + 10]) for start in range(0, min(20, len(sentences)), 10)]


CZECH, ENGLISH = " ".join(paragraphs("cs"))[:600], " ".join(paragraphs("en"))[:600]
OPTIONS = Options(language_method="cosine")


def run(html: str, accepted: tuple[str, ...] = ("cs",), preset: str = "balanced") -> Page:
    judged = TextOptions.from_options(replace(OPTIONS, justext_preset=preset), accepted)
    return process(html.encode(), url="http://127.0.0.1/", http_charset=None, models=MODELS, options=judged)


def test_the_cosine_by_hand():
    """Trigrams of ' abab ': ' ab' once, 'aba', 'bab', 'ab '."""
    models = LanguageModels((LanguageModel("xx", NgramCounts.of({" ab": 3, "ab ": 4, "ab": 9}), {}, {}),))
    guesses = models.compare(["Abab!"])
    assert guesses.known_share("xx") == pytest.approx((3 + 4) / (5 * math.sqrt(4)), rel=1e-5)


def test_texts_together_are_the_vector_of_their_sum():
    both = MODELS.compare([CZECH, ENGLISH])
    assert [both.nearest([0]), both.nearest([1])] == ["cs", "en"]
    assert both.sure() == ["cs", "en"]
    twice = MODELS.compare([CZECH, CZECH])
    assert twice.known_share("cs") == pytest.approx(MODELS.compare([CZECH]).known_share("cs"), rel=1e-5)
    assert both.known_share("cs") < both.known_share("cs", [0])


def test_without_letters_or_models_there_is_no_answer():
    assert MODELS.compare([]).nearest() is None
    assert MODELS.compare(["12"]).nearest() is None
    assert MODELS.compare(["Ne."]).sure() == [None]
    nothing = LanguageModels(()).compare(["text " * 20])
    assert (nothing.nearest(), nothing.sure(), nothing.candidates(0.5)) == (None, [None], ())


def test_near_languages_are_candidates_together():
    assert MODELS.compare([CZECH]).candidates(0.5) == ("cs",)
    assert MODELS.compare([CZECH]).candidates(0.99) == ()
    twins = LanguageModels((MODELS["cs"], LanguageModel("xx", MODELS["cs"].ngrams, {}, {})))
    assert twins.compare([CZECH]).candidates(0.5) == ("cs", "xx")


def test_the_threshold_is_one_for_documents():
    one, two = paragraphs("cs")
    page = run(f"<p>{one}</p><p>{ENGLISH}</p><p>{two}</p>")
    assert [paragraph.kept for paragraph in page.paragraphs] == [True, False, True]
    assert 0.5 <= page.known_share <= 1
    check_language(page, ("cs",), OPTIONS)
    page.known_share = 0.49
    with pytest.raises(DropPage):
        check_language(page, ("cs",), OPTIONS)


def test_a_short_paragraph_needs_no_cosine_of_its_own():
    short = "Jen pes seděl u dveří a čekal na ni, protože měl velký hlad."
    one, two = paragraphs("cs")
    assert MODELS.compare([short]).known_share("cs") < 0.5
    page = run(f"<p>{one}</p><p>{short}</p><p>{two}</p>")
    assert [(one.language, one.kept) for one in page.paragraphs] == [("cs", True)] * 3


def test_a_cosine_below_the_threshold_is_no_known_language():
    html = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs("fr"))
    page = run(html, ("en",), preset="permissive")
    assert page.known_share < 0.5
    assert (page.languages, {one.kept for one in page.paragraphs}) == ({}, {False})


def test_the_papers_threshold_is_the_default():
    assert TextOptions.from_options(OPTIONS, ["cs"]).min_known_share == 0.5
    assert TextOptions.from_options(Options(min_known_share=0.7), ["cs"]).min_known_share == 0.7
