"""The documentation cannot lie: what can be listed is made, and compared here; the budgets of the code hold.

``python -m tests.test_docs`` makes the lists of docs/ and benchmarks/ again."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
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
from scrapy.settings import Settings

from docs import architecture, throttle
from spiderling import signals
from spiderling.base.opt_outs import Signal
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.reasons import MENTIONS, Reason
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
from spiderling.languages import GROUPS, available
from spiderling.pipelines import CorpusPipeline
from spiderling.text.quality import NO_QUALITY
from tests.sources import ROOT, sinners, tree_of

SOURCES = sorted([*ROOT.glob("spiderling/**/*.py"), *ROOT.glob("simulator/**/*.py")])
MAX_FUNCTION_LINES = 50
SMALL_BYTES = 50_000  # text of a model below which it has a star
FIELDS = ("script", "case", "figure", "ours", "peer", "theirs", "machine", "load", "commit", "date")
"""Of each result; a value that was not noted is empty."""
MAX_RESULTS = 60


# -- what is made: the lists between two comments of a page; the words around them are written by hand


COMMANDS = sorted(
    path.stem
    for path in ROOT.glob("spiderling/commands/*.py")
    if path.stem != "__init__" and (path.stem == "crawl" or not find_spec(f"scrapy.commands.{path.stem}"))
)
"""Those of our own."""


UNITS = {"_s": "s", "_bytes": "bytes", "_pages": "pages", "_share": "0 to 1"}  # end of an option's name -> its unit


def options_list() -> list[str]:
    """A list for each group, which is a comment in the dataclass."""
    specs = {spec.name: spec for spec in fields(Options)}
    lines = []
    for group, name in re.findall(r"^    (?:# (.+)|(\w+): .*_option\()", inspect.getsource(Options), re.MULTILINE):
        if group:
            lines += ["", f"## {group[0].upper()}{group[1:]}", ""]
        else:
            spec = specs.pop(name)
            unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
            default = f"`{spec.default}` {unit}".strip() if spec.default != "" else ""
            low, high, choices = (spec.metadata[key] for key in ("low", "high", "choices"))
            bounds = [f"{word} {bound:g}" for word, bound in (("from", low), ("to", high)) if bound is not None]
            said = "; ".join(filter(None, (default, ", ".join(choices) or " ".join(bounds))))
            lines.append(f"- `{PREFIX}{name.upper()}`{said and f' ({said})'}: {spec.metadata['help']}")
    assert not specs, f"in no group: {', '.join(specs)}"
    return lines


def reasons_list() -> list[str]:
    """Ends and mentions, in the order of the enum."""
    lines = []
    for title, wanted in (("Ends", False), ("Refused mentions", True)):
        lines += ["", f"## {title}", ""]
        lines += [f"- `{reason.value}`: {reason.help}" for reason in Reason if (reason in MENTIONS) is wanted]
    return lines


STATUS = (
    Status, Urls, Rates, Budget, Ends, Language, Revisits, Text, Line, HostRow, GroupYield, Refusing, Files, Curves,
    ShardStatus,
)  # fmt: skip
"""The classes of the status, the whole first."""
KINDS = {"str": "string", "int": "integer", "float": "number", "dict": "object", "list": "array", "None": "null"}
"""The names of types in JSON."""


def status_list() -> list[str]:
    """A list for each class that is part of the status."""
    lines = []
    for made in STATUS:
        source = inspect.getsource(made)
        written = source.splitlines()
        texts = {
            entry.target.id: written[entry.lineno - 1].partition("  # ")[2]
            or ast.get_docstring(ast.Module([following], []))
            for entry, following in pairwise([*ast.parse(source).body[0].body, ast.Pass()])
            if isinstance(entry, ast.AnnAssign)
        }
        lines += ["", f"## {made.__name__}", "", inspect.getdoc(made), ""]
        for said, named in groupby([(said_of(spec, texts), f"`{spec.name}`") for spec in fields(made)], itemgetter(0)):
            lines.append(f"- {', '.join(name for _, name in named)} {said}")
    return lines


def said_of(spec, texts: dict[str, str | None]) -> str:
    """Kind and text of a field; neighbours without a text of their own share one line."""
    kind = re.sub(r"\w+", lambda word: KINDS.get(word[0], word[0]), spec.type.replace(" |", " or"))
    text = " ".join((texts[spec.name] or "").replace("``", "`").split())
    return f"({kind}): {text}" if text else f"({kind})"


def groups_list() -> list[str]:
    models = available()
    named = {
        code: [f"{models[one].name} ({one})" for one in members if one in models] for code, members in GROUPS.items()
    }
    return [f"- `{code}`: {', '.join(members)}" for code, members in named.items()]


def languages_list() -> list[str]:
    """Each model with what benchmarks/language.py --save measured."""
    rows = (line.split("\t") for line in (ROOT / "benchmarks/language.tsv").read_text("utf-8").splitlines())
    measured = {code: figures for code, *figures in rows}
    lines = []
    for info in sorted(available().values(), key=lambda info: info.name):
        figures = measured.get(info.code, ["-"] * 4)
        news, web = ("-" if {*pair} == {"-"} else "/".join(pair) for pair in (figures[:2], figures[2:4]))
        star = "*" if int(info.origin["bytes"]) < SMALL_BYTES else ""
        lines.append(f"- `{info.code}` {info.name}{star}: {news}, {web}")
    return lines


def results() -> list[dict[str, object]]:
    return [json.loads(line) for line in (ROOT / "benchmarks/results.jsonl").read_text("utf-8").splitlines()]


def results_list() -> list[str]:
    shown = [name for name in FIELDS if name not in ("machine", "commit")]
    cells = [
        [f"{row[name]:,}" if isinstance(row[name], int) else str(row[name]) for name in shown] for row in results()
    ]
    rows = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in cells]
    return [f"| {' | '.join(shown)} |", "|---" * len(shown) + "|", *(f"| {row} |" for row in rows)]


class Recorder(argparse.ArgumentParser):
    """A parser that notes a command's options; those that each command of Scrapy has are in a group, and left out."""

    def __init__(self) -> None:
        self.noted: list[argparse.Action] = []
        super().__init__(add_help=False)

    def add_argument(self, *flags, **keywords) -> argparse.Action:
        self.noted.append(super().add_argument(*flags, **keywords))
        return self.noted[-1]


