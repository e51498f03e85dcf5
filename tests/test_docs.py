"""The documentation cannot lie: what can be listed is generated, and compared here; the budgets of the code hold.

``python -m tests.test_docs`` writes docs/options.md, docs/reasons.md, docs/languages.md, docs/status.md and
benchmarks/results.md again."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import fields
from functools import cache
from importlib.util import find_spec
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

import pytest

from docs import architecture, throttle
from spiderling import signals
from spiderling.base.opt_outs import Signal
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.reasons import MENTIONS, Reason
from spiderling.commands.options import bounds, unit
from spiderling.frontier.hosts import CLOSED_STATES
from spiderling.jobdir.control_file import ControlFile
from spiderling.jobdir.status_schema import (
    Budget,
    Curves,
    Ends,
    Files,
    GroupYield,
    HostRow,
    Language,
    Line,
    Rates,
    Refusing,
    Revisits,
    ShardStatus,
    Status,
    Text,
    Urls,
)
from spiderling.pipelines import CorpusPipeline
from spiderling.text.quality import NO_QUALITY
from tests.languages_page import languages_page
from tests.results_page import FIELDS, MAX_ROWS, results, results_page
from tests.sources import ROOT, sinners, tree_of

SOURCES = sorted([*ROOT.glob("spiderling/**/*.py"), *ROOT.glob("simulator/**/*.py")])
MAX_FUNCTION_LINES = 50
OPTIONS_HEAD = """\
# Options

Set in your project's settings, or on the command line with `-s NAME=value`. An unknown name, a wrong type or a value
out of bounds is refused. Changed options take effect when a crawl is resumed; only `SPIDERLING_LANG`,
`SPIDERLING_DEDUP` and `SPIDERLING_SHARDS` are fixed once it has begun. Large numbers may be
written as `500k`, `2.5M` or `1e6`, bytes as `10GB` or `512MiB`. In brackets: default, unit, bounds.

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
    """docs/options.md: a list for each group, which is a comment in the dataclass."""
    specs = {spec.name: spec for spec in fields(Options)}
    lines = [OPTIONS_HEAD]
    for group, name in re.findall(r"^    (?:# (.+)|(\w+): .*_option\()", inspect.getsource(Options), re.MULTILINE):
        if group:
            lines.append(f"\n## {group[0].upper()}{group[1:]}\n")
        else:
            lines.append(_entry(specs.pop(name)))
    assert not specs, f"in no group: {', '.join(specs)}"
    return "\n".join(lines) + "\n"


def _entry(spec) -> str:
    default = f"`{spec.default}` {unit(spec)}".strip() if spec.default != "" else ""
    said = "; ".join(filter(None, (default, bounds(spec))))
    return f"- `{PREFIX}{spec.name.upper()}`{said and f' ({said})'}: {spec.metadata['help']}"


def reasons_page() -> str:
    """docs/reasons.md: ends and mentions, in the order of the enum."""
    lines = [REASONS_HEAD]
    for title, wanted in (("Ends", False), ("Refused mentions", True)):
        lines.append(f"\n## {title}\n")
        lines += [f"- `{reason.value}`: {reason.help}" for reason in Reason if (reason in MENTIONS) is wanted]
    return "\n".join(lines) + "\n"


STATUS_HEAD = """\
# The status of a crawl, for programs

`scrapy inspect JOBDIR --json` writes one JSON object; a crawl with a [live page](live.md) serves the same as
`/status.json`. It is told from the last checkpoint; what only the crawl's own process knows is `null`, empty or 0
elsewhere. `version` is raised when a field goes or changes its meaning; new fields may come at any time.

This page is generated from spiderling/jobdir/status_schema.py by `python -m tests.test_docs`.
"""
STATUS = (
    Status, Urls, Rates, Budget, Ends, Language, Revisits, Text, Line, HostRow, GroupYield, Refusing, Files, Curves,
    ShardStatus,
)  # fmt: skip
"""The classes of the status, the whole first."""
KINDS = {"str": "string", "int": "integer", "float": "number", "dict": "object", "list": "array", "None": "null"}
"""The names of types in JSON."""


def status_page() -> str:
    """docs/status.md: a list for each class that is part of the status."""
    lines = [STATUS_HEAD]
    for made in STATUS:
        source = inspect.getsource(made)
        written = source.splitlines()
        texts = {
            entry.target.id: written[entry.lineno - 1].partition("  # ")[2]
            or ast.get_docstring(ast.Module([following], []))
            for entry, following in pairwise([*ast.parse(source).body[0].body, ast.Pass()])
            if isinstance(entry, ast.AnnAssign)
        }
        lines += [f"\n## {made.__name__}\n", f"{inspect.getdoc(made)}\n"]
        for said, named in groupby([(_said_of(spec, texts), f"`{spec.name}`") for spec in fields(made)], itemgetter(0)):
            lines.append(f"- {', '.join(name for _, name in named)} {said}")
    return "\n".join(lines) + "\n"


