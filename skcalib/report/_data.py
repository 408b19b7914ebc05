"""The data of a report: checked input, groups, what labels show of themselves, and small sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.utils import check_random_state

from ..metrics import CalibrationAccumulator, check_alignment
from ..utils._arrays import keep_index, reword
from ..utils._labels import (
    _DISTINCT_OF_TABLE,
    compute_design_effect,
    draw_independent_rows,
    encode_groups,
)
from ..utils._numeric import compute_binomial_interval, compute_uniform_edges
from ..utils._output import warn
from ..utils._proba import (
    LOSS_FLOOR,
    Predictions,
    as_two_columns,
    check_predictions,
    label_log_loss,
)
from ._constants import FAR, LEVEL, MANY_SAMPLES, N_BINS, N_SAMPLED, NO_CHANCE, TOLERANCE
from ._document import format_label, make_distinct, show_invisible


def warn_of_table_twice(codes: NDArray[np.intp], proba: NDArray[Any]) -> None:
    """Warn where all rows of labels and probabilities occur equally often, more than once.

    Few distinct probabilities, such as those of a tree, repeat as well, but not all equally often.
    """
    key = proba @ np.random.default_rng(0).random(proba.shape[1]) + 2.0 * codes
    counts = np.unique(key, return_counts=True)[1]
    if len(counts) >= _DISTINCT_OF_TABLE and 1 < counts.min() == counts.max():
        times = "twice" if counts[0] == 2 else f"{counts[0]} times"
        warn(
            f"Every row of labels and probabilities is there {times}: {len(counts)} of the "
            f"{len(codes)} are distinct. If they are duplicates, keep one of each: with the "
            "others, intervals are too narrow."
        )


# Classes of a page of answers.
WRONG_OR_RIGHT = ("wrong", "right")
# What check_alignment advises, where labels= is not the argument to pass.
REMEDY = "pass labels= in the order of the columns"
# Beginning of the finding that the labels are predictions, and what to do about it.
ARE_PREDICTIONS = "The labels are the most probable class in all"
PASS_LABELS = "pass the true labels"
# The same for a file.
OF_FILES = {
    REMEDY: "name the columns in the order of the classes: classes, --classes",
    PASS_LABELS: "--label names another column",
}


class Groups(NamedTuple):
    """Names of groups in order, and the code of every sample's group."""

    names: list[str]
    codes: NDArray[np.intp]


