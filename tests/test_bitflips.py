"""One flipped bit in a crawl's directory is found or harmless, and nothing falls over."""

from __future__ import annotations

import pytest
from bit_flips import made, swept


@pytest.mark.slow
def test_a_flipped_bit_is_found_or_harmless(tmp_path):
    for directory, flip, verdict in swept(made(tmp_path), 200, tmp_path):
        assert not verdict.traceback, (directory, flip)
        assert verdict.found or verdict.is_harmless, (directory, flip)
