"""Every command line of README.md and docs/ is run as it stands there, or it is said why not.

A command runs in a directory with what the pages assume: a checkout, finished crawls under the names of the page (with
links and archive), and the files that it reads. The web is served on loopback, and no other name resolves.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote, split

import pytest
from conftest import DEADLINE_S, DEFAULTS, ROOT, Ended, document, flags, nameserver, paragraphs, scrapy, serving
from documented_commands import (
    COMMANDS,
    DEMO_ARGUMENTS,
    LINES,
    RULES,
    STAND_INS,
    Elsewhere,
    Run,
    command_lines,
    rule_of,
)
from needs import needs
from test_train import text_of

from spiderling.base.files import zstd
from webs.web import WebResponse, html, plain

XML = {"Content-Type": "application/xml"}
LICENCE = '<a rel="license" href="https://creativecommons.org/licenses/by/4.0/">CC BY</a>'
HOSTS = ("www.example.cz", "example.sk")


def site(name: str, other: str) -> dict[str, WebResponse]:
    urls = [f"http://{name}/{number}" for number in range(3)]
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    pages = {f"/{number}": html(document(f"{name} {number}") + LICENCE) for number in range(3)}
    sitemap = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    return {
        "/": html(document(name, *urls, f"http://{other}/") + LICENCE),
        **pages,
        "/robots.txt": plain(f"User-agent: *\nSitemap: http://{name}/sitemap.xml\n"),
        "/sitemap.xml": WebResponse(200, XML, sitemap.encode()),
    }


@pytest.fixture(scope="module")
def settings():
    """Those that put the web of the pages on loopback."""
    sites = {name: site(name, other) for name, other in zip(HOSTS, reversed(HOSTS), strict=True)}
    with serving(sites) as server, nameserver() as names:
        yield DEFAULTS | {"SPIDERLING_HOSTS": server.hosts_option, "SPIDERLING_NAMESERVERS": names}


@pytest.fixture(scope="module")
def finished(settings, tmp_path_factory) -> Path:
    """A finished crawl with links and archive."""
    directory = tmp_path_factory.mktemp("finished") / "job"
    given = flags({"JOBDIR": directory, "SPIDERLING_LINKS": "on", "SPIDERLING_WARC": "on", **settings})
    ended = scrapy("crawl", "spiderling", "-a", "lang=cs", "-a", "seeds=http://www.example.cz/", *given)
    assert ended.code == 0 and "documents  cs 8" in ended.log, ended.log
    return directory


# -- what the pages assume


def corpus_of(job: Path) -> bytes:
    """The corpus of a crawl, as gzip."""
    (segment,) = job.glob("corpus/*.prevert.zst")
    with segment.open("rb") as stream:
        return gzip.compress(zstd.ZstdFile(stream).read())


def marked_page(number: int) -> str:
    text = paragraphs(number)
    body = f"<ul><li><a href=/>Domů</a><li><a href=/z>Zprávy</a></ul><p>{text[0]}<p>{text[1]}"
    gold = " ".join(text).encode().decode("latin-1")
    return json.dumps({"html": body.encode().decode("latin-1"), "gold": gold, "host": f"h{number}.test", "set": "mine"})


DUMP = (
    "CREATE TABLE `externallinks` (\n  `el_to_domain_index` varbinary(255),\n  `el_to_path` blob\n);\n"
    "INSERT INTO `externallinks` VALUES ('http://cz.example.www.','/');\n-- Dump completed\n"
)
CAPTURE = (
    'cz,example)/ 20260101000000 {"url": "http://www.example.cz/", "mime": "text/html", "status": "200", '
    '"languages": "ces"}\n'
)
FILES = {
    "page.html": lambda job: document("page").encode(),
    **dict.fromkeys(("pages/1.html", "pages/2.html"), lambda job: document("page").encode()),
    **dict.fromkeys(("text.txt", "rm.txt", "rm-web.txt", "cs.txt"), lambda job: text_of("cs").encode()),
    **dict.fromkeys(("wikipedia.txt", "news.txt"), lambda job: text_of("hsb").encode()),
    "warc.paths": lambda job: b"crawl-data/1.warc.gz\n" * 9,
    "warc.paths.gz": lambda job: gzip.compress(b"crawl-data/1.warc.gz\n" * 9),
    "thousand.paths": lambda job: b"https://data.commoncrawl.org/crawl-data/1.warc.gz\n" * 1000,
    "pages.jsonl": lambda job: "\n".join(map(marked_page, range(12))).encode(),
    "cswiki-latest-externallinks.sql.gz": lambda job: DUMP.encode(),
    "cdx-00000.gz": lambda job: gzip.compress(CAPTURE.encode()),
    "seeds.txt": lambda job: b"http://www.example.cz/\n",
    "good.txt": lambda job: b"http://www.example.cz/\n",
    "hosts.txt": lambda job: b"example.sk\n",
    "urls.txt": lambda job: b"http://www.example.cz/1*\n",
    "gone.txt": lambda job: b"http://www.example.cz/1\n",
    "old/cs.prevert.gz": corpus_of,
    "CC-MAIN-1.warc.gz": lambda job: next(job.glob("warc/*.warc.gz")).read_bytes(),
}
"""Name -> content, made of a finished crawl."""
OUTPUT = re.compile(r"(?:^| )(?:-[oO]|--out|--html) (\S+)")


def furnish(place: Path, line: str, job: Path) -> None:
    """Put into *place* what *line* assumes, with copies of the finished crawl *job*."""
    if not line.startswith("spiderling "):  # which needs no checkout
        for path in ROOT.iterdir():
            if path.name != "crawls" and not path.name.startswith("."):
                (place / path.name).symlink_to(path)
    for name in set(re.findall(r"(?<!JOBDIR=)crawls/[\w-]+", line)):
        shutil.copytree(job, place / name)
    outputs = OUTPUT.findall(line)
    for name, content in FILES.items():
        if name not in outputs:
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(content(job))
    if "SPIDERLING_MODELS=my-models" in line or "--force" in line:
        trained = scrapy("train", "rm", "text.txt", "--neighbours", "pl", "--out", "my-models", cwd=place)
        assert trained.code == 0, trained.log


# -- the lines


def typed(line: str, run: Run) -> str:
    """*line* with what a reader puts into it."""
    pattern = "|".join(rf"(?<![\w.]){re.escape(word)}(?![\w.=])" for word in STAND_INS)
    return f"{re.sub(pattern, lambda found: STAND_INS[found[0]], line)} {run.more}".strip()


def execute(line: str, place: Path, settings: dict[str, object]) -> Ended:
    """Run *line* in *place*; commands that fetch get *settings* too."""
    program, *arguments = split(line)
    if program == "scrapy" and ">" in arguments:  # what it prints is looked at; a shell would write it to the file
        at = arguments.index(">")
        del arguments[at : at + 2]
    files = ([str(path.relative_to(place)) for path in sorted(place.glob(word))] for word in arguments)
    arguments = [name for word, found in zip(arguments, files, strict=True) for name in found or [word]]
    if arguments[0] in ("crawl", "seeds", "page"):
        arguments += flags(settings)
    if program == "scrapy":
        return scrapy(*arguments, cwd=place)
    command = ["bash", "-ec", line]
    if program == "spiderling":
        command = [sys.executable, "-m", "spiderling", *arguments]
    if arguments[:2] == ["-m", "simulator"]:
        return scrapy(*arguments[2:], cwd=place, module="simulator")
    if program == "python":
        command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("SCRAPY_SETTINGS_MODULE", None)
    ended = subprocess.run(command, cwd=place, env=environment, capture_output=True, timeout=DEADLINE_S, check=False)
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


FIRST = {tuple(split(line)[:2]): line for line, run in reversed(COMMANDS.items()) if isinstance(run, Run)}
"""Of the lines of one command, `make test` has time for the first."""


def marks_of(line: str, run: Run) -> list[pytest.MarkDecorator]:
    programs = {"zstd", "jq", "sqlite3"} & set(split(line))
    is_slow = run.slow or line not in FIRST.values()
    return [*map(needs, sorted(programs)), *([pytest.mark.slow] if is_slow else [])]


RUNS = [
    pytest.param(line, run, id=line, marks=marks_of(line, run))
    for line, run in COMMANDS.items()
    if isinstance(run, Run)
]


@pytest.mark.parametrize(("line", "run"), RUNS)
def test_a_command_line_works(line, run, settings, finished, tmp_path):
    command = typed(line, run)
    furnish(tmp_path, command, finished)
    ended = execute(command, tmp_path, settings)
    assert ended.code == 0 and not ended.errors and "Traceback" not in ended.log, ended
    assert run.says in ended.out + ended.log, ended
    for name in OUTPUT.findall(command):
        assert list(tmp_path.glob(f"{name.strip('/').partition('.')[0]}*")), name


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("make ")])
def test_make_knows_its_targets(line):
    assert made_by(line)


@pytest.mark.slow
def test_the_demo_takes_arguments(tmp_path):
    """What the pages look for in it is there."""
    jobs = {}
    for line in [line for line, run in COMMANDS.items() if run is DEMO_ARGUMENTS]:
        name = (re.findall("JOBDIR=(\\S+)", line) or ["crawls/demo"])[0]
        jobs[name] = tmp_path / name
        jobs[name].parent.mkdir(exist_ok=True)
        last = made_by(f"{line} JOBDIR={quote(str(jobs[name]))}").splitlines()[-1]
        program, *arguments = split(last)
        assert program == ".venv/bin/python"
        subprocess.run([sys.executable, *arguments], cwd=ROOT, timeout=DEADLINE_S, check=True)
    assert {path.name for path in jobs["crawls/bfs"].iterdir()} >= {"corpus", "links", "warc", "report.html"}
    for line in [line for line in COMMANDS if re.match("scrapy inspect crawls/demo (host|url) ", line)]:
        ended = scrapy(*split(line.replace("crawls/demo", str(jobs["crawls/demo"])))[1:])
        assert ended.code == 0 and ".test" in ended.out, ended


def made_by(line: str) -> str:
    """The commands that make would run; a make that is run by another one says in which directory, too."""
    program, *arguments = split(line)
    ended = subprocess.run(
        [program, "--no-print-directory", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return ended.stdout


def test_every_command_line_is_run_or_it_is_said_why_not():
    unknown = {line: page for line, page in LINES.items() if line not in COMMANDS}
    assert unknown == {}, "enter them in tests/documented_commands.py"


def test_what_no_page_has_any_more_is_not_run():
    assert RULES.keys() - set(map(rule_of, LINES)) == set()


@pytest.mark.parametrize("elsewhere", sorted({run for run in COMMANDS.values() if isinstance(run, Elsewhere)}), ids=str)
def test_the_other_test_is_there(elsewhere):
    assert elsewhere.words in (ROOT / "tests" / elsewhere.test).read_text("utf-8")


def test_command_lines_are_found():
    text = (
        "`scrapy export` writes, `scrapy export JOBDIR -o x` too.\n\n```\nmake a   # why\nprinted\n```\n    rm -r b\n"
        "Then `make c d`.\n"
    )
    assert command_lines(text) == ["scrapy export JOBDIR -o x", "make a", "rm -r b", "make c d"]
