"""Links and file names in the documents lead somewhere."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.sources import sinners

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md", "models/*.md", "models/cc-by-sa/*.md", "examples/*/*.md")
    for path in ROOT.glob(pattern)
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"(?<![\w/.*-])((?:\w+/)+[a-z_0-9-]+\.(?:py|md|tsv|csv|json|svg|png))\b")
"""A path with a folder in front; from the root of the repository, or of the package."""


@cache
def anchors(path: Path) -> set[str]:
    """The ids that renderers give to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(document: Path) -> list[str]:
    wrong = []
    for link in LINK.findall(document.read_text("utf-8")):
        file, _, anchor = link.partition("#")
        target = document.parent / file if file else document
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


def test_links_lead_to_files_and_headings() -> None:
    assert sinners(DOCUMENTS, broken_links) == {}


def missing_files(document: Path) -> list[str]:
    """Files that are named in a document, and are not there."""
    text = re.sub(r"\]\([^)]*\)|https?://\S+", "", document.read_text("utf-8"))
    named = {name for name in FILE.findall(text) if not name.startswith(("crawls/", "state/", "corpus/"))}
    bases = (ROOT, ROOT / "spiderling", ROOT / "tests", document.parent)
    return sorted(name for name in named if not any((base / name).exists() for base in bases))


def test_files_that_are_named_exist() -> None:
    assert sinners(DOCUMENTS, missing_files) == {}


def wrong_imports(document: Path) -> list[str]:
    """Imports of examples in a document that fail, with the error."""
    wrong = []
    for statement in re.findall(r"^from spiderling\S* import [\w, ]+$", document.read_text("utf-8"), re.MULTILINE):
        try:
            exec(statement, {})
        except ImportError as error:
            wrong.append(f"{statement}: {error}")
    return wrong


def test_imports_of_examples_work() -> None:
    assert sinners(DOCUMENTS, wrong_imports) == {}


NAMED = re.compile(r"`([A-Za-z_][\w.]*)` in \[[^\]]*\]\(([^)#]+\.py)\)|\]\(([^)#]+\.py)\):? `([A-Za-z_][\w.]*)`")
"""A name of the code beside a link to the file that has it."""


def missing_names(document: Path) -> list[str]:
    """Names of the code that the file linked beside them does not define."""
    wrong = []
    for before, file, other_file, after in NAMED.findall(document.read_text("utf-8")):
        code = (document.parent / (file or other_file)).read_text("utf-8")
        name = before or after
        own = re.escape(name.rpartition(".")[2])
        if not re.search(rf"(?:def|class) {own}\b|^\s*(?:self\.)?{own}\b[^=\n]*[=:]", code, re.MULTILINE):
            wrong.append(f"{name} in {file or other_file}")
    return wrong


def test_names_stand_in_the_files_that_are_linked_for_them() -> None:
    assert sinners(DOCUMENTS, missing_names) == {}


def test_each_page_is_in_the_navigation_of_the_site() -> None:
    """Two of its pages are made of others (docs/site_pages.py)."""
    named = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2])
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert sorted(named) == sorted({*pages, "index.md", "tasks.md"} - {"README.md"})
