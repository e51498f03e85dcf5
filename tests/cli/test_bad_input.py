"""Whatever the user gets wrong is told in one sentence: what, where, what to do; nothing is harmed by it.

And how a crawl begins and is taken up again, as its first and last lines tell.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from argparse import Namespace
from contextlib import closing
from pathlib import Path

import pytest
from conftest import CONTACT, ROOT, refusal, scrapy
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.base.urls import canonicalize
from spiderling.commands import dedup, export
from spiderling.jobdir.directory import Jobdir, acquire
from spiderling.languages import load
from spiderling.languages.seeds import read_seeds


@pytest.fixture
def refused(tmp_path):
    """``refusal`` with a directory of its own."""
    return lambda *arguments, jobdir=tmp_path / "job", **other: refusal(jobdir, *arguments, **other)


SEED = "http://127.0.0.1:1/"  # nothing listens there, and it may not be asked
ALLOWED = ("-s", "SPIDERLING_ALLOW_NETWORKS=127.0.0.0/8", "-s", "SPIDERLING_OFFLINE_WAIT_S=0")  # it may be asked then


def begin(jobdir: Path, *arguments: str, code: int = 1) -> str:
    given = [part for setting in (CONTACT, "SPIDERLING_PORTS=1,9,80", f"JOBDIR={jobdir}") for part in ("-s", setting)]
    ended = scrapy("crawl", "spiderling", "-a", "lang=cs", *given, *arguments)
    assert ended.code == code
    assert "Traceback" not in ended.log
    return ended.log


# -- languages and arguments


LATER = pytest.mark.slow


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-a", "lang=cs", "-s", "SPIDERLING_WORKRES=1"), "there is no option SPIDERLING_WORKRES (did you mean"),
        pytest.param(("-a", "lang=xx"), "there is no model for the language 'xx'.", marks=LATER),
        pytest.param(("-a", "lang=cs", "-a", "tlds=češtin"), "-a tlds has 'češtin', which is no top-", marks=LATER),
        pytest.param(("-a", "lang=cs", "-a", "tlds=рф,cz,ck,national+generic"), "no contact is given", marks=LATER),
    ],
)
def test_what_cannot_be_is_refused_before_what_a_crawl_needs_is_imported(tmp_path, arguments, message):
    """That takes twice as long as all else that is done until then."""
    command = [sys.executable, "-X", "importtime", "-m", "scrapy", "crawl", "spiderling", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    imported = set(re.findall(r"import time:.*\| +([\w.]+)", ended.stderr))
    assert ended.returncode == 1 and f"ERROR: The crawl stops: {message}" in ended.stderr
    assert imported >= {"spiderling.spiders.spiderling", "spiderling.cli.command"}
    heavy = {"numpy", "spiderling.frontier", "spiderling.text", "spiderling.crawl.crawl", "duckdb", "aiohttp"}
    assert not imported & (heavy | {"spiderling.engine.download_handler", "spiderling.extensions.lifecycle"})


def test_a_mistake_in_the_seeds_is_told_before_a_missing_contact(refused, tmp_path):
    for seeds in (tmp_path / "none.txt", tmp_path, "/dev/null"):
        assert "seed" in refused("-a", "lang=cs", "-a", f"seeds={seeds}", contact=False)
    assert refused("-a", "lang=cs", "-a", "seeds=http://a.cz/", contact=False).startswith("no contact is given")


# -- options

REFUSED = {
    "": "no language is given: say -a lang=cs",
    "-a lang=cs -a recognise=qq": "there is no model for the language 'qq'",
    "-a langs=cs": "the spider spiderling has no argument 'langs'; did you mean -a lang=?",
    "-a lang=cs -s SPIDERLING_CONTACT=": "no contact is given, and a crawl of public addresses must say whose it is: "
    "set SPIDERLING_CONTACT to an e-mail address or URL (-s SPIDERLING_CONTACT=you@your-domain).",
    "-a lang=cs -a seeds=no/seeds.txt": "the seed file no/seeds.txt cannot be read: No such file or directory. Give a "
    "file with one URL a line,",
    "-a lang=cs -a seeds=/": "the seed file / cannot be read: Is a directory.",
    # options
    "HOST_INTERVALL_S=2": "there is no option SPIDERLING_HOST_INTERVALL_S (did you mean SPIDERLING_HOST_INTERVAL_S?)",
    "CONTACT=you@example.org": "SPIDERLING_CONTACT is 'you@example.org', an example; write your own e-mail address",
    "STRATEGY=bsf": "SPIDERLING_STRATEGY is 'bsf';",
    "MODELS=/no/such/models": "SPIDERLING_MODELS names /no/such/models, which is not a directory",
    # scope
    "-a lang=cs -a tlds=c/z": "-a tlds has 'c/z', which is no top-level domain; write such with commas, as cz,sk, or",
    "-a lang=cs -a tlds=co.uk": "-a tlds has 'co.uk', which is",
    "PREFER_TLDS=c/z": "SPIDERLING_PREFER_TLDS has 'c/z', which is",
    "-a lang=cs -a follow=hosts": "-a follow is 'hosts'; it must be one of all, host, none.",
    "-a lang=cs -a words=-5": "-a words is -5; it must be at least 0.",
    "-a lang=cs -a words=million": "-a words is 'million'; it must be a whole number, such as 20, 500k or 2.5M.",
    "-a lang=cs -a strategy=bsf": "-a strategy is 'bsf'; did you mean bfs?",
    "-a lang=cs -a hosts=none.txt": "SPIDERLING_ONLY_HOSTS (-a hosts=): the list none.txt cannot be read: No such file",
    "BLOCK=none.txt": "SPIDERLING_BLOCK: the list none.txt cannot be read: No such file",
}
"""Arguments of a crawl, or one option -> the beginning of what is said of them."""


@pytest.mark.parametrize("given", REFUSED)
def test_an_argument_or_option_that_cannot_be(refused, tmp_path, given):
    arguments = (
        given.split() if not given or given.startswith("-") else [*["-a", "lang=cs", "-s"], f"SPIDERLING_{given}"]
    )
    assert refused(*arguments).startswith(REFUSED[given])
    assert not (tmp_path / "job/state/frontier.sqlite").exists()


@pytest.fixture
def models(tmp_path):
    """A directory of models with a copy of the Czech one."""
    shutil.copytree(ROOT / "models/cs", tmp_path / "models/cs")
    return tmp_path / "models"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ngrams.zst", b"no zstd"), ("ngrams.zst", None), ("words.txt", None), ("words.txt", b"word without count\n"),
        ("words.txt", b"\xff\xfe"), ("language.yaml", b"- a list\n"), ("language.yaml", b"["),
    ],
)  # fmt: skip
def test_broken_model(refused, models, name, content):
    (models / "cs" / name).unlink()
    if content is not None:
        (models / "cs" / name).write_bytes(content)
    with pytest.raises(BadInput, match=re.escape(f"{name} of the model of cs cannot be read")):
        load(["cs"], str(models))
    if content in (b"no zstd", None, b"- a list\n"):
        said = refused("-a", "lang=cs", "-s", f"SPIDERLING_MODELS={models}")
        assert said.startswith(f"{name} of the model of cs cannot be read") and "train" in said


# -- seeds


BAD_SEEDS = {
    b"": "there is no seed URL in {}; give a file with one URL a line, or URLs, with -a seeds=.",
    b"# nothing yet\n\n": "there is no seed URL in {};",
    b"hello world\nmailto:a@b.cz\njavascript:void(0)\n": "there is no seed URL in {};",
    b"http://a.test/\n\x00\x01": "the seed file {} is not a text file in UTF-8; it must hold one URL a line.",
    b"\x1f\x8b\x08\xff": "the seed file {} is not a text file in UTF-8 (line 1);",
}


@pytest.mark.parametrize("content", BAD_SEEDS)
def test_bad_seed_file_is_refused(refused, tmp_path, content):
    path = tmp_path / "seeds.txt"
    path.write_bytes(content)
    if not content:
        assert refused("-a", "lang=cs", "-a", f"seeds={path}").startswith(BAD_SEEDS[content].format(path))
    with pytest.raises(BadInput, match="^" + re.escape(BAD_SEEDS[content].format(path))):
        read_seeds(str(path))


@given(st.lists(st.text() | st.sampled_from(["a.cz:8080/x", "mailto:a@b.cz", "//a.cz", "http://", "#"])))
def test_any_seed_file_gives_urls_or_bad_input(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("seeds") / "seeds.txt"
    path.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    try:
        urls = [seed.url for seed in read_seeds(str(path))]
    except BadInput:
        urls = []
    assert all(canonicalize(url) for url in urls)
    assert ("http://a.cz:8080/x" in urls) == ("a.cz:8080/x" in lines) or any("\0" in line for line in lines)


def test_bad_seed_lines_are_reported_by_number_and_the_others_used(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text(
        "# mine\nhttp://127.0.0.1:9/a\nnot a url\n\nftp://127.0.0.1/\n127.0.0.1:9/b\n", encoding="utf-8-sig"
    )
    log = begin(tmp_path / "job", "-a", f"seeds={path}", *ALLOWED, code=3)
    warnings = [line.partition("WARNING: ")[2] for line in log.splitlines() if "WARNING: " in line]
    assert warnings[:2] == [
        f"{path}, line 3 is no http(s) URL and is left out: 'not a url'",
        f"{path}, line 5 is no http(s) URL and is left out: 'ftp://127.0.0.1/'",
    ]
    assert "2 discovered = 0 ends + 2 waiting" in log


# -- how a crawl begins


def hosts(jobdir: Path) -> list[str]:
    with closing(sqlite3.connect(jobdir / "state/frontier.sqlite")) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM host ORDER BY name")]


def test_a_crawl_that_has_begun_gets_new_seeds_only_when_told_so(tmp_path: Path) -> None:
    assert "1 seed from " + SEED in begin(tmp_path / "job", "-a", f"seeds={SEED}")
    assert hosts(tmp_path / "job") == ["127.0.0.1:1"]
    log = begin(tmp_path / "job")  # the model's seeds are public sites: they must not creep in
    assert "seeds from" not in log
    assert "is finished: no URL waits." in log
    assert hosts(tmp_path / "job") == ["127.0.0.1:1"]
    begin(tmp_path / "job", "-a", "seeds=http://127.0.0.2:1/")
    assert hosts(tmp_path / "job") == ["127.0.0.1:1", "127.0.0.2:1"]


def test_a_crawl_without_a_page_says_why(tmp_path: Path) -> None:
    log = begin(tmp_path / "job", "-a", f"seeds={SEED}")
    assert "ERROR: No seed may be crawled: its host has no address that may be asked" in log
    assert (
        "No page could be fetched: its host has no address that may be asked: SPIDERLING_CONTACT allows public" in log
    )
    log = begin(tmp_path / "job", "-a", f"seeds={SEED}", *ALLOWED, code=3)  # it is asked, and does not answer
    assert "1 discovered = 0 ends + 1 waiting" in log


def test_a_seed_with_a_port_outside_the_list_is_named(tmp_path: Path) -> None:
    log = begin(tmp_path / "job", "-a", "seeds=http://127.0.0.1:22/")
    assert "Refused http://127.0.0.1:22/: its port is not one of SPIDERLING_PORTS" in log


def test_the_terminal_shows_what_a_person_reads(tmp_path: Path) -> None:
    log = begin(tmp_path / "job", "-a", f"seeds={SEED}")
    assert "Enabled" not in log
    assert "Dumping Scrapy stats" not in log and "Using selector" not in log
    assert (tmp_path / "job/crawl.log").read_text().count("balance") == 1, "the summary is in the log file too"


# -- the crawl's directory


def of_another_program() -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE recipes(name)")
        return connection.serialize()


@pytest.mark.parametrize(
    ("place", "content", "message"),
    [
        ("job", b"mine", "{job} is a file; a crawl needs a directory. Give another with -s JOBDIR=..."),
        ("job/thesis.tex", b"mine", "{job} holds files of something else and no crawl."),
        ("job/state/frontier.sqlite", of_another_program(), "{path} is a database of something else; give another"),
        ("job/state/frontier.sqlite", b"no database" * 99, "{path} cannot be read as the state of a crawl: file is"),
    ],
)  # fmt: skip
def test_jobdir_that_is_something_else_stays_as_it_is(refused, tmp_path, place, content, message):
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    assert refused("-a", "lang=cs").startswith(message.format(job=tmp_path / "job", path=path))
    assert path.read_bytes() == content
    if place == "job/thesis.tex":
        assert [entry.name for entry in path.parent.iterdir()] == ["thesis.tex"], "nothing is written there"


def _obey_permissions() -> None:
    """For root: give up CAP_DAC_OVERRIDE, so that the bits of a mode bind this process too."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


