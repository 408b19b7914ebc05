"""Files that are complete or do not exist."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copymode
from typing import BinaryIO
from uuid import uuid4


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that gets its name when it is complete.

    After a full disk, an error or a kill in between, the former file is still there.
    """
    # A symbolic link stays, and the file that it points to is replaced.
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        # A device or a pipe is written to: a file must not take its place.
        with target.open("wb") as file:
            yield file
        return
    # An unpredictable name, and mode "x", which does not follow symbolic links.
    unfinished = target.with_name(f".{uuid4().hex}.tmp")
    try:
        with unfinished.open("xb") as file:
            yield file
            file.flush()
            # On the disk before it gets its name, or a power cut could leave an empty file.
            os.fsync(file.fileno())
        if target.exists():
            copymode(target, unfinished)
        unfinished.replace(target)
    except OSError as error:
        if error.filename in (None, str(unfinished)):
            # The name that the caller has passed; the error of a full disk has none.
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        unfinished.unlink(missing_ok=True)
