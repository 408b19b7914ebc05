"""Votes and checks of people, in the forms that users have."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from ..utils._arrays import (
    as_array,
    check_mask,
    check_weights,
    describe_form,
    is_missing,
    warn_if_normalized,
)
from ..utils._labels import as_labels, encode_groups, find_positions, merge_classes, shorten
from ..utils._output import get_row_index, warn
from ._vote_model import Votes

# Votes in the forms that users have: a matrix with gaps, a table, or a long list.


class LongVotes:
    """Votes of annotators on samples, stored without the cells where nobody voted.

    :func:`votes_from_long` returns it, and `fit` takes it as ``votes=``. It has one row for each
    sample, so cross-validation can slice it with the rows of X.

    Attributes
    ----------
    index : ndarray of shape (n_samples,)
        Names of the samples.
    annotators : ndarray of shape (n_annotators,)
        Names of the annotators, sorted.
    shape : tuple of two ints
        Number of samples and of annotators.
    """

    def __init__(
        self,
        index: NDArray[Any],
        annotators: NDArray[Any],
        sample: NDArray[np.intp],
        annotator: NDArray[np.intp],
        label: NDArray[Any],
        given: NDArray[np.bool_],
    ) -> None:
        self.index, self.annotators = index, annotators
        self._sample, self._annotator, self._label = sample, annotator, label
        self._given = given  # which entries of the list are votes

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of annotators."""
        return len(self.index), len(self.annotators)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> LongVotes:
        """Return the votes on some samples, in the order of `rows`."""
        if isinstance(rows, tuple):  # (rows, ...) as for an array
            rows = rows[0]
        rows = np.atleast_1d(np.arange(len(self))[rows])
        order = np.argsort(self._sample, kind="stable")
        starts = np.searchsorted(self._sample, np.arange(len(self) + 1), sorter=order)
        count = np.diff(starts)[rows]
        ends = np.cumsum(count)
        # The votes on row i are starts[i] ... starts[i] + count[i] - 1 in `order`.
        within = np.arange(count.sum()) + np.repeat(starts[rows] - ends + count, count)
        kept, sample = order[within], np.repeat(np.arange(len(rows)), count)
        annotator, label = self._annotator[kept], self._label[kept]
        given = np.ones(len(kept), dtype=bool)
        return LongVotes(self.index[rows], self.annotators, sample, annotator, label, given)

    def __repr__(self) -> str:
        n_samples, n_annotators = self.shape
        votes = f"{len(self._label)} votes of {n_annotators} annotators"
        return f"LongVotes({votes} on {n_samples} samples)"


