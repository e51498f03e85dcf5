"""The frontier hands out the same URLs in the same order at the same times: the guard of every change that must not.

A change that is meant to change an order records it anew in a commit of its own that says why:

    PYTHONPATH=. python tests/frontier/test_same_order.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from recorded_order import CASES, Order

GOLDEN = Path(__file__).with_name("golden_order.json")
_CLOCK_S = 1e-6  # differences of rounding between versions of Python and of libm, in seconds of the simulated clock


EVERYDAY = ("thai, spiderling", "pt, retirement", "pt, killed, in a file", "redirects and errors")
"""Those that ``make test`` has time for."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in EVERYDAY else pytest.mark.slow) for name in CASES]
)
def test_order_of_fetches_is_the_same(name, tmp_path):
    golden, order = Order(*json.loads(GOLDEN.read_text())[name]), CASES[name](tmp_path)
    assert order.fetches == golden.fetches
    assert order.times == pytest.approx(golden.times, abs=_CLOCK_S)
    assert order.urls == golden.urls


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        orders = {}
        for at, (case, crawl) in enumerate(CASES.items()):
            directory = Path(scratch) / str(at)
            directory.mkdir()
            orders[case] = crawl(directory)
    GOLDEN.write_text(json.dumps(orders, indent=1) + "\n")
