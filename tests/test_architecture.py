"""The picture of the packages shows what the code imports."""

from __future__ import annotations

import pytest

from docs import architecture


@pytest.mark.slow
def test_the_picture_is_up_to_date() -> None:
    """`python -m docs.architecture` draws it anew."""
    assert architecture.PICTURE.read_text(encoding="utf-8") == architecture.picture()


def test_what_follows_from_other_arrows_is_left_out() -> None:
    uses = {"commands": {"crawl", "base"}, "crawl": {"base"}, "base": set()}
    assert architecture.reduced(uses) == {"commands": {"crawl"}, "crawl": {"base"}, "base": set()}


def test_every_package_has_its_words() -> None:
    assert architecture.WORDS.keys() == architecture.FLOOR.keys()
