"""Files are written whole, and nothing but a file is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spiderling.base.errors import StorageError
from spiderling.base.files import write_whole


def test_a_file_is_replaced_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", "after \ud800")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "after ?"
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_a_pipe_or_directory_stays_what_it_is(tmp_path: Path) -> None:
    """Root could lose a device by ``--html /dev/full``."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    for name in ("pipe", "directory"):
        with pytest.raises(StorageError, match="could not be written: it is there, and is no file"):
            write_whole(tmp_path / name, "text")
    assert (tmp_path / "pipe").is_fifo() and sorted(os.listdir(tmp_path)) == ["directory", "pipe"]