@pytest.mark.parametrize("exists", [True, False])
def test_jobdir_is_not_writable(refused, tmp_path, exists):
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o555)
    path = theirs if exists else theirs / "job"
    message = refused("-a", "lang=cs", jobdir=path, preexec_fn=_obey_permissions)
    assert message.startswith(f"the crawl directory {path} cannot be used: Permission denied.")
    assert "-s JOBDIR=" in message


def test_bad_seeds_leave_no_trace(refused, tmp_path):
    assert "seed file" in refused("-a", "lang=cs", "-a", "seeds=none.txt")
    assert not (tmp_path / "job").exists()


def test_jobdir_in_use(refused, tmp_path):
    path = tmp_path / "job"
    jobdir = Jobdir(path)
    try:
        (path / "spider.state").write_bytes(b"of the other crawl")
        message = refused("-a", "lang=cs")
        holder = f"process {os.getpid()} on {socket.gethostname()}"
        assert message.startswith(f"the crawl directory {path} is in use by {holder}.")
        assert (path / "spider.state").read_bytes() == b"of the other crawl"
    finally:
        jobdir.close()
    assert "seed file" in refused("-a", "lang=cs", "-a", "seeds=none.txt"), "free again"


def test_who_asks_for_the_holder_keeps_no_crawl_from_its_start(tmp_path, monkeypatch):
    (tmp_path / "lock").write_text("process 1 on nowhere\n")
    with (tmp_path / "lock").open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        monkeypatch.setattr("spiderling.jobdir.directory.time.sleep", lambda seconds: asking.close())
        acquire(tmp_path / "lock", tmp_path).close()


