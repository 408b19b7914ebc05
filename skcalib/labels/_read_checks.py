"""Read the answers of people who checked labels, from the file of a page or a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
}
_ANSWERS = ("keep", "accept", "other", "none", "unsure", "")


def read_checks(
    path: str | PathLike[str] | list[str | PathLike[str]],
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Read the answers of people who checked labels, for :meth:`LabelIssueFinder.recalibrate`.

    Parameters
    ----------
    path : str, path-like or list of them
        The ``checks.csv`` of a :class:`~skcalib.report.LabelReviewPage`, or a table with the
        columns ``position`` and ``true_label``, separated by commas, semicolons or tabs. Several
        files are joined, such as those of two people who share the work.

    Returns
    -------
    positions : ndarray of shape (n_answers,)
        Positions of the samples that have an answer.
    labels : ndarray of shape (n_answers,)
        Their true labels, of the type of the original labels; None where no class is right.
        Positions without an answer, or with the answer "unsure", are left out.

    Raises
    ------
    ValueError
        If a column is missing, if there is no answer, if a position occurs twice or is not an
        integer, or if an answer is not one of the page's.

    See Also
    --------
    LabelIssueFinder : Its method `recalibrate` takes the answers.
    skcalib.report.LabelReviewPage : The page on which people answer.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skcalib.labels import read_checks
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "checks.csv")
    ...     _ = file.write_text("position,true_label,answer\\n7,cat,keep\\n9,,none\\n")
    ...     positions, labels = read_checks(file)
    >>> positions.tolist(), labels.tolist()
    ([7, 9], ['cat', None])
    """
    paths = path if isinstance(path, list) else [path]
    found = [answer for one in paths for answer in _answers(Path(one))]
    if not found:
        raise ValueError(f"path must be of a file with answers, got none in {paths[0]}.")
    positions = [position for position, _ in found]
    labels = [label for _, label in found]
    if len(set(positions)) < len(positions):
        twice = next(p for i, p in enumerate(positions) if p in positions[:i])
        raise ValueError(f"Every position must have one answer, got several for {twice}.")
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    if len({type(label) for label in labels}) == 1 and labels[0] is not None:
        array = np.array(labels)
    return np.array(positions, dtype=np.intp), array


def _answers(path: Path) -> list[tuple[int, Any]]:
    """Return (position, label) of every answer in a file."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"path must be of a file in UTF-8, got another encoding in {path}; a spreadsheet "
            'writes it as "CSV UTF-8".'
        ) from error
    header = text.partition("\n")[0]
    separator = max(",;\t", key=header.count)
    lines = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))
    columns = lines[0].keys() if lines else [name.strip() for name in header.split(separator)]
    missing = [name for name in ("position", "true_label") if name not in columns]
    if missing:
        raise ValueError(
            f"path must be of a file with the columns position and true_label, got no "
            f"{' and no '.join(missing)} in {path}."
        )
    given = [(line["true_label"] or "").strip() for line in lines]
    whole = all(label.lstrip("+-").isdecimal() for label in given if label)
    answers = []
    for line in lines:
        position, label = _position(line["position"], path), line["true_label"] or ""
        answer = (line.get("answer") or "").strip().lower()
        if answer not in _ANSWERS:
            raise ValueError(
                f"answer must be keep, accept, other, none or unsure, got {answer!r} in {path}."
            )
        if label.strip() or answer in ("keep", "accept", "other"):
            kind = (line.get("type") or "").strip() or ("int" if whole else "str")
            answers.append((position, _label(label, kind, path)))
        elif answer == "none":
            answers.append((position, None))
    return answers


def _position(text: str | None, path: Path) -> int:
    try:
        return int(text or "")
    except ValueError as error:
        raise ValueError(f"position must be an integer, got {text!r} in {path}.") from error


def _label(text: str, kind: str, path: Path) -> Any:
    try:
        return _TYPES[kind](text)
    except (KeyError, ValueError) as error:
        raise ValueError(
            "true_label must be of the type in the column type, one of "
            f"{', '.join(_TYPES)}; got {text!r} of type {kind!r} in {path}."
        ) from error
