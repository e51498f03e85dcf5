"""The documentation cannot lie: what can be listed is generated, and compared here; the budgets of the code hold.

``python -m tests.test_docs`` writes docs/options.md, docs/reasons.md, docs/languages.md and docs/status.md anew.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import statistics
import subprocess
import sys
import tokenize
from dataclasses import fields
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from spiderling import signals
from spiderling.addon import ENTRIES
from spiderling.base.opt_outs import Signal
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.reasons import MENTIONS, Reason
from spiderling.commands.options import bounds, unit
from spiderling.crawl.control_file import ControlFile
from spiderling.jobdir.host_list import HostRow
from spiderling.jobdir.status_schema import (
    Budget,
    Curves,
    Ends,
    Language,
    Line,
    Looks,
    Rates,
    ShardStatus,
    Status,
    Text,
    Urls,
)
from spiderling.pipelines.corpus import CorpusPipeline
from spiderling.text.quality import NO_QUALITY
from tests.languages_page import languages_page

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(path for path in ROOT.glob("spiderling/**/*.py"))
CODE = [
    *SOURCES,
    *ROOT.glob("*.py"),
    *ROOT.glob("examples/**/*.py"),
    *ROOT.glob("models/*.py"),
    *ROOT.glob("tests/**/*.py"),
]
MAX_MODULE_STATEMENTS = 250
MAX_FUNCTION_LINES = 50
OPTIONS_HEAD = """\
# Options

Set in your project's settings, or on the command line with `-s NAME=value`. An unknown name, a wrong type or a value
out of bounds is refused before anything is fetched. Changed options take effect when a crawl is resumed and are
logged; only `SPIDERLING_LANG`, `SPIDERLING_YIELD_UNIT`, `SPIDERLING_DEDUP` and `SPIDERLING_SHARDS` are fixed once it
has begun. Large numbers may be written as `500k`, `2.5M` or `1e6`, bytes as `10GB` or `512MiB` too.

This page is generated from spiderling/base/options.py by `python -m tests.test_docs`.
"""
REASONS_HEAD = """\
# Reasons

Every way in which a URL or a page can end, and every way in which the mention of a URL is refused. The counts are in
the state, in Scrapy's stats (`spiderling/end/<reason>`, `spiderling/mention/<reason>`) and in the summary that a crawl
logs at its end; *discovered = ends + waiting + in transit* at every moment.

This page is generated from spiderling/base/reasons.py by `python -m tests.test_docs`.
"""


def options_page() -> str:
    """docs/options.md: a table for each group, which is a comment in the dataclass."""
    specs = {spec.name: spec for spec in fields(Options)}
    lines = [OPTIONS_HEAD]
    for group, name in re.findall(r"^    (?:# (.+)|(\w+): .*_option\()", inspect.getsource(Options), re.MULTILINE):
        if group:
            lines += [
                f"\n## {group[0].upper()}{group[1:]}\n",
                "| option | unit | default | bounds | |",
                "|---|---|---|---|---|",
            ]
        else:
            lines.append(_row(specs.pop(name)))
    assert not specs, f"in no group: {', '.join(specs)}"
    lines.append("\n## Signals\n\n" + inspect.cleandoc(signals.__doc__ or "").replace("``", "`"))
    return "\n".join(lines) + "\n"


def _row(spec) -> str:
    default = f"`{spec.default}`" if spec.default != "" else "empty"
    return f"| `{PREFIX}{spec.name.upper()}` | {unit(spec)} | {default} | {bounds(spec)} | {spec.metadata['help']} |"


def reasons_page() -> str:
    """docs/reasons.md: ends and mentions, in the order of the enum."""
    lines = [REASONS_HEAD]
    for title, wanted in (("Ends", False), ("Refused mentions", True)):
        lines += [f"\n## {title}\n", "| reason | |", "|---|---|"]
        lines += [f"| `{reason.value}` | {reason.help} |" for reason in Reason if (reason in MENTIONS) is wanted]
    return "\n".join(lines) + "\n"


STATUS_HEAD = """\
# The status of a crawl, for programs

`scrapy inspect JOBDIR --json` writes one JSON object; a crawl with a [live page](live.md) serves the same as
`/status.json`. It is told from the last checkpoint; what only the crawl's own process knows is `null`, empty or 0
elsewhere. `version` is raised when a field goes or changes its meaning; new fields may come at any time.

