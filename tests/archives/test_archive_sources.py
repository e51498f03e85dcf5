"""What ``-a warc=`` may be, and what is said of anything else."""

from __future__ import annotations

import os

import pytest

from spiderling.archives.sources import archives_of
from spiderling.base.errors import BadInput


@pytest.fixture
def directory(tmp_path):
    for name in ("b.warc.gz", "a.warc", "c.warc.zst", "notes.md"):
        (tmp_path / name).touch()
    return tmp_path


def test_files_globs_directories_urls_and_lists(directory):
    a, b, c = (str(directory / name) for name in ("a.warc", "b.warc.gz", "c.warc.zst"))
    assert archives_of(f"{b}, {a},") == [b, a]
    assert archives_of(f"{directory}/*.gz,{directory}") == [b, a, c]
    assert archives_of("https://x.test/1.warc.gz,http://x.test/2") == ["https://x.test/1.warc.gz", "http://x.test/2"]
    (directory / "all.paths").write_text(f"# newest first\n{c}\n\nhttps://x.test/1.warc.gz\n{directory}/a.w*\n")
    assert archives_of(f"{directory}/all.paths") == [c, "https://x.test/1.warc.gz", a]


def test_names_do_not_depend_on_where_one_stands(directory, monkeypatch):
    monkeypatch.chdir(directory)
    assert archives_of("a.warc,./a.warc") == [str(directory / "a.warc")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no archive is given"),
        ("none.warc", "no file is or matches 'none.warc'"),
        ("*.arc", r"no file is or matches '\*.arc'"),
        ("empty", "there is no .warc, .warc.gz, .warc.zst in the directory empty"),
        ("none.txt", "the list none.txt cannot be read"),
        ("idle.txt", "no archive is given"),
        ("/dev/null", "is no file that may be read"),
    ],
)
def test_what_names_no_archive_is_said_with_an_example(directory, monkeypatch, text, message):
    monkeypatch.chdir(directory)
    (directory / "empty").mkdir()
    (directory / "idle.txt").write_text("# none yet\n")
    with pytest.raises(BadInput, match=message):
        archives_of(text)


def test_a_file_without_permission_is_named(directory, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not path.endswith("b.warc.gz"))
    with pytest.raises(BadInput, match=r"b\.warc\.gz is no file that may be read; mend its permissions"):
        archives_of(str(directory))
