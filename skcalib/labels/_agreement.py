"""How far annotators agree, with each other and with labels that are known."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from ..utils._compat import Interval, validate_params
from ..utils._labels import as_labels, encode
from ..utils._numeric import compute_binomial_interval
from ..utils._output import as_table
from ._annotations import Read, read_votes


class AnnotatorAgreement(NamedTuple):
    """Krippendorff's alpha with its interval, and the tables of pairs and of annotators."""

    alpha: float
    alpha_low: float
    alpha_high: float
    pairs: Any
    annotators: Any


class Estimate(NamedTuple):
    """A coefficient of agreement and the ends of its interval; NaN where there is none."""

    value: float
    low: float
    high: float


@validate_params(
    {
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "as_frame": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def annotator_agreement(
    votes: Any,
    y_true: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    as_frame: bool = False,
) -> AnnotatorAgreement:
    """How far annotators agree: Krippendorff's alpha, kappa of every pair, who finds which class.

    All of it counts votes; nothing is modeled. Agreement is not accuracy: annotators who copy each
    other, or make the same errors, agree.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_annotators) or LongVotes
        The label that each annotator (column) gave to each sample (row); NaN or None where nobody
        voted. A long list of votes goes in by :func:`votes_from_long`. Labels have no order.
    y_true : array-like of shape (n_samples,), default=None
        True labels, such as checked ones, for sensitivity and specificity. None compares each
        annotator with the majority of the others, on samples where it is one class.
    confidence_level : float, default=0.95
        Level of all intervals, in (0, 1).
    as_frame : bool, default=False
        Whether `pairs` and `annotators` are DataFrames; otherwise structured arrays.

    Returns
    -------
    alpha : float
        Krippendorff's alpha for nominal labels, at most 1 [1]_: 1 if all votes agree, 0 if they
        agree as votes drawn at random would, NaN if no sample has two votes or all votes are one
        class.
    alpha_low, alpha_high : float
        Ends of its interval over samples.
    pairs : structured array or DataFrame
        A row for every two annotators with a sample in common, those who agree most first:
        `annotator`, `other`, `n_samples` (in common), `agreement` (fraction of these), Cohen's
        `kappa` [2]_ and its ends `kappa_low` and `kappa_high`.
    annotators : structured array or DataFrame
        A row for every annotator and class: `annotator`, `label`, `n_with` (samples whose true
        label it is), `sensitivity` (fraction of these to which the annotator gave it),
        `sensitivity_low`, `sensitivity_high`, `n_without`, `specificity` (fraction of the other
        samples to which the annotator did not give it), `specificity_low`, `specificity_high`. In
        [0, 1]; larger = better; NaN without samples.

    Raises
    ------
    ValueError
        If there are no votes, or if `y_true` has another length or a label missing.

    See Also
    --------
    LabelIssueFinder : Finds the true labels, each annotator's accuracy, and who copies whom.
    votes_from_long : Votes from a list of who said what.

    Notes
    -----
    Intervals of alpha and kappa are those of the jackknife over samples, with quantiles of t, for
    the logarithm of observed over expected disagreement. Where fewer than two samples show a
    disagreement, their number has Clopper and Pearson's interval, as sensitivity and specificity
    have. The majority of others is no truth: where most are wrong together, who is right looks
    wrong. Memory grows with the number of samples times annotators times classes.

    References
    ----------
    .. [1] K. Krippendorff, "Content Analysis: An Introduction to Its Methodology", 2004, chapter
       11.
    .. [2] J. Cohen, "A Coefficient of Agreement for Nominal Scales", Educational and Psychological
       Measurement 1960.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.labels import annotator_agreement
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=200)
    >>> right = rng.random((200, 3)) < [0.9, 0.8, 0.7]
    >>> votes = np.where(right, y[:, None], 1 - y[:, None])
    >>> found = annotator_agreement(votes)
    >>> print(f"{found.alpha:.2f}, interval {found.alpha_low:.2f} to {found.alpha_high:.2f}")
    0.34, interval 0.24 to 0.43
    >>> found.pairs[["annotator", "other"]][0].item()
    (0, 1)
    >>> known = annotator_agreement(votes, y).annotators
    >>> known["sensitivity"][known["label"] == 1].round(2)
    array([0.89, 0.83, 0.62])
    """
    truth = None
    if y_true is None:
        read = read_votes(votes, None)
    else:
        read, truth = _read_truth(votes, y_true)
    table = np.full((read.votes.n_samples, read.votes.n_annotators), -1, dtype=np.intp)
    table[read.votes.sample, read.votes.annotator] = read.votes.label
    given = table[..., np.newaxis] == np.arange(len(read.classes))
    pairs = _compare_pairs(given, read.annotators, confidence_level)
    annotators = _compare_classes(given, truth, read, confidence_level)
    return AnnotatorAgreement(
        *estimate_alpha(given.sum(axis=1).astype(np.float64), confidence_level),
        as_table(pairs, as_frame=as_frame),
        as_table(annotators, as_frame=as_frame),
    )


def _read_truth(votes: Any, y_true: ArrayLike) -> tuple[Read, NDArray[np.intp]]:
    """Return the votes, whose classes are those of votes and true labels, and the true ones."""
    alone, labels = read_votes(votes, None), as_labels(y_true, name="y_true")
    if len(labels) != alone.votes.n_samples:
        raise ValueError(
            f"y_true must have one label for each of the {alone.votes.n_samples} samples of "
            f"votes, got {len(labels)}."
        )
    read = read_votes(votes, labels)
    truth = encode(labels, read.classes, name="y_true")
    if alone.classes.dtype.kind == "b" and set(read.classes.tolist()) <= {0, 1}:
        read = read._replace(classes=read.classes.astype(bool))
    return read, truth


def estimate_alpha(count: NDArray[np.float64], confidence_level: float = 0.95) -> Estimate:
    """Return Krippendorff's alpha of nominal labels, from votes by sample and class."""
    count = count[count.sum(axis=1) > 1]
    size = count.sum(axis=1)
    # Of the pairs of votes of a sample, times its number of votes, those that disagree.
    disagreement = (size**2 - np.square(count).sum(axis=1)) / (size - 1)

    def divide(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        of_class, n = sums[..., 1:], sums[..., 1:].sum(axis=-1)
        expected = (n**2 - np.square(of_class).sum(axis=-1)) / np.maximum(n * (n - 1), 1)
        return _divide(sums[..., 0] / np.maximum(n, 1), expected)

    # One other vote of m makes a disagreement of 2.
    return _estimate(np.column_stack([disagreement, count]), divide, 2.0, confidence_level)


def _estimate_kappa(
    first: NDArray[np.bool_], second: NDArray[np.bool_], confidence_level: float
) -> Estimate:
    disagreement, n_classes = ~(first & second).any(axis=1), first.shape[1]

    def divide(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        of_first, of_second = sums[..., 1 : n_classes + 1], sums[..., n_classes + 1 :]
        n = np.maximum(of_first.sum(axis=-1), 1)
        return _divide(sums[..., 0] / n, 1 - (of_first * of_second).sum(axis=-1) / n**2)

    rows = np.column_stack([disagreement, first, second]).astype(np.float64)
    return _estimate(rows, divide, 1.0, confidence_level)


def _divide(observed: Any, expected: Any) -> NDArray[np.float64]:
    """Return observed over expected disagreement, NaN where none is expected."""
    return np.divide(
        observed, expected, out=np.full(np.shape(observed), np.nan), where=expected > 1e-12
    )


def _estimate(
    rows: NDArray[np.float64],
    divide: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    one: float,
    confidence_level: float,
) -> Estimate:
    """Return 1 - observed / expected disagreement, and its interval.

    `divide` computes the quotient from sums over `rows`, one for every sample, whose first column
    is its disagreement: `one` where one of its votes differs.
    """
    n, total = len(rows), rows.sum(axis=0)
    quotient = float(divide(total)) if n else np.nan
    if np.isnan(quotient):
        return Estimate(np.nan, np.nan, np.nan)
    some = np.count_nonzero(rows[:, 0])
    without = divide(total - rows)
    if some < 2 or not (without > 0).all():
        # Too few samples with a disagreement: their number is binomial.
        total[0] = one * n
        ends = np.ravel(
            compute_binomial_interval(np.array([some / n]), np.array([n]), confidence_level)
        )
        low, high = ends * float(divide(total))
    else:
        logs = np.log(without)
        error = np.sqrt((n - 1) / n * np.square(logs - logs.mean()).sum())
        far = np.exp(student.ppf((1 + confidence_level) / 2, n - 1) * error)
        low, high = quotient / far, quotient * far
    return Estimate(1 - quotient, 1 - float(high), 1 - float(low))


def _compare_pairs(
    given: NDArray[np.bool_], names: NDArray[Any], confidence_level: float
) -> dict[str, NDArray[Any]]:
    """Return the columns of the table of pairs, sorted by kappa."""
    voted = np.asarray(given.any(axis=2))
    common = np.dot(voted.T.astype(np.float64), voted.astype(np.float64))
    found = []
    for a, b in zip(*np.nonzero(np.triu(common, 1))):
        rows = voted[:, a] & voted[:, b]
        first, second = given[rows, a], given[rows, b]
        kappa = _estimate_kappa(first, second, confidence_level)
        found.append((a, b, common[a, b], (first & second).any(axis=1).mean(), *kappa))
    columns = np.array(found, dtype=np.float64).reshape(-1, 7)
    # Those without a kappa are last.
    columns = columns[np.lexsort((-columns[:, 3], -columns[:, 4]))]
    place = columns[:, :2].astype(np.intp)
    numbers = dict(zip(("agreement", "kappa", "kappa_low", "kappa_high"), columns.T[3:]))
    return {
        "annotator": names[place[:, 0]],
        "other": names[place[:, 1]],
        "n_samples": columns[:, 2].astype(np.intp),
        **numbers,
    }


def _compare_classes(
    given: NDArray[np.bool_], truth: NDArray[np.intp] | None, read: Read, confidence_level: float
) -> dict[str, NDArray[Any]]:
    """Return the columns of the table of annotators and classes."""
    n_annotators, n_classes = given.shape[1:]
    count, found = given.sum(axis=1), []
    for k in range(n_annotators):
        known = truth
        if known is None:
            others = count - given[:, k]
            largest = others.max(axis=1)
            is_one = ((others == largest[:, np.newaxis]).sum(axis=1) == 1) & (largest > 0)
            known = np.where(is_one, others.argmax(axis=1), -1)
        rows = given[:, k].any(axis=1) & (known >= 0)
        true = known[rows, np.newaxis] == np.arange(n_classes)
        mine = given[rows, k]
        found.append(
            [
                true.sum(axis=0),
                (true & mine).sum(axis=0),
                (~true).sum(axis=0),
                (~true & ~mine).sum(axis=0),
            ]
        )
    n_with, hits, n_without, correct = np.array(found, dtype=np.float64).transpose(1, 0, 2)
    columns = {
        "annotator": np.repeat(read.annotators, n_classes),
        "label": np.tile(read.classes, n_annotators),
    }
    for name, size, right, n in (
        ("sensitivity", "n_with", hits, n_with),
        ("specificity", "n_without", correct, n_without),
    ):
        fraction = np.divide(right, n, out=np.full_like(n, np.nan), where=n > 0)
        low, high = compute_binomial_interval(fraction, n, confidence_level)
        columns[size] = n.astype(np.intp).ravel()
        columns[name] = fraction.ravel()
        columns[f"{name}_low"], columns[f"{name}_high"] = low.ravel(), high.ravel()
    return columns
