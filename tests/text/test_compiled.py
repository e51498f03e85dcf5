"""The compiled steps (native/): when they run, and that whole pages are equal with them and without."""

from __future__ import annotations

import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spiderling
from benchmarks.equality import PIECES, bundled_pages, differs, mutated
from spiderling.base.errors import BadInput
from spiderling.languages import load
from spiderling.text import TextOptions
from spiderling.text.compiled import AUTO, NO, REQUIRED, choose, digest
from spiderling.text.steps import PYTHON

ROOT = Path(__file__).resolve().parents[2]
SEALED: dict[str, str] = runpy.run_path(str(ROOT / "native/src/spiderling_native/sources.py"))["SOURCES"]
COMPILED = choose().steps
MODELS = load(("cs", "en", "de"))
OPTIONS = TextOptions(("cs", "en"), with_shingles=True)
STEP, BROKEN = 40, 40
"""Every fortieth of the bundled pages is compared, and as many broken ones; benchmarks/equality.py compares all."""

CZECH = "Když se kočka vrátila domů, bylo už tma a všichni spali, jen pes seděl u dveří. "

compiled = pytest.mark.skipif(COMPILED is PYTHON, reason=choose().words)


# -- when they run


@pytest.mark.parametrize("name", SEALED)
def test_the_twin_stands_for_the_sources_as_they_are(name):
    """Where it fails, the twin (native/src) has to learn what has changed; then `python native/seal.py`."""
    assert digest(name) == SEALED[name]


def test_what_is_installed_is_what_the_checkout_has():
    twin = pytest.importorskip("spiderling_native")
    assert twin.SOURCES == SEALED, "say: make native"


@pytest.mark.parametrize("option", [AUTO, REQUIRED])
@pytest.mark.parametrize(
    ("twin", "why"),
    [
        (None, "spiderling-native is not installed"),
        (SimpleNamespace(SOURCES={"text/html/tags.py": "0"}), "was built for another text/html/tags.py"),
        (SimpleNamespace(SOURCES={"text/html/gone.py": "0"}), "was built for another text/html/gone.py"),
    ],
)
def test_python_runs_where_the_twin_is_missing_or_does_not_fit(monkeypatch, option, twin, why):
    monkeypatch.setitem(sys.modules, "spiderling_native", twin)
    if option == AUTO:
        found = choose(option)
        assert found.steps is PYTHON
        assert found.words.startswith("Python: ") and why in found.words
    else:
        with pytest.raises(BadInput, match=why):
            choose(option)


def test_a_twin_that_cannot_be_loaded(monkeypatch, tmp_path):
    (tmp_path / "spiderling_native.py").write_text("raise ImportError('libxml2 (3, 0, 0) has other nodes')")
    monkeypatch.delitem(sys.modules, "spiderling_native", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert "cannot be loaded (libxml2 (3, 0, 0) has other nodes)" in choose().words


def test_it_can_be_refused():
    assert choose(NO) == (PYTHON, "Python (SPIDERLING_COMPILED=no)")


@compiled
def test_it_can_be_required():
    assert choose(REQUIRED).words == choose().words


def test_a_zipped_egg_knows_its_sources(tmp_path):
    egg = tmp_path / "spiderling.egg"
    package = Path(spiderling.__file__).parent
    with zipfile.ZipFile(egg, "w") as archive:
        for path in package.rglob("*.py"):
            archive.write(path, f"spiderling/{path.relative_to(package)}")
    script = f"import sys; sys.path[0] = {str(egg)!r}\nfrom spiderling.text.compiled import choose, digest\n"
    script += "print(__import__('spiderling').__file__, digest('text/html/tags.py'), choose().words, sep='|')"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stderr
    file, found, words = run.stdout.strip().split("|")
    assert file.startswith(str(egg))
    assert (found, words) == (SEALED["text/html/tags.py"], choose().words)


# -- equal pages


@compiled
def test_bundled_pages_are_equal():
    assert [body for body in bundled_pages()[::STEP] if differs(body, COMPILED, MODELS, OPTIONS)] == []


@compiled
def test_broken_pages_are_equal():
    broken = mutated(bundled_pages(), BROKEN)
    assert [body for body in broken if differs(body, COMPILED, MODELS, OPTIONS)] == []


@compiled
@settings(max_examples=250)
@given(st.lists(st.sampled_from([*PIECES, CZECH, "\ud800"]), max_size=60))
def test_any_page_is_equal(pieces):
    html = "".join(pieces)
    for text in (html, html.encode("utf-8", "replace")):
        ours, theirs = PYTHON.parse(text), COMPILED.parse(text)
        assert [column.tolist() for column in ours.tree] == [column.tolist() for column in theirs.tree]
        assert repr(ours._replace(tree=None)) == repr(theirs._replace(tree=None))


HOSTILE = {
    "50,000 levels": b"<div>x" * 50_000,
    "2,001 levels": b"<b>" * 1999 + b"x",
    "200,000 attributes": b"<p " + b" ".join(b"a%d=b" % i for i in range(200_000)) + b">x",
    "attributes behind what looks like a value": b'<p =" ' + b" ".join(b"a%d" % i for i in range(9000)) + b'">x',
    "quotes without an end": b"<p a='" * 10_000,
    "names of all lengths": b"".join(b"<div id=n%d class='%d%s'>x" % (i, i, b"c" * (i % 1200)) for i in range(3000)),
    "more blocks than are read": b"<p>x<a href=y>z</a>" * 30_000,
    "more links than are read": b"<a href=y>" * 6000,
    "a block of 10 MB": b"<p>" + b"word " * 2_000_000,
    "nothing": b"",
}


@compiled
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_are_equal(name):
    ours, theirs = PYTHON.parse(HOSTILE[name]), COMPILED.parse(HOSTILE[name])
    assert [column.tolist() for column in ours.tree] == [column.tolist() for column in theirs.tree]
    assert ours._replace(tree=None) == theirs._replace(tree=None)
