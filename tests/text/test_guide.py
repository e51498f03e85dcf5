"""docs/text.md does not lie: its example runs, its picture is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from docs import picture

GUIDE = (Path(__file__).resolve().parents[2] / "docs/text.md").read_text(encoding="utf-8")


def test_the_example(tmp_path, monkeypatch, capsys):
    """A linguist with a folder of HTML files."""
    monkeypatch.chdir(tmp_path)
    Path("pages/more").mkdir(parents=True)
    Path("pages/page.html").write_bytes(picture.body())
    text = "When the cat came home it was already dark and everybody was asleep, only the dog was waiting. "
    Path("pages/more/english.html").write_text(f"<p>{text * 4}</p>")
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE, re.S)
    exec(code, {})
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in printed] == [["english.html", "utf-8", "en"], ["page.html", "cp1250", "cs"]]
    corpus = Path("corpus.txt").read_text(encoding="utf-8")
    assert "cat" not in corpus
    assert len(corpus.split()) > 200
    assert "instalace" in corpus


def test_the_picture_is_up_to_date():
    """`python -m docs.picture` draws it anew."""
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.picture()
    assert "](text.svg)" in GUIDE