def votes_from_long(
    samples: ArrayLike, annotators: ArrayLike, labels: ArrayLike, *, index: Any = None
) -> LongVotes:
    """Turn a long list of votes (who gave which label to which sample) into ``votes=``.

    Use it where labels come as one line per vote, as crowdsourcing platforms export them: the
    result takes memory for the votes only, not for every pair of sample and annotator.

    Parameters
    ----------
    samples : array-like of shape (n_votes,)
        The sample of each vote: its name, or its position.
    annotators : array-like of shape (n_votes,)
        Who voted: a name or number.
    labels : array-like of shape (n_votes,)
        The label that he or she gave, an integer or a string. Missing values (None, NaN) are no
        votes.
    index : array-like of shape (n_samples,), default=None
        Names of all samples in the order of the rows of X, such as ``X.index`` or
        ``range(len(X))``, including samples without a vote. None means the samples that occur in
        `samples`, sorted.

    Returns
    -------
    votes : LongVotes of shape (n_samples, n_annotators)
        For ``votes=`` of :meth:`LabelIssueFinder.fit`, one row for each sample. It has attributes
        ``index`` (names of the samples), ``annotators`` (names) and ``shape``, and can be sliced
        by rows.

    Raises
    ------
    ValueError
        If lengths differ, if an annotator votes twice on one sample, or if a sample is not in
        `index`.

    See Also
    --------
    LabelIssueFinder : Takes the votes.

    Examples
    --------
    >>> from skcalib.labels import votes_from_long
    >>> samples = ["a", "a", "b", "c", "c"]
    >>> annotators = ["Ann", "Bob", "Ann", "Bob", "Cy"]
    >>> votes_from_long(samples, annotators, ["cat", "dog", "dog", "cat", "cat"])
    LongVotes(5 votes of 3 annotators on 3 samples)

    With ``index``, the rows are those of X, here with a sample "d" that has no vote:

    >>> votes = votes_from_long(
    ...     samples, annotators, ["cat", "dog", "dog", "cat", "cat"], index=["a", "b", "c", "d"]
    ... )
    >>> votes.shape
    (4, 3)
    """
    entries = _make_entries(labels, "labels")
    given = ~is_missing(entries)
    if not given.any():
        raise ValueError("labels must hold at least one vote, got missing values alone.")
    label = _as_votes(entries[given], "labels")
    _, names, codes = _encode_names(annotators, "annotators", len(entries))
    occurring, sample_names, sample = _encode_names(samples, "samples", len(entries))
    if index is not None:
        row_of = {name: row for row, name in enumerate(np.asarray(index, dtype=object).tolist())}
        if len(row_of) < len(index):
            raise ValueError("index must name every sample once, got a name twice.")
        unknown = [name for name in occurring if name not in row_of]
        if unknown:
            raise ValueError(f"samples must be in index, got {unknown[0]!r}, which is not.")
        sample = np.array([row_of[name] for name in occurring])[sample]
        sample_names = np.asarray(index)
    sample, codes = sample[given], codes[given]
    pairs = sample * len(names) + codes
    distinct, count = np.unique(pairs, return_counts=True)
    if len(distinct) < len(pairs):
        twice = int(distinct[np.argmax(count > 1)])
        raise ValueError(
            "annotators must vote once on a sample, got "
            f"{names.tolist()[twice % len(names)]!r} on sample "
            f"{sample_names.tolist()[twice // len(names)]!r} {int(count.max())} times; keep the "
            "last vote, or the most frequent one."
        )
    return LongVotes(sample_names, names, sample, codes, label, given)


def votes_from_counts(counts: Any, labels: ArrayLike | None = None) -> LongVotes:
    """Turn numbers of votes for every class into ``votes=``.

    Use it where a data set has only how many people chose each class, and not who: annotators are
    then columns without a meaning, between which the votes of a sample are shuffled.

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_classes)
        How many people chose the class (column) for the sample (row): whole numbers from 0.
    labels : array-like of shape (n_classes,), default=None
        The label of every column. None means the column names of a DataFrame, or 0, 1, 2, ...

    Returns
    -------
    votes : LongVotes of shape (n_samples, n_annotators)
        For ``votes=`` of :meth:`LabelIssueFinder.fit`; n_annotators is the largest number of votes
        on a sample.

    Raises
    ------
    ValueError
        If an entry is negative, missing or no whole number, if there is no vote, or if labels
        repeat or differ in number from the columns.

    See Also
    --------
    votes_from_long : Votes with the names of those who gave them.
    LabelIssueFinder : Takes the votes.

    Examples
    --------
    >>> from skcalib.labels import votes_from_counts
    >>> votes_from_counts([[3, 0], [1, 2]], labels=["cat", "dog"])
    LongVotes(6 votes of 3 annotators on 2 samples)
    """
    names = getattr(counts, "columns", None) if labels is None else labels
    index = get_row_index(counts)
    array = as_array(counts, name="counts")
    if array.ndim != 2 or array.dtype.kind not in "iuf":
        raise ValueError(
            "counts must be numbers of shape (n_samples, n_classes), got "
            f"{describe_form(array, counts)} of dtype {array.dtype}."
        )
    if not (np.isfinite(array) & (array >= 0) & (array == np.floor(array))).all():
        raise ValueError(
            "counts must be whole numbers from 0, got others; fractions of people times their "
            "number are counts."
        )
    number = array.astype(np.intp)
    if not number.any():
        raise ValueError("counts must hold at least one vote, got zeros alone.")
    classes = as_labels(np.arange(array.shape[1]) if names is None else names, name="labels")
    if len(classes) != array.shape[1] or len(np.unique(classes)) < len(classes):
        raise ValueError(
            f"labels must be distinct, one for each of the {array.shape[1]} columns of counts, "
            f"got {len(np.unique(classes))} distinct of {len(classes)}."
        )
    row, column = np.indices(number.shape)
    sample, label = (np.repeat(which.ravel(), number.ravel()) for which in (row, column))
    # In random order, so that no annotator prefers the first classes.
    order = np.lexsort([np.random.default_rng(0).random(len(sample)), sample])
    sample, label = sample[order], label[order]
    annotator = np.arange(len(sample)) - np.searchsorted(sample, sample)
    return LongVotes(
        np.arange(len(array)) if index is None else np.asarray(index),
        np.arange(annotator.max() + 1),
        sample,
        annotator,
        classes[label],
        np.ones(len(sample), dtype=bool),
    )