def commands_list() -> list[str]:
    """What ``--help`` says of each command."""
    lines = []
    for name in COMMANDS:
        command = importlib.import_module(f"spiderling.commands.{name}").Command()
        command.settings = Settings()
        parser = Recorder()
        command.add_options(parser)
        lines += ["", f"## scrapy {name}", "", "```text", f"scrapy {name} {command.syntax()}".strip(), "```"]
        lines += ["", f"{as_markdown(command.long_desc())}."]
        lines += [""] if parser.noted else []
        for action in parser.noted:
            value = action.metavar or "|".join(action.choices or [action.dest.upper()])
            takes = "" if action.nargs == 0 else f" {value}"
            lines.append(f"- `{', '.join(action.option_strings)}{takes}`: {as_markdown(action.help)}")
    return lines


def as_markdown(text: str) -> str:
    """What argparse shows for a help, where stars and brackets mean nothing."""
    return re.sub(r"[*<\[]", r"\\\g<0>", text.replace("%%", "%"))


LISTS = {
    "commands": commands_list,
    "options": options_list,
    "reasons": reasons_list,
    "status": status_list,
    "groups": groups_list,
    "languages": languages_list,
    "results": results_list,
}
MADE = re.compile(r"(?<=<!-- made: )(\w+)( -->\n).*?(?=\n<!-- end -->)", re.DOTALL)
PAGES = {path: text for path in ROOT.glob("*/*.md") if MADE.search(text := path.read_text("utf-8"))}
"""The pages that have such lists."""


def made_anew(text: str) -> str:
    return MADE.sub(lambda found: found[1] + found[2] + "\n".join(LISTS[found[1]]()), text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lists_of_a_page_are_up_to_date(page):
    assert PAGES[page] == made_anew(PAGES[page]), "run: python -m tests.test_docs"


def test_each_list_stands_in_one_page():
    assert sorted(name for text in PAGES.values() for name, _ in MADE.findall(text)) == sorted(LISTS)


def test_results_are_few_complete_and_repeatable():
    rows = results()
    assert len(rows) <= MAX_RESULTS
    assert [row for row in rows if tuple(row) != FIELDS] == []
    assert {row["script"] for row in rows} <= {path.stem for path in ROOT.glob("benchmarks/*.py")}


# -- what is written by hand


def _texts() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")))


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


REQUIREMENTS = ["requirements.txt", "requirements-test.txt", "docs/requirements.txt", "release/requirements.txt"]


@pytest.mark.parametrize("name", REQUIREMENTS)
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
    for page, text in PAGES.items():
        page.write_text(made_anew(text), encoding="utf-8")