def _said_of(spec, texts: dict[str, str | None]) -> str:
    """Kind and text of a field; neighbours without a text of their own share one line."""
    kind = re.sub(r"\w+", lambda word: KINDS.get(word[0], word[0]), spec.type.replace(" |", " or"))
    text = " ".join((texts[spec.name] or "").replace("``", "`").split())
    return f"({kind}): {text}" if text else f"({kind})"


PAGES = {
    "docs/status.md": status_page,
    "docs/options.md": options_page,
    "docs/reasons.md": reasons_page,
    "docs/languages.md": languages_page,
    "benchmarks/results.md": results_page,
}


@pytest.mark.parametrize("name", PAGES)
def test_generated_page(name):
    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name](), "run: python -m tests.test_docs"


def test_results_are_few_complete_and_repeatable():
    rows = results()
    assert len(rows) <= MAX_ROWS
    assert [row for row in rows if tuple(row) != FIELDS] == []
    scripts = {path.stem for path in ROOT.glob("benchmarks/*.py")}
    assert {row["script"] for row in rows} <= scripts


def test_every_option_and_reason_is_in_its_page():
    options, reasons = options_page(), reasons_page()
    assert [spec.name for spec in fields(Options) if f"`{PREFIX}{spec.name.upper()}`" not in options] == []
    assert [reason for reason in Reason if f"- `{reason.value}`: " not in reasons] == []


# -- what is written by hand


def _texts() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")))


COMMANDS = sorted(
    path.stem
    for path in ROOT.glob("spiderling/commands/*.py")
    if path.stem != "__init__" and (path.stem == "crawl" or not find_spec(f"scrapy.commands.{path.stem}"))
)


"""Those of our own."""


def test_every_command_is_in_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [command for command in COMMANDS if f"scrapy {command}" not in readme] == []


def is_helpful(command: str) -> bool:
    """Whether its help has an example."""
    module = importlib.import_module(f"spiderling.commands.{command}")
    return f"Example: scrapy {command} " in module.Command().long_desc() and bool(module.Command().short_desc())


def test_every_command_has_help_with_an_example():
    assert [name for name in COMMANDS if name != "crawl" and not is_helpful(name)] == []


def test_every_command_is_an_entry_point():
    """So that it is there in a project of the user's own, too."""
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    entries = {name: f'{name} = "spiderling.commands.{name}:Command"' for name in COMMANDS if name != "crawl"}
    assert [name for name, line in entries.items() if line not in lines] == []


def test_every_signal_is_documented():
    names = [name for name, value in vars(signals).items() if type(value) is object]
    assert [name for name in names if f"``{name}(" not in (signals.__doc__ or "")] == []
    assert [name for name in names if f"`{name}" not in _texts()] == []


def test_every_attribute_of_a_document_is_explained():
    source = inspect.getsource(CorpusPipeline)
    names = {*re.findall(r'^ +"(\w+)":', source, re.MULTILINE), *NO_QUALITY.attributes()}
    page = (ROOT / "docs/corpus.md").read_text(encoding="utf-8")
    assert len(names) > 20
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_every_opt_out_is_explained_with_its_rule():
    page = (ROOT / "docs/opt-outs.md").read_text(encoding="utf-8")
    rows = dict(reversed(re.findall(r"^\| `([^`]+)` \|[^|]*\| *([^|]*?) *\|", page, re.MULTILINE)))  # the first counts
    assert {signal.value: rows.get(signal.value) for signal in Signal} == {one.value: one.rule for one in Signal}


def test_every_entry_of_the_control_file_is_explained():
    page = (ROOT / "docs/operate.md").read_text(encoding="utf-8")
    assert [spec.name for spec in fields(ControlFile) if f"`{spec.name}: " not in page] == []


def test_options_named_in_the_documents_and_benchmarks_exist():
    known = {PREFIX + spec.name.upper() for spec in fields(Options)}
    scripts = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("benchmarks/*.py"))
    assert set(re.findall(rf"{PREFIX}[A-Z_]*[A-Z]", _texts() + scripts)) - known == set()


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-test.txt"])
def test_every_requirement_has_its_reason(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.strip() and not re.search(r"#\s*\w", line)] == []


# -- the code


