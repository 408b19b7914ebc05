"""Votes as people hand them in: a matrix with gaps, a table, or a long list."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from ..utils.checking._arrays import as_array, form_of, is_missing
from ..utils.checking._groups import group_codes
from ..utils.checking._labels import as_labels, class_positions, joined_classes
from ..utils.meta._tables import row_index
from ..utils.meta._warnings import warn
from ._votes import Votes


class LongVotes:
    """Votes of annotators on samples, without a cell for who was not asked.

    :func:`votes_from_long` makes it, and `fit` takes it as ``votes=``. It has one row for each
    sample, so that cross-validation slices it with the rows of X.

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
        places = np.arange(count.sum()) + np.repeat(starts[rows] - ends + count, count)
        kept, sample = order[places], np.repeat(np.arange(len(rows)), count)
        who, said = self._annotator[kept], self._label[kept]
        every = np.ones(len(kept), dtype=bool)
        return LongVotes(self.index[rows], self.annotators, sample, who, said, every)

    def __repr__(self) -> str:
        n_samples, n_annotators = self.shape
        votes = f"{len(self._label)} votes of {n_annotators} annotators"
        return f"LongVotes({votes} on {n_samples} samples)"


def votes_from_long(
    samples: ArrayLike, annotators: ArrayLike, labels: ArrayLike, *, index: Any = None
) -> LongVotes:
    """Return votes that come as a long list: who said what of which sample.

    Parameters
    ----------
    samples : array-like of shape (n_votes,)
        The sample of each vote: its name, or its position.
    annotators : array-like of shape (n_votes,)
        Who voted, a name of any kind.
    labels : array-like of shape (n_votes,)
        What he or she said, integers or strings. Missing values (None, NaN) are no votes.
    index : array-like of shape (n_samples,), default=None
        Names of all samples in the order of the rows of X, such as ``X.index`` or
        ``range(len(X))``; those without a vote are named here too. None means the samples that
        occur, sorted.

    Returns
    -------
    votes : object of shape (n_samples, n_annotators)
        What ``votes=`` takes, one row for each sample. Only votes that were given take memory.

    Raises
    ------
    ValueError
        If lengths differ, if somebody votes twice on one sample, or if a sample is not in
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
    """
    entries = _entries(labels, "labels")
    given = ~is_missing(entries)
    if not given.any():
        raise ValueError("labels must hold at least one vote, got missing values alone.")
    label = _as_votes(entries[given], "labels")
    _, names, codes = _coded(annotators, "annotators", len(entries))
    occurring, sample_names, sample = _coded(samples, "samples", len(entries))
    if index is not None:
        place = {name: row for row, name in enumerate(np.asarray(index, dtype=object).tolist())}
        if len(place) < len(index):
            raise ValueError("index must name every sample once, got a name twice.")
        unknown = [name for name in occurring if name not in place]
        if unknown:
            raise ValueError(f"samples must be in index, got {unknown[0]!r}, which is not.")
        sample = np.array([place[name] for name in occurring])[sample]
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


def _coded(
    values: Any, name: str, n_votes: int
) -> tuple[list[Any], NDArray[Any], NDArray[np.intp]]:
    if len(values) != n_votes:
        raise ValueError(
            f"{name} must have one entry for each of the {n_votes} labels, got {len(values)}."
        )
    names, codes = group_codes(values, n_votes, name=name)
    if names.dtype == object and is_missing(names).any():
        raise ValueError(f"{name} must name one for every vote, got a missing value.")
    return names.tolist(), names, codes


def _entries(values: Any, name: str) -> NDArray[Any]:
    """Return a 1-D array of objects: from a list numpy would make a text of NaN among texts."""
    if hasattr(values, "dtype"):
        values = as_array(values, name=name)
    plain = [x.item() if isinstance(x, np.generic) else x for x in values]
    entries = np.empty(len(plain), dtype=object)
    entries[:] = plain
    return entries


def _as_votes(entries: NDArray[Any], name: str) -> NDArray[Any]:
    """Return labels, integers or strings; a blank is an error."""
    if any(isinstance(entry, str) and not entry.strip() for entry in entries.tolist()):
        raise ValueError(f"{name} must be None or NaN where nobody voted, got a blank text.")
    return as_labels(entries, name=name)


