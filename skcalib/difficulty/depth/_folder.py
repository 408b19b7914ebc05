"""The folder of a study: finished repeats on disk, whole or not there."""

from __future__ import annotations

import os
import warnings
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import joblib
import numpy as np
from numpy.typing import NDArray

from ...utils import SkcalibWarning
from ...utils._arrays import to_host
from ._repeats import Repeat


def hash_study(settings: Any, X: Any, y: NDArray, sample_weight: NDArray | None) -> str:
    """Return a hash that equal settings and equal values share, whatever their layout."""
    # By value: integers of any width hash alike, and so do strings.
    classes, encoded = np.unique(y, return_inverse=True)
    labels = (classes.tolist(), encoded.astype(np.int64))
    return joblib.hash((settings, _plain(X), labels, _plain(sample_weight)))


def _plain(values: Any) -> Any:
    """Return values in one memory layout and one integer type; what is not an array as it is."""
    values = to_host(values)
    if hasattr(values, "iloc"):  # a DataFrame
        columns = [values.iloc[:, i].to_numpy() for i in range(values.shape[1])]
        return list(values.columns), [_plain(column) for column in columns]
    if not isinstance(values, np.ndarray):
        return values
    return np.ascontiguousarray(values, dtype=np.int64 if values.dtype.kind in "iu" else None)


def _digest(key: str, repeat: Repeat) -> str:
    digest = sha256(key.encode())
    for array in repeat:
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


class StudyFolder(NamedTuple):
    """Where repeats of one study are kept; `key` tells it from other studies."""

    path: Path
    key: str

    def file(self, number: int) -> Path:
        """Return the file of a repeat."""
        return self.path / f"repeat-{number:04d}.npz"

    def read(self, number: int) -> Repeat | None:
        """Return a stored repeat; None where there is none, or none that can be trusted."""
        file = self.file(number)
        if not file.exists():
            return None
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
                key, digest = str(stored["key"]), str(stored["digest"])
                repeat = Repeat(*(stored[name] for name in Repeat._fields))
            is_whole = digest == _digest(key, repeat)
        except Exception:  # Whatever the bytes are, they are no repeat.
            is_whole = False
        if not is_whole:
            warnings.warn(
                f"{file} is damaged; the repeat runs again.", SkcalibWarning, stacklevel=3
            )
            return None
        # Whole, but of another study: a new run would overwrite its file.
        if key != self.key:
            raise ValueError(
                f"folder must hold this study alone, got {file} of other data, of another "
                "estimator or of another random_state."
            )
        return repeat

    def write(self, number: int, repeat: Repeat) -> None:
        """Store a repeat. A crash at any moment leaves the whole file, or none of that name."""
        # A name that nobody can foresee, and mode "x", which does not follow a symbolic link.
        unfinished = self.path / f".repeat-{number:04d}-{uuid4().hex}.tmp"
        digest = _digest(self.key, repeat)
        try:
            with unfinished.open("xb") as file:
                np.savez_compressed(file, key=self.key, digest=digest, **repeat._asdict())
                file.flush()
                # On the disk before it gets its name: else a power cut may leave an empty file.
                os.fsync(file.fileno())
            unfinished.replace(self.file(number))
        finally:
            unfinished.unlink(missing_ok=True)
