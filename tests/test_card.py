"""What the project is required to be: these files, this spider, and these packages doing real work."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import DEADLINE_S, DEFAULTS, ROOT, document, scrapy, serving

from webs.web import FixedWeb, html, plain

PACKAGES = {"scrapy", "justext", "chardet", "protego", "yaml"}
PLACES = (
    *("scrapy.cfg", "requirements.txt", "spiderling/", "spiderling/spiders/", "spiderling/pipelines.py"),
    *("models/", "tests/"),
)

# Notes which packages are called directly by a function of ours, import statements apart.
SPY = """
import json, sys
from scrapy.cmdline import execute
from spiderling.text import TextOptions
from spiderling.workers.pool import Task, WorkerConfig, text_process

root, command, page, out = json.loads(sys.argv[1])
reached = set()

def package(path):
    return path.rpartition("/site-packages/")[2].partition("/")[0] if "/site-packages/" in path else ""

def note(frame, event, argument):
    caller = frame if event == "c_call" else frame.f_back
    if event not in ("call", "c_call") or caller is None or not caller.f_code.co_filename.startswith(root):
        return
    if caller.f_code.co_name != "<module>":
        module = getattr(argument, "__module__", None) or ""
        reached.add(module.partition(".")[0] if event == "c_call" else package(frame.f_code.co_filename))

sys.setprofile(note)
work = text_process(WorkerConfig(TextOptions(("cs",), boilerplate="justext-stock"), ("cs", "sk")))
work(Task(page.encode("cp1250"), "http://a.test/"))
# without a label and in a language without a model: chardet has the last word
work(Task("Быстрая лиса прыгнула через ленивую собаку".encode("cp1251"), "http://a.test/"))
try:
    execute(["scrapy", *command])
finally:
    sys.setprofile(None)
    with open(out, "w") as stream:
        json.dump(sorted(reached), stream)
"""


def test_places():
    for place in PLACES:
        path = ROOT / place
        assert path.is_dir() if place.endswith("/") else path.is_file(), place


def test_scrapy_list():
    ended = scrapy("list")
    assert (ended.code, ended.out.split()) == (0, ["archive", "spiderling"])


@pytest.mark.slow
def test_the_packages_do_real_work(tmp_path):
    web = FixedWeb({"a.test": {"/robots.txt": plain("User-agent: *\nDisallow: /x"), "/": html(document("card"))}})
    with serving(web) as server:
        settings = {**DEFAULTS, "JOBDIR": tmp_path / "job", "SPIDERLING_HOSTS": server.hosts_option}
        settings["SPIDERLING_ALLOW_NETWORKS"] = "127.0.0.0/8"
        command = ["crawl", "spiderling", "-a", "lang=cs", "-a", "seeds=http://a.test/"]
        command += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        argument = json.dumps([str(ROOT / "spiderling"), command, document("card"), str(tmp_path / "reached.json")])
        ended = subprocess.run(
            [sys.executable, "-c", SPY, argument], cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S
        )
    reached = set(json.loads((tmp_path / "reached.json").read_text()))
    assert reached >= PACKAGES, ended.stderr[-3000:]
    assert "documents  cs 1" in ended.stderr