def test_lock_ends_with_its_process(tmp_path, refused):
    code = "import sys, time; from pathlib import Path; from spiderling.jobdir.directory import Jobdir; "
    code += "held = Jobdir(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", code, str(tmp_path / "job")]
    holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert f"process {holder.pid} on" in refused("-a", "lang=cs")
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert "seed file" in refused("-a", "lang=cs", "-a", "seeds=none.txt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("crawl", "spiderlings", "-a", "lang=cs"), "there is no spider 'spiderlings'; did you mean spiderling?"),
        (("crawl", "spiderling", "--lang", "cs"), "there is no option --lang; did you mean -a lang=...?"),
        (("crawl", "spiderling", "--overwrite-ouput=x"), "there is no option --overwrite-ouput; did you mean --overw"),
        (("inspect", "job", "--chek"), "there is no option --chek; did you mean --check?"),
        (("export", "job", "--xyzzy"), "there is no option --xyzzy; -h lists all."),
        (("crawl", "spiderling", "-a", "lang=cs", "-s", "CONTACT=me@corpus.internal"),
         "-s CONTACT is no setting of Scrapy; did you mean SPIDERLING_CONTACT?"),
        (("about", "-s", "CONTACT=me@corpus.internal"), "did you mean SPIDERLING_CONTACT?"),
        (("crawl", "spiderling", "cs"), "name one spider: scrapy crawl spiderling -a lang=cs"),
    ],
)  # fmt: skip
def test_a_flag_setting_or_spider_that_there_is_not(arguments, message):
    ended = scrapy(*arguments)
    assert ended.code == 2 and message in ended.log
    assert "Traceback" not in ended.log


def test_without_a_spider_it_is_ours():
    ended = scrapy("crawl")
    assert "no language is given" in ended.log and ended.code != 0


@pytest.mark.parametrize("module", [dedup, export])
def test_too_little_memory_is_said(module, monkeypatch, capsys):
    def fail(*_: object) -> None:
        raise MemoryError

    name = module.__name__.rpartition(".")[2]
    monkeypatch.setattr(module.Command, "work", fail)
    command = module.Command()
    command.run(["crawls/cs"], Namespace(out="cs.jsonl"))
    assert command.exitcode == 1
    assert capsys.readouterr().err == f"scrapy {name}: there is too little memory.\n"