This page is generated from spiderling/jobdir/status_schema.py by `python -m tests.test_docs`.
"""
STATUS = (Status, Urls, Rates, Budget, Ends, Language, Looks, Text, Line, HostRow, Curves, ShardStatus)
"""The classes of the status, the whole first."""
KINDS = {"str": "string", "int": "integer", "float": "number", "dict": "object", "list": "array", "None": "null"}
"""The names of types in JSON."""


def status_page() -> str:
    """docs/status.md: a table for each class that is part of the status."""
    lines = [STATUS_HEAD]
    for made in STATUS:
        source = ast.parse(inspect.getsource(made)).body[0].body
        texts = {
            entry.target.id: ast.get_docstring(ast.Module([following], []))
            for entry, following in pairwise([*source, ast.Pass()])
            if isinstance(entry, ast.AnnAssign)
        }
        lines += [f"\n## {made.__name__}\n", f"{inspect.getdoc(made)}\n", "| field | kind | |", "|---|---|---|"]
        for spec in fields(made):
            text = " ".join((texts[spec.name] or "").replace("``", "`").split())
            kind = re.sub(r"\w+", lambda word: KINDS.get(word[0], word[0]), spec.type.replace(" |", " or"))
            lines.append(f"| `{spec.name}` | {kind} | {text} |")
    return "\n".join(lines) + "\n"


PAGES = {
    "docs/status.md": status_page,
    "docs/options.md": options_page,
    "docs/reasons.md": reasons_page,
    "docs/languages.md": languages_page,
}


@pytest.mark.parametrize("name", PAGES)
def test_generated_page(name):
    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name](), "run: python -m tests.test_docs"


def test_every_option_and_reason_is_in_its_page():
    assert all(f"`{PREFIX}{spec.name.upper()}`" in options_page() for spec in fields(Options))
    assert all(f"| `{reason.value}` |" in reasons_page() for reason in Reason)


# -- what is written by hand


def _texts() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")))


COMMANDS = sorted(
    path.stem
    for path in ROOT.glob("spiderling/commands/*.py")
    if path.stem != "__init__" and (path.stem == "crawl" or not find_spec(f"scrapy.commands.{path.stem}"))
)


"""Those of our own."""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command):
    assert f"scrapy {command}" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "crawl"])
def test_every_command_has_help_with_an_example(command):
    module = importlib.import_module(f"spiderling.commands.{command}")
    assert f"Example: scrapy {command} " in module.Command().long_desc()
    assert module.Command().short_desc()


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "crawl"])
def test_every_command_is_an_entry_point(command):
    """So that it is there in a project of the user's own, too."""
    line = f'{command} = "spiderling.commands.{command}:Command"'
    assert line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("signal", [name for name, value in vars(signals).items() if type(value) is object])
def test_every_signal_is_documented(signal):
    assert f"``{signal}(" in (signals.__doc__ or "")
    assert f"`{signal}" in _texts()


def test_every_attribute_of_a_document_is_explained():
    source = inspect.getsource(CorpusPipeline)
    names = {*re.findall(r'^ +"(\w+)":', source, re.MULTILINE), *NO_QUALITY.attributes()}
    page = (ROOT / "docs/corpus.md").read_text(encoding="utf-8")
    assert len(names) > 20
    assert {name for name in names if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("signal", list(Signal), ids=lambda signal: signal.value)
def test_every_opt_out_is_explained_with_its_rule(signal):
    page = (ROOT / "docs/opt-outs.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{signal.value}` |"))
    assert row.split("|")[3].strip() == signal.rule


@pytest.mark.parametrize("name", [spec.name for spec in fields(ControlFile)])
def test_every_entry_of_the_control_file_is_explained(name):
    assert f"`{name}: " in (ROOT / "docs/operate.md").read_text(encoding="utf-8")


def test_options_named_in_the_documents_exist():
    known = {PREFIX + spec.name.upper() for spec in fields(Options)}
    assert set(re.findall(rf"{PREFIX}[A-Z_]*[A-Z]", _texts())) <= known


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-test.txt"])
def test_every_requirement_has_its_reason(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    unexplained = {line for line in lines if line.strip() and not re.search(r"#\s*\w", line)}
    assert unexplained <= {"pytest>=8"}, "the tests are pytest's"


# -- the code


def is_docstring(node: ast.stmt) -> bool:
    """Whether it is a docstring, or the bare string that stands behind a constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module(path):
    """A docstring says what it is for; it is short, and so are its functions."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert ast.get_docstring(tree) or not source.strip()
    statements = sum(isinstance(node, ast.stmt) and not is_docstring(node) for node in ast.walk(tree))
    assert statements <= MAX_MODULE_STATEMENTS
    assert [name for name, lines in function_lines(tree) if lines > MAX_FUNCTION_LINES] == []


def function_lines(tree: ast.AST) -> list[tuple[str, int]]:
    """Name and number of lines of each function."""
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [(node.name, (node.end_lineno or 0) - node.lineno + 1) for node in functions]


def test_functions_are_short():
    lines = [lines for path in SOURCES for _, lines in function_lines(ast.parse(path.read_text(encoding="utf-8")))]
    assert statistics.median(lines) < 10


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_left_to_be_done(path):
    with path.open("rb") as stream:
        comments = [token for token in tokenize.tokenize(stream.readline) if token.type == tokenize.COMMENT]
    assert [token.line for token in comments if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", token.string)] == []


def test_the_changelog_names_what_takes_the_place_of_former_components():
    installed = {path for entries in ENTRIES.values() for path in entries if isinstance(path, str)}
    installed |= set(ENTRIES["FEED_EXPORTERS"].values())
    moved = re.findall(
        r"^  - `(spiderling\.\S+)`: now `(\S+)`", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    former = {"RobotsMiddleware", "SitemapMiddleware", "Snapshots", "PrevertExporter", "ParquetExporter"}
    assert {old.rpartition(".")[2] for old, _ in moved} == former
    assert {new for _, new in moved} <= installed and not {old for old, _ in moved} & installed


@pytest.mark.parametrize("module", ["tests.test_docs", "docs.architecture"])
def test_what_makes_the_pages_can_be_run_from_the_checkout(module: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", f"import {module}"], cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / name).write_text(page(), encoding="utf-8")