def check_no_counts(columns: list[NDArray[Any]]) -> None:
    """Raise if a matrix of votes holds numbers of votes for every class.

    Numbers of votes on a sample add up to nearly the same number in all rows, and most of them
    are for one class. Labels do not: where people agree, the sum of a row depends on the class.
    """
    if len(columns) < 2 or any(column.dtype.kind not in "iuf" for column in columns):
        return
    table = np.stack(columns, axis=1).astype(np.float64)
    if len(table) < 10 or not (np.isfinite(table) & (table >= 0)).all():
        return
    unanimous = (table == table[:, :1]).all(axis=1)
    if unanimous.mean() > 0.5:
        return
    total = table.sum(axis=1)
    varies, differs = total.std(), table.std()
    is_constant = (total == np.median(total)).mean() > 0.9 and differs > 0.0
    is_about = len(columns) > 2 and varies < 0.25 * total.mean() and differs > table.mean()
    if (is_constant and (total.max() > 1 or len(columns) > 2)) or (is_about and table.max() > 1):
        raise ValueError(
            "votes must hold labels, a column for each annotator, got numbers of votes for every "
            f"class (rows sum to about {np.median(total):g}); pass votes_from_counts(votes), or "
            "votes as strings if they are labels."
        )


def _encode_names(
    values: Any, name: str, n_votes: int
) -> tuple[list[Any], NDArray[Any], NDArray[np.intp]]:
    """Return the distinct names, as a list and as an array, and the position of every entry's."""
    if len(values) != n_votes:
        raise ValueError(
            f"{name} must have one entry for each of the {n_votes} labels, got {len(values)}."
        )
    names, codes = encode_groups(values, n_votes, name=name)
    if names.dtype == object and is_missing(names).any():
        raise ValueError(f"{name} must have a name for every vote, got a missing value.")
    return names.tolist(), names, codes


def _make_entries(values: Any, name: str) -> NDArray[Any]:
    """Return a 1-D array of objects; numpy itself would turn a NaN among texts into 'nan'."""
    if hasattr(values, "dtype"):
        values = as_array(values, name=name)
    plain = [x.item() if isinstance(x, np.generic) else x for x in values]
    entries = np.empty(len(plain), dtype=object)
    entries[:] = plain
    return entries


def _as_votes(entries: NDArray[Any], name: str) -> NDArray[Any]:
    """Return labels as integers, strings or booleans; a blank text is an error."""
    if entries.dtype.kind == "b" or all(isinstance(entry, bool) for entry in entries.tolist()):
        return entries.astype(bool)
    if any(isinstance(entry, str) and not entry.strip() for entry in entries.tolist()):
        raise ValueError(f"{name} must be None or NaN where nobody voted, got a blank text.")
    return as_labels(entries, name=name)


