"""One meaning a word: the glossary and the code agree, and a class has a name of its own."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from tests.sources import ROOT

SOURCES = sorted((ROOT / "spiderling").rglob("*.py"))
GLOSSARY = ROOT / "docs/glossary.md"
SCRAPYS = {"Command"}  # Scrapy finds a command by this name


def test_each_word_of_the_glossary_is_used_in_the_code():
    code = " ".join(" ".join(path.read_text("utf-8").lower() for path in SOURCES).replace("_", " ").split())
    words = re.findall(r"^- \*\*(.+?)\*\*", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    assert len(words) > 30
    assert [word for word in words if not re.search(rf"\b{re.escape(word)}s?\b", code)] == []


def test_no_two_classes_of_the_package_have_one_name():
    places = defaultdict(list)
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name not in SCRAPYS:
                places[node.name].append(path.relative_to(ROOT).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
