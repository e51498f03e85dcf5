"""How many examples a property test tries: few in ``make test``, all in ``make slow``, and more to look for new ones.

HYPOTHESIS_PROFILE says which; see tests/conftest.py.
"""

from __future__ import annotations

import os

SHARES = {"few": 0.25, "all": 1.0, "explore": 10.0}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "few")


def examples(number: int) -> int:
    """The share of *number* that the profile wants."""
    return max(10, round(number * SHARES[PROFILE]))
