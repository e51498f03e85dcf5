"""Measurements; each script prints a table and, as its last line, ``RESULT {json}`` (see README.md)."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path += [str(TESTS), str(TESTS / "web")]  # their helpers are no package