class Read(NamedTuple):
    """Votes as the model takes them, and what it needs to return values in the user's form."""

    votes: Votes
    classes: NDArray[Any]
    annotators: NDArray[Any]  # names, or positions of the columns
    entry: NDArray[np.intp] | None  # of every vote in a long list; None for a matrix
    n_entries: int

    def in_form(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return one value per vote in the form of the user's votes; NaN where nobody voted."""
        if self.entry is not None:
            result = np.full(self.n_entries, np.nan)
            result[self.entry] = values
            return result
        result = np.full((self.votes.n_samples, self.votes.n_annotators), np.nan)
        result[self.votes.sample, self.votes.annotator] = values
        return result


def read_votes(votes: Any, labels: NDArray[Any] | None, *samples: Any) -> Read:
    """Read votes of any form; their classes are those of votes and labels together.

    `samples` are the user's X and y: a DataFrame of votes must have the same index.
    """
    entry, n_entries = None, 0
    if isinstance(votes, LongVotes):
        order = np.argsort(votes._sample, kind="stable")
        entry, n_entries = np.flatnonzero(votes._given)[order], len(votes._given)
        sample, annotator, label = (
            votes._sample[order],
            votes._annotator[order],
            votes._label[order],
        )
        names, shape = votes.annotators, votes.shape
    else:
        _check_index(votes, samples)
        sample, annotator, label, names, shape = _read_matrix(votes)
    given = None if labels is None else np.unique(labels)
    if given is not None and given.dtype.kind != "b" and label.dtype.kind == "b":
        label = label.astype(np.int64)  # as in y
    classes = np.unique(label)
    if given is not None:
        classes = merge_classes(given, classes, name="votes", before="y")
    if given is None or -1 not in given.tolist():
        _warn_of_marker(classes)
    codes = find_positions(label, classes)
    read = Votes(sample, annotator, codes, shape[0], shape[1], len(classes))
    return Read(read, classes, names, entry, n_entries)


def _warn_of_marker(classes: NDArray[Any]) -> None:
    """Warn if classes are -1, 0, 1, 2, ...; -1, 0, 1 may well mean negative, neutral, positive."""
    n = len(classes)
    if classes.dtype.kind in "iuf" and n > 3 and np.array_equal(classes, np.arange(-1, n - 1)):
        warn(
            f"votes has labels -1 and 0 to {n - 2}, and -1 counts as a class. If it means 'no "
            "vote', replace it by NaN: np.where(votes == -1, np.nan, votes)."
        )


def _check_index(votes: Any, samples: tuple[Any, ...]) -> None:
    index, other = get_row_index(votes), get_row_index(*samples)
    if index is None or other is None or len(index) != len(other):
        return
    if not index.equals(other):
        raise ValueError(
            "votes must have the index of X and y in the same order, got another one; pass "
            "votes.loc[X.index] to reorder the rows, or votes.to_numpy() to keep their order."
        )


def _read_matrix(votes: Any) -> tuple[NDArray, NDArray, NDArray, NDArray, tuple[int, int]]:
    """Return sample, annotator and label of every vote, names of the annotators, and the shape."""
    if issparse(votes):
        raise TypeError(
            "votes must be an array with NaN where nobody voted, or votes_from_long(samples, "
            f"annotators, labels), got {type(votes).__name__}, whose zeros are ambiguous."
        )
    if hasattr(votes, "columns") and hasattr(votes, "iloc"):
        names = np.asarray(votes.columns)
        if len(set(names.tolist())) < len(names):
            raise ValueError(
                "votes must have one column for each annotator, got two columns of one name."
            )
        columns = [votes.iloc[:, k].to_numpy() for k in range(votes.shape[1])]
        shape = votes.shape
    else:
        form = votes
        if isinstance(votes, np.ma.MaskedArray):
            missing, votes = np.ma.getmaskarray(votes), np.array(votes.data, dtype=object)
            votes[missing] = None
        if not hasattr(votes, "dtype"):
            votes = np.array(votes, dtype=object)
        array = as_array(votes, name="votes")
        if array.ndim != 2:
            raise ValueError(
                "votes must have shape (n_samples, n_annotators), NaN where nobody voted, got "
                f"{describe_form(array, form)}; votes_from_long(samples, annotators, labels) "
                "reads a long list."
            )
        columns, shape = list(array.T), array.shape
        names = np.arange(shape[1])
    check_no_counts(columns)
    found = [_read_column(column, name) for column, name in zip(columns, names.tolist())]
    if not sum(len(rows) for rows, _ in found):
        raise ValueError("votes must hold at least one vote, got missing values alone.")
    kinds = {label.dtype.kind == "U" for rows, label in found if len(rows)}
    if len(kinds) > 1:
        raise TypeError("votes must hold labels of one type, integers or strings, got both.")
    sample = np.concatenate([rows for rows, _ in found])
    annotator = np.repeat(np.arange(shape[1]), [len(rows) for rows, _ in found])
    label = np.concatenate([label for rows, label in found if len(rows)])
    order = np.argsort(sample, kind="stable")
    return sample[order], annotator[order], label[order], names, shape


def _read_column(column: NDArray[Any], name: Any) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the rows where an annotator voted, and the labels there."""
    if column.dtype.kind in "biuU":
        given = np.ones(len(column), dtype=bool)
    elif column.dtype.kind == "f":
        given = ~np.isnan(column)
    else:
        column = _make_entries(column, "votes")
        given = ~is_missing(column)
    rows = np.flatnonzero(given)
    title = f"votes of annotator {name!r}"
    if not len(rows):
        return rows, np.array([], dtype=np.int64)
    label = column[given]
    read = _as_votes if label.dtype.kind in "bOU" else as_labels
    return rows, read(label, name=title)


# Read the answers of people who checked labels, from the file of a page or a spreadsheet.

_TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
}
# The page writes one quotation mark before text that a spreadsheet would take for a formula.
_NEUTRAL = re.compile(r"'+[=+\-@]")
_ANSWERS = ("keep", "accept", "other", "none", "unsure", "")


def read_checks(
    path: str | PathLike[str] | list[str | PathLike[str]],
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Read the answers of people who checked labels.

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
    LabelIssueFinder.update_with_checks : Takes the answers.
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
    found = [answer for one in paths for answer in _read_answers(Path(one))]
    if not found:
        raise ValueError(f"path must be of a file with answers, got none in {paths[0]}.")
    positions = [position for position, _ in found]
    labels = [label for _, label in found]
    if len(set(positions)) < len(positions):
        twice = next(p for p, n in Counter(positions).items() if n > 1)
        raise ValueError(f"Every position must have one answer, got several for {twice}.")
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    if len({type(label) for label in labels}) == 1 and labels[0] is not None:
        array = np.array(labels)
    return np.array(positions, dtype=np.intp), array


def _read_answers(path: Path) -> list[tuple[int, Any]]:
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
    try:
        lines = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:  # too long a cell
        raise ValueError(f"path must be of a table of answers, got {error} in {path}.") from None
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
        position, label = _read_position(line["position"], path), line["true_label"] or ""
        if _NEUTRAL.match(label):
            label = label[1:]
        answer = (line.get("answer") or "").strip().lower()
        if answer not in _ANSWERS:
            raise ValueError(
                "answer must be keep, accept, other, none or unsure, got "
                f"{shorten(answer)} in {path}."
            )
        if label.strip() or answer in ("keep", "accept", "other"):
            kind = (line.get("type") or "").strip() or ("int" if whole else "str")
            answers.append((position, _label(label, kind, path)))
        elif answer == "none":
            answers.append((position, None))
    return answers


def _read_position(text: str | None, path: Path) -> int:
    try:
        position = int(text or "")
        if abs(position) <= np.iinfo(np.intp).max:
            return position
    except ValueError:
        pass
    raise ValueError(f"position must be an integer, got {shorten(text)} in {path}.")


def _label(text: str, kind: str, path: Path) -> Any:
    try:
        return _TYPES[kind](text)
    except (KeyError, OverflowError, ValueError) as error:
        raise ValueError(
            "true_label must be of the type in the column type, one of "
            f"{', '.join(_TYPES)}; got {shorten(text)} of type {shorten(kind)} in {path}."
        ) from error


def check_weights_and_verified(
    sample_weight: Any, verified: Any, n_samples: int
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64], NDArray[np.bool_]]:
    """Return weights as given, weights, and which labels are verified."""
    given = check_weights(sample_weight, n_samples)
    weight = np.ones(n_samples) if given is None else given
    warn_if_normalized(weight)
    known = np.zeros(n_samples, dtype=bool)
    if verified is not None:
        known = check_mask(verified, known.shape, "verified")
    return given, weight, known