@cache
def function_lines(path: Path) -> list[tuple[str, int]]:
    """Name and number of lines of each function."""
    functions = [node for node in ast.walk(tree_of(path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [(node.name, (node.end_lineno or 0) - node.lineno + 1) for node in functions]


def long_functions(path: Path) -> list[str]:
    return [name for name, lines in function_lines(path) if lines > MAX_FUNCTION_LINES]


def test_functions_are_short():
    assert sinners(SOURCES, long_functions) == {}
    assert statistics.median(lines for path in SOURCES for _, lines in function_lines(path)) < 10


@pytest.mark.slow
@pytest.mark.parametrize("module", ["tests.test_docs", "docs.architecture"])
def test_what_makes_the_pages_can_be_run_from_the_checkout(module: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", f"import {module}"], cwd=ROOT, env=environment, check=True)


# -- pictures, the glossary, the limits


@pytest.mark.parametrize("drawn", [pytest.param(architecture, marks=pytest.mark.slow), throttle])
def test_a_picture_is_up_to_date(drawn) -> None:
    """`python -m docs.architecture` draws the first anew."""
    assert drawn.PICTURE.read_text(encoding="utf-8") == drawn.picture()


def test_what_follows_from_other_arrows_is_left_out_and_every_package_has_its_words() -> None:
    uses = {"commands": {"crawl", "base"}, "crawl": {"base"}, "base": set()}
    assert architecture.reduced(uses) == {"commands": {"crawl"}, "crawl": {"base"}, "base": set()}
    assert architecture.WORDS.keys() == architecture.FLOOR.keys()


PACKAGE = sorted((ROOT / "spiderling").rglob("*.py"))
SCRAPYS = {"Command"}  # Scrapy finds a command by this name


def test_each_word_of_the_glossary_is_used_in_the_code():
    code = " ".join(" ".join(path.read_text("utf-8").lower() for path in PACKAGE).replace("_", " ").split())
    words = re.findall(r"^- \*\*(.+?)\*\*", (ROOT / "docs/glossary.md").read_text("utf-8"), re.MULTILINE)
    assert len(words) > 30
    assert [word for word in words if not re.search(rf"\b{re.escape(word)}s?\b", code)] == []


def test_no_two_classes_of_the_package_have_one_name():
    places = defaultdict(list)
    for path in PACKAGE:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name not in SCRAPYS:
                places[node.name].append(path.relative_to(ROOT).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/limits.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| limit")
]


def test_rows_tell_the_defaults_of_their_options() -> None:
    assert len(ROWS) > 35 and {len(row) for row in ROWS} == {4}
    told = {name: row[2] for row in ROWS for name in re.findall(PREFIX + r"[A-Z_]+", row[1])}
    assert told == {name: str(getattr(Options(), name.removeprefix(PREFIX).lower()) or "empty") for name in told}


def test_rows_tell_the_values_of_their_constants() -> None:
    named = [(re.search(r"`([A-Z_]+)` in \[[\w/]+\.py\]\(\.\./([\w/]+)\.py\)", row[1]), row[2]) for row in ROWS]
    told = {(found[2].replace("/", "."), found[1]): value for found, value in named if found}
    assert len(told) == sum(" in [" in row[1] for row in ROWS)
    assert told == {key: str(getattr(importlib.import_module(key[0]), key[1])) for key in told}


def test_rows_name_reasons_and_all_that_a_server_can_cause() -> None:
    pattern = r"(?<![\w-])[a-z]+(?:-[a-z]+)+|dns|tls|timeout|trap|connection|undecodable"
    named = {key for row in ROWS for key in re.findall(pattern, row[3])}
    assert named - {reason.value for reason in Reason} == set()
    caused = "bad-url port-forbidden trap too-many-links address-forbidden dns redirect-loop not-text too-big timeout"
    assert {*caused.split(), "too-slow", "bad-http", "tls", "connection", "undecodable", "worker-crash"} <= named


# -- Reasons


def test_a_reason_has_a_key_for_stats_and_a_sentence_for_people() -> None:
    for reason in Reason:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", reason.value), "stat keys and log fields are made of it"
        assert reason.value == reason.name.lower().replace("_", "-")
        assert len(reason.help) > 8 and not reason.help.endswith(".")
        assert Reason.of(reason.value) is Reason(reason.value) is reason
        for name in re.findall(PREFIX + r"[A-Z_]+", reason.help):
            assert hasattr(Options(), name.removeprefix(PREFIX).lower())
    assert len({reason.help for reason in Reason}) == len(Reason)
    with pytest.raises(KeyError):
        Reason.of("moonlight")


def test_refused_mentions_are_no_ends() -> None:
    assert {Reason.SEEN, Reason.TRAP, Reason.RECORD_KIND} <= MENTIONS
    assert not MENTIONS & set(CLOSED_STATES.values())


if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / name).write_text(page(), encoding="utf-8")
