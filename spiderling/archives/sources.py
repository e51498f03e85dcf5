"""Which archives ``-a warc=`` means: files, globs, directories, URLs, and lists of these."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from spiderling.base.errors import BadInput

_SUFFIXES = (".warc", ".warc.gz", ".warc.zst")
_LISTS = (".txt", ".paths")
_EXAMPLE = "give files, globs, directories or URLs with commas, such as -a warc='CC-MAIN-*.warc.gz'"


def is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def archives_of(text: str) -> list[str]:
    """The archives in *text*, each once, in order: absolute paths and URLs.

    Raises BadInput for what names no archive, or one that cannot be read.
    """
    found = dict.fromkeys(source for entry in text.split(",") for source in _expanded(entry.strip()))
    if not found:
        raise BadInput(f"no archive is given; {_EXAMPLE}.")
    return list(found)


def _expanded(entry: str, in_list: bool = False) -> Iterator[str]:
    path = Path(entry).expanduser()
    if not entry:
        return
    if is_url(entry):
        yield entry
    elif path.is_dir():
        inside = sorted(str(file) for file in path.iterdir() if file.name.endswith(_SUFFIXES))
        if not inside:
            raise BadInput(f"-a warc=: there is no {', '.join(_SUFFIXES)} in the directory {entry}; {_EXAMPLE}.")
        yield from map(_readable, inside)
    elif entry.endswith(_LISTS) and not in_list:
        lines = (line.partition("#")[0].strip() for line in _lines(path))
        yield from (source for line in lines for source in _expanded(line, in_list=True))
    elif path.exists():
        yield _readable(str(path))
    else:
        matches = sorted(glob.glob(str(path), recursive=True))
        if not matches:
            raise BadInput(f"-a warc=: no file is or matches {entry!r}; {_EXAMPLE}.")
        yield from map(_readable, matches)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise BadInput(f"-a warc=: the list {path} cannot be read ({reason}); write one archive a line.") from None


def _readable(path: str) -> str:
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise BadInput(f"-a warc=: {path} is no file that may be read; mend its permissions or leave it out.")
    return os.path.abspath(path)
