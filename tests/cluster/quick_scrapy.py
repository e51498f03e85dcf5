"""``scrapy`` as a program whose child processes run the same program; $CONSTANTS as in forked.py, for all of them."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
for name, value in json.loads(os.environ.get("CONSTANTS", "{}")).items():
    module, _, constant = f"spiderling.{name}".rpartition(".")
    assert hasattr(importlib.import_module(module), constant)
    setattr(sys.modules[module], constant, value)

from scrapy.cmdline import execute  # noqa: E402

execute()
