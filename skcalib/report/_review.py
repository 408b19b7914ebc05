"""A page on which people check labels: one file with the samples and a script."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import PurePath
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..labels import LabelIssueFinder
from ..utils._arrays import check_readable
from ..utils._labels import encode
from ..utils._output import (
    get_row_index,
    open_image,
    take_sample,
    write_atomically,
)
from ._samples import encode_uri, is_picture, show_image

# Bytes of all pictures: a page of 500 samples stays below 20 MB.
MANY_BYTES = 17_000_000
# With fewer samples, pictures do not get larger.
FEWEST_SHARING = 100
LONGEST_EDGE, SHORTEST_EDGE = 640, 96
MANY_LETTERS = 20_000
MANY_COLUMNS = 40
# Largest page that a notebook shows: it would be saved in the notebook.
NOTEBOOK_BYTES = 5_000_000
DRAWN = (
    "This sample was drawn at random, so that your answers estimate how many labels are wrong in "
    "all. The page does not know which label is suggested: seeing it would bias the rate."
)
CHOSEN = (
    "This sample was not drawn at random. Your answer repairs this label, and says nothing about "
    "the others."
)


class LabelReviewPage:
    """A page on which people check labels, by keyboard or on a phone.

    Use :meth:`from_finder` to create one. The page shows one sample at a time, with its label and,
    if the sample was not drawn at random, the suggested label. The user keeps the label, changes
    it, or says that no class is right or that the user is unsure. Up to nine classes, and classes
    that are digits, have a key each; more are searched for. Progress is kept in the browser.
    The answers are downloaded as ``checks.csv``, for :func:`skcalib.labels.read_checks`.

    The page is one file that loads nothing, sends nothing and needs no server.

    Parameters
    ----------
    data : dict
        Contents of the page, as in `data_`.

    Attributes
    ----------
    data_ : dict
        Contents of the page: title, classes, and for every sample its position, label and picture,
        text or row.
    positions_ : ndarray of shape (n_shown,)
        Positions of the samples, in the order of the page.

    See Also
    --------
    skcalib.labels.read_checks : Reads the answers.
    skcalib.labels.LabelIssueFinder : Draws the samples, and takes the answers.

    Notes
    -----
    People tend to agree with a suggestion, which would bias the rate of wrong labels toward the
    finder's estimate. So the file has no suggestions for samples that
    ``finder.draw_samples_to_check`` has drawn.

    Pictures need ``pillow``, which the extra ``[report]`` brings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skcalib.datasets import flip_labels
    >>> from skcalib.labels import LabelIssueFinder
    >>> from skcalib.report import LabelReviewPage
    >>> digits = load_digits()
    >>> given, _ = flip_labels(digits.target, fraction=0.1, random_state=0)
    >>> finder = LabelIssueFinder().fit(digits.data, given)
    >>> rows = finder.draw_samples_to_check(50, random_state=0)
    >>> page = LabelReviewPage.from_finder(finder, digits.data, images=digits.images)
    >>> page
    LabelReviewPage: Check 50 labels
    >>> page.save("review.html")  # doctest: +SKIP
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data_ = data

    @property
    def positions_(self) -> NDArray[np.intp]:
        """Positions of the samples, in the order of the page."""
        return np.array([sample["position"] for sample in self.data_["samples"]], dtype=np.intp)

    @classmethod
    def from_finder(
        cls,
        finder: LabelIssueFinder,
        X: Any = None,
        *,
        images: Any = None,
        texts: Any = None,
        positions: ArrayLike | None = None,
        title: str | None = None,
    ) -> Self:
        """Create a page for samples of a finder.

        Parameters
        ----------
        finder : LabelIssueFinder
            Fitted finder, which knows the samples that were drawn to be checked.
        X : array-like of n_samples rows, default=None
            The samples, in the order of `fit`: rows of a table, texts or images. Shown unless
            `images` or `texts` are given; an index names the samples. It need not be the X of
            `fit`: show what a person can assess.
        images : sequence of n_samples images, default=None
            Arrays of shape (height, width) or (height, width, channels), PIL images, or paths of
            image files. They are scaled down so that 500 of them take less than 20 MB.
        texts : sequence of n_samples str, default=None
            Texts, also together with images; cut after 20 000 characters.
        positions : array-like of int of shape (n_shown,), default=None
            Positions of the samples, in the order of the page. None uses the latest draw of
            ``finder.draw_samples_to_check``; if there is none, the probably wrong labels, most
            suspicious first.
        title : str, default=None
            Heading of the page. None means the number of labels to check.

        Returns
        -------
        page : LabelReviewPage
            The page.

        Raises
        ------
        ValueError
            If there is nothing to show, if `X`, `images` or `texts` has another number of samples
            than the finder, or if `X` holds the finder's own input probabilities.
        """
        check_is_fitted(finder)
        check_readable(finder.issues_, name="finder.issues_")
        n_samples = len(finder.issues_)
        _check_containers({"X": X, "images": images, "texts": texts}, finder, n_samples)
        rows = _choose_rows(finder, positions, n_samples)
        others = [
            of for of in (texts, X if images is None and texts is None else None) if of is not None
        ]
        names = _name_samples(X, images, texts)
        drawn = np.isin(rows, np.concatenate([rows[:0], *finder.draws_]))
        given, suggested = (
            encode(finder.issues_[name][rows], finder.classes_).tolist()
            for name in ("label", "suggested_label")
        )
        samples = []
        for i, row in enumerate(rows.tolist()):
            sample = {"position": row, "given": given[i], "drawn": bool(drawn[i])}
            if not drawn[i]:
                sample["suggested"] = suggested[i]
            if names is not None:
                sample["name"] = str(names[row])
            if images is not None:
                sample |= _show_picture(take_sample(images, row), row, len(rows))
            for of in others:
                sample |= _make_contents(take_sample(of, row), row, len(rows))
            samples.append(sample)
        what = "1 label" if len(rows) == 1 else f"{len(rows)} labels"
        return cls(
            {
                "title": f"Check {what}" if title is None else str(title),
                "classes": [_write_typed(label) for label in finder.classes_.tolist()],
                "samples": samples,
                "drawn": DRAWN,
                "chosen": CHOSEN,
            }
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to an HTML file.

        Parameters
        ----------
        path : str or path-like
            File to write, such as ``review.html``.
        """
        with write_atomically(path) as file:
            file.write(self._write_html().encode())

    def _write_html(self) -> str:
        folder = files(__package__).joinpath("templates")
        page, style, script = (
            folder.joinpath(f"review.{kind}").read_text(encoding="utf-8")
            for kind in ("html", "css", "js")
        )
        data = json.dumps(self.data_)
        key = f"skcalib-checks-{sha256(data.encode()).hexdigest()[:16]}"
        parts = {
            "title": escape(self.data_["title"].encode("utf-8", "replace").decode()),
            "style": style,
            "script": script,
            "hash": b64encode(sha256(script.encode()).digest()).decode(),
            # An unescaped "<" could end the script element or begin a comment.
            "data": json.dumps(self.data_ | {"key": key}).replace("<", "\\u003c"),
        }
        return re.sub(r"\[(title|style|script|hash|data)\]", lambda found: parts[found[1]], page)

    def _repr_html_(self) -> str:
        html = self._write_html()
        if len(html) > NOTEBOOK_BYTES:
            size = f"{len(html) / 1e6:.0f} MB"
            return f"<p>A page of {size}: write it to a file with <code>save</code>.</p>"
        title = escape(self.data_["title"])
        style = "width: 100%; height: 46rem; border: 0"
        return f'<iframe title="{title}" style="{style}" srcdoc="{escape(html)}"></iframe>'

    def __repr__(self) -> str:
        return f"LabelReviewPage: {self.data_['title']}"


def _check_containers(
    containers: dict[str, Any], finder: LabelIssueFinder, n_samples: int
) -> None:
    given = {name: of for name, of in containers.items() if of is not None}
    if not given:
        raise ValueError("X, images or texts must be given, got nothing to show.")
    for name, of in given.items():
        length = of.shape[0] if hasattr(of, "shape") else len(of)
        if length != n_samples:
            raise ValueError(
                f"{name} must have one entry for each of the {n_samples} samples that the finder "
                f"was fitted to, got {length}."
            )
    if list(given) == ["X"] and isinstance(finder.estimator, str):
        values = np.asarray(given["X"])
        if values.shape == (n_samples, len(finder.classes_)) and values.dtype.kind == "f":
            raise ValueError(
                "X must be what a person can assess, got the class probabilities that the finder "
                "was fitted to, which would bias the answers; pass images= or texts=, or a table "
                "as X."
            )


def _choose_rows(finder: LabelIssueFinder, positions: Any, n_samples: int) -> NDArray[np.intp]:
    """Return positions of the samples to show."""
    if positions is None:
        if finder.draws_:
            return finder.draws_[-1]
        issues = finder.issues_
        order = np.lexsort([-issues["margin"], issues["p_label_correct"]])
        positions = order[issues["is_issue"][order]]
        if not len(positions):
            raise ValueError(
                "positions must be given, got None, and there is nothing to check: the finder has "
                "found no issues and drawn no samples. Draw some with "
                "finder.draw_samples_to_check(100)."
            )
    rows = np.asarray(positions)
    if rows.shape == (0,):
        raise ValueError("positions must name one or more samples, got none: nothing to check.")
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(
            "positions must be integers, got an array of shape "
            f"{rows.shape} and dtype {rows.dtype}."
        )
    if len(np.unique(rows)) < len(rows) or rows.min() < 0 or rows.max() >= n_samples:
        raise ValueError(
            f"positions must be distinct and from 0 to {n_samples - 1}, got {len(rows)} from "
            f"{rows.min()} to {rows.max()}, {len(np.unique(rows))} of them distinct."
        )
    return rows.astype(np.intp)


def _name_samples(*containers: Any) -> Any:
    """Return names of the samples: an index other than 0, 1, ..., or names of files."""
    index = get_row_index(*containers)
    if index is not None and not np.array_equal(index, np.arange(len(index))):
        return index
    for of in containers:
        if isinstance(of, list | tuple) and all(isinstance(entry, PurePath) for entry in of):
            return [entry.name for entry in of]
    return None


def _make_contents(sample: Any, position: int, n_shown: int) -> dict[str, Any]:
    """Return the contents of a sample: a text, a picture or the cells of a row."""
    if isinstance(sample, str):
        cut = f"The first {MANY_LETTERS} of {len(sample)} letters."
        more = {"more": cut} if len(sample) > MANY_LETTERS else {}
        return {"text": sample[:MANY_LETTERS], **more}
    if hasattr(sample, "tocsr"):  # a sparse row
        row = sample.tocsr()
        return _make_row([(f"column {i}", x) for i, x in zip(row.indices, row.data)])
    if is_picture(sample):
        return _show_picture(sample, position, n_shown)
    if np.ndim(sample) == 0:
        return {"text": str(sample)}
    index = get_row_index(sample)
    names = [f"column {i}" for i in range(len(sample))] if index is None else index
    return _make_row(list(zip(names, sample)))


def _make_row(cells: list[tuple[Any, Any]]) -> dict[str, Any]:
    shown = [
        (str(name), f"{x:.6g}" if isinstance(x, float | np.floating) else str(x))
        for name, x in cells[:MANY_COLUMNS]
    ]
    rest = len(cells) - len(shown)
    return {"row": shown, **({"more": f"and {rest} more columns"} if rest else {})}


def _show_picture(image: Any, position: int, n_shown: int) -> dict[str, str]:
    """Return a picture, or a text that says why there is none."""
    return show_image(image, position, lambda of: _encode_picture(of, n_shown))


def _encode_picture(image: Any, n_shown: int) -> str:
    """Return a picture as a data URI, scaled down to its part of the page's size."""
    if isinstance(image, str | PurePath):  # once, not at every size
        image = open_image(image, extra="report")
    budget = MANY_BYTES // max(n_shown, FEWEST_SHARING)
    edge = LONGEST_EDGE
    uri = encode_uri(image, edge)
    while len(uri) > budget and edge > SHORTEST_EDGE:
        # Bytes are roughly proportional to the area; stay a little below.
        edge = max(int(0.95 * edge * (budget / len(uri)) ** 0.5), SHORTEST_EDGE)
        uri = encode_uri(image, edge)
    return uri


def _write_typed(label: Any) -> tuple[str, str]:
    """Return a label as text, and its type for the column `type` of the answers."""
    kind = {bool: "bool", int: "int", float: "float"}.get(type(label), "str")
    return str(label), kind