@dataclass(frozen=True)
class ReportData:
    """Checked input of a report, without the samples of weight 0.

    ``codes`` are the columns of the true classes, and ``numbers`` the positions of the samples in
    the user's arrays. ``features``, ``shown``, ``by`` and ``groups`` are None if not given: ``by``
    breaks the results down, samples of one of the ``groups`` belong together. ``alignment``
    holds what :func:`~skcalib.metrics.check_alignment` found. ``soft_labels``, of shape
    (n_samples, n_classes), are given if people disagree; ``codes`` are then the most frequent
    classes. If the data are ``of_answers``, the second of two classes is that the answer is right,
    and its probability the confidence in it: every sample is answered. ``costs`` of decisions, and
    the probability of the second class from which on one acts, ``act_above``, are the user's.
    ``total`` holds sums over many more samples, of which these are a random part:
    sums of the "answers" or of the "positive" class, as ``summed`` says.
    """

    codes: NDArray[np.intp]
    proba: NDArray[Any]
    weight: NDArray[np.float64] | None
    classes: NDArray[Any]
    numbers: NDArray[np.intp]
    seed: int
    n_given: int
    title: str | None = None
    model: str | None = None
    features: Any = None
    shown: Any = None
    scorer: Any = None
    finder: Any = None
    by: Mapping[str, Groups] | None = None
    groups: NDArray[np.intp] | None = None
    source: Mapping[str, Any] | None = None
    tolerance: float = TOLERANCE
    alignment: Sequence[str] = ()
    total: CalibrationAccumulator | None = None
    summed: str | None = None
    soft_labels: NDArray[np.float64] | None = None
    of_answers: bool = False
    costs: Any = None
    act_above: float | None = None

    @cached_property
    def sampled(self) -> NDArray[np.intp]:
        """Positions of the samples for computations with several passes: all, or a part of many.

        The part is stratified by class and by `by`. If there are `groups`, it is a random part of
        whole groups.
        """
        n = len(self.codes)
        if n <= MANY_SAMPLES:
            return np.arange(n)
        rng = np.random.default_rng(self.seed)
        if self.groups is not None:
            size = np.bincount(self.groups)
            order = rng.permutation(len(size))
            taken = order[np.cumsum(size[order]) <= N_SAMPLED]
            return np.flatnonzero(np.isin(self.groups, taken))
        strata = self.codes.copy()
        for groups in (self.by or {}).values():
            strata = strata * len(groups.names) + groups.codes
        # Every n / N_SAMPLED-th sample, sorted by stratum and at random within each.
        order = np.lexsort([rng.random(n), strata])
        return np.sort(order[(np.arange(N_SAMPLED) * n) // N_SAMPLED])

    @cached_property
    def sample(self) -> ReportData:
        """The data of the samples at `sampled`."""
        rows = self.sampled
        return self if len(rows) == len(self.codes) else self.take(rows)

    def take(self, rows: NDArray[np.intp]) -> ReportData:
        """Return the data of some samples."""
        by = {
            name: Groups(groups.names, groups.codes[rows])
            for name, groups in (self.by or {}).items()
        }
        return replace(
            self,
            codes=self.codes[rows],
            proba=self.proba[rows],
            weight=None if self.weight is None else self.weight[rows],
            soft_labels=None if self.soft_labels is None else self.soft_labels[rows],
            numbers=self.numbers[rows],
            by=by or None,
            groups=None if self.groups is None else _renumber(self.groups[rows]),
        )

    def effect(
        self, values: NDArray[np.float64], members: NDArray[Any] | slice = slice(None)
    ) -> float:
        """Return the design effect of the groups on the variance of a mean; 1 without groups."""
        if self.groups is None:
            return 1.0
        return compute_design_effect(values, _renumber(self.groups[members]))

    @property
    def n_samples(self) -> int:
        """Number of samples behind the averages: those here or, with `total`, all.

        Sums with weights give the effective number.
        """
        if self.total is None:
            return len(self.codes)
        weight, norm = self.total.sums_[0].sum(), np.linalg.norm(self.total.weight_norms_)
        return max(round((weight / norm) ** 2), 1)

    def sums(self, view: str) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return the sums over bins of "answers" or of the "positive" class; None without.

        With them the effective number of samples of every bin.
        """
        if self.summed != view or self.total is None:
            return None
        some = self.total.sums_[0] > 0
        return self.total.sums_[:, some], self.total.n_effective_[some]

    @property
    def predictions(self) -> dict[str, Any]:
        """Arguments of a metric, for the top label."""
        return {
            "y_true": self.codes if self.soft_labels is None else self.soft_labels,
            "y_proba": self.proba,
            "sample_weight": self.weight,
            "labels": np.arange(len(self.classes)),
        }

    @property
    def of_positive_class(self) -> dict[str, Any]:
        """Arguments of a metric, for the second of two classes."""
        return {**self.predictions, "y_proba": self.proba[:, 1]}

    @property
    def metric_kwargs(self) -> dict[str, Any]:
        """Arguments of a metric, for the second of two classes or, with more, the top label."""
        return self.of_positive_class if len(self.classes) == 2 else self.predictions

    @property
    def of_one_class(self) -> bool:
        """Whether the page is about the probability of the second of two classes first."""
        return len(self.classes) == 2 and not self.of_answers

    @cached_property
    def predicted(self) -> NDArray[np.intp]:
        """Columns of the largest probabilities."""
        return self.columns_of(self.proba)

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """Largest probability of every sample."""
        return self.confidence_of(self.proba).astype(np.float64)

    @cached_property
    def decided(self) -> NDArray[np.intp]:
        """Columns of the predicted classes; with `act_above`, the second from there on."""
        if self.act_above is None:
            return self.predicted
        return (self.proba[:, 1] >= self.act_above).astype(np.intp)

    def columns_of(self, proba: NDArray[Any]) -> NDArray[np.intp]:
        """Return the columns of the answers, which have the largest of these probabilities."""
        return np.ones(len(proba), np.intp) if self.of_answers else proba.argmax(axis=1)

    def confidence_of(self, proba: NDArray[Any]) -> NDArray[Any]:
        """Return the probabilities of the answers."""
        return proba[:, 1] if self.of_answers else proba.max(axis=1)

    @property
    def correct(self) -> NDArray[Any]:
        """Whether the prediction is right or, with soft labels, how probable that is."""
        return self.agreeing(self.predicted)

    def agreeing(self, columns: NDArray[np.intp]) -> NDArray[Any]:
        """Return whether these are the true classes or, with soft labels, how probable."""
        if self.soft_labels is None:
            return columns == self.codes
        return self.soft_labels[np.arange(len(columns)), columns]

    def of_class(self, k: int) -> NDArray[Any]:
        """Return whether samples are of class k or, with soft labels, how probable."""
        return self.codes == k if self.soft_labels is None else self.soft_labels[:, k]

    def per_sample(self, of_labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return for every sample the entry of its label; with soft labels, their mean."""
        if self.soft_labels is None:
            return of_labels[np.arange(len(of_labels)), self.codes]
        return (of_labels * self.soft_labels).sum(axis=1)

    def log_loss(self, proba: NDArray[Any]) -> NDArray[np.float64]:
        """Return the log-loss of every sample; with soft labels, their mean."""
        if self.soft_labels is None:
            return label_log_loss(proba, self.codes)
        return self.per_sample(-np.log(np.maximum(proba.astype(np.float64), LOSS_FLOOR)))

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The weights; ones without weights."""
        return np.ones(len(self.codes)) if self.weight is None else self.weight

    def label(self, code: int) -> Any:
        """Return the label of a column as a Python object."""
        return self._labels[code]

    @cached_property
    def _labels(self) -> list[Any]:
        return make_distinct(self.classes.tolist())


def read_data(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None,
    pos_label: Any = None,
    by: Any = None,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
    named: bool = False,
    remedies: Mapping[str, str] | None = None,
    **others: Any,
) -> ReportData:
    """Check the arguments of a report; `others` are fields of :class:`ReportData`, as given.

    If the columns are `named` by `labels` that the user has not passed, their order is checked.
    """
    if others.get("of_answers") and labels is None:
        labels = [False, True]
    checked = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, labels=labels, pos_label=pos_label
    )
    proba, weight = checked.proba, checked.counts
    if others.get("of_answers") and proba.ndim == 2:
        raise ValueError(
            "y_proba must have shape (n_samples,) with of_answers, the confidence in the answers, "
            f"got shape {proba.shape}."
        )
    if proba.ndim == 1:
        # Use both columns, so that the page does not depend on the form of the input.
        proba = np.column_stack([1 - proba.astype(np.float64), proba])
    n_given = len(proba)
    if not 0 < others.get("tolerance", TOLERANCE) < 1:
        raise ValueError(f"tolerance must be in (0, 1), got {others['tolerance']!r}.")
    _check_lengths(n_given, others)
    kept = np.arange(n_given) if weight is None else np.flatnonzero(weight)
    codes, soft_labels = checked.truth, None
    if checked.is_soft:
        codes = codes.argmax(axis=1)
        # If people always agree, they are labels.
        soft_labels = None if np.isin(checked.truth, (0, 1)).all() else checked.truth[kept]
        if soft_labels is not None and others.get("finder") is not None:
            raise ValueError(
                "finder must be None if y_true holds soft labels, got a finder, which is for "
                "labels. Its probabilities, finder.label_proba_, can be y_true."
            )
    group_ids = None if groups is None else _renumber(encode_groups(groups, n_given)[1][kept])
    if groups is None:
        warn_of_table_twice(codes[kept], proba[kept])
    weight = None if weight is None else weight[kept]
    of_sample = None if groups is None else encode_groups(groups, n_given)[1]
    named = named or (labels is None and pos_label is None)
    alignment = find_alignment(
        checked, y_true, y_proba, groups=of_sample, named=named, remedies=remedies
    )
    return ReportData(
        # Without weights, do not copy.
        codes=codes if weight is None else codes[kept],
        soft_labels=soft_labels,
        proba=proba if weight is None else proba[kept],
        weight=weight,
        classes=np.array(WRONG_OR_RIGHT) if others.get("of_answers") else checked.classes,
        numbers=kept,
        seed=_draw_seed(random_state),
        n_given=n_given,
        by=_read_groups(by, n_given, kept),
        groups=group_ids,
        alignment=alignment,
        **others,
    )


def find_alignment(
    checked: Predictions,
    y_true: Any,
    y_proba: Any,
    *,
    groups: NDArray[np.intp] | None = None,
    named: bool = True,
    remedies: Mapping[str, str] | None = None,
) -> list[str]:
    """Return that labels are predictions, and what ``check_alignment`` finds, as sentences.

    It sees independent samples. Their columns are checked if they are `named`, not if the user has
    passed the labels. `remedies` replace what the sentences advise.
    """
    rows = draw_independent_rows(len(checked.proba), groups, checked.weight)
    truth = checked.truth if checked.is_soft else checked.classes[checked.truth]
    proba, labels = checked.proba, checked.classes
    order = np.argsort(labels, kind="stable")
    is_sorted = np.array_equal(order, np.arange(len(order)))
    has_all = len(np.unique(truth[rows])) == len(labels)
    if np.array_equal(labels, np.arange(len(labels))):
        known = not named
    elif checked.is_soft or not has_all or (proba.ndim == 1 and not is_sorted):
        known = True
    else:
        known = not named
        proba = proba if known or is_sorted else proba[:, order]
    found = check_alignment(
        keep_index(y_true, truth, rows),
        keep_index(y_proba, proba, rows),
        labels=labels if known else None,
    )
    predictions = diagnose_predictions(checked, rows)
    found = found if predictions is None else [predictions, *found]
    return [reword(finding, remedies or {}) for finding in found]


def diagnose_predictions(
    checked: Predictions, rows: slice | NDArray[np.intp] = slice(None)
) -> str | None:
    """Return a sentence if all labels are the most probable class and chance excludes it.

    Chance is that of a calibrated model to be right in all of the independent `rows`.
    """
    if checked.is_soft:
        return None
    proba = as_two_columns(checked.proba) if checked.proba.ndim == 1 else checked.proba
    highest = proba.max(axis=1)
    with np.errstate(divide="ignore"):
        if np.log(highest[rows], dtype=np.float64).sum() >= np.log(NO_CHANCE):
            return None
    used = slice(None) if checked.weight is None else checked.weight > 0
    of_label = proba[np.arange(len(proba)), checked.truth]
    if (of_label < highest)[used].any():
        return None
    n, expected = len(of_label[used]), (1 - highest[used]).sum()
    return (
        f"{ARE_PREDICTIONS} {n} rows, where the probabilities expect {expected:.0f} errors: they "
        f"are predictions and no true labels, unless the model is never wrong; {PASS_LABELS}."
    )


def check_sums(
    total: CalibrationAccumulator, y_true: ArrayLike, y_proba: ArrayLike, sample_weight: Any = None
) -> None:
    """Check the accumulator; warn if the samples are not a random part of what it summed."""
    if not isinstance(total, CalibrationAccumulator):
        raise TypeError(
            f"accumulator must be a CalibrationAccumulator, got {type(total).__name__}."
        )
    if total.norm != "l1" or not np.array_equal(total.edges_, compute_uniform_edges(N_BINS)):
        raise ValueError(
            f"accumulator must have {N_BINS} bins of equal width and the norm 'l1', those of "
            f"CalibrationAccumulator(), got {len(total.edges_) - 1} bins and {total.norm!r}."
        )
    if not total.sums_[0].any():
        raise ValueError("accumulator must have samples, got none: call its update first.")
    # `update` checks columns and classes.
    part = total._empty().update(y_true, y_proba, sample_weight=sample_weight)
    (weight, *of_part), (n, *of_all) = part.sums_.sum(axis=1), total.sums_.sum(axis=1)
    size = (weight / np.linalg.norm(part.weight_norms_)) ** 2
    for what, of_rows, of_sums in zip(("mean confidence", "accuracy"), of_part, of_all):
        # Of all numbers in [0, 1] with this mean, 0 and 1 have the largest variance.
        found, expected = of_rows / weight, of_sums / n
        if abs(found - expected) > FAR * np.sqrt(max(expected * (1 - expected), 1 / size) / size):
            warn(
                f"y_true and y_proba must be a random part of what was accumulated: their {what} "
                f"is {found:.4f}, that of all samples {expected:.4f}. Draw them from all parts."
            )
            return


def _renumber(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return codes renumbered from 0 without holes."""
    return np.unique(codes, return_inverse=True)[1]


def _check_lengths(n_samples: int, others: dict[str, Any]) -> None:
    for field, name in (("features", "X"), ("shown", "images")):
        value = others.get(field)
        if value is None:
            continue
        if name == "images" and (isinstance(value, Mapping) or not hasattr(value, "__len__")):
            raise TypeError(
                f"images must be a sequence, one entry per sample, got {type(value).__name__}."
            )
        length = value.shape[0] if hasattr(value, "shape") else len(value)
        if length != n_samples:
            raise ValueError(f"{name} must hold {n_samples} samples, got {length}.")


def _read_groups(by: Any, n_samples: int, kept: NDArray[np.intp]) -> dict[str, Groups] | None:
    """Return columns of groups by name; a single array has the name "group"."""
    if by is None:
        return None
    columns = [(getattr(by, "name", None) or "group", by)]
    # Frames of pandas and of polars have columns by name, as a mapping has.
    names = by if isinstance(by, Mapping) else getattr(by, "columns", None)
    if names is not None:
        columns = [(name, by[name]) for name in names]
    read: dict[str, Groups] = {}
    for name, values in columns:
        if str(name) in read:
            raise ValueError(f"by must have distinct names, got {str(name)!r} twice.")
        labels, codes = encode_groups(values, n_samples, name="by")
        used, codes = np.unique(codes[kept], return_inverse=True)
        shown = [
            format_label(x) for x in make_distinct([_name_group(x) for x in labels[used].tolist()])
        ]
        read[str(name)] = Groups(shown, codes)
    return read or None


def _name_group(group: Any) -> str:
    if group is None:
        return "(missing)"
    # pandas turns integers into floats if a value is missing.
    return str(int(group)) if isinstance(group, float) and group.is_integer() else str(group)


def _draw_seed(random_state: Any) -> int:
    """Return the seed of everything random on the page: a given int, or one drawn."""
    try:
        if isinstance(random_state, bool):  # scikit-learn would take it as a number
            raise ValueError
        rng = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            "random_state must be an int in [0, 2**32 - 1], a RandomState instance or None, "
            f"got {random_state!r}."
        ) from None
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(rng.randint(np.iinfo(np.int32).max))


def count_effective(weights: NDArray[np.float64]) -> float:
    """Return the effective number of samples of these weights, ``(sum w)^2 / sum w^2``."""
    return float(weights.sum() ** 2 / (weights @ weights)) if weights.any() else 0.0


def estimate_fraction(
    of: NDArray[Any], weights: NDArray[np.float64], n_effective: float | None = None
) -> dict[str, float]:
    """Return a weighted fraction with the Clopper-Pearson interval of the effective number.

    For soft labels, which vary less than labels, the interval is conservative.
    """
    total = weights.sum()
    value = min(float(weights @ of / total), 1.0) if total else float("nan")
    n = count_effective(weights) if n_effective is None else n_effective
    low, high = compute_binomial_interval(np.array([value]), np.array([n]), LEVEL)
    return {"value": value, "low": float(low[0]), "high": float(high[0])}


def compute_mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the weighted mean."""
    return float(np.average(values, weights=weights)) if weights.sum() else float("nan")


def compute_mean_interval(
    x: NDArray[np.float64],
    weights: NDArray[np.float64],
    effect: float = 1.0,
    level: float = LEVEL,
    least: float = 0.0,
) -> dict[str, float]:
    """Return a weighted mean with a normal interval, for a variance of at least `least`.

    `effect` is the design effect of groups.
    """
    n, center = count_effective(weights) / effect, compute_mean(x, weights)
    if n <= 1:  # one sample has no spread
        return {"value": center, "low": -np.inf, "high": np.inf}
    variance = max((weights @ (x - center) ** 2) / weights.sum() * n / (n - 1), least)
    half = ndtri((1 + level) / 2) * np.sqrt(variance / n)
    return {"value": center, "low": float(center - half), "high": float(center + half)}


def thin_curve(x: NDArray[Any], n_points: int = 300) -> NDArray[np.intp]:
    """Return positions of about `n_points` points of a curve, with both ends, for a plot.

    Half of the points are spread evenly along the curve, half along x.
    """
    if len(x) <= n_points:
        return np.arange(len(x))
    along = np.linspace(0, len(x) - 1, n_points // 2).round().astype(np.intp)
    across = np.searchsorted(x, np.linspace(x[0], x[-1], n_points // 2))
    return np.unique(np.concatenate([along, np.minimum(across, len(x) - 1)]))


def as_plain(value: Any) -> Any:
    """Return a value as JSON types, with text that any page can show."""
    if isinstance(value, str):
        return show_invisible(value)
    if isinstance(value, dict):
        return {show_invisible(str(key)): as_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return as_plain(value.tolist())
    return value