class Read(NamedTuple):
    """Votes that were read."""

    votes: Votes
    classes: NDArray[Any]
    annotators: NDArray[Any]  # names, or positions of the columns
    place: NDArray[np.intp] | None  # of every vote in a long list; None for a matrix
    n_places: int

    def in_form(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return one value for each vote in the form in which the votes came, NaN for none."""
        if self.place is not None:
            result = np.full(self.n_places, np.nan)
            result[self.place] = values
            return result
        result = np.full((self.votes.n_samples, self.votes.n_annotators), np.nan)
        result[self.votes.sample, self.votes.annotator] = values
        return result


def read_votes(votes: Any, labels: NDArray[Any] | None, *samples: Any) -> Read:
    """Return votes of any form, with the classes that they and the labels name.

    `samples` are X and y as they came, whose index has to be that of a frame of votes.
    """
    place, n_places = None, 0
    if isinstance(votes, LongVotes):
        order = np.argsort(votes._sample, kind="stable")
        place, n_places = np.flatnonzero(votes._given)[order], len(votes._given)
        sample, annotator, label = (
            votes._sample[order],
            votes._annotator[order],
            votes._label[order],
        )
        names, shape = votes.annotators, votes.shape
    else:
        _check_index(votes, samples)
        sample, annotator, label, names, shape = _of_matrix(votes)
    classes = np.unique(label)
    given = None if labels is None else np.unique(labels)
    if given is not None:
        classes = joined_classes(given, classes, name="votes", before="y")
    if given is None or -1 not in given.tolist():
        _warn_of_marker(classes)
    codes = class_positions(label, classes)
    read = Votes(sample, annotator, codes, shape[0], shape[1], len(classes))
    return Read(read, classes, names, place, n_places)


def _warn_of_marker(classes: NDArray[Any]) -> None:
    """Warn of -1 beside 0, 1, 2, ...; with 0 and 1 alone, it may be an opinion: negative."""
    n = len(classes)
    if classes.dtype.kind in "iuf" and n > 3 and np.array_equal(classes, np.arange(-1, n - 1)):
        warn(
            f"votes holds -1 beside 0 to {n - 2}, and takes it for a class. If it stands for no "
            "vote, pass NaN or None there, such as by np.where(votes == -1, np.nan, votes)."
        )


def _check_index(votes: Any, samples: tuple[Any, ...]) -> None:
    index, other = row_index(votes), row_index(*samples)
    if index is None or other is None or len(index) != len(other):
        return
    if not index.equals(other):
        raise ValueError(
            "votes must have the index of X and y in the same order, got another one; "
            "votes.loc[X.index] puts them in order, votes.to_numpy() takes them as they are."
        )


def _of_matrix(votes: Any) -> tuple[NDArray, NDArray, NDArray, NDArray, tuple[int, int]]:
    """Return samples, annotators and labels of the votes, names of the annotators, the shape."""
    if issparse(votes):
        raise TypeError(
            "votes must be an array with NaN where nobody voted, or votes_from_long(samples, "
            f"annotators, labels), got {type(votes).__name__}, whose zeros are ambiguous."
        )
    if hasattr(votes, "columns") and hasattr(votes, "iloc"):
        names = np.asarray(votes.columns)
        if len(set(names.tolist())) < len(names):
            raise ValueError(
                "votes must have one column for each annotator, got a name of a column twice."
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
                f"{form_of(array, form)}; votes_from_long(samples, annotators, labels) reads a "
                "long list."
            )
        columns, shape = list(array.T), array.shape
        names = np.arange(shape[1])
    found = [_of_column(column, name) for column, name in zip(columns, names.tolist())]
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


def _of_column(column: NDArray[Any], name: Any) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return where an annotator voted, and what."""
    if column.dtype.kind in "biuU":
        given = np.ones(len(column), dtype=bool)
    elif column.dtype.kind == "f":
        given = ~np.isnan(column)
    else:
        column = _entries(column, "votes")
        given = ~is_missing(column)
    rows = np.flatnonzero(given)
    title = f"votes of annotator {name!r}"
    if not len(rows):
        return rows, np.array([], dtype=np.int64)
    said = column[given]
    return rows, _as_votes(said, title) if said.dtype.kind in "OU" else as_labels(said, name=title)
