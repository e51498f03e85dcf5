"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from spiderling.base.errors import StorageError


def write_whole(path: Path, text: str) -> None:
    """Write *text* (UTF-8; what that cannot hold becomes ``?``) to *path*, in the place of what stood there.

    Durable on return; raises StorageError, and what stood there stays.  A link is followed; a device or pipe, which
    would be gone, is refused.
    """
    path = Path(os.path.realpath(path))
    part = path.with_name(path.name + ".part")
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is there, and is no file")
        with part.open("w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise StorageError(f"{path} could not be written: {error.strerror or error}.") from error
