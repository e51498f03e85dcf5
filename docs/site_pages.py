"""Hooks of MkDocs (mkdocs.yml): pages of the checkout become pages of the site, with all files that they link to.

The documents are written for readers of the repository: README.md is the front page, and links lead to files of the
code. Each linked file outside of docs/ is put on the site as it stands, under repository/, so that a version of the
site shows the code of that version and no link leaves it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
"""Text, address and anchor of a link."""
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LIST = re.compile(r"(?P<before>^(?! *(?:[-*]|\d+\.) |\s*$)[^\n]*\n)(?=(?:[-*]|\d+\.) )", re.MULTILINE)
"""The line before a list that follows without an empty line, which Markdown in Python does not take for one."""
NESTED = re.compile(r"^   (?=- )", re.MULTILINE)
LIGHT = re.compile(r"!\[([^\]]*)\]\(([^)]*)-light\.png\)")
FRONT = {"README.md": "index.md", "docs/README.md": "tasks.md"}
MAX_PAGE_BYTES = 200_000  # a larger file is a file to download

_sources: dict[str, str] = {}
"""Page or file of the site -> path in the checkout."""


def place(path: str) -> str:
    """Where a file of the checkout is on the site."""
    if path in FRONT:
        return FRONT[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    is_page = not path.endswith(".md") and (ROOT / path).stat().st_size < MAX_PAGE_BYTES
    return f"repository/{path}.md" if is_page else f"repository/{path}"


def target(path: str, link: str) -> str:
    """The file of the checkout that a link in the file *path* leads to, of a directory its README; '' if none."""
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    found += "/README.md" if (ROOT / found / "README.md").is_file() else ""
    return found if "://" not in link and (ROOT / found).is_file() else ""


def slug(heading: str, separator: str) -> str:
    """The anchor of a heading, as repositories on the web make it (tests/test_docs_links.py)."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_config(config: Any) -> Any:
    config.mdx_configs["toc"]["slugify"] = slug
    return config


def linked(path: str) -> set[str]:
    """The files of the checkout that a page links to."""
    text = (ROOT / path).read_text("utf-8") if path.endswith(".md") else ""
    return {target(path, link) for _, link, _ in LINK.findall(text)} - {""}


def on_files(files: Files, config: Any) -> Files:
    """Add what the pages link to."""
    _sources.clear()
    files.remove(files.src_uris["README.md"])
    _sources.update({file.src_uri: f"docs/{file.src_uri}" for file in files if file.src_uri.endswith(".md")})
    waiting = [*_sources.values(), *FRONT]
    done = {f"docs/{file.src_uri}" for file in files} | {*FRONT}
    while waiting:
        for path in sorted(linked(waiting.pop()) - done):
            done.add(path)
            waiting.append(path)
            _sources[place(path)] = path
    _sources.update({page: path for path, page in FRONT.items()})
    for page, path in _sources.items():
        if page not in files.src_uris:
            files.append(added(page, path, config))
    return files


def added(page: str, path: str, config: Any) -> File:
    """A file of the checkout as one of the site."""
    if path.endswith(".md") or not page.endswith(".md"):
        return File.generated(config, page, content=(ROOT / path).read_bytes())
    text = (ROOT / path).read_text("utf-8")
    fence = "~" * 8
    language = {".py": "python", ".json": "json", ".yaml": "yaml", ".toml": "toml"}.get(Path(path).suffix, "text")
    head = "---\nsearch:\n  exclude: true\nhide: [toc]\n---\n"
    return File.generated(config, page, content=f"{head}# {path}\n\n{fence} {language}\n{text}\n{fence}\n")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """The page with links of the site, outside of code."""
    path = _sources.get(page.file.src_uri, "")
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]
    if not path.endswith(".md"):
        return markdown

    def moved(found: re.Match[str]) -> str:
        words, link, anchor = found.groups(default="")
        file = target(path, link)
        if not file:
            return found[0]
        if words.endswith(".md") and not anchor:
            words = heading(file)
        address = posixpath.relpath(place(file), posixpath.dirname(page.file.src_uri) or ".")
        return f"[{words}]({address}{anchor})"

    parts = FENCED.split(markdown)
    parts[::2] = [in_both_schemes(LINK.sub(moved, as_python_reads(part))) for part in parts[::2]]
    return "".join(parts)


def heading(path: str) -> str:
    """The first heading of a page, which stands for its file name; a reader of the site sees no files."""
    return (ROOT / path).read_text("utf-8").partition("# ")[2].partition("\n")[0]


def as_python_reads(text: str) -> str:
    """Lists as Markdown in Python wants them."""
    return NESTED.sub("    ", LIST.sub(r"\g<before>\n", text))


def in_both_schemes(text: str) -> str:
    """A picture that has a dark twin, and that twin."""
    return LIGHT.sub(r"![\1](\2-light.png#only-light)![\1](\2-dark.png#only-dark)", text)
