"""The picture of the throttle shows what the code does."""

from __future__ import annotations

from docs import throttle


def test_the_picture_is_up_to_date() -> None:
    assert throttle.PICTURE.read_text(encoding="utf-8") == throttle.picture()
